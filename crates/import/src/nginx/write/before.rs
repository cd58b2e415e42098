//! The questions of a server before its routes: `set`, `if`, `return` and `rewrite` outside of locations, each of which becomes
//! an entry. If an `if` sets a variable that counts, there is a way on with it and one without it.

use std::collections::BTreeSet;

use kettle_config::quoted;

use super::Writer;
use super::answer::{Flag, Returned, returned, rewritten};
use super::condition::{self, Asked};
use super::phase::{DECIDES, GOES_ON, TOO_MANY, Way};
use super::place::Spot;
use super::route::{Answer, Key, Place, Route};
use super::there::asks_by_path;
use crate::nginx::location::Shut;
use crate::nginx::regex::{ALL, wider};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, is_group, parts};
use crate::nginx::vocabulary::{Fate, Term};

/// The rest behind what a server asks first.
pub(super) enum Left<'t> {
    /// The locations, on each of these ways.
    Locations(Vec<Way<'t>>),
    /// Nothing but this answer.
    Answer(Box<Route>),
}

/// The requests that kettle cannot tell from the rest, and has to close.
struct Unsaid<'t> {
    shut: Shut<'t>,
    /// The conditions on it besides, if any.
    when: Vec<String>,
    /// The expression that its paths fit, if that is not all.
    regex: Option<String>,
}

impl<'t> Unsaid<'t> {
    /// All that comes that way.
    fn all(shut: Shut<'t>) -> Self {
        Self { shut, when: Vec::new(), regex: None }
    }

    /// Returns the paths for which a rewrite may be.
    fn rewrite(shut: Shut<'t>, rewrite: &Directive, when: Vec<String>) -> Self {
        Self { shut, when, regex: Some(wider(rewrite.word(0))) }
    }
}

/// Entries so far, and the ways through what was asked: of each request one holds.
struct Beginning<'t> {
    key: Key,
    entries: Vec<Route>,
    ways: Vec<Way<'t>>,
    /// The variables that something asks or says.
    used: BTreeSet<&'t str>,
    /// One behind which paths that fit are asked nothing more.
    last_rewrite: Option<&'t Directive>,
}

impl<'t> Beginning<'t> {
    /// True if a directive sets what counts.
    fn sets(&self, directive: &Directive) -> bool {
        directive.name == "set" && self.used.contains(directive.word(0).trim_start_matches('$'))
    }

