//! Heads as they go out.

use proptest::prelude::*;

use super::*;
use crate::range::Span;

#[test]
fn a_head_is_a_status_line_field_lines_and_an_empty_line() {
    let mut out = Vec::new();
    HeadWriter::new(&mut out, 200)
        .header("Content-Type", b"text/plain")
        .header_u64("Content-Length", 18_446_744_073_709_551_615)
        .finish();
    let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\
                    Content-Length: 18446744073709551615\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn content_range_is_written_for_parts_and_for_416() {
    let mut out = Vec::new();
    let mut writer = HeadWriter::new(&mut out, 206);
    writer.content_range(Span { start: 5, bytes: 3 }, 100).content_range_unsatisfied(100).finish();
    let expected = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-7/100\r\n\
                    Content-Range: bytes */100\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_head_is_appended_to_what_is_there() {
    let mut out = b"before".to_vec();
    HeadWriter::new(&mut out, 404).finish();
    assert_eq!(out, b"beforeHTTP/1.1 404 Not Found\r\n\r\n");
}

#[test]
fn ready_made_status_lines_agree_with_the_reason_phrases() {
    for status in 100..600 {
        if let Some(line) = status_line(status) {
            let expected = format!("HTTP/1.1 {status} {}\r\n", reason_phrase(status));
            assert_eq!(line, expected.as_bytes());
        }
    }
}

#[test]
fn a_status_without_a_phrase_keeps_the_space_before_it() {
    let mut out = Vec::new();
    HeadWriter::new(&mut out, 299).finish();
    assert_eq!(out, b"HTTP/1.1 299 \r\n\r\n");
}

#[test]
fn values_and_names_that_would_split_the_head_are_left_out_and_counted() {
    for (name, value) in [
        ("A", b"b\r\nC: d".as_slice()),
        ("A", b"b\nC: d"),
        ("A", b"b\r"),
        ("A", b"b\0"),
        ("A\r\nC", b"d"),
        ("A: b", b"d"),
        ("A b", b"d"),
        ("", b"d"),
        ("\u{e9}", b"d"),
    ] {
        let mut out = Vec::new();
        let refused = HeadWriter::new(&mut out, 200).header(name, value).header("E", b"f").finish();
        assert_eq!(refused, 1, "{name:?} {value:?}");
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nE: f\r\n\r\n");
    }
}

#[test]
fn a_buffer_that_has_grown_is_not_replaced() {
    let mut out = Vec::with_capacity(1024);
    let place = out.as_ptr();
    for _ in 0..100 {
        out.clear();
        HeadWriter::new(&mut out, 200).header("A", &[b'b'; 900]).header_u64("C", 1).finish();
        assert_eq!(out.as_ptr(), place);
    }
}

proptest! {
    #[test]
    fn no_field_can_add_a_line(name in "\\PC{0,8}", value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut out = Vec::new();
        let refused = HeadWriter::new(&mut out, 200).header(&name, &value).finish();
        let lines = out.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines, 3 - refused);
        prop_assert_eq!(out.iter().filter(|byte| **byte == b'\r').count(), lines);
    }
}
