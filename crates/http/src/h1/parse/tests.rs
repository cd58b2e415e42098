//! That the outcome depends on the bytes and the limits, and not on how the bytes arrive.

use proptest::prelude::*;

use super::*;
use crate::h1::framing::BodyFraming;
use crate::sample::{Request, checked};

mod table;

fn outcome(bytes: &[u8], limits: &HeadLimits) -> Result<Option<Request>, RequestError> {
    parse_request(bytes, limits).and_then(checked)
}

/// Checks that no cut of the input changes the outcome, however the parser is called.
fn assert_independent_of_fragmentation(
    bytes: &[u8],
    limits: &HeadLimits,
) -> Result<Option<Request>, RequestError> {
    let whole = outcome(bytes, limits);
    let mut progress = HeadProgress::default();
    let mut by_progress = Ok(None);
    for end in 0..=bytes.len() {
        let part = outcome(&bytes[..end], limits);
        assert!(part == Ok(None) || part == whole, "{part:?} then {whole:?}");
        if by_progress == Ok(None) {
            by_progress = progress.parse(&bytes[..end], limits).and_then(checked);
            assert!(by_progress == Ok(None) || by_progress == whole);
        }
    }
    if matches!(whole, Ok(Some(_))) {
        assert_eq!(by_progress, whole);
    }
    whole
}

#[test]
fn the_length_of_a_head_includes_the_empty_lines_before_it() {
    let bytes = b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
    let request = outcome(bytes, &HeadLimits::default()).unwrap().unwrap();
    assert_eq!(request.bytes, bytes.len() - "rest".len());
}

const SMALL: HeadLimits = HeadLimits { head_bytes_max: 120, headers_max: 3, target_bytes_max: 20 };

#[test]
fn a_head_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() {
    let head = |padding| format!("GET / HTTP/1.1\r\nHost: a\r\nA: {:b<padding$}\r\n\r\n", "");
    let spare = 120 - head(0).len();
    let fits = head(spare);
    assert_eq!(fits.len(), 120);
    let accepted = assert_independent_of_fragmentation(fits.as_bytes(), &SMALL);
    assert_eq!(accepted.map(|request| request.map(|request| request.bytes)), Ok(Some(120)));
    let refused = assert_independent_of_fragmentation(head(spare + 1).as_bytes(), &SMALL);
    assert_eq!(refused, Err(RequestError::HeadTooLarge));
    let long = head(200);
    let mut progress = HeadProgress::default();
    let found = (1..200).find(|end| progress.parse(&long.as_bytes()[..*end], &SMALL).is_err());
    assert_eq!(found, Some(120), "at the limit, though neither its end nor twice as much is there");
}

#[test]
fn an_error_beyond_the_limit_of_a_head_is_never_seen() {
    let late = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {:b<200}\0", "");
    let refused = assert_independent_of_fragmentation(late.as_bytes(), &SMALL);
    assert_eq!(refused, Err(RequestError::HeadTooLarge));
}

#[test]
fn a_target_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() {
    let request = |bytes: usize| format!("GET /{:a<1$} HTTP/1.1\r\nHost: a\r\n\r\n", "", bytes - 1);
    let accepted = assert_independent_of_fragmentation(request(20).as_bytes(), &SMALL);
    assert!(matches!(accepted, Ok(Some(_))));
    let refused = assert_independent_of_fragmentation(request(21).as_bytes(), &SMALL);
    assert_eq!(refused, Err(RequestError::TargetTooLong));
}

#[test]
fn a_target_that_fills_the_whole_head_is_too_long() {
    let limits = HeadLimits { target_bytes_max: 1000, ..SMALL };
    let request = format!("GET /{:a<200} HTTP/1.1\r\nHost: a\r\n\r\n", "");
    let refused = assert_independent_of_fragmentation(request.as_bytes(), &limits);
    assert_eq!(refused, Err(RequestError::TargetTooLong));
}

