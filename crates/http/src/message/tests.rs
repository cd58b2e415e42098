//! The words of a head about its fields and its connection.

use crate::sample::{get, head};
use crate::target::{Form, Target};

#[test]
fn fields_are_found_in_any_case_and_in_order() {
    let request = get("Accept: a\r\nX: y\r\naCCEPT:  b \r\n");
    let head = head(&request);
    assert_eq!(head.header("ACCEPT"), Some(b"a".as_slice()));
    assert_eq!(head.header_values("accept").collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(head.sole_header("x"), Some(b"y".as_slice()));
    assert_eq!(head.sole_header("accept"), None);
    assert_eq!(head.header("accep"), None);
    assert_eq!(head.headers().count(), 4);
    assert_eq!(head.host(), Some("example.com"));
    assert_eq!(head.host_bytes(), Some(b"example.com".as_slice()));
}

#[test]
fn a_target_is_kept_as_it_was_sent_also_where_it_cannot_be_served() {
    for (target, is_served) in [("/a%20b?c", true), ("/%zz", false)] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n\r\n");
        let head = head(request.as_bytes());
        assert_eq!((head.raw_target(), head.has_target()), (target, is_served));
    }
}

/// Guards ask for parts, and what they let pass is looked for by the whole.
#[test]
fn parts_of_a_target_are_those_of_the_whole() {
    for target in ["/", "/a?b", "/a%20b/../c?d", "/a%2Fb", "/a%252Fb", "*", "http://a/x?y", "/%zz"]
    {
        for method in ["GET", "OPTIONS"] {
            let request = format!("{method} {target} HTTP/1.1\r\nHost: example.com\r\n\r\n");
            let mut head = head(request.as_bytes());
            for query in [None, Some("other")] {
                query.into_iter().for_each(|query| head.set_query(query.to_owned()));
                let whole = head.target();
                assert_eq!(head.path(), whole.map(|it| it.path), "{request}");
                let of_whole = |is: fn(Target<'_>) -> bool| whole.is_ok_and(is);
                assert_eq!(head.has_encoded_slash(), of_whole(|it| it.has_encoded_slash));
                assert_eq!(head.is_for_server(), of_whole(|it| it.form == Form::Asterisk));
            }
        }
    }
}

#[test]
fn http_1_1_persists_unless_told_to_close() {
    for (lines, expected) in [
        ("", true),
        ("Connection: keep-alive\r\n", true),
        ("Connection: close\r\n", false),
        ("Connection: CLOSE\r\n", false),
        ("Connection: upgrade, close\r\n", false),
        ("Connection: x\r\nConnection: close\r\n", false),
        ("Connection: closed\r\n", true),
    ] {
        let request = get(lines);
        assert_eq!(head(&request).persists(), expected, "{lines:?}");
    }
}

#[test]
fn http_1_0_closes_unless_told_to_persist() {
    for (lines, expected) in [
        ("", false),
        ("Connection: Keep-Alive\r\n", true),
        ("Connection: keep-alive, close\r\n", false),
    ] {
        let request = format!("GET / HTTP/1.0\r\n{lines}\r\n");
        assert_eq!(head(request.as_bytes()).persists(), expected, "{lines:?}");
    }
}

#[test]
fn only_http_1_1_expects_continue() {
    assert!(head(&get("Expect: 100-Continue\r\n")).expects_continue());
    assert!(!head(&get("Expect: 200-ok\r\n")).expects_continue());
    assert!(!head(&get("")).expects_continue());
    let old = head(b"GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    assert!(!old.expects_continue());
}

#[test]
fn a_head_can_be_shown_without_its_secrets() {
    let request = get("Cookie: secret\r\nAuthorization: secret\r\n");
    let shown = format!("{:?}", head(&request));
    assert!(shown.contains("field_lines: 3") && !shown.contains("secret"), "{shown}");
}

#[test]
fn what_connection_names_is_for_one_hop() {
    let request = get("Connection: close, X-Own\r\nConnection: TE\r\nX-Own: a\r\n");
    let head = head(&request);
    assert_eq!(head.connection_options(), 3);
    let hops = ["host", "connection", "x-own"].map(|name| head.hop_by_hop().has(name.as_bytes()));
    assert_eq!(hops, [false, true, true]);
}

#[test]
fn another_protocol_is_asked_for_by_two_fields() {
    for (lines, expected) in [
        ("Connection: Upgrade\r\nUpgrade: h2c, x\r\n", Some(&b"h2c, x"[..])),
        ("Connection: close\r\nUpgrade: h2c\r\n", None),
        ("Connection: upgrade\r\nUpgrade:\r\n", None),
        ("Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n", None),
        ("Connection: upgrade\r\n", None),
    ] {
        let request = get(lines);
        assert_eq!(head(&request).upgrade(), expected, "{lines:?}");
        assert!(!head(&request).is_extended_connect(), "{lines:?}");
        let over_http2 = head(&request).over_http2();
        assert_eq!(over_http2.is_extended_connect(), expected.is_some(), "{lines:?}");
    }
    let old = head(b"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n");
    assert_eq!(old.upgrade(), None);
}

#[test]
fn a_client_says_that_it_takes_trailers() {
    assert!(head(&get("TE: gzip, Trailers\r\n")).takes_trailers());
    assert!(!head(&get("TE: gzip\r\n")).takes_trailers());
}

#[test]
fn versions_are_written_as_in_a_request_line() {
    let request = get("");
    assert_eq!(head(&request).version().as_str(), "HTTP/1.1");
    assert_eq!(head(&request).over_http2().version().as_str(), "HTTP/2.0");
    assert_eq!(head(b"GET / HTTP/1.0\r\n\r\n").version().as_str(), "HTTP/1.0");
}

#[test]
fn a_request_becomes_one_for_a_page_and_what_it_was_again() {
    for (method, of_page) in [("POST", "GET"), ("HEAD", "HEAD"), ("GET", "GET"), ("PURGE", "GET")] {
        let fields = "Host: example.com\r\nRANGE: bytes=0-1\r\nIf-None-Match: *\r\nCookie: a=1\r\n";
        let request = format!("{method} /a?b HTTP/1.1\r\n{fields}\r\n");
        let mut head = head(request.as_bytes());
        let asked = head.begin_page();
        assert_eq!((head.method().as_str(), head.target().unwrap().query), (of_page, None));
        assert_eq!((head.headers().count(), head.header("range")), (2, None));
        assert_eq!(head.header("cookie"), Some(b"a=1".as_slice()));
        head.end_page(asked);
        assert_eq!((head.method().as_str(), head.target().unwrap().query), (method, Some("b")));
        assert_eq!(head.headers().count(), 4);
        head.set_query("c=1".to_owned());
        let target = head.target().unwrap();
        assert_eq!((head.raw_target(), target.path, target.query), ("/a?b", "/a", Some("c=1")));
    }
}
