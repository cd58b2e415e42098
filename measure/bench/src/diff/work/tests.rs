//! Counted work, within its tolerances and beyond.

use super::super::compare;
use super::super::tests::{add, results, size};
use super::*;
use crate::results::read::Results;
use crate::results::{Clock, Point, Value};

fn counted(figure: &str, value: f64) -> Results {
    let mut results = results(Clock::Work);
    add(&mut results, "kettle auto", size(1024.0), figure, &[value]);
    results
}

fn verdict_of(figure: &str, a: f64, b: f64) -> Verdict {
    compare(&counted(figure, a), &counted(figure, b)).unwrap().rows[0].verdict
}

#[test]
fn each_kind_of_work_has_its_tolerance() {
    for (figure, a, same, worse) in [
        ("aes_blocks_per_byte", 0.625, 0.628, 0.629),
        ("copied_bytes_per_byte", 0.02, 0.06, 0.08),
        ("zeroed_bytes_per_byte", 0.0, 0.05, 0.06),
        ("instructions_per_request", 50_000.0, 50_900.0, 51_100.0),
        ("calls_per_request", 5.0, 5.0, 6.0),
    ] {
        assert_eq!(verdict_of(figure, a, same), Verdict::Same, "{figure}");
        assert_eq!(verdict_of(figure, a, worse), Verdict::Worse, "{figure}");
        assert_eq!(verdict_of(figure, worse, a), Verdict::Better, "{figure}");
    }
}

/// The same request with and without fast string copies.
fn both_ways(slow: f64, fast: f64) -> Results {
    let mut results = results(Clock::Work);
    for (word, value) in [("off", slow), ("on", fast)] {
        let point = Point::from([
            ("size".to_owned(), Value::Number(1024.0)),
            ("erms".to_owned(), Value::Word(word.to_owned())),
        ]);
        add(&mut results, "kettle auto", point, "instructions_per_request", &[value]);
    }
    results
}

#[test]
fn a_change_that_turns_with_the_way_copies_are_counted_is_none() {
    let verdicts = |b: &Results| {
        let diff = compare(&both_ways(1000.0, 2000.0), b).unwrap();
        [Verdict::Better, Verdict::Worse, Verdict::Undecided, Verdict::Same]
            .map(|it| diff.count(it))
    };
    assert_eq!(verdicts(&both_ways(900.0, 1800.0)), [2, 0, 0, 0]);
    assert_eq!(verdicts(&both_ways(900.0, 2200.0)), [0, 0, 2, 0]);
    assert_eq!(verdicts(&both_ways(900.0, 2000.0)), [0, 0, 1, 1]);
}
