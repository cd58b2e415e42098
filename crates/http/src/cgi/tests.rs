use proptest::prelude::*;

use super::*;
use crate::message::HEADERS_MAX;

fn outcome(bytes: &[u8]) -> Result<Option<(u16, String, usize)>, ResponseError> {
    outcome_of(bytes, false)
}

fn outcome_of(
    bytes: &[u8],
    may_have_status_line: bool,
) -> Result<Option<(u16, String, usize)>, ResponseError> {
    let head = parse_head(bytes, may_have_status_line)?;
    Ok(head.map(|CgiHead { head, bytes }| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields: Vec<String> =
            head.headers().map(|(name, value)| format!("{}={}", text(name), text(value))).collect();
        (head.status(), fields.join(","), bytes)
    }))
}

#[test]
fn a_program_says_its_status_or_none() {
    for (head, status, fields) in [
        ("Content-Type: a/b\r\n\r\n", 200, "Content-Type=a/b"),
        ("content-type:a/b\n\n", 200, "content-type=a/b"),
        ("Status: 404 Not Found\r\nA: b\n\r\n", 404, "A=b"),
        ("STATUS:503\nA: b\n\n", 503, "A=b"),
        ("A: b\nStatus: 999\t\n\n", 999, "A=b"),
        ("Location: /x\r\n\r\n", 302, "Location=/x"),
        ("Status: 201 Created\r\nLocation: /x\r\n\r\n", 201, "Location=/x"),
        ("Status: 200\r\n\r\n", 200, ""),
    ] {
        let expected = Ok(Some((status, fields.to_owned(), head.len())));
        assert_eq!(outcome(head.as_bytes()), expected, "{head:?}");
        let with_body = format!("{head}\n\nStatus: 500\r\n\r\n");
        assert_eq!(outcome(with_body.as_bytes()), expected, "the body is none of it");
    }
}

#[test]
fn a_status_line_is_one_where_there_may_be_one() {
    for (head, expected) in [
        ("HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n", Ok((404, "A=b"))),
        ("HTTP/1.0 200\r\n\r\n", Ok((200, ""))),
        ("Status: 201 Created\r\nA: b\r\n\r\n", Ok((201, "A=b"))),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n", Ok((200, "A=b"))),
        ("HTTP/1.1 101 Switching\r\n\r\n", Err(ResponseError::Status)),
        ("HTTP/1.1\r\nA: b\r\n\r\n", Err(ResponseError::Status)),
        ("HTTP/1.1 200 OK\r\nStatus: 404\r\n\r\n", Err(ResponseError::Status)),
        ("HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\n\r\n", Err(RequestError::FieldName.into())),
    ] {
        let expected =
            expected.map(|(status, fields)| Some((status, fields.to_owned(), head.len())));
        assert_eq!(outcome_of(head.as_bytes(), true), expected, "{head:?}");
    }
}

#[test]
fn what_is_for_the_next_hop_is_none_of_a_program_s_matters() {
    let head = "Connection: close, X\r\nTransfer-Encoding: chunked\r\nX: y\r\nUpgrade: websocket\r\nKeep-Alive: 1\r\nContent-Length: 3\r\n\r\n";
    let expected = (200, "X=y,Content-Length=3".to_owned(), head.len());
    assert_eq!(outcome(head.as_bytes()), Ok(Some(expected)));
}

#[test]
fn what_is_no_head_is_refused() {
    for (head, error) in [
        ("\r\nbody", RequestError::FieldName.into()),
        ("\n", RequestError::FieldName.into()),
        ("Status: 100 Continue\r\n\r\n", ResponseError::Status),
        ("Status: 101\r\n\r\n", ResponseError::Status),
        ("Status: 20\r\n\r\n", ResponseError::Status),
        ("Status: 2000\r\n\r\n", ResponseError::Status),
        ("Status:\r\n\r\n", ResponseError::Status),
        ("Status\r\n\r\n", ResponseError::Status),
        ("Status: 200\r\nStatus: 200\r\n\r\n", ResponseError::Status),
    ] {
        assert_eq!(outcome(head.as_bytes()), Err(error), "{head:?}");
    }
    for head in [
        "HTTP/1.1 200 OK\r\nA: b\r\n\r\n",
        "no colon\r\n\r\n",
        "A : b\r\n\r\n",
        "A: b\r\n c\r\n\r\n",
        "A: b\rc\r\n\r\n",
        "A: \0\r\n\r\n",
        "A: b\r\r\n\r\n",
        ": b\r\n\r\n",
        "A\r: b\n\n",
    ] {
        assert!(outcome(head.as_bytes()).is_err(), "{head:?}: {:?}", outcome(head.as_bytes()));
    }
}

#[test]
fn a_head_has_the_limits_of_http() {
    let long = format!("A: {}\r\n\r\n", "b".repeat(HEAD_BYTES_MAX - 40));
    assert!(matches!(outcome(long.as_bytes()), Ok(Some((200, ..)))));
    for bytes in [HEAD_BYTES_MAX, 2 * HEAD_BYTES_MAX] {
        let error = outcome("b".repeat(bytes).as_bytes()).unwrap_err();
        assert_eq!(error, RequestError::HeadTooLarge.into());
    }
    assert_eq!(outcome("b".repeat(HEAD_BYTES_MAX - 1).as_bytes()), Ok(None));
    let many = |lines: usize| format!("{}\r\n", "A: b\r\n".repeat(lines));
    assert!(outcome(many(HEADERS_MAX).as_bytes()).is_ok());
    assert!(outcome(many(HEADERS_MAX + 1).as_bytes()).is_err());
}

#[test]
fn fields_have_the_names_of_rfc_3875() {
    let name_of = |field: &[u8]| with_parameter_name(field, <[u8]>::to_vec);
    assert_eq!(name_of(b"x-Forwarded-for2"), b"HTTP_X_FORWARDED_FOR2");
    for bytes in [58, 59, 60, 1_000] {
        let name = [b"HTTP_", &*vec![b'A'; bytes]].concat();
        assert_eq!(name_of(&vec![b'a'; bytes]), name);
    }
}

proptest! {
    #[test]
    fn how_bytes_arrive_changes_nothing(
        lines in prop::collection::vec("(Status|A|Location|b)?:? ?[a-z0-9: \r]{0,12}(\n|\r\n)", 0..6),
        step in 1_usize..9,
    ) {
        let bytes = format!("{}\n", lines.concat()).into_bytes();
        let whole = outcome(&bytes);
        let mut progress = CgiProgress::default();
        let mut by_progress = Ok(None);
        for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
            by_progress = progress.parse(&bytes[..end]);
            if !matches!(by_progress, Ok(None)) {
                break;
            }
        }
        let by_progress = by_progress.map(|head| head.map(|head| (head.head.status(), head.bytes)));
        prop_assert_eq!(by_progress, whole.map(|head| head.map(|(status, _, bytes)| (status, bytes))));
    }
}
