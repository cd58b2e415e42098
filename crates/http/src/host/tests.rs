//! Hosts that are, and that are not.

use proptest::prelude::*;

use super::*;

#[test]
fn names_and_addresses_are_accepted() {
    for (text, host, port) in [
        ("example.com", "example.com", None),
        ("EXAMPLE.com:8443", "EXAMPLE.com", Some(8443)),
        ("example.com.", "example.com", None),
        ("example.com.:443", "example.com", Some(443)),
        ("example.com:", "example.com", None),
        ("localhost:65535", "localhost", Some(65535)),
        ("a_b-c.example", "a_b-c.example", None),
        ("127.0.0.1:00080", "127.0.0.1", Some(80)),
        ("[::1]", "[::1]", None),
        ("[::1]:443", "[::1]", Some(443)),
        ("[::ffff:127.0.0.1]:", "[::ffff:127.0.0.1]", None),
    ] {
        assert_eq!(Authority::parse(text.as_bytes()), Ok(Authority { host, port }), "{text}");
    }
}

#[test]
fn everything_else_is_refused() {
    for text in [
        "",
        ":",
        ":443",
        ".",
        "..",
        ".a",
        "a..b",
        "a b",
        "a,b",
        "a/b",
        "a?b",
        "a@b",
        "a%41",
        "a\\b",
        "a\"b",
        "<a>",
        "é",
        "a:b",
        "a:+1",
        "a:-1",
        "a:65536",
        "a:1:2",
        "a:1 ",
        "::1",
        "[]",
        "[",
        "]",
        "[::1",
        "::1]",
        "[::1]443",
        "[::1]a",
        "[::1]:a",
        "[fe80::1%25eth0]",
        "[127.0.0.1]",
        "[v1.a]",
        "a[::1]",
        "[::1]]",
        "[[::1]]",
    ] {
        let result = Authority::parse(text.as_bytes());
        assert_eq!(result, Err(RequestError::HostInvalid), "{text}");
    }
    assert_eq!(Authority::parse(b"a\xff"), Err(RequestError::HostInvalid));
    assert!(Authority::parse(&[b'a'; 255]).is_ok());
    assert!(Authority::parse(&[b'a'; 256]).is_err());
}

proptest! {
    #[test]
    fn an_accepted_host_is_safe_to_write_into_a_header(text in proptest::collection::vec(any::<u8>(), 0..20)) {
        if let Ok(authority) = Authority::parse(&text) {
            prop_assert!(!authority.host.is_empty());
            prop_assert!(authority.host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte)));
        }
    }
}
