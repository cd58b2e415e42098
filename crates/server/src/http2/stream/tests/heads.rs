use kettle_http::h2::{Connection, Settings};

use super::*;

/// A request of these fields, as a connection makes it out.
fn request(fields: &[(&str, &str)], has_body: bool) -> NewRequest {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            // An integer of seven bits and more (RFC 7541 §5.1).
            match text.len() {
                length @ ..127 => block.push(u8::try_from(length).unwrap()),
                length => {
                    let more = length - 127;
                    let digits = [0x80 | (more & 0x7f), 0x80 | (more >> 7 & 0x7f), more >> 14];
                    block.extend([127, digits[0] as u8, digits[1] as u8, digits[2] as u8]);
                }
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    let mut connection = Connection::new(Settings {
        streams_max: 1,
        stream_window_bytes: 65_535,
        connection_window_bytes: 65_535,
        head_bytes_max: 16 * 1_024,
    });
    connection.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 0, 0);
    let end_stream = u8::from(!has_body);
    let mut pieces = block.chunks(16_384).peekable();
    let mut kind = 1;
    let mut flags = end_stream;
    while let Some(piece) = pieces.next() {
        flags |= if pieces.peek().is_none() { 4 } else { 0 };
        let length = u32::try_from(piece.len()).unwrap().to_be_bytes();
        let frame = [&length[1..], &[kind, flags, 0, 0, 0, 1], piece].concat();
        connection.receive(&frame, 0, 0);
        (kind, flags) = (9, 0);
    }
    connection.next_request().unwrap()
}

fn read(
    fields: &[(&str, &str)],
    has_body: bool,
) -> Result<(Box<RequestHead<Received>>, BodyFraming), HeadError> {
    request_head(request(fields, has_body), &HeadLimits::default())
}

/// A GET for a path of `a.example`, with more fields.
fn get<'f>(path: &'f str, more: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let own =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", path)];
    [&own[..], more].concat()
}

#[test]
fn a_request_is_read_as_over_http_1_1() {
    let mut fields = get("/b%20c?d", &[("user-agent", "x")]);
    fields[2] = (":authority", "a.example:8443");
    let (head, framing) = read(&fields, false).unwrap();
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
    let of = |more: &[(&'static str, &'static str)]| read(&get("/", more), true).unwrap().1;
    assert_eq!(of(&[]), BodyFraming::Chunked);
    assert_eq!(of(&[("content-length", "3")]), BodyFraming::Length(3));
}

#[test]
fn host_stands_in_for_a_missing_authority() {
    let own = [(":method", "GET"), (":scheme", "https"), (":path", "/")];
    let (head, _) = read(&[&own[..], &[("host", "b.example")]].concat(), false).unwrap();
    assert_eq!(head.host(), Some("b.example"));
    assert_eq!(read(&own, false).unwrap_err(), HeadError::Status(400));
}

#[test]
fn what_a_parser_of_http_1_1_refuses_gets_its_status() {
    let status = |fields: &[(&str, &str)], has_body| match read(fields, has_body) {
        Err(HeadError::Status(status)) => status,
        other => panic!("{other:?}"),
    };
    let long = format!("/{}", "x".repeat(9_000));
    assert_eq!(status(&get(&long, &[]), false), 414);
    let large = "y".repeat(20_000);
    assert_eq!(read(&get("/", &[("x", &large)]), false).unwrap_err(), HeadError::TooLarge);
    let lengths = [("content-length", "1"), ("content-length", "1")];
    assert_eq!(status(&get("/", &lengths), true), 400);
    assert_eq!(status(&get("/", &[("content-length", "+1")]), true), 400);
}

#[test]
fn a_connect_opens_no_tunnel() {
    let (head, _) =
        read(&[(":method", "CONNECT"), (":authority", "a.example:443")], false).unwrap();
    assert_eq!(head.target().unwrap_err().status(), 501);
}

#[test]
fn an_extended_connect_is_the_get_that_asks_for_websocket() {
    let mut fields = get("/chat", &[("sec-websocket-key", "theirs"), ("origin", "x")]);
    fields[0] = (":method", "CONNECT");
    fields.insert(0, (":protocol", "websocket"));
    let (head, framing) = read(&fields, true).unwrap();
    assert_eq!((head.raw_target(), framing), ("/chat", BodyFraming::None));
    assert!(head.is_extended_connect());
    assert_ne!(head.sole_header("sec-websocket-key").unwrap(), b"theirs");
    fields.push(("content-length", "1"));
    assert_eq!(read(&fields, true).unwrap_err(), HeadError::Malformed);
    fields[0] = (":protocol", "connect-udp");
    assert_eq!(read(&fields, true).unwrap_err(), HeadError::Status(501));
}
