use super::*;

const UNLIMITED: Time = Time { idle: LINGER, end: None };

#[test]
fn who_receives_is_waited_for_unless_the_time_of_the_tunnel_is_over() {
    for end in [TunnelEnd::ClientClosed, TunnelEnd::BackendClosed, TunnelEnd::ClientCut] {
        assert!(goes_on_lingering(end, &UNLIMITED, 100_000, 98_552), "{end:?}");
        let was_received = goes_on_lingering(end, &UNLIMITED, 100_000, 100_000);
        assert!(!was_received, "{end:?}: nothing was received");
        assert!(!goes_on_lingering(end, &UNLIMITED, 100_000, 0), "{end:?}: all was received");
    }
    for end in [TunnelEnd::Idle, TunnelEnd::TooLong] {
        assert!(!goes_on_lingering(end, &UNLIMITED, 100_000, 98_552), "{end:?}");
    }
}

#[test]
fn a_tunnel_that_ends_in_time_lingers_no_longer_than_its_time() {
    let now = Instant::now();
    for (end, goes_on) in [(now + Duration::from_secs(3_600), true), (now, false)] {
        let time = Time { idle: LINGER, end: Some(end) };
        assert_eq!(goes_on_lingering(TunnelEnd::BackendClosed, &time, 100_000, 98_552), goes_on);
    }
}
