//! `location = /path`: a route of its own where it says something that the route around it does not. Routes are for what lies
//! below a path as well; there such a route looks for nothing but its one path.

use std::path::PathBuf;

use super::Writer;
use super::guard::{guards_browsers, unguarded};
use super::locations::{ELSEWHERE, NO_ROOT, has_root, is_own_root};
use super::pass::kept_from_passing;
use super::route::{Common, OF_FOLDERS, Route, nearest, nearest_mut};
use super::settings::{OF_ROUTES, ROUTE_ABOVE, laxer_files};
use crate::nginx::denied::no_less_than;
use crate::nginx::location::{Location, LocationKind, Shut};
use crate::nginx::redirect::{self, Rule, exactly};

impl Writer<'_> {
    /// Locations for one path: nothing where one of them guards a file that is there.
    pub(super) fn exact(
        &mut self,
        locations: &[Location<'_>],
        routes: &mut Vec<Route>,
        common: &mut Common<'_>,
    ) -> Option<()> {
        for location in locations.iter() {
            let what = match location.kind {
                LocationKind::Exact => format!("`location = {}`", location.path),
                LocationKind::Named => format!("`location {}`", location.path),
                LocationKind::Prefix | LocationKind::Pattern => continue,
            };
            let origin = &location.directive.origin;
            if location.kind == LocationKind::Exact {
                let rules = self.rules_at(location);
                let shut = self.shut(&location.scope).or(rules.as_ref().err().copied());
                let shut = shut.or_else(|| is_no_folder(location));
                if let Some(route) = self.own_route(location, shut.as_ref(), &rules, routes, common)
                {
                    routes.push(route);
                    continue;
                }
                let above = nearest(routes, &location.path);
                let shut = shut.or_else(|| self.stricter(location, above?));
                let shut = shut.or_else(|| self.elsewhere(location, above?));
                let shut = shut.or_else(|| is_rootless(location, above?));
                let shut = shut.or_else(|| is_unlisted(location, above?));
                let shut = shut.or_else(|| has_other_index(location, above?));
                let shut = shut.or_else(|| unguarded(location));
                let is_moved = rules.as_ref().is_ok_and(|rules| !rules.is_empty());
                let shut = shut.or_else(|| laxer_files(location, above?).filter(|_| !is_moved));
                if let Some(shut) = shut {
                    self.close_path(location, routes, &shut, &what)?;
                    continue;
                }
                if let Some(rules) = rules.ok().filter(|rules| !rules.is_empty()) {
                    let own = location.directive.inner();
                    if let Some(log) = own.iter().find(|it| it.name == "access_log") {
                        let message = format!("`access_log` of {what} is not carried over");
                        self.output.warn(
                            &log.origin,
                            message,
                            "the route that it is below has one",
                        );
                    }
                    self.tell_of_lost(&location.scope, &OF_ROUTES, ROUTE_ABOVE);
                    common.rules.extend(of_index(location, &rules, above));
                    common.rules.extend(rules);
                    continue;
                }
            }
            let own = location.directive.inner();
            let tries = own.iter().any(|it| it.name == "try_files");
            let is_its = |above: &&mut Route| !tries && !above.falls_back_to(&location.path);
            if let Some(above) = nearest_mut(routes, &location.path).filter(is_its) {
                above.except(&[no_less_than(&location.path)]);
            }
            if self.error_pages.contains(&location.path) {
            } else if self.cache_control(&location.scope, own).is_some() {
                self.tell(own);
                self.tell_of_lost(&location.scope, &OF_ROUTES, ROUTE_ABOVE);
            } else {
                let help = "the route that it is below answers";
                self.output.warn(origin, format!("{what} is not carried over"), help);
            }
        }
        Some(())
    }

    /// Leaves out a location for one path, with what would be served there without it.
    fn close_path(
        &mut self,
        location: &Location<'_>,
        routes: &mut Vec<Route>,
        shut: &Shut<'_>,
        what: &str,
    ) -> Option<()> {
        let above = nearest(routes, &location.path);
        let is_file = above.is_some_and(|it| it.files.is_some() && it.alone.is_some());
        if is_file || !self.is_folder(&location.path, routes) {
            return self.close(location, routes, shut, what);
        }
        // By its name alone a folder of files gets a redirect. A backend is asked for it.
        let is_asked = above.filter(|it| it.files.is_none() && !it.is_closed);
        if is_asked.is_some_and(|it| self.is_more_than_passed(location, it)) {
            return self.deny_path(location, routes, shut, what);
        }
        self.leave_out(shut, what, false);
        Some(())
    }

    /// Whether more than another backend is lost with a location, where a route has its path.
    fn is_more_than_passed(&self, location: &Location<'_>, above: &Route) -> bool {
        let scope = &location.scope;
        let is_passed = location.directive.inner().iter().any(|it| it.name == "proxy_pass");
        !is_passed
            || kept_from_passing(scope).is_some()
            || self.access(scope).is_err()
            || self.stricter(location, above).is_some()
    }

    /// The route of one path, where it is not answered as the route around it answers and can be said.
    fn own_route(
        &mut self,
        location: &Location<'_>,
        shut: Option<&Shut<'_>>,
        rules: &Result<Vec<Rule>, Shut<'_>>,
        routes: &[Route],
        common: &Common<'_>,
    ) -> Option<Route> {
        let path = &location.path;
        let own = location.directive.inner();
        let is_rewritten = |rule: &Rule| {
            let leads_here = || rule.target() == Some(path.as_str());
            !rule.is_redirect() && (path.starts_with(rule.beginning()) || leads_here())
        };
        if path.ends_with('/')
            || exactly(path).is_none()
            || routes.iter().any(|route| route.prefix == *path)
            || common.rules.iter().any(is_rewritten)
            || self.error_pages.contains(path)
            || self.is_folder(path, routes)
        {
            return None;
        }
        let above = nearest(routes, path);
        if let Some(directive) = own.iter().find(|directive| directive.name == "proxy_pass") {
            let route = self.passed(location, directive).ok().filter(|_| !location.has_rules())?;
            return Some(Self::alone(location, Route { alone: Some(String::new()), ..route }));
        }
        let rules = rules.as_ref().ok().filter(|_| shut.is_none())?;
        let has_log = own.iter().any(|directive| directive.name == "access_log");
        if !rules.iter().all(Rule::is_redirect) {
            // Another file of the route around it, which has the log.
            return None;
        }
        if !rules.is_empty() {
            let route = || self.redirecting(&location.scope, path, rules.clone());
            return has_log.then(route).filter(|route| log_of(Some(route)) != log_of(above));
        }
        let is_stricter = above.is_some_and(|above| self.stricter(location, above).is_some());
        let (folder, below) = self.file_alone(location)?;
        let looked = above.and_then(|above| above.file(path));
        let is_elsewhere = looked.is_none_or(|looked| looked != folder.join(&below));
        // A fallback that another route answers for would be none.
        let is_fallback = || above.is_some_and(|above| above.falls_back_to(path));
        let is_laxer = || above.is_some_and(|above| laxer_files(location, above).is_some());
        let says_own = own.iter().any(guards_browsers) || is_laxer();
        if !(has_log && !is_fallback() || is_stricter || is_elsewhere || says_own) {
            return None;
        }
        let route = self.route(&location.scope, path, own, common)?;
        let is_logged_there = log_of(Some(&route)) == log_of(above);
        if is_logged_there && !is_stricter && !is_elsewhere && !says_own {
            return None;
        }
        self.tell(own);
        let alone = Some(format!("/{below}"));
        Some(Self::alone(location, Route { files: Some(folder), alone, ..route }))
    }

    /// A route that looks for one path, which is below its own.
    pub(super) fn alone(location: &Location<'_>, mut route: Route) -> Route {
        let path = &location.path;
        let alone = route.alone.as_deref().unwrap_or_default();
        let rewrite = |from: Option<&str>, to: String| Rule {
            from: from.map(str::to_owned),
            to,
            kind: redirect::RuleKind::Rewrite { keeps_query: true },
            origin: location.directive.origin.clone(),
            is_wider: false,
            spared: Vec::new(),
        };
        // nginx has what lies below that path somewhere else.
        if route.backend.is_some() {
            route.rules.push(rewrite(None, format!("{path}{alone}")));
            route.deny(format!("{path}/**"));
        } else {
            let refused = format!("{path}{alone}-");
            route.rules.push(rewrite(Some(path), format!("{path}{alone}")));
            route.rules.push(rewrite(None, refused.clone()));
            route.deny(refused);
        }
        // There are no folders.
        route.settings.retain(|(key, ..)| !OF_FOLDERS.contains(key));
        route
    }

    /// Says that a route for one path takes others from a backend.
    pub(super) fn tell_of_below(&mut self, location: &Location<'_>, above: Option<&Route>) {
        if above.is_some_and(|above| above.backend.is_some()) {
            let path = location.path.trim_end_matches('/');
            let message =
                format!("`location = {}` is for what lies below {path}/, too", location.path);
            let help = "all of it is answered as that one path";
            self.output.warn(&location.directive.origin, message, help);
        }
    }

    /// The folder of `root` and the file below it that one path stands for.
    pub(super) fn file_alone(&self, location: &Location<'_>) -> Option<(PathBuf, String)> {
        let written = location.scope.any_of(&["root", "alias"]).first().copied()?;
        let is_own = || location.directive.inner().iter().any(is_own_root);
        let path: PathBuf = self.prefix.join(written.word(0)).components().collect();
        if written.word(0).contains(['$', '{']) {
            return None;
        }
        match written.name.as_str() {
            "root" => Some((path, location.path.trim_start_matches('/').to_owned())),
            _ if is_own() && !written.word(0).ends_with('/') => {
                let name = path.file_name()?.to_str()?.to_owned();
                Some((path.parent()?.to_path_buf(), name))
            }
            _ => None,
        }
    }

    /// What says that the files of one path or a pattern lie elsewhere than where their route looks for them.
    pub(super) fn elsewhere<'t>(&self, location: &Location<'t>, above: &Route) -> Option<Shut<'t>> {
        let is_exact = location.kind == LocationKind::Exact;
        let path = if is_exact { &location.path } else { &above.prefix };
        let looked = above.file(path)?;
        let own = location.directive.inner().iter().find(|it| is_own_root(it));
        let outer = || location.scope.any_of(&["root", "alias"]).first().copied();
        let Some(directive) = own.or_else(outer) else {
            return Some(Shut { directive: location.directive, why: NO_ROOT });
        };
        let file = self.prefix.join(directive.word(0)).join(path.trim_start_matches('/'));
        let is_same = match directive.name.as_str() {
            "root" => file == looked,
            // That of the route itself.
            _ => own.is_none(),
        };
        // A page for errors has a file of its own, and its path is seldom asked for.
        let is_page = self.error_pages.contains(path) && !self.surroundings.is_there(&looked);
        (!is_same && !is_page).then_some(Shut { directive, why: ELSEWHERE })
    }

    /// Whether a path without a slash at its end is that of a folder.
    fn is_folder(&self, path: &str, routes: &[Route]) -> bool {
        let file = nearest(routes, path).and_then(|above| above.file(path));
        let is_one =
            |file: PathBuf| self.surroundings.is_there(&file) && !self.surroundings.is_file(&file);
        let is_prefix = routes.iter().any(|route| route.prefix == path);
        !path.ends_with('/') && (is_prefix || file.is_some_and(is_one))
    }
}

