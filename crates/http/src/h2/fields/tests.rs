use super::*;

const OWN: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x?y")];

fn read(lines: &[(&str, &str)]) -> (RequestText, Result<(), FieldsError>) {
    let mut fields = RequestFields::new(1_000, Vec::new());
    for (name, value) in lines {
        fields.take(name.as_bytes(), value.as_bytes());
    }
    fields.finish(&mut Vec::new())
}

fn text(lines: &[(&str, &str)]) -> String {
    let (text, outcome) = read(lines);
    assert_eq!(outcome, Ok(()), "{lines:?}");
    String::from_utf8(text.lines).unwrap()
}

fn with<'l>(more: &[(&'l str, &'l str)]) -> Vec<(&'l str, &'l str)> {
    [&OWN[..], more].concat()
}

/// The same with another one in the place of a field, or without it.
fn instead<'l>(name: &'l str, value: Option<&'l str>) -> Vec<(&'l str, &'l str)> {
    let lines = OWN.iter().filter_map(|line| match value {
        _ if line.0 != name => Some(*line),
        value => value.map(|value| (name, value)),
    });
    lines.collect()
}

#[test]
fn fields_are_lines_behind_the_line_of_the_request() {
    let lines = with(&[("accept", "*/*"), ("te", "trailers")]);
    let expected = "GET /x?y HTTP/1.1\r\nhost: a.example\r\naccept: */*\r\nte: trailers\r\n";
    assert_eq!(text(&lines), expected);
    // Only the client of an extended CONNECT has no use for it.
    let key = ("sec-websocket-key", "x");
    assert!(text(&with(&[key])).ends_with("sec-websocket-key: x\r\n"));
    assert_eq!(text(&OWN), "GET /x?y HTTP/1.1\r\nhost: a.example\r\n");
    assert_eq!(text(&instead(":path", Some("*"))), "GET * HTTP/1.1\r\nhost: a.example\r\n");
}

#[test]
fn host_stands_in_for_a_missing_authority_and_contradicts_none() {
    let without = instead(":authority", None);
    let host = |value| [&without[..], &[("host", value)]].concat();
    assert_eq!(text(&host("b")), "GET /x?y HTTP/1.1\r\nhost: b\r\n");
    assert_eq!(text(&without), "GET /x?y HTTP/1.1\r\n");
    assert_eq!(text(&with(&[("host", "A.EXAMPLE")])), "GET /x?y HTTP/1.1\r\nhost: a.example\r\n");
    for lines in [
        with(&[("host", "b")]),
        with(&[("host", "a.example"), ("host", "a.example")]),
        [&host("b")[..], &[("host", "b")]].concat(),
        host("user@b"),
    ] {
        assert_eq!(read(&lines).1, Err(FieldsError::Malformed), "{lines:?}");
    }
}

#[test]
fn the_port_of_the_scheme_may_be_left_out_in_one_of_both() {
    for (scheme, authority, host, is_same) in [
        ("https", "a", "a:443", true),
        ("HTTPS", "a:443", "A", true),
        ("https", "a.", "a:", true),
        ("https", "[::1]", "[::1]:443", true),
        ("http", "a", "a:80", true),
        ("http", "a", "a:443", false),
        ("https", "a", "a:80", false),
        ("https", "a:8443", "a", false),
        ("https", "a:8443", "a:8443", true),
        ("https", "a", "b:443", false),
        ("https", "a", "a:443:443", false),
    ] {
        let own =
            [(":method", "GET"), (":scheme", scheme), (":authority", authority), (":path", "/")];
        let outcome = read(&[&own[..], &[("host", host)]].concat()).1;
        let expected = if is_same { Ok(()) } else { Err(FieldsError::Malformed) };
        assert_eq!(outcome, expected, "{scheme} {authority} {host}");
    }
    let lines = with(&[("host", "a.example:443")]);
    assert_eq!(text(&lines), "GET /x?y HTTP/1.1\r\nhost: a.example\r\n");
}

#[test]
fn cookies_in_pieces_become_one() {
    let lines = with(&[("cookie", "a=b"), ("x", "y"), ("cookie", "c=d")]);
    assert!(text(&lines).ends_with("x: y\r\ncookie: a=b; c=d\r\n"));
}

#[test]
fn a_length_is_told_if_there_is_one() {
    let length = |more: &[(&str, &str)]| {
        let text = read(&with(more)).0;
        (text.has_length, text.length)
    };
    assert_eq!(length(&[]), (false, None));
    assert_eq!(length(&[("content-length", "12")]), (true, Some(12)));
    for more in [&[("content-length", "+1")][..], &[("content-length", "1"); 2]] {
        assert_eq!(length(more), (true, None), "{more:?}");
    }
}

