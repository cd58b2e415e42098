//! Tables as a person sees them.

use proptest::prelude::*;

use super::super::compare;
use super::super::tests::{add, results, size};
use super::*;
use crate::figure::FIGURES;
use crate::results::{Line, Point};

const CALM: [f64; 5] = [100.0, 101.0, 102.0, 103.0, 104.0];

#[test]
fn numbers_have_four_digits_that_matter() {
    for (value, text) in [
        (0.0, "0"),
        (5.0, "5"),
        (8123.4, "8,123"),
        (1_234_567.0, "1,234,567"),
        (72_398_000.0, "72.40 M"),
        (72_398_000_000.0, "72.40 G"),
        (123.456, "123.5"),
        (12.3456, "12.35"),
        (1.23456, "1.235"),
        (0.123_456, "0.1235"),
        (0.012_345, "0.01235"),
        (0.000_012_3, "1.23e-5"),
        (-1234.0, "-1,234"),
    ] {
        assert_eq!(number(value), text);
    }
}

#[test]
fn a_table_shows_what_is_decided_worst_first() {
    let mut a = results(Clock::Time);
    let mut b = results(Clock::Time);
    for (subject, factor) in [("kettle auto", 1.2), ("nginx user", 0.5), ("hitch", 1.0)] {
        add(&mut a, subject, size(65536.0), "requests_per_second", &CALM);
        add(&mut b, subject, size(65536.0), "requests_per_second", &CALM.map(|it| it * factor));
    }
    b.runs[0].machine.kernel = "6.18".to_owned();
    let diff = compare(&a, &b).unwrap();
    let expected = "\
Differs  kernel: 6.1 → 6.18

web-sizes · nginx user · 64 KiB
  worse        −50.0 %     −51.4 … −48.5       102 → 51        Requests, 1/s

web-sizes · kettle auto · 64 KiB
  better       +20.0 %     +16.5 … +23.6       102 → 122.4     Requests, 1/s

1 worse, 1 better, 1 undecided (--all shows them).
What is undecided is too alike for 100 rounds to tell.
";
    assert_eq!(render(&diff, false), expected);
    let all = render(&diff, true);
    assert!(all.contains("hitch") && !all.contains("--all"), "{all}");
}

#[test]
fn doubt_and_lack_of_rounds_are_said() {
    let mut a = results(Clock::Time);
    let mut b = results(Clock::Time);
    add(&mut a, "nginx", size(1.0), "p99_us", &CALM);
    add(&mut b, "nginx", size(1.0), "p99_us", &CALM.map(|it| it * 2.0));
    b.samples[0].warnings.push("2.0 % steal".to_owned());
    add(&mut a, "hitch", size(1.0), "p99_us", &[5.0]);
    add(&mut b, "hitch", size(1.0), "p99_us", &[9.0]);
    add(&mut b, "stunnel", size(1.0), "p99_us", &[9.0]);
    let text = render(&compare(&a, &b).unwrap(), false);
    for expected in [
        "  worse!  ",
        "undecided whatever they show: 1.",
        "! marks",
        "In the second file only: 1 figure.",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn what_would_decide_is_said() {
    let mut a = results(Clock::Time);
    let mut b = results(Clock::Time);
    for (subject, factor) in [("nginx", 1.01), ("hitch", 1.012), ("stunnel", 1.0)] {
        add(&mut a, subject, size(1.0), "p99_us", &CALM);
        add(&mut b, subject, size(1.0), "p99_us", &CALM.map(|it| it * factor));
    }
    let text = render(&compare(&a, &b).unwrap(), false);
    assert!(text.contains("If further rounds are like these, --rounds "), "{text}");
    assert!(text.contains(" 2; 1 are too alike for 100."), "{text}");
}

#[test]
fn large_changes_are_factors() {
    let mut a = results(Clock::Time);
    let mut b = results(Clock::Time);
    add(&mut a, "nginx", size(1.0), "p99_us", &CALM);
    add(&mut b, "nginx", size(1.0), "p99_us", &CALM.map(|it| it * 40.0));
    let text = render(&compare(&a, &b).unwrap(), false);
    assert!(text.contains("×40 ") && text.contains("×38.85 … ×41.19"), "{text}");
}

#[test]
fn work_is_labelled_as_no_time() {
    let mut a = results(Clock::Work);
    let mut b = results(Clock::Work);
    add(&mut a, "nginx", size(1.0), "instructions_per_request", &[1000.0]);
    add(&mut b, "nginx", size(1.0), "instructions_per_request", &[1001.0]);
    let text = render(&compare(&a, &b).unwrap(), false);
    assert!(text.starts_with("Counted work under an emulator: instructions, not time."), "{text}");
    assert!(text.contains("0 worse, 0 better, 1 without a difference"), "{text}");
}

#[test]
fn many_figures_carry_the_warning_of_chance() {
    let mut a = results(Clock::Time);
    let mut b = results(Clock::Time);
    for bytes in 0..40 {
        add(&mut a, "nginx", size(f64::from(bytes)), "p99_us", &CALM);
        add(&mut b, "nginx", size(f64::from(bytes)), "p99_us", &CALM);
    }
    let text = render(&compare(&a, &b).unwrap(), false);
    assert!(text.contains("look decided by chance alone"), "{text}");
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal(
        figure in 0..FIGURES.len(), before in -1e15_f64..1e15, after in -1e15_f64..1e15, scale in -12_i32..1, subject in ".{0,120}",
    ) {
        let name = FIGURES[figure].name;
        let mut a = results(Clock::Time);
        let mut b = results(Clock::Time);
        let scale = 10_f64.powi(scale);
        add(&mut a, &subject, Point::new(), name, &[before * scale; 3]);
        add(&mut b, &subject, Point::new(), name, &[after * scale; 3]);
        b.keep(Line::Complete { scenario: "web-sizes".to_owned() }).unwrap();
        for line in render(&compare(&a, &b).unwrap(), true).lines() {
            prop_assert!(line.chars().count() <= COLUMNS, "{line}");
        }
    }

    #[test]
    fn numbers_are_short(value in any::<f64>()) {
        prop_assert!(number(value).chars().count() <= 10, "{}", number(value));
    }
}
