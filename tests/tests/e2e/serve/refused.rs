//! Requests that others might understand differently are refused, and whatever follows them on the connection is not
//! taken for a request.

use kettle_tests::transcript::contains;

use super::*;

/// The bytes that arrive, and the status of the only answer. The tables of `kettle_http` have every reason.
const REFUSED: &[(&str, u16)] = &[
    ("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("GET /\r\n\r\n", 400),
    ("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
    ("GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: localhost:99999\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: localhost\r\nX: a\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x1\r\n\r\n", 400),
    (
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    ),
    ("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    ("POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
];

#[test]
fn a_request_with_two_meanings_is_refused_and_nothing_behind_it_is_answered() {
    let kettle = Kettle::start(Setup::default().file("www/index.html", "the index"));
    for (sent, status) in REFUSED {
        is_refused(&kettle, sent.as_bytes(), *status);
    }
}

#[test]
fn a_head_beyond_the_limits_is_refused() {
    let kettle = Kettle::start(Setup::default());
    let long_field = format!("X: {}\r\n", "x".repeat(20_000));
    let many_fields = "X: x\r\n".repeat(100);
    for fields in [&long_field, &many_fields] {
        is_refused(&kettle, &kettle_tests::http::request("GET", "/", fields), 431);
    }
    let long_target = format!("/{}", "x".repeat(9_000));
    is_refused(&kettle, &kettle_tests::http::get(&long_target), 414);
}

/// To close with something unread would reset the connection, and take the answer from the client.
#[test]
fn a_refusal_reaches_a_client_that_sends_on() {
    let kettle = Kettle::start(Setup::default());
    let mut client = kettle.connect(TLS13_AES_128);
    assert_eq!(client.exchange(&[&b"BREW\r\n\r\n"[..], &[b'x'; 16 << 20]].concat()).status, 400);
    assert_eq!(client.end(), End::Orderly);
}

#[test]
fn an_endless_head_is_refused_before_its_end() {
    let kettle = Kettle::start(Setup::default());
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(b"GET / HTTP/1.1\r\nX: ").unwrap();
    assert_eq!(client.exchange(&[b'x'; 20_000]).status, 431);
    assert_eq!(client.end(), End::Orderly);
}

#[test]
fn a_chunked_body_that_breaks_the_rules_gets_400_or_ends_the_connection() {
    let kettle = Kettle::start(Setup::default().file("www/index.html", "the index"));
    let head = "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "0x1\r\nx\r\n0\r\n\r\n",
        "1\r\nxx\r\n0\r\n\r\n",
        "1;a b\r\nx\r\n0\r\n\r\n",
        "0\r\nHost : x\r\n\r\n",
    ] {
        is_refused(&kettle, format!("{head}{body}").as_bytes(), 400);
        // A fault after the answer can only end the connection.
        let mut client = kettle.connect(TLS13_AES_128);
        assert_eq!(client.exchange(head.as_bytes()).status, 200);
        client.send(&[body.as_bytes(), &kettle_tests::http::get("/smuggled")].concat()).unwrap();
        assert_eq!(client.end(), End::Orderly, "{body:?}");
        assert!(client.beyond().is_empty(), "{body:?}: a second answer");
    }
}

/// The one answer has `status`, and the connection ends in order although more was sent.
#[track_caller]
fn is_refused(kettle: &Kettle, sent: &[u8], status: u16) {
    let mut client = kettle.connect(TLS13_AES_128);
    let smuggled = kettle_tests::http::get("/smuggled");
    client.send(&[sent, &smuggled].concat()).unwrap();
    let what = String::from_utf8_lossy(&sent[..sent.len().min(200)]).into_owned();
    let response = client.response();
    assert_eq!(response.status, status, "{what:?}");
    assert_eq!(client.end(), End::Orderly, "{what:?}");
    assert!(!contains(client.beyond(), b"HTTP/1.1"), "{what:?}: a second answer");
}
