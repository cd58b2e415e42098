//! Names that do not validate: one that has failed for a day is left out of the orders of its site, and tried alone.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{DAY, HOUR};

/// The names of a site that did not validate when they were last tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingNames(BTreeMap<String, Failing>);

/// A name that does not validate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    since: SystemTime,
    tried: SystemTime,
    times: u32,
    /// The last words of the authority.
    pub reason: String,
    /// True if it is left out of orders.
    is_out: bool,
}

impl FailingNames {
    /// The names that are ordered, of all that a site has: without those that are left out, unless none is left.
    pub(super) fn to_order(&self, names: &[String]) -> Vec<String> {
        let is_in = |name: &&String| self.0.get(*name).is_none_or(|failing| !failing.is_out);
        let left: Vec<String> = names.iter().filter(is_in).cloned().collect();
        if left.is_empty() { names.to_vec() } else { left }
    }

    /// Notes a name that did not validate.
    pub(super) fn failed(&mut self, name: &str, reason: &str, now: SystemTime) {
        let new =
            || Failing { since: now, tried: now, times: 0, reason: String::new(), is_out: false };
        let failing = self.0.entry(name.to_owned()).or_insert_with(new);
        failing.tried = now;
        failing.times = failing.times.saturating_add(1);
        reason.clone_into(&mut failing.reason);
        let time = now.duration_since(failing.since).unwrap_or_default();
        failing.is_out |= time >= DAY && failing.times >= TIMES_MIN;
    }

    /// Notes a name that did validate.
    pub(super) fn validated(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Drops what a site has no longer.
    pub(super) fn retain(&mut self, names: &[String]) {
        self.0.retain(|name, _| names.contains(name));
    }

    /// The name that is to be tried alone next, and when.
    pub(super) fn next_alone<'a>(
        &'a self,
        names: &'a [String],
        now: SystemTime,
    ) -> Option<(&'a str, SystemTime)> {
        let out = self.left_out(names);
        // A clock that was far ahead must not have the last word.
        let next = out.map(|(name, failing)| (name, failing.tried.min(now) + ALONE_AGAIN));
        next.min_by_key(|(_, at)| *at)
    }

    /// The names that are left out of orders.
    pub fn left_out<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = (&'a str, &'a Failing)> + 'a {
        let is_one_left = names.iter().any(|name| self.0.get(name).is_none_or(|it| !it.is_out));
        let out = names.iter().filter(move |_| is_one_left);
        let out = out.filter_map(|name| self.0.get_key_value(name));
        out.filter(|(_, failing)| failing.is_out).map(|(name, failing)| (name.as_str(), failing))
    }
}

/// So often at least a name has failed that is left out.
const TIMES_MIN: u32 = 3;

/// The interval at which a name that is left out is tried alone.
const ALONE_AGAIN: Duration = Duration::from_secs(6 * HOUR.as_secs());
