//! Routes that pass requests to a backend, for clients that speak HTTP/2.

use std::io::Read;

use super::*;
use crate::proxy::guarded::{SECRET, SIGNATURE};

/// HPACK's name for `:status: 400`.
const BAD_REQUEST: u8 = 0x8c;

const EXPECTING: [(&str, &str); 1] = [("expect", "100-continue")];

fn start() -> (Backend, Kettle) {
    let servers = Backend::listen();
    let kettle = Kettle::start(passing(over_http2(), "", &servers));
    (servers, kettle)
}

/// A server whose backend has the request for `/app/x` of a client.
fn asked() -> (Kettle, Frames, TcpStream) {
    let (servers, kettle, mut frames) = connected(over_http2());
    frames.send(&get(1, "/app/x"));
    let server = servers.accept_request();
    (kettle, frames, server)
}

#[test]
fn bodies_of_known_and_unknown_length_come_back_whole() {
    let (servers, kettle) = start();
    let body = content(200_000);
    for framing in ["length", "chunks"] {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&get(1, "/app/x"));
        let mut server = servers.accept();
        let head = read_until(&mut server, b"\r\n\r\n");
        assert!(head.starts_with(b"GET /app/x HTTP/1.1\r\nhost: localhost\r\n"));
        let response = match framing {
            "length" => [b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n", &body[..]].concat(),
            _ => {
                let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n30d40\r\n";
                [&head[..], &body, b"\r\n0\r\n\r\n"].concat()
            }
        };
        let answering = std::thread::spawn(move || {
            server.write_all(&response).unwrap();
            server
        });
        assert_same(&frames.body(1), &body, framing);
        drop(answering.join().unwrap());
    }
}

