//! Range fields and what is sent for them.

use proptest::prelude::*;

use super::*;
use crate::sample::{get, head};

fn spans(value: &str, length: u64) -> Vec<Pair> {
    match parse_ranges(value.as_bytes(), length) {
        RangeOutcome::Ranges(set) => set.iter().map(|span| (span.start, span.bytes)).collect(),
        other => panic!("{value} of {length} gave {other:?}"),
    }
}

/// Start and bytes of a span.
type Pair = (u64, u64);

/// A field, the length it is for, and the spans it gives.
const SATISFIABLE: &[(&str, u64, &[Pair])] = &[
    ("bytes=0-0", 10, &[(0, 1)]),
    ("bytes=0-9", 10, &[(0, 10)]),
    ("bytes=0-", 10, &[(0, 10)]),
    ("bytes=9-", 10, &[(9, 1)]),
    ("bytes=5-100", 10, &[(5, 5)]),
    ("bytes=-3", 10, &[(7, 3)]),
    ("bytes=-10", 10, &[(0, 10)]),
    ("bytes=-100", 10, &[(0, 10)]),
    ("BYTES=1-2", 10, &[(1, 2)]),
    ("bytes=0-0,-1", 10, &[(0, 1), (9, 1)]),
    ("bytes=5-6, 1-2", 10, &[(5, 2), (1, 2)]),
    ("bytes=8-8,4-5,0-0", 10, &[(8, 1), (4, 2), (0, 1)]),
    ("bytes=8-8,0-0,3-4,1-2", 10, &[(8, 1), (0, 5)]),
    ("bytes=6-7,0-0,4-5", 10, &[(4, 4), (0, 1)]),
    ("bytes=-1,20-,0-0", 10, &[(9, 1), (0, 1)]),
    ("bytes= 1-2 ,\t,, 5-6 ,", 10, &[(1, 2), (5, 2)]),
    ("bytes=0-4,3-7", 10, &[(0, 8)]),
    ("bytes=0-4,5-7", 10, &[(0, 8)]),
    ("bytes=0-4,6-7", 10, &[(0, 5), (6, 2)]),
    ("bytes=0-9,2-3", 10, &[(0, 10)]),
    ("bytes=2-3,50-60,20-", 10, &[(2, 2)]),
    ("bytes=0-18446744073709551615", 10, &[(0, 10)]),
    ("bytes=0-99999999999999999999999", 10, &[(0, 10)]),
    ("bytes=-99999999999999999999999", 10, &[(0, 10)]),
    ("bytes=9223372036854775807-", u64::MAX, &[(i64::MAX as u64, 1 << 63)]),
    ("bytes=0-18446744073709551615", u64::MAX, &[(0, u64::MAX)]),
    ("bytes=18446744073709551614-18446744073709551614", u64::MAX, &[(u64::MAX - 1, 1)]),
    ("bytes=-18446744073709551615", u64::MAX, &[(0, u64::MAX)]),
];

#[test]
fn satisfiable_ranges_are_clipped_and_merged_in_the_order_asked_for() {
    for (value, length, expected) in SATISFIABLE {
        assert_eq!(spans(value, *length), *expected, "{value} of {length}");
    }
}

#[test]
fn ranges_beyond_the_end_are_unsatisfiable() {
    for (value, length) in [
        ("bytes=10-", 10),
        ("bytes=10-20", 10),
        ("bytes=10-20,30-,-0", 10),
        ("bytes=-0", 10),
        ("bytes=-0", 0),
        ("bytes=5-", 0),
        ("bytes=1-1", 0),
        ("bytes=9223372036854775808-", 10),
        ("bytes=18446744073709551615-", u64::MAX),
        ("bytes=18446744073709551616-", u64::MAX),
        ("bytes=99999999999999999999999-", 10),
    ] {
        let outcome = parse_ranges(value.as_bytes(), length);
        assert_eq!(outcome, RangeOutcome::Unsatisfiable, "{value} of {length}");
    }
}

#[test]
fn what_may_be_ignored_is_ignored() {
    for value in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes =0-1",
        "bytes:0-1",
        "items=0-1",
        "0-1",
        "bytes=-",
        "bytes=1",
        "bytes=a-b",
        "bytes=1-a",
        "bytes=+1-2",
        "bytes=1 - 2",
        "bytes=2-1",
        "bytes=--1",
        "bytes=0-1-2",
        "bytes=0x1-2",
        "bytes=0-1;2-3",
        "bytes=0-1,x",
        "bytes=20-,x",
        "bytes=*",
        "bytes=0-1, bytes=2-3",
        "bytes=\u{661}-",
    ] {
        assert_eq!(parse_ranges(value.as_bytes(), 10), RangeOutcome::Whole, "{value}");
    }
}

#[test]
fn the_beginning_and_the_end_of_nothing_are_the_whole_of_it() {
    for value in ["bytes=-5", "bytes=0-", "bytes=0-0", "bytes=0-499", "bytes=7-,0-"] {
        assert_eq!(parse_ranges(value.as_bytes(), 0), RangeOutcome::Whole, "{value}");
    }
}

fn list(count: usize, spec: impl Fn(usize) -> String) -> Vec<u8> {
    let specs: Vec<String> = (0..count).map(spec).collect();
    format!("bytes={}", specs.join(",")).into_bytes()
}

