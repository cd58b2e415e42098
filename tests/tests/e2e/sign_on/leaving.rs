//! Clients that leave while the service is asked, and many that wait for it.

use kettle_tests::http::get;

use super::*;
use crate::http2::frames::{self, *};

/// HPACK's name for `:status: 200`.
const OK: u8 = 0x88;

#[test]
fn the_service_is_let_go_of_when_its_client_leaves() {
    let it = Running::with("", "");
    let mut client = it.client();
    client.send(&get("/app/left")).unwrap();
    let mut service = it.auth.accept();
    read_head(&mut service);
    drop(client);
    assert!(read_to_end(&mut service).0.is_empty());
    assert_eq!(it.kettle.entry("/app/left").number("status"), 499);
    it.app.assert_unasked();
}

#[test]
fn the_service_is_let_go_of_when_a_stream_is_taken_back() {
    let auth = Backend::listen();
    let app = Backend::listen();
    let kettle = Kettle::start(guarded(&auth, &app, "", "").listener("http2 = true"));
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&frame(HEADERS, END_HEADERS, 1, &fields("POST", "/app/left", &[])));
    let mut service = auth.accept();
    read_head(&mut service);
    frames.send(&frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes()));
    assert!(read_to_end(&mut service).0.is_empty());
    frames.ping();
    app.assert_unasked();
}

#[test]
fn a_body_that_came_before_the_answer_reaches_the_backend_whole() {
    let it = Running::with("", "");
    let mut client = it.client();
    let body = vec![b'x'; 100_000];
    let head = request("POST", "/app/x", &format!("Content-Length: {}\r\n", body.len()));
    client.send(&[head, body[..1_000].to_vec()].concat()).unwrap();
    let mut service = it.auth.accept();
    let head = read_head(&mut service);
    assert!(!head.to_ascii_lowercase().contains("content-length"), "{head}");
    service.write_all(YES.as_bytes()).unwrap();
    let mut server = it.app.accept();
    read_head(&mut server);
    client.send(&body[1_000..]).unwrap();
    assert_eq!(read_exactly(&mut server, body.len()), body);
    server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    assert_eq!(client.response_head().status, 204);
}

#[test]
fn a_refused_body_leaves_its_connection_to_the_next_request() {
    let it = Running::with("", "");
    let mut client = it.client();
    client.send(&request("POST", "/app/x", "Content-Length: 4\r\n")).unwrap();
    let mut kept = None;
    answer(it.auth.asked(&mut kept), "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response().status, 403);
    client.send(b"body").unwrap();
    client.send(&get("/app/y")).unwrap();
    answer(it.auth.asked(&mut kept), YES);
    ok(&mut it.app.accept(), "in");
    assert_eq!(client.response().body, b"in");
}

/// A service with one connection and no queue: all others are told so at once, and no worker has more to hold for them.
#[test]
fn a_thousand_clients_before_a_slow_service_are_sent_away() {
    let auth = Backend::listen();
    let app = Backend::listen();
    let text = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n\
         forward_auth = {{ backend = \"auth\", path = \"/\", timeout = \"1m\" }}\n{}{}",
        backend("app", "", &[app.address()]),
        backend("auth", "queue = 0", &[auth.address()])
    );
    let setup = Setup::default().listener("http2 = true").more(&text).more("connections = 1\n");
    let kettle = Kettle::start(setup);
    let mut first = Dialer::default().alpn(&["http/1.1"]).connect(kettle.address());
    first.send(&get("/app/first")).unwrap();
    let mut service = auth.accept();
    read_head(&mut service);
    for _ in 0..10 {
        let mut frames = Frames::connect(&kettle, &[]);
        let requests: Vec<Vec<u8>> =
            (0..100).map(|number| frames::get(2 * number + 1, "/app/more")).collect();
        frames.send(&requests.concat());
        let mut ended = 0;
        while ended < 100 {
            let frame = frames.next().unwrap();
            assert!(frame.kind != HEADERS || frame.payload[0] != OK, "somebody was let in");
            ended += usize::from(frame.kind == DATA && frame.flags & END_STREAM != 0);
        }
    }
    service.write_all(YES.as_bytes()).unwrap();
    ok(&mut app.accept(), "in");
    assert_eq!(first.response().body, b"in");
}
