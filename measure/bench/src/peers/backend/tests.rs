//! The backend as a terminator meets it.

use std::io::Write;
use std::net::TcpStream as Blocking;

use kettle_loadgen::client;
use kettle_loadgen::load::{BodyUse, End, Expect, Load, LoadModel, Reuse};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn backend(bytes: u64) -> Backend {
    Backend::start(process::cpus_allowed()[0], &[bytes]).unwrap()
}

fn connect(backend: &Backend) -> Blocking {
    let stream = Blocking::connect(backend.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn body_of(response: &[u8]) -> &[u8] {
    &response[head_end(response).unwrap()..]
}

#[test]
fn requests_are_answered_until_one_asks_for_the_end() {
    let backend = backend(1000);
    let mut stream = connect(&backend);
    let length = response(&[0; 1000]).len();
    for _ in 0..3 {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut response = vec![0; length];
        stream.read_exact(&mut response).unwrap();
        let hash = <[u8; 32]>::from(Sha256::digest(body_of(&response)));
        assert_eq!(Some(hash), backend.sha256(1000));
    }
    stream.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    assert_eq!(response.len(), length);
}

#[test]
fn requests_sent_at_once_are_all_answered() {
    let backend = backend(10);
    let mut stream = connect(&backend);
    stream
        .write_all(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n")
        .unwrap();
    let mut responses = Vec::new();
    stream.read_to_end(&mut responses).unwrap();
    assert_eq!(responses.len(), 3 * response(&[0; 10]).len());
}

#[test]
fn a_head_without_end_ends_the_connection() {
    let backend = backend(10);
    let mut stream = connect(&backend);
    // It may be gone before it has taken all.
    _ = stream.write_all(&[b'x'; 2 * HEAD_BYTES_MAX]);
    let mut response = Vec::new();
    _ = stream.read_to_end(&mut response);
    assert!(response.is_empty());
}

#[test]
fn nobody_listens_after_it_is_dropped() {
    let address = backend(10).address;
    assert!(Blocking::connect(address).is_err());
}

#[test]
fn a_path_says_how_many_bytes() {
    let responses = [10, 20].map(|bytes| (bytes as u64, response(&vec![0; bytes]))).into();
    let body = |head: &str| body_of(asked_for(head.as_bytes(), &responses).0).len();
    for target in ["/20", "/20?1", "/paced/20?1"] {
        assert_eq!(body(&format!("GET {target} HTTP/1.1\r\n\r\n")), 20);
    }
    for head in ["GET / HTTP/1.1\r\n\r\n", "GET /30 HTTP/1.1\r\n\r\n", "GET\r\n\r\n", "\r\n\r\n"] {
        assert_eq!(body(head), 10, "{head:?}");
    }
}

/// A load of messages on it, without TLS.
fn messages(backend: &Backend, bytes: u64) -> Load {
    Load {
        path: "/message".to_owned(),
        reuse: Reuse { requests_per_connection: None, connections_per_session: 1 },
        model: LoadModel::Closed { connections: 3 },
        end: End::Requests { count: 50, at_most: PATIENCE },
        expect: Expect { body_bytes: Some(bytes), body_sha256: None },
        body: BodyUse::Message,
        ..Load::once(backend.address, PATIENCE)
    }
}

#[test]
fn messages_of_a_websocket_come_back() {
    let backend = backend(10);
    for bytes in [0, 1, 100, 125] {
        let outcome = client::run(&messages(&backend, bytes), &mut |_| {}).unwrap();
        assert_eq!((outcome.succeeded, outcome.body_bytes), (50, 50 * bytes), "{bytes}");
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    }
    // A connection asks once.
    assert_eq!(backend.requests(), 4 * 3);
    assert!(client::run(&messages(&backend, 126), &mut |_| {}).is_err());
}
