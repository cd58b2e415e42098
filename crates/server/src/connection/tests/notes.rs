//! Servers that lose what is noted for the log: nothing but the log may differ.
//!
//! They are lost where an edge gets an answer. That is deep enough, since in front of it they are only written: handlers are given
//! a `&mut LogNotes`, and decide nothing by it. Three places look at what was noted: `hold` in `respond::walk` boxes no empty notes,
//! `proxy` names the server in a message, and `lookup` in `proxy_cache` keeps the trace there was if a fetch brings none.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener as Listening, TcpStream as Accepted};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kettle_config::{RateLimit, RouteCache};
use kettle_exchange::response::Answer;
use rustix::net::{Shutdown, shutdown};
use tokio::sync::mpsc;

use super::*;

/// The server's reaction to a request that it leaves without an answer.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Asked,
    Left,
}

/// A server that numbers its answers to GET, but gives none to `/never`, and begins to answer a POST before it has the body.
fn backend() -> (SocketAddr, mpsc::Receiver<Seen>) {
    let backend = Listening::bind("127.0.0.1:0").unwrap();
    let address = backend.local_addr().unwrap();
    let (seen, sees) = mpsc::channel(8);
    thread::spawn(move || {
        let answered = Arc::new(AtomicU64::new(0));
        for socket in backend.incoming() {
            let seen = seen.clone();
            let answered = Arc::clone(&answered);
            thread::spawn(move || answer(socket.unwrap(), &seen, &answered));
        }
    });
    (address, sees)
}

fn answer(mut socket: Accepted, seen: &mpsc::Sender<Seen>, answered: &AtomicU64) {
    let mut asked = Vec::new();
    loop {
        let head = read_to(&mut socket, &mut asked, b"\r\n\r\n");
        let Some(head) = head else { return };
        if head.starts_with(b"GET /never ") {
            seen.blocking_send(Seen::Asked).unwrap();
            while matches!(socket.read(&mut [0; 64]), Ok(1..)) {}
            let _ = seen.blocking_send(Seen::Left);
            return;
        }
        if head.starts_with(b"POST ") {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n";
            socket.write_all(head).unwrap();
            read_to(&mut socket, &mut asked, b"written").unwrap();
            socket.write_all(b"0\r\n\r\n").unwrap();
            continue;
        }
        let number = answered.fetch_add(1, Ordering::Relaxed).to_string();
        let fields = format!("Cache-Control: max-age=60\r\nContent-Length: {}\r\n", number.len());
        write!(socket, "HTTP/1.1 200 OK\r\n{fields}\r\n{number}").unwrap();
    }
}

/// Returns the bytes up to these, with them; `None` if the other side ends before.
pub(super) fn read_to(
    socket: &mut Accepted,
    received: &mut Vec<u8>,
    end: &[u8],
) -> Option<Vec<u8>> {
    loop {
        if let Some(at) = received.windows(end.len()).position(|bytes| bytes == end) {
            return Some(received.drain(..at + end.len()).collect());
        }
        let mut piece = [0; 1_024];
        let bytes = socket.read(&mut piece).ok().filter(|bytes| *bytes > 0)?;
        received.extend_from_slice(&piece[..bytes]);
    }
}

/// A client of either protocol, with one request at a time.
struct Asking {
    client: Client,
    stream: Option<u32>,
}

impl Asking {
    async fn connect(stage: &Rc<Stage>, protocol: &[u8]) -> Self {
        let mut client = stage.connect_for(protocol).await;
        let is_http2 = protocol == b"h2";
        if is_http2 {
            client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        }
        Self { client, stream: is_http2.then_some(u32::MAX) }
    }

    /// Sends the head of a request; a POST has a body of twelve bytes to come.
    async fn ask(&mut self, method: &str, path: &str) {
        let Some(stream) = &mut self.stream else {
            let length = if method == "POST" { "Content-Length: 12\r\n" } else { "" };
            let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n");
            return self.client.send(head).await;
        };
        *stream = stream.wrapping_add(2);
        // The method, https, the path, localhost (RFC 7541).
        let path = [&[4, u8::try_from(path.len()).unwrap()], path.as_bytes()].concat();
        let fields = [&[0x82, 0x87], &path[..], b"\x01\x09localhost"].concat();
        let frame = match method {
            "POST" => {
                let fields = [&[0x83], &fields[1..], b"\x0f\x0d\x0212"].concat();
                frame(1, 4, *stream, &fields)
            }
            _ => frame(1, 5, *stream, &fields),
        };
        self.client.send(frame).await;
    }

    /// Sends a part of a body.
    async fn send(&mut self, part: &str, is_end: bool) {
        let bytes = match self.stream {
            Some(stream) => frame(0, u8::from(is_end), stream, part.as_bytes()),
            None => part.as_bytes().to_vec(),
        };
        self.client.send(bytes).await;
    }

