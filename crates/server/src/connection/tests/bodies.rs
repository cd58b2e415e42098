//! Request bodies: for a handler that wants them, and for files, which do not.

use std::convert::identity;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener as Listening, TcpStream as Accepted};
use std::thread;

use kettle_config::RequestBuffering;

use super::notes::read_to;
use super::*;

const BYTES_MAX: u64 = 100;

/// The only route of a site whose server answers with what it was sent.
fn echoing(_: Router) -> Router {
    let backend = Listening::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap();
    thread::spawn(move || {
        for socket in backend.incoming() {
            thread::spawn(move || echo(socket.unwrap()));
        }
    });
    let config = config(&tempfile::tempdir().unwrap());
    routed(config, address, &[], |route| {
        (route.request_body, route.request_buffering) = (BYTES_MAX, RequestBuffering::Off);
    })
}

/// Answers all requests of a connection; `None` at its end.
fn echo(mut socket: Accepted) -> Option<()> {
    let mut asked = Vec::new();
    loop {
        let head = read_to(&mut socket, &mut asked, b"\r\n\r\n")?;
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        if head.contains("\r\nexpect: 100-continue\r\n") {
            socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        let body = match head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
            Some(length) => exactly(&mut socket, &mut asked, length.parse().unwrap())?,
            None => chunks(&mut socket, &mut asked)?,
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        socket.write_all(&[head.into_bytes(), body].concat()).ok()?;
    }
}

/// The chunks of a body, without its trailers.
fn chunks(socket: &mut Accepted, asked: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_to(socket, asked, b"\r\n")?;
        let bytes = usize::from_str_radix(str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        if bytes == 0 {
            while read_to(socket, asked, b"\r\n")? != b"\r\n" {}
            return Some(body);
        }
        body.extend(exactly(socket, asked, bytes)?);
        exactly(socket, asked, 2)?;
    }
}

fn exactly(socket: &mut Accepted, received: &mut Vec<u8>, bytes: usize) -> Option<Vec<u8>> {
    while received.len() < bytes {
        let mut piece = [0; 1_024];
        let read = socket.read(&mut piece).ok().filter(|bytes| *bytes > 0)?;
        received.extend_from_slice(&piece[..read]);
    }
    Some(received.drain(..bytes).collect())
}

fn with_length(body: &str) -> String {
    format!("POST /e HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

const CHUNKED: &str = "POST /e HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
const EXPECTING: &str = "POST /e HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\
    Content-Length: 5\r\n\r\n";
const GET: &str = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn a_body_is_read_however_it_is_cut_and_what_follows_is_the_next_request() {
    let chunked = format!("{CHUNKED}3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n");
    on_stage(echoing, async |stage| {
        for request in [with_length("hello"), chunked] {
            let mut client = stage.connect().await;
            let both = format!("{request}{}", with_length("next"));
            for cut in 1..both.len() {
                client.send(&both[..cut]).await;
                // The server has its turn: it may read the first part alone.
                tokio::task::yield_now().await;
                client.send(&both[cut..]).await;
                let (head, body) = client.response().await;
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                assert_eq!(body, b"hello", "cut at {cut}");
                assert_eq!(client.response().await.1, b"next", "cut at {cut}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_waits_is_told_to_go_on_by_who_wants_its_body() {
    on_stage(echoing, async |stage| {
        let mut client = stage.connect().await;
        for _ in 0..2 {
            client.send(EXPECTING).await;
            assert_eq!(client.response().await.0, "HTTP/1.1 100 Continue\r\n\r\n");
            client.send("hello").await;
            let (head, body) = client.response().await;
            assert!(!head.contains("connection: close"), "{head}");
            assert_eq!(body, b"hello");
        }
        // A client that did not wait is not told.
        client.send(format!("{EXPECTING}hello")).await;
        assert_eq!(client.response().await.1, b"hello");
    })
    .await;
}

#[tokio::test]
async fn files_never_ask_a_client_to_go_on() {
    on_stage(identity, async |stage| {
        let mut client = stage.connect().await;
        client.send(EXPECTING).await;
        let (head, _) = client.response().await;
        assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
        assert!(head.contains("connection: close"), "{head}");
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_files_do_not_want_is_read_past() {
    on_stage(identity, async |stage| {
        let mut client = stage.connect().await;
        client.send(&with_length("hello")[..58]).await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 405 "));
        client.send(&with_length("hello")[58..]).await;
        client.send(GET).await;
        assert_eq!(client.response().await.1, b"file");
    })
    .await;
}

#[tokio::test]
async fn a_body_over_the_limit_gets_413_and_closes_where_its_end_is_not_known() {
    let long = "x".repeat(usize::try_from(BYTES_MAX).unwrap() + 1);
    let chunked = format!("{CHUNKED}65\r\n{long}\r\n");
    on_stage(echoing, async |stage| {
        for (request, closes) in [(with_length(&long), false), (chunked, true)] {
            let mut client = stage.connect().await;
            client.send(&request).await;
            let (head, _) = client.response().await;
            assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
            assert_eq!(head.contains("connection: close"), closes, "{head}");
            if closes {
                assert!(client.is_closed().await);
            } else {
                client.send(with_length("next")).await;
                assert_eq!(client.response().await.1, b"next");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_announced_too_long_is_refused_before_it_is_sent() {
    on_stage(echoing, async |stage| {
        let mut client = stage.connect().await;
        client.send(EXPECTING.replace("Length: 5", "Length: 101")).await;
        let (head, _) = client.response().await;
        assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test]
async fn broken_coding_in_the_middle_of_a_body_gets_400() {
    on_stage(echoing, async |stage| {
        let mut client = stage.connect().await;
        client.send(CHUNKED.replace("Host", "Expect: 100-continue\r\nHost")).await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 100 "));
        client.send("3\r\nhello").await;
        let (head, _) = client.response().await;
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_ends_in_the_middle_of_its_body_ends_its_connection() {
    on_stage(echoing, async |stage| {
        let mut client = stage.connect().await;
        client.send(&with_length("hello")[..58]).await;
        client.close().await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 400 "));
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_takes_the_rest_of_a_body_that_is_wanted() {
    on_stage(echoing, async |stage| {
        let mut client = stage.connect().await;
        client.send(EXPECTING).await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 100 "));
        stage.worker.deadlines.drain();
        client.send("hello").await;
        let (head, body) = client.response().await;
        assert!(head.contains("connection: close"), "{head}");
        assert_eq!(body, b"hello");
        assert!(client.is_closed().await);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_a_body_that_nobody_wants() {
    on_stage(identity, async |stage| {
        let mut client = stage.connect().await;
        client.send(&with_length("hello")[..58]).await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 405 "));
        stage.worker.deadlines.drain();
        assert!(client.is_closed().await);
    })
    .await;
}