/// Whether nginx looks into a folder that nobody named, and the route around would ask a backend.
fn is_rootless<'t>(location: &Location<'t>, above: &Route) -> Option<Shut<'t>> {
    let is_asked = above.backend.is_some() && !location.has_rules() && !has_root(&location.scope);
    is_asked.then_some(Shut { directive: location.directive, why: NO_ROOT })
}

/// The same rules for a folder whose index the path is: nginx goes from there to the location of its index.
fn of_index(location: &Location<'_>, rules: &[Rule], above: Option<&Route>) -> Vec<Rule> {
    let Some((folder, name)) = location.path.rsplit_once('/') else { return Vec::new() };
    let is_index = above.map_or(name == "index.html", |it| it.has_index(name));
    let of_folder = |rule: &Rule| Rule { from: Some(format!("{folder}/")), ..rule.clone() };
    let redirects = rules.iter().filter(|rule| rule.is_redirect() && is_index);
    redirects.map(of_folder).collect()
}

/// Whether nginx looks for a file alone where the path is that of a folder.
fn is_no_folder<'t>(location: &Location<'t>) -> Option<Shut<'t>> {
    let mut own = location.directive.inner().iter();
    let directive =
        own.find(|it| it.name == "try_files" && !it.words.iter().any(|word| looks_into(word)))?;
    location.path.ends_with('/').then_some(Shut { directive, why: "no folder answers there" })
}

