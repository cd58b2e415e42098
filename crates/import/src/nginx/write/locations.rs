//! The locations of a server: which of them become routes, and what of them is left out.

use std::io;
use std::path::Path;

use kettle_config::Position;

use super::Writer;
use super::route::{Cached, Common, Route, Setting, nearest, spoken};
use super::settings::{OF_ROUTES, OF_SITES, ROUTE_ABOVE};
use crate::nginx::expression::{file_patterns, is_of_dotfiles, is_of_well_known};
use crate::nginx::location::{self, Location, LocationKind, Shut};
use crate::nginx::redirect::{self, Rule};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

impl Writer<'_> {
    /// The routes of a server, or nothing where one of its places must not be served and cannot be left out.
    pub(super) fn routes(&mut self, server: &Scope<'_>) -> Option<Vec<Route>> {
        let mut locations = location::all(server);
        self.tell_of_dead(server);
        self.open_well_known(&mut locations);
        locations.sort_by_key(|location| match location.kind {
            // Inner expressions come before outer ones, and beside each other the first decides.
            LocationKind::Pattern => (usize::MAX - location.scope.depth(), Position::default()),
            _ => (location.path.len(), location.directive.origin.at),
        });
        let is_dotted =
            |it: &&Location<'_>| it.kind == LocationKind::Pattern && is_of_dotfiles(&it.path);
        let dotted = locations.iter().filter(is_dotted);
        let hidden: Vec<_> = dotted.filter_map(|it| Some((it, self.shut(&it.scope)?))).collect();
        let what = "what no location is for";
        let rules = self.rules_of(server, "");
        let rules = rules.map_err(|shut| self.refuse(&shut, what)).ok()?;
        if redirect::lead_away(&rules) {
            return Some(vec![self.redirecting(server, "", rules)]);
        }
        let cached = self.patterns(&locations)?;
        let ruling =
            locations.iter().filter(|it| it.kind == LocationKind::Pattern && it.has_rules());
        let ruling = ruling.map(|it| it.scope.around()).collect();
        let mut common = Common { cached, has_no_dotfiles: !hidden.is_empty(), rules, ruling };
        let whole = locations.iter().any(|it| it.kind == LocationKind::Prefix && it.path == "/");
        let mut routes: Vec<Route> = Vec::new();
        if !whole {
            match self.shut(server) {
                Some(shut) => self.leave_out(&shut, what, false),
                None if !has_root(server) => self.tell_of_no_root(server, what),
                None => routes.push(self.route(server, "", server.own(), &common)?),
            }
        }
        let all = hidden.iter().map(|(it, _)| it).find(|it| is_of_well_known(&it.path));
        let hides_all = all.is_some();
        let is_open = |it: &Location<'_>| !it.yields && it.path.trim_end_matches('/') == WELL_KNOWN;
        let mut well_known = all.filter(|_| !locations.iter().any(is_open)).map(|it| it.directive);
        for location in locations.iter().filter(|location| location.kind == LocationKind::Prefix) {
            if location.path.starts_with(WELL_KNOWN) {
                self.close_well_known(&mut well_known, &mut routes);
            }
            let is_hidden = location.yields && has_hidden_name(&location.path, hides_all);
            match hidden.first().filter(|_| is_hidden) {
                Some((_, shut)) => {
                    let what = format!("`location {}`", location.path);
                    self.close(location, &mut routes, shut, &what)?;
                }
                None => self.prefix(location, &mut routes, &mut common)?,
            }
        }
        self.close_well_known(&mut well_known, &mut routes);
        self.exact(&locations, &mut routes, &mut common)?;
        // A location for one path comes before one for an expression, and behind what the server says.
        let before = common.rules.len();
        self.expressions(&locations, &routes, &mut common)?;
        self.spread(common.rules, before, &mut routes)?;
        self.mend_fallbacks(&mut routes);
        Some(routes)
    }

    /// A location for all paths that begin so.
    fn prefix(
        &mut self,
        location: &Location<'_>,
        routes: &mut Vec<Route>,
        common: &mut Common<'_>,
    ) -> Option<()> {
        let prefix = location.path.trim_end_matches('/');
        let what = format!("`location {}`", location.path);
        let mut own = location.directive.inner().iter();
        if let Some(directive) = own.find(|directive| directive.name == "proxy_pass") {
            return self.pass(location, directive, routes, &what);
        }
        if let Some(shut) = self.shut(&location.scope) {
            return self.close(location, routes, &shut, &what);
        }
        let above = nearest(routes, prefix);
        let rules = match self.rules_below(location, prefix, above) {
            Ok(rules) => rules,
            Err(shut) => return self.close(location, routes, &shut, &what),
        };
        if let Some(twin) = routes.iter().find(|route| route.prefix == prefix) {
            let own_root = location.directive.inner().iter().find(|it| is_own_root(it));
            let elsewhere = own_root.filter(|_| twin.files.is_some());
            let elsewhere = elsewhere.map(|directive| Shut { directive, why: ELSEWHERE });
            if let Some(shut) = self.stricter(location, twin).or(elsewhere) {
                return self.close(location, routes, &shut, &what);
            }
            self.tell_of_prefix(location);
            return Some(());
        }
        if let Some(above) = above
            && let Some(shut) = self.spills(location, above, &rules)
        {
            self.refuse(&shut, &what);
            return None;
        }
        if redirect::lead_away(&rules) {
            let route = self.redirecting(&location.scope, prefix, rules);
            routes.push(route);
            return Some(());
        }
        if let Some(rule) = rules.first().filter(|it| it.leads_out_of(prefix)) {
            common.rules.push(rule.clone());
            return Some(());
        }
        if !has_root(&location.scope) {
            let shut = Shut { directive: location.directive, why: NO_ROOT };
            return self.close(location, routes, &shut, &what);
        }
        let own = location.directive.inner();
        self.tell(own);
        self.tell_of_lost(&location.scope, &["error_page"], OF_SITES);
        let mut route = self.route(&location.scope, prefix, own, common)?;
        route.rules = rules;
        let above = nearest(routes, prefix);
        let is_ruled = common.ruling.iter().all(|block| location.scope.yields_to(block));
        if is_ruled && above.is_some_and(|above| above.says_the_same(&route)) {
            return Some(());
        }
        self.tell_of_names(location);
        // Routes have folders.
        let is_named = !location.path.ends_with('/');
        let files = route.files.as_deref().filter(|_| is_named);
        let files = files.filter(|files| self.surroundings.is_file(files));
        if files.is_some()
            && let Some((folder, file)) = self.file_alone(location)
        {
            let alone = Some(format!("/{file}"));
            route = self.alone(location, Route { files: Some(folder), alone, ..route }, above);
        }
        routes.push(route);
        Some(())
    }

    /// A location whose requests are passed on.
    fn pass(
        &mut self,
        location: &Location<'_>,
        directive: &Directive,
        routes: &mut Vec<Route>,
        what: &str,
    ) -> Option<()> {
        let route = match self.passed(location, directive) {
            Ok(route) => route,
            Err(shut) => return self.close(location, routes, &shut, what),
        };
        let above = nearest(routes, &route.prefix).filter(|above| !above.is_closed);
        let spills = above.is_some_and(|above| {
            let is_looser = above.files.is_some() || self.stricter(location, above).is_some();
            above.prefix != route.prefix && is_looser && self.has_neighbours(above, location)
        });
        let shut = Shut { directive, why: WHOLE_NAMES };
        if spills {
            self.refuse(&shut, what);
            return None;
        }
        match routes.iter().find(|twin| twin.prefix == route.prefix) {
            Some(twin) if twin.is_closed => self.tell_of_prefix(location),
            Some(_) => return self.close(location, routes, &shut, what),
            None => {
                self.tell_of_names(location);
                routes.push(route);
            }
        }
        Some(())
    }

    fn tell_of_dead(&mut self, server: &Scope<'_>) {
        for (directive, other) in location::dead(server) {
            let (message, other) = (format!("`{}` is left out", spoken(directive)), spoken(other));
            let help = format!("its requests come to `{other}`, which is not around it");
            self.draft.warn(&directive.origin, message, &help);
        }
    }

    fn tell_of_prefix(&mut self, location: &Location<'_>) {
        let message = format!("`location {}` is not carried over", location.path);
        let help = "another route has its prefix, but for the slash";
        self.draft.warn(&location.directive.origin, message, help);
    }

    fn tell_of_names(&mut self, location: &Location<'_>) {
        if !location.path.ends_with('/') {
            let message = format!("`location {0}` is for {0}x, too", location.path);
            let help = "a prefix of kettle stands for whole names between slashes";
            self.draft.warn(&location.directive.origin, message, help);
        }
    }

    /// Leaves a location out, and what would be served there without it.
    pub(super) fn close(
        &mut self,
        location: &Location<'_>,
        routes: &mut Vec<Route>,
        shut: &Shut<'_>,
        what: &str,
    ) -> Option<()> {
        let prefix = location.path.trim_end_matches('/');
        let above = nearest(routes, prefix).filter(|above| !above.is_closed);
        // A route is for whole names, and for what lies below them.
        if let Some(above) = above.filter(|above| self.has_neighbours(above, location)) {
            let is_passed = above.backend.is_some();
            let serve = if is_passed { "be passed on" } else { "be served as files" };
            self.refuse_to(serve, shut, what);
            return None;
        }
        if location.kind == LocationKind::Exact {
            self.tell_of_below(location, above);
        }
        let is_served = above.is_some();
        self.leave_out(shut, what, is_served);
        // What another location of this prefix has closed stays so.
        if is_served {
            routes.retain(|route| route.prefix != prefix);
            let is_closed = true;
            let settings = self.route_log(&location.scope).into_iter().collect();
            let route = Route::new(prefix, &location.directive.origin);
            routes.push(Route { is_closed, settings, ..route });
        }
        Some(())
    }

    pub(super) fn leave_out(&mut self, shut: &Shut<'_>, what: &str, is_refused: bool) {
        let message = format!("{what} is left out because of `{}`", spoken(shut.directive));
        let refused = if is_refused { "; who asks for it gets 403" } else { "" };
        let help = format!("{}{refused}", shut.why);
        self.draft.warn(&shut.directive.origin, message, &help);
    }

    fn tell_of_no_root(&mut self, scope: &Scope<'_>, what: &str) {
        if let Some(first) = scope.own().first() {
            let message = format!("{what} gets 404, because no root is named");
            self.draft.warn(&first.origin, message, NO_ROOT);
        }
    }

    pub(super) fn refuse(&mut self, shut: &Shut<'_>, what: &str) {
        self.refuse_to("be served as files", shut, what);
    }

    pub(super) fn refuse_to(&mut self, serve: &str, shut: &Shut<'_>, what: &str) {
        let cause = spoken(shut.directive);
        let message =
            format!("the server is left out: {what} must not {serve} because of `{cause}`");
        self.draft.warn(&shut.directive.origin, message, shut.why);
    }

    /// Whether a location without a slash at its end is for more that lies there than its own name.
    fn has_neighbours(&self, above: &Route, location: &Location<'_>) -> bool {
        if above.backend.is_some() {
            return match location.kind {
                LocationKind::Exact => location.path.trim_end_matches('/') == above.prefix,
                kind => kind == LocationKind::Prefix && !location.path.ends_with('/'),
            };
        }
        let Some(file) = above.file(&location.path) else { return false };
        if location.kind == LocationKind::Exact {
            // Of a folder only its index is meant.
            return location.path.ends_with('/') && self.surroundings.is_there(&file);
        }
        if location.path.ends_with('/') {
            return false;
        }
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return true };
        let name = name.to_string_lossy().into_owned();
        match self.surroundings.names_in(folder) {
            Ok(names) => names.iter().any(|other| other.starts_with(&name) && *other != name),
            // What nobody could look at may hold some.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// What a location does that no route does to all that lies there: nginx compares beginnings, and routes whole names.
    fn spills<'t>(
        &self,
        location: &Location<'t>,
        above: &Route,
        rules: &[Rule],
    ) -> Option<Shut<'t>> {
        if above.is_closed || !self.has_neighbours(above, location) {
            return None;
        }
        let is_moved = !rules.is_empty();
        let moved = is_moved.then_some(Shut { directive: location.directive, why: WHOLE_NAMES });
        let stricter = self.stricter(location, above).or_else(|| self.leads_off(location, above));
        stricter.map(|shut| Shut { why: WHOLE_NAMES, ..shut }).or(moved)
    }

    /// What says that all that begins like a location lies elsewhere than where the route above looks for it.
    fn leads_off<'t>(&self, location: &Location<'t>, above: &Route) -> Option<Shut<'t>> {
        let own = location.directive.inner().iter().find(|it| is_own_root(it))?;
        let looked = above.file(&location.path)?;
        let path = Path::new(own.word(0));
        let file = match own.name.as_str() {
            "root" => self.prefix.join(path).join(location.path.trim_start_matches('/')),
            _ => self.prefix.join(path),
        };
        let is_same = file == looked && (own.name == "root" || !own.word(0).ends_with('/'));
        (!is_same).then_some(Shut { directive: own, why: WHOLE_NAMES })
    }

    /// `cache_control` by pattern, as locations for one path and for regular expressions say; nothing where one of these
    /// guards files.
    fn patterns<'t>(&mut self, locations: &[Location<'t>]) -> Option<Vec<Cached<'t>>> {
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
            if let Some(shut) = self.shut(&location.scope) {
                if is_of_dotfiles(&location.path) {
                    continue;
                }
                self.refuse(&shut, &format!("`{what}`"));
                return None;
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
                        self.draft.warn(origin, message, BOTH_CASES);
                    }
                    cached.extend(patterns.into_iter().map(|pattern| Cached {
                        pattern,
                        control: control.clone(),
                        block: Some(block),
                    }));
                }
                _ if location.has_rules() => {}
                _ => self.draft.warn(
                    origin,
                    format!("`{what}` is not carried over"),
                    "routes are chosen by prefix; its files answer by the route that they are below",
                ),
            }
        }
        Some(cached)
    }

    /// What a location says of who may ask that its route does not say.
    pub(super) fn stricter<'t>(&self, location: &Location<'t>, above: &Route) -> Option<Shut<'t>> {
        let access = self.access(&location.scope).ok()?;
        let same = |one: &Setting, other: &Setting| (one.0, &one.1) == (other.0, &other.1);
        let is_said = access.iter().all(|one| above.access.iter().any(|other| same(one, other)));
        if is_said || above.is_closed {
            return None;
        }
        let names = ["allow", "deny", "auth_basic"];
        let directive = names.iter().find_map(|name| location.scope.find(name))?;
        Some(Shut { directive, why: "who may ask is a matter of a whole route" })
    }

    /// What locations for regular expressions say of who may ask, and where they send clients.
    fn expressions(
        &mut self,
        locations: &[Location<'_>],
        routes: &[Route],
        common: &mut Common<'_>,
    ) -> Option<()> {
        let patterns = locations.iter().filter(|location| location.kind == LocationKind::Pattern);
        let is_passed = routes.iter().any(|route| route.backend.is_some());
        for location in patterns {
            if let Some(shut) = self.shut(&location.scope) {
                if is_passed {
                    let message = format!("`{}` is for files only", spoken(location.directive));
                    let help = "what a backend is asked for may have names with a dot";
                    self.draft.warn(&shut.directive.origin, message, help);
                }
                continue;
            }
            let what = format!("`{}`", spoken(location.directive));
            // A location for one path comes before one for an expression.
            let is_serving = |route: &&Route| {
                route.alone.is_none() && (route.files.is_some() || route.backend.is_some())
            };
            let mut serving = routes.iter().filter(is_serving);
            let unsaid = |route| self.stricter(location, route).or(self.elsewhere(location, route));
            let stricter = serving.find_map(unsaid);
            let rules = match (stricter, self.rules_at(location)) {
                (Some(shut), _) | (None, Err(shut)) => {
                    self.refuse(&shut, &what);
                    return None;
                }
                (None, Ok(rules)) => rules,
            };
            if is_passed && rules.is_empty() {
                let message = format!("{what} is for files only");
                let help = "where a route has a backend, that is asked for them";
                self.draft.warn(&location.directive.origin, message, help);
            }
            if !rules.is_empty() {
                self.tell_of_lost(&location.scope, &OF_ROUTES, ROUTE_ABOVE);
            }
            if location.ignores_case && !rules.is_empty() {
                let message = format!("{what} is for other cases of its letters as well");
                self.draft.warn(&location.directive.origin, message, ONE_CASE);
            }
            if rules.is_empty() {
                self.tell_of_fallback(location, routes, &what);
            }
            let block = location.scope.around();
            let spared = locations
                .iter()
                .filter(|it| it.kind == LocationKind::Prefix && !it.scope.yields_to(block))
                .map(|it| it.path.trim_end_matches('/').to_owned());
            let spared: Vec<String> = spared.collect();
            let spare = |rule| Rule { spared: spared.clone(), ..rule };
            common.rules.extend(rules.into_iter().map(spare));
        }
        Some(())
    }

    /// Says that what is missing gets a route's fallback, where `try_files` of another location was not for it.
    fn tell_of_fallback(&mut self, location: &Location<'_>, routes: &[Route], what: &str) {
        let own = location.directive.inner().iter().find(|it| it.name == "try_files");
        let falls_back = own.and_then(|it| it.words.last()).is_some_and(|it| it.starts_with('/'));
        let of =
            |route: &Route| route.settings.iter().find(|(key, ..)| *key == "fallback").cloned();
        if let Some((_, fallback, _)) = routes.iter().find_map(of).filter(|_| !falls_back) {
            let message = format!("what {what} is for and is not there gets {fallback}, not 404");
            let help = "`fallback` is for all paths of its route";
            self.draft.warn(&location.directive.origin, message, help);
        }
    }
}

/// Whether a path lies below a name with a dot that `dotfiles` hides no more, since it is the route's own.
fn has_hidden_name(path: &str, hides_all: bool) -> bool {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    names.any(|name| name.starts_with('.') && (hides_all || format!("/{name}") != WELL_KNOWN))
}

/// nginx has a folder of its own where nobody names one.
pub(super) fn has_root(scope: &Scope<'_>) -> bool {
    !scope.any_of(&["root", "alias"]).is_empty()
}

/// Whether a place's files lie elsewhere.
pub(super) fn is_own_root(directive: &Directive) -> bool {
    ["root", "alias"].contains(&directive.name.as_str())
}

pub(super) const WELL_KNOWN: &str = "/.well-known";
pub(super) const ELSEWHERE: &str = "files lie where `root` of their route says";
pub(super) const NO_ROOT: &str =
    "nginx would look into the folder `html` that it was installed with";
const WHOLE_NAMES: &str = "what it says is for all names that begin so, some of them are there, and a prefix of kettle stands \
                           for whole names between slashes";
const BOTH_CASES: &str =
    "patterns of kettle tell letters' cases apart; all small and all large ones are written";
const ONE_CASE: &str =
    "patterns of kettle tell letters' cases apart; write one for each that is asked for";
