//! The locations of a server: which of them become routes, and what of them is left out.

use std::path::Path;

use kettle_config::Position;

use super::Writer;
use super::guard::unguarded;
use super::route::{Common, Denied, Route, Setting, nearest, nearest_mut, spoken};
use super::settings::{OF_SITES, laxer_files};
use crate::nginx::denied::no_less_than;
use crate::nginx::location::{self, Location, LocationKind, Shut};
use crate::nginx::redirect::{self, Rule, exactly};
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
        let what = "what no location is for";
        let rules = self.rules_of(server, "");
        let rules = rules.map_err(|shut| self.refuse(&shut, what)).ok()?;
        if redirect::lead_away(&rules) {
            return Some(vec![self.redirecting(server, "", rules)]);
        }
        let mut denied = Vec::new();
        let cached = self.patterns(&locations, &mut denied)?;
        let ruling =
            locations.iter().filter(|it| it.kind == LocationKind::Pattern && it.has_rules());
        let ruling = ruling.map(|it| it.scope.around());
        let ruling = ruling.chain(denied.iter().map(|it| it.block)).collect();
        let mut common = Common { cached, denied, rules, yielding: Vec::new(), ruling };
        let whole = locations.iter().any(|it| it.kind == LocationKind::Prefix && it.path == "/");
        let mut routes: Vec<Route> = Vec::new();
        if !whole {
            match self.shut(server) {
                Some(shut) => self.leave_out(&shut, what, false),
                None if !has_root(server) => self.tell_of_no_root(server, what),
                None => routes.push(self.route(server, "", server.own(), &common)?),
            }
        }
        for location in locations.iter().filter(|location| location.kind == LocationKind::Prefix) {
            self.prefix(location, &locations, &mut routes, &mut common)?;
        }
        self.exact(&locations, &mut routes, &mut common)?;
        // A location for one path comes before one for an expression, and behind what the server says.
        let before = common.rules.len();
        self.expressions(&locations, &mut routes, &mut common)?;
        self.spread(common.rules, before, &mut routes)?;
        self.deny(common.denied, server, &locations, &mut routes)?;
        self.mend_fallbacks(&mut routes);
        self.mend_lists(&mut routes);
        self.mend_indexes(&mut routes);
        self.mend_folders(&mut routes);
        Some(routes)
    }

    /// A location for all paths that begin so.
    fn prefix(
        &mut self,
        location: &Location<'_>,
        locations: &[Location<'_>],
        routes: &mut Vec<Route>,
        common: &mut Common<'_>,
    ) -> Option<()> {
        let prefix = location.path.trim_end_matches('/');
        let what = format!("`location {}`", location.path);
        let mut own = location.directive.inner().iter();
        if let Some(directive) = own.find(|directive| directive.name == "proxy_pass") {
            return self.pass(location, directive, routes, &what);
        }
        if let Some(shut) = self.shut(&location.scope).or_else(|| glued(location)) {
            return self.close(location, routes, &shut, &what);
        }
        let above = nearest(routes, prefix);
        let rules = match self.rules_below(location, prefix, above) {
            Ok(rules) => rules,
            Err(shut) => return self.close(location, routes, &shut, &what),
        };
        if let Some(twin) = routes.iter().find(|route| route.prefix == prefix) {
            if let Some(shut) = self.unlike(location, twin, &rules, common)? {
                return self.close(location, routes, &shut, &what);
            }
            self.tell_of_prefix(location);
            return Some(());
        }
        let spilled =
            above.and_then(|it| self.spills(location, it, &rules, locations, &common.denied));
        spilled.map_or(Some(()), |shut| self.deny_neighbours(location, routes, &shut, &what))?;
        let folder = location.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let falls_back = !location.path.ends_with('/') && exactly(&location.path).is_some();
        if let Some(above) = nearest_mut(routes, folder).filter(|_| falls_back) {
            above.except(&[format!("{}**", location.path)]);
        }
        if redirect::lead_away(&rules) {
            let route = self.redirecting(&location.scope, prefix, rules);
            routes.push(route);
            return Some(());
        }
        if let Some(rule) = rules.first().filter(|it| it.leads_out_of(prefix)) {
            common.rules.push(rule.clone());
            common.yielding.extend(location.yields.then(|| rule.clone()));
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
        let is_ruled = common.ruling.iter().all(|block| location.scope.yields_to(block))
            && !common.denied.iter().any(|it| location.scope.has_within_server(it.block));
        let is_same = |above: &Route| above.says_the_same(&route);
        let is_met_alike =
            |above: &Route| !location::is_met_by_more(location, &above.prefix, locations);
        let is_said = above.is_some_and(|above| is_same(above) && is_met_alike(above));
        if is_ruled && is_said && spilled.is_none() {
            return Some(());
        }
        self.tell_of_names(location);
        // Routes have folders.
        let is_named = !location.path.ends_with('/') && exactly(&location.path).is_some();
        let files = route.files.as_deref().filter(|_| is_named);
        let files = files.filter(|files| self.surroundings.is_file(files));
        if files.is_some()
            && let Some((folder, file)) = self.file_alone(location)
        {
            let alone = Some(format!("/{file}"));
            route = Self::alone(location, Route { files: Some(folder), alone, ..route });
        }
        routes.push(route);
        Some(())
    }

    /// What a location says otherwise than one of the same prefix but for the slash, of which only one can be a route; nothing
    /// at all where its server is left out.
    fn unlike<'t>(
        &mut self,
        location: &Location<'t>,
        twin: &Route,
        rules: &[Rule],
        common: &Common<'_>,
    ) -> Option<Option<Shut<'t>>> {
        if twin.is_closed {
            return Some(None);
        }
        let own = location.directive.inner();
        let other = Some(Shut { directive: location.directive, why: ONE_PREFIX });
        if let Some(directive) = own.iter().find(|it| is_own_root(it)) {
            return Some(Some(Shut { directive, why: ELSEWHERE }));
        }
        let stricter = self.stricter(location, twin);
        if stricter.is_some() || !has_root(&location.scope) || twin.files.is_none() {
            return Some(stricter.or(other));
        }
        let mut route = self.route(&location.scope, &twin.prefix, own, common)?;
        route.rules = rules.to_vec();
        Some(unguarded(location).or(other.filter(|_| !twin.finds_the_same(&route))))
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
            self.deny_neighbours(location, routes, &shut, what)?;
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
            self.output.warn(&directive.origin, message, &help);
        }
    }

    fn tell_of_prefix(&mut self, location: &Location<'_>) {
        let message = format!("`location {}` is not carried over", location.path);
        let help = "another route has its prefix, but for the slash";
        self.output.warn(&location.directive.origin, message, help);
    }

    fn tell_of_names(&mut self, location: &Location<'_>) {
        if !location.path.ends_with('/') {
            let message = format!("`location {0}` is for {0}x, too", location.path);
            let help = "a prefix of kettle stands for whole names between slashes";
            self.output.warn(&location.directive.origin, message, help);
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
        if above.is_some_and(|above| self.has_neighbours(above, location)) {
            if location.kind == LocationKind::Exact {
                return self.deny_path(location, routes, shut, what);
            }
            self.deny_neighbours(location, routes, shut, what)?;
        }
        let above = nearest(routes, prefix).filter(|above| !above.is_closed);
        if location.kind == LocationKind::Exact {
            self.tell_of_below(location, above);
        }
        if location.kind == LocationKind::Prefix {
            self.tell_of_names(location);
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

    /// Refuses one path where no route is for it alone.
    pub(super) fn deny_path(
        &mut self,
        location: &Location<'_>,
        routes: &mut [Route],
        shut: &Shut<'_>,
        what: &str,
    ) -> Option<()> {
        let above = nearest_mut(routes, location.path.trim_end_matches('/'));
        if let Some(above) = above.filter(|_| exactly(&location.path).is_some()) {
            above.deny(location.path.clone());
            self.leave_out(shut, what, true);
            return Some(());
        }
        self.refuse(shut, what);
        None
    }

    /// Refuses the names that begin like a location and go on: nginx compares beginnings, and routes whole names.
    fn deny_neighbours(
        &mut self,
        location: &Location<'_>,
        routes: &mut [Route],
        shut: &Shut<'_>,
        what: &str,
    ) -> Option<()> {
        let path = &location.path;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let above = nearest_mut(routes, folder).filter(|_| path.starts_with('/'));
        let Some(above) = above else {
            self.refuse(shut, what);
            return None;
        };
        above.deny(format!("{}**", no_less_than(path)));
        let message = format!("names that begin with {path} and go on get 403");
        self.output.lose(&location.directive.origin, message, WHOLE_NAMES);
        Some(())
    }

    pub(super) fn leave_out(&mut self, shut: &Shut<'_>, what: &str, is_refused: bool) {
        let message = format!("{what} is left out because of `{}`", spoken(shut.directive));
        let refused = if is_refused { "; who asks for it gets 403" } else { "" };
        let help = format!("{}{refused}", shut.why);
        let origin = &shut.directive.origin;
        if shut.is_of_nginx() {
            return self.output.warn(origin, message, &help);
        }
        self.closed += 1;
        match shut.why {
            location::NAMED => self.output.fail(origin, message, &help),
            _ => self.output.lose(origin, message, &help),
        }
    }

    fn tell_of_no_root(&mut self, scope: &Scope<'_>, what: &str) {
        if let Some(first) = scope.own().first() {
            let message = format!("{what} gets 404, because no root is named");
            self.output.warn(&first.origin, message, NO_ROOT);
        }
    }

    pub(super) fn refuse(&mut self, shut: &Shut<'_>, what: &str) {
        self.refuse_to("be served as files", shut, what);
    }

    pub(super) fn refuse_to(&mut self, serve: &str, shut: &Shut<'_>, what: &str) {
        let cause = spoken(shut.directive);
        let message =
            format!("the server is left out: {what} must not {serve} because of `{cause}`");
        self.output.lose(&shut.directive.origin, message, shut.why);
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
        // There may be some later.
        !location.path.ends_with('/')
    }

    /// What a location does that no route does to all that lies there: nginx compares beginnings, and routes whole names.
    fn spills<'t>(
        &self,
        location: &Location<'t>,
        above: &Route,
        rules: &[Rule],
        locations: &[Location<'t>],
        denied: &[Denied<'_>],
    ) -> Option<Shut<'t>> {
        if above.is_closed || !self.has_neighbours(above, location) {
            return None;
        }
        let is_moved = above.rules != rules;
        let moved = is_moved.then_some(Shut { directive: location.directive, why: WHOLE_NAMES });
        let says_more = |it: &&Directive| OF_NAMES.contains(&it.name.as_str());
        let more = || location.directive.inner().iter().find(says_more);
        let stricter = self
            .stricter(location, above)
            .or_else(|| self.leads_off(location, above))
            .or_else(|| unguarded(location))
            .or_else(|| asked_for(location, above))
            .or_else(|| laxer_files(location, above))
            .or_else(|| more().map(|directive| Shut { directive, why: WHOLE_NAMES }))
            .or_else(|| self.stricter_inside(location, above, locations, denied));
        stricter.map(|shut| Shut { why: WHOLE_NAMES, ..shut }).or(moved)
    }

    /// What an expression within such a location refuses.
    fn stricter_inside<'t>(
        &self,
        location: &Location<'t>,
        above: &Route,
        locations: &[Location<'t>],
        denied: &[Denied<'_>],
    ) -> Option<Shut<'t>> {
        let inside = locations.iter().filter(|it| {
            let block = location.directive.inner();
            it.kind == LocationKind::Pattern && std::ptr::eq(it.scope.around(), block)
        });
        let says_more = |it: &&Location<'t>| {
            denied.iter().any(|denied| denied.is_of(it))
                || self.stricter(it, above).is_some()
                || laxer_files(it, above).is_some()
        };
        let directive = inside.filter(says_more).map(|it| it.directive).next()?;
        Some(Shut { directive, why: WHOLE_NAMES })
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
}

/// A location with files, or none, below a route whose backend is asked for all that is not its.
fn asked_for<'t>(location: &Location<'t>, above: &Route) -> Option<Shut<'t>> {
    let is_asked = above.backend.is_some();
    is_asked.then_some(Shut { directive: location.directive, why: WHOLE_NAMES })
}