    /// Waits until the response has so much of its body, or its end, and returns that it is a 200, and what there is of the body.
    async fn response(&mut self, body_bytes: usize) -> (bool, String) {
        let Some(stream) = self.stream else {
            let (head, mut body) = self.client.response().await;
            if head.contains("\r\ntransfer-encoding: chunked\r\n") {
                let expected = if body_bytes == usize::MAX { &b"0\r\n\r\n"[..] } else { b"begun" };
                while !body.ends_with(expected) {
                    body.extend(self.client.exactly(1).await);
                }
            }
            return (head.starts_with("HTTP/1.1 200 "), String::from_utf8(body).unwrap());
        };
        let mut is_good = false;
        let mut body = Vec::new();
        loop {
            let head = self.client.exactly(9).await;
            let payload = self.client.exactly(usize::from(head[1]) * 256 + usize::from(head[2]));
            let payload = payload.await;
            if head[5..] != stream.to_be_bytes() {
                continue;
            }
            match head[3] {
                1 => is_good = payload.first() == Some(&0x88),
                0 => body.extend(payload),
                kind => assert_eq!(kind, 8, "nothing ends a stream"),
            }
            if head[4] & 1 == 1 && head[3] < 2 || body.len() >= body_bytes {
                return (is_good, String::from_utf8(body).unwrap());
            }
        }
    }

    /// A whole exchange.
    async fn get(&mut self, path: &str) -> (bool, String) {
        self.ask("GET", path).await;
        self.response(usize::MAX).await
    }

    /// The client's end, and the server's behind it.
    async fn leave(mut self) {
        shutdown(self.client.stream.socket(), Shutdown::Write).unwrap();
        while self.client.fill().await {
            let bytes = self.client.stream.received().bytes().len();
            self.client.stream.consume(bytes);
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl WorkerState {
    /// The answer as its edge gets it: without notes for the log if these are lost.
    pub(in crate::connection) fn noted(&self, mut answer: Answer) -> Answer {
        if self.forgets_notes.get() {
            match &mut answer {
                Answer::Response(response) | Answer::Tunnel(response, _) => response.notes = None,
                Answer::Nothing(nothing) => nothing.notes = None,
            }
        }
        answer
    }
}

const PROTOCOLS: [&[u8]; 2] = [b"http/1.1", b"h2"];

#[tokio::test]
async fn a_client_that_leaves_ends_its_connection_and_frees_its_place_whatever_the_log_knows() {
    for (protocol, forgets) in PROTOCOLS.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let (server, mut seen) = backend();
        let folder = tempfile::tempdir().unwrap();
        let limit = RateLimit { concurrent: Some(1), requests: 1_000, ..RateLimit::default() };
        let one_at_a_time = |route: &mut Route| route.rate_limit = Some(limit);
        let change = |_| routed(config(&folder), server, &[], one_at_a_time);
        on_stage(change, async |stage| {
            stage.worker.forgets_notes.set(forgets);
            let mut leaves = Asking::connect(&stage, protocol).await;
            assert_eq!(leaves.get("/a").await, (true, "0".to_owned()));
            assert_eq!(leaves.get("/a").await, (true, "1".to_owned()), "its place is free again");
            leaves.ask("GET", "/never").await;
            assert_eq!(seen.recv().await, Some(Seen::Asked));
            let mut stays = Asking::connect(&stage, protocol).await;
            assert!(!stays.get("/a").await.0, "another has the place");
            leaves.leave().await;
            assert_eq!(seen.recv().await, Some(Seen::Left));
            assert_eq!(stays.get("/a").await, (true, "2".to_owned()));
        })
        .await;
    }
}

#[tokio::test]
async fn a_write_invalidates_at_its_beginning_and_its_end_whatever_the_log_knows() {
    for (protocol, forgets) in PROTOCOLS.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let (server, _seen) = backend();
        let folder = tempfile::tempdir().unwrap();
        let store = tempfile::tempdir().unwrap();
        let name = Located::not_written("main".to_owned());
        let directory = Located::not_written(store.path().to_owned());
        let caches = [Cache { name: name.clone(), directory, ..Cache::default() }];
        let is_kept = |route: &mut Route| {
            route.cache = Some(RouteCache { store: name, ..Default::default() })
        };
        let change = |_| routed(config(&folder), server, &caches, is_kept);
        on_stage(change, async |stage| {
            stage.worker.forgets_notes.set(forgets);
            let mut reads = Asking::connect(&stage, protocol).await;
            for _ in 0..2 {
                assert_eq!(reads.get("/a").await, (true, "0".to_owned()));
            }
            let mut writes = Asking::connect(&stage, protocol).await;
            writes.ask("POST", "/a").await;
            writes.send("this ", false).await;
            let (is_good, body) = writes.response("begun".len()).await;
            assert!(is_good && body.contains("begun"), "{body}");
            for _ in 0..2 {
                assert_eq!(reads.get("/a").await, (true, "1".to_owned()), "at its beginning");
            }
            writes.send("written", true).await;
            // A thread of the store's does it.
            while reads.get("/a").await.1 == "1" {}
            assert_eq!(reads.get("/a").await, (true, "2".to_owned()), "at its end");
        })
        .await;
    }
}
