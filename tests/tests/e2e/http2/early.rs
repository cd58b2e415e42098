//! Responses that begin before their requests have ended: both go on side by side, each stream for itself.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::thread;

use super::*;

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// A server with these limits and settings of its route, and those behind it.
fn start_with(limits: &str, route: &str) -> (Backend, Kettle) {
    let servers = Backend::listen();
    let setup = passing(over_http2(), route, &servers);
    let kettle = Kettle::start(setup.set("limits", limits).set("server", "dumpable = true"));
    (servers, kettle)
}

fn data(stream: u32, flags: u8, text: &[u8]) -> Vec<u8> {
    frame(DATA, flags, stream, text)
}

/// Begins a request, and its response, which passes back what has come.
fn begin(frames: &mut Frames, servers: &Backend, stream: u32, head: &[u8]) -> TcpStream {
    frames.send(&[posting(stream, "/app", &[]), data(stream, 0, b"first")].concat());
    let mut server = servers.accept_request();
    assert_eq!(read_until(&mut server, b"first\r\n"), b"5\r\nfirst\r\n");
    server.write_all(head).unwrap();
    assert_eq!(frames.next_of(HEADERS).stream, stream);
    expect(frames, stream, b"first");
    server
}

/// Reads so much of a stream that is the only one to have a body now.
fn expect(frames: &mut Frames, stream: u32, text: &[u8]) {
    let mut body = Vec::new();
    while body.len() < text.len() {
        let data = frames.next_of(DATA);
        assert_eq!(data.stream, stream);
        body.extend(data.payload);
    }
    assert_eq!(body, text);
}

#[test]
fn what_comes_back_reaches_the_client_before_it_has_sent_all() {
    let (servers, kettle) = start_with("", "");
    let mut kept = None;
    // The end may come with the last of the body or behind it.
    for (more, first, last, with_end) in [
        (&[("content-length", "10")][..], &b"first"[..], &b"other"[..], true),
        (&[("content-length", "10")], b"first", b"other", false),
        (&[], b"5\r\nfirst\r\n", b"5\r\nother\r\n0\r\n\r\n", true),
        (&[], b"5\r\nfirst\r\n", b"5\r\nother\r\n0\r\n\r\n", false),
    ] {
        let mut frames = Frames::connect(&kettle, &[]);
        frames.send(&[posting(1, "/app", more), data(1, 0, b"first")].concat());
        let server = servers.asked(&mut kept);
        drop(read_until(server, b"\r\n\r\n"));
        assert_eq!(read_exactly(server, first.len()), first);
        server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst").unwrap();
        assert_eq!(frames.next_of(HEADERS).flags & END_STREAM, 0);
        expect(&mut frames, 1, b"first");
        if with_end {
            frames.send(&data(1, END_STREAM, b"other"));
        } else {
            frames.send(&[data(1, 0, b"other"), data(1, END_STREAM, b"")].concat());
        }
        assert_eq!(read_exactly(server, last.len()), last);
        server.write_all(b"other").unwrap();
        assert_eq!(frames.body(1), b"other");
        let entry = kettle.entry("/app");
        assert_eq!((entry.number("body_bytes"), entry.is_complete()), (10, true));
    }
    // Nothing is half done: there was one connection for all.
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/app/next"));
    let mut server = kept.unwrap();
    drop(read_until(&mut server, b"\r\n\r\n"));
    frames.answered(&mut server, 1, "next");
}

#[test]
fn a_client_that_begins_its_body_unasked_waits_for_nobody() {
    // This server never says that it is to go on.
    let (servers, kettle) = start_with("", "timeout = \"10m\"");
    let mut frames = Frames::connect(&kettle, &[]);
    let mut kept = None;
    let expect = [("expect", "100-continue")];
    for (stream, body, sent) in [(1, &b"x"[..], "1\r\nx\r\n0\r\n\r\n"), (3, b"", "0\r\n\r\n")] {
        frames.send(&posting(stream, "/app", &expect));
        let server = servers.asked(&mut kept);
        drop(read_until(server, b"\r\n\r\n"));
        frames.send(&data(stream, END_STREAM, body));
        assert_eq!(read_exactly(server, sent.len()), sent.as_bytes());
        server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
        // After the wait it would be told to go on.
        assert_eq!(frames.next_of(HEADERS).payload[0], OK);
        assert_eq!(frames.body(stream), b"ok");
    }
    // One that is here as a whole is not waited for at all.
    frames.send(&[posting(5, "/app", &expect), data(5, END_STREAM, b"")].concat());
    let server = servers.asked(&mut kept);
    let head = String::from_utf8(read_until(server, b"\r\n\r\n")).unwrap();
    assert!(!head.contains("transfer-encoding"), "{head}");
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
    assert_eq!(frames.next_of(HEADERS).payload[0], OK);
    assert_eq!(frames.body(5), b"ok");
}

