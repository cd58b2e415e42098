//! Bounds on what one request may have to be held against, one after the other: never more than a thousand of a kind.

use std::collections::HashMap;

use crate::diagnostic::Help;
use crate::glob::{CacheControl, DenyPatterns};
use crate::model::{Before, Condition, Place, Redirect, Rewrite, Route, Site};
use crate::read::Reader;
use crate::rule_index::{PathKey, RuleIndex};

/// Rules of a site, or patterns of a route, that one path may have to be held against one after the other.
const CROWD_MAX: usize = 1_000;

/// Records the first of the routes that are too many for one path, and of what is asked before them.
pub(super) fn check(index: usize, site: &Site, reader: &mut Reader<'_>) {
    check_places(index, site, reader);
    check_expressions(index, site, reader);
    let weights = site.before.iter().map(|it| (it.key(), weight(&it.when)));
    if let Some((number, crowd)) = crowd_of(weights) {
        let what = "entries of [[site.before]], with their conditions";
        let trail = format!("site.{index}.before.{number}");
        refuse(&trail, crowd, what, fewer("those with a place of their own"), reader);
    }
    for (number, Before { redirects, rewrites, .. }) in site.before.iter().enumerate() {
        let trail = format!("site.{index}.before.{number}");
        check_rules(&trail, redirects, rewrites, reader);
    }
    for (number, route) in site.routes.iter().enumerate() {
        let trail = format!("site.{index}.route.{number}");
        check_rules(&trail, &route.redirects, &route.rewrites, reader);
        check_patterns(&trail, route, reader);
    }
}

/// Each that may fit is asked, and of it each condition. A look at the disk counts as ten.
fn weight(when: &[Condition]) -> usize {
    conditions(when).max(1)
}

fn conditions(when: &[Condition]) -> usize {
    when.iter().map(|it| if it.file.is_some() { FILE_WEIGHT } else { 1 }).sum()
}

/// Prefixes that begin with each other, and the conditions of those and of exact paths.
fn check_places(index: usize, site: &Site, reader: &mut Reader<'_>) {
    let plain = || site.routes.iter().enumerate().filter(|(_, route)| route.regex.is_none());
    let mut prefixes: Vec<(usize, PathKey<'_>, usize)> = Vec::new();
    let mut exact: HashMap<&str, usize> = HashMap::new();
    for (number, route) in plain() {
        match route.place() {
            Some(Place::Prefix(text) | Place::TextPrefix(text)) => {
                prefixes.push((number, PathKey::begins(text), weight(&route.when)));
            }
            Some(Place::Exact(text)) => {
                let crowd = exact.entry(text).or_default();
                *crowd += conditions(&route.when);
                if *crowd > CROWD_MAX {
                    let trail = format!("site.{index}.route.{number}.exact");
                    return refuse(&trail, *crowd, "conditions", fewer_conditions(), reader);
                }
            }
            None => {}
        }
    }
    let weights = prefixes.iter().map(|(_, key, weight)| (*key, *weight));
    let Some((at, crowd)) = crowd_of(weights) else { return };
    let number = prefixes.get(at).map_or(0, |(number, ..)| *number);
    let trail = format!("site.{index}.route.{number}");
    if plain().all(|(_, route)| route.when.is_empty()) {
        let names = ["text_prefix", "prefix"].map(|name| format!("{trail}.{name}"));
        let setting = names.into_iter().find(|it| reader.is_written(it)).unwrap_or(trail);
        let help = format!("write at most {CROWD_MAX} prefixes that begin with each other");
        return refuse(&setting, crowd, "prefixes", help, reader);
    }
    let what = "prefixes and conditions";
    refuse(&trail, crowd, what, fewer_conditions(), reader);
}

/// Conditions of routes by expression, as far as those are asked together.
fn check_expressions(index: usize, site: &Site, reader: &mut Reader<'_>) {
    let mut crowds: HashMap<Option<Place<'_>>, usize> = HashMap::new();
    for (number, route) in site.routes.iter().enumerate().filter(|(_, it)| it.regex.is_some()) {
        let crowd = crowds.entry(route.place()).or_default();
        *crowd += conditions(&route.when);
        if *crowd > CROWD_MAX {
            let trail = format!("site.{index}.route.{number}.regex");
            return refuse(&trail, *crowd, "conditions", fewer_conditions(), reader);
        }
    }
}

/// The first that is too many of those that one path may have to be held against, and how many these are by their weights.
fn crowd_of<'k>(weights: impl Iterator<Item = (PathKey<'k>, usize)>) -> Option<(usize, usize)> {
    let weights = weights.enumerate();
    // Each stands there as often as it counts; of one that is too many alone a few more say so.
    let repeated = weights.flat_map(|(number, (key, weight))| {
        std::iter::repeat_n((number, key), weight.min(CROWD_MAX + 1))
    });
    let (numbers, keys): (Vec<usize>, Vec<PathKey<'k>>) = repeated.unzip();
    let crowd = RuleIndex::new(keys).largest_crowd();
    let first = crowd.get(CROWD_MAX).and_then(|at| numbers.get(*at))?;
    Some((*first, crowd.len()))
}

/// Each path is held against all patterns that an index cannot tell apart, to its end.
fn check_rules(trail: &str, redirects: &[Redirect], rewrites: &[Rewrite], reader: &mut Reader<'_>) {
    let redirects: Vec<PathKey<'_>> = redirects.iter().map(|it| it.choice().key()).collect();
    let rewrites: Vec<PathKey<'_>> = rewrites.iter().map(|it| it.choice().key()).collect();
    for (setting, keys) in [("redirect", redirects), ("rewrite", rewrites)] {
        if let Some((number, crowd)) = crowd_of(keys.into_iter().map(|key| (key, 1))) {
            let rule = format!("{trail}.{setting}.{number}");
            let from = format!("{rule}.from");
            let setting = if reader.is_written(&from) { from } else { rule };
            refuse(&setting, crowd, "patterns", fewer(OWN_ENDS), reader);
        }
    }
}

fn check_patterns(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    for (name, crowd) in [
        ("deny_files", DenyPatterns::new(&route.deny_files).crowd()),
        ("fallback_except", DenyPatterns::new(&route.fallback_except).crowd()),
        ("cache_control", CacheControl::new(&route.cache_control).crowd()),
    ] {
        if crowd > CROWD_MAX {
            let setting = format!("{trail}.{name}");
            refuse(&setting, crowd, "patterns", fewer(OWN_ENDS), reader);
        }
    }
}

fn fewer(cheap: &str) -> String {
    format!("write at most {CROWD_MAX} of them; {cheap} cost little, however many there are")
}

fn fewer_conditions() -> String {
    format!(
        "write at most {CROWD_MAX} of them; one of a `[[map]]` asks about as many texts as you like"
    )
}

fn refuse(setting: &str, crowd: usize, what: &str, help: String, reader: &mut Reader<'_>) {
    if let Some(place) = reader.place(setting) {
        let message = format!("one path may have to be held against {crowd} {what}, one by one");
        reader.report_at(&place, message, Help::act(help));
    }
}

/// The weight of a look at the disk.
const FILE_WEIGHT: usize = 10;
const OWN_ENDS: &str = "those with a beginning or an end of their own";
