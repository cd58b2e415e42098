//! Paths as they stand in links.

use super::*;

#[test]
fn all_but_unreserved_characters_and_slashes_are_encoded() {
    for (path, expected) in [
        ("/a-b.c_d~e/", "/a-b.c_d~e/"),
        ("/a b", "/a%20b"),
        ("/é", "/%C3%A9"),
        ("a:b", "a%3Ab"),
        ("/%2e?#", "/%252e%3F%23"),
        ("/<script>\"'&", "/%3Cscript%3E%22%27%26"),
        ("/\r\n", "/%0D%0A"),
        ("", ""),
    ] {
        assert_eq!(percent_encode_path(path), expected);
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_encoded_too() {
    assert_eq!(percent_encode_path(b"\xff/a"), "%FF/a");
}

#[test]
fn values_of_queries_are_decoded_as_forms_write_them() {
    for (value, expected) in [
        ("", Some(b"".as_slice())),
        ("a+b%20c%2B", Some(b"a b c+")),
        ("%fF%00", Some(b"\xff\0")),
        ("%", None),
        ("%4", None),
        ("%4g", None),
        ("%+1", None),
    ] {
        assert_eq!(decode_query_value(value).as_deref(), expected, "{value}");
    }
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(decode_query_value(&percent_encode_path(&all)), Some(all));
}
