use http::Request;

use super::*;

fn read(
    request: http::request::Builder,
    has_body: bool,
) -> Result<(Box<Head>, BodyFraming), HeadError> {
    let (parts, ()) = request.body(()).unwrap().into_parts();
    request_head(&parts, has_body, &Limits::default())
}

fn get(uri: &str) -> http::request::Builder {
    Request::builder().method("GET").uri(uri)
}

#[test]
fn a_request_is_read_as_over_http_1_1() {
    let request = get("https://a.example:8443/b%20c?d").header("user-agent", "x");
    let (head, framing) = read(request, false).unwrap();
    assert_eq!(head.method(), kettle_http::Method::Get);
    assert_eq!(head.raw_target(), "/b%20c?d");
    assert_eq!(head.target().unwrap().path, "/b c");
    assert_eq!((head.host(), head.version().as_str()), (Some("a.example"), "HTTP/2.0"));
    assert_eq!(head.header("user-agent"), Some(&b"x"[..]));
    assert_eq!(framing, BodyFraming::None);
    assert!(head.persists());
}

#[test]
fn the_end_of_the_stream_ends_a_body_without_a_length() {
    let of = |request, has_body| read(request, has_body).unwrap().1;
    assert_eq!(of(get("https://a/"), true), BodyFraming::Chunked);
    assert_eq!(of(get("https://a/").header("content-length", "3"), true), BodyFraming::Length(3));
}

#[test]
fn host_stands_in_for_a_missing_authority_and_contradicts_none() {
    let (head, _) = read(get("/").header("host", "b.example"), false).unwrap();
    assert_eq!(head.host(), Some("b.example"));
    let (head, _) = read(get("https://a.example/").header("host", "A.example"), false).unwrap();
    assert_eq!(head.host(), Some("a.example"));
    let refusal = |request| read(request, false).unwrap_err();
    assert_eq!(refusal(get("https://a/").header("host", "b")), HeadError::Malformed);
    let twice = get("https://a/").header("host", "a").header("host", "a");
    assert_eq!(refusal(twice), HeadError::Malformed);
    assert_eq!(refusal(get("https://user@a/")), HeadError::Malformed);
    assert_eq!(refusal(get("/")), HeadError::Status(400));
}

#[test]
fn what_a_parser_of_http_1_1_refuses_gets_its_status() {
    let status = |request, has_body| match read(request, has_body) {
        Err(HeadError::Status(status)) => status,
        other => panic!("{other:?}"),
    };
    let long = format!("https://a/{}", "x".repeat(9_000));
    assert_eq!(status(get(&long), false), 414);
    let large = get("https://a/").header("x", "y".repeat(20_000));
    assert_eq!(status(large, false), 431);
    let lengths = get("https://a/").header("content-length", "1").header("content-length", "1");
    assert_eq!(status(lengths, true), 400);
    assert_eq!(status(get("https://a/").header("content-length", "+1"), true), 400);
    let smuggled =
        get("https://a/").header("transfer-encoding", "chunked").header("content-length", "1");
    assert_eq!(status(smuggled, true), 400);
}

#[test]
fn a_connect_opens_no_tunnel() {
    let (head, _) = read(Request::builder().method("CONNECT").uri("a.example:443"), false).unwrap();
    assert_eq!(head.target().unwrap_err().status(), 501);
}

#[test]
fn white_space_around_a_value_is_an_error() {
    for value in [" x", "x ", "\tx", "x\t"] {
        let refused = read(get("https://a/").header("x", value), false).unwrap_err();
        assert_eq!(refused, HeadError::Malformed, "{value:?}");
    }
}

#[test]
fn cookies_in_pieces_become_one() {
    let request =
        get("https://a/").header("cookie", "a=b").header("x", "y").header("cookie", "c=d");
    let (head, _) = read(request, false).unwrap();
    assert_eq!(head.sole_header("cookie"), Some(&b"a=b; c=d"[..]));
}

#[test]
fn a_response_has_its_fields_and_none_about_the_connection() {
    let head = b"HTTP/1.1 206 Partial Content\r\netag: \"a:b\"\r\nvary: x\r\nvary: y\r\nempty:\r\n\
        connection: close\r\nkeep-alive: 5\r\ntransfer-encoding: chunked\r\nupgrade: x\r\n\r\n";
    let response = response_head(206, head);
    assert_eq!(response.status(), 206);
    let fields: Vec<(&str, &[u8])> =
        response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let expected: [(&str, &[u8]); 4] =
        [("etag", b"\"a:b\""), ("vary", b"x"), ("vary", b"y"), ("empty", b"")];
    assert_eq!(fields, expected);
}
