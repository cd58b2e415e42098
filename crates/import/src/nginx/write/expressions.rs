//! Locations for regular expressions: what they say of caches, where they send clients, and what they refuse.

use super::Writer;
use super::guard::unguarded;
use super::locations::WELL_KNOWN;
use super::route::{Cached, Common, Denied, OF_FALLBACK, Route, Setting, nearest, spoken};
use super::settings::{OF_ROUTES, ROUTE_ABOVE, laxer_files};
use crate::nginx::denied::{denied_patterns, folder_patterns};
use crate::nginx::expression::{file_patterns, is_of_dotfiles, is_of_well_known};
use crate::nginx::location::{Location, LocationKind, Shut, kind_of, spared_by};
use crate::nginx::redirect::{Rule, has_few_letters};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::pattern::both;

impl Writer<'_> {
    /// `cache_control` by pattern, as locations for one path and for regular expressions say, and what these refuse; nothing
    /// where no pattern says that.
    pub(super) fn patterns<'t>(
        &mut self,
        locations: &[Location<'t>],
        denied: &mut Vec<Denied<'t>>,
    ) -> Option<Vec<Cached<'t>>> {
        let mut cached = Vec::new();
        for location in locations.iter().filter(|location| location.kind == LocationKind::Exact) {
            let control = self.cache_control(&location.scope, location.directive.inner());
            if let Some(control) = control.filter(|_| self.shut(&location.scope).is_none()) {
                let pattern = location.path.clone();
                cached.push(Cached { pattern, control, block: None });
            }
        }
        for location in locations.iter().filter(|location| location.kind == LocationKind::Pattern) {
            let origin = &location.directive.origin;
            let what = spoken(location.directive);
            let is_moved = location.has_rules();
            let shut = self.shut(&location.scope);
            let shut = shut.or_else(|| unguarded(location).filter(|_| !is_moved));
            let shut = shut.or_else(|| self.rules_at(location).err());
            if let Some(shut) = shut {
                self.deny_expression(location, &shut, denied)?;
                continue;
            }
            let control = self.cache_control(&location.scope, location.directive.inner());
            let block = location.scope.around();
            let is_inside = |it: &Location<'_>| {
                it.kind == LocationKind::Pattern && std::ptr::eq(it.scope.own(), block)
            };
            // What one expression is for within what another is for, no pattern says.
            let is_plain = !locations.iter().any(is_inside);
            match (control, file_patterns(&location.path).filter(|_| is_plain)) {
                (Some(control), Some(mut patterns)) => {
                    self.tell(location.directive.inner());
                    self.tell_of_lost(&location.scope, &OF_ROUTES, ROUTE_ABOVE);
                    if location.ignores_case {
                        let upper: Vec<_> = patterns.iter().map(|it| it.to_uppercase()).collect();
                        patterns.extend(upper);
                        let message = format!("`{what}` is for `a.Css` as well");
                        self.output.warn(origin, message, BOTH_CASES);
                    }
                    cached.extend(patterns.into_iter().map(|pattern| Cached {
                        pattern,
                        control: control.clone(),
                        block: Some(block),
                    }));
                }
                _ if location.has_rules() => {}
                _ => self.output.warn(
                    origin,
                    format!("`{what}` is not carried over"),
                    "routes are chosen by prefix; its files answer by the route that they are below",
                ),
            }
        }
        Some(cached)
    }

    /// What locations for regular expressions say of who may ask, and where they send clients; nothing where a route that cannot
    /// say it cannot refuse it, either.
    pub(super) fn expressions<'t>(
        &mut self,
        locations: &[Location<'t>],
        routes: &mut [Route],
        common: &mut Common<'t>,
    ) -> Option<()> {
        let patterns = locations.iter().filter(|location| location.kind == LocationKind::Pattern);
        let is_denied = |location: &Location<'_>| common.denied.iter().any(|it| it.is_of(location));
        let mut said = Vec::new();
        for location in patterns.filter(|location| !is_denied(location)) {
            if let Ok(rules) = self.rules_at(location) {
                said.push((location, rules));
            }
        }
        // What nginx does not come to where an expression of no rules is met first.
        for number in 0..said.len() {
            let later = said.iter().skip(number + 1).flat_map(|(_, rules)| rules);
            let behind = common.yielding.iter().chain(later).filter(|rule| !rule.is_redirect());
            let behind: Vec<Rule> = behind.cloned().collect();
            let Some((location, rules)) = said.get(number).cloned() else { break };
            let what = format!("`{}`", spoken(location.directive));
            let block = block_of(location);
            let spared: Vec<String> =
                spared_by(locations, block).into_iter().map(str::to_owned).collect();
            self.deny_unsaid(location, &rules, &spared, routes, &what)?;
            if rules.is_empty() {
                self.deny_rewritten(location, &behind, &spared, routes, &what)?;
            }
            if !rules.is_empty() {
                self.tell_of_lost(&location.scope, &OF_ROUTES, ROUTE_ABOVE);
            }
            let is_cased =
                |rule: &Rule| rule.from.as_deref().is_some_and(|it| !has_few_letters(it));
            if location.ignores_case && rules.iter().any(is_cased) {
                let message = format!("{what} is for other cases of its letters as well");
                self.output.lose(&location.directive.origin, message, ONE_CASE);
            }
            if rules.is_empty() {
                self.except_from_fallback(location, &spared, routes, &what);
                self.deny_folders(location, &spared, routes, &what);
            }
            let spare = |rule| Rule { spared: spared.clone(), ..rule };
            common.rules.extend(rules.into_iter().map(spare));
        }
        Some(())
    }

    /// Refuses the paths of an expression on the routes that would answer for them in another way, or let others ask.
    fn deny_unsaid(
        &mut self,
        location: &Location<'_>,
        rules: &[Rule],
        spared: &[String],
        routes: &mut [Route],
        what: &str,
    ) -> Option<()> {
        // A location for one path comes before one for an expression.
        let is_serving = |route: &Route| {
            let is_asked = route.files.is_some() || route.backend.is_some();
            is_asked && route.alone.is_none() && !spared.contains(&route.prefix)
        };
        let directive = location.directive;
        let unsaid = |route: &Route| {
            let is_passed = route.backend.is_some() && rules.is_empty();
            let passed = is_passed.then_some(Shut { directive, why: OF_FILES });
            self.stricter(location, route)
                .or_else(|| self.elsewhere(location, route))
                .or_else(|| laxer_files(location, route).filter(|_| rules.is_empty()))
                .or(passed)
        };
        let found = routes.iter().enumerate().filter(|(_, route)| is_serving(route));
        let found: Vec<_> = found.filter_map(|(at, route)| Some((at, unsaid(route)?))).collect();
        let Some((_, first)) = found.first().copied() else { return Some(()) };
        let Some(patterns) = denied_patterns(&location.path) else {
            self.refuse(&first, what);
            return None;
        };
        self.leave_out(&first, what, true);
        for (at, _) in found {
            if let Some(route) = routes.get_mut(at) {
                patterns.iter().for_each(|pattern| route.deny(pattern.clone()));
            }
        }
        Some(())
    }

    /// Refuses the paths of an expression for which a route would look for another file, and nginx, which meets the expression first,
    /// does not: by rules of its own location, or by those `behind` the expression. Nothing where no pattern says that.
    fn deny_rewritten(
        &mut self,
        location: &Location<'_>,
        behind: &[Rule],
        spared: &[String],
        routes: &mut [Route],
        what: &str,
    ) -> Option<()> {
        let directive = location.directive;
        let patterns = denied_patterns(&location.path);
        let is_serving = |it: &&mut Route| it.alone.is_none() && !spared.contains(&it.prefix);
        for route in routes.iter_mut().filter(is_serving) {
            let is_of_route = |rule: &&Rule| {
                let beginning = rule.beginning();
                beginning.starts_with(&route.prefix) || route.prefix.starts_with(beginning)
            };
            let rules = route.rules.iter().filter(|rule| !rule.is_redirect());
            let all = || format!("{}/**", route.prefix);
            let from = |rule: &Rule| rule.from.clone().unwrap_or_else(all);
            let from: Vec<String> =
                rules.chain(behind.iter().filter(is_of_route)).map(from).collect();
            let Some(patterns) = patterns.as_ref().filter(|_| !from.is_empty()) else {
                if from.is_empty() {
                    continue;
                }
                self.refuse(&Shut { directive, why: REWRITTEN }, what);
                return None;
            };
            let patterns = patterns.iter().filter(|it| !route.denied.contains(*it));
            let met = patterns.flat_map(|one| from.iter().filter_map(|it| both(one, it)));
            let met: Vec<String> = met.collect();
            if let Some(first) = met.first() {
                let message = format!("paths that {what} is for get 403 by `{first}`");
                self.output.lose(&directive.origin, message, REWRITTEN);
            }
            met.into_iter().for_each(|pattern| route.deny(pattern));
        }
        Some(())
    }

    /// Keeps a route's fallback from what `try_files` of another location was not for.
    fn except_from_fallback(
        &mut self,
        location: &Location<'_>,
        spared: &[String],
        routes: &mut [Route],
        what: &str,
    ) {
        let is_fallback = |(key, ..): &Setting| *key == "fallback";
        let is_concerned =
            |it: &&mut Route| it.settings.iter().any(is_fallback) && !spared.contains(&it.prefix);
        let patterns = denied_patterns(&location.path);
        for route in routes.iter_mut().filter(is_concerned) {
            match &patterns {
                Some(patterns) => route.except(patterns),
                None => {
                    route.settings.retain(|(key, ..)| !OF_FALLBACK.contains(key));
                    let message = format!("what is not there gets 404 because of {what}");
                    let help = "no pattern says which paths are not for the fallback";
                    self.output.lose(&location.directive.origin, message, help);
                }
            }
        }
    }

    /// Refuses the folders of an expression on the routes that would show an index or a list for them, where nginx does not.
    fn deny_folders(
        &mut self,
        location: &Location<'_>,
        spared: &[String],
        routes: &mut [Route],
        what: &str,
    ) {
        let tries = location.directive.inner().iter().find(|it| it.name == "try_files");
        let tries = tries.filter(|it| !it.words.iter().any(|word| word == "$uri/"));
        let unlisted = location.scope.find("autoindex").filter(|it| it.word(0) == "off");
        let unlisted = unlisted.map(|directive| Shut { directive, why: UNLISTED });
        let patterns = folder_patterns(&location.path);
        for route in routes.iter_mut().filter(|it| it.files.is_some() && it.alone.is_none()) {
            let is_listed = route.settings.iter().any(|(key, ..)| *key == "listing");
            let pages = |it: &&Directive| {
                let is_page = |name: &String| it.words.contains(&format!("$uri/{name}"));
                !route.indexes().iter().all(is_page)
            };
            let tries = tries.filter(|it| is_listed || pages(it));
            let tries = tries.map(|directive| Shut { directive, why: NO_FOLDER });
            let index = location.scope.find("index");
            let is_same = match index {
                Some(index) => index.words == route.indexes(),
                None => route.indexes() == ["index.html"],
            };
            let directive = index.unwrap_or(location.directive);
            let other = (!is_same).then_some(Shut { directive, why: OTHER_INDEX });
            let shut = tries.or(unlisted.filter(|_| is_listed)).or(other);
            let Some(shut) = shut.filter(|_| !spared.contains(&route.prefix)) else { continue };
            if let Some(first) = patterns.first().filter(|it| !route.denied.contains(it)) {
                let message = format!("folders that {what} is for get 403 by `{first}`");
                self.output.lose(&shut.directive.origin, message, shut.why);
            }
            patterns.iter().for_each(|pattern| route.deny(pattern.clone()));
        }
    }

    /// Refuses what an expression is for; nothing where no pattern says that.
    fn deny_expression<'t>(
        &mut self,
        location: &Location<'t>,
        shut: &Shut<'_>,
        denied: &mut Vec<Denied<'t>>,
    ) -> Option<()> {
        let what = format!("`{}`", spoken(location.directive));
        let Some(patterns) = denied_patterns(&location.path) else {
            self.refuse(shut, &what);
            return None;
        };
        if !shut.is_of_nginx() {
            self.leave_out(shut, &what, true);
        }
        let path = &location.path;
        let spares_well_known =
            is_of_dotfiles(path) && !is_of_well_known(path) && path.contains("(?!");
        denied.push(Denied {
            patterns,
            location: location.directive,
            block: block_of(location),
            spares_well_known,
        });
        Some(())
    }

    /// Gives routes what expressions refuse of their paths; nothing where that is too much for each request.
    pub(super) fn deny(
        &mut self,
        denied: Vec<Denied<'_>>,
        server: &Scope<'_>,
        locations: &[Location<'_>],
        routes: &mut Vec<Route>,
    ) -> Option<()> {
        let prefixes = || locations.iter().filter(|it| it.kind == LocationKind::Prefix);
        let has_whole = prefixes().any(|it| it.path == "/");
        for it in denied {
            let mut spared = spared_by(locations, it.block);
            if !has_whole && !server.yields_to(it.block) {
                spared.push("");
            }
            // Where it stands in a location that says nothing else, the route around that has its paths.
            let home = prefixes().find(|own| std::ptr::eq(own.directive.inner(), it.block));
            let home = home.and_then(|own| nearest(routes, own.path.trim_end_matches('/')));
            let home = home.map(|route| route.prefix.clone());
            spared.retain(|prefix| home.as_deref() != Some(prefix));
            if it.spares_well_known && !routes.iter().any(|route| route.prefix == WELL_KNOWN) {
                routes.extend(nearest(routes, WELL_KNOWN).and_then(well_known));
            }
            for route in routes.iter_mut().filter(|it| !spared.contains(&&*it.prefix)) {
                let is_asked = route.files.is_some() || route.backend.is_some();
                if !is_asked || route.alone.is_some() {
                } else if it.spares_well_known && route.prefix == WELL_KNOWN {
                    ["/.**", "/**/.**"]
                        .iter()
                        .for_each(|end| route.deny(format!("{WELL_KNOWN}{end}")));
                } else {
                    it.patterns.iter().for_each(|pattern| route.deny(pattern.clone()));
                }
            }
        }
        let stars = |route: &Route| route.denied.iter().filter(|it| it.contains('*')).count();
        if let Some(route) = routes.iter().find(|route| stars(route) > STARRED_MAX) {
            let message = "the server is left out: its expressions refuse too much";
            self.output.lose(&route.origin, message, "write fewer of them");
            return None;
        }
        Some(())
    }
}

