use super::*;

#[test]
fn nothing_has_no_median() {
    assert_eq!(Estimate::of([]), None);
}

#[test]
fn seven_samples_give_their_middle_and_their_ends() {
    let estimate = Estimate::of([7.0, 1.0, 3.0, 2.0, 6.0, 5.0, 4.0]).unwrap();
    assert_eq!(estimate, Estimate { median: 4.0, low: 1.0, high: 7.0 });
}

#[test]
fn many_samples_narrow_the_interval() {
    let estimate = Estimate::of((0..100).map(f64::from)).unwrap();
    assert_eq!(estimate, Estimate { median: 49.5, low: 39.0, high: 60.0 });
}

/// One less at each end would hold the median of 8 in 93.0 % of all cases, that of 11 in 93.5 %.
#[test]
fn the_interval_holds_the_median_in_95_of_100_cases() {
    for (count, low) in [(8, 0.0), (9, 1.0), (11, 1.0), (12, 2.0)] {
        let estimate = Estimate::of((0..count).map(f64::from)).unwrap();
        assert_eq!((estimate.low, estimate.high), (low, f64::from(count - 1) - low), "{count}");
    }
}