#[test]
fn as_many_ranges_as_the_limit_are_sent_and_one_more_is_not() {
    let apart = |number: usize| format!("{0}-{0}", number * 2);
    let RangeOutcome::Ranges(set) = parse_ranges(&list(RANGES_MAX, apart), 1000) else {
        panic!("not sent");
    };
    assert_eq!(set.len(), RANGES_MAX);
    assert_eq!(parse_ranges(&list(RANGES_MAX + 1, apart), 1000), RangeOutcome::Whole);
}

#[test]
fn as_many_ranges_as_the_limit_are_looked_at_and_one_more_is_not() {
    let outcome = parse_ranges(&list(RANGE_SPECS_MAX, |_| "0-".to_owned()), 10);
    assert!(matches!(outcome, RangeOutcome::Ranges(_)));
    for spec in ["0-", "5-", "20-", "-0"] {
        let outcome = parse_ranges(&list(RANGE_SPECS_MAX + 1, |_| spec.to_owned()), 10);
        assert_eq!(outcome, RangeOutcome::Whole, "{spec}");
    }
    let first_beyond_the_end =
        |number| if number < RANGE_SPECS_MAX { "20-" } else { "0-" }.to_owned();
    let outcome = parse_ranges(&list(RANGE_SPECS_MAX + 1, first_beyond_the_end), 10);
    assert_eq!(outcome, RangeOutcome::Whole);
    assert_eq!(parse_ranges(&list(1300, |_| "0-,5-0".to_owned()), 10), RangeOutcome::Whole);
}

#[test]
fn only_a_single_range_field_of_a_get_request_counts() {
    assert_eq!(requested(&head(&get("Range: bytes=0-1\r\n"))), Some(b"bytes=0-1".as_slice()));
    assert_eq!(requested(&head(&get(""))), None);
    let twice = get("Range: bytes=0-1\r\nRange: bytes=2-3\r\n");
    assert_eq!(requested(&head(&twice)), None);
    let other = head(b"HEAD / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n");
    assert_eq!(requested(&other), None);
}

#[test]
fn content_range_names_the_last_byte() {
    let mut out = Vec::new();
    write_content_range(&mut out, ByteRange { start: u64::MAX - 2, bytes: 2 }, u64::MAX);
    assert_eq!(out, b"bytes 18446744073709551613-18446744073709551614/18446744073709551615");
}

fn number() -> impl Strategy<Value = u64> {
    let edge = prop_oneof![Just(0), Just(1 << 63), Just(u64::MAX)];
    prop_oneof![6 => 0_u64..30, 1 => (edge, 0_u64..3).prop_map(|(edge, more)| edge.wrapping_sub(more))]
}

fn almost_ranges() -> impl Strategy<Value = String> {
    let spec = prop_oneof![
        6 => (number(), number()).prop_map(|(first, bytes)| format!("{first}-{}", first.saturating_add(bytes))),
        2 => number().prop_map(|first| format!("{first}-")),
        2 => number().prop_map(|suffix| format!("-{suffix}")),
        1 => "[0-9, x-]{0,6}",
    ];
    proptest::collection::vec(spec, 0..24).prop_map(|specs| format!("bytes={}", specs.join(",")))
}

/// True if a value asks for one byte, by RFC 9110 §14.1.2.
fn is_requested(value: &str, position: u64, length: u64) -> bool {
    value.trim_start_matches("bytes=").split(',').map(str::trim).any(|spec| {
        match spec.split_once('-') {
            Some(("", suffix)) => length - position <= suffix.parse().unwrap_or(0),
            Some((first, "")) => first.parse().is_ok_and(|first: u64| position >= first),
            Some((first, last)) => {
                first.parse().is_ok_and(|first: u64| position >= first)
                    && last.parse().is_ok_and(|last: u64| position <= last)
            }
            None => false,
        }
    })
}

proptest! {
    #[test]
    fn spans_lie_within_the_length_and_apart(value in almost_ranges(), length in number()) {
        if let RangeOutcome::Ranges(set) = parse_ranges(value.as_bytes(), length) {
            prop_assert!((1..=RANGES_MAX).contains(&set.len()));
            for (index, span) in set.iter().enumerate() {
                prop_assert!(span.bytes > 0);
                prop_assert!(span.start.checked_add(span.bytes).is_some_and(|end| end <= length));
                let mut others = set.iter().skip(index + 1);
                prop_assert!(others.all(|other| other.start > span.end() || other.end() < span.start));
            }
        }
    }

    #[test]
    fn exactly_the_bytes_asked_for_are_sent(value in almost_ranges(), length in 1_u64..40) {
        match parse_ranges(value.as_bytes(), length) {
            RangeOutcome::Whole => {}
            RangeOutcome::Unsatisfiable => {
                prop_assert!(!(0..length).any(|position| is_requested(&value, position, length)));
            }
            RangeOutcome::Ranges(set) => {
                for position in 0..length {
                    let is_sent = set.iter().any(|span| span.start <= position && position < span.end());
                    prop_assert_eq!(is_sent, is_requested(&value, position, length));
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(value in proptest::collection::vec(any::<u8>(), 0..60), length: u64) {
        let _ = parse_ranges(&value, length);
    }
}