#[test]
fn a_signature_is_for_a_request_without_a_body() {
    let servers = Backend::listen();
    let route = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nsigned_urls = { secret = \"secret\" }\n";
    let setup = over_http2().file("secret", SECRET).more(route);
    let kettle = Kettle::start(setup.more(&backend("app", "", &[servers.address()])));
    let mut frames = Frames::connect(&kettle, &[]);
    let target = format!("/app/a?expires=4102444800&signature={SIGNATURE}");
    // No field says that there is one.
    frames.send(&frame(HEADERS, END_HEADERS, 1, &fields("GET", &target, &[])));
    frames.send(&frame(DATA, END_STREAM, 1, b"{}"));
    assert_eq!(kettle.entry(&target).text("refused"), "not-signed");
    let _page = frames.body(1);
    frames.send(&get(3, &target));
    let mut server = servers.accept();
    let _head = read_until(&mut server, b"\r\n\r\n");
    frames.answered(&mut server, 3, "ok");
}

#[test]
fn a_request_that_ends_in_a_frame_behind_its_head_has_no_body() {
    let servers = Backend::listen();
    let route = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n\
        cache = { store = \"main\" }\n[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let setup = over_http2().file("kept/.keep", "").more(route);
    let kettle = Kettle::start(setup.more(&backend("app", "", &[servers.address()])));
    let mut frames = Frames::connect(&kettle, &[]);
    let mut ask = |stream| {
        let head = frame(HEADERS, END_HEADERS, stream, &fields("GET", "/app/x", &[]));
        frames.send(&[head, frame(DATA, END_STREAM, stream, b"")].concat());
        (stream == 1).then(|| {
            let mut server = servers.accept();
            let head = String::from_utf8(read_until(&mut server, b"\r\n\r\n")).unwrap();
            assert!(!head.contains("transfer-encoding"), "{head}");
            let fields = "cache-control: max-age=100\r\ncontent-length: 2";
            server.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nok").as_bytes()).unwrap();
        });
        assert_eq!(frames.body(stream), b"ok");
        kettle.entry("/app/x").text("cache").to_owned()
    };
    assert_eq!(ask(1), "miss");
    while !kettle.ctl(&["cache", "status"]).succeed().contains("main: 1 object") {}
    assert_eq!(ask(3), "hit");
}

/// As docs/http.md has it: what was received is rewritten, sent and let go, whatever the client takes of the body.
#[test]
fn streams_that_wait_for_their_client_hold_no_heads_of_backends() {
    let (servers, kettle) = start();
    let before_bytes = kettle.memory_bytes();
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
    let fields = format!("x-long: {}\r\n", "x".repeat(480)).repeat(100);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n{fields}\r\n");
    let streams = (1..).step_by(2).take(100);
    let servers: Vec<_> = streams
        .map(|stream| {
            frames.send(&get(stream, "/app/x"));
            let mut server = servers.accept_request();
            server.write_all(head.as_bytes()).unwrap();
            frames.next_of(HEADERS);
            server
        })
        .collect();
    let grown = kettle.memory_bytes().saturating_sub(before_bytes);
    let each = grown / servers.len() as u64;
    assert!(each < STREAM_BYTES_MAX, "{each} bytes for each");
}

/// The bytes that a stream holds at most beside those it sends, as docs/http.md says.
const STREAM_BYTES_MAX: u64 = 64 << 10;

#[test]
fn hints_do_not_pile_up_for_a_client_that_takes_nothing() {
    let (servers, kettle) = start();
    let before_bytes = kettle.memory_bytes();
    let mut frames = Frames::begin(Dialer::default().reading_slowly(), &kettle, &[]);
    let hint = format!("HTTP/1.1 103 Early Hints\r\nlink: <{}>\r\n\r\n", "x".repeat(30_000));
    let end = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let streams = (1..).step_by(2).take(24);
    let asked: Vec<_> = streams
        .map(|stream| {
            frames.send(&get(stream, "/app/x"));
            servers.accept_request()
        })
        .collect();
    for mut server in asked {
        server.write_all(format!("{}{end}", hint.repeat(31)).as_bytes()).unwrap();
        // All of it was read.
        assert_eq!(read_to_end(&mut server).0, b"");
    }
    kettle.assert_grown_below(before_bytes, 8 << 20);
    // Its responses come all the same.
    for _ in 0..24 {
        while frames.next_of(HEADERS).flags & END_STREAM == 0 {}
    }
}

#[test]
fn an_upload_arrives_as_it_was_framed_for_http_1_1() {
    let (servers, _kettle, mut frames) = connected(over_http2());
    frames.send(&post(1, "/app/up"));
    frames.send(&frame(DATA, 0, 1, b"hello "));
    let mut server = servers.accept();
    let head = String::from_utf8(read_until(&mut server, b"\r\n\r\n")).unwrap();
    assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
    assert_eq!(read_until(&mut server, b"hello \r\n"), b"6\r\nhello \r\n");
    frames.send(&frame(DATA, END_STREAM, 1, b"world"));
    assert_eq!(read_until(&mut server, b"0\r\n\r\n"), b"5\r\nworld\r\n0\r\n\r\n");
    frames.answered(&mut server, 1, "ok");
}

#[test]
fn a_backend_that_breaks_off_ends_the_stream_with_an_error_and_no_other() {
    let (kettle, mut frames, mut server) = asked();
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").unwrap();
    assert_eq!(frames.next_of(DATA).payload, b"half");
    drop(server);
    assert_eq!(code(&frames.next_of(RST_STREAM).payload), INTERNAL_ERROR);
    let entry = kettle.entry("/app/x");
    assert!(!entry.is_complete());
    assert_eq!(entry.text("upstream_failure"), "closed_early");
    frames.ping();
}

#[test]
fn what_a_backend_sent_before_it_broke_off_arrives_before_the_error() {
    let (kettle, mut frames, mut server) = asked();
    // Its end goes out with the rest.
    rustix::net::sockopt::set_tcp_cork(&server, true).unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").unwrap();
    drop(server);
    frames.next_of(HEADERS);
    assert_eq!(frames.next_of(DATA).payload, b"half");
    assert_eq!(code(&frames.next_of(RST_STREAM).payload), INTERNAL_ERROR);
    assert_eq!(kettle.entry("/app/x").number("body_bytes"), 4);
}

#[test]
fn a_request_that_is_taken_back_leaves_its_backend() {
    let (kettle, mut frames, mut server) = asked();
    frames.send(&cancel(1));
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    assert_gone(&kettle, "/app/x", "");
}

/// The line of a request that was taken back says whom it was for.
fn assert_gone(kettle: &Kettle, target: &str, cache: &str) {
    let entry = kettle.entry(target);
    let words = ["upstream_failure", "cache", "backend"].map(|word| entry.text(word));
    assert_eq!((entry.number("status"), words), (499, ["client_gone", cache, "app"]), "{target}");
}

#[test]
fn a_request_for_what_is_kept_is_taken_back_like_any_other() {
    let servers = Backend::listen();
    let route = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nrequest_buffering = \"off\"\n\
                 [site.route.cache]\nstore = \"main\"\n[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let setup = over_http2().more(route).file("kept/.keep", "");
    let metrics = unused_address();
    let setup = setup.metrics(metrics);
    let kettle = Kettle::start(setup.more(&backend("app", "", &[servers.address()])));
    let mut frames = Frames::connect(&kettle, &[]);
    let mut asked = Vec::new();
    for (stream, request, target, cache) in [
        (1, get(1, "/app/x"), "/app/x", "miss"),
        (3, get(3, "/app/x"), "/app/x", "collapsed"),
        (5, asking(5, "POST", "/app/y", &[]), "/app/y", "bypass"),
        (7, posting(7, "/app/asks", &EXPECTING), "/app/asks", "bypass"),
    ] {
        frames.send(&request);
        if stream == 3 {
            // One task waits for the first client's, which has gone.
            while !scrape(metrics).contains("kettle_cache_waiters{store=\"main\"} 1\n") {}
        } else {
            asked.push(servers.accept_request());
        }
        frames.send(&cancel(stream));
        assert_gone(&kettle, target, cache);
    }
}

#[test]
fn what_a_server_says_before_its_answer_is_passed_on() {
    let (servers, kettle) = start();
    let asking = std::thread::spawn({
        let words = ["--http2", "--include"];
        let target = "/app/x";
        let curl = kettle.curl(&words, target);
        move || curl.succeed()
    });
    let mut server = servers.accept_request();
    server.write_all(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n").unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
    let said = asking.join().unwrap();
    let (interim, rest) = said.split_once("\r\n\r\n").unwrap();
    assert!(interim.starts_with("HTTP/2 103") && interim.contains("link: </a.css>"), "{said}");
    assert!(rest.starts_with("HTTP/2 200") && rest.ends_with("\r\n\r\nok"), "{said}");
}

#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let (servers, _kettle, mut frames) = connected(over_http2());
    frames.send(&posting(1, "/app/up", &EXPECTING));
    let mut server = servers.accept_request();
    server.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    let interim = frames.next_of(HEADERS);
    assert_eq!(interim.flags & END_STREAM, 0);
    frames.send(&frame(DATA, END_STREAM, 1, b"now"));
    assert_eq!(read_until(&mut server, b"0\r\n\r\n"), b"3\r\nnow\r\n0\r\n\r\n");
    frames.answered(&mut server, 1, "ok");
    // Also by the beginning of an answer that is made of the body.
    frames.send(&posting(3, "/app/up", &EXPECTING));
    drop(read_until(&mut server, b"\r\n\r\n"));
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nnow").unwrap();
    assert_eq!(frames.next_of(HEADERS).flags & END_STREAM, 0);
    frames.send(&frame(DATA, END_STREAM, 3, b"now"));
    assert_eq!(read_until(&mut server, b"0\r\n\r\n"), b"3\r\nnow\r\n0\r\n\r\n");
    server.write_all(b"now").unwrap();
    assert_eq!(frames.body(3), b"nownow");
}

#[test]
fn a_client_that_waits_is_spared_a_body_that_nobody_wants() {
    let (servers, kettle, mut frames) = connected(over_http2());
    frames.send(&posting(1, "/app/up", &EXPECTING));
    let mut server = servers.accept_request();
    server.write_all(b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno").unwrap();
    let mut kinds = Vec::new();
    while kinds.last() != Some(&DATA) {
        kinds.push(frames.next().unwrap().kind);
    }
    let heads = kinds.iter().filter(|kind| **kind == HEADERS).count();
    assert_eq!(heads, 1, "no head is before it that tells the client to go on");
    frames.expect_reset(1, NO_ERROR);
    assert_eq!(kettle.entry("/app/up").number("status"), 413);
    assert_eq!(read_to_end(&mut server).0, b"", "its connection has half a request on it");
    frames.ping();
}

#[test]
fn a_backend_that_breaks_off_behind_a_hint_has_failed() {
    let (kettle, mut frames, mut server) = asked();
    server.write_all(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n").unwrap();
    assert_eq!(frames.next_of(HEADERS).flags & END_STREAM, 0);
    reset(server);
    drop(frames.next_of(HEADERS));
    assert_eq!(kettle.entry("/app/x").number("status"), 502);
    frames.ping();
}

#[test]
fn padding_is_no_part_of_a_body_and_takes_from_windows_for_a_moment_only() {
    const PADDED: u8 = 8;
    let (servers, _kettle, mut frames) = connected(over_http2());
    // Larger windows count from then on.
    frames.acknowledge();
    frames.send(&posting(1, "/app/x", &[("content-length", "5000")]));
    let mut server = servers.accept_request();
    let padded = [&[254, b'x'][..], &[0; 254]].concat();
    // In all more than any window, and at a time half of the stream's.
    for _ in 0..10 {
        frames.send(&frame(DATA, PADDED, 1, &padded).repeat(500));
        assert_eq!(read_exactly(&mut server, 500), [b'x'; 500]);
        frames.ping();
    }
    frames.send(&frame(DATA, END_STREAM, 1, b""));
    frames.answered(&mut server, 1, "ok");
}

/// Lines that would be another request, or another framing, for a server that is asked by HTTP/1.1.
#[test]
fn nothing_that_http_1_1_would_read_otherwise_reaches_a_backend() {
    let (servers, kettle) = start();
    let own = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/app/x"),
        (":authority", "localhost"),
    ];
    let instead = [
        (":method", "GET /app/y HTTP/1.1\r\n"),
        (":method", ""),
        (":path", "/app/ HTTP/1.1"),
        (":path", "/app/x\r\nx: y"),
        (":path", "/app/\0"),
        (":path", "app/x"),
        (":path", "https://other/app/x"),
        (":path", ""),
        (":authority", "localhost\r\nx: y"),
        (":authority", "user@localhost"),
        (":authority", "localhost/app"),
        (":authority", "local host"),
    ];
    let beside = [
        (":path", "/app/y"),
        (":method", "POST"),
        (":status", "200"),
        ("host", "other"),
        ("x", "a\r\nb: c"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "a\0b"),
        ("x: y", "z"),
        ("x\r\ny", "z"),
        ("x y", "z"),
        ("X", "y"),
        ("", "y"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("content-length", "5"),
        ("content-length", "+0"),
        ("content-length", "0, 0"),
    ];
    let replaced = |line: &(&'static str, &'static str)| {
        own.map(|it| if it.0 == line.0 { *line } else { it }).to_vec()
    };
    let added = |line: &(&'static str, &'static str)| [&own[..], &[*line]].concat();
    for lines in instead.iter().map(replaced).chain(beside.iter().map(added)) {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&lines)));
        let answer = loop {
            let next = frames.next().unwrap_or_else(|end| panic!("{end:?} of {lines:?}"));
            if [HEADERS, RST_STREAM, GOAWAY].contains(&next.kind) {
                break next;
            }
        };
        let is_refused = answer.kind != HEADERS || answer.payload[0] == BAD_REQUEST;
        assert!(is_refused, "{lines:?}: {answer:?}");
    }
    // The first that comes to the server is this.
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/app/last"));
    let head = read_until(&mut servers.accept(), b"\r\n\r\n");
    assert!(head.starts_with(b"GET /app/last "), "{}", head.escape_ascii());
}
