//! Fields behind bodies: who gets them, over which protocol, and which of them go nowhere.

use super::*;
use crate::http2::frames::{get, *};

/// A response with trailers, some of which count in a head only.
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Named\r\n\r\n\
    5\r\nhello\r\n0\r\nGrpc-Status: 0\r\nContent-Length: 9\r\nSet-Cookie: a=1\r\nX-Named: 1\r\n\
    X-Own: 1\r\nX_Sum:  a b \r\n\r\n";

fn start() -> (Backend, Kettle) {
    let servers = Backend::listen();
    let setup = before("headers = { X-Own = \"0\" }", "", &[servers.address()]);
    let kettle = Kettle::start(setup.listener("http2 = true"));
    (servers, kettle)
}

/// Returns the end of an answer in chunks, behind its data.
fn end_of_answer(kettle: &Kettle, servers: &Backend, fields: &str, pieces: &[&str]) -> String {
    let mut client = kettle.ask(&request("GET", "/app", fields));
    let mut server = servers.accept_request();
    for piece in pieces {
        server.write_all(piece.as_bytes()).unwrap();
    }
    let response = client.response_head();
    assert_eq!(response.header("transfer-encoding"), Some("chunked"));
    // However the data were cut into chunks on their way.
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\n") {
        said.extend(client.receive_exactly(1));
    }
    let said = String::from_utf8(said).unwrap();
    // Both connections go on.
    client.send(&request("GET", "/app/next", "Connection: close\r\n")).unwrap();
    answer(&mut server, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(client.response().body, b"ok");
    said.split_once("\r\n0\r\n").unwrap().1.to_owned()
}

#[test]
fn clients_of_http_1_1_get_them_if_they_say_so() {
    let (servers, kettle) = start();
    let passed = "grpc-status: 0\r\nx_sum: a b\r\n\r\n";
    let (front, back) = RESPONSE.split_at(RESPONSE.len() - 11);
    for (fields, pieces, expected) in [
        ("TE: trailers\r\n", &[RESPONSE][..], passed),
        ("Connection: TE\r\nTE: gzip;q=0.5, Trailers\r\n", &[front, back], passed),
        ("", &[RESPONSE], "\r\n"),
        ("TE: gzip\r\n", &[front, back], "\r\n"),
    ] {
        let end = end_of_answer(&kettle, &servers, fields, pieces);
        assert_eq!(end, expected, "{fields:?}");
    }
}

#[test]
fn clients_of_http_2_get_them_as_the_last_frame() {
    let (servers, kettle) = start();
    let mut frames = Frames::connect(&kettle, &[]);
    let mut server = None;
    for (stream, end) in [(1, ""), (3, "Content-Length: 0\r\n"), (5, "X-Sum: 1\r\n")] {
        frames.send(&get(stream, "/app"));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n";
        answer(servers.asked(&mut server), &format!("{head}{end}\r\n"));
        assert_eq!(frames.next_of(HEADERS).flags & END_STREAM, 0);
        let data = frames.next_of(DATA);
        assert_eq!((data.payload.as_slice(), data.flags & END_STREAM), (&b"ok"[..], 0));
        let last = frames.next_of(if stream == 5 { HEADERS } else { DATA });
        assert_eq!((last.stream, last.flags & END_STREAM), (stream, END_STREAM), "{end:?}");
        assert_eq!(last.payload.is_empty(), stream != 5);
        let entry = kettle.entry("/app");
        assert!(entry.is_complete());
        assert_eq!(entry.number("body_bytes"), 2);
    }
    // Read by a client that unpacks them.
    let asking = std::thread::spawn({
        let curl = kettle.curl(&["--http2", "--include"], "/app");
        move || curl.succeed()
    });
    answer(servers.asked(&mut server), RESPONSE);
    let said = asking.join().unwrap();
    let trailers = said.split_once("hello").unwrap().1.trim_ascii();
    assert_eq!(trailers.replace('\r', ""), "grpc-status: 0\nx_sum: a b", "{said}");
}

