//! Clients that leave: each way of it, at each place that a request can wait at.
//!
//! These are the pairs of the table in docs/proxy.md.

use kettle_tests::http::get;
use kettle_tests::websocket::agreement;

use super::*;
use crate::http2::frames::{self, *};

/// A client's way to leave, or only to seem to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    CloseNotify,
    /// With more behind it, which says nothing.
    CloseNotifyAndBytes,
    CloseNotifyAndFin,
    CloseNotifyAndBytesAndFin,
    CloseNotifyAndReset,
    Fin,
    /// With requests behind the one that waits, more than is read of them.
    MuchAheadAndFin,
    /// In the middle of a record.
    HalfRecordAndFin,
    Reset,
    RstStream,
    Goaway,
}

use Leave::*;

const ALL: [Leave; 11] = [
    CloseNotify,
    CloseNotifyAndBytes,
    CloseNotifyAndFin,
    CloseNotifyAndBytesAndFin,
    CloseNotifyAndReset,
    Fin,
    MuchAheadAndFin,
    HalfRecordAndFin,
    Reset,
    RstStream,
    Goaway,
];

impl Leave {
    fn stays(self) -> bool {
        matches!(self, CloseNotify | CloseNotifyAndBytes | Goaway)
    }
}

/// A client of either version, with one request.
pub(super) enum Asking {
    Http1(Client),
    Http2(Frames),
}

impl Asking {
    fn connect(kettle: &Kettle, version: u8) -> Self {
        match version {
            1 => Self::Http1(Dialer::default().connect(kettle.address())),
            _ => Self::Http2(Frames::connect(kettle, &[])),
        }
    }

    pub(super) fn get(kettle: &Kettle, version: u8, target: &str) -> Self {
        let mut asking = Self::connect(kettle, version);
        match &mut asking {
            Self::Http1(client) => client.send(&get(target)).unwrap(),
            Self::Http2(frames) => frames.send(&frames::get(1, target)),
        }
        asking
    }

    pub(super) fn client(&mut self) -> &mut Client {
        match self {
            Self::Http1(client) => client,
            Self::Http2(frames) => &mut frames.client,
        }
    }

    fn body(&mut self) -> Vec<u8> {
        match self {
            Self::Http1(client) => client.response().body,
            Self::Http2(frames) => frames.body(1),
        }
    }

    /// Leaves. The part that is returned keeps its socket open.
    fn leave(mut self, how: Leave) -> Option<Self> {
        if !matches!(how, Fin | MuchAheadAndFin | HalfRecordAndFin | Reset | RstStream | Goaway) {
            self.client().say_goodbye();
        }
        match (how, &mut self) {
            (CloseNotifyAndBytes | CloseNotifyAndBytesAndFin, asking) => {
                // More than a socket holds that nobody reads.
                asking.client().wire.write_all(&vec![b'x'; 1_000_000]).unwrap();
            }
            (MuchAheadAndFin, Self::Http1(client)) => {
                client.send(&get("/app/behind").repeat(1_000)).unwrap();
            }
            (HalfRecordAndFin, asking) => {
                asking.client().wire.write_all(&[23, 3, 3, 1, 0, b'x']).unwrap();
            }
            (RstStream, Self::Http2(frames)) => {
                frames.send(&frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes()));
            }
            (Goaway, Self::Http2(frames)) => frames.send(&frame(GOAWAY, 0, 0, &[0; 8])),
            _ => {}
        }
        match how {
            Reset | CloseNotifyAndReset => {
                match self {
                    Self::Http1(client) => client.wire.reset(),
                    Self::Http2(frames) => frames.client.wire.reset(),
                }
                return None;
            }
            CloseNotifyAndFin
            | CloseNotifyAndBytesAndFin
            | Fin
            | MuchAheadAndFin
            | HalfRecordAndFin => {
                self.client().wire.socket.shutdown(Shutdown::Write).unwrap();
            }
            CloseNotify | CloseNotifyAndBytes | RstStream | Goaway => {}
        }
        Some(self)
    }
}

/// Every way of leaving over either version.
fn ways() -> impl Iterator<Item = (u8, Leave)> {
    let by_http1 = ALL.into_iter().filter(|how| !matches!(how, RstStream | Goaway));
    let by_http2 = ALL.into_iter().filter(|how| *how != MuchAheadAndFin);
    by_http1.map(|how| (1, how)).chain(by_http2.map(|how| (2, how)))
}

fn start(setup: Setup) -> Kettle {
    Kettle::start(setup.listener("http2 = true"))
}

