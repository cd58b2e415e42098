//! Runs compared whose difference is known.

use std::collections::BTreeMap;

use kettle_loadgen::measure::machine::Machine;

use super::*;
use crate::results::{FORMAT, Line, Run, ScenarioLine, SubjectLine};

pub(super) fn results(clock: Clock) -> Results {
    let run = Run {
        format: FORMAT,
        started: 1_795_307_000,
        kettle: "0.1.0".to_owned(),
        commit: None,
        command: Vec::new(),
        folder: None,
        machine: Machine { kernel: "6.1".to_owned(), cpus: 2, ..Machine::default() },
        clock,
    };
    Results { runs: vec![run], ..Results::default() }
}

/// A round of each value, all else the same.
pub(super) fn add(
    results: &mut Results,
    subject: &str,
    point: Point,
    figure: &str,
    values: &[f64],
) {
    for (round, value) in (0..).zip(values) {
        let sample = Sample {
            scenario: "web-sizes".to_owned(),
            subject: subject.to_owned(),
            point: point.clone(),
            round,
            figures: BTreeMap::from([(figure.to_owned(), *value)]),
            ..Sample::default()
        };
        results.keep(Line::Sample(sample)).unwrap();
    }
}

pub(super) fn size(bytes: f64) -> Point {
    Point::from([("size".to_owned(), Value::Number(bytes))])
}

fn timed(subject: &str, figure: &str, values: &[f64]) -> Results {
    let mut results = results(Clock::Time);
    add(&mut results, subject, size(1024.0), figure, values);
    results
}

fn only_row(a: &Results, b: &Results) -> DiffRow {
    let diff = compare(a, b).unwrap();
    assert_eq!(diff.rows.len(), 1, "{diff:?}");
    diff.rows.into_iter().next().unwrap()
}

const CALM: [f64; 5] = [100.0, 101.0, 102.0, 103.0, 104.0];

#[test]
fn a_figure_that_fell_is_worse_where_more_is_better() {
    let slower = CALM.map(|it| it * 0.5);
    let name = "requests_per_second";
    let row = only_row(&timed("nginx", name, &CALM), &timed("nginx", name, &slower));
    assert_eq!((row.verdict, row.a, row.b, row.rounds), (Verdict::Worse, 102.0, 51.0, [5, 5]));
    let change = row.change.unwrap();
    assert!((change.middle + 0.5).abs() < 0.01 && change.high < 0.0, "{change:?}");
    let row = only_row(&timed("nginx", "p99_us", &CALM), &timed("nginx", "p99_us", &slower));
    assert_eq!(row.verdict, Verdict::Better);
}

#[test]
fn rounds_that_overlap_are_undecided() {
    let like = CALM.map(|it| it * 1.01);
    let row = only_row(&timed("nginx", "p99_us", &CALM), &timed("nginx", "p99_us", &like));
    assert_eq!(row.verdict, Verdict::Undecided);
    assert!(!row.lacks_rounds());
}

#[test]
fn two_rounds_decide_nothing() {
    let row = only_row(&timed("nginx", "p99_us", &CALM), &timed("nginx", "p99_us", &[9.0, 9.1]));
    assert_eq!(row.verdict, Verdict::Undecided);
    assert!(row.lacks_rounds());
}

#[test]
fn what_is_undecided_says_how_many_rounds_would_decide() {
    let like = CALM.map(|it| it * 1.01);
    let row = only_row(&timed("nginx", "p99_us", &CALM), &timed("nginx", "p99_us", &like));
    assert!(row.rounds_to_decide.is_some_and(|rounds| (20..60).contains(&rounds)), "{row:?}");
    let apart = CALM.map(|it| it * 2.0);
    let row = only_row(&timed("nginx", "p99_us", &CALM), &timed("nginx", "p99_us", &apart));
    assert_eq!(row.rounds_to_decide, None);
}

#[test]
fn counts_that_are_equal_are_the_same() {
    let of_calls = || timed("nginx", "calls_per_request", &[67.9; 2]);
    assert_eq!(only_row(&of_calls(), &of_calls()).verdict, Verdict::Same);
}

#[test]
fn samples_that_were_measured_again_are_left_out() {
    let mut a = timed("nginx", "p99_us", &CALM);
    let b = a.clone();
    add(&mut a, "nginx", size(1024.0), "p99_us", &[9.0]);
    a.samples.last_mut().unwrap().part = DOUBTED.to_owned();
    assert_eq!(only_row(&a, &b).rounds, [5, 5]);
}

#[test]
fn context_is_never_judged() {
    let mut a = timed("nginx", "client_busy", &CALM);
    let mut b = timed("nginx", "client_busy", &[1.0; 5]);
    for results in [&mut a, &mut b] {
        add(results, "nginx", size(1024.0), "p99_us", &CALM);
    }
    assert_eq!(only_row(&a, &b).figure.name, "p99_us");
}

