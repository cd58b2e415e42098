//! Counted work, within its tolerances and beyond.

use super::super::tests::{add, results, size};
use super::*;
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

#[test]
fn the_gate_lets_pass_what_is_the_same_or_better() {
    let a = counted("instructions_per_request", 50_000.0);
    assert_eq!(gate(&a, &counted("instructions_per_request", 50_400.0)), Ok(()));
    assert_eq!(gate(&a, &counted("instructions_per_request", 30_000.0)), Ok(()));
}

#[test]
fn the_gate_says_what_became_worse() {
    let failures = gate(
        &counted("instructions_per_request", 50_000.0),
        &counted("instructions_per_request", 60_000.0),
    )
    .unwrap_err();
    assert_eq!(failures.len(), 1);
    assert!(
        failures[0].contains("kettle auto") && failures[0].contains("rose from 50000"),
        "{failures:?}"
    );
}

#[test]
fn the_gate_looks_at_each_way_of_counting_copies() {
    assert!(gate(&both_ways(1000.0, 2000.0), &both_ways(900.0, 2200.0)).is_err());
}

#[test]
fn the_gate_misses_what_is_gone_and_refuses_times() {
    let a = counted("instructions_per_request", 50_000.0);
    assert!(gate(&a, &results(Clock::Work)).is_err());
    assert!(gate(&results(Clock::Work), &results(Clock::Work)).is_err());
    assert!(gate(&results(Clock::Time), &results(Clock::Time)).is_err());
    assert!(gate(&a, &results(Clock::Time)).is_err());
}
