//! What one worker finds out about the files of a route, told to all: whatever a client has seen from one, no other answers by less.
//!
//! Workers remember by themselves, and compare a number with each answer. A discovery raises it, so that all look again before they
//! answer by what they remember.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of discoveries about the files of a route.
#[derive(Debug, Default)]
pub struct Generation {
    number: AtomicU64,
    /// The last ones, as hashes: the worker that makes the same one after another is no news.
    told: [AtomicU64; TOLD],
}

impl Generation {
    /// The number now.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Tells that something is in another state than was remembered: one that it is never in again, or that names the one before.
    /// Returns the number that holds for a look that began at `since`, which has seen this discovery, but none that others made
    /// meanwhile.
    pub fn tell(&self, what: impl Hash, state: impl Hash, since: u64) -> u64 {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let (place, state) = (hasher.hash_one(&what), hasher.hash_one((&what, &state)));
        let place = usize::try_from(place).unwrap_or_default() % TOLD;
        let is_told =
            self.told.get(place).is_some_and(|told| told.swap(state, Ordering::AcqRel) == state);
        match is_told {
            false if self.number.fetch_add(1, Ordering::AcqRel) == since => since + 1,
            _ => since,
        }
    }
}

/// Discoveries that workers make about each other's at the same time, about.
const TOLD: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discovery_is_news_once() {
        let generation = Generation::default();
        assert_eq!(generation.tell("a", 1, 0), 1);
        assert_eq!(generation.tell("a", 1, 0), 0, "made by another worker that looked before");
        assert_eq!(generation.now(), 1);
        assert_eq!(generation.tell("a", 2, 0), 0, "there was another one meanwhile");
        assert_eq!(generation.tell("b", 1, 2), 3);
        assert_eq!(generation.tell("a", 1, 3), 4, "it may have been so before");
        assert_eq!(generation.now(), 4);
    }
}
