//! `return` and `rewrite` of a server and its locations as rules of the routes whose paths they are for.

use std::path::PathBuf;

use super::Writer;
use super::locations::is_own_root;
use super::route::{OF_FALLBACK, Route, nearest};
use crate::nginx::expression::expressed;
use crate::nginx::location::{Location, LocationKind, Shut, kind_of};
use crate::nginx::redirect::{self, Rule};
use crate::nginx::scope::Scope;
use crate::offer::list;
use crate::pattern::fits;

impl Writer<'_> {
    /// The rules of a place for all paths with a prefix.
    pub(super) fn rules_of<'t>(
        &mut self,
        scope: &Scope<'t>,
        prefix: &str,
    ) -> Result<Vec<Rule>, Shut<'t>> {
        let rules = redirect::rules(scope.own(), &[]).map_err(unsaid)?;
        let circles =
            |rule: &&Rule| rule.is_redirect() && rule.from.is_none() && rule.leads_below(prefix);
        match rules.iter().find(circles).and_then(|rule| written(scope, rule)) {
            Some(directive) => Err(Shut { directive, why: CIRCLES }),
            None => {
                self.tell_of_wider(&rules);
                Ok(rules)
            }
        }
    }

    /// Those of a location for a prefix. A rewrite stays below it; or it is for all of it and what it leads to is the matter of
    /// the route above.
    pub(super) fn rules_below<'t>(
        &mut self,
        location: &Location<'t>,
        prefix: &str,
        above: Option<&Route>,
    ) -> Result<Vec<Rule>, Shut<'t>> {
        let mut rules = self.rules_of(&location.scope, prefix)?;
        let whole = format!("{prefix}/**");
        let is_alone = rules.len() == 1;
        let has_own_root = location.directive.inner().iter().any(is_own_root);
        let stricter = above.is_none_or(|above| self.stricter(location, above).is_some());
        for rule in rules.iter_mut().filter(|it| !it.is_redirect() && !it.leads_below(prefix)) {
            let is_whole = rule.from.as_ref().is_none_or(|from| *from == whole);
            if !(is_alone && is_whole) || has_own_root || stricter {
                let directive = written(&location.scope, rule).unwrap_or(location.directive);
                return Err(Shut { directive, why: OUTSIDE });
            }
            rule.from = Some(whole.clone());
        }
        Ok(rules)
    }

    /// Those of a location for one path or an expression.
    pub(super) fn rules_at<'t>(&mut self, location: &Location<'t>) -> Result<Vec<Rule>, Shut<'t>> {
        let own = location.directive.inner();
        if !location.has_rules() {
            return Ok(Vec::new());
        }
        let directive = location.directive;
        let expressed = match location.kind {
            LocationKind::Exact => redirect::exactly(&location.path),
            _ => expressed(&location.path),
        };
        let mut at = expressed.ok_or(Shut { directive, why: UNSAID })?;
        if location.kind == LocationKind::Pattern
            && let Some(outer) = location.scope.outer_location()
        {
            let (kind, path) = kind_of(&outer.words);
            let is_prefix = kind == LocationKind::Prefix && path.starts_with('/');
            let patterns = below(path, &at.patterns).filter(|_| is_prefix);
            let patterns = patterns.ok_or(Shut { directive, why: UNSAID })?;
            // A star that begins further in stands for less than the group it was made of.
            if patterns != at.patterns && at.groups.iter().any(|group| group != "{path}") {
                return Err(Shut { directive, why: UNSAID });
            }
            at.patterns = patterns;
        }
        let mut all = Vec::new();
        for rule in redirect::rules(own, &at.groups).map_err(unsaid)? {
            let directive = written(&location.scope, &rule).unwrap_or(directive);
            let is_here =
                rule.from.as_ref().is_none_or(|from| at.patterns.as_slice() == [from.as_str()]);
            let is_circle =
                at.patterns.contains(&rule.to) || rule.leads_below("") && at.patterns.is_empty();
            if !is_here || (!rule.is_redirect() && own.iter().any(is_own_root)) {
                return Err(Shut { directive, why: UNSAID });
            }
            if is_circle {
                return Err(Shut { directive, why: CIRCLES });
            }
            let is_wider = rule.is_wider || at.is_wider;
            let cases = |it: &String| match location.ignores_case {
                true => redirect::cases(it),
                false => vec![it.clone()],
            };
            match at.patterns.is_empty() {
                true => all.push(Rule { is_wider, ..rule }),
                false => all.extend(at.patterns.iter().flat_map(cases).map(|from| Rule {
                    from: Some(from),
                    is_wider,
                    ..rule.clone()
                })),
            }
        }
        self.tell_of_wider(&all);
        Ok(all)
    }

    fn tell_of_wider(&mut self, rules: &[Rule]) {
        for rule in rules.iter().filter(|rule| rule.is_wider) {
            let from = rule.from.as_deref().unwrap_or("/**");
            let message = format!("`{from}` is for nothing in place of a star as well");
            self.output.warn(&rule.origin, message, "nginx has one letter there at least");
        }
    }

    /// Gives rules to all routes that have paths which they are for, those behind the first `for_all` not to routes of one path;
    /// nothing where one of them cannot have it.
    pub(super) fn spread(
        &mut self,
        rules: Vec<Rule>,
        for_all: usize,
        routes: &mut Vec<Route>,
    ) -> Option<()> {
        let mut firsts: Vec<Vec<Rule>> = routes.iter().map(|_| Vec::new()).collect();
        let mut homeless = Vec::new();
        for (number, rule) in rules.into_iter().enumerate() {
            let mut concerned = concerned(&rule, routes);
            let is_for_one =
                |number: &usize| routes.get(*number).is_some_and(|it| it.alone.is_some());
            let is_spared = |number: &usize| {
                routes.get(*number).is_some_and(|it| rule.spared.contains(&it.prefix))
            };
            concerned.retain(|it| number < for_all || !(is_for_one(it) || is_spared(it)));
            let mut can_all = concerned.iter().filter_map(|number| routes.get(*number));
            if let Some(why) = can_all.find_map(|route| hindrance(route, &rule, routes)) {
                let message = "the server is left out: a rewrite of it cannot be said";
                self.output.warn(&rule.origin, message, why);
                return None;
            }
            for number in &concerned {
                if let Some(first) = firsts.get_mut(*number) {
                    first.push(rule.clone());
                }
            }
            if concerned.is_empty() && rule.is_redirect() {
                homeless.push(rule);
            }
        }
        for (route, mut rules) in routes.iter_mut().zip(firsts) {
            rules.append(&mut route.rules);
            route.rules = rules;
        }
        let is_strayed = |route: &Route, rule: &Rule| {
            let home = rule.target().and_then(|target| nearest(routes, target));
            let is_fixed = !rule.is_redirect() && !rule.to.contains('{') && route.alone.is_none();
            is_fixed && home.is_some_and(|home| home.prefix != route.prefix)
        };
        let mut all = routes.iter().flat_map(|it| it.rules.iter().map(move |rule| (it, rule)));
        if let Some((_, rule)) = all.find(|(route, rule)| is_strayed(route, rule)) {
            let message = "the server is left out: a rewrite of it cannot be said";
            self.output.warn(&rule.origin, message, OUTSIDE);
            return None;
        }
        if let Some(first) = homeless.first()
            && !routes.iter().any(|route| route.prefix.is_empty())
        {
            let route = Route::new("", &first.origin);
            routes.insert(0, Route { rules: homeless, ..route });
        }
        Some(())
    }

    /// A route that only sends clients elsewhere.
    pub(super) fn redirecting(
        &mut self,
        scope: &Scope<'_>,
        prefix: &str,
        rules: Vec<Rule>,
    ) -> Route {
        let origin = rules.last().map_or_else(Default::default, |rule| rule.origin.clone());
        let settings = self.header_settings(scope, &origin);
        let settings = settings.into_iter().chain(self.route_log(scope)).collect();
        Route { rules, settings, ..Route::new(prefix, &origin) }
    }

    /// The folder of a route must be there at a start, nginx's need not: where it is not, its files are looked for from the
    /// folder of `root`.
    pub(super) fn mend_folders(&mut self, routes: &mut [Route]) {
        for route in routes.iter_mut().filter(|route| route.alone.is_none()) {
            let (Some(folder), false) = (route.files.clone(), route.prefix.is_empty()) else {
                continue;
            };
            let above = folder.to_str().and_then(|it| it.strip_suffix(route.prefix.as_str()));
            let above =
                above.map(|above| PathBuf::from(if above.is_empty() { "/" } else { above }));
            let is_missing = |above: &PathBuf| {
                !self.surroundings.is_there(&folder) && self.surroundings.is_there(above)
            };
            let is_rewritten = route.rules.iter().any(|rule| !rule.is_redirect());
            let Some(above) = above.filter(is_missing).filter(|_| !is_rewritten) else { continue };
            let message = format!("{} is not there", folder.display());
            let help = "its files are looked for from the folder above, in which they may appear";
            self.output.warn(&route.origin, message, help);
            route.files = Some(above);
            route.look_from(&route.prefix.clone());
        }
    }

    /// nginx goes on from a folder to its index, and from there where a rule leads. A page stays an index all the same where clients
    /// are led to another name of it; a program does not. An index behind one that goes would answer where that is there, so it goes, too.
    /// A folder that has lost its index is not listed.
    pub(super) fn mend_indexes(&mut self, routes: &mut [Route]) {
        for route in routes.iter_mut().filter(|it| it.files.is_some() && it.alone.is_none()) {
            let is_led = |name: &String| {
                let is_page = [".html", ".htm"].iter().any(|it| name.ends_with(it));
                let is_renamed = |rule: &Rule| rule.is_redirect() && rule.to.contains('{');
                let may_lead = |rule: &&Rule| !(is_page && is_renamed(rule));
                route
                    .rules
                    .iter()
                    .filter(may_lead)
                    .any(|rule| leads_from_index(rule, &route.prefix, name))
            };
            let indexes = route.indexes();
            let Some(at) = indexes.iter().position(is_led) else { continue };
            let (left, gone) = indexes.split_at(at);
            let gone = gone.join(", ");
            let message = format!("no folder is answered by {gone}: a rule leads away from it");
            let help = "nginx follows that rule from the folder, too, and looks for no index behind one that is there; leave a name that no folder has out of `index`";
            self.output.lose(&route.origin, message, help);
            route.settings.retain(|(key, ..)| !["index", "listing"].contains(key));
            let left = list(left.iter().map(String::as_str));
            route.settings.push(("index", left, route.origin.clone()));
        }
    }

    /// Where a folder's index is another route's, nginx asks that one, and shows no list of the folder.
    pub(super) fn mend_lists(&mut self, routes: &mut [Route]) {
        let prefixes: Vec<String> = routes.iter().map(|route| route.prefix.clone()).collect();
        for route in routes.iter_mut() {
            let Some(at) = route.settings.iter().position(|(key, ..)| *key == "listing") else {
                continue;
            };
            let is_foreign = |prefix: &&String| {
                let below = prefix.strip_prefix(route.prefix.as_str());
                let name =
                    below.filter(|it| it.starts_with('/')).and_then(|it| it.rsplit('/').next());
                name.is_some_and(|name| route.has_index(name))
            };
            let Some(other) = prefixes.iter().find(is_foreign) else { continue };
            let message = format!(
                "folders below {}/ are not listed: {other} is a place of its own",
                route.prefix
            );
            let (.., origin) = route.settings.remove(at);
            self.output.lose(
                &origin,
                message,
                "a folder without an index of its own route gets 403",
            );
        }
    }

    /// A fallback is a file of its own route.
    pub(super) fn mend_fallbacks(&mut self, routes: &mut [Route]) {
        let prefixes: Vec<String> = routes.iter().map(|route| route.prefix.clone()).collect();
        for route in routes.iter_mut() {
            let Some(at) = route.settings.iter().position(|(key, ..)| *key == "fallback") else {
                continue;
            };
            let Some((_, value, origin)) = route.settings.get(at).cloned() else { continue };
            let path = format!("{}{}", route.prefix, value.trim_matches('"'));
            let is_below = |prefix: &&String| {
                prefix.len() > route.prefix.len()
                    && path
                        .strip_prefix(prefix.as_str())
                        .is_some_and(|it| it.is_empty() || it.starts_with('/'))
            };
            let is_moved = |rule: &Rule| rule.from.as_ref().is_none_or(|from| fits(from, &path));
            if prefixes.iter().any(|prefix| is_below(&prefix)) || route.rules.iter().any(is_moved) {
                route.settings.retain(|(key, ..)| !OF_FALLBACK.contains(key));
                let message = format!("{path} answers for nothing else: another location has it");
                self.output.warn(&origin, message, "what is not there gets 404");
            }
        }
    }
}

