use super::*;

#[test]
fn who_receives_is_waited_for_unless_the_time_of_the_tunnel_is_over() {
    for end in [TunnelEnd::ClientClosed, TunnelEnd::BackendClosed, TunnelEnd::ClientCut] {
        assert!(goes_on_lingering(end, 100_000, 98_552), "{end:?}");
        assert!(!goes_on_lingering(end, 100_000, 100_000), "{end:?}: nothing was received");
        assert!(!goes_on_lingering(end, 100_000, 0), "{end:?}: all was received");
    }
    for end in [TunnelEnd::Idle, TunnelEnd::TooLong] {
        assert!(!goes_on_lingering(end, 100_000, 98_552), "{end:?}");
    }
}