/// The line of a client that has gone.
fn assert_gone(kettle: &Kettle, target: &str, what: &str) {
    let entry = kettle.entry(target);
    let words = (entry.number("status"), entry.text("upstream_failure"));
    assert_eq!(words, (499, "client_gone"), "{what}");
}

/// A response behind which its connection serves no other request.
fn last(body: &str) -> String {
    ok(body).replace("200 OK", "200 OK\r\nConnection: close")
}

#[test]
fn in_a_queue() {
    let backend = Backend::listen();
    let setup = before("", "queue_timeout = \"5m\"", &[backend.address()]);
    let kettle = start(setup.more("connections = 1\n"));
    for (version, how) in ways() {
        let what = format!("HTTP/{version}, {how:?}");
        let mut first = Asking::get(&kettle, 1, "/app/first");
        let mut server = backend.accept_request();
        let waiting = Asking::get(&kettle, version, "/app/second");
        kettle.wait_for_status("/backends/0/waiting", 1);
        let waiting = waiting.leave(how);
        if !how.stays() {
            assert_gone(&kettle, "/app/second", &what);
            kettle.wait_for_status("/backends/0/waiting", 0);
        }
        server.write_all(last("first").as_bytes()).unwrap();
        assert_eq!(first.body(), b"first", "{what}");
        if how.stays() {
            answer(&mut backend.accept(), &last("second"));
            assert_eq!(waiting.unwrap().body(), b"second", "{what}");
            assert_eq!(kettle.entry("/app/second").number("status"), 200, "{what}");
        }
    }
}

#[test]
fn while_a_connection_is_made() {
    let backend = Backend::listen();
    let tls = "[backend.tls]\nname = \"localhost\"\nroots = \"authority.pem\"\n";
    let kettle = start(before("", "", &[backend.address()]).more(tls));
    for (version, how) in ways() {
        let what = format!("HTTP/{version}, {how:?}");
        let asking = Asking::get(&kettle, version, "/app");
        let mut server = backend.accept();
        // The server has the ClientHello, and says nothing.
        assert_eq!(server.peek(&mut [0]).unwrap(), 1);
        let asking = asking.leave(how);
        if how.stays() {
            let mut server = in_tls(&rustls::version::TLS13, server);
            answer(&mut server, &last("late"));
            assert_eq!(asking.unwrap().body(), b"late", "{what}");
            assert_eq!(kettle.entry("/app").number("status"), 200, "{what}");
        } else {
            assert_gone(&kettle, "/app", &what);
            read_to_end(&mut server).1.unwrap();
        }
    }
}

#[test]
fn before_the_head() {
    let backend = Backend::listen();
    let kettle = start(before("", "", &[backend.address()]));
    for (version, how) in ways() {
        let what = format!("HTTP/{version}, {how:?}");
        let asking = Asking::get(&kettle, version, "/app");
        let mut server = backend.accept_request();
        let asking = asking.leave(how);
        if how.stays() {
            server.write_all(last("late").as_bytes()).unwrap();
            assert_eq!(asking.unwrap().body(), b"late", "{what}");
            assert_eq!(kettle.entry("/app").number("status"), 200, "{what}");
        } else {
            assert_gone(&kettle, "/app", &what);
            assert_eq!(read_to_end(&mut server).0, b"", "{what}");
        }
    }
}

#[test]
fn in_the_body() {
    let backend = Backend::listen();
    let kettle = start(before("", "", &[backend.address()]));
    for (version, how) in ways() {
        let what = format!("HTTP/{version}, {how:?}");
        let mut asking = Asking::get(&kettle, version, "/app");
        let mut server = backend.accept();
        answer(&mut server, &last("half, rest").replace(", rest", ""));
        match &mut asking {
            Asking::Http1(client) => assert_eq!(client.response_head().status, 200),
            Asking::Http2(frames) => drop(frames.next_of(HEADERS)),
        }
        let asking = asking.leave(how);
        if how.stays() {
            server.write_all(b", rest").unwrap();
            let body = match asking.unwrap() {
                Asking::Http1(mut client) => client.receive_exactly(10),
                Asking::Http2(mut frames) => frames.body(1),
            };
            assert_eq!(body, b"half, rest", "{what}");
        } else {
            assert_eq!(read_to_end(&mut server).0, b"", "{what}");
        }
        assert_eq!(kettle.entry("/app").is_complete(), how.stays(), "{what}");
    }
}

