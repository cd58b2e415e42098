//! The fetch of an object that nobody reads any more: whether the rest of it is worth its way.

use std::time::{Duration, Instant};

use kettle_cache::Fill;

/// The time for which nobody has read what arrives, and how much of it came meanwhile.
#[derive(Default)]
pub(super) struct AbandonedFetch {
    since: Option<(Instant, u64)>,
}

impl AbandonedFetch {
    /// Ends it if the rest is not worth its way: nobody reads it, and most of it is still to come.
    pub(super) fn is_given_up(&mut self, fill: &Fill, is_draining: bool, is_ahead: bool) -> bool {
        if fill.readers() > 0 {
            self.since = None;
            return false;
        }
        let filled = fill.progress().filled;
        let (since, filled_then) = *self.since.get_or_insert((Instant::now(), filled));
        let unread_bytes = filled - filled_then;
        is_given_up(since.elapsed(), fill.announced_bytes(), filled, unread_bytes, is_draining)
            && (is_draining || !is_ahead)
            && fill.give_up()
    }
}

fn is_given_up(
    unread_for: Duration,
    announced_bytes: Option<u64>,
    filled_bytes: u64,
    unread_bytes: u64,
    is_draining: bool,
) -> bool {
    let is_small = match announced_bytes {
        Some(bytes) => bytes.saturating_sub(filled_bytes) <= filled_bytes.max(UNREAD_BYTES_MAX),
        None => unread_bytes <= UNREAD_BYTES_MAX,
    };
    // A reader that is about to begin has a moment to do so.
    unread_for >= UNREAD_TIME_MIN && (is_draining || !is_small || unread_for >= UNREAD_TIME_MAX)
}

/// A fetch that nobody reads goes on for this long in any case, and no longer than that.
const UNREAD_TIME_MIN: Duration = Duration::from_secs(2);
const UNREAD_TIME_MAX: Duration = Duration::from_mins(5);

/// The bytes that may be missing of an object that nobody reads, if they are more than those there.
const UNREAD_BYTES_MAX: u64 = 16 * 1_024 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_reads_goes_on_where_little_is_missing() {
        const MIB: u64 = 1_024 * 1_024;
        let moment = Duration::ZERO;
        let while_ = UNREAD_TIME_MIN;
        let long = UNREAD_TIME_MAX;
        for (unread_for, announced, filled, unread, is_draining, expected) in [
            (moment, Some(100 * MIB), 0, 0, true, false),
            (while_, Some(100 * MIB), 0, 0, false, true),
            (while_, Some(100 * MIB), 49 * MIB, 0, false, true),
            (while_, Some(100 * MIB), 50 * MIB, 0, false, false),
            (while_, Some(100 * MIB), 50 * MIB, 0, true, true),
            (long, Some(100 * MIB), 50 * MIB, 0, false, true),
            (while_, Some(16 * MIB), 0, 0, false, false),
            (while_, None, 900 * MIB, 16 * MIB, false, false),
            (while_, None, 900 * MIB, 16 * MIB + 1, false, true),
        ] {
            let given_up = is_given_up(unread_for, announced, filled, unread, is_draining);
            assert_eq!(given_up, expected, "{unread_for:?} {announced:?} {filled} {unread}");
        }
    }
}