#[test]
fn servers_get_those_of_requests() {
    let (servers, kettle) = start();
    let sent =
        "X-Sum: 1\r\nX-Forwarded-For: 1.2.3.4\r\nContent_Length: 3\r\nHost: b\r\nX-Sum:2\r\n\r\n";
    let passed = b"0\r\nx-sum: 1\r\nx-sum: 2\r\n\r\n";
    let chunked = request("POST", "/app", "Transfer-Encoding: chunked\r\n");
    // All at once, at a byte in the middle, and beside the response.
    for (cut, is_beside) in [(0, false), (20, false), (20, true)] {
        let mut client = kettle.ask(&[&chunked, &b"5\r\nhello\r\n"[..]].concat());
        let mut server = servers.accept_request();
        assert_eq!(read_exactly(&mut server, 10), b"5\r\nhello\r\n");
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n";
        if is_beside {
            server.write_all(head.as_bytes()).unwrap();
            assert_eq!(client.response_head().status, 200);
        }
        let end = format!("0\r\n{sent}");
        client.send(&end.as_bytes()[..cut]).unwrap();
        client.send(&end.as_bytes()[cut..]).unwrap();
        assert_eq!(read_exactly(&mut server, passed.len()), passed, "{cut} {is_beside}");
        let rest = if is_beside { "" } else { head };
        server.write_all(format!("{rest}ok").as_bytes()).unwrap();
        if !is_beside {
            assert_eq!(client.response_head().status, 200);
        }
        assert_eq!(client.receive_exactly(2), b"ok");
    }
}

#[test]
fn trailers_of_http_2_that_no_message_may_have_do_not_end_a_request() {
    let (servers, kettle) = start();
    let mut frames = Frames::connect(&kettle, &[]);
    for (stream, value, status) in
        [(1, " 1".to_owned(), 400), (3, "1 ".to_owned(), 400), (5, "x".repeat(120), 431)]
    {
        frames.send(&post(stream, "/app/x"));
        frames.send(&frame(DATA, 0, stream, b"body"));
        let mut server = servers.accept_request();
        assert_eq!(read_exactly(&mut server, 9), b"4\r\nbody\r\n");
        let lines = if status == 431 { 40 } else { 1 };
        frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &lines_of(&value, lines)));
        assert_eq!(kettle.entry("/app/x").number("status"), status);
        // It must not take what it has for the whole.
        assert_eq!(read_to_end(&mut server).0, b"");
    }
    frames.ping();
}

/// So many fields of this value, uncompressed.
fn lines_of(value: &str, count: usize) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    [&[0, 1, b'a', length], value.as_bytes()].concat().repeat(count)
}

#[test]
fn what_goes_through_a_store_has_none() {
    let servers = Backend::listen();
    let kept = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n[site.route.cache]\nstore = \"main\"\n\
                [[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let setup = kettle_tests::setup::Setup::default().listener("http2 = true").more(kept);
    let setup = setup.file("kept/.keep", "").more(&backend("app", "", &[servers.address()]));
    let kettle = Kettle::start(setup);
    let mut frames = Frames::connect(&kettle, &[]);
    let mut server = None;
    let fresh = RESPONSE.replace("OK\r\n", "OK\r\nCache-Control: max-age=99\r\n");
    // A miss, a hit, and one that is not kept: nobody can say which of them a client gets.
    for (stream, target, response) in
        [(1, "/app/kept", Some(&*fresh)), (3, "/app/kept", None), (5, "/app/not", Some(RESPONSE))]
    {
        frames.send(&get(stream, target));
        if let Some(response) = response {
            answer(servers.asked(&mut server), response);
        }
        assert_eq!(frames.body(stream), b"hello", "{target}");
    }
    // A request that no store could answer passes by.
    frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, 7, &fields("PUT", "/app/put", &[])));
    answer(servers.asked(&mut server), RESPONSE);
    while frames.next_of(HEADERS).flags & END_STREAM == 0 {}
}
