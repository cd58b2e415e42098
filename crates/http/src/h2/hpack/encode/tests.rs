//! The bytes written, one by one. That it reads back is asked in `hpack/tests.rs`.

use super::*;

fn field(name: &str, value: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    encode_field(name.as_bytes(), value, &mut block);
    block
}

fn integer(value: usize, prefix_bits: u32) -> Vec<u8> {
    let mut block = Vec::new();
    encode_integer(value, prefix_bits, 0, &mut block);
    block
}

#[test]
fn a_status_of_the_static_table_is_one_byte() {
    for (index, status) in (8..).zip([200, 204, 206, 304, 400, 404, 500]) {
        let mut block = Vec::new();
        encode_status(status, &mut block);
        assert_eq!(block, [0x80 | index], "{status}");
    }
}

#[test]
fn another_status_is_a_literal() {
    let mut block = Vec::new();
    encode_status(421, &mut block);
    assert_eq!(block, b"\x08\x03421");
}

#[test]
fn a_name_of_the_static_table_is_its_index() {
    assert_eq!(field("age", b"5"), b"\x0f\x06\x015");
    assert_eq!(field("Content-Type", b"text/html"), b"\x0f\x10\x09text/html");
    assert_eq!(field(":path", b"/a"), b"\x04\x02/a");
}

#[test]
fn another_name_is_written_in_lower_case() {
    assert_eq!(field("Alt-Svc", b"Clear"), b"\x00\x07alt-svc\x05Clear");
    assert_eq!(field("x", b""), b"\x00\x01x\x00");
}

#[test]
fn credentials_are_never_indexed() {
    assert_eq!(field("authorization", b"a"), b"\x1f\x08\x01a");
    assert_eq!(field("Cookie", b"a"), b"\x1f\x11\x01a");
    assert_eq!(field("proxy-authorization", b"a"), b"\x1f\x22\x01a");
    assert_eq!(field("set-cookie", b"a"), b"\x1f\x28\x01a");
}

#[test]
fn a_table_of_nothing_is_one_byte() {
    let mut block = Vec::new();
    encode_table_of_nothing(&mut block);
    assert_eq!(block, [0x20]);
}

#[test]
fn what_is_written_is_appended() {
    let mut block = vec![1, 2];
    encode_status(200, &mut block);
    encode_field(b"x", b"y", &mut block);
    assert_eq!(block, b"\x01\x02\x88\x00\x01x\x01y");
}

#[test]
fn integers_are_those_of_appendix_c() {
    assert_eq!(integer(10, 5), [10]);
    assert_eq!(integer(1337, 5), [31, 154, 10]);
    assert_eq!(integer(30, 5), [30]);
    assert_eq!(integer(31, 5), [31, 0]);
    assert_eq!(integer(126, 7), [126]);
    assert_eq!(integer(127, 7), [127, 0]);
    assert_eq!(integer(254, 7), [127, 127]);
    assert_eq!(integer(255, 7), [127, 128, 1]);
}
