//! The routes of a server: what answers at each of its places.

use kettle_config::{Expression, Origin, Template};

use super::Writer;
use super::before::Left;
use super::fastcgi;
use super::pages::asks_services;
use super::phase::{DECIDES, Found, Way};
use super::place::{Here, Spot, Spots};
use super::route::{Answer, Key, Place, Route, Rule, Setting, spoken};
use super::there::{asks_again, asks_by_path, is_of_missing};
use crate::nginx::location::{self, Shut};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::vocabulary::{Fate, Term};
use crate::offer::list;

impl Writer<'_> {
    /// Writes the questions of a server before its routes, and its routes; returns what leaves nothing of it.
    pub(super) fn routes<'t>(
        &mut self,
        server: &Scope<'t>,
    ) -> Result<(Vec<Route>, Vec<Route>), Shut<'t>> {
        let (mut before, left) = self.before(server)?;
        before.iter_mut().for_each(|it| self.as_page(it));
        let ways = match left {
            Left::Locations(ways) => ways,
            Left::Answer(end) => {
                let mut end = *end;
                end.key = Key::whole();
                end.break_circles();
                end.settings.extend(self.header_settings(server, &end.origin));
                self.as_page(&mut end);
                return Ok((before, vec![end]));
            }
        };
        let spots = Spots::of(server);
        // A directive for missing files leads no file away.
        let root = |scope: &Scope<'t>| scope.any_of(&["root", "alias"]).first().copied();
        let own = root(server).map(std::ptr::from_ref);
        let has_one_root =
            spots.all.iter().all(|it| root(&it.scope).map(std::ptr::from_ref) == own);
        let is_of_missing = |it: &Route| has_one_root && is_of_missing(&it.when);
        let rules = before.iter().filter(|it| !is_of_missing(it)).flat_map(|it| &it.rules);
        let asked = rules.filter_map(|rule| {
            let rewrites = rule.status.is_none();
            Some((Expression::new(rule.regex.as_deref().unwrap_or("^")).ok()?, rewrites))
        });
        let asked: Vec<(Expression, bool)> = asked.collect();
        // Refusals and redirects are asked again by kettle, too.
        let rewrites = |it: &Route| it.rules.iter().any(|rule| rule.status.is_none());
        let asks =
            |it: &Route| rewrites(it) && asks_by_path(&it.when, &self.maps) && !is_of_missing(it);
        self.asks_again = before.iter().any(asks);
        let all = Expression::new("^").ok().filter(|_| self.asks_again).map(|all| (all, true));
        self.before = asked.into_iter().chain(all).collect();
        self.sign_ons = self.sign_ons(&spots);
        for (directive, other) in &spots.dead {
            let message = format!("`{}` is left out", spoken(directive));
            let other = spoken(other);
            let help = format!("its requests come to `{other}`, which is not around it");
            self.output.warn(&directive.origin, message, &help);
        }
        // A site's pages would be those of all its routes.
        let pages = server.all("error_page");
        let has_same = |spot: &Spot<'_>| {
            let own = spot.scope.all("error_page");
            own.len() == pages.len()
                && own.iter().zip(&pages).all(|(one, other)| std::ptr::eq(*one, *other))
        };
        self.has_pages = spots.all.iter().all(has_same) && !asks_services(server);
        let mut routes: Vec<Route> =
            spots.all.iter().flat_map(|spot| self.spot(server, &spots, spot, &ways)).collect();
        let added: Vec<Route> =
            spots.all.iter().filter_map(|spot| slash_added(&spots, spot)).collect();
        routes.extend(added);
        // Some of them are routes.
        if self.has_pages {
            self.pages(server);
        }
        routes.extend(self.named_pages(server));
        routes.iter_mut().for_each(|it| self.as_page(it));
        Ok((before, routes))
    }

    fn spot<'t>(
        &mut self,
        server: &Scope<'t>,
        spots: &Spots<'t>,
        spot: &Spot<'t>,
        ways: &[Way<'t>],
    ) -> Vec<Route> {
        let own: Vec<&'t Directive> =
            spot.location.into_iter().flat_map(Directive::inner).collect();
        let internal = own.iter().find(|it| it.name == "internal");
        let internal = internal.map(|it| ("internal", "true".to_owned(), it.origin.clone()));
        if let Some(internal) = internal.clone().filter(|_| self.is_service(spots, spot)) {
            self.tell(spot.location.map_or(&[], Directive::inner));
            let answer = Answer::Text("{ status = 404 }".to_owned());
            let mut route = Route::new(&spot.key, answer, &internal.2);
            route.settings.push(internal);
            return vec![route];
        }
        let mut found = Found { spots, spot, routes: Vec::new() };
        let followed = match spot.shut.or_else(|| limited_before_it_decides(&own)) {
            Some(shut) => Err(shut),
            None => Self::starts(server, spot, ways)
                .into_iter()
                .try_for_each(|start| self.follow(&own, start, &mut found)),
        };
        let Err(shut) = followed else {
            self.tell(spot.location.map_or(&[], |location| location.inner()));
            // The questions about a folder are those about its index by another name.
            let asks = found.routes.iter().any(|it| asks_again(&it.when, &self.maps));
            for route in &mut found.routes {
                if asks && matches!(route.answer, Answer::Files(..) | Answer::Programs(Some(_), _))
                {
                    self.without_index(&mut route.settings, spot);
                }
                route.settings.extend(internal.clone());
                if !route.has_pages {
                    self.add_pages(&spot.scope, route);
                }
            }
            return found.routes;
        };
        self.leave_out(&shut, &spot.what());
        let mut route = Route::new(&spot.key, Answer::Closed, &shut.directive.origin);
        if shut.is_of_nginx() {
            route.answer = refused(&shut);
            route.settings.extend(self.header_settings(&spot.scope, &shut.directive.origin));
            route.settings.extend(self.pages_of_route(&spot.scope, false));
        }
        route.settings.extend(self.route_log(&spot.scope));
        route.settings.extend(internal);
        match self.asked_in_vain(spot, &shut) {
            Some(asked) if asked.when.is_empty() => vec![asked],
            asked => asked.into_iter().chain([route]).collect(),
        }
    }

    /// Adds the pages for errors of a route, where not all have those of their server.
    pub(super) fn add_pages(&mut self, scope: &Scope<'_>, route: &mut Route) {
        let is_asked = matches!(route.answer, Answer::Backend(_) | Answer::Files(_, Some(_)));
        route.settings.extend(self.pages_of_route(scope, is_asked));
        route.has_pages = true;
    }

    fn leave_out(&mut self, shut: &Shut<'_>, what: &str) {
        let message = format!("{what} answers 403 because of `{}`", spoken(shut.directive));
        let origin = &shut.directive.origin;
        if shut.is_of_nginx() {
            return self.output.warn(origin, message, shut.why);
        }
        self.closed += 1;
        self.output.lose(origin, message, shut.why);
    }

    /// Returns the answer at the end of a way.
    pub(super) fn content<'t>(
        &mut self,
        scope: &Scope<'t>,
        route: Route,
        (spots, spot): Here<'_, 't>,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let here = (spots, spot);
        let is_own =
            |shut: &Shut<'_>| spot.scope.own().iter().any(|it| std::ptr::eq(it, shut.directive));
        let mut guards = location::guards(scope);
        if let Some(shut) = guards.find(|it| it.directive.name != "internal" || !is_own(it)) {
            return Err(shut);
        }
        let mut own = scope.own().iter().chain(spot.scope.own());
        let answers = |it: &&Directive| matches!(Term::fate_of(&it.name), Fate::Answers(_));
        if let Some(directive) = own.find(answers)
            && let Fate::Answers(why) = Term::fate_of(&directive.name)
        {
            return Err(Shut { directive, why });
        }
        let Some(limit) = spot.scope.own().iter().find(|it| it.name == "limit_except") else {
            return self.answered(scope, scope, route, here);
        };
        let mut methods: Vec<&str> = limit.words.iter().map(String::as_str).collect();
        if methods.contains(&"GET") && !methods.contains(&"HEAD") {
            methods.push("HEAD");
        }
        let mut allowed = route.clone();
        allowed.when.push(format!("{{ method = {} }}", list(methods.into_iter())));
        let mut routes = self.answered(scope, scope, allowed, here)?;
        let others = scope.with(limit.inner());
        routes.extend(match self.access(&others) {
            Err(shut) if shut.is_of_nginx() => {
                let mut refusal = Route { answer: refused(&shut), ..route };
                refusal.settings.extend(self.header_settings(&others, &shut.directive.origin));
                refusal.settings.extend(self.route_log(&others));
                vec![refusal]
            }
            Err(shut) => return Err(shut),
            Ok(_) => self.answered(&others, scope, route, here)?,
        });
        Ok(routes)
    }

    /// Gives a route its answer, for those whom `guards` let in; before it stands the same for those who need no password.
    fn answered<'t>(
        &mut self,
        guards: &Scope<'t>,
        scope: &Scope<'t>,
        route: Route,
        here: Here<'_, 't>,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let access = self.access(guards)?;
        let mut routes = Vec::new();
        if let Some(conditions) = self.free_networks(guards)?.filter(|it| !it.is_empty()) {
            let mut free = route.clone();
            free.when.extend(conditions);
            routes.extend(self.admitted(guards, scope, free, here)?);
        }
        routes.extend(self.admitted(guards, scope, Route { access, ..route }, here)?);
        Ok(routes)
    }

    fn admitted<'t>(
        &mut self,
        guards: &Scope<'t>,
        scope: &Scope<'t>,
        mut route: Route,
        (spots, spot): Here<'_, 't>,
    ) -> Result<Vec<Route>, Shut<'t>> {
        if route.access.iter().any(|(key, ..)| *key == "basic_auth") {
            self.tell_of_users(guards);
        }
        let limit = self.rate_limit(scope);
        if let (Some((.., origin)), true) = (&limit, route.access.is_empty()) {
            // nginx tells caches nothing of those who ask too much either.
            route.access.push(("mark_private", "false".to_owned(), origin.clone()));
        }
        route.access.extend(limit);
        let own = scope.own().iter().chain(spot.scope.own());
        if let Some(directive) = own.clone().find(|it| it.name == "proxy_pass") {
            return Ok(vec![self.pass(scope, directive, route, spot)?]);
        }
        if let Some(directive) = own.clone().find(|it| fastcgi::is_pass(it)) {
            let mut routes = self.missing_programs(scope, &route, (spots, spot))?;
            let is_led = !routes.is_empty();
            let mut programs = self.fastcgi(scope, directive, route.clone(), (spot, is_led))?;
            let regex = route.key.regex.as_deref().and_then(fastcgi::narrowed);
            let regex = regex.filter(|_| matches!(programs.answer, Answer::Programs(Some(_), _)));
            let answer = Answer::Text("{ status = 404 }".to_owned());
            let others = regex.is_some().then_some(Route { answer, ..route });
            programs.key.regex = regex.or(programs.key.regex);
            routes.push(programs);
            routes.extend(others);
            return Ok(routes);
        }
        self.files(scope, route, (spots, spot))
    }

    /// Leaves out what answers for a folder and is rewritten before routes, with all that nginx looks for behind it: nginx rewrites an
    /// index, too, where kettle only asks for refusals and redirects.
    pub(super) fn own_indexes(&mut self, settings: &mut Vec<Setting>, spot: &Spot<'_>) {
        let at = settings.iter().position(|(key, ..)| *key == "index");
        let (names, origin) = match at.and_then(|at| settings.get(at)) {
            Some((_, value, origin)) => (words_of(value), origin.clone()),
            None => (vec!["index.html".to_owned()], spot.origin()),
        };
        let Some(first) = names.iter().position(|name| self.is_led_before(spot, name)) else {
            return;
        };
        let (left, gone) = names.split_at(first);
        let message = format!("no folder of {} is answered by {}", spot.what(), gone.join(", "));
        self.output.lose(
            &origin,
            message,
            "its server leads away from that file, from the folder, too",
        );
        settings.retain(|(key, ..)| !["index", "listing"].contains(key));
        settings.push(("index", list(left.iter().map(String::as_str)), origin));
    }

    /// Leaves out all that answers for folders.
    fn without_index(&mut self, settings: &mut Vec<Setting>, spot: &Spot<'_>) {
        let message = format!("no folder of {} is answered", spot.what());
        self.output.lose(&spot.origin(), message, ASKED_AGAIN);
        settings.retain(|(key, ..)| !["index", "listing"].contains(key));
        settings.push(("index", "[]".to_owned(), spot.origin()));
    }

    /// True if something before routes rewrites the path of a file of this name in folders of a place.
    fn is_led_before(&self, spot: &Spot<'_>, name: &str) -> bool {
        let folder = spot.folder();
        let samples = [format!("{folder}/{name}"), format!("{folder}/a/{name}")];
        let mut all = self.before.iter();
        all.any(|(it, rewrites)| *rewrites && samples.iter().any(|path| it.fits(path)))
    }
}