#[test]
fn small_messages_go_back_and_forth_on_two_streams_at_once() {
    let (servers, kettle, mut frames) = connected(over_http2());
    let te = [("te", "trailers"), ("content-type", "application/grpc")];
    let mut calls = [1, 3].map(|stream| {
        frames.send(&posting(stream, "/app", &te));
        let mut server = servers.accept_request();
        // Before there is anything of the body.
        server.write_all(CHUNKED).unwrap();
        assert_eq!(frames.next_of(HEADERS).stream, stream);
        (stream, server)
    });
    for number in 0..scaled(200, 50) {
        for (stream, server) in &mut calls {
            let message = format!("{stream} {number:03}");
            let chunk = format!("5\r\n{message}\r\n");
            frames.send(&data(*stream, 0, message.as_bytes()));
            assert_eq!(read_exactly(server, chunk.len()), chunk.as_bytes());
            server.write_all(chunk.as_bytes()).unwrap();
            expect(&mut frames, *stream, message.as_bytes());
        }
    }
    // With trailers and without.
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 3, &block(&[("x-end", "1")]));
    let ends = [(data(1, END_STREAM, b""), "0\r\n\r\n"), (trailers, "0\r\nx-end: 1\r\n\r\n")];
    for ((stream, server), (end, expected)) in calls.iter_mut().zip(ends) {
        frames.send(&end);
        assert_eq!(read_until(server, b"\r\n\r\n"), expected.as_bytes());
        server.write_all(b"0\r\ngrpc-status: 0\r\n\r\n").unwrap();
        let trailers = frames.next_of(HEADERS);
        assert_eq!((trailers.stream, trailers.flags), (*stream, END_HEADERS | END_STREAM));
        assert!(kettle.entry("/app").is_complete());
    }
}

#[test]
fn a_server_that_refuses_in_the_middle_ends_the_request() {
    let (servers, kettle) = start_with("body_discard = \"1 KiB\"", "");
    let mut frames = Frames::connect(&kettle, &[]);
    for (stream, status) in [(1, "400 Bad Request"), (3, "413 Content Too Large")] {
        frames.send(&[posting(stream, "/app", &[]), data(stream, 0, b"first")].concat());
        let mut server = servers.accept_request();
        assert_eq!(read_until(&mut server, b"first\r\n"), b"5\r\nfirst\r\n");
        server.shutdown(Shutdown::Read).unwrap();
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nno");
        server.write_all(response.as_bytes()).unwrap();
        assert_eq!(frames.body(stream), b"no");
        // The rest of it is of no interest (RFC 9113 §8.1).
        frames.send(&data(stream, 0, &[b'x'; 1_025]));
        frames.expect_reset(stream, NO_ERROR);
        assert!(kettle.entry("/app").is_complete());
    }
    frames.ping();
}

#[test]
fn a_response_that_ends_first_ends_the_request_at_its_server() {
    let (servers, kettle) = start_with("body_discard = \"1 KiB\"", "");
    let mut frames = Frames::connect(&kettle, &[]);
    for (stream, response) in [
        (1, "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nenough"),
        (3, "HTTP/1.1 200 OK\r\n\r\nenough"),
        (5, "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nenough"),
    ] {
        frames.send(&posting(stream, "/app", &[]));
        let mut server = servers.accept_request();
        server.write_all(response.as_bytes()).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(frames.body(stream), b"enough");
        assert_eq!(read_to_end(&mut server).0, b"", "its connection has half a request on it");
        match stream {
            5 => {
                frames.send(&data(stream, 0, &[b'x'; 1_025]));
                frames.expect_reset(stream, NO_ERROR);
            }
            _ => frames.send(&data(stream, END_STREAM, b"late")),
        }
    }
    frames.send(&get(7, "/app/next"));
    let mut server = servers.accept_request();
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext").unwrap();
    // Without another reset before it.
    loop {
        let next = frames.next().unwrap();
        assert_ne!(next.kind, RST_STREAM);
        if next.kind == DATA {
            assert_eq!((next.stream, &*next.payload), (7, &b"next"[..]));
            break;
        }
    }
}

