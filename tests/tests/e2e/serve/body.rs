//! Bodies of requests: nobody wants them, but where they end decides where the next request begins.

use super::*;

#[test]
fn a_body_is_read_past_and_the_next_request_answered() {
    let kettle = Kettle::start(with_files());
    for (framing, body) in [
        ("Content-Length: 5\r\n", "12345".to_owned()),
        ("Content-Length: 100000\r\n", "x".repeat(100_000)),
        ("Transfer-Encoding: chunked\r\n", "5\r\n12345\r\n0\r\n\r\n".to_owned()),
        ("Transfer-Encoding: chunked\r\n", "5;x=y\r\n12345\r\n0\r\nTrailer: x\r\n\r\n".to_owned()),
        ("Transfer-Encoding: Chunked\r\n", "0005\r\n12345\r\n000\r\n\r\n".to_owned()),
    ] {
        let mut client = kettle.connect(TLS13_AES_128);
        let first = [request("GET", "/a", framing), body.into_bytes()].concat();
        assert_eq!(client.exchange(&[first, get("/b")].concat()).body, b"content of a");
        assert_eq!(client.response().body, b"content of b");
    }
}

#[test]
fn a_body_beyond_the_limit_ends_the_connection() {
    // At once, and not because nothing more comes.
    let setup = with_files().set("limits", "request_timeout = \"10m\"");
    let kettle = Kettle::start(setup.set("limits", "body_discard = 1000"));
    let mut client = kettle.connect(TLS13_AES_128);
    assert_closes(&client.exchange(&request("GET", "/a", "Content-Length: 1001\r\n")));
    assert_eq!(client.end(), End::Orderly);

    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&request("GET", "/a", "Transfer-Encoding: chunked\r\n")).unwrap();
    client.send(format!("1000\r\n{}", "x".repeat(2_000)).as_bytes()).unwrap();
    assert_eq!(client.response().body, b"content of a");
    assert_eq!(client.end(), End::Orderly);
}

#[test]
fn an_answer_is_not_followed_by_a_reset_while_the_client_still_sends() {
    let kettle = Kettle::start(with_files().set("limits", "body_discard = 1000"));
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&request("GET", "/a", "Content-Length: 300000\r\n")).unwrap();
    assert_closes(&client.exchange(&[b'x'; 300_000]));
    assert_eq!(client.end(), End::Orderly);
    assert_eq!(client.wire.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(kettle.status("/total/connections_open"), 1);
    client.wire.assert_not_reset();
}

#[test]
fn http_1_0_ends_after_one_response() {
    let kettle = Kettle::start(with_files());
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(b"GET /a HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(client.response().body, b"content of a");
    assert_eq!(client.end(), End::Orderly);
}

#[track_caller]
fn assert_closes(response: &Response) {
    assert_eq!(response.body, b"content of a");
    assert_eq!(response.header("connection"), Some("close"));
}

fn with_files() -> Setup {
    Setup::default().file("www/a", "content of a").file("www/b", "content of b")
}
