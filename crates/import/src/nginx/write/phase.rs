//! What nginx does with a request before it looks for an answer: `set`, `if`, `return` and `rewrite`, one after the other. Of a
//! location each way through them becomes a route, of a server an entry that is asked before routes.

use kettle_config::Expression;

use super::Writer;
use super::answer::{Flag, Known, Returned, returned, rewritten};
use super::condition::{self, Asked};
use super::place::{Spot, Spots};
use super::route::{Answer, Key, Place, Route, Rule};
use crate::nginx::location::{Shut, guards};
use crate::nginx::regex::literal;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, parts, with_said};
use crate::nginx::vocabulary::{Fate, Term};

/// A way through what is asked one after the other.
#[derive(Clone)]
pub(super) struct Way<'t> {
    /// What holds: of the location, or of an `if` in it.
    pub(super) scope: Scope<'t>,
    when: Vec<String>,
    rules: Vec<Rule>,
    said: Said,
    /// The place of a path whose beginning is replaced, and what replaces it.
    replaced: Option<(Key, String)>,
    /// Whose groups `$1` and its like are; nothing where an `if` had an expression of its own.
    expression: Option<Expression>,
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

    fn known(&self, scheme: Option<&'static str>) -> Known<'_> {
        Known { said: &self.said, scheme, expression: self.expression.as_ref(), is_path: false }
    }

    fn set(&mut self, directive: &Directive) {
        let name = directive.word(0).trim_start_matches('$').to_owned();
        let value = with_said(directive.word(1), &self.said).filter(|it| !has_group(it));
        self.said.insert(name, value);
    }

    /// A route at the end of this way.
    fn route(&self, key: &Key, answer: Answer, directive: &Directive) -> Route {
        let (when, rules) = (self.when.clone(), self.rules.clone());
        Route { when, rules, ..Route::new(key, answer, &directive.origin) }
    }

    /// The same with a rule behind those of the way.
    fn ruled(&self, key: &Key, rule: Rule, directive: &Directive) -> Route {
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
                    let decides = rest().any(|it| DECIDES.contains(&&*it.name));
                    if self.rewrite(directive, decides, &mut way, found)? {
                        return Ok(());
                    }
                }
                "if" => {
                    let asked = condition::read(directive, &way.said, &way.scope);
                    let asked = asked.map_err(|why| Shut { directive, why })?;
                    let mut inner = way.clone();
                    inner.scope = found.spot.scope.with(directive.inner());
                    inner.expression = inner.expression.filter(|_| !has_expression(directive));
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
        let routes = self.content(&way.scope, route, found.spot)?;
        found.routes.extend(routes);
        Ok(())
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
            let end = returned(directive, &way.scope, &key.place, &way.known(scheme));
            let mut route = match end.map_err(|why| Shut { directive, why })? {
                Returned::Redirect(rule) => way.ruled(key, rule, directive),
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
                    if self.depth > NAMED_MAX {
                        return Err(Shut { directive, why: TOO_MANY });
                    }
                    self.depth += 1;
                    let followed = self.follow(&inner, way, found);
                    self.depth -= 1;
                    return followed;
                }
            };
            route.settings.extend(self.header_settings(&way.scope, &directive.origin));
            route.settings.extend(self.route_log(&way.scope));
            found.routes.push(route);
        }
        Ok(())
    }

    /// Adds what a `rewrite` says to a way, behind which nothing or something more `decides`; true if the way ends there.
    fn rewrite<'t>(
        &mut self,
        directive: &'t Directive,
        decides: bool,
        way: &mut Way<'t>,
        found: &mut Found<'_, 't>,
    ) -> Result<bool, Shut<'t>> {
        let shut = |why| Shut { directive, why };
        let read = rewritten(directive, &way.known(self.only_scheme()));
        let (rule, flag, is_whole) = read.map_err(shut)?;
        match flag {
            Flag::Redirect if way.rules.iter().any(|it| it.status.is_none()) => {
                return Err(shut(ORDER));
            }
            Flag::None if decides => return Err(shut(GOES_ON)),
            Flag::Break if decides && !is_whole => return Err(shut(GOES_ON)),
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

    /// What a server asks before its routes; with the answer for all that is left, if it has one.
    pub(super) fn before<'t>(
        &mut self,
        scope: &Scope<'t>,
    ) -> Result<(Vec<Route>, Option<Route>), Shut<'t>> {
        let key = Key { place: Place::Any, regex: None, is_first: false };
        let mut way = Way::new(scope, &key);
        let mut all: Vec<Route> = Vec::new();
        let mut last_rewrite: Option<&Directive> = None;
        let own: Vec<&'t Directive> = scope.own().iter().collect();
        for directive in own.iter().copied() {
            let name = directive.name.as_str();
            if let Some(rewrite) = last_rewrite
                && (["if", "return"].contains(&name)
                    || name == "rewrite" && directive.word(2) != "last")
            {
                return Err(Shut { directive: rewrite, why: GOES_ON });
            }
            match name {
                "set" => way.set(directive),
                "break" => break,
                "return" => {
                    let mut ends = self.before_end(directive, &way, &key)?;
                    let mut end = ends.pop();
                    // No other scheme is left.
                    end.iter_mut().for_each(|it| it.when.clear());
                    all.extend(ends);
                    return Ok((all, end));
                }
                "rewrite" => {
                    let (route, flag) = self.before_rewrite(directive, &way, &key)?;
                    match (all.last_mut(), last_rewrite, flag) {
                        (Some(earlier), Some(_), Flag::Last) => earlier.rules.extend(route.rules),
                        _ => all.push(route),
                    }
                    if matches!(flag, Flag::Last | Flag::Break) {
                        last_rewrite = Some(directive);
                    }
                }
                "if" => {
                    let follows =
                        own.iter().skip_while(|it| !std::ptr::eq(**it, directive)).skip(1);
                    let decides = follows.into_iter().any(|it| DECIDES.contains(&&*it.name));
                    self.before_if(directive, decides, &mut way, &key, &mut all)?;
                }
                _ => {}
            }
        }
        Ok((all, None))
    }

    fn before_if<'t>(
        &mut self,
        directive: &'t Directive,
        decides: bool,
        way: &mut Way<'t>,
        key: &Key,
        all: &mut Vec<Route>,
    ) -> Result<(), Shut<'t>> {
        let leads = |it: &&Directive| {
            it.name == "root"
                || matches!(Term::fate_of(&it.name), Fate::Answers(_) | Fate::Guards(_))
        };
        if let Some(directive) = directive.inner().iter().find(leads) {
            return Err(Shut { directive, why: OF_SERVER });
        }
        let asked = condition::read(directive, &way.said, &way.scope)
            .map_err(|why| Shut { directive, why });
        let decided = |it: &Directive| DECIDES.contains(&&*it.name) || it.name == "break";
        let is_idle = !directive.inner().iter().any(decided);
        let mut inner = way.clone();
        inner.expression = None;
        match asked {
            Err(_) if is_idle => {}
            Err(shut) => return Err(shut),
            Ok(Asked::Constant(false)) => return Ok(()),
            Ok(Asked::Constant(true)) => {}
            Ok(Asked::When(conditions)) => inner.when.extend(conditions),
        }
        for own in directive.inner() {
            match own.name.as_str() {
                "set" => {
                    inner.set(own);
                    // Only where the condition holds.
                    way.said.insert(own.word(0).trim_start_matches('$').to_owned(), None);
                }
                "return" => {
                    all.extend(self.before_end(own, &inner, key)?);
                    return Ok(());
                }
                "rewrite" => {
                    let (route, flag) = self.before_rewrite(own, &inner, key)?;
                    if decides && matches!(flag, Flag::Last | Flag::Break) {
                        return Err(Shut { directive: own, why: GOES_ON });
                    }
                    all.push(route);
                }
                "break" if decides => return Err(Shut { directive: own, why: GOES_ON }),
                "break" => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn before_end<'t>(
        &mut self,
        directive: &'t Directive,
        way: &Way<'t>,
        key: &Key,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let mut all = Vec::new();
        for (scheme, when) in self.schemes_of(directive) {
            let mut way = way.clone();
            way.when.extend(when);
            let end = returned(directive, &way.scope, &key.place, &way.known(scheme));
            all.push(match end.map_err(|why| Shut { directive, why })? {
                Returned::Redirect(rule) => way.ruled(key, rule, directive),
                Returned::Answer(answer) => way.route(key, answer, directive),
                Returned::Named(_) => return Err(Shut { directive, why: NAMED }),
            });
        }
        Ok(all)
    }

    fn before_rewrite<'t>(
        &mut self,
        directive: &'t Directive,
        way: &Way<'t>,
        key: &Key,
    ) -> Result<(Route, Flag), Shut<'t>> {
        let read = rewritten(directive, &way.known(self.only_scheme()));
        let (rule, flag, _) = read.map_err(|why| Shut { directive, why })?;
        Ok((way.ruled(key, rule, directive), flag))
    }

    /// The scheme of all requests of the site at hand, if it is one.
    fn only_scheme(&self) -> Option<&'static str> {
        match self.schemes.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The schemes for which a directive is said, each with the condition for it: one where it does not depend on that.
    fn schemes_of(&self, directive: &Directive) -> Vec<(Option<&'static str>, Option<String>)> {
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
    parts(text).iter().any(
        |it| matches!(it, Part::Variable(name) if name.starts_with(|it: char| it.is_ascii_digit())),
    )
}

const DECIDES: [&str; 3] = ["if", "return", "rewrite"];
const TOO_MANY: &str = "there are too many ways through its conditions";
const ORDER: &str = "a route of kettle redirects first, and rewrites then";
const GOES_ON: &str = "what follows is asked of the path that it leads to, or not at all";
const OF_SERVER: &str = "conditions of a whole server choose no files";
const NAMED: &str = "a location without a path answers for a whole server";
/// Routes of one place.
const ROUTES_MAX: usize = 64;
/// Locations without a path that lead to each other.
const NAMED_MAX: usize = 4;
