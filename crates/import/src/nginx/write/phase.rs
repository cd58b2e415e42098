//! The work of nginx on a request before it looks for an answer: `set`, `if`, `return` and `rewrite`, one after the other. Of a
//! location each way through them becomes a route, of a server an entry that is asked before routes.

use std::collections::BTreeSet;

use kettle_config::{Expression, quoted};

use super::Writer;
use super::answer::{Flag, Known, Returned, returned, rewritten};
use super::condition::{self, Asked};
use super::fastcgi;
use super::place::{Spot, Spots};
use super::route::{Answer, Key, Place, Route, Rule};
use crate::nginx::location::{Shut, guards};
use crate::nginx::map;
use crate::nginx::measure;
use crate::nginx::regex::{excluded, is_of_all, literal};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, is_group, parts, with_said};

/// A way through what is asked one after the other.
#[derive(Clone)]
pub(super) struct Way<'t> {
    /// The scope in force: of the location, or of an `if` in it.
    pub(super) scope: Scope<'t>,
    pub(super) when: Vec<String>,
    rules: Vec<Rule>,
    pub(super) said: Said,
    /// The place of a path whose beginning is replaced, and what replaces it.
    replaced: Option<(Key, String)>,
    /// Whose groups `$1` and its like are; nothing where an `if` had an expression of its own.
    pub(super) expression: Option<Expression>,
}

impl<'t> Way<'t> {
    pub(super) fn new(scope: &Scope<'t>, key: &Key) -> Self {
        let expression = key.regex.as_ref().and_then(|regex| Expression::new(regex).ok());
        Self {
            scope: scope.clone(),
            when: Vec::new(),
            rules: Vec::new(),
            said: Said::new(),
            replaced: None,
            expression,
        }
    }

