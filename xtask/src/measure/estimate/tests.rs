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
    assert_eq!(estimate, Estimate { median: 49.5, low: 40.0, high: 59.0 });
}
