//! Requests as attackers write them: whatever of them is passed on is one request that everybody reads in the same way.

use kettle_http::h1::framing::{BodyFraming, BodyReader, BodyWriter};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// The understanding of a request.
#[derive(Debug, PartialEq)]
struct Understood {
    method: String,
    target: String,
    host: String,
    body: Vec<u8>,
    trailers: String,
}

/// Returns our understanding of raw bytes, and what a server gets for them. Nothing where they are refused, or end too early.
fn passed_on(raw: &[u8]) -> Option<(Understood, Vec<u8>)> {
    let Ok(ParseRequest::Complete { head, bytes }) = parse_request(raw, &HeadLimits::default())
    else {
        return None;
    };
    let framing = body_framing(&head).ok()?;
    let (body, trailers) = body_of(framing, raw.get(bytes..)?)?;
    let head = Box::new(head.moved_to(()).moved_to(Received::from(raw.to_vec())));
    let path = head.target().ok()?.path.to_owned();
    let mut request = Request::without_body(head, None);
    request.body.set_framing(framing);
    let route = route(|_| {});
    let trailers = route.request_trailers(&request.head, request.client).passed_on(&trailers);
    let outgoing = route.outgoing(Some(&path), &request, false, false)?;
    let mut sent = outgoing.head().to_vec();
    let mut writer = BodyWriter::new(framing == BodyFraming::Chunked);
    // In two pieces, as they may come.
    for piece in [&body[..body.len() / 2], &body[body.len() / 2..]] {
        writer.write_piece(&mut sent, piece);
    }
    writer.end(&mut sent, &trailers);
    let target = request.head.target().ok()?;
    let understood = Understood {
        method: request.head.method().as_str().to_owned(),
        target: reference(
            Target { path: &path, ..target },
            request.head.raw_target(),
            route.slash_runs,
        )?
        .into(),
        host: request.head.host()?.to_ascii_lowercase(),
        body,
        trailers: String::from_utf8(trailers).ok()?,
    };
    Some((understood, sent))
}

/// The data of a body that is all there, and its trailers; what is behind it is the next request's.
fn body_of(framing: BodyFraming, mut rest: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut reader = BodyReader::new(framing);
    let mut body = Vec::new();
    while !reader.is_done() {
        let piece = reader.next_piece(rest).ok()?;
        let (coded, behind) = rest.split_at(piece.coding_bytes + piece.data_bytes);
        body.extend_from_slice(&coded[piece.coding_bytes..]);
        if coded.is_empty() && !reader.is_done() {
            return None;
        }
        rest = behind;
    }
    Some((body, reader.trailers().to_vec()))
}

/// One request and nothing else, by our own parser.
fn ours(sent: &[u8]) -> Understood {
    let Ok(ParseRequest::Complete { head, bytes }) = parse_request(sent, &HeadLimits::default())
    else {
        panic!("{} is no request", sent.escape_ascii());
    };
    let framing = body_framing(&head).unwrap();
    let mut reader = BodyReader::new(framing);
    let consumed = reader.consume(&sent[bytes..]).unwrap();
    assert_eq!((consumed.bytes, consumed.done), (sent.len() - bytes, true));
    let (body, trailers) = body_of(framing, &sent[bytes..]).unwrap();
    Understood {
        method: head.method().as_str().to_owned(),
        target: head.raw_target().to_owned(),
        host: head.host().unwrap().to_owned(),
        body,
        trailers: String::from_utf8(trailers).unwrap(),
    }
}

/// The same by httparse, with the framing read from its fields.
fn httparse(sent: &[u8]) -> Understood {
    let mut room = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut room);
    let bytes = request.parse(sent).unwrap().unwrap();
    let fields = request.headers.iter().map(|field| (field.name.to_owned(), field.value.to_vec()));
    understood(request.method.unwrap(), request.path.unwrap(), fields.collect(), &sent[bytes..])
}

/// The same by a reading that knows nothing but lines that end with CRLF.
fn by_lines(sent: &[u8]) -> Understood {
    let end = sent.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&sent[..end]).unwrap();
    assert!(!head.replace("\r\n", "").contains(['\r', '\n', '\0']), "{head:?}");
    let mut lines = head.split("\r\n");
    let words: Vec<_> = lines.next().unwrap().split(' ').collect();
    let [method, target, "HTTP/1.1"] = words[..] else { panic!("{words:?}") };
    let fields = lines.map(|line| line.split_once(": ").unwrap());
    let fields = fields.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    understood(method, target, fields.collect(), &sent[end + 4..])
}

