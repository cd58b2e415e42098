//! The answer where nothing is there of what a place looks for: routes before the one of its files, each with the condition
//! that nothing is there. So a location without a path may do anything that a place may, and says itself what its answers say.

use std::path::{Component, Path, PathBuf};

use super::Writer;
use super::answer::{Known, rewritten_to};
use super::condition;
use super::phase::{Found, Way};
use super::place::Here;
use super::route::{Answer, Key, Place, Route, Rule, Setting};
use super::settings::symlinks_of;
use super::there::{Folder, is_asked_whole};
use crate::nginx::location::{NAMED, Shut};
use crate::nginx::regex::split_at_bars;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

/// The target of requests for which nothing is there.
#[derive(Clone, Copy)]
pub(super) enum Led<'t> {
    /// A location without a path.
    Named(&'t Directive),
    /// Another path, which may have variables and a query, by the directive that says it.
    Path(&'t str, &'t Directive),
}

impl Writer<'_> {
    /// The routes for requests of which nothing is there, which is asked by these conditions.
    pub(super) fn missing<'t>(
        &mut self,
        scope: &Scope<'t>,
        route: &Route,
        (spots, spot): Here<'_, 't>,
        led: Led<'t>,
        conditions: Vec<String>,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let mut when = route.when.clone();
        when.extend(conditions);
        let routes = match led {
            Led::Path(_, directive) if self.asks_again => {
                return Err(Shut { directive, why: ASKED_AGAIN });
            }
            Led::Path(target, directive) => {
                let key = &spot.key;
                let way = Way::new(scope, key);
                let known = Known { said: &self.said, ..way.known(None) };
                let whole = begun_by_group(key.regex.as_deref(), target);
                let (regex, target) = match &whole {
                    Some((regex, target)) => (Some(regex.clone()), target.as_str()),
                    None => (None, target),
                };
                let to = rewritten_to(target, true, &known);
                let to = to.map_err(|why| Shut { directive, why })?;
                let origin = directive.origin.clone();
                let rule =
                    Rule { regex, to, status: None, keeps_query: true, stays: false, origin };
                let mut led = Route::new(key, Answer::Rules, &directive.origin);
                (led.when, led.rules) = (when, vec![rule]);
                led.access.clone_from(&route.access);
                led.break_circles();
                vec![led]
            }
            Led::Named(named) => {
                let shut = Shut { directive: named, why: NAMED };
                let inner = scope.server().with_location(named);
                let spot = spot.led_to(inner.clone(), named);
                let mut way = Way::new(&inner, &spot.key);
                way.when = when;
                way.said.clone_from(&self.said);
                let own: Vec<&'t Directive> = named.inner().iter().collect();
                let mut found = Found { spots, spot: &spot, routes: Vec::new() };
                let followed = self.deeper(shut, |writer| writer.follow(&own, way, &mut found));
                followed?;
                let mut routes = found.routes;
                for led in &mut routes {
                    led.access = both(&route.access, &led.access).ok_or(shut)?;
                    if !led.has_pages {
                        self.add_pages(&inner, led);
                    }
                }
                routes
            }
        };
        Ok(routes)
    }

    /// The same where a place has programs, and what leads on from them is asked or says a query.
    pub(super) fn missing_programs<'t>(
        &mut self,
        scope: &Scope<'t>,
        route: &Route,
        (spots, spot): Here<'_, 't>,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let tries = scope.own().iter().find(|it| it.name == "try_files");
        let Some((directive, (last, before))) =
            tries.and_then(|it| Some((it, it.words.split_last()?)))
        else {
            return Ok(Vec::new());
        };
        let led = match last.as_str() {
            path if path.starts_with('/') => Led::Path(path, directive),
            name if name.starts_with('@') => match scope.named(name) {
                Some(named) => Led::Named(named),
                None => return Ok(Vec::new()),
            },
            _ => return Ok(Vec::new()),
        };
        let path = |word: &String| match word.as_str() {
            "$uri" | "$document_uri" | "$fastcgi_script_name" => Some("{path}".to_owned()),
            "$uri/" | "$document_uri/" => Some("{path}/".to_owned()),
            _ => None,
        };
        let paths: Option<Vec<String>> = before.iter().map(path).collect();
        let root = self.asked_root(scope, &spot.key).filter(|_| is_asked_whole(route));
        // Behind the name of a program stands more of the path.
        let is_whole = spot.key.regex.as_ref().is_some_and(|it| it.ends_with("\\.php$"));
        let (Some(paths), Some(root), true) = (paths, root, is_whole) else {
            return Ok(Vec::new());
        };
        let folder = Folder { path: &root, prefix: String::new(), symlinks: symlinks_of(scope) };
        let conditions = folder.none_of(&paths);
        self.missing(scope, route, (spots, spot), led, conditions)
    }

    /// The folder below which conditions of a place look for files; nothing where a request says a part of it, where paths are others
    /// there, or where it is not there.
    pub(super) fn asked_root(&self, scope: &Scope<'_>, key: &Key) -> Option<PathBuf> {
        let root = scope.any_of(&["root", "alias"]).first().copied()?;
        let folder = Path::new(root.word(0));
        let is_fixed = root.name == "root" && !root.word(0).contains('$') && folder.is_absolute();
        let is_whole = !matches!(&key.place, Place::Prefix(prefix) if !prefix.is_empty());
        let folder: PathBuf = folder.components().collect();
        (is_fixed && is_whole && !self.is_missing(&folder)).then_some(folder)
    }

    /// The folder below which a condition looks for a file: that of the place, or the one in which a file lies elsewhere.
    pub(super) fn condition_root(
        &self,
        condition: &Directive,
        scope: &Scope<'_>,
        key: &Key,
    ) -> Option<PathBuf> {
        let own = self.asked_root(scope, key);
        let named = condition::file_of(condition);
        let elsewhere = named.as_deref().map(Path::new).filter(|file| {
            let is_plain =
                file.is_absolute() && !file.components().any(|it| it == Component::ParentDir);
            is_plain && !own.as_ref().is_some_and(|it| file.starts_with(it))
        });
        let folder = elsewhere.and_then(Path::parent).map(Path::to_owned);
        folder.filter(|it| self.surroundings.is_there(it)).or(own)
    }

    /// Follows something that leads on, as long as it does not lead too far.
    pub(super) fn deeper<'t>(
        &mut self,
        shut: Shut<'t>,
        follow: impl FnOnce(&mut Self) -> Result<(), Shut<'t>>,
    ) -> Result<(), Shut<'t>> {
        if self.depth > NAMED_MAX {
            return Err(shut);
        }
        let said = self.said.clone();
        self.depth += 1;
        let followed = follow(self);
        self.depth -= 1;
        self.said = said;
        followed
    }
}