    pub(super) fn known(&self, scheme: Option<&'static str>) -> Known<'_> {
        Known { said: &self.said, scheme, expression: self.expression.as_ref(), is_path: false }
    }

    pub(super) fn set(&mut self, directive: &Directive) {
        let name = directive.word(0).trim_start_matches('$').to_owned();
        let value = with_said(directive.word(1), &self.said).filter(|it| !has_group(it));
        self.said.insert(name, value);
    }

    pub(super) fn route(&self, key: &Key, answer: Answer, directive: &Directive) -> Route {
        let when = self.when.clone();
        let rules = self.rules.clone();
        Route { when, rules, ..Route::new(key, answer, &directive.origin) }
    }

    /// The routes for what is rewritten before all else is redirected: each has a rewrite, and asks for its paths. One route would
    /// redirect first.
    fn rewritten_before(&self, key: &Key, directive: &Directive) -> Vec<Route> {
        let rewrites = self.rules.iter().filter(|it| it.status.is_none());
        let route = |rewrite: &Rule| {
            let regex = rewrite.regex.as_ref()?;
            let mut route = self.route(key, Answer::Rules, directive);
            route.when.push(format!("{{ of = \"{{path}}\", regex = {} }}", quoted(regex)));
            route.rules.retain(|it| it.status.is_some() || it == rewrite);
            Some(route)
        };
        rewrites.filter_map(route).collect()
    }

    /// The same with a rule behind those of the way.
    pub(super) fn ruled(&self, key: &Key, rule: Rule, directive: &Directive) -> Route {
        let mut route = self.route(key, Answer::Rules, directive);
        route.rules.push(rule);
        route.break_circles();
        route
    }
}

/// The routes of a place so far.
pub(super) struct Found<'s, 't> {
    pub(super) spots: &'s Spots<'t>,
    pub(super) spot: &'s Spot<'t>,
    pub(super) routes: Vec<Route>,
}

impl Writer<'_> {
    /// Follows the directives of a location from a way on.
    pub(super) fn follow<'t>(
        &mut self,
        directives: &[&'t Directive],
        mut way: Way<'t>,
        found: &mut Found<'_, 't>,
    ) -> Result<(), Shut<'t>> {
        let key = &found.spot.key;
        for (at, directive) in directives.iter().copied().enumerate() {
            let rest = || directives.iter().skip(at + 1).copied();
            if found.routes.len() > ROUTES_MAX {
                return Err(Shut { directive, why: TOO_MANY });
            }
            match directive.name.as_str() {
                "set" => way.set(directive),
                "break" => break,
                "return" => return self.end(directive, &way, found),
                "rewrite" => {
                    let (_, behind) = directives.split_at(at + 1);
                    if self.rewrite(directive, behind, &mut way, found)? {
                        return Ok(());
                    }
                    // Nothing behind it is asked any more.
                    if directive.word(2) == "break" && is_of_all(directive.word(0)) {
                        break;
                    }
                }
                // kettle answers so by itself.
                "if" if fastcgi::asks_for_program(directive, &way.scope) => {}
                "if" => {
                    let root = self.condition_root(directive, &way.scope, key);
                    let asked = condition::read(directive, &way.said, &way.scope, root.as_deref());
                    let asked = asked.map_err(|why| Shut { directive, why })?;
                    let mut inner = way.clone();
                    inner.scope = found.spot.scope.with(directive.inner());
                    inner.expression = inner.expression.filter(|_| !has_expression(directive));
                    self.say_groups(directive, &mut inner);
                    let both: Vec<&'t Directive> = directive.inner().iter().chain(rest()).collect();
                    match asked {
                        Asked::Constant(false) => {}
                        Asked::Constant(true) => return self.follow(&both, inner, found),
                        Asked::When(conditions) => {
                            inner.when.extend(conditions);
                            self.follow(&both, inner, found)?;
                        }
                    }
                }
                _ => {}
            }
        }
        let Some(last) = found.spot.location.or(way.scope.own().first()) else { return Ok(()) };
        let mut route = way.route(key, Answer::Rules, last);
        if let Some((key, by)) = way.replaced.clone() {
            (route.key, route.replaced) = (key, Some(by));
        }
        for (when, said) in self.chosen(&way, found.spot)? {
            let mut route = route.clone();
            route.when.extend(when);
            self.said = said;
            let routes = self.content(&way.scope, route, (found.spots, found.spot));
            self.said = Said::new();
            found.routes.extend(routes?);
        }
        Ok(())
    }

    /// Says of a way what the groups of a condition stand for that holds on it.
    fn say_groups(&mut self, condition: &Directive, way: &mut Way<'_>) {
        let Some((of, expression)) = condition::grouped(condition, &way.said) else { return };
        let names = condition.inner().iter().flat_map(|it| it.words.iter());
        let used: BTreeSet<String> = names
            .flat_map(|text| parts(text))
            .filter_map(|part| match part {
                Part::Variable(name) if expression.group_number(name).is_some_and(|it| it > 0) => {
                    Some(name.to_owned())
                }
                _ => None,
            })
            .collect();
        for name in used {
            let group = (of.as_str(), expression.as_str(), name.as_str());
            let word = map::of_group(&mut self.maps, group, &condition.origin);
            way.said.insert(name, Some(format!("${word}")));
        }
    }

    /// Ends a way by a `return`.
    fn end<'t>(
        &mut self,
        directive: &'t Directive,
        way: &Way<'t>,
        found: &mut Found<'_, 't>,
    ) -> Result<(), Shut<'t>> {
        let key = &found.spot.key;
        for (scheme, when) in self.schemes_of(directive) {
            let mut way = way.clone();
            way.when.extend(when);
            self.said.clone_from(&way.said);
            let end = returned(directive, &way.scope, Some(&key.place), &way.known(scheme));
            let mut route = match end.map_err(|why| Shut { directive, why })? {
                Returned::Redirect(rule) => {
                    found.routes.extend(way.rewritten_before(key, directive));
                    way.rules.retain(|it| it.status.is_some());
                    way.ruled(key, rule, directive)
                }
                Returned::Answer(answer) => {
                    let is_refused = directive.word(0).starts_with(['4', '5']);
                    let mut guards =
                        guards(&way.scope).filter(|it| it.directive.name != "internal");
                    if let Some(shut) = guards.next().filter(|_| !is_refused) {
                        return Err(shut);
                    }
                    way.route(key, answer, directive)
                }
                Returned::Named(named) => {
                    way.scope = way.scope.server().with_location(named);
                    let inner: Vec<&'t Directive> = named.inner().iter().collect();
                    let shut = Shut { directive, why: TOO_MANY };
                    return self.deeper(shut, |writer| writer.follow(&inner, way, found));
                }
            };
            let status = directive.word(0).parse().unwrap_or(302);
            self.say_of_answer(&way.scope, status, &mut route);
            route.settings.extend(self.rate_settings(&way.scope));
            route.settings.extend(self.route_log(&way.scope));
            found.routes.push(route);
        }
        Ok(())
    }

    /// Adds what a `rewrite` says to a way, behind which nothing or something more `decides`; true if the way ends there.
    fn rewrite<'t>(
        &mut self,
        directive: &'t Directive,
        behind: &[&'t Directive],
        way: &mut Way<'t>,
        found: &mut Found<'_, 't>,
    ) -> Result<bool, Shut<'t>> {
        let shut = |why| Shut { directive, why };
        let decides = |it: &&&Directive| DECIDES.contains(&&*it.name);
        let decides = || behind.iter().filter(decides);
        // The first rule that fits is the last one that is asked.
        let ends =
            |it: &&Directive| it.name == "rewrite" && ["break", "last"].contains(&it.word(2));
        let known = way.known(self.only_scheme());
        let mut read = rewritten(directive, &known);
        let mut kept = None;
        if read.is_err()
            && let Some((goes_on, begins)) = excluded(directive.word(0))
        {
            let mut other = directive.clone();
            other.words.first_mut().into_iter().for_each(|it| it.clone_from(&begins));
            read = rewritten(&other, &known).map(|(rule, flag, _)| (rule, flag, false));
            kept = Some(goes_on);
        }
        let (rule, flag, is_whole) = read.map_err(shut)?;
        if flag == Flag::Last && is_whole && way.rules.is_empty() {
            let led = leads_within(&rule, way, found);
            if let Some(location) = led {
                self.follow_within(shut(TOO_MANY), location, way, found)?;
                return Ok(true);
            }
        }
        if let Some(regex) = kept {
            if flag == Flag::Redirect || !way.rules.is_empty() {
                return Err(shut(ORDER));
            }
            // The first rule that fits counts, and this one leaves the path as it is.
            let regex = Some(regex);
            let to = "{path}".to_owned();
            way.rules.push(Rule { regex, to, stays: true, ..rule.clone() });
        }
        match flag {
            Flag::Redirect if way.rules.iter().any(|it| it.status.is_none()) => {
                return Err(shut(ORDER));
            }
            Flag::None if decides().next().is_some() => return Err(shut(GOES_ON)),
            Flag::Break if !is_whole && !decides().all(ends) => return Err(shut(GOES_ON)),
            Flag::Break if !stays(&rule, found) => {
                let Some(replaced) = beginning(&rule, found) else {
                    way.rules.push(Rule { stays: true, ..rule });
                    return Ok(false);
                };
                let is_all = replaced.0 == found.spot.key;
                let mut own = way.clone();
                own.replaced = Some(replaced);
                self.follow(&[], own, found)?;
                return Ok(is_all);
            }
            _ => {}
        }
        way.rules.push(rule);
        if is_whole && flag != Flag::Break {
            let mut route = way.route(&found.spot.key, Answer::Rules, directive);
            route.break_circles();
            route.settings.extend(self.header_settings(&way.scope, &directive.origin));
            route.settings.extend(self.route_log(&way.scope));
            found.routes.push(route);
        }
        Ok(is_whole && flag != Flag::Break)
    }

    /// Goes on in another location, with what is said on the way there.
    fn follow_within<'t>(
        &mut self,
        shut: Shut<'t>,
        location: &'t Directive,
        way: &Way<'t>,
        found: &mut Found<'_, 't>,
    ) -> Result<(), Shut<'t>> {
        let inner = way.scope.server().with_location(location);
        let spot = found.spot.led_to(inner.clone(), location);
        let bound = body_bound(&way.scope);
        let way = Way { scope: inner, ..way.clone() };
        let own: Vec<&'t Directive> = location.inner().iter().collect();
        let mut led = Found { spots: found.spots, spot: &spot, routes: Vec::new() };
        self.deeper(shut, |writer| writer.follow(&own, way, &mut led))?;
        // nginx asks both how long a body may be.
        for (key, value, _) in led.routes.iter_mut().flat_map(|it| &mut it.settings) {
            if *key == "request_body"
                && let (Some(bound), Ok(own)) = (bound, value.parse::<u64>())
            {
                *value = own.min(bound).to_string();
            }
        }
        for route in &mut led.routes {
            if !route.has_pages {
                self.add_pages(&spot.scope, route);
            }
        }
        found.routes.extend(led.routes);
        Ok(())
    }

    /// The scheme of all requests of the site at hand, if it is one.
    pub(super) fn only_scheme(&self) -> Option<&'static str> {
        match self.schemes.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The schemes for which a directive is said, each with the condition for it: one where it does not depend on that.
    pub(super) fn schemes_of(
        &self,
        directive: &Directive,
    ) -> Vec<(Option<&'static str>, Option<String>)> {
        let asks =
            directive.words.iter().any(|it| it.contains("$scheme") || it.contains("${scheme}"));
        match (self.schemes.as_slice(), asks) {
            ([one], _) => vec![(Some(one), None)],
            (_, false) => vec![(None, None)],
            (all, true) => {
                all.iter().map(|it| (Some(*it), Some(format!("{{ scheme = \"{it}\" }}")))).collect()
            }
        }
    }
}