/// Whether a rule is for an index of this name and not for its folder.
fn leads_from_index(rule: &Rule, prefix: &str, name: &str) -> bool {
    let Some(from) = &rule.from else { return false };
    // That of one path is for its folder, too.
    if rule.is_redirect() && !from.contains('*') {
        return false;
    }
    let beginning = rule.beginning().rsplit_once('/').map_or("", |(folder, _)| folder);
    [prefix, beginning].iter().any(|folder| {
        let folder = format!("{folder}/");
        !fits(from, &folder) && fits(from, &format!("{folder}{name}"))
    })
}

/// The same patterns for what begins with a path; nothing where no pattern says that.
fn below(path: &str, patterns: &[String]) -> Option<Vec<String>> {
    if patterns.is_empty() {
        return Some(vec![format!("{path}**")]);
    }
    let one = |pattern: &String| match pattern.strip_prefix("/**") {
        _ if pattern.starts_with(path) => Some(pattern.clone()),
        Some(rest) => Some(format!("{path}**{rest}")),
        None => None,
    };
    patterns.iter().map(one).collect()
}

/// Why a rule does not do on a route what it did in nginx.
fn hindrance(route: &Route, rule: &Rule, routes: &[Route]) -> Option<&'static str> {
    if rule.is_redirect() {
        return (rule.from.is_none() && rule.leads_below(&route.prefix)).then_some(CIRCLES);
    }
    if route.backend.is_some() && rule.changes_query() {
        return Some(QUERY);
    }
    let home = rule.target().and_then(|target| nearest(routes, target));
    let is_home = home.is_some_and(|home| home.prefix == route.prefix);
    (!is_home || !rule.leads_below(&route.prefix)).then_some(OUTSIDE)
}