/// The expression of a place with the slash of a path outside of its first group, and a target that begins with that group, with the
/// slash before it.
fn begun_by_group(regex: Option<&str>, target: &str) -> Option<(String, String)> {
    let regex = regex?;
    let (case, regex) = match regex.strip_prefix("(?i)") {
        Some(regex) => ("(?i)", regex),
        None => ("", regex),
    };
    let rest = ["(.+)", "^(.+)", "^(/.*)"].iter().find_map(|it| regex.strip_prefix(it))?;
    let is_begun = target.starts_with("$1") && target.matches("$1").count() == 1;
    // Of several expressions the groups of one stand for something.
    let is_one = !rest.starts_with(['?', '*', '+', '{']) && split_at_bars(rest).len() == 1;
    (is_begun && is_one).then(|| (format!("{case}^/(.*){rest}"), format!("/{target}")))
}

/// Returns who may ask where two places ask, one after the other; nothing if that is not the same.
fn both(first: &[Setting], second: &[Setting]) -> Option<Vec<Setting>> {
    let is_limit = |it: &&Setting| it.0 == "rate_limit";
    let said = |all: &[Setting]| -> Vec<(&'static str, String)> {
        let own = all.iter().filter(|it| !is_limit(it));
        own.map(|(key, value, _)| (*key, value.clone())).collect()
    };
    let one = said(first);
    let other = said(second);
    let guards = match (one.is_empty(), other.is_empty()) {
        (true, _) => second,
        (_, true) => first,
        _ if one == other => second,
        _ => return None,
    };
    // A request is counted once.
    let limit = first.iter().find(is_limit).or(second.iter().find(is_limit));
    let guards = guards.iter().filter(|it| !is_limit(it));
    Some(guards.chain(limit).cloned().collect())
}

const ASKED_AGAIN: &str = "nginx asks what its server asks once more, of that path";
/// Locations without a path that lead to each other.
const NAMED_MAX: usize = 4;
