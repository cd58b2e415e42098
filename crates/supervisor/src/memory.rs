//! When freed memory goes back to the system: after a crowd has left, and not while it comes and goes.
//!
//! The allocator keeps what thousands of connections freed, because a few that stay hold the end of
//! its heaps. Giving it back holds up workers for milliseconds, so it is done seldom.

use std::time::Duration;

/// How many connections there were since memory was last given back.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    most: u64,
    last: u64,
    /// How many were still there when it was last said that a crowd has left.
    stayed: u64,
    /// Whether it was said at the last count.
    had_left: bool,
}

impl Crowd {
    /// As [`has_left`](Self::has_left), and once more at the next count: workers and their runtime forget connections up to a
    /// tick later, and a few bytes hold a page.
    pub(super) fn leaves_memory(&mut self, open: u64, most: u64) -> bool {
        let has_left = self.has_left(open, most);
        has_left | std::mem::replace(&mut self.had_left, has_left)
    }

    /// Takes the number of connections that are open now, and the most that were open since the last call. Says whether a crowd
    /// has left since this was last said, and no more connections are closing.
    fn has_left(&mut self, open: u64, most: u64) -> bool {
        self.most = self.most.max(open).max(most);
        let is_settled = self.last.saturating_sub(open) <= self.most / 10;
        self.last = open;
        let is_crowd = self.most - open >= CROWD_MIN && open <= self.most / 2;
        // On a busy machine a crowd stops and goes: what stayed is part of it when it leaves as well.
        let is_rest = self.stayed >= REST_MIN && open <= self.stayed / 2;
        let has_left = is_settled && (is_crowd || is_rest);
        if has_left {
            (self.most, self.stayed) = (open, open);
        }
        has_left
    }
}

/// Fewer connections leave some 15 MB at most.
const CROWD_MIN: u64 = 1_000;

/// Of those that stayed when a crowd left, fewer are not worth the time.
const REST_MIN: u64 = 100;

/// How often the connections are counted.
pub(super) const COUNT_PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::Crowd;

    #[test]
    fn crowd_is_noticed_once_when_all_of_it_has_left() {
        let mut crowd = Crowd::default();
        let seen = [0, 5_000, 4_000, 2_000, 900, 50, 30, 30].map(|open| crowd.has_left(open, open));
        assert_eq!(seen, [false, false, false, false, false, false, true, false]);
    }

    #[test]
    fn a_crowd_that_came_and_left_between_two_counts_is_noticed() {
        let mut crowd = Crowd::default();
        assert!(crowd.has_left(3, 2_500));
        assert!(!crowd.has_left(3, 4), "said once");
    }

    #[test]
    fn what_is_forgotten_later_is_given_back_later() {
        let mut crowd = Crowd::default();
        let seen = [2_500, 0, 0, 0, 0].map(|open| crowd.leaves_memory(open, open));
        assert_eq!(seen, [false, false, true, true, false]);
    }

    #[test]
    fn half_a_crowd_that_stays_is_left_alone() {
        let mut crowd = Crowd::default();
        let seen = [5_000, 2_501, 2_501, 2_450, 2_450, 1_000, 1_000]
            .map(|open| crowd.has_left(open, open));
        assert_eq!(seen, [false, false, false, true, false, false, true]);
    }

    #[test]
    fn rest_of_a_crowd_that_paused_on_its_way_out_counts_as_well() {
        let mut crowd = Crowd::default();
        let seen = [2_500, 700, 600, 550, 0, 0, 90, 0].map(|open| crowd.has_left(open, open));
        assert_eq!(seen, [false, false, true, false, false, true, false, false]);
    }

    #[test]
    fn small_and_steady_numbers_are_no_crowd_that_leaves() {
        let mut crowd = Crowd::default();
        for open in [999, 0, 5_000, 5_000, 3_000, 5_000, 2_600, 5_100] {
            assert!(!crowd.has_left(open, open), "{open}");
        }
    }
}