/// The block that an expression is for. One within another is taken for as much as that.
fn block_of<'t>(location: &Location<'t>) -> &'t [Directive] {
    let mut scope = location.scope.clone();
    let is_of_expression = |scope: &Scope<'t>| {
        scope.outer_location().is_some_and(|it| kind_of(&it.words).0 == LocationKind::Pattern)
    };
    while is_of_expression(&scope) {
        scope = scope.outer();
    }
    scope.around()
}

/// What is public by RFC 8615, as the route around it has it.
fn well_known(above: &Route) -> Option<Route> {
    let is_rewritten = above.rules.iter().any(|rule| !rule.is_redirect());
    let is_open = !above.is_closed && !is_rewritten;
    is_open.then(|| Route {
        files: above.file(WELL_KNOWN),
        backend: above.backend.clone(),
        access: above.access.clone(),
        rules: above.rules.clone(),
        settings: above
            .settings
            .iter()
            .filter(|(key, ..)| !key.starts_with("fallback"))
            .cloned()
            .collect(),
        ..Route::new(WELL_KNOWN, &above.origin)
    })
}

const NO_FOLDER: &str = "no folder answers there";
const UNLISTED: &str = "lists are a matter of a whole route";
const REWRITTEN: &str = "it comes before the location of a rewrite in nginx, and a route looks for what its rewrites lead to";
const OTHER_INDEX: &str = "an index is a matter of a whole route";
const OF_FILES: &str = "its files answer in nginx, and a backend would be asked for them";
/// As kettle has it.
const STARRED_MAX: usize = 100;
const BOTH_CASES: &str =
    "patterns of kettle tell letters' cases apart; all small and all large ones are written";
const ONE_CASE: &str = "patterns of kettle tell letters' cases apart; it is written as it was, with small and with large ones";
