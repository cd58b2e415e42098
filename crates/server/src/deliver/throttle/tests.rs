use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;

fn throttle(bytes_per_second: u64, after_bytes: u64) -> Box<Throttle> {
    let bytes_per_second = NonZeroU64::new(bytes_per_second).unwrap();
    Throttle::new(SendRate { bytes_per_second, after_bytes }, Duration::ZERO)
}

/// When what was sent, by a sender that sends each time as much as it may, and comes as late as it is told.
fn sent(throttle: &mut Throttle, late: &[u64], mut left_bytes: u64) -> Vec<(Duration, u64)> {
    let mut now = Duration::ZERO;
    let mut all = Vec::new();
    let mut late = late.iter().cycle();
    while left_bytes > 0 {
        match throttle.allowance(now) {
            Ok(bytes) => {
                let bytes = bytes.min(left_bytes);
                throttle.took(bytes, now);
                all.push((now, bytes));
                left_bytes -= bytes;
            }
            Err(wait) => now += wait + Duration::from_millis(*late.next().unwrap()),
        }
    }
    all
}

proptest! {
    #[test]
    fn in_any_time_no_more_goes_than_the_rate_and_two_portions(
        rate in prop_oneof![1_u64..20, 1_000_u64..100_000, 1_000_000_u64..2_000_000_000],
        late in prop::collection::vec(0_u64..400, 1..8),
    ) {
        let mut throttle = throttle(rate, 0);
        let burst_bytes = 2 * throttle.portion_bytes + 1;
        let all = sent(&mut throttle, &late, rate.saturating_mul(5));
        for (number, (begin, _)) in all.iter().enumerate() {
            let mut total = 0;
            for (end, bytes) in &all[number..] {
                total += bytes;
                let earned = u128::from(rate) * (*end - *begin).as_nanos() / 1_000_000_000;
                prop_assert!(u128::from(total) <= earned + u128::from(burst_bytes));
            }
        }
    }

    /// Timers that come a little late cost nothing of the rate.
    #[test]
    fn what_comes_late_is_made_up_for(
        rate in 1_000_u64..1_000_000_000,
        late in prop::collection::vec(0_u64..100, 1..8),
    ) {
        let mut throttle = throttle(rate, 0);
        let all = sent(&mut throttle, &late, rate.saturating_mul(10));
        let (last, _) = all.last().unwrap();
        prop_assert!(*last < Duration::from_millis(10_400), "{last:?}");
        prop_assert!(*last > Duration::from_millis(9_400), "{last:?}");
    }
}

#[test]
fn what_is_free_goes_at_once() {
    let mut throttle = throttle(1_000, 5_000);
    assert_eq!(throttle.allowance(Duration::ZERO), Ok(5_000));
    throttle.took(4_000, Duration::ZERO);
    assert_eq!(throttle.allowance(Duration::ZERO), Ok(1_000));
    throttle.took(1_000, Duration::ZERO);
    assert_eq!(throttle.allowance(Duration::ZERO), Ok(250));
    throttle.took(250, Duration::ZERO);
    assert_eq!(throttle.allowance(Duration::ZERO), Err(Duration::from_millis(250)));
}

#[test]
fn portions_of_large_rates_are_whole_records() {
    for (rate, portion) in [(1, 1), (4_000, 1_000), (65_540, 16_384), (1_000_000, 245_760)] {
        assert_eq!(throttle(rate, 0).portion_bytes, portion, "{rate}");
    }
}