#[test]
fn a_server_that_dies_in_the_middle_ends_its_stream_and_no_other() {
    let (servers, kettle, mut frames) = connected(over_http2());
    let first = [CHUNKED, b"5\r\nfirst\r\n"].concat();
    let one = begin(&mut frames, &servers, 1, &first);
    let mut other = begin(&mut frames, &servers, 3, &first);
    drop(one);
    frames.expect_reset(1, INTERNAL_ERROR);
    let entry = kettle.entry("/app");
    assert!(!entry.is_complete());
    assert_eq!(entry.text("upstream_failure"), "closed_early");
    frames.send(&data(3, END_STREAM, b"other"));
    assert_eq!(read_until(&mut other, b"\r\n\r\n"), b"5\r\nother\r\n0\r\n\r\n");
    other.write_all(b"5\r\nother\r\n0\r\n\r\n").unwrap();
    assert_eq!(frames.body(3), b"other");
}

#[test]
fn a_request_taken_back_beside_its_response_leaves_its_server() {
    let (servers, kettle, mut frames) = connected(over_http2());
    let first = [CHUNKED, b"5\r\nfirst\r\n"].concat();
    let mut server = begin(&mut frames, &servers, 1, &first);
    frames.send(&cancel(1));
    let (rest, _) = read_to_end(&mut server);
    assert_eq!(rest, b"", "no end is made up for the server");
    let entry = kettle.entry("/app");
    assert_eq!((entry.number("body_bytes"), entry.is_complete()), (5, false));
    // It is not kept.
    frames.send(&get(3, "/app/next"));
    let mut server = servers.accept_request();
    frames.answered(&mut server, 3, "next");
}

#[test]
fn a_request_that_breaks_off_beside_its_response_cuts_it() {
    let (servers, kettle) = start_with("body_discard = \"1 KiB\"", "request_body = \"1 KiB\"");
    let mut frames = Frames::connect(&kettle, &[]);
    let ten = [("content-length", "10")];
    // Longer than the route takes, longer and shorter than it said, and trailers that no message may have.
    let connection = block(&[("connection", "close")]);
    let space = block(&[("x-trailer", " 1")]);
    for (stream, more, rest, reset) in [
        (1, &[][..], data(1, 0, &[b'x'; 1_025]), INTERNAL_ERROR),
        (3, &ten, data(3, 0, b"0123456789x"), PROTOCOL_ERROR),
        (5, &ten, data(5, END_STREAM, b"012345678"), PROTOCOL_ERROR),
        (7, &[], frame(HEADERS, END_HEADERS | END_STREAM, 7, &connection), PROTOCOL_ERROR),
        (9, &[], frame(HEADERS, END_HEADERS | END_STREAM, 9, &space), INTERNAL_ERROR),
    ] {
        frames.send(&posting(stream, "/app", more));
        let mut server = servers.accept_request();
        server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").unwrap();
        expect(&mut frames, stream, b"half");
        frames.send(&rest);
        frames.expect_reset(stream, reset);
        let (part, _) = read_to_end(&mut server);
        assert!(part.len() < 10 || !more.is_empty(), "stream {stream}: {}", part.escape_ascii());
        assert!(!part.ends_with(b"0\r\n\r\n"), "no end is made up for the server");
        assert!(!kettle.entry("/app").is_complete());
    }
    frames.ping();
}

/// The windows of a client, as far as it was told.
struct Windows {
    initial: i64,
    streams: BTreeMap<u32, i64>,
    connection: i64,
}

impl Windows {
    /// Reads and acknowledges a new connection's settings: those of streams count once the server knows of that.
    fn acknowledged(frames: &mut Frames) -> Self {
        let settings = frames.next_of(SETTINGS).payload;
        frames.send(&frame(SETTINGS, ACK, 0, &[]));
        let mut settings = settings.as_chunks::<6>().0.iter();
        let window = settings.find(|it| it.starts_with(&INITIAL_WINDOW_SIZE.to_be_bytes()));
        let initial = code(&window.unwrap()[2..]).into();
        Self { initial, streams: BTreeMap::new(), connection: 65_535 }
    }

    fn note(&mut self, next: &Frame) {
        if next.kind == WINDOW_UPDATE {
            let window = match next.stream {
                0 => &mut self.connection,
                stream => self.streams.entry(stream).or_insert(self.initial),
            };
            *window += i64::from(code(&next.payload));
        }
    }

    /// Takes room for so many bytes, or as much as there is, in one frame.
    fn take(&mut self, stream: u32, wanted_bytes: usize) -> usize {
        let window = self.streams.entry(stream).or_insert(self.initial);
        let room = (*window).min(self.connection).clamp(0, 16_384);
        let bytes = wanted_bytes.min(usize::try_from(room).unwrap());
        let taken = i64::try_from(bytes).unwrap();
        (*window, self.connection) = (*window - taken, self.connection - taken);
        bytes
    }

