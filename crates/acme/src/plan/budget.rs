//! The number of orders a site may have. It outlives renewals, restarts, what an operator says and
//! what a configuration says: authorities count on, too.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{DAY, MINUTE};

/// The orders that a site has used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// The newest orders that were begun, with the directories of their authorities.
    begun: Vec<(String, SystemTime)>,
    /// The certificate that was issued last.
    last: Option<Issue>,
    /// Authorities that want to be left alone, and until when.
    left_alone: Vec<(String, SystemTime)>,
}

/// The purpose of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purpose {
    /// The names.
    pub names: Vec<String>,
    /// The kind of key.
    pub key: String,
}

/// A certificate that was issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issue {
    at: SystemTime,
    lifetime: Duration,
    /// Before this there is no other one for the same purpose without a special reason.
    next_from: SystemTime,
    directory: String,
    purpose: Purpose,
    /// True if it came before the time of its predecessor, because the authority wanted that.
    pub(super) is_hurried: bool,
}

impl Budget {
    /// Notes that an order is about to be begun.
    pub(super) fn begins(&mut self, directory: &str, now: SystemTime) {
        let period = self.period();
        self.begun.retain(|(_, begun)| distance(*begun, now) < period);
        if self.begun.len() >= ORDERS_MAX {
            self.begun.remove(0);
        }
        self.begun.push((directory.to_owned(), now));
    }

    /// Notes a certificate that is valid between these moments.
    pub(super) fn issued(
        &mut self,
        (not_before, not_after): (SystemTime, SystemTime),
        directory: &str,
        purpose: Purpose,
        is_hurried: bool,
        now: SystemTime,
    ) {
        let lifetime = not_after.duration_since(not_before).unwrap_or_default();
        let left = not_after.duration_since(now).unwrap_or_default();
        // An interval that a wrong clock makes short comes no later than at half of the time that is left.
        let apart = (lifetime / APART).max(APART_MIN).min(left / 2);
        let directory = directory.to_owned();
        let next_from = now + apart;
        self.last = Some(Issue { at: now, lifetime, next_from, directory, purpose, is_hurried });
    }

    /// Notes that an authority wants to be left alone.
    pub(super) fn leave_alone(&mut self, directory: &str, until: SystemTime, now: SystemTime) {
        self.left_alone.retain(|(other, until)| other != directory && now < *until);
        self.left_alone.truncate(LEFT_ALONE_MAX);
        self.left_alone.push((directory.to_owned(), until));
    }

    /// The certificate that was issued last, unless a clock that is right now says that this is to come.
    pub(super) fn last(&self, now: SystemTime) -> Option<&Issue> {
        self.last.as_ref().filter(|last| last.at <= now)
    }

    /// From when on an order may be begun at this directory; nothing if now.
    pub(super) fn free_from(
        &self,
        directory: &str,
        is_asked_for: bool,
        now: SystemTime,
    ) -> Option<SystemTime> {
        let period = self.period();
        let begun = self.begun.iter().map(|(_, begun)| *begun);
        let mut begun: Vec<SystemTime> =
            begun.filter(|begun| distance(*begun, now) < period).collect();
        begun.sort_unstable();
        // Those that an operator wants leave some for renewals.
        let most = if is_asked_for { ORDERS_ASKED_FOR_MAX } else { ORDERS_MAX };
        let counts = begun.len().checked_sub(most).and_then(|at| begun.get(at));
        let free = counts.map(|begun| *begun + period);
        let alone = self.left_alone.iter().find(|(other, _)| other == directory);
        // A clock that was far ahead must not have the last word.
        let alone = alone.map(|(_, until)| (*until).min(now + LEFT_ALONE_TIME_MAX));
        free.max(alone).filter(|free| now < *free)
    }

    /// When orders were begun at this directory.
    pub fn begun_at<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = SystemTime> + 'a {
        self.begun.iter().filter(move |(other, _)| other == directory).map(|(_, begun)| *begun)
    }

    /// The time in which orders are counted. Certificates of minutes need more of them.
    fn period(&self) -> Duration {
        self.last.as_ref().map_or(DAY, |last| DAY.min(last.lifetime * LIFETIMES_COUNTED))
    }
}

impl Issue {
    /// True if it was issued for this, by an authority that may.
    pub(super) fn is_for(&self, purpose: &Purpose, may_issue: impl Fn(&str) -> bool) -> bool {
        self.purpose == *purpose && may_issue(&self.directory)
    }

    /// The moment before which no other one comes without a special reason.
    pub(super) fn next_from(&self) -> SystemTime {
        self.next_from
    }
}

/// Returns the distance of two moments: a moment that a clock set back has left in the future does not count for ever.
pub(super) fn distance(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|error| error.duration())
}

/// Orders of a site in a day.
pub(super) const ORDERS_MAX: usize = 20;

/// Those of them that may be for an operator who wants new certificates.
const ORDERS_ASKED_FOR_MAX: usize = ORDERS_MAX / 2;

/// The part of a lifetime that is between two certificates for the same purpose,
const APART: u32 = 4;
/// and the least time.
const APART_MIN: Duration = Duration::from_secs(10 * MINUTE.as_secs());

/// If a certificate lives for less than four hours, orders are counted in six of its lifetimes.
const LIFETIMES_COUNTED: u32 = 6;

/// Authorities of a site that want to be left alone.
const LEFT_ALONE_MAX: usize = 16;

/// An authority may want more patience than anybody has.
pub(super) const LEFT_ALONE_TIME_MAX: Duration = Duration::from_hours(48);
