//! Estimates on samples whose truth is known.

use proptest::prelude::*;

use super::*;

/// 1, 2, … n, mixed so that no order in time is left.
fn mixed(count: u32) -> Vec<f64> {
    (0..count).map(|index| f64::from((index * 7919) % count + 1)).collect()
}

#[test]
fn median_of_odd_and_even_counts() {
    assert_eq!(Estimate::of(&[3.0, 1.0, 2.0]).expect("one").median, 2.0);
    assert_eq!(Estimate::of(&[4.0, 1.0, 2.0, 3.0]).expect("one").median, 2.5);
}

#[test]
fn nothing_gives_no_estimate() {
    assert_eq!(Estimate::of(&[]), None);
}

#[test]
fn one_sample_is_its_own_interval() {
    let estimate = Estimate::of(&[5.0]).expect("one");
    assert_eq!((estimate.low, estimate.high, estimate.drift), (5.0, 5.0, 0.0));
}

#[test]
fn few_samples_give_their_whole_range() {
    let estimate = Estimate::of(&[9.0, 1.0, 5.0]).expect("one");
    assert_eq!((estimate.low, estimate.high), (1.0, 9.0));
}

#[test]
fn interval_has_the_ranks_of_the_binomial_table() {
    // From the 41st to the 60th of 100 it would hold the median in 94.3 % of all cases, with one more at each end in 96.5 %.
    for (count, low) in [(8, 1.0), (9, 2.0), (11, 2.0), (12, 3.0), (100, 40.0)] {
        let estimate = Estimate::of(&mixed(count)).expect("one");
        assert_eq!((estimate.low, estimate.high), (low, f64::from(count) + 1.0 - low));
    }
}

#[test]
fn interval_holds_the_median_often_enough_and_is_no_wider_than_that() {
    // The chance that a fair coin shows heads at most so often, by Pascal's triangle.
    let at_most = |heads: usize, count: usize| {
        let mut row = vec![1.0_f64];
        for _ in 0..count {
            let next = |index: usize| {
                let at = |index: Option<usize>| index.and_then(|it| row.get(it)).unwrap_or(&0.0);
                (at(index.checked_sub(1)) + at(Some(index))) / 2.0
            };
            row = (0..=row.len()).map(next).collect();
        }
        row.iter().take(heads + 1).sum::<f64>()
    };
    for count in 1..200 {
        let rank = rank(count);
        assert!(rank == 0 || 2.0 * at_most(rank, count) <= 0.05, "{rank} of {count}");
        assert!(2.0 * at_most(rank + 1, count) > 0.05, "{rank} of {count}");
    }
    // A run of many rounds does not lose the interval: √n/2 samples are one deviation.
    assert!((4_900..4_905).contains(&rank(10_000)), "{}", rank(10_000));
}

#[test]
fn more_samples_narrow_the_interval() {
    let spread = |count| Estimate::of(&mixed(count)).expect("one").spread();
    assert!(spread(1009) < spread(101) / 2.5);
}

#[test]
fn outliers_do_not_move_the_median() {
    let mut samples = mixed(100);
    let calm = Estimate::of(&samples).expect("one");
    for sample in samples.iter_mut().filter(|sample| **sample > 95.0) {
        *sample *= 1000.0;
    }
    let wild = Estimate::of(&samples).expect("one");
    assert_eq!((calm.median, calm.low, calm.high), (wild.median, wild.low, wild.high));
}

#[test]
fn change_of_speed_shows_as_drift() {
    let samples: Vec<f64> = (0..40).map(|index| if index < 20 { 10.0 } else { 12.0 }).collect();
    let estimate = Estimate::of(&samples).expect("one");
    assert!((estimate.drift - 2.0 / 11.0).abs() < 1e-9, "{}", estimate.drift);
}

#[test]
fn touching_intervals_are_not_surely_apart() {
    let estimate = |low, high| Estimate { median: low, low, high, drift: 0.0, samples: 9 };
    assert!(estimate(1.0, 2.0).is_surely_below(&estimate(2.1, 3.0)));
    assert!(!estimate(1.0, 2.0).is_surely_below(&estimate(2.0, 3.0)));
}

proptest! {
    #[test]
    fn interval_holds_the_median(samples in prop::collection::vec(0.0_f64..1e9, 1..300)) {
        let estimate = Estimate::of(&samples).expect("one");
        prop_assert!(estimate.low <= estimate.median && estimate.median <= estimate.high);
        prop_assert_eq!(estimate.samples, samples.len());
    }
}
