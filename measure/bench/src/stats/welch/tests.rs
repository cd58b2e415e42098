//! Differences of means, against values of textbooks.

use proptest::prelude::*;

use super::*;

fn difference(a: &[f64], b: &[f64]) -> Option<MeanDifference> {
    MeanDifference::of(&Summary::of(a)?, &Summary::of(b)?)
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.005
}

#[test]
fn quantiles_are_those_of_the_table_and_lie_between_its_rows() {
    assert!(is_near(quantile(1.0), 12.706));
    assert!(is_near(quantile(4.0), 2.776));
    assert!(is_near(quantile(11.0), 2.201), "{}", quantile(11.0));
    assert!(is_near(quantile(25.0), 2.060), "{}", quantile(25.0));
    assert!(is_near(quantile(40.0), 2.021), "{}", quantile(40.0));
    assert!(is_near(quantile(200.0), 1.972), "{}", quantile(200.0));
    assert!(is_near(quantile(1e9), 1.960));
    assert!(is_near(quantile(0.0), 12.706), "less than one counts as one");
}

#[test]
fn an_example_worked_by_hand_comes_out() {
    // Both variances are 2.5, so the standard error is 1 and there are 8 degrees of freedom.
    let found = difference(&[1.0, 2.0, 3.0, 4.0, 5.0], &[4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
    assert_eq!(found.difference, 3.0);
    assert!(is_near(found.low, 3.0 - 2.306) && is_near(found.high, 3.0 + 2.306), "{found:?}");
    assert!(found.is_proven());
}

#[test]
fn a_row_that_scatters_more_costs_degrees_of_freedom() {
    // Variances of 1/3 and 12 make a standard error of √(1/12 + 3) and 3.17 degrees of freedom.
    let found = difference(&[1.0, 1.0, 2.0, 2.0], &[6.0, 6.0, 12.0, 12.0]).unwrap();
    let half = (found.high - found.low) / 2.0;
    assert!((half / (1.0_f64 / 12.0 + 3.0).sqrt() - 3.09).abs() < 0.05, "{half}");
}

#[test]
fn rows_that_overlap_are_not_proven_to_differ() {
    let found = difference(&[1.0, 2.0, 3.0], &[1.5, 2.5, 3.5]).unwrap();
    assert!(!found.is_proven(), "{found:?}");
    assert_eq!(found.difference, 0.5);
    assert_eq!(found.relative.unwrap()[0], 0.25);
}

#[test]
fn one_sample_proves_nothing() {
    assert_eq!(difference(&[1.0], &[2.0, 3.0]), None);
}

#[test]
fn rows_without_scatter_are_exact() {
    let found = difference(&[2.0, 2.0], &[3.0, 3.0]).unwrap();
    assert_eq!((found.low, found.high), (1.0, 1.0));
    let found = difference(&[0.0, 0.0], &[0.0, 0.0]).unwrap();
    assert_eq!((found.low, found.relative), (0.0, None));
}

proptest! {
    #[test]
    fn the_interval_holds_the_difference(
        a in prop::collection::vec(-1e6_f64..1e6, 2..40), b in prop::collection::vec(-1e6_f64..1e6, 2..40),
    ) {
        let found = difference(&a, &b).unwrap();
        prop_assert!(found.low <= found.difference && found.difference <= found.high);
    }
}