    /// Sends as much as there is room for, once there is some; returns how much that was.
    fn send(&mut self, frames: &mut Frames, stream: u32, body: &[u8]) -> usize {
        loop {
            let bytes = self.take(stream, body.len());
            if bytes > 0 {
                let flags = if bytes == body.len() { END_STREAM } else { 0 };
                frames.send(&data(stream, flags, &body[..bytes]));
                return bytes;
            }
            let update = frames.next_of(WINDOW_UPDATE);
            self.note(&update);
        }
    }
}

#[test]
fn a_client_that_opens_its_window_only_when_it_has_sent_all_is_served() {
    let (servers, kettle) = start_with("write_timeout = \"30s\"", "");
    let bytes = scaled(16, 2) << 20;
    let length = bytes.to_string();
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut server = servers.accept_request();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
            let mut writing = server.try_clone().unwrap();
            let writing = threads.spawn(move || {
                writing.write_all(head.as_bytes()).unwrap();
                writing.write_all(&content(bytes)[..bytes - 1]).unwrap();
            });
            assert_same(&read_exactly(&mut server, bytes), &content(bytes), "the request");
            writing.join().unwrap();
            // Behind the end of a response nobody passes on the rest of its request.
            server.write_all(&content(bytes)[bytes - 1..]).unwrap();
        });
        let before_bytes = kettle.memory_bytes();
        let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 0)]);
        let mut windows = Windows::acknowledged(&mut frames);
        frames.send(&posting(1, "/app", &[("content-length", &length)]));
        let body = content(bytes);
        let mut sent = 0;
        while sent < bytes {
            sent += windows.send(&mut frames, 1, &body[sent..]);
        }
        kettle.assert_grown_below(before_bytes, 4 << 20);
        let wide = 0x7fff_ffff_u32;
        frames.send(&[update(0, wide - 65_535), update(1, wide)].concat());
        assert_same(&frames.body(1), &body, "the response");
    });
    assert!(kettle.entry("/app").is_complete());
}

#[test]
fn a_client_that_neither_sends_nor_takes_is_given_up() {
    // The server's own time ends nothing here.
    let (servers, kettle) = start_with("write_timeout = \"1s\"", "timeout = \"10m\"");
    // One has no window for what came, the other one keeps a server waiting that has nothing to say.
    for (window, text) in [(0, &b"5\r\nfirst\r\n"[..]), (65_535, b"")] {
        let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, window)]);
        frames.send(&[posting(1, "/app", &[]), data(1, 0, b"first")].concat());
        let mut server = servers.accept_request();
        server.write_all(&[CHUNKED, text].concat()).unwrap();
        assert_eq!(read_to_end(&mut server).0, b"5\r\nfirst\r\n");
        frames.expect_reset(1, CANCEL);
        assert!(!kettle.entry("/app").is_complete());
        frames.ping();
    }
    kettle.wait_for_status("/total/http2_refused/stalled", 2);
}

#[test]
fn a_server_that_takes_no_more_may_still_answer() {
    let (servers, _kettle, mut frames) = connected(over_http2());
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst";
    let mut server = begin(&mut frames, &servers, 1, head);
    server.shutdown(Shutdown::Read).unwrap();
    frames.send(&data(1, 0, b"0123456789"));
    server.write_all(b"other").unwrap();
    assert_eq!(frames.body(1), b"other");
    frames.send(&data(1, END_STREAM, b"late"));
    frames.ping();
}

#[test]
fn servers_that_read_nothing_hold_up_their_streams_and_little_memory() {
    let (servers, kettle) = start_with("request_timeout = \"60s\"", "");
    let mut frames = Frames::connect(&kettle, &[]);
    let mut windows = Windows::acknowledged(&mut frames);
    let streams = || (1..).step_by(2).take(16);
    let servers: Vec<_> = streams()
        .map(|stream| {
            frames.send(&posting(stream, "/app", &[]));
            servers.accept_request()
        })
        .collect();
    let before_bytes = kettle.memory_bytes();
    // First into the sockets, then into what the windows have room for.
    for stream in (0..24).flat_map(|_| streams()) {
        let mut burst = Vec::new();
        while let bytes @ 1.. = windows.take(stream, 16_384) {
            burst.extend(data(stream, 0, &vec![b'x'; bytes]));
        }
        // So that kettle finds all of it at once.
        kettle.signal(Signal::STOP);
        frames.send(&burst);
        kettle.signal(Signal::CONT);
        // By the second answer all streams have had their turn.
        for _ in 0..2 {
            frames.send(&frame(PING, 0, 0, b"pingpong"));
            while let next = frames.next().unwrap()
                && next.kind != PING
            {
                windows.note(&next);
            }
        }
    }
    let grown = kettle.memory_bytes().saturating_sub(before_bytes);
    assert!(windows.connection < 1 << 20, "nothing was held up");
    assert!(grown < 5 << 20, "{grown} bytes more");
    assert_eq!(servers.len(), 16);
}
