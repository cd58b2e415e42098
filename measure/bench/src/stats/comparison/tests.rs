//! Comparisons of rows whose truth is known, and of many rows that do not differ.

use proptest::prelude::*;

use super::*;

fn compare(a: &[f64], b: &[f64]) -> Comparison {
    Comparison::of(a, b).unwrap()
}

#[test]
fn orders_are_counted_as_in_the_tables_of_mann_and_whitney() {
    assert_eq!(ways(3, 3), [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
    assert_eq!(ways(2, 4), [1.0, 1.0, 2.0, 2.0, 3.0, 2.0, 2.0, 1.0, 1.0]);
    let all: f64 = ways(20, 20).iter().sum();
    assert_eq!(all, 137_846_528_820.0, "forty over twenty");
}

#[test]
fn ranks_are_those_of_the_tables() {
    // Critical values of the two-sided test at 5 %: U ≤ 2 for 5 and 5, 8 for 7 and 7, 23 for 10 and 10, 127 for 20 and 20.
    for (count, critical) in [(5, 2), (7, 8), (10, 23), (20, 127)] {
        let (rank, confidence) = rank(count, count);
        assert_eq!(rank, critical, "{count}");
        assert!(confidence >= 0.95, "{count}: {confidence}");
    }
}

#[test]
fn three_samples_a_side_are_sure_to_nine_in_ten() {
    let (rank, confidence) = rank(3, 3);
    assert_eq!(rank, 0);
    assert!((confidence - 0.9).abs() < 1e-12, "{confidence}");
    assert!(super::rank(4, 4).1 > 0.95);
    assert_eq!(super::rank(1, 1).1, 0.0);
}

#[test]
fn rows_wholly_apart_are_decided() {
    let found = compare(&[1.0, 1.1, 1.2], &[2.0, 2.2, 2.1]);
    assert_eq!(found.verdict(Better::Higher), Verdict::Better);
    assert_eq!(found.verdict(Better::Lower), Verdict::Worse);
    assert_eq!(found.verdict(Better::Neither), Verdict::Undecided);
    let ratio = found.ratio.unwrap();
    assert!((ratio.low - 2.0 / 1.2).abs() < 1e-12 && (ratio.high - 2.2).abs() < 1e-12, "{ratio:?}");
}

#[test]
fn fewer_than_three_samples_decide_nothing() {
    let found = compare(&[1.0, 1.0], &[9.0, 9.0, 9.0, 9.0]);
    assert_eq!(found.verdict(Better::Higher), Verdict::Undecided);
}

#[test]
fn rows_that_mix_are_undecided() {
    let found = compare(&[1.0, 3.0, 5.0], &[2.0, 4.0, 6.0]);
    assert_eq!(found.verdict(Better::Higher), Verdict::Undecided);
}

#[test]
fn counts_that_are_equal_do_not_differ() {
    for (a, b) in [(&[7.0; 5][..], &[7.0; 5][..]), (&[0.0], &[0.0]), (&[67.9, 67.9], &[67.9])] {
        assert_eq!(compare(a, b).verdict(Better::Lower), Verdict::Same, "{a:?} {b:?}");
    }
    assert_eq!(compare(&[7.0, 7.0], &[7.0, 7.1]).verdict(Better::Lower), Verdict::Undecided);
}

#[test]
fn rounds_to_decide_grow_with_scatter_and_shrink_with_difference() {
    let a = [10.0, 11.0, 12.0];
    let near = [11.0, 12.0, 13.0];
    let far = [14.0, 15.0, 16.0];
    let near = rounds_to_decide(&a, &near).unwrap();
    assert!((15..20).contains(&near), "{near}");
    assert_eq!(rounds_to_decide(&a, &far), Some(3));
    assert_eq!(rounds_to_decide(&a, &a), None);
    assert_eq!(rounds_to_decide(&[7.0; 3], &[8.0; 3]), None);
    assert_eq!(rounds_to_decide(&[], &a), None);
}

#[test]
fn one_outlier_of_many_rounds_does_not_decide() {
    let calm: Vec<f64> = (0..10).map(|round| 100.0 + f64::from(round)).collect();
    let mut slow = calm.clone();
    slow[3] = 1000.0;
    assert_eq!(compare(&calm, &slow).verdict(Better::Lower), Verdict::Undecided);
    let faster: Vec<f64> = slow.iter().map(|it| it * 0.7).collect();
    assert_eq!(compare(&calm, &faster).verdict(Better::Lower), Verdict::Better);
}

#[test]
fn zeros_are_compared_by_their_difference() {
    let found = compare(&[0.0, 0.0, 0.0, 0.0], &[5.0, 6.0, 7.0, 8.0]);
    assert_eq!(found.ratio, None);
    assert_eq!(found.verdict(Better::Lower), Verdict::Worse);
}

#[test]
fn a_row_without_samples_is_no_comparison() {
    assert_eq!(Comparison::of(&[], &[1.0]), None);
    assert_eq!(Comparison::of(&[1.0], &[]), None);
}

/// Numbers that scatter like chance, the same in every run of this test.
fn noise(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        100.0 + (state >> 40) as f64 / f64::from(1_u32 << 24)
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn rows_from_one_source_are_rarely_told_apart() {
    for count in [5, 10, 30] {
        let wrong = (1..1000_u64)
            .filter(|seed| {
                let found = compare(&noise(*seed, count), &noise(seed + 100_000, count));
                found.verdict(Better::Higher) != Verdict::Undecided
            })
            .count();
        assert!((5..=65).contains(&wrong), "{wrong} of 1000 with {count} samples");
    }
}

#[test]
fn a_true_difference_is_found() {
    let found = (1..200_u64)
        .filter(|seed| {
            let b: Vec<f64> = noise(seed + 100_000, 10).iter().map(|it| it * 1.006).collect();
            compare(&noise(*seed, 10), &b).verdict(Better::Higher) == Verdict::Better
        })
        .count();
    assert!(found > 150, "{found} of 199");
}

proptest! {
    #[test]
    fn the_interval_holds_its_middle(
        a in prop::collection::vec(0.0_f64..1e9, 1..60), b in prop::collection::vec(0.0_f64..1e9, 1..60),
    ) {
        let found = compare(&a, &b);
        for interval in [Some(found.difference), found.ratio].into_iter().flatten() {
            prop_assert!(interval.low <= interval.middle && interval.middle <= interval.high);
        }
        prop_assert!((0.0..=1.0).contains(&found.confidence));
    }

    #[test]
    fn the_other_way_round_is_the_opposite(
        a in prop::collection::vec(1.0_f64..1e9, 1..30), b in prop::collection::vec(1.0_f64..1e9, 1..30),
    ) {
        let opposite = match compare(&b, &a).verdict(Better::Higher) {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        prop_assert_eq!(compare(&a, &b).verdict(Better::Higher), opposite);
    }
}
