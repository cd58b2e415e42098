//! Targets and the paths they name.

use proptest::prelude::*;

use super::*;
use crate::sample::{head, target};

/// A raw target, and the path it names.
const PATHS: &[(&str, Result<&str, RequestError>)] = &[
    ("/", Ok("/")),
    ("/a/b.html", Ok("/a/b.html")),
    ("/a/", Ok("/a/")),
    ("/a;b=c,d", Ok("/a;b=c,d")),
    ("/a+b", Ok("/a+b")),
    ("/?a", Ok("/")),
    ("/a?b/../c%00?d", Ok("/a")),
    ("//", Ok("/")),
    ("//evil.example/a", Ok("/evil.example/a")),
    ("/a//b///c", Ok("/a/b/c")),
    ("/a//", Ok("/a/")),
    ("/.", Ok("/")),
    ("/./a/./b/.", Ok("/a/b/")),
    ("/a/../b", Ok("/b")),
    ("/a/b/..", Ok("/a/")),
    ("/a//../b", Ok("/b")),
    ("/a/b/../../c", Ok("/c")),
    ("/..", Err(RequestError::PathTraversal)),
    ("/../", Err(RequestError::PathTraversal)),
    ("/a/../../b", Err(RequestError::PathTraversal)),
    ("//../a", Err(RequestError::PathTraversal)),
    ("/...", Ok("/...")),
    ("/..a/.b/a..", Ok("/..a/.b/a..")),
    ("/.well-known/x", Ok("/.well-known/x")),
    ("/%61%2Eb", Ok("/a.b")),
    ("/%7euser", Ok("/~user")),
    ("/a%20b", Ok("/a b")),
    ("/%C3%A9", Ok("/é")),
    ("/%3f%23", Ok("/?#")),
    ("/%252e%252e/%2500", Ok("/%2e%2e/%00")),
    ("/%2e", Err(RequestError::PathAmbiguous)),
    ("/%2e%2e", Err(RequestError::PathTraversal)),
    ("/a/%2e%2E/b", Err(RequestError::PathAmbiguous)),
    ("/a/.%2e/b", Err(RequestError::PathAmbiguous)),
    ("/a/%2e./b", Err(RequestError::PathAmbiguous)),
    ("/a/..%2f..%2fb", Ok("/a/..%2F..%2Fb")),
    ("/%2e%2e%2fb", Ok("/..%2Fb")),
    ("/a%2fb", Ok("/a%2Fb")),
    ("/a%2Fb/%2f", Ok("/a%2Fb/%2F")),
    ("/a%2f%2e%2e/../b", Ok("/b")),
    ("/a%252fb", Ok("/a%2fb")),
    ("/a\\b", Err(RequestError::PathAmbiguous)),
    ("/..\\..\\b", Err(RequestError::PathAmbiguous)),
    ("/a%5Cb", Err(RequestError::PathAmbiguous)),
    ("/..%5Cb", Err(RequestError::PathAmbiguous)),
    ("/a%5C/..%2F..%2F../b", Err(RequestError::PathTraversal)),
    ("/a/%2e%2e/%2e%2e/b", Err(RequestError::PathTraversal)),
    ("/a%00", Err(RequestError::PathCharacter)),
    ("/a%00.html", Err(RequestError::PathCharacter)),
    ("/a%0d%0ab", Err(RequestError::PathCharacter)),
    ("/a%1fb", Err(RequestError::PathCharacter)),
    ("/a%7fb", Err(RequestError::PathCharacter)),
    ("/%", Err(RequestError::PathEncoding)),
    ("/%4", Err(RequestError::PathEncoding)),
    ("/%4/a", Err(RequestError::PathEncoding)),
    ("/%g0", Err(RequestError::PathEncoding)),
    ("/%+1", Err(RequestError::PathEncoding)),
    ("/%u0041", Err(RequestError::PathEncoding)),
    ("/%ff", Err(RequestError::PathNotUtf8)),
    ("/%c0%ae%c0%ae/", Err(RequestError::PathNotUtf8)),
    ("/%c0%af", Err(RequestError::PathNotUtf8)),
    ("/%c3/%a9", Err(RequestError::PathNotUtf8)),
];

#[test]
fn paths_are_decoded_as_the_table_says() {
    for (raw, expected) in PATHS {
        let path = target(raw).map(|target| target.path.to_owned());
        assert_eq!(path.as_deref().map_err(|error| *error), *expected, "{raw}");
    }
}

#[test]
fn a_path_that_is_normal_already_is_borrowed() {
    assert!(is_normal("/a/b.html"));
}

#[test]
fn an_encoded_slash_is_told_and_an_encoded_percent_is_none() {
    for (raw, has_one, has_lookalike) in [
        ("/a%2Fb", true, false),
        ("/a%2f", true, false),
        ("/a%252Fb", false, true),
        ("/a%25%32%46b", false, true),
        ("/a%2Fb%252F", true, true),
        ("/a%252fb", false, false),
        ("/a/b", false, false),
        ("/%2F/../a", true, false),
    ] {
        let target = target(raw).unwrap();
        assert_eq!(target.has_encoded_slash, has_one, "{raw}");
        assert_eq!(target.has_lookalike_slash, has_lookalike, "{raw}");
    }
}

