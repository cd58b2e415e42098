use super::super::style::Style;
use super::*;

fn points(values: &[(f64, f64)]) -> Vec<PlotPoint> {
    values.iter().map(|&(x, middle)| PlotPoint { x, low: middle, middle, high: middle }).collect()
}

fn curve(values: &[(f64, f64)]) -> Curve {
    Curve { name: "a".to_owned(), style: Style::of("a"), points: points(values) }
}

#[test]
fn a_crossing_is_where_the_ratio_stays_below_one() {
    let crossed = crossing(&points(&[(1.0, 1.5), (4.0, 0.9), (16.0, 1.5), (64.0, 0.5)]));
    assert_eq!(crossed, Some(32.0));
    assert_eq!(crossing(&points(&[(1.0, 0.9)])), None);
    assert_eq!(crossing(&points(&[(1.0, 0.9), (2.0, 1.1)])), None);
    assert_eq!(crossing(&[]), None);
}

#[test]
fn the_envelope_is_the_best_at_each_place() {
    let a = curve(&[(1.0, 3.0), (2.0, 1.0)]);
    let b = curve(&[(1.0, 2.0), (2.0, 4.0)]);
    assert_eq!(envelope(&[&a, &b]), [(1.0, 2.0), (2.0, 1.0)]);
}

#[test]
fn lists_read_like_speech() {
    let words: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(joined(&words), "a, b and c");
    assert_eq!(joined(&words[..2]), "a and b");
    assert_eq!(joined(&[]), "");
}