    /// Goes on with the paths that the last rewrite led nowhere else; true if there are none.
    fn leave_led(&mut self, rewrite: &'t Directive) -> Result<bool, Shut<'t>> {
        let ([way], Some(last)) = (self.ways.as_mut_slice(), self.entries.last()) else {
            return Err(Shut { directive: rewrite, why: GOES_ON });
        };
        for rule in last.rules.iter().filter(|it| it.status.is_none()) {
            let Some(regex) = &rule.regex else { return Ok(true) };
            let regex = quoted(regex);
            way.when.push(format!("{{ of = \"{{asked_path}}\", regex = {regex}, not = true }}"));
        }
        Ok(false)
    }

    /// Goes on from a way by another one, where conditions hold, and by itself where they do not.
    fn fork(&mut self, way: Way<'t>, mut inner: Way<'t>, conditions: &[String]) {
        inner.expression.clone_from(&way.expression);
        self.ways.push(inner);
        // By the first of them that does not hold.
        for (number, condition) in conditions.iter().enumerate() {
            let mut other = way.clone();
            other.when.extend(conditions.iter().take(number).cloned());
            other.when.push(condition::negated(condition));
            self.ways.push(other);
        }
    }
}

impl Writer<'_> {
    /// Returns the questions of a server before its routes, and what is left.
    pub(super) fn before<'t>(
        &mut self,
        scope: &Scope<'t>,
    ) -> Result<(Vec<Route>, Left<'t>), Shut<'t>> {
        let key = Key { place: Place::Any, regex: None, is_first: false };
        let ways = vec![Way::new(scope, &key)];
        let mut used = BTreeSet::new();
        find_used(scope.own(), &mut used);
        let mut so_far = Beginning { key, entries: Vec::new(), ways, used, last_rewrite: None };
        let mut led_away = None;
        let own: Vec<&'t Directive> = scope.own().iter().collect();
        for (at, directive) in own.iter().copied().enumerate() {
            let name = directive.name.as_str();
            if let Some(rewrite) = so_far.last_rewrite
                && (["if", "return"].contains(&name)
                    || name == "rewrite" && !self.is_said_last(directive, &so_far))
            {
                if so_far.leave_led(rewrite)? {
                    break;
                }
                (so_far.last_rewrite, led_away) = (None, Some(rewrite));
            }
            match name {
                "set" => so_far.ways.iter_mut().for_each(|way| way.set(directive)),
                "break" => break,
                "return" => {
                    for way in std::mem::take(&mut so_far.ways) {
                        match self.before_end(directive, &way, &so_far.key) {
                            Ok(ends) => so_far.entries.extend(ends),
                            Err(shut) => {
                                self.close(&mut so_far, &way, Unsaid::all(shut))?;
                            }
                        }
                    }
                    // No other scheme is left, and no other way.
                    let Some(mut end) = so_far.entries.pop() else { break };
                    end.when.clear();
                    return Ok((so_far.entries, Left::Answer(Box::new(end))));
                }
                "rewrite" => {
                    let sets = own.iter().skip(at + 1).any(|it| so_far.sets(it));
                    self.before_rewrites(directive, sets, &mut so_far)?;
                }
                "if" => {
                    let mut follows = own.iter().skip(at + 1);
                    let decides = follows.any(|it| DECIDES.contains(&&*it.name) || so_far.sets(it));
                    let ways = std::mem::take(&mut so_far.ways);
                    for way in ways {
                        let own = way.clone();
                        if let Err(shut) = self.before_if(directive, decides, way, &mut so_far) {
                            self.close(&mut so_far, &own, Unsaid::all(shut))?;
                        }
                    }
                    if so_far.ways.len() > WAYS_MAX {
                        return Err(Shut { directive, why: TOO_MANY });
                    }
                }
                _ => {}
            }
        }
        // Locations have the path that a rewrite leads to, and ways are told by the one that was asked for.
        match led_away.filter(|_| so_far.ways.len() > 1) {
            Some(directive) => Err(Shut { directive, why: GOES_ON }),
            None => Ok((so_far.entries, Left::Locations(so_far.ways))),
        }
    }

    /// Adds what a `rewrite` says on each way, behind which something is set that counts, or nothing.
    fn before_rewrites<'t>(
        &mut self,
        directive: &'t Directive,
        sets: bool,
        so_far: &mut Beginning<'t>,
    ) -> Result<(), Shut<'t>> {
        let is_one = so_far.ways.len() == 1;
        let last = so_far.last_rewrite;
        for way in so_far.ways.clone() {
            let read = self.before_rewrite(directive, &way, &so_far.key);
            let read = read.and_then(|(route, flag)| {
                let skips = sets && matches!(flag, Flag::Last | Flag::Break);
                match self.is_told(&way, &route) && !skips {
                    true => Ok((route, flag)),
                    false => Err(Shut { directive, why: GOES_ON }),
                }
            });
            let (route, flag) = match read {
                Ok(read) => read,
                Err(shut) => {
                    self.close(so_far, &way, Unsaid::rewrite(shut, directive, Vec::new()))?;
                    continue;
                }
            };
            let earlier = so_far.entries.last_mut().filter(|_| is_one);
            match (earlier, last, flag) {
                (Some(earlier), Some(_), Flag::Last) => earlier.rules.extend(route.rules),
                (None, Some(_), _) => return Err(Shut { directive, why: GOES_ON }),
                _ => so_far.entries.push(route),
            }
            if matches!(flag, Flag::Last | Flag::Break) {
                so_far.last_rewrite = Some(directive);
            }
        }
        Ok(())
    }

    /// Asks an `if` on one way, and goes on by it and by those that lead away from it.
    fn before_if<'t>(
        &mut self,
        directive: &'t Directive,
        decides: bool,
        way: Way<'t>,
        so_far: &mut Beginning<'t>,
    ) -> Result<(), Shut<'t>> {
        let leads = |it: &&Directive| {
            it.name == "root"
                || matches!(Term::fate_of(&it.name), Fate::Answers(_) | Fate::Guards(_))
        };
        if let Some(directive) = directive.inner().iter().find(leads) {
            return Err(Shut { directive, why: OF_SERVER });
        }
        if let Some(hosts) = condition::hosts(directive, &way.scope) {
            return self.before_hosts(directive, decides, way, so_far, hosts);
        }
        let root = self.condition_root(directive, &way.scope, &so_far.key);
        let asked = condition::read(directive, &way.said, &way.scope, root.as_deref());
        let conditions = match asked {
            Err(why) => {
                return self.before_unknown(Shut { directive, why }, decides, way, so_far);
            }
            Ok(Asked::Constant(false)) => {
                so_far.ways.push(way);
                return Ok(());
            }
            Ok(Asked::Constant(true)) => Vec::new(),
            Ok(Asked::When(conditions)) => conditions,
        };
        let mut inner = way.clone();
        inner.expression = None;
        inner.when.extend(conditions.iter().cloned());
        match self.inside(directive, decides, &mut inner, so_far) {
            Ok(true) => so_far.fork(way, inner, &conditions),
            Ok(false) => so_far.ways.push(way),
            // Nobody comes in there, and who is not meant goes on.
            Err(shut) if !conditions.is_empty() => {
                let what = Unsaid { when: conditions, ..Unsaid::all(shut) };
                self.close(so_far, &way, what)?;
                so_far.ways.push(way);
            }
            Err(shut) => return Err(shut),
        }
        Ok(())
    }

    /// Goes on behind an `if` whose condition nobody can ask: what it may decide is closed, and nothing is known of what it sets.
    fn before_unknown<'t>(
        &mut self,
        shut: Shut<'t>,
        decides: bool,
        mut way: Way<'t>,
        so_far: &mut Beginning<'t>,
    ) -> Result<(), Shut<'t>> {
        let may_hold = condition::weaker(shut.directive, &way.said);
        for own in shut.directive.inner() {
            let when: Vec<String> = may_hold.iter().cloned().collect();
            let what = match own.name.as_str() {
                "set" => {
                    way.said.insert(own.word(0).trim_start_matches('$').to_owned(), None);
                    continue;
                }
                "rewrite" => Unsaid::rewrite(shut, own, when),
                "return" => Unsaid { when, ..Unsaid::all(shut) },
                "break" if decides => Unsaid { when, ..Unsaid::all(shut) },
                _ => continue,
            };
            self.close(so_far, &way, what)?;
        }
        so_far.ways.push(way);
        Ok(())
    }

    /// True if a way is told from others by a rewritten path, too.
    fn is_told(&self, way: &Way<'_>, rewritten: &Route) -> bool {
        let mut rewrites = rewritten.rules.iter().filter(|it| it.status.is_none());
        let asks = |it: &String| it.contains("query") || it.contains("{map:");
        rewrites.all(|it| {
            let asks_query = it.to.contains('?') && way.when.iter().any(asks);
            !asks_query && !asks_by_path(&way.when, &self.maps)
        })
    }

    /// True if a rewrite is one more of those of which the first that fits is the last that is asked, on all ways.
    fn is_said_last(&self, directive: &Directive, so_far: &Beginning<'_>) -> bool {
        let is_said = |way: &Way<'_>| rewritten(directive, &way.known(self.only_scheme())).is_ok();
        directive.word(2) == "last" && so_far.ways.iter().all(is_said)
    }

    /// Asks an `if` whose groups are parts of the host: one by one for the names of the server that fit.
    fn before_hosts<'t>(
        &mut self,
        directive: &'t Directive,
        decides: bool,
        mut way: Way<'t>,
        so_far: &mut Beginning<'t>,
        hosts: Vec<(String, Said)>,
    ) -> Result<(), Shut<'t>> {
        for (condition, groups) in hosts {
            let mut inner = way.clone();
            inner.expression = None;
            inner.when.push(condition.clone());
            inner.said.extend(groups);
            if self.inside(directive, decides, &mut inner, so_far)? {
                inner.said.retain(|name, _| !is_group(name));
                so_far.ways.push(inner);
                way.when.push(condition::negated(&condition));
            }
        }
        so_far.ways.push(way);
        Ok(())
    }

    /// Closes what kettle cannot tell from the rest of a way: the paths of an expression, or what more holds of.
    fn close<'t>(
        &mut self,
        so_far: &mut Beginning<'t>,
        way: &Way<'t>,
        what: Unsaid<'t>,
    ) -> Result<(), Shut<'t>> {
        let Unsaid { shut, when: more, regex } = what;
        let when: Vec<String> = way.when.iter().cloned().chain(more).collect();
        let regex = regex.filter(|it| it != ALL);
        if when.is_empty() && regex.is_none() {
            return Err(shut);
        }
        let which = if regex.is_some() { "the paths that it is for" } else { "some requests" };
        self.lose_by(shut.directive, &format!("{which} answer 403"), shut.why);
        self.closed += 1;
        let closed = Answer::Text("{ status = 403 }".to_owned());
        let key = Key { regex, ..so_far.key.clone() };
        so_far.entries.push(Route { when, ..Route::new(&key, closed, &shut.directive.origin) });
        Ok(())
    }

    /// Takes in the block of an `if`, on the way into it; true if that way goes on by itself.
    fn inside<'t>(
        &mut self,
        directive: &'t Directive,
        decides: bool,
        inner: &mut Way<'t>,
        so_far: &mut Beginning<'t>,
    ) -> Result<bool, Shut<'t>> {
        let mut forks = false;
        for own in directive.inner() {
            match own.name.as_str() {
                "set" => {
                    inner.set(own);
                    forks |= so_far.sets(own);
                }
                "return" => {
                    so_far.entries.extend(self.before_end(own, inner, &so_far.key)?);
                    return Ok(false);
                }
                "rewrite" => {
                    let (route, flag) = self.before_rewrite(own, inner, &so_far.key)?;
                    if decides && matches!(flag, Flag::Last | Flag::Break) {
                        let shut = Shut { directive: own, why: GOES_ON };
                        let what = Unsaid::rewrite(shut, own, Vec::new());
                        self.close(so_far, inner, what)?;
                        continue;
                    }
                    so_far.entries.push(route);
                }
                "break" if decides => return Err(Shut { directive: own, why: GOES_ON }),
                "break" => break,
                _ => {}
            }
        }
        Ok(forks)
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
            let end = returned(directive, &way.scope, None, &way.known(scheme));
            all.push(match end.map_err(|why| Shut { directive, why })? {
                Returned::Redirect(rule) => way.ruled(key, rule, directive),
                Returned::Answer(answer) => way.route(key, answer, directive),
                Returned::Named(_) => return Err(Shut { directive, why: NAMED }),
            });
        }
        Ok(all)
    }

    fn before_rewrite<'t>(
        &self,
        directive: &'t Directive,
        way: &Way<'t>,
        key: &Key,
    ) -> Result<(Route, Flag), Shut<'t>> {
        let read = rewritten(directive, &way.known(self.only_scheme()));
        let (rule, flag, _) = read.map_err(|why| Shut { directive, why })?;
        Ok((way.ruled(key, rule, directive), flag))
    }
}

