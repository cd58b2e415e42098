use super::*;

#[test]
fn a_trickle_uses_up_the_time_in_hand() {
    let mut pace = Pace::new(Duration::from_secs(9));
    for second in 1..=9 {
        pace.waited(1);
        pace.took(1);
        assert_eq!(pace.left(), Duration::from_secs(10 - second), "after {second} s");
    }
    pace.waited(1);
    assert_eq!(pace.left(), Duration::ZERO, "the tick in which it began was partly over");
}

#[test]
fn the_least_rate_is_enough_for_ever_and_a_fast_beginning_is_no_credit() {
    let mut pace = Pace::new(Duration::from_secs(9));
    pace.took(1 << 40);
    for _ in 0..1_000 {
        pace.waited(1);
        pace.took(BYTES_PER_SECOND_MIN);
    }
    assert_eq!(pace.left(), Duration::from_secs(10));
    pace.waited(10);
    assert_eq!(pace.left(), Duration::ZERO);
}
