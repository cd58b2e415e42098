//! The backend as a terminator meets it.

use std::io::Write;
use std::net::TcpStream as Blocking;

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
