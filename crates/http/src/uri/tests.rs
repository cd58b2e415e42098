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
