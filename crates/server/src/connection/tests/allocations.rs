//! The number of times a proxied request asks for memory, so that it cannot creep up.

use std::io::{Read as _, Write as _};
use std::net::TcpListener as Backend;
use std::thread;

use kettle_config::{BackendProtocol, ForwardAuth, Respond};
use kettle_kernel::allocations::allocations;

use super::*;

/// The counts when these were last lowered: heads and where their fields stand, the request and the response as they are passed on, futures
/// that are boxed because they are large, and over HTTP/2 a stream. With 20, they were 8 % of what a small response costs in user space; a
/// change that needs one more says here what for.
const HTTP1_ALLOCATIONS_MAX: u64 = 9;
const HTTP2_ALLOCATIONS_MAX: u64 = 12;
/// Of a program that is asked by FastCGI over a connection that is kept.
const PROGRAM_ALLOCATIONS_MAX: u64 = 13;
/// Of a service that is asked whether a request may go on, and the fixed answer behind it.
const CHECK_ALLOCATIONS_MAX: u64 = 14;

const WARM: u32 = 64;
const COUNTED: u32 = 64;

/// A server of HTTP that gives 1 KiB to each request.
fn backend() -> SocketAddr {
    let body = "x".repeat(1_024);
    let response = format!(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: 1024\r\n\
         Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n\
         ETag: \"1-400\"\r\nAccept-Ranges: bytes\r\n\r\n{body}"
    );
    answering(b"\r\n\r\n", response.into_bytes())
}

/// A server that takes one connection and gives this response to each request, which ends so.
fn answering(end: &'static [u8], response: Vec<u8>) -> SocketAddr {
    let backend = Backend::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap();
    thread::spawn(move || {
        let (mut socket, _) = backend.accept().unwrap();
        let mut asked = Vec::new();
        let mut buffer = [0; 4_096];
        while let Ok(bytes @ 1..) = socket.read(&mut buffer) {
            asked.extend_from_slice(&buffer[..bytes]);
            if asked.ends_with(end) {
                asked.clear();
                socket.write_all(&response).unwrap();
            }
        }
    });
    address
}

/// Counts what the server in this thread allocates while its client does something, without what the client does.
async fn counted(exchange: impl Future<Output = ()>) -> u64 {
    let before = allocations();
    let mut of_client = 0;
    let mut exchange = pin!(exchange);
    poll_fn(|context| {
        let begun = allocations();
        let polled = exchange.as_mut().poll(context);
        of_client += allocations() - begun;
        polled
    })
    .await;
    allocations() - before - of_client
}

#[tokio::test]
async fn a_proxied_request_over_http1_allocates_no_more_than_it_did() {
    let server = backend();
    let folder = tempfile::tempdir().unwrap();
    let change = |_| routed(config(&folder), server, &[], |_| {});
    takes_at_most(HTTP1_ALLOCATIONS_MAX, change).await;
}

#[tokio::test]
async fn a_request_to_a_program_allocates_no_more_than_it_did() {
    let output = ["Content-Type: text/plain\r\nContent-Length: 1024\r\n\r\n", &"x".repeat(1_024)];
    let output = output.concat();
    let [high, low] = (output.len() as u16).to_be_bytes();
    let before = [1, 6, 0, 1, high, low, 0, 0];
    let end = [1, 3, 0, 1, 0, 8, 0, 0];
    let response = [&before[..], output.as_bytes(), &end, &[0; 8]].concat();
    let server = answering(&[1, 5, 0, 1, 0, 0, 0, 0], response);
    let folder = tempfile::tempdir().unwrap();
    let protocol = BackendProtocol::FastCgi;
    let keep_alive = Some(1);
    let settings = kettle_config::Backend { protocol, keep_alive, ..Default::default() };
    let change = |_| routed_to(config(&folder), server, settings, &[], |_| {});
    takes_at_most(PROGRAM_ALLOCATIONS_MAX, change).await;
}