/// Half a body says nothing to anybody, whoever ended it.
#[test]
fn in_the_middle_of_an_upload() {
    let backend = Backend::listen();
    let kettle = start(before("", "", &[backend.address()]));
    for (version, how) in ways() {
        let what = format!("HTTP/{version}, {how:?}");
        let mut asking = Asking::connect(&kettle, version);
        match &mut asking {
            Asking::Http1(client) => {
                let head = request("POST", "/app", "Transfer-Encoding: chunked\r\n");
                client.send(&[&head[..], b"4\r\nhalf\r\n"].concat()).unwrap();
            }
            Asking::Http2(frames) => {
                frames.send(&[post(1, "/app"), frame(DATA, 0, 1, b"half")].concat());
            }
        }
        let mut server = backend.accept();
        read_until(&mut server, b"half\r\n");
        let asking = asking.leave(how);
        if how == Goaway {
            let Some(Asking::Http2(mut frames)) = asking else { panic!() };
            frames.send(&frame(DATA, END_STREAM, 1, b"rest"));
            read_until(&mut server, b"0\r\n\r\n");
            server.write_all(last("thanks").as_bytes()).unwrap();
            assert_eq!(frames.body(1), b"thanks", "{what}");
        } else {
            // The bytes behind it were no piece of a body.
            assert_eq!(read_to_end(&mut server).0, b"", "{what}");
        }
    }
}

/// The server takes no more of an upload that is here already, before its response begins or beside it.
#[test]
fn while_an_upload_is_not_taken() {
    let backend = Backend::listen();
    let kettle = start(before("", "", &[backend.address()]));
    for (has_begun, how) in [
        (false, CloseNotify),
        (false, CloseNotifyAndFin),
        (false, Fin),
        (false, Reset),
        (true, CloseNotifyAndFin),
        (true, Fin),
        (true, Reset),
    ] {
        let mut client = kettle.ask(&request("POST", "/app", "Content-Length: 100000000\r\n"));
        let mut server = backend.accept_request();
        if has_begun {
            server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").unwrap();
            assert_eq!(client.response_head().status, 200);
        }
        let mut sent_bytes = 0;
        while client.wire.is_soon_read() {
            client.send(&vec![b'x'; PIECE_BYTES]).unwrap();
            sent_bytes += PIECE_BYTES;
        }
        assert!(sent_bytes < 50_000_000, "{sent_bytes}");
        let asking = Asking::Http1(client).leave(how);
        if how.stays() {
            // It was not all, and so there is an end of it.
            std::io::copy(&mut server, &mut std::io::sink()).unwrap();
            let Some(Asking::Http1(mut client)) = asking else { panic!() };
            assert_eq!(client.response().status, 400);
            assert_eq!(kettle.entry("/app").text("upstream_failure"), "request_body");
        } else if has_begun {
            let entry = kettle.entry("/app");
            assert_eq!(
                (entry.is_complete(), entry.text("upstream_failure")),
                (false, ""),
                "{how:?}"
            );
        } else {
            assert_gone(&kettle, "/app", &format!("{how:?}"));
        }
    }
}

#[test]
fn files_are_answered_all_the_same() {
    let kettle = start(Setup::default().sizes(&[100_000]));
    for version in [1, 2] {
        for how in [CloseNotify, CloseNotifyAndFin] {
            let asking = Asking::get(&kettle, version, "/100000").leave(how);
            // Over HTTP/2 no window opens any more.
            if version == 1 {
                assert_eq!(asking.unwrap().body().len(), 100_000, "HTTP/{version}, {how:?}");
            }
        }
    }
    // By HTTP/1.1, where nobody looks.
    let asking = Asking::get(&kettle, 1, "/100000").leave(Fin);
    assert_eq!(asking.unwrap().body().len(), 100_000);
}

#[test]
fn while_others_ask_for_the_same() {
    let backend = Backend::listen();
    let route = "cache = { store = \"main\" }";
    let store = "[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let metrics = unused_address();
    let setup = before(route, "", &[backend.address()]).more(store).file("kept/.keep", "");
    let kettle = start(setup.metrics(metrics));
    for (number, (version, how)) in ways().enumerate() {
        let what = format!("HTTP/{version}, {how:?}");
        let target = format!("/app/{number}");
        let led = Asking::get(&kettle, version, &target);
        let mut server = backend.accept_request();
        let mut stays = Asking::get(&kettle, 1, &target);
        let waits = || scrape(metrics).contains("kettle_cache_waiters{store=\"main\"} 1\n");
        wait_until("the second waits", waits);
        let led = led.leave(how);
        if !how.stays() {
            assert_gone(&kettle, &target, &what);
        }
        let response =
            last("for all").replace("\r\n\r\n", "\r\nCache-Control: max-age=100\r\n\r\n");
        server.write_all(response.as_bytes()).unwrap();
        assert_eq!(stays.body(), b"for all", "{what}");
        if how.stays() {
            assert_eq!(led.unwrap().body(), b"for all", "{what}");
        }
    }
}

