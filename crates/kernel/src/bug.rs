//! An impossible state, found all the same: an error that ends one connection, is counted by file, and is told once a minute.
//!
//! `bug!` is for what our own code rules out. A state that a peer, an operator or the kernel may
//! cause has an error of its own.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::process::monotonic_time_coarse;

/// Notes that this line was reached, which the text says why it cannot be. Its value is a [`Bug`](crate::bug::Bug), for the caller to hand
/// up; where nothing can be handed up, as in a `drop`, it is counted and told all the same.
#[macro_export]
macro_rules! bug {
    ($what:literal) => {{
        static PLACE: $crate::bug::BugPlace = $crate::bug::BugPlace::new(file!(), line!(), $what);
        PLACE.reached()
    }};
}

/// The error of an impossible state. Whatever it ends, the process goes on.
#[derive(Clone, Copy)]
pub struct Bug(&'static BugPlace);

/// A line that cannot be reached, and how often it was.
#[derive(Debug)]
pub struct BugPlace {
    file: &'static str,
    line: u32,
    what: &'static str,
    count: AtomicU64,
    /// When the log may have it again, in seconds of the clock.
    told_next: AtomicU64,
}

/// Bounded by the lines that have a `bug!`: each puts itself here once.
static REACHED: Mutex<Vec<&'static BugPlace>> = Mutex::new(Vec::new());

impl BugPlace {
    /// For `bug!` alone.
    #[must_use]
    pub const fn new(file: &'static str, line: u32, what: &'static str) -> Self {
        Self { file, line, what, count: AtomicU64::new(0), told_next: AtomicU64::new(0) }
    }

    /// Counts it, and tells of it if it was not told in the last minute.
    #[cold]
    pub fn reached(&'static self) -> Bug {
        let bug = Bug(self);
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            REACHED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        }
        if self.is_due(monotonic_time_coarse().as_secs()) {
            tracing::error!("{bug}; {TOLD}");
        }
        panic_where_wanted(bug);
        bug
    }

    fn is_due(&self, now: u64) -> bool {
        let next = self.told_next.load(Ordering::Relaxed);
        let relaxed = Ordering::Relaxed;
        now >= next
            && self.told_next.compare_exchange(next, now + TOLD_EACH, relaxed, relaxed).is_ok()
    }
}

/// Returns the number of times each file's lines were reached, if any was.
#[must_use]
pub fn counts() -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for place in REACHED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        *counts.entry(place.file).or_default() += place.count.load(Ordering::Relaxed);
    }
    counts
}

/// While this lives, a `bug!` of the same thread panics, so that fuzzing and property tests find it.
#[must_use]
pub fn panics() -> Panics {
    PANICS.set(true);
    Panics(PhantomData)
}

/// See [`panics`].
#[derive(Debug)]
pub struct Panics(PhantomData<*const ()>);

impl Drop for Panics {
    fn drop(&mut self) {
        PANICS.set(false);
    }
}

#[expect(clippy::panic, reason = "only where a test has asked for it")]
fn panic_where_wanted(bug: Bug) {
    if PANICS.get() {
        panic!("{bug}");
    }
}

thread_local! {
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

impl fmt::Display for Bug {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BugPlace { file, line, what, .. } = self.0;
        write!(formatter, "a bug of kettle: {what} ({file}:{line})")
    }
}

impl fmt::Debug for Bug {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for Bug {}

impl From<Bug> for io::Error {
    fn from(bug: Bug) -> Self {
        Self::other(bug)
    }
}

const TOLD: &str =
    "what needed it was given up, all else goes on; please report it; said once a minute at most";

/// In seconds.
const TOLD_EACH: u64 = 60;

#[cfg(test)]
mod tests;
