use proptest::prelude::*;

use super::*;

fn outcome(bytes: &[u8]) -> Result<Option<(u16, usize, usize)>, ResponseError> {
    Ok(match parse_response(bytes)? {
        ParseResponse::Partial => None,
        ParseResponse::Complete { head, bytes } => {
            Some((head.status(), head.headers().count(), bytes))
        }
    })
}

fn framing_of(head: &str, is_head: bool) -> Result<ResponseFraming, ResponseError> {
    match parse_response(head.as_bytes())? {
        ParseResponse::Complete { head, .. } => response_framing(&head, is_head),
        ParseResponse::Partial => panic!("{head:?} has not ended"),
    }
}

fn marked(framing: BodyFraming) -> Result<ResponseFraming, ResponseError> {
    Ok(ResponseFraming::Marked(framing))
}

/// Checks that no cut of the input changes the outcome, however the parser is called.
fn assert_independent_of_fragmentation(bytes: &[u8]) {
    let whole = outcome(bytes);
    let mut progress = ResponseProgress::default();
    for end in 0..=bytes.len() {
        let part = outcome(&bytes[..end]);
        assert!(part == Ok(None) || part == whole, "{part:?} then {whole:?}");
        if matches!(progress.parse(&bytes[..end]), Ok(ParseResponse::Complete { .. })) {
            assert!(matches!(whole, Ok(Some((_, _, bytes))) if bytes == end));
            return;
        }
    }
    assert!(!matches!(whole, Ok(Some(_))));
}

#[test]
fn status_lines_are_those_of_rfc_9112() {
    for line in ["HTTP/1.1 200 OK", "HTTP/1.0 200 ", "HTTP/1.1 204", "HTTP/1.9 999 \u{e4}\t!"] {
        assert!(matches!(outcome(format!("{line}\r\n\r\n").as_bytes()), Ok(Some(_))), "{line}");
    }
    for line in [
        "HTTP/1.1  200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000",
        "HTTP/1.1 200OK",
        "HTTP/1.1 200 O\u{1}K",
        "HTTP/1.1 200 OK\rX",
        "HTTP/1.1\t200 OK",
        "HTTP/2.0 200 OK",
        "http/1.1 200 OK",
        " HTTP/1.1 200 OK",
        "\r\nHTTP/1.1 200 OK",
        "ICY 200 OK",
    ] {
        let outcome = outcome(format!("{line}\r\n\r\n").as_bytes());
        assert_eq!(outcome, Err(ResponseError::StatusLine), "{line}");
    }
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
    assert_eq!(outcome(settings), Err(ResponseError::Http2));
    assert_eq!(outcome(&settings[..4]), Ok(None));
    assert_eq!(outcome(b"\0\0\x06\x07\0"), Err(ResponseError::StatusLine));
    assert_eq!(outcome(b"HTTP/1.1 099 X\r\n\r\n"), Err(ResponseError::Status));
    assert_eq!(outcome(b"HTTP/1.1 200 OK\n\n"), Err(ResponseError::StatusLine));
    assert_eq!(outcome(b"HTTP/1.1 200 OK\r"), Ok(None));
}

#[test]
fn a_head_says_what_stands_in_its_status_line() {
    assert_eq!(outcome(b"HTTP/1.1 421 X\r\nA: b\r\n\r\n"), Ok(Some((421, 1, 24))));
    let Ok(ParseResponse::Complete { head, .. }) = parse_response(b"HTTP/1.1 421\r\n\r\n") else {
        panic!("a whole head")
    };
    assert_eq!(format!("{head:?}"), "ResponseHead { status: 421, .. }");
}

#[test]
fn each_mistake_has_its_word() {
    for (error, word) in [
        (ResponseError::StatusLine, "status_line"),
        (ResponseError::Http2, "http2_server"),
        (ResponseError::Status, "status"),
        (RequestError::HeadTooLarge.into(), RequestError::HeadTooLarge.reason()),
    ] {
        assert_eq!(error.reason(), word);
        assert_eq!(error.to_string(), format!("malformed response: {word}"));
    }
}

