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

/// Says that the expressions of a site are too large, at its first.
pub(super) fn refuse_expressions(index: usize, site: &Site, reader: &mut Reader<'_>) {
    let first = site.routes.iter().position(|route| route.regex.is_some());
    let place = first.and_then(|first| reader.place(&format!("site.{index}.route.{first}.regex")));
    if let Some(place) = place {
        let message =
            "the regular expressions of this site take more than 1 MiB together".to_owned();
        reader.report_at(&place, message, Help::act("write fewer, or shorter ones"));
    }
}

/// One place, one way to say it.
fn check_words(trail: &str, has_regex: bool, reader: &mut Reader<'_>) {
    let written = |name: &&&str| reader.is_written(&format!("{trail}.{name}"));
    let mut places = ["prefix", "text_prefix", "exact"].iter().filter(written);
    let (first, second) = (places.next(), places.next());
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

/// What is kept has the URL as its key, so nothing else may decide who gets it.
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

/// Where the conditions of a guarded route do not hold, a shorter place would answer.
fn refuse_open(trail: &str, reader: &mut Reader<'_>) {
    if let Some(place) = reader.place(&format!("{trail}.when")) {
        let message =
            "where this does not hold, another route answers without what this one asks of clients"
                .to_owned();
        let help = "write the same place without `when` behind it, with what holds then: deny = [\"0.0.0.0/0\", \"::/0\"] keeps all out";
        reader.report_at(&place, message, Help::act(help));
    }
}
