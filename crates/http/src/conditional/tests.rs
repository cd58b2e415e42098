//! Preconditions in every order that RFC 9110 §13.2.2 tells apart.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::sample::{get, head};

/// The representation: last changed a quarter of a second after `NOW`.
const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn validators() -> Validators<'static> {
    let modified = UNIX_EPOCH + Duration::from_millis(784_111_777_250);
    Validators {
        etag: "\"abc\"",
        modified: Some(modified),
        shares_date: false,
        since: ModifiedSince::Before,
    }
}

#[test]
fn a_weak_tag_is_compared_weakly_and_a_date_nobody_knows_not_at_all() {
    let weak = Validators { etag: "W/\"abc\"", modified: None, ..validators() };
    let evaluated = |lines: &str| evaluate(&head(&get(&lines.replace("NOW", NOW))), &weak);
    for (lines, expected) in [
        ("If-Match: \"abc\"\r\n", Failed),
        ("If-Match: W/\"abc\"\r\n", Failed),
        ("If-Match: *\r\n", Proceed),
        ("If-None-Match: \"abc\"\r\n", NotModified),
        ("If-None-Match: W/\"abc\"\r\n", NotModified),
        ("If-None-Match: \"x\"\r\n", Proceed),
        ("If-Unmodified-Since: NOW\r\n", Proceed),
        ("If-Modified-Since: NOW\r\n", Proceed),
    ] {
        assert_eq!(evaluated(lines), expected, "{lines:?}");
    }
    for value in ["\"abc\"", "W/\"abc\"", NOW] {
        let text = get(&format!("If-Range: {value}\r\n"));
        assert!(!if_range_matches(&head(&text), &weak, SystemTime::now()), "{value}");
    }
}

/// nginx's `if_modified_since`.
#[test]
fn dates_may_have_to_be_the_very_ones_or_count_as_none() {
    let evaluated = |lines: &str, since| {
        let lines = lines.replace("NOW", NOW).replace("AFTER", AFTER);
        evaluate(&head(&get(&lines)), &Validators { since, ..validators() })
    };
    for (lines, exact, off) in [
        ("", Proceed, Proceed),
        ("If-Modified-Since: NOW\r\n", NotModified, Proceed),
        ("If-Modified-Since: AFTER\r\n", Proceed, Proceed),
        ("If-Modified-Since: nonsense\r\nIf-None-Match: \"abc\"\r\n", Proceed, Proceed),
        ("If-Modified-Since: NOW\r\nIf-None-Match: \"abc\"\r\n", NotModified, Proceed),
        ("If-Modified-Since: NOW\r\nIf-None-Match: \"x\"\r\n", Proceed, Proceed),
        ("If-Modified-Since: AFTER\r\nIf-None-Match: \"abc\"\r\n", Proceed, Proceed),
        ("If-None-Match: \"abc\"\r\n", NotModified, NotModified),
        ("If-Match: \"x\"\r\nIf-Modified-Since: AFTER\r\n", Failed, Failed),
    ] {
        assert_eq!(evaluated(lines, ModifiedSince::Exact), exact, "{lines:?}");
        assert_eq!(evaluated(lines, ModifiedSince::Off), off, "{lines:?}");
    }
}

fn outcome(lines: &str) -> Precondition {
    let lines = lines.replace("NOW", NOW).replace("BEFORE", BEFORE).replace("AFTER", AFTER);
    evaluate(&head(&get(&lines)), &validators())
}

use Precondition::{Failed, NotModified, Proceed};

