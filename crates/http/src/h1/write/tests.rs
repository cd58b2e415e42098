//! Heads as they go out.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

#[test]
fn a_head_is_a_status_line_and_field_lines() {
    let mut out = Vec::new();
    write_status_line(&mut out, 200);
    write_field(&mut out, "Content-Type", b"text/plain");
    write_field_u64(&mut out, "Content-Length", 18_446_744_073_709_551_615);
    let expected =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 18446744073709551615\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_length_of_content_is_a_line_of_its_own() {
    let mut out = b"before\r\n".to_vec();
    write_content_length(&mut out, 4_294_967_296);
    assert_eq!(out, b"before\r\ncontent-length: 4294967296\r\n");
}

#[test]
fn a_byte_of_a_value_is_good_or_bad_wherever_it_stands() {
    for byte in 0..=u8::MAX {
        for (length, at) in (1..=17).flat_map(|length| (0..length).map(move |at| (length, at))) {
            for other in [b' ', b'~', b'\t', 0x80, 0xff] {
                let mut value = vec![other; length];
                value[at] = byte;
                assert_eq!(is_value(&value), is_value_byte(byte), "{value:?}");
            }
        }
    }
    assert!(is_value(b""));
}

#[test]
fn a_head_is_appended_to_what_is_there() {
    let mut out = b"before".to_vec();
    write_status_line(&mut out, 404);
    assert_eq!(out, b"beforeHTTP/1.1 404 Not Found\r\n");
}

#[test]
fn ready_made_status_lines_agree_with_the_reason_phrases() {
    let ready = (100..600).filter_map(|status| Some((status, status_line(status)?)));
    let ready: Vec<_> = ready.collect();
    assert_eq!(ready.len(), 4);
    for (status, line) in ready {
        let expected = format!("HTTP/1.1 {status} {}\r\n", reason_phrase(status));
        assert_eq!(line, expected.as_bytes());
    }
}

#[test]
fn every_status_of_the_rfcs_has_a_phrase_of_its_own_and_no_other_has() {
    let registered = [100..=103, 200..=206, 300..=304, 307..=308, 400..=417, 421..=422, 425..=426]
        .into_iter()
        .chain([428..=429, 431..=431, 451..=451, 500..=505]);
    let registered: Vec<u16> = registered.flatten().collect();
    let named: Vec<u16> = (0..=999).filter(|status| !reason_phrase(*status).is_empty()).collect();
    assert_eq!(named, registered);
    let phrases: HashSet<&str> = named.iter().map(|status| reason_phrase(*status)).collect();
    assert_eq!(phrases.len(), named.len());
}

#[test]
fn a_status_without_a_phrase_keeps_the_space_before_it() {
    let mut out = Vec::new();
    write_status_line(&mut out, 299);
    assert_eq!(out, b"HTTP/1.1 299 \r\n");
}

#[test]
fn values_and_names_that_no_field_may_have_are_left_out_with_their_line() {
    for (name, value) in [
        ("A", b"b\r\nC: d".as_slice()),
        ("A", b"b\nC: d"),
        ("A", b"b\r"),
        ("A", b"b\0"),
        ("A", b"b\x1b[2J"),
        ("A", b"b\x7f"),
        ("A\r\nC", b"d"),
        ("A: b", b"d"),
        ("A b", b"d"),
        ("A(b)", b"d"),
        ("", b"d"),
        ("\u{e9}", b"d"),
    ] {
        let mut out = Vec::new();
        write_field(&mut out, name, value);
        assert_eq!(out, b"", "{name:?} {value:?}");
    }
    let mut out = Vec::new();
    write_field(&mut out, "a-B_1~", b"\tvalue \xff \xc3\xa9");
    assert_eq!(out, b"a-B_1~: \tvalue \xff \xc3\xa9\r\n");
}

#[test]
fn a_buffer_that_has_grown_is_not_replaced() {
    let mut out = Vec::with_capacity(1024);
    let place = out.as_ptr();
    for _ in 0..100 {
        out.clear();
        write_status_line(&mut out, 200);
        write_field(&mut out, "A", &[b'b'; 900]);
        write_field_u64(&mut out, "C", 1);
        assert_eq!(out.as_ptr(), place);
    }
}

proptest! {
    #[test]
    fn no_field_can_add_a_line(name in "\\PC{0,8}", value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut out = Vec::new();
        write_field(&mut out, &name, &value);
        let lines = out.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines, usize::from(!out.is_empty()));
        prop_assert_eq!(out.iter().filter(|byte| **byte == b'\r').count(), lines);
    }
}