impl<'t> Writer<'_> {
    /// The ways on which the directives of a location are followed: those of its server, where these say other things there.
    pub(super) fn starts(server: &Scope<'t>, spot: &Spot<'t>, ways: &[Way<'t>]) -> Vec<Way<'t>> {
        let mut starts: Vec<Way<'t>> = Vec::new();
        for way in ways {
            let mut start = Way::new(&spot.scope, &spot.key);
            start.said.clone_from(&way.said);
            start.when.clone_from(&way.when);
            starts.push(start);
        }
        if ways.len() > 1 {
            let mut used = BTreeSet::new();
            find_used(spot.location.map_or(&[], Directive::inner), &mut used);
            let settings = server.settings().next().unwrap_or_default();
            for directive in settings.iter().filter(|it| !ASKED_BEFORE.contains(&&*it.name)) {
                find_used(std::slice::from_ref(directive), &mut used);
            }
            let said = |way: &Way<'t>| -> Vec<_> {
                let own = way.said.iter().filter(|(name, _)| used.contains(name.as_str()));
                own.map(|(name, value)| (name.clone(), value.clone())).collect()
            };
            if starts.windows(2).all(|pair| pair.first().map(said) == pair.last().map(said)) {
                starts.truncate(1);
            }
        }
        // One of them holds.
        starts.last_mut().into_iter().for_each(|it| it.when.clear());
        starts
    }
}

/// Adds the variables that something in a block asks or says, and not only sets.
fn find_used<'t>(block: &'t [Directive], used: &mut BTreeSet<&'t str>) {
    for directive in block {
        if matches!(Term::fate_of(&directive.name), Fate::Dropped(_)) {
            continue;
        }
        let named = usize::from(directive.name == "set");
        for word in directive.words.iter().skip(named) {
            used.extend(parts(word).into_iter().filter_map(|part| match part {
                Part::Variable(name) => Some(name),
                Part::Text(_) => None,
            }));
        }
        find_used(directive.inner(), used);
    }
}

/// The directives with which a server has done before a location is found.
const ASKED_BEFORE: [&str; 3] = ["if", "return", "rewrite"];
const OF_SERVER: &str = "conditions of a whole server choose no files";
const NAMED: &str = "a location without a path answers for a whole server";
/// Ways through what a server asks.
const WAYS_MAX: usize = 16;