#[test]
fn what_http_2_forbids_is_malformed() {
    let of_line = [
        ("X", "y"),
        ("", "y"),
        ("x y", "z"),
        ("x:y", "z"),
        ("\u{e4}", "z"),
        ("x", " y"),
        ("x", "y\t"),
        ("x", "a\0b"),
        ("x", "a\rb"),
        ("x", "a\nb"),
        ("connection", "x"),
        ("proxy-connection", "x"),
        ("keep-alive", "5"),
        ("upgrade", "x"),
        ("transfer-encoding", "chunked"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        // Pseudo-fields behind others, twice, unknown, or of responses.
        (":path", "/y"),
        (":status", "200"),
        (":other", "x"),
        (":", "x"),
    ];
    for line in of_line {
        assert_eq!(
            read(&with(&[("accept", "x"), line])).1,
            Err(FieldsError::Malformed),
            "{line:?}"
        );
        if line.0 != ":path" || line.1 != "/y" {
            assert_eq!(read(&with(&[line])).1, Err(FieldsError::Malformed), "{line:?}");
        }
    }
    assert_eq!(read(&with(&[(":path", "/y")])).1, Err(FieldsError::Malformed));
    for (name, value) in [
        (":method", None),
        (":scheme", None),
        (":path", None),
        (":method", Some("")),
        (":method", Some("G T")),
        (":method", Some("GET /y HTTP/1.1\r\n")),
        (":path", Some("")),
        (":path", Some("x")),
        (":path", Some("https://b/x")),
        (":path", Some("/ HTTP/1.1")),
        (":path", Some("/\r\nx: y")),
        (":path", Some("/\0")),
        (":authority", Some("")),
        (":authority", Some("user@a")),
        (":authority", Some("a\r\nx: y")),
        (":scheme", Some("")),
        (":scheme", Some("ftp")),
    ] {
        let lines = instead(name, value);
        assert_eq!(read(&lines).1, Err(FieldsError::Malformed), "{lines:?}");
    }
    assert_eq!(read(&[]).1, Err(FieldsError::Malformed));
    // It would be the only one of its name, but others were before it.
    let late = [&instead(":authority", None)[..], &[("accept", "x"), (":authority", "a")]].concat();
    assert_eq!(read(&late).1, Err(FieldsError::Malformed));
}

#[test]
fn a_connect_names_an_authority_alone_and_an_extended_one_all() {
    let connect = (":method", "CONNECT");
    let protocol = (":protocol", "websocket");
    assert_eq!(text(&[connect, OWN[2]]), "CONNECT a.example HTTP/1.1\r\nhost: a.example\r\n");
    let extended = [protocol, connect, OWN[1], OWN[2], OWN[3], ("sec-websocket-key", "x")];
    let (text, outcome) = read(&extended);
    assert_eq!((outcome, text.protocol.as_deref()), (Ok(()), Some(&b"websocket"[..])));
    assert_eq!(text.lines, b"GET /x?y HTTP/1.1\r\nhost: a.example\r\n");
    for lines in [
        &[connect][..],
        &[connect, OWN[1], OWN[2], OWN[3]],
        &[connect, OWN[1], OWN[2]],
        &[connect, OWN[2], OWN[3]],
        &[protocol, connect, OWN[2]],
        &[protocol, OWN[0], OWN[1], OWN[2], OWN[3]],
        &[protocol, connect, OWN[1], OWN[3]],
    ] {
        assert_eq!(read(lines).1, Err(FieldsError::Malformed), "{lines:?}");
    }
}

#[test]
fn too_much_is_told_from_what_can_be_no_accident() {
    let long = "y".repeat(400);
    let lines = |count| with(&vec![("x", &*long); count]);
    assert_eq!(read(&lines(2)).1, Ok(()));
    let path = format!("/{}", "y".repeat(600));
    assert_eq!(
        read(&[OWN[0], OWN[1], OWN[2], (":path", &path), ("x", &"y".repeat(200))]).1,
        Ok(())
    );
    // The values of the four, then all bytes of those that follow.
    let own_bytes: usize = OWN.iter().map(|(_, value)| value.len()).sum();
    for (bytes, expected) in [(1_000, Ok(())), (1_001, Err(FieldsError::TooLarge))] {
        let value = "y".repeat(bytes - own_bytes - 1);
        assert_eq!(read(&with(&[("x", &value)])).1, expected);
    }
    let cookie = "y".repeat(500);
    assert_eq!(read(&with(&[("cookie", &*cookie); 2])).1, Err(FieldsError::TooLarge));
    assert!(!read(&OWN).0.is_head);
    let (text, outcome) = read(&instead(":method", Some("HEAD")));
    assert!(text.is_head && outcome.is_ok());
    let mut fields = RequestFields::new(1_000, Vec::new());
    for (count, is_flood) in [(16, false), (1, true)] {
        (0..count).for_each(|_| fields.take(b"xy", &[b'z'; 966]));
        assert_eq!(fields.is_flood(), is_flood);
    }
    let path = "y".repeat(1_000);
    let (text, outcome) = read(&[(":method", "HEAD"), (":path", &path)]);
    assert_eq!((outcome, text.is_head), (Err(FieldsError::TooLarge), true));
    let mut head = lines(3);
    head[0] = (":method", "HEAD");
    let (text, outcome) = read(&head);
    assert_eq!((outcome, text.is_head), (Err(FieldsError::TooLarge), true));
}

#[test]
fn what_is_no_accident_is_looked_at_no_further_though_none_of_it_is_held() {
    let extended = [(":method", "CONNECT"), (":protocol", "websocket"), OWN[1], OWN[2], OWN[3]];
    let key = "y".repeat(900);
    // Sixteen times the limit, each with 32 bytes more.
    for (count, outcome) in [(16, Err(FieldsError::Malformed)), (17, Ok(()))] {
        let mut fields = RequestFields::new(1_000, Vec::new());
        let mut take = |(name, value): (&str, &str)| fields.take(name.as_bytes(), value.as_bytes());
        extended.into_iter().for_each(&mut take);
        (0..count).for_each(|_| take(("sec-websocket-key", &key)));
        take(("X", "y"));
        assert_eq!(fields.is_flood(), outcome.is_ok());
        assert_eq!(fields.finish(&mut Vec::new()).1, outcome);
    }
}

#[test]
fn trailers_are_lines_and_none_of_them_is_about_the_message() {
    let read = |lines: &[(&str, &str)]| {
        let mut fields = TrailerFields::default();
        lines.iter().for_each(|(name, value)| fields.take(name.as_bytes(), value.as_bytes()));
        fields.finish()
    };
    assert_eq!(read(&[("x", "1"), ("y", "2")]), Ok(Ok(b"x: 1\r\ny: 2\r\n".to_vec())));
    assert_eq!(read(&[]), Ok(Ok(Vec::new())));
    for line in [(":path", "/"), ("X", "y"), ("connection", "x"), ("te", "x"), ("x", "a\nb")] {
        assert_eq!(read(&[("x", "1"), line]), Err(FieldsError::Malformed), "{line:?}");
    }
    let long = "y".repeat(TRAILER_BYTES_MAX / 2);
    assert_eq!(read(&[("x", &*long); 3]), Ok(Err(RequestError::TrailersTooLarge)));
    for value in ["a\u{1}b", " a", "a\t"] {
        assert_eq!(read(&[("x", value)]), Ok(Err(RequestError::Trailer)), "{value:?}");
    }
}

#[test]
fn a_trailer_section_has_its_limits() {
    let read = |lines: &[(&str, &str)]| {
        let mut fields = TrailerFields::default();
        lines.iter().for_each(|(name, value)| fields.take(name.as_bytes(), value.as_bytes()));
        (fields.is_flood(1_000), fields.finish())
    };
    let too_large = Ok(Err(RequestError::TrailersTooLarge));
    // Its lines, each with a colon, a space and its end.
    let half = &*"y".repeat(TRAILER_BYTES_MAX / 2 - 5);
    assert!(matches!(read(&[("x", half); 2]).1, Ok(Ok(lines)) if lines.len() == TRAILER_BYTES_MAX));
    assert_eq!(read(&[("x", half), ("xy", half)]).1, too_large);
    // The first mistake is told.
    let refused = Ok(Err(RequestError::Trailer));
    assert_eq!(read(&[&[("x", " a"), ("X", "a")][..], &[("x", half); 3]].concat()).1, refused);
    assert_eq!(read(&[("X", "a"), ("x", " a")]).1, Err(FieldsError::Malformed));
    // The bytes unpacked, with 32 for each.
    let thousand = "y".repeat(966);
    assert_eq!([16, 17].map(|count| read(&vec![("xy", &*thousand); count]).0), [false, true]);
}
