//! The findings of one worker about the files of a route, told to all: whatever a client has seen from one, no other answers by
//! less.
//!
//! Workers remember by themselves, and compare a number with each answer. A discovery raises it, so that all look again before they
//! answer by what they remember.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of discoveries about the files of a route.
#[derive(Debug)]
pub struct Generation {
    route: u64,
    number: AtomicU64,
}

impl Generation {
    /// No discoveries yet about the files of the route with this number.
    pub fn of(route: u64) -> Self {
        Self { route, number: AtomicU64::new(0) }
    }

    /// The number now.
    pub fn now(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Tells in which state something was seen. It is a discovery if any worker was the last to see it in another one, or the worker
    /// that tells it remembers another one (`is_other`) and none has told this one yet. Returns the number that holds for a look that
    /// began at `since`, which has seen this discovery, but none that others made meanwhile.
    pub fn tell(&self, what: impl Hash, state: impl Hash, since: u64, is_other: bool) -> u64 {
        let seen = self.note(what, state);
        let before = place_of(seen).map_or(0, |place| match place.load(Ordering::Acquire) {
            // Most looks find what was there.
            before if before == seen => before,
            _ => place.swap(seen, Ordering::AcqRel),
        });
        let is_news = before != seen && (is_other || is_of_one(before, seen));
        match is_news && self.number.fetch_add(1, Ordering::AcqRel) == since {
            true => since + 1,
            false => since,
        }
    }

    /// The same of what nobody remembers here and is not there: news only if a worker was the last to see it. A client that
    /// asks for what never was there takes no place from what is.
    pub fn tell_gone(&self, what: impl Hash) {
        let seen = self.note(what, GONE);
        let is_news = place_of(seen).is_some_and(|place| {
            let before = place.load(Ordering::Acquire);
            let is_other = before != seen && is_of_one(before, seen);
            is_other && place.swap(seen, Ordering::AcqRel) != seen
        });
        if is_news {
            self.number.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The note that something was seen in a state: one half says what, the other in which state.
    fn note(&self, what: impl Hash, state: impl Hash) -> u64 {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        hasher.hash_one((self.route, what)) & !STATE | hasher.hash_one(state) & STATE
    }
}

/// The place of a note: where there is one of the same thing, or none, or else one that others are of.
fn place_of(note: u64) -> Option<&'static AtomicU64> {
    let set = SEEN.get(usize::try_from(note >> STATE.count_ones()).unwrap_or_default() % SETS)?;
    let is_its = |place: &&AtomicU64| is_of_one(place.load(Ordering::Acquire), note);
    let is_free = |place: &&AtomicU64| place.load(Ordering::Relaxed) == 0;
    let any = || set.get(usize::try_from(note & STATE).unwrap_or_default() % set.len());
    set.iter().find(is_its).or_else(|| set.iter().find(is_free)).or_else(any)
}

/// True if both notes are of the same thing.
fn is_of_one(one: u64, other: u64) -> bool {
    (one ^ other) & !STATE == 0
}

/// The state of what is not there.
pub const GONE: &str = "gone";

/// The half of a note that says in which state something was seen.
const STATE: u64 = u32::MAX as u64;

/// The last sightings, of all routes together: 64 KiB. Where more is seen than there are places for, a discovery of something that its
/// worker did not remember may be missed, and none is made that is not.
static SEEN: [[AtomicU64; 4]; SETS] = [const { [const { AtomicU64::new(0) }; 4] }; SETS];
const SETS: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discovery_is_news_once() {
        let generation = Generation::of(u64::MAX);
        assert_eq!(generation.tell("a", 1, 0, true), 1);
        assert_eq!(
            generation.tell("a", 1, 0, true),
            0,
            "made by another worker that looked before"
        );
        assert_eq!(generation.now(), 1);
        assert_eq!(generation.tell("a", 2, 0, true), 0, "there was another one meanwhile");
        assert_eq!(generation.tell("b", 1, 2, true), 3);
        assert_eq!(generation.tell("a", 1, 3, true), 4, "it may have been so before");
        assert_eq!(generation.now(), 4);
    }

    #[test]
    fn who_remembers_nothing_tells_what_another_has_seen_otherwise() {
        let generation = Generation::of(u64::MAX - 1);
        assert_eq!(generation.tell("a", 1, 0, false), 0, "nobody had seen it");
        assert_eq!(generation.tell("a", 1, 0, false), 0);
        assert_eq!(generation.tell("a", 2, 0, false), 1);
        generation.tell_gone("b");
        assert_eq!(generation.now(), 1);
        for _ in 0..2 {
            generation.tell_gone("a");
            assert_eq!(generation.now(), 2);
        }
        assert_eq!(generation.tell("a", 2, 2, false), 3, "it is back");
    }
}