#[tokio::test]
async fn a_question_whether_a_request_may_go_on_allocates_no_more_than_it_did() {
    let answer =
        b"HTTP/1.1 204 No Content\r\nServer: nginx\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
    let server = answering(b"\r\n\r\n", answer.to_vec());
    let folder = tempfile::tempdir().unwrap();
    let change = |_| {
        routed(config(&folder), server, &[], |route| {
            let backend = route.backend.take().unwrap();
            route.forward_auth = Some(ForwardAuth {
                backend,
                path: Located::not_written("/check".to_owned()),
                ..Default::default()
            });
            let body = "x".repeat(1_024);
            route.respond = Some(Respond { status: 200, body: Some(body), ..Default::default() });
        })
    };
    takes_at_most(CHECK_ALLOCATIONS_MAX, change).await;
}

/// Asks again and again for 1 KiB, and counts.
async fn takes_at_most(allocations_max: u64, change: impl FnOnce(Router) -> Router) {
    on_stage(change, async |stage| {
        let mut client = stage.connect().await;
        let mut exchange = async |times| {
            for _ in 0..times {
                client.send(GET).await;
                let (head, body) = client.response().await;
                assert!(head.starts_with("HTTP/1.1 200 ") && body.len() == 1_024, "{head}");
            }
        };
        exchange(WARM).await;
        let each = counted(exchange(COUNTED)).await / u64::from(COUNTED);
        assert!(each <= allocations_max, "{each}, and not {allocations_max}");
    })
    .await;
}

#[tokio::test]
async fn a_proxied_request_over_http2_allocates_no_more_than_it_did() {
    let server = backend();
    let folder = tempfile::tempdir().unwrap();
    let change = |_| routed(config(&folder), server, &[], |_| {});
    on_stage(change, async |stage| {
        let mut client = stage.connect_for(b"h2").await;
        client.send(PREFACE).await;
        let mut stream = 1_u32;
        let mut exchange = async |times| {
            for _ in 0..times {
                client.send([HEAD_OF_HEADERS, &stream.to_be_bytes(), FIELDS].concat()).await;
                assert_eq!(client.stream_body_bytes(stream).await, 1_024);
                stream += 2;
            }
        };
        exchange(WARM).await;
        let each = counted(exchange(COUNTED)).await / u64::from(COUNTED);
        assert!(each <= HTTP2_ALLOCATIONS_MAX, "{each}, and not {HTTP2_ALLOCATIONS_MAX}");
    })
    .await;
}

impl Client {
    /// Reads frames to the end of a stream; the length of its body.
    async fn stream_body_bytes(&mut self, stream: u32) -> usize {
        let mut body_bytes = 0;
        loop {
            let head = self.exactly(9).await;
            let length = usize::from(head[1]) * 256 + usize::from(head[2]);
            self.exactly(length).await;
            if head[5..] == stream.to_be_bytes() {
                body_bytes += if head[3] == 0 { length } else { 0 };
                if head[4] & 1 == 1 {
                    return body_bytes;
                }
            }
        }
    }

    pub(super) async fn exactly(&mut self, bytes: usize) -> Vec<u8> {
        while self.stream.received().bytes().len() < bytes {
            assert!(self.fill().await, "the connection ended in the middle of a frame");
        }
        self.take(bytes)
    }
}

const GET: &str =
    "GET /a HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n";

/// The beginning of a client, empty SETTINGS, and a window for all responses (RFC 9113 §3.4, §6.9).
const PREFACE: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x04\x08\0\0\0\0\0\0\x10\0\0";
/// The same request: HEADERS that end their stream and are whole, up to the number of the stream,
const HEAD_OF_HEADERS: &[u8] = b"\0\0\x24\x01\x05";
/// and GET, https, `/a`, localhost, and two fields that no table learns (RFC 7541).
const FIELDS: &[u8] = b"\x82\x87\x04\x02/a\x01\x09localhost\x0f\x2b\x0acurl/8.5.0\x0f\x04\x03*/*";
