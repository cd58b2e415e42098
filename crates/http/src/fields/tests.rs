//! Lines within and beyond those that the parser makes room for at first.

use super::*;
use crate::h1::parse::{HEADERS_USUAL, ParseRequest, parse_request};
use crate::message::HeadLimits;

fn with_lines(count: usize) -> Vec<u8> {
    let lines: String =
        (0..count).map(|number| format!("Name-{number}:\t value-{number} \r\n")).collect();
    format!("GET / HTTP/1.0\r\n{lines}\r\nbody: no\r\n\r\n").into_bytes()
}

#[test]
fn every_line_is_found_however_many_there_are() {
    let limits = HeadLimits { headers_max: 128, ..HeadLimits::default() };
    for count in [0, 1, HEADERS_USUAL - 1, HEADERS_USUAL, HEADERS_USUAL + 1, 128] {
        let bytes = with_lines(count);
        let Ok(ParseRequest::Complete { head, .. }) = parse_request(&bytes, &limits) else {
            panic!("{count} lines were not accepted");
        };
        assert_eq!(head.headers().count(), count);
        for number in 0..count {
            let value = head.header(&format!("nAME-{number}"));
            assert_eq!(value, Some(format!("value-{number}").as_bytes()), "{number} of {count}");
        }
        assert_eq!(head.header(&format!("name-{count}")), None);
        assert_eq!(head.header("body"), None);
    }
}

#[test]
fn lines_of_one_name_come_in_order() {
    let bytes = String::from_utf8(with_lines(40)).unwrap();
    let bytes = bytes.replace("Name-3:", "X:").replace("Name-35:", "x:");
    let head = crate::sample::head(bytes.as_bytes());
    let values: Vec<_> = head.header_values("X").collect();
    assert_eq!(values, [b"value-3".as_slice(), b"value-35"]);
}

#[test]
fn the_bit_of_a_name_does_not_depend_on_its_case() {
    for name in ["Host", "If-None-Match", "x"] {
        assert_eq!(name_bit(name.as_bytes()), name_bit(name.to_uppercase().as_bytes()));
    }
}

/// Only then looking for fields that are not there costs next to nothing.
#[test]
fn most_names_have_a_bit_of_their_own() {
    let names = "host connection accept accept-encoding accept-language user-agent cookie referer range if-range \
        if-none-match if-modified-since cache-control content-length content-type transfer-encoding expect te \
        upgrade authorization origin forwarded via";
    let bits: std::collections::HashSet<_> =
        names.split_whitespace().map(|name| name_bit(name.as_bytes())).collect();
    assert!(bits.len() >= 20, "{}", bits.len());
}

#[test]
fn a_name_that_is_not_there_is_not_looked_for() {
    let head = b"Host: a";
    let mut fields = Fields::with_capacity(1);
    fields.push(head, &head[..4], &head[6..]).unwrap();
    let held = ["HOST", "range"].map(|name| fields.may_hold(name.as_bytes()));
    assert_eq!(held, [true, false]);
}
