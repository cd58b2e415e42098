//! Failures with a site's certificate, and how long nothing is tried because of them.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::budget::LEFT_ALONE_TIME_MAX;
use super::{DAY, HOUR, MINUTE, REST_MAX, SiteWish, Standing, fraction};

/// The failures since the last success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The number of failures.
    pub count: u32,
    /// The number of failures in turn at the authority that is asked.
    pub in_turn: u32,
    /// Which of the authorities is asked.
    pub authority: usize,
    /// Before this nothing is tried.
    pub wait_until: Option<SystemTime>,
    /// True if the test directory is to be asked first.
    pub is_rehearsing: bool,
    /// The number of validations that failed: each time another kind of challenge comes first.
    pub validations: u32,
    /// The last reason, as it was told.
    pub reason: Option<String>,
}

/// Why a try led to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The authority cannot be reached, is not well, or wants to be left alone.
    Authority,
    /// A name did not validate.
    Validation,
    /// The order was taken, and what came of it cannot be used; or the authority refuses what it is asked for.
    Result,
    /// Somebody has to do something at the authority's.
    Operator,
    /// The disk.
    Here,
    /// Nobody: an order that was to go on had come to its end meanwhile. The next one begins at once.
    Void,
}

/// The failure of an attempt.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// The reason.
    pub reason: String,
    /// The directory that was asked.
    pub directory: String,
    /// The time that authority wants to be left alone.
    pub retry_after: Option<SystemTime>,
    /// The names that did not validate, each with its reason.
    pub refused: Vec<(String, String)>,
    /// Those that did.
    pub validated: Vec<String>,
}

impl Standing {
    /// Notes that a try led to nothing, and for how long nothing is tried.
    pub fn failed(
        &mut self,
        wish: &SiteWish<'_>,
        (blame, trouble): (Blame, Trouble),
        now: SystemTime,
        random: u64,
    ) {
        if blame == Blame::Void {
            self.order = None;
            return;
        }
        let are_others_ordered = self.note_names(wish, &trouble, now);
        let failures = &mut self.failures;
        let step = usize::try_from(failures.count).unwrap_or(usize::MAX);
        let pause = PAUSES.get(step).or(PAUSES.last()).copied().unwrap_or(REST_MAX);
        let pause = match blame {
            // Without the names that were in the way it is another order.
            _ if are_others_ordered => MINUTE,
            Blame::Authority | Blame::Validation | Blame::Here | Blame::Void => pause,
            Blame::Result => pause.max(RESULT_PAUSE),
            Blame::Operator => pause.max(DAY),
        };
        // From four to six fifths of it.
        let pause = pause.mul_f64(0.8 + 0.4 * fraction(random));
        let left = self.installed.as_ref().and_then(|it| it.not_after.duration_since(now).ok());
        // A certificate that ends soon is not given up for lack of patience.
        let pause = left.map_or(pause, |left| pause.min((left / 2).max(MINUTE)));
        failures.count = failures.count.saturating_add(1);
        failures.in_turn = failures.in_turn.saturating_add(1);
        failures.reason = Some(trouble.reason);
        if blame == Blame::Validation {
            failures.validations = failures.validations.saturating_add(1);
            failures.is_rehearsing = !are_others_ordered;
        }
        let is_left = failures.in_turn >= TRIES_IN_TURN && wish.authorities.len() > 1;
        let mut until = now + pause;
        let retry_after = trouble.retry_after.map(|after| after.min(now + LEFT_ALONE_TIME_MAX));
        if is_left {
            failures.in_turn = 0;
            failures.authority = failures
                .authority
                .saturating_add(1)
                .checked_rem(wish.authorities.len())
                .unwrap_or(0);
        } else if let Some(after) = retry_after {
            until = until.max(after);
        }
        failures.wait_until = Some(until);
        // That holds whoever wants an order the next time.
        if let Some(after) = retry_after {
            self.budget.leave_alone(&trouble.directory, after, now);
        }
    }

    /// Notes which names validated and which did not. Says if other names are ordered from now on.
    fn note_names(&mut self, wish: &SiteWish<'_>, trouble: &Trouble, now: SystemTime) -> bool {
        let before = self.failing.to_order(wish.names);
        self.failing.retain(wish.names);
        trouble.validated.iter().for_each(|name| self.failing.validated(name));
        for (name, reason) in &trouble.refused {
            if wish.names.contains(name) {
                self.failing.failed(name, reason, now);
            }
        }
        self.failing.to_order(wish.names) != before
    }

    /// Notes what came of a name that was tried alone.
    pub fn tried_alone(&mut self, name: &str, refused: Option<&str>, now: SystemTime) {
        match refused {
            None => self.failing.validated(name),
            Some(reason) => self.failing.failed(name, reason, now),
        }
    }
}

/// The time nothing is tried after the first failure, the second one and so on.
const PAUSES: [Duration; 8] = [
    MINUTE,
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
    Duration::from_mins(20),
    HOUR,
    Duration::from_hours(2),
    Duration::from_hours(6),
];

/// The time an order is not repeated that led to what cannot be used.
const RESULT_PAUSE: Duration = Duration::from_hours(6);

/// Failures at an authority before the next one is asked.
const TRIES_IN_TURN: u32 = 3;