#[test]
fn slashes_in_a_row_are_told_wherever_they_stand_in_the_path() {
    for (raw, has_runs) in [
        ("/a/b/", false),
        ("//", true),
        ("//a", true),
        ("/a//b", true),
        ("/a//", true),
        ("/.//a", true),
        ("/x/..//a", true),
        ("/a//../b", true),
        ("/a/./b/../", false),
        ("/a%2fb", false),
        ("/a%2F/b", true),
        ("/a/%2fb", true),
        ("/a%2F%2fb", true),
        ("/a%252F%252Fb", false),
        ("/a%2/%2Fb", false),
        ("/a?b//c", false),
        ("https://example.com/a", false),
        ("https://example.com//a", true),
    ] {
        let request = format!("GET {raw} HTTP/1.1\r\nHost: example.com\r\n\r\n");
        let head = head(request.as_bytes());
        assert_eq!(head.has_slash_runs(), has_runs, "{raw}");
    }
}

#[test]
fn the_query_is_kept_as_it_was_sent() {
    for (raw, query) in [
        ("/a", None),
        ("/a?", Some("")),
        ("/a?b=%00&c=/../\\|{}", Some("b=%00&c=/../\\|{}")),
        ("/?a?b", Some("a?b")),
    ] {
        assert_eq!(target(raw).unwrap().query, query, "{raw}");
    }
}

#[test]
fn an_absolute_target_gives_its_authority_and_path() {
    let parsed = target("https://b.example:8443/c%20d?e").unwrap();
    assert_eq!(parsed.form, Form::Absolute);
    assert_eq!(parsed.authority, Some("b.example:8443"));
    assert_eq!(parsed.path, "/c d");
    assert_eq!(parsed.query, Some("e"));
}

#[test]
fn an_absolute_target_may_end_with_its_authority() {
    for (raw, query) in [("http://a", None), ("HTTP://a?b", Some("b")), ("http://a/", None)] {
        let parsed = target(raw).unwrap();
        assert_eq!((parsed.path, parsed.query), ("/", query), "{raw}");
    }
}

#[test]
fn the_host_of_an_absolute_target_comes_before_host() {
    let request = head(b"GET http://b:81/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(request.host(), Some("b"));
    assert_eq!(request.authority().unwrap().port, Some(81));
}

#[test]
fn options_for_the_whole_server_has_its_own_form() {
    let request = head(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    let parsed = request.target().unwrap();
    assert_eq!((parsed.form, parsed.path), (Form::Asterisk, "/"));
    for (raw, form) in [
        ("https://b", Form::Asterisk),
        ("https://b/", Form::Absolute),
        ("https://b?", Form::Absolute),
        ("/", Form::Origin),
    ] {
        let text = format!("OPTIONS {raw} HTTP/1.1\r\nHost: a\r\n\r\n");
        let request = head(text.as_bytes());
        let parsed = request.target().unwrap();
        let authority = raw.starts_with("https").then_some("b");
        assert_eq!((parsed.form, parsed.path, parsed.authority), (form, "/", authority), "{raw}");
    }
}

#[test]
fn other_forms_are_refused() {
    for raw in ["a", "*", "**", "?a", "http:/a", "http:a", "javascript:a", "a://b/"] {
        assert_eq!(target(raw), Err(RequestError::TargetForm), "{raw}");
    }
}

fn almost_path() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("/".to_owned()),
        3 => Just("..".to_owned()),
        2 => Just(".".to_owned()),
        2 => Just("%2e".to_owned()),
        1 => Just("%2F".to_owned()),
        1 => Just("%5c".to_owned()),
        1 => Just("\\".to_owned()),
        1 => Just("%00".to_owned()),
        1 => Just("%".to_owned()),
        2 => "%[0-9a-fA-F]{2}",
        3 => "[!$-~]{1,3}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()))
}

proptest! {
    #[test]
    fn a_path_is_always_safe_to_look_up(raw in almost_path()) {
        if let Ok(parsed) = target(&raw) {
            let path = parsed.path;
            prop_assert!(path.starts_with('/'));
            prop_assert!(!path.contains("//"));
            prop_assert!(!path.contains('\\'));
            prop_assert!(!path.bytes().any(|byte| byte.is_ascii_control()));
            prop_assert!(!path.split('/').any(|segment| segment == "." || segment == ".."));
        }
    }

    #[test]
    fn a_path_written_as_a_link_comes_back(raw in almost_path()) {
        if let Ok(parsed) = target(&raw) {
            let link = crate::uri::percent_encode_path(parsed.path);
            prop_assert_eq!(target(&link).unwrap().path, parsed.path);
        }
    }
}

#[test]
fn a_file_can_be_named_exactly_if_a_request_for_it_is_accepted() {
    let bytes: Vec<Vec<u8>> = (0..=255).map(|byte| vec![b'a', byte]).collect();
    let others = ["", ".", "..", "...", "a:b", "%2e", "\u{202e}", "\u{85}", "ä"];
    let others = others.into_iter().map(|name| name.as_bytes().to_vec());
    for name in bytes.into_iter().chain(others) {
        let asked = target(&format!("/{}", crate::uri::percent_encode_path(&name)));
        let is_named = asked.is_ok_and(|target| target.path.as_bytes()[1..] == *name);
        let is_file = !name.is_empty() && !name.contains(&b'/');
        assert_eq!(can_name(&name), is_named && is_file, "{}", name.escape_ascii());
    }
}