#[test]
fn only_the_same_subject_at_the_same_point_is_paired() {
    let mut a = timed("nginx", "p99_us", &CALM);
    let mut b = timed("kettle auto", "p99_us", &CALM);
    add(&mut a, "hitch", size(2048.0), "p99_us", &CALM);
    add(&mut b, "hitch", size(4096.0), "p99_us", &CALM);
    let disjoint = compare(&a, &b).unwrap_err();
    for has in
        ["first has   web-sizes of hitch, nginx\n", "second has  web-sizes of hitch, kettle auto\n"]
    {
        assert!(disjoint.contains(has), "{disjoint}");
    }
    add(&mut b, "hitch", size(2048.0), "p99_us", &CALM);
    let diff = compare(&a, &b).unwrap();
    assert_eq!((diff.rows.len(), diff.only_a, diff.only_b), (1, 1, 2));
}

#[test]
fn the_worst_change_comes_first_and_what_is_undecided_last() {
    let mut a = timed("same", "p99_us", &CALM);
    let mut b = timed("same", "p99_us", &CALM);
    for (subject, factor) in [("better", 0.5), ("little worse", 1.5), ("worst", 3.0), ("best", 0.1)]
    {
        add(&mut a, subject, size(1024.0), "p99_us", &CALM);
        add(&mut b, subject, size(1024.0), "p99_us", &CALM.map(|it| it * factor));
    }
    add(&mut a, "from nothing", size(1024.0), "stalls_per_1000", &[0.0; 5]);
    add(&mut b, "from nothing", size(1024.0), "stalls_per_1000", &CALM);
    let diff = compare(&a, &b).unwrap();
    let order: Vec<&str> = diff.rows.iter().map(|row| row.subject.as_str()).collect();
    assert_eq!(order, ["from nothing", "worst", "little worse", "best", "better", "same"]);
    assert_eq!((diff.count(Verdict::Worse), diff.count(Verdict::Better)), (3, 2));
}

#[test]
fn a_figure_in_another_unit_is_no_second_finding() {
    let in_both_units = |factor: f64| {
        let mut results = timed("nginx", "cpu_ns_per_byte", &CALM.map(|it| it * factor));
        for sample in &mut results.samples {
            let each = sample.figures["cpu_ns_per_byte"];
            sample.figures.insert("cpu_seconds_per_gib".to_owned(), each * 1.073_741_824);
            sample.figures.insert("gigabits_per_second".to_owned(), each / 8.0);
        }
        results
    };
    let diff = compare(&in_both_units(1.0), &in_both_units(2.0)).unwrap();
    let rows: Vec<_> = diff.rows.iter().map(|row| (row.figure.name, row.also.as_slice())).collect();
    let none: &[&str] = &[];
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.contains(&("gigabits_per_second", none)), "{rows:?}");
    assert!(rows.contains(&("cpu_ns_per_byte", &["cpu_seconds_per_gib"])), "{rows:?}");
}

#[test]
fn time_and_work_are_not_compared() {
    let refused = compare(&results(Clock::Time), &results(Clock::Work)).unwrap_err();
    assert!(refused.contains("one file has times"), "{refused}");
    let refused = compare(&results(Clock::Time), &Results::default()).unwrap_err();
    assert!(refused.contains("a file without a run"), "{refused}");
}

#[test]
fn what_else_differs_is_said() {
    let subject = |name: &str, version: &str| SubjectLine {
        scenario: "web-sizes".to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        ..SubjectLine::default()
    };
    let rules =
        |rule: &str| ScenarioLine { name: "web-sizes".to_owned(), rules: vec![rule.to_owned()] };
    let mut a = results(Clock::Time);
    let mut b = results(Clock::Time);
    assert_eq!(compare(&a, &b).unwrap().circumstances, [""; 0]);
    b.runs[0].machine.kernel = "6.18".to_owned();
    b.runs[0].machine.load_average = 3.0;
    b.runs[0].commit = Some("abc".to_owned());
    a.subjects.extend([subject("nginx user", "1.22.1"), subject("kettle user", "0.1.0 (old)")]);
    b.subjects.extend([subject("nginx user", "1.30.6"), subject("kettle user", "0.1.0 (new)")]);
    a.scenarios.push(rules("5 rounds."));
    b.scenarios.push(rules("9 rounds."));
    let expected = [
        "kettle-bench: 0.1.0 → 0.1.0 (abc)",
        "kernel: 6.1 → 6.18",
        "kettle user: 0.1.0 (old) → 0.1.0 (new)",
        "nginx user: 1.22.1 → 1.30.6",
        "web-sizes was run by other rules or parameters",
    ];
    assert_eq!(compare(&a, &b).unwrap().circumstances, expected);
}

#[test]
fn programs_get_every_row() {
    let a = timed("nginx", "p99_us", &CALM);
    let b = timed("nginx", "p99_us", &CALM.map(|it| it * 2.0));
    let json = compare(&a, &b).unwrap().to_json().unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row = &value["rows"][0];
    assert_eq!(row["figure"], "p99_us");
    assert_eq!(row["verdict"], "worse");
    assert_eq!(row["point"]["size"], 1024.0);
    assert_eq!(row["rounds"], serde_json::json!([5, 5]));
}
