//! Summaries of samples whose truth is known.

use super::*;

#[test]
fn a_row_is_summed_up() {
    let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
    assert_eq!((summary.samples, summary.min, summary.max), (8, 2.0, 9.0));
    assert_eq!((summary.median, summary.mean), (4.5, 5.0));
    assert!((summary.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
}

#[test]
fn one_sample_does_not_scatter() {
    let summary = Summary::of(&[3.0]).unwrap();
    assert_eq!((summary.mean, summary.deviation), (3.0, 0.0));
    assert_eq!(Summary::of(&[]), None);
}