fn with_fields(count: usize) -> String {
    let fields: String = (1..count).map(|number| format!("a{number}: b\r\n")).collect();
    format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn as_many_fields_as_the_limit_are_accepted_and_one_more_is_not() {
    for headers_max in [3, HEADERS_USUAL, HEADERS_USUAL + 1, 64, HEADERS_MAX] {
        let limits = HeadLimits { headers_max, ..HeadLimits::default() };
        let accepted = outcome(with_fields(headers_max).as_bytes(), &limits);
        assert!(matches!(accepted, Ok(Some(_))), "{headers_max}");
        let refused = outcome(with_fields(headers_max + 1).as_bytes(), &limits);
        assert_eq!(refused, Err(RequestError::TooManyFields), "{headers_max}");
    }
}

#[test]
fn limits_beyond_the_hard_ones_do_not_lift_those() {
    let limits =
        HeadLimits { head_bytes_max: usize::MAX, headers_max: 1000, target_bytes_max: usize::MAX };
    let many = outcome(with_fields(HEADERS_MAX + 1).as_bytes(), &limits);
    assert_eq!(many, Err(RequestError::TooManyFields));
    let value = "b".repeat(HEAD_BYTES_MAX);
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {value}\r\n\r\n");
    assert_eq!(outcome(long.as_bytes(), &limits), Err(RequestError::HeadTooLarge));
}

#[test]
fn fields_near_the_end_of_the_longest_head_are_found() {
    let empty = "GET / HTTP/1.1\r\nHost: a\r\nA: \r\nLast: here\r\n\r\n".len();
    let padding = HEAD_BYTES_MAX - empty;
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {:b<padding$}\r\nLast: here\r\n\r\n", "");
    let limits = HeadLimits { head_bytes_max: HEAD_BYTES_MAX, ..HeadLimits::default() };
    match parse_request(bytes.as_bytes(), &limits) {
        Ok(ParseRequest::Complete { head, bytes }) => {
            assert_eq!(bytes, HEAD_BYTES_MAX);
            assert_eq!(head.header("last"), Some(b"here".as_slice()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_head_sent_byte_by_byte_is_parsed_a_logarithmic_number_of_times() {
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {:b<8000}\r\n\r\n", "");
    let mut progress = HeadProgress::default();
    let mut parsed_bytes = 0;
    for end in 1..=bytes.len() {
        let buffer = &bytes.as_bytes()[..end];
        if { progress }.is_worthwhile(buffer, HEAD_BYTES_MAX) {
            parsed_bytes += end;
        }
        let parse = progress.parse(buffer, &HeadLimits::default()).unwrap();
        assert_eq!(matches!(parse, ParseRequest::Complete { .. }), end == bytes.len());
    }
    assert!(parsed_bytes <= 3 * bytes.len(), "{parsed_bytes} bytes looked at");
}

#[test]
fn a_mistake_is_found_before_the_head_is_twice_as_long() {
    let start = "GET / HTTP/1.1\r\n: a\r\n";
    let bytes = format!("{start}A: {:b<200}", "");
    let mut progress = HeadProgress::default();
    let mut parse =
        |end: &usize| progress.parse(&bytes.as_bytes()[..*end], &HeadLimits::default()).is_err();
    let found = (1..bytes.len()).find(&mut parse);
    assert!(found.is_some_and(|end| end <= 2 * start.len()), "{found:?}");
}

#[test]
fn progress_begins_anew_after_a_complete_head() {
    let mut progress = HeadProgress::default();
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {:b<500}\r\n\r\n", "");
    progress.parse(long.as_bytes(), &HeadLimits::default()).unwrap();
    let short = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let parse = progress.parse(short, &HeadLimits::default()).unwrap();
    assert!(matches!(parse, ParseRequest::Complete { .. }));
}

/// Something like a request: mostly well-formed pieces, some of them hostile.
fn almost_request() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\r\n".to_vec()),
        2 => Just(b"Host: a\r\n".to_vec()),
        2 => Just(b"Content-Length: 3\r\n".to_vec()),
        1 => Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        1 => Just(b"\n".to_vec()),
        1 => Just(b" ".to_vec()),
        1 => Just(b":".to_vec()),
        2 => "[A-Za-z-]{1,8}: [ -~]{0,12}\r\n".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    let line = prop_oneof![
        4 => "(GET|HEAD|POST) /[a-z%./?]{0,12} HTTP/1\\.[01]\r\n".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    (line, proptest::collection::vec(piece, 0..8)).prop_map(|(mut bytes, pieces)| {
        bytes.extend(pieces.concat());
        bytes
    })
}

proptest! {
    #[test]
    fn any_input_has_one_outcome_however_it_is_cut(bytes in almost_request()) {
        let limits = HeadLimits { head_bytes_max: 90, headers_max: 4, target_bytes_max: 10 };
        let _ = assert_independent_of_fragmentation(&bytes, &limits);
    }

    #[test]
    fn a_complete_head_ends_with_its_empty_line(bytes in almost_request()) {
        if let Ok(ParseRequest::Complete { head, bytes: end }) = parse_request(&bytes, &HeadLimits::default()) {
            let text = &bytes[..end];
            prop_assert!(text.ends_with(b"\r\n\r\n"));
            // One line for each field, one for the request line, one for the end.
            let lines = text.split(|byte| *byte == b'\n').count() - 1;
            let leading = text.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count() / 2;
            prop_assert_eq!(lines, leading + head.headers().count() + 2);
            for (name, value) in head.headers() {
                prop_assert!(name.iter().all(|byte| field::is_token_byte(*byte)));
                prop_assert!(value.iter().all(|byte| field::is_value_byte(*byte)));
            }
        }
    }

    #[test]
    fn an_accepted_request_has_at_most_one_framing(bytes in almost_request()) {
        if let Ok(Some(request)) = outcome(&bytes, &HeadLimits::default()) {
            let text = String::from_utf8_lossy(&bytes[..request.bytes]).to_lowercase();
            let lengths = text.matches("\ncontent-length:").count();
            let codings = text.matches("\ntransfer-encoding:").count();
            prop_assert!(lengths + codings <= 1);
            prop_assert_eq!(lengths + codings == 0, request.framing == BodyFraming::None);
        }
    }
}