/// The location that a rewrite of all paths leads to, where variables that are set on the way say which server it asks, and the server
/// is asked for what the client asks for.
fn leads_within<'t>(rule: &Rule, way: &Way<'t>, found: &Found<'_, 't>) -> Option<&'t Directive> {
    let path = Some(rule.to.trim_end_matches('?')).filter(|it| !it.contains(['{', '?']))?;
    let spot = found.spots.all.get(found.spots.owner(path)?)?;
    let location = spot.location.filter(|_| spot.shut.is_none() && spot.key.regex.is_none())?;
    let mut own = location.inner().iter();
    let pass = own.find(|it| it.name == "proxy_pass")?.word(0);
    let is_said =
        |it: &Part<'_>| matches!(it, Part::Variable(name) if way.said.contains_key(*name));
    (pass.ends_with("$request_uri") && parts(pass).iter().any(is_said)).then_some(location)
}

/// The longest body at a place, in bytes; nothing where there is no bound.
fn body_bound(scope: &Scope<'_>) -> Option<u64> {
    let said = scope.find("client_max_body_size").map(|it| measure::bytes(it.word(0)));
    said.unwrap_or(Some(BODY_BYTES)).filter(|bytes| *bytes > 0)
}

/// True if what a rewrite leads to is answered by the same place, whatever fits.
fn stays(rule: &Rule, found: &Found<'_, '_>) -> bool {
    let path = rule.to.split('?').next().unwrap_or_default();
    if !path.contains('{') {
        let owner = found.spots.owner(path).and_then(|it| found.spots.all.get(it));
        return owner.is_some_and(|it| it.key == found.spot.key);
    }
    let beginning = path.split('{').next().unwrap_or_default();
    let (Place::Text(own) | Place::Exact(own)) = &found.spot.key.place else { return false };
    let is_alone = found.spots.all.iter().all(|it| match (&it.key.place, &it.key.regex) {
        (Place::Any, _) => found.spot.key.is_first,
        (place, Some(_)) => *place != found.spot.key.place,
        (Place::Prefix(other) | Place::Text(other) | Place::Exact(other), None) => {
            other == own || !other.starts_with(own.as_str())
        }
    });
    is_alone && found.spot.key.regex.is_none() && beginning.starts_with(own.as_str())
}