/// The numbers of the routes with paths that a rule is for.
fn concerned(rule: &Rule, routes: &[Route]) -> Vec<usize> {
    let beginning = rule.beginning();
    let folder = beginning.rsplit_once('/').map_or("", |(folder, _)| folder);
    let of = |path: &str| nearest(routes, path).map(|route| route.prefix.clone());
    let own = [of(beginning.trim_end_matches('/')), of(folder)];
    let is_exact = rule.from.as_deref() == Some(beginning);
    let is_concerned = |route: &Route| {
        let is_own = match is_exact {
            true => own.first().is_some_and(|it| it.as_ref() == Some(&route.prefix)),
            false => own.iter().any(|it| it.as_ref() == Some(&route.prefix)),
        };
        is_own || !is_exact && route.prefix.starts_with(beginning)
    };
    let all = routes.iter().enumerate().filter(|(_, route)| !route.is_closed);
    all.filter(|(_, route)| is_concerned(route)).map(|(number, _)| number).collect()
}

/// The directive that a rule was made of.
pub(super) fn written<'t>(
    scope: &Scope<'t>,
    rule: &Rule,
) -> Option<&'t crate::nginx::syntax::Directive> {
    scope.own().iter().find(|directive| directive.origin == rule.origin)
}

fn unsaid(directive: &crate::nginx::syntax::Directive) -> Shut<'_> {
    Shut { directive, why: UNSAID }
}

const UNSAID: &str = "`redirect` and `rewrite` of a route have patterns of `*`, `**` and `?`, and no variables but `{path}`, \
                      `{host}` and `{1}`";
const CIRCLES: &str = "it leads to a path of the same place, and clients would go round in circles";
pub(super) const QUERY: &str = "a backend is asked for the query that the client asks for";
const OUTSIDE: &str = "`rewrite` of a route looks for another file of the same route";