fn understood(
    method: &str,
    target: &str,
    fields: Vec<(String, Vec<u8>)>,
    mut rest: &[u8],
) -> Understood {
    let sole = |name: &str| {
        let mut found = fields.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
        let first = found.next().map(|(_, value)| String::from_utf8(value.clone()).unwrap());
        assert!(found.next().is_none(), "{name} twice");
        first
    };
    let mut trailers = String::new();
    let body = match (sole("content-length"), sole("transfer-encoding").as_deref()) {
        (None, None) => Vec::new(),
        (Some(bytes), None) => rest.split_off(..bytes.parse().unwrap()).unwrap().to_vec(),
        (None, Some("chunked")) => {
            let mut body = Vec::new();
            loop {
                let end = rest.windows(2).position(|window| window == b"\r\n").unwrap();
                let size = std::str::from_utf8(&rest[..end]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                rest = &rest[end + 2..];
                if size == 0 {
                    let end = rest.len().checked_sub(2).unwrap();
                    trailers.push_str(std::str::from_utf8(&rest[..end]).unwrap());
                    assert!(!trailers.contains("\r\n\r\n") && trailers != "\r\n", "{trailers:?}");
                    rest = rest[end..].strip_prefix(b"\r\n").unwrap();
                    break body;
                }
                body.extend_from_slice(&rest[..size]);
                rest = rest[size..].strip_prefix(b"\r\n").unwrap();
            }
        }
        framing => panic!("{framing:?}"),
    };
    assert_eq!(rest.escape_ascii().to_string(), "", "behind the request");
    assert_eq!(sole("upgrade"), None);
    for line in trailers.lines() {
        let (name, _) = line.split_once(": ").unwrap();
        assert!(["x", "x-sum"].contains(&name), "{line:?} was passed on");
    }
    let method = method.to_owned();
    let target = target.to_owned();
    Understood { method, target, host: sole("host").unwrap(), body, trailers }
}

/// Usually the first.
fn mostly(
    usual: &'static str,
    others: &'static [&'static str],
) -> impl Strategy<Value = &'static str> {
    prop_oneof![24 => Just(usual), 1 => select(others)]
}

fn line() -> impl Strategy<Value = String> {
    let name = select(&[
        "Content-Length",
        "Transfer-Encoding",
        "content-length",
        "TRANSFER-ENCODING",
        "Content_Length",
        "Content-Length\0",
        "Upgrade",
        "Connection",
        "Host",
        "Expect",
        "TE",
        "Trailer",
        "X",
        "",
        "HTTP2-Settings",
        "X-Forwarded-For",
        "Proxy",
    ]);
    let value = select(&[
        "5",
        "05",
        "+5",
        "5, 5",
        "5 ",
        "-0",
        "0x5",
        "chunked",
        "Chunked",
        "chunked, chunked",
        "gzip, chunked",
        "chunked, identity",
        "\"chunked\"",
        "chunked\0",
        "\u{b}chunked",
        "websocket",
        "h2c",
        "Upgrade",
        "Transfer-Encoding",
        "close, Content-Length",
        "b.example",
        "100-continue",
        "trailers",
        "a\rb",
        "",
    ]);
    let colon = mostly(": ", &[":", " : ", "\t:", ":\t", "", ":\n "]);
    (mostly("", &[" ", "\t"]), name, colon, value, end())
        .prop_map(|(before, name, colon, value, end)| format!("{before}{name}{colon}{value}{end}"))
}

fn end() -> impl Strategy<Value = &'static str> {
    mostly("\r\n", &["\n", "\r", "\r\r\n", "\0\r\n", "\r\n ", ""])
}

fn raw() -> impl Strategy<Value = Vec<u8>> {
    let method = mostly("POST", &["GET", "HEAD", "post", "CONNECT", "PO\0ST", ""]);
    let target = mostly(
        "/app?x=1",
        &[
            "/app",
            "https://a.example/app",
            "http://b.example/app",
            "*",
            "a.example:443",
            "/a b",
            "//b/app",
            "/app\0",
            "/%2e%2e/app",
            "/app#x",
        ],
    );
    let version =
        mostly("HTTP/1.1", &["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", ""]);
    let framing = select(&[
        "",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    ]);
    let body = select(&[
        "",
        "hello",
        "5\r\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "5\nhello\n0\n\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "2\r\nhe\r\n3\r\nllo\r\n00\r\n\r\n",
        "0\r\n\r\nGET /b HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET /b HTTP/1.1\r\nHost: b\r\n\r\n",
        "5;\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Sum: 9\r\nTransfer-Encoding: chunked\r\nHOST: b\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Sum : 9\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Sum: 9\r\n X: folded\r\n\r\n",
        "5\r\nhello\r\n0\r\n:path: /b\r\nX-Sum: a\rb\r\n\r\n",
    ]);
    let lines = proptest::collection::vec(line(), 0..3);
    let space = mostly(" ", &["  ", "\t", ""]);
    (method, space, target, version, end(), framing, lines, body).prop_map(
        |(method, space, target, version, end, framing, lines, body)| {
            let lines = lines.concat();
            let head = format!(
                "{method}{space}{target} {version}{end}Host: a.example\r\n{framing}{lines}"
            );
            format!("{head}\r\n{body}").into_bytes()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn what_a_server_gets_is_one_request_whoever_reads_it(raw in raw()) {
        if let Some((understood, sent)) = passed_on(&raw) {
            for read in [ours(&sent), httparse(&sent), by_lines(&sent)] {
                prop_assert_eq!(&read, &understood, "{}", sent.escape_ascii());
            }
        }
    }
}

#[test]
fn what_is_usual_is_passed_on() {
    // Or the property would hold of nothing.
    for (framing, body) in [
        ("", ""),
        ("Content-Length: 5\r\n", "hello"),
        ("Transfer-Encoding: chunked\r\n", "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"),
        ("Connection: Upgrade\r\nUpgrade: h2c\r\n", "GET /b HTTP/1.1\r\n\r\n"),
    ] {
        let raw = format!("POST /app HTTP/1.1\r\nHost: a.example\r\n{framing}\r\n{body}");
        let (understood, sent) = passed_on(raw.as_bytes()).unwrap();
        assert_eq!(by_lines(&sent), understood);
        assert_eq!(understood.body.len(), if body.contains("hello") { 5 } else { 0 }, "{framing}");
        assert_eq!(understood.trailers, if body.contains("X: y") { "x: y\r\n" } else { "" });
    }
}