#[test]
fn field_lines_are_read_as_strictly_as_those_of_requests() {
    for lines in [
        "A: b\n",
        "A: b\r\n c\r\n",
        "A : b\r\n",
        ": b\r\n",
        "A: b\0c\r\n",
        "A: b\rc\r\n",
        "A\r\n",
        " A: b\r\n",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        assert!(outcome(head.as_bytes()).is_err(), "{lines:?}");
    }
}

#[test]
fn heads_beyond_their_limits_are_refused() {
    let many = "a: b\r\n".repeat(HEADERS_MAX + 1);
    let error = outcome(format!("HTTP/1.1 200 OK\r\n{many}\r\n").as_bytes());
    assert_eq!(error, Err(RequestError::TooManyFields.into()));
    let long = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(HEAD_BYTES_MAX));
    assert_eq!(outcome(long.as_bytes()), Err(RequestError::HeadTooLarge.into()));
}

#[test]
fn the_end_of_a_body_is_never_a_matter_of_opinion() {
    let of = |fields: &str| framing_of(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), false);
    assert_eq!(of(""), Ok(ResponseFraming::UntilClose));
    assert_eq!(of("Content-Length: 5\r\n"), marked(BodyFraming::Length(5)));
    assert_eq!(of("Transfer-Encoding: Chunked\r\n"), marked(BodyFraming::Chunked));
    for fields in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: 5\r\ncontent-length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\r\n",
    ] {
        assert!(of(fields).is_err(), "{fields:?}");
    }
    let of_http10 = framing_of("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false);
    assert_eq!(of_http10, Err(RequestError::TransferEncodingInHttp10.into()));
}

#[test]
fn some_responses_have_no_body_whatever_they_announce() {
    for status in [100, 103, 204, 304] {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(framing_of(&head, false), marked(BodyFraming::None), "{status}");
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(framing_of(head, true), marked(BodyFraming::None));
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(framing_of(both, true).is_err());
}

#[test]
fn a_length_is_announced_whatever_the_body_is() {
    for (fields, expected) in
        [("Content-Length: 17\r\n", Some(17)), ("Content-Length: x\r\n", None), ("", None)]
    {
        let head = format!("HTTP/1.1 304 X\r\n{fields}\r\n");
        let Ok(ParseResponse::Complete { head, .. }) = parse_response(head.as_bytes()) else {
            panic!("{fields:?}")
        };
        assert_eq!(head.announced_length(), expected, "{fields:?}");
    }
}

#[test]
fn a_connection_is_used_again_only_if_both_sides_say_so() {
    let persists = |head: &str| match parse_response(head.as_bytes()) {
        Ok(ParseResponse::Complete { head, .. }) => head.persists(),
        other => panic!("{other:?}"),
    };
    assert!(persists("HTTP/1.1 200 OK\r\n\r\n"));
    assert!(!persists("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n"));
    assert!(!persists("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"));
}

#[test]
fn what_connection_names_is_for_one_hop() {
    let head = b"HTTP/1.1 200 OK\r\nConnection: X-Own, close\r\nX-Own: 1\r\nX-Other: 2\r\n\r\n";
    let Ok(ParseResponse::Complete { head, .. }) = parse_response(head) else { panic!() };
    assert_eq!(head.connection_options(), 2);
    let passed: Vec<_> = head.headers().filter(|(name, _)| !head.hop_by_hop().has(name)).collect();
    assert_eq!(passed, [(&b"X-Other"[..], &b"2"[..])]);
}

proptest! {
    #[test]
    fn the_outcome_does_not_depend_on_how_the_bytes_arrive(
        line in "HTTP/1\\.[01] [1-6][0-9][0-9]( [ -~\\t]{0,8})?(\r\n|\n|\r)",
        lines in proptest::collection::vec("[A-Za-z-]{0,6}: ?[ -~\\t]{0,8}(\r\n|\r\n|\n|\r|\r\n )", 0..5),
        rest in "(\r\n|\n|\r|)[ -~]{0,4}",
    ) {
        assert_independent_of_fragmentation(format!("{line}{}{rest}", lines.concat()).as_bytes());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        assert_independent_of_fragmentation(&bytes);
    }
}