fn looks_into(word: &str) -> bool {
    word.starts_with("$uri/")
}

/// Whether nginx shows no list of a folder, and the route around would.
fn is_unlisted<'t>(location: &Location<'t>, above: &Route) -> Option<Shut<'t>> {
    let directive = location.scope.find("autoindex").unwrap_or(location.directive);
    let is_shown = above.settings.iter().any(|(key, ..)| *key == "listing");
    let is_hidden = location.path.ends_with('/') && is_shown && !location.scope.is_on("autoindex");
    is_hidden.then_some(Shut { directive, why: "lists are a matter of a whole route" })
}

/// Whether another file answers for a folder than the route around has for all of them.
fn has_other_index<'t>(location: &Location<'t>, above: &Route) -> Option<Shut<'t>> {
    let is_folder = location.path.ends_with('/') && above.files.is_some();
    let directive = location.scope.find("index").filter(|_| is_folder)?;
    let is_other = directive.words != above.indexes();
    is_other.then_some(Shut { directive, why: "an index is a matter of a whole route" })
}

/// Where the lines of a route go, if not where its site's do.
fn log_of(route: Option<&Route>) -> Option<&str> {
    let settings = route.map(|route| route.settings.as_slice()).unwrap_or_default();
    settings.iter().find(|(key, ..)| *key == "access_log").map(|(_, target, _)| target.as_str())
}
