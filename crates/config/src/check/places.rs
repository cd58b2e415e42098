//! The places of routes: each is written once, and none that is guarded stands open beside it.

use std::collections::{HashMap, HashSet};

use crate::diagnostic::Help;
use crate::model::{PLACES, Place, PlaceKey, Route, Site, Subject};
use crate::read::Reader;

/// Records every mistake of where the routes of a site, and what is asked before them, stand.
pub(super) fn check(index: usize, site: &Site, reader: &mut Reader<'_>) {
    for (number, before) in site.before.iter().enumerate() {
        check_words(&format!("site.{index}.before.{number}"), before.regex.is_some(), reader);
    }
    let mut known: HashMap<PlaceKey<'_>, usize> = HashMap::new();
    let mut unconditional: HashSet<PlaceKey<'_>> = HashSet::new();
    // From the last to the first: what stands behind a route decides what it may be.
    for (number, route) in site.routes.iter().enumerate().rev() {
        let trail = format!("site.{index}.route.{number}");
        check_words(&trail, route.regex.is_some(), reader);
        check_first(&trail, route, reader);
        check_cached(&trail, route, reader);
        // It is another place than the one that it has for want of what was meant.
        if PLACES
            .iter()
            .map(|name| format!("{trail}.{name}"))
            .any(|it| reader.is_written(&it) && reader.place(&it).is_none())
        {
            continue;
        }
        let behind = known.insert(route.key(), number);
        if let Some(behind) = behind.filter(|_| route.when.is_empty()) {
            refuse_twin(index, (number, behind), reader);
        }
        match route.when.is_empty() {
            true => _ = unconditional.insert(route.key()),
            false if route.is_guarded() && !unconditional.contains(&route.key()) => {
                refuse_open(&trail, reader);
            }
            false => {}
        }
    }
    check_twins(index, site, reader);
    let plain: HashSet<Place<'_>> =
        site.routes.iter().filter(|route| route.regex.is_none()).filter_map(Route::place).collect();
    for (number, route) in site.routes.iter().enumerate().filter(|(_, it)| it.regex.is_some()) {
        let Some(own) = route.place().filter(|own| !plain.contains(own)) else { continue };
        if matches!(own, Place::Exact(_)) {
            continue;
        }
        if let Some(place) = reader.place(&format!("site.{index}.route.{number}.regex")) {
            let message =
                "no route without a `regex` has this place, so it is never the longest".to_owned();
            let help = "write [[site.route]] with the same prefix as well";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// One place, one way to say it.
fn check_words(trail: &str, has_regex: bool, reader: &mut Reader<'_>) {
    let written = |name: &&&str| reader.is_written(&format!("{trail}.{name}"));
    let mut places = ["prefix", "text_prefix", "exact"].iter().filter(written);
    let first = places.next();
    let second = places.next();
    if let (Some(first), Some(second)) = (first, second)
        && let Some(place) = reader.place(&format!("{trail}.{second}"))
    {
        let message = format!("`{first}` says the place as well");
        reader.report_at(&place, message, Help::act("remove one of both"));
    } else if first == Some(&"exact")
        && has_regex
        && let Some(place) = reader.place(&format!("{trail}.regex"))
    {
        let message = "`exact` is one path, so there is nothing to choose".to_owned();
        reader.report_at(&place, message, Help::act("remove one of both"));
    }
}

/// Only prefixes come before expressions of the site.
fn check_first(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    let is_prefix = matches!(route.place(), Some(Place::Prefix(_) | Place::TextPrefix(_)));
    if route.first
        && (!is_prefix || route.regex.is_some())
        && let Some(place) = reader.place(&format!("{trail}.first"))
    {
        let message = match route.regex.is_some() {
            true => "`first` is said of a prefix: expressions are asked in the order of the file",
            false => "`first` is said of a prefix: an exact path comes before all else anyway",
        };
        reader.report_at(&place, message.to_owned(), Help::act("remove it"));
    }
}

/// A stored response has the URL as its key, so nothing else may decide who gets it.
fn check_cached(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    if route.cache.is_none() {
        return;
    }
    for (number, condition) in route.when.iter().enumerate() {
        let is_of_url = condition.subjects().all(|subject: Subject<'_>| subject.is_of_url());
        if let Some(place) = reader.place(&format!("{trail}.when.{number}")).filter(|_| !is_of_url)
        {
            let message =
                "responses of this route are kept by their URL, and this condition may tell apart what has one key".to_owned();
            let help = "write a condition of method or scheme, or a route without `cache`";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

fn refuse_twin(index: usize, (number, behind): (usize, usize), reader: &mut Reader<'_>) {
    let place_of = |number: usize, reader: &Reader<'_>| {
        let trail = format!("site.{index}.route.{number}");
        let named = PLACES.iter().find_map(|name| reader.place(&format!("{trail}.{name}")));
        named.or_else(|| reader.place(&trail))
    };
    let (Some(first), Some(place)) = (place_of(number, reader), place_of(behind, reader)) else {
        return;
    };
    let line = reader.source().position(first.start).line;
    let message = format!("the route on {} has the same place", reader.line(line));
    let help = "write another place for one of both, or `when` in the first";
    reader.report_at(&place, message, Help::act(help));
}

/// If the conditions of a guarded route do not hold, a shorter place would answer.
fn refuse_open(trail: &str, reader: &mut Reader<'_>) {
    if let Some(place) = reader.place(&format!("{trail}.when")) {
        let message =
            "where this does not hold, another route answers without what this one asks of clients"
                .to_owned();
        let help = "write the same place without `when` behind it, with what holds then: deny = [\"0.0.0.0/0\", \"::/0\"] keeps all out";
        reader.report_at(&place, message, Help::act(help));
    }
}

/// Between a guarded route with `when` and the one that answers where that does not hold stands no other that asks for less.
fn check_twins(index: usize, site: &Site, reader: &mut Reader<'_>) {
    let routes = &site.routes;
    // There may be ten thousand: their numbers by what they are asked for.
    let mut plain: HashMap<PlaceKey<'_>, Vec<usize>> = HashMap::new();
    let mut expressions: HashMap<Option<Place<'_>>, Vec<usize>> = HashMap::new();
    for (number, route) in routes.iter().enumerate() {
        if route.when.is_empty() {
            plain.entry(route.key()).or_default().push(number);
        }
        if route.regex.is_some() {
            expressions.entry(route.place()).or_default().push(number);
        }
    }
    let guarded = |it: &(usize, &Route)| it.1.is_guarded() && !it.1.when.is_empty();
    for (number, own) in routes.iter().enumerate().filter(guarded) {
        let Some(twin) = behind(plain.get(&own.key()), number).next() else { continue };
        let asks_less = |it: &usize| {
            routes.get(*it).is_some_and(|it| {
                it.key() != own.key() && !it.refuses_all() && !it.has_guard_of(own)
            })
        };
        let is_first = |it: usize| routes.get(it).is_some_and(|it| it.first);
        let taker = match own.regex {
            // If the first of both is asked, no expression is; if the second is, all are.
            None if own.first && !is_first(twin) => {
                expressions.get(&None).into_iter().flatten().copied().find(asks_less)
            }
            None => None,
            Some(_) => behind(expressions.get(&own.place()), number)
                .take_while(|between| *between < twin)
                .find(asks_less),
        };
        if let Some(taker) = taker {
            refuse_taken(index, (number, taker), own.first, reader);
        }
    }
}

/// Those of the numbers, which only grow, that are behind one.
fn behind(numbers: Option<&Vec<usize>>, number: usize) -> impl Iterator<Item = usize> {
    let numbers = numbers.map_or(&[][..], Vec::as_slice);
    let at = numbers.partition_point(|it| *it <= number);
    numbers.iter().skip(at).copied()
}

fn refuse_taken(
    index: usize,
    (number, taker): (usize, usize),
    is_first: bool,
    reader: &mut Reader<'_>,
) {
    let place_of = |setting: String| reader.place(&setting);
    let place = place_of(format!("site.{index}.route.{number}.when"));
    let other = place_of(format!("site.{index}.route.{taker}.regex"));
    let (Some(place), Some(other)) = (place, other) else { return };
    let line = reader.line(reader.source().position(other.start).line);
    let message = format!(
        "where this does not hold, the expression on {line} comes before the route of the same place without `when`, and asks for less"
    );
    let help = match is_first {
        true => "write first = true in the route without `when`, too",
        false => "write the same place without `when` before that expression",
    };
    reader.report_at(&place, message, Help::act(help));
}