const ASKED_AGAIN: &str =
    "nginx asks its conditions of the index once more, which has another path";

/// Returns the reason that closes a place whose `limit_except` stands beside `if`, `return` or `rewrite`. For the other methods
/// nginx asks none of these, since they are not inherited: it would answer them otherwise than kettle.
fn limited_before_it_decides<'t>(own: &[&'t Directive]) -> Option<Shut<'t>> {
    own.iter().find(|it| DECIDES.contains(&it.name.as_str()))?;
    let directive = own.iter().find(|it| it.name == "limit_except")?;
    Some(Shut { directive, why: "its other methods are not asked for what stands beside it" })
}

/// Returns the answer of nginx to those that it lets in nowhere.
fn refused(shut: &Shut<'_>) -> Answer {
    let status = if shut.directive.name == "internal" { 404 } else { 403 };
    Answer::Text(format!("{{ status = {status} }}"))
}

fn words_of(value: &str) -> Vec<String> {
    let names =
        value.trim_matches(['[', ']']).split(", ").map(|it| it.trim_matches('"').to_owned());
    names.filter(|it| !it.is_empty()).collect()
}

impl Spot<'_> {
    /// Returns the text with which the folders in it begin.
    fn folder(&self) -> &str {
        match &self.key.place {
            Place::Any => "",
            Place::Prefix(path) => path.as_str(),
            Place::Text(path) | Place::Exact(path) => {
                path.rsplit_once('/').map_or("", |(folder, _)| folder)
            }
        }
    }

    fn origin(&self) -> Origin {
        let directive = self.location.or(self.scope.own().first());
        directive.map_or_else(Origin::default, |it| it.origin.clone())
    }
}