/// Tunnels have two ends of their own: what a client ends of its side is passed on, and the other side goes on.
#[test]
fn in_a_tunnel() {
    let backend = Backend::listen();
    let kettle = start(before("websocket = true", "", &[backend.address()]));
    for (version, how, server_sees, goes_on, end) in [
        (1, CloseNotify, Ended, true, "client_closed"),
        (1, CloseNotifyAndFin, Ended, true, "client_closed"),
        (1, Fin, Ended, true, "client_cut"),
        (1, HalfRecordAndFin, Ended, true, "client_cut"),
        (1, Reset, Ended, false, "client_reset"),
        (2, Goaway, Open, true, "backend_closed"),
        (2, RstStream, WasReset, false, "client_reset"),
        (2, CloseNotify, WasReset, false, "client_reset"),
        (2, CloseNotifyAndFin, WasReset, false, "client_reset"),
        (2, Fin, WasReset, false, "client_reset"),
        (2, Reset, WasReset, false, "client_reset"),
    ] {
        let what = format!("HTTP/{version}, {how:?}");
        let (asking, mut server) = tunnel(&kettle, &backend, version);
        let mut asking = asking.leave(how);
        if server_sees != Open {
            let outcome = read_to_end(&mut server).1;
            assert_eq!(outcome.is_err(), server_sees == WasReset, "{what}");
        }
        if goes_on {
            server.write_all(b"more").unwrap();
            let more = match asking.as_mut().unwrap() {
                Asking::Http1(client) => client.receive_exactly(4),
                Asking::Http2(frames) => frames.next_of(DATA).payload,
            };
            assert_eq!(more, b"more", "{what}");
        }
        drop(server);
        if let (Goaway, Some(Asking::Http2(frames))) = (how, &mut asking) {
            assert_eq!(frames.next_of(DATA).flags, END_STREAM);
            frames.send(&frame(DATA, END_STREAM, 1, b""));
        }
        assert_eq!(kettle.tunnel().text("end"), end, "{what}");
    }
}

/// Its client has all, and may keep its connection for what it asks next.
#[test]
fn a_stop_does_not_wait_for_a_tunnel_whose_server_has_ended() {
    for version in [1, 2] {
        let backend = Backend::listen();
        let setup = before("websocket = true", "", &[backend.address()]);
        let mut kettle = start(setup.set("server", "drain_timeout = \"5m\""));
        let (mut asking, mut server) = tunnel(&kettle, &backend, version);
        server.write_all(b"all").unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        match &mut asking {
            Asking::Http1(client) => assert_eq!(client.end(), End::Orderly),
            Asking::Http2(frames) => while frames.next_of(DATA).flags != END_STREAM {},
        }
        // The server hears the client as before.
        match &mut asking {
            Asking::Http1(client) => client.send(b"more").unwrap(),
            Asking::Http2(frames) => frames.send(&frame(DATA, 0, 1, b"more")),
        }
        assert_eq!(read_exactly(&mut server, 4), b"more");
        kettle.signal(Signal::TERM);
        assert!(kettle.ended().status.success(), "HTTP/{version}");
    }
}

/// The state of a tunnel that its server sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Open,
    Ended,
    WasReset,
}

use Seen::*;

/// A tunnel that stands.
pub(super) fn tunnel(kettle: &Kettle, backend: &Backend, version: u8) -> (Asking, TcpStream) {
    upgraded(Asking::connect(kettle, version), backend)
}

pub(super) fn upgraded(mut asking: Asking, backend: &Backend) -> (Asking, TcpStream) {
    match &mut asking {
        Asking::Http1(client) => {
            let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: x\r\n";
            client.send(&request("GET", "/app", fields)).unwrap();
        }
        Asking::Http2(frames) => {
            let fields = fields("CONNECT", "/app", &[(":protocol", "websocket")]);
            frames.send(&frame(HEADERS, END_HEADERS, 1, &fields));
        }
    }
    let mut server = backend.accept();
    let head = read_head(&mut server);
    server.write_all(agreement(&head).as_bytes()).unwrap();
    match &mut asking {
        Asking::Http1(client) => assert_eq!(client.response_head().status, 101),
        Asking::Http2(frames) => drop(frames.next_of(HEADERS)),
    }
    (asking, server)
}

const PIECE_BYTES: usize = 65_536;