const CASES: &[(&str, Precondition)] = &[
    ("", Proceed),
    // If-Match: strong comparison.
    ("If-Match: \"abc\"\r\n", Proceed),
    ("If-Match: *\r\n", Proceed),
    ("If-Match: \"x\"\r\n", Failed),
    ("If-Match: W/\"abc\"\r\n", Failed),
    ("If-Match: \"x\", \"abc\"\r\n", Proceed),
    ("If-Match: \"x\"\r\nIf-Match: \"abc\"\r\n", Proceed),
    ("If-Match: abc\r\n", Failed),
    ("If-Match:\r\n", Failed),
    // If-Unmodified-Since, only without If-Match.
    ("If-Unmodified-Since: NOW\r\n", Proceed),
    ("If-Unmodified-Since: AFTER\r\n", Proceed),
    ("If-Unmodified-Since: BEFORE\r\n", Failed),
    ("If-Unmodified-Since: nonsense\r\n", Proceed),
    ("If-Unmodified-Since: BEFORE\r\nIf-Unmodified-Since: BEFORE\r\n", Proceed),
    ("If-Match: \"abc\"\r\nIf-Unmodified-Since: BEFORE\r\n", Proceed),
    ("If-Match: \"x\"\r\nIf-Unmodified-Since: NOW\r\n", Failed),
    // If-None-Match: weak comparison.
    ("If-None-Match: \"abc\"\r\n", NotModified),
    ("If-None-Match: W/\"abc\"\r\n", NotModified),
    ("If-None-Match: *\r\n", NotModified),
    ("If-None-Match: \"x\"\r\n", Proceed),
    ("If-None-Match: \"ABC\"\r\n", Proceed),
    ("If-None-Match: w/\"abc\"\r\n", Proceed),
    ("If-None-Match: \"x\" ,\t, W/\"y\",\"abc\"\r\n", NotModified),
    ("If-None-Match: \"x,y\", \"abc\"\r\n", NotModified),
    ("If-None-Match: \"x\"\r\nIf-None-Match: \"abc\"\r\n", NotModified),
    ("If-None-Match: \"x\" \"abc\"\r\n", Proceed),
    ("If-None-Match: \"abc\r\n", Proceed),
    ("If-None-Match: abc\r\n", Proceed),
    ("If-None-Match: \"\", \"abc\"\r\n", NotModified),
    ("If-None-Match: *, \"x\"\r\n", Proceed),
    // If-Modified-Since, only without If-None-Match.
    ("If-Modified-Since: NOW\r\n", NotModified),
    ("If-Modified-Since: AFTER\r\n", NotModified),
    ("If-Modified-Since: BEFORE\r\n", Proceed),
    ("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", NotModified),
    ("If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n", NotModified),
    ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 CET\r\n", Proceed),
    ("If-Modified-Since: 784111777\r\n", Proceed),
    ("If-Modified-Since: NOW\r\nIf-Modified-Since: NOW\r\n", Proceed),
    ("If-None-Match: \"x\"\r\nIf-Modified-Since: NOW\r\n", Proceed),
    ("If-None-Match: \"abc\"\r\nIf-Modified-Since: BEFORE\r\n", NotModified),
    // Both kinds: first 412, then 304.
    ("If-Match: \"x\"\r\nIf-None-Match: \"abc\"\r\n", Failed),
    ("If-Match: \"abc\"\r\nIf-None-Match: \"abc\"\r\n", NotModified),
    ("If-Unmodified-Since: BEFORE\r\nIf-Modified-Since: NOW\r\n", Failed),
    ("If-Unmodified-Since: NOW\r\nIf-Modified-Since: NOW\r\n", NotModified),
];

#[test]
fn preconditions_are_evaluated_in_the_order_of_the_table() {
    for (lines, expected) in CASES {
        assert_eq!(outcome(lines), *expected, "{lines:?}");
    }
}

#[test]
fn options_ignores_preconditions() {
    let request = head(b"OPTIONS / HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\n\r\n");
    assert_eq!(evaluate(&request, &validators()), Proceed);
}

#[test]
fn head_is_conditional_as_get_is() {
    let request = head(b"HEAD / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"abc\"\r\n\r\n");
    assert_eq!(evaluate(&request, &validators()), NotModified);
}

#[test]
fn if_range_wants_exactly_the_current_representation() {
    for (lines, expected) in [
        ("", true),
        ("If-Range: \"abc\"\r\n", true),
        ("If-Range: W/\"abc\"\r\n", false),
        ("If-Range: \"x\"\r\n", false),
        ("If-Range: \"abc\", \"x\"\r\n", false),
        ("If-Range: *\r\n", false),
        ("If-Range:\r\n", false),
        ("If-Range: NOW\r\n", true),
        ("If-Range: BEFORE\r\n", false),
        ("If-Range: AFTER\r\n", false),
        ("If-Range: \"abc\"\r\nIf-Range: \"abc\"\r\n", false),
    ] {
        let lines = lines.replace("NOW", NOW).replace("BEFORE", BEFORE).replace("AFTER", AFTER);
        let request = get(&lines);
        let later = validators().modified.unwrap() + Duration::from_mins(1);
        let matches = if_range_matches(&head(&request), &validators(), later);
        assert_eq!(matches, expected, "{lines:?}");
    }
}

#[test]
fn a_date_is_strong_for_if_range_once_its_second_is_over() {
    let second = date::whole_second(validators().modified.unwrap());
    let dated = get(&format!("If-Range: {NOW}\r\n"));
    for (milliseconds, expected) in [(250, false), (999, false), (1000, true), (60_000, true)] {
        let now = second + Duration::from_millis(milliseconds);
        let matches = if_range_matches(&head(&dated), &validators(), now);
        assert_eq!(matches, expected, "{milliseconds} ms");
    }
    let clock_set_back = second - Duration::from_secs(5);
    assert!(!if_range_matches(&head(&dated), &validators(), clock_set_back));
    let tagged = get("If-Range: \"abc\"\r\n");
    assert!(if_range_matches(&head(&tagged), &validators(), second));
    let shared = Validators { shares_date: true, ..validators() };
    let later = second + Duration::from_secs(9);
    assert!(if_range_matches(&head(&dated), &validators(), later));
    assert!(!if_range_matches(&head(&dated), &shared, later));
    assert!(if_range_matches(&head(&tagged), &shared, later));
}

proptest! {
    #[test]
    fn a_tag_is_found_wherever_it_stands_in_a_list(before in proptest::collection::vec("(W/)?\"[a-z,!]{0,5}\"", 0..5), after in "[ -~]{0,12}") {
        let mut tags = before;
        tags.push("\"abc\"".to_owned());
        let lines = format!("If-None-Match: {},{after}\r\n", tags.join(" , "));
        prop_assert_eq!(outcome(&lines), NotModified);
    }
}