/// Returns the answer of nginx to a request for a folder without its slash, where a backend answers below it.
fn slash_added(spots: &Spots<'_>, spot: &Spot<'_>) -> Option<Route> {
    let (Place::Text(path) | Place::Exact(path)) = &spot.key.place else { return None };
    let directive = spot.location.filter(|_| spot.key.regex.is_none())?;
    let folder = path.strip_suffix('/').filter(|it| !it.is_empty())?;
    let is_taken = spots.has_path(folder);
    let to = path.clone();
    let key = Key { place: Place::Exact(folder.to_owned()), regex: None, is_first: false };
    let status = Some(301);
    let origin = directive.origin.clone();
    let answer = if Template::is_destination(&to) { Answer::Rules } else { Answer::Closed };
    let rule = Rule { regex: None, to, status, keeps_query: true, stays: false, origin };
    let rules = if answer == Answer::Rules { vec![rule] } else { Vec::new() };
    let is_passed = spot.is_asked() && !is_taken;
    let internal = directive.inner().iter().find(|it| it.name == "internal");
    let internal = internal.map(|it| ("internal", "true".to_owned(), it.origin.clone()));
    let settings = internal.into_iter().collect();
    is_passed.then(|| Route { rules, settings, ..Route::new(&key, answer, &directive.origin) })
}
