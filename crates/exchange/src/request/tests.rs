//! The time for which a client is waited for.

use super::*;

#[test]
fn a_client_that_sends_a_byte_now_and_then_is_not_waited_for_without_end() {
    let seconds = Duration::from_secs;
    for (waited, bytes, left) in [
        (0, 0, Some(15)),
        (14, 1, Some(1)),
        (15, 1, None),
        (15, 499, None),
        (15, 500, Some(1)),
        (100, 1_000_000, Some(15)),
        (2_014, 1_000_000, Some(1)),
        (2_015, 1_000_000, None),
    ] {
        assert_eq!(
            patience(seconds(15), seconds(waited), bytes),
            left.map(seconds),
            "{waited} {bytes}"
        );
    }
    assert_eq!(patience(Duration::MAX, seconds(1), u64::MAX), Some(Duration::MAX - seconds(1)));
}
