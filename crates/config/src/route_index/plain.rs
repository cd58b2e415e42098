//! The order of routes, said as plainly as it can be: what tests and the fuzz target hold the index against.

use crate::model::{Place, Route};

/// The number of the route for a path, of those whose conditions hold, in time that grows with their number.
pub fn find_plainly(routes: &[Route], path: &str, holds: impl Fn(usize) -> bool) -> Option<usize> {
    let all: Vec<(usize, &Route)> =
        routes.iter().enumerate().filter(|(number, _)| holds(*number)).collect();
    let fits = |route: &Route| route.regex.as_ref().is_none_or(|it| it.fits(path));
    let plain = |route: &Route| route.regex.is_none();
    let exact = |route: &Route| matches!(route.place(), Some(Place::Exact(it)) if it == path);
    if let Some((number, _)) = all.iter().find(|(_, it)| plain(it) && exact(it)) {
        return Some(*number);
    }
    let mut longest: Option<(usize, &Route)> = None;
    for (number, route) in all.iter().copied().filter(|(_, it)| plain(it)) {
        let Some(place) = route.place().filter(|it| it.has(path)) else { continue };
        if matches!(place, Place::Exact(_)) {
            continue;
        }
        let rank = |place: Place<'_>| (place.text().len(), matches!(place, Place::Prefix(_)));
        if longest
            .is_none_or(|(_, other)| other.place().is_none_or(|other| rank(place) > rank(other)))
        {
            longest = Some((number, route));
        }
    }
    if let Some((_, outer)) = longest {
        let inner =
            all.iter().find(|(_, it)| !plain(it) && it.place() == outer.place() && fits(it));
        if let Some((number, _)) = inner {
            return Some(*number);
        }
    }
    let is_first = longest.is_some_and(|(_, route)| route.first);
    let free = all.iter().find(|(_, it)| it.place().is_none() && fits(it) && !is_first);
    free.map(|(number, _)| *number).or(longest.map(|(number, _)| number))
}