/// An alias without a slash at its end, of a location that has one: nginx puts the rest of the path right behind it.
fn glued<'t>(location: &Location<'t>) -> Option<Shut<'t>> {
    let directive = location.scope.any_of(&["root", "alias"]).first().copied()?;
    let has_it = |it: &&Directive| it.inner().iter().any(|own| std::ptr::eq(own, directive));
    let outer = || location.scope.outwards().flatten().find(has_it);
    let own = outer().filter(|it| it.name == "location")?;
    let is_glued = directive.name == "alias"
        && !directive.word(0).ends_with('/')
        && own.words.last().is_some_and(|path| path.ends_with('/'));
    is_glued.then_some(Shut { directive, why: GLUED })
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
const GLUED: &str = "it has no slash at its end, but its location has: nginx puts the rest of the path right behind its name, and looks for \
                     other files than those in it; write the slash if these are meant";
const ONE_PREFIX: &str =
    "another location has its prefix but for the slash, and says something else";
pub(super) const ELSEWHERE: &str = "files lie where `root` of their route says";
pub(super) const NO_ROOT: &str =
    "nginx would look into the folder `html` that it was installed with";
/// What decides which files and folders answer.
const OF_NAMES: [&str; 4] = ["autoindex", "disable_symlinks", "index", "try_files"];
const WHOLE_NAMES: &str = "what it says is for all names that begin so, and a prefix of kettle stands for whole names between slashes";