/// The place of the paths that a rewrite is for, and what takes the place of their beginning: where it is about nothing but that.
fn beginning(rule: &Rule, found: &Found<'_, '_>) -> Option<(Key, String)> {
    let key = &found.spot.key;
    let (Place::Text(own) | Place::Prefix(own) | Place::Exact(own)) = &key.place else {
        return None;
    };
    if key.regex.is_some() || rule.to.contains('?') {
        return None;
    }
    let Some(regex) = &rule.regex else {
        let is_one = matches!(key.place, Place::Exact(_)) && !rule.to.contains('{');
        return is_one.then(|| (key.clone(), rule.to.clone()));
    };
    let by = rule.to.strip_suffix("{1}").filter(|it| !it.contains('{'))?;
    let text = regex.strip_prefix('^')?;
    let text = text.strip_suffix("(.*)$").or_else(|| text.strip_suffix("(.*)"))?;
    let text = literal(text).filter(|it| it.starts_with(own.as_str()))?;
    if matches!(key.place, Place::Exact(_)) {
        return None;
    }
    if text == *own || text == "/" && own.is_empty() {
        return Some((key.clone(), by.to_owned()));
    }
    // No other place has any of them.
    let is_alone = found.spots.all.iter().filter(|it| it.key != *key).all(|it| {
        let (Place::Text(other) | Place::Prefix(other) | Place::Exact(other)) = &it.key.place
        else {
            return true;
        };
        it.key.place != key.place
            && (other.len() <= own.len()
                || !(other.starts_with(&text) || text.starts_with(other.as_str())))
    });
    let place = Place::Text(text);
    is_alone.then(|| (Key { place, ..key.clone() }, by.to_owned()))
}

fn has_expression(condition: &Directive) -> bool {
    condition.words.iter().any(|word| ["~", "~*", "!~", "!~*"].contains(&word.as_str()))
}

fn has_group(text: &str) -> bool {
    parts(text).iter().any(|it| matches!(it, Part::Variable(name) if is_group(name)))
}

/// nginx's own bound of a body.
const BODY_BYTES: u64 = 1024 * 1024;
pub(super) const DECIDES: [&str; 3] = ["if", "return", "rewrite"];
pub(super) const TOO_MANY: &str = "there are too many ways through its conditions";
const ORDER: &str = "a route of kettle redirects first, and rewrites then";
pub(super) const GOES_ON: &str =
    "what follows is asked of the path that it leads to, or not at all";
/// Routes of one place.
const ROUTES_MAX: usize = 64;
