//! Which route of a site answers a request: the order in which they are asked, which is nginx's.
//!
//! | asked | for |
//! |---|---|
//! | 1. `exact` | this path |
//! | 2. the longest of `prefix` and `text_prefix` | what is asked next, and last |
//! | 3. the `regex` routes of that place, in the order of the file | paths below it |
//! | 4. unless that place is `first`: the `regex` routes of the site, in the order of the file | all paths |
//! | 5. that place itself | |
//!
//! A route whose conditions do not hold is passed over as if it were not written.

mod plain;

use std::collections::HashMap;

use crate::model::{Place, Route};
use crate::rule_index::RuleIndex;
use crate::setting::{Expressions, TooLarge};
#[doc(hidden)]
pub use plain::find_plainly;

/// The routes of a site, by the paths they are for. There may be ten thousand.
#[derive(Clone, Debug, Default)]
pub struct RouteIndex {
    /// Those of exact paths first, and then from the longest to the shortest.
    places: Box<[OnePlace]>,
    index: RuleIndex,
    /// Expressions that are bound to no place; none for most sites.
    free: Option<Box<Numbered>>,
}

/// The routes of one place.
#[derive(Clone, Debug)]
struct OnePlace {
    text: Box<str>,
    kind: Kind,
    /// The first route without an expression that it has.
    route: u32,
    /// The other parts; nothing for most places.
    more: Option<Box<More>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Exact,
    Prefix,
    TextPrefix,
}

/// The parts of few places.
#[derive(Clone, Debug, Default)]
struct More {
    /// Further routes without an expression, which are asked where conditions do not hold.
    routes: Vec<u32>,
    /// The routes after which expressions of the site are not asked.
    first: Vec<u32>,
    bound: Numbered,
}

/// Routes by expression.
#[derive(Clone, Debug, Default)]
struct Numbered {
    routes: Vec<u32>,
    expressions: Expressions,
}

impl RouteIndex {
    /// The index of routes, which are numbered in the order of the file.
    ///
    /// # Errors
    /// The expressions of one place, or of none, are too large together.
    pub fn of(routes: &[Route]) -> Result<Self, TooLarge> {
        let mut places: Vec<OnePlace> = Vec::new();
        let mut known: HashMap<(Kind, &str), usize> = HashMap::new();
        for (number, route) in (0..).zip(routes) {
            let Some(place) = route.place().filter(|_| route.regex.is_none()) else { continue };
            let key = (Kind::of(place), place.text());
            let entry = *known.entry(key).or_insert_with(|| {
                places.push(OnePlace {
                    text: key.1.into(),
                    kind: key.0,
                    route: number,
                    more: None,
                });
                places.len() - 1
            });
            let Some(entry) = places.get_mut(entry) else { continue };
            if entry.route != number {
                entry.more().routes.push(number);
            }
            if route.first {
                entry.more().first.push(number);
            }
        }
        let mut by_expression: HashMap<Option<(Kind, &str)>, Vec<u32>> = HashMap::new();
        for (number, route) in (0..).zip(routes).filter(|(_, route)| route.regex.is_some()) {
            let key = route.place().map(|place| (Kind::of(place), place.text()));
            by_expression.entry(key).or_default().push(number);
        }
        let mut free = None;
        for (key, numbers) in by_expression {
            let numbered = Numbered::of(routes, numbers)?;
            match key.map(|key| known.get(&key).and_then(|number| places.get_mut(*number))) {
                None => free = Some(Box::new(numbered)),
                Some(Some(place)) => place.more().bound = numbered,
                Some(None) => {}
            }
        }
        places
            .sort_by_key(|it| (it.kind != Kind::Exact, std::cmp::Reverse(it.text.len()), it.kind));
        let index = RuleIndex::new(places.iter().map(|it| it.place().key()));
        Ok(Self { places: places.into(), index, free })
    }

    /// The number of the route for a path, of those whose conditions hold.
    pub fn find(&self, path: &str, mut holds: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut found: Option<(&OnePlace, u32)> = None;
        self.index.first(path, |number| {
            let Some(place) = self.places.get(number).filter(|place| place.has(path)) else {
                return false;
            };
            found = place.routes().find(|route| holds(*route as usize)).map(|route| (place, route));
            found.is_some()
        });
        let Some((place, route)) = found else {
            return self.free(path, &mut holds).map(|free| free as usize);
        };
        let mut answering = None;
        if let Some(more) = &place.more {
            answering = more.bound.find(path, &mut holds);
        }
        let is_last = place.kind == Kind::Exact
            || place.more.as_ref().is_some_and(|more| more.first.contains(&route));
        if answering.is_none() && !is_last {
            answering = self.free(path, &mut holds);
        }
        Some(answering.unwrap_or(route) as usize)
    }

    fn free(&self, path: &str, holds: impl FnMut(usize) -> bool) -> Option<u32> {
        self.free.as_ref()?.find(path, holds)
    }
}

impl Kind {
    fn of(place: Place<'_>) -> Self {
        match place {
            Place::Exact(_) => Self::Exact,
            Place::Prefix(_) => Self::Prefix,
            Place::TextPrefix(_) => Self::TextPrefix,
        }
    }
}

impl OnePlace {
    fn place(&self) -> Place<'_> {
        match self.kind {
            Kind::Exact => Place::Exact(&self.text),
            Kind::Prefix => Place::Prefix(&self.text),
            Kind::TextPrefix => Place::TextPrefix(&self.text),
        }
    }

    fn has(&self, path: &str) -> bool {
        self.place().has(path)
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Its routes without an expression, in the order of the file.
    fn routes(&self) -> impl Iterator<Item = u32> {
        let more = self.more.iter().flat_map(|more| more.routes.iter().copied());
        std::iter::once(self.route).chain(more)
    }
}

impl Numbered {
    fn of(all: &[Route], routes: Vec<u32>) -> Result<Self, TooLarge> {
        let own = routes.iter().filter_map(|number| all.get(*number as usize));
        let expressions = Expressions::new(own.filter_map(|route| route.regex.as_ref()))?;
        Ok(Self { routes, expressions })
    }

    fn find(&self, path: &str, mut holds: impl FnMut(usize) -> bool) -> Option<u32> {
        let numbers = self.expressions.fitting(path);
        let mut routes = numbers.filter_map(|number| self.routes.get(number).copied());
        routes.find(|route| holds(*route as usize))
    }
}

#[cfg(test)]
mod tests;
