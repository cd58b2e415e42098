//! When a second signal to stop is one.

use super::*;

fn draining(since: Duration) -> Draining {
    let began = Instant::now().checked_sub(since).unwrap();
    Draining { began, deadline: Instant::now(), workers_left: 1, is_well: true }
}

#[test]
fn a_signal_that_comes_twice_at_once_does_not_cut_requests_short() {
    assert!(!draining(Duration::ZERO).may_be_cut_short());
}

#[test]
fn a_later_second_signal_does() {
    assert!(draining(SECOND_STOP_MIN).may_be_cut_short());
}
