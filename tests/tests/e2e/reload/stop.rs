//! The orderly end: what is under way is finished, for a bounded time.

use std::any::Any;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixDatagram;

use super::*;
use crate::http2::frames::{self, Frames};

#[test]
fn a_stopping_server_finishes_downloads_and_takes_no_new_connections() {
    let mut kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[LARGE]));
    let mut downloads: Vec<_> = paths_here().iter().map(|path| begin(&kettle, path)).collect();
    let mut idle = kettle.connect_by(paths_here()[0], TLS13_AES_128);
    idle.get("/missing");
    kettle.signal(Signal::TERM);
    kettle.messages().wait_for("finishing requests in flight");
    assert_eq!(idle.end(), End::Orderly);
    assert!(TcpStream::connect(kettle.address()).is_err());
    for client in &mut downloads {
        assert_same(&client.receive_exactly(LARGE), &content(LARGE), "a download in flight");
        assert_eq!(client.end(), End::Orderly);
    }
    drop(downloads);
    assert!(kettle.ended().status.success());
}

#[test]
fn systemd_hears_of_the_start_though_its_queue_was_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd.set_read_timeout(Some(patience())).unwrap();
    let other = UnixDatagram::unbound().unwrap();
    other.set_nonblocking(true).unwrap();
    let before = std::iter::from_fn(|| other.send_to(b"other", &path).ok()).count();
    let socket = format!("NOTIFY_SOCKET={}", path.display());
    let _kettle = Kettle::start(Setup::default().launched_by(&["env", &socket]));
    let heard = || {
        let mut message = [0; 16];
        let bytes = systemd.recv(&mut message).unwrap();
        message[..bytes].to_vec()
    };
    for _ in 0..before {
        assert_eq!(heard(), b"other");
    }
    assert_eq!(heard(), b"READY=1");
}

#[test]
fn the_first_interrupt_says_what_a_second_does() {
    let mut kettle = Kettle::start(Setup::path("user").sizes(&[LARGE]));
    let mut download = begin(&kettle, "user");
    kettle.signal(Signal::INT);
    kettle.messages().wait_for("finishing requests; again to stop now");
    assert_same(&download.receive_exactly(LARGE), &content(LARGE), "a download in flight");
    drop(download);
    assert!(kettle.ended().status.success());
}

#[test]
fn ctl_stop_returns_when_the_server_has_stopped() {
    let mut kettle = Kettle::start(Setup::default());
    assert!(kettle.ctl(&["stop"]).succeed().contains("stopped"));
    assert!(kettle.ended().status.success());
}

#[test]
fn a_stopping_server_waits_no_longer_than_configured() {
    let setup = Setup::paths(paths_here()).sizes(&[LARGE]);
    let mut kettle = Kettle::start(setup.set("server", "drain_timeout = \"1s\""));
    let mut downloads: Vec<_> = paths_here().iter().map(|path| begin(&kettle, path)).collect();
    // Not for a new program either, as nginx has it.
    kettle.signal(Signal::USR2);
    kettle.messages().wait_for("SIGUSR2");
    // As SIGTERM.
    kettle.signal(Signal::QUIT);
    assert!(kettle.ended().status.success());
    for client in &mut downloads {
        assert_eq!(client.end(), End::Cut);
        let entry = kettle.entry(&format!("/{LARGE}"));
        assert!(!entry.is_complete() && entry.number("bytes_sent") > 0);
    }
}

/// Clients that do nothing more, and what each of them has done so far.
const IDLE: [Doing; 7] = [
    // Nothing said.
    |kettle, _| Box::new(Wire::connect(kettle.address())),
    // Kept alive after a response, which the kernel may have sent.
    |kettle, suite| {
        let clients = by_path(kettle).map(|address| {
            let mut client = Dialer::suite(suite).connect(address);
            assert_same(&client.get("/70000").body, &content(70_000), "kept alive");
            client
        });
        Box::new(clients.collect::<Vec<_>>())
    },
    // The same over HTTP/2.
    |kettle, suite| {
        let clients = by_path(kettle).map(|address| {
            let mut client = Frames::begin_at(Dialer::suite(suite), address, &[]);
            client.send(&frames::get(1, "/a"));
            assert_eq!(client.body(1), b"content");
            client
        });
        Box::new(clients.collect::<Vec<_>>())
    },
    // Asked to close, and stays.
    |kettle, suite| {
        let mut client = kettle.connect(suite);
        assert_eq!(
            client.exchange(&request("GET", "/a", "Connection: close\r\n")).body,
            b"content"
        );
        assert_eq!(client.end(), End::Orderly);
        Box::new(client)
    },
    // Half a body that nobody wants.
    |kettle, suite| {
        let mut client = kettle.connect(suite);
        client
            .send(b"POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
            .unwrap();
        assert_eq!(client.response().status, 405);
        Box::new(client)
    },
    // A hello that was refused.
    |kettle, _| {
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00").unwrap();
        Box::new(wire)
    },
    // Nothing said in plain HTTP.
    |kettle, _| Box::new(Wire::connect(plain(kettle))),
];

/// Clients that have begun something and do not go on.
const BEGUN: [Doing; 6] = [
    // Half a hello.
    |kettle, suite| {
        let mut client = Dialer::suite(suite).begin(kettle.address());
        let hello = client.hello();
        client.wire.write_all(&hello[..hello.len() / 2]).unwrap();
        Box::new(client)
    },
    // Half a handshake.
    |kettle, suite| {
        let mut client = Dialer::suite(suite).begin(kettle.address());
        client.tls.write_tls(&mut client.wire).unwrap();
        client.tls.read_tls(&mut client.wire).unwrap();
        Box::new(client)
    },
    // No request.
    |kettle, suite| Box::new(kettle.connect(suite)),
    // Half a request head.
    |kettle, suite| {
        let mut client = kettle.connect(suite);
        client.send(b"GET /a HTTP/1.1\r\nHost:").unwrap();
        Box::new(client)
    },
    // Half a second request head.
    |kettle, suite| {
        let mut client = kettle.connect(suite);
        assert_eq!(
            client.exchange(&[&get("/a"), &b"GET /a HTTP/1.1\r\n"[..]].concat()).body,
            b"content"
        );
        Box::new(client)
    },
    // Half a head in plain HTTP.
    |kettle, _| {
        let mut wire = Wire::connect(plain(kettle));
        wire.write_all(b"GET /a HTTP/1.1\r\n").unwrap();
        Box::new(wire)
    },
];

type Doing = fn(&Kettle, Suite) -> Box<dyn Any>;

#[test]
fn clients_with_nothing_under_way_are_let_go_at_once() {
    // Shorter than any wait for a client that does nothing.
    stop_lets_go(IDLE, "drain_timeout = \"4s\"");
}

#[test]
fn clients_that_stand_still_in_a_beginning_are_let_go_soon() {
    // The end is waited for with `patience`, a part of this and of all other deadlines here.
    stop_lets_go(BEGUN, "drain_timeout = \"10m\"");
}

/// The listeners with TLS.
fn by_path(kettle: &Kettle) -> impl Iterator<Item = SocketAddr> {
    kettle.addresses.iter().copied().take(paths_here().len())
}

/// The listener without.
fn plain(kettle: &Kettle) -> SocketAddr {
    kettle.addresses[paths_here().len()]
}

/// A client that is still there when the time to drain is over is cut off, with a message.
fn stop_lets_go<const N: usize>(clients: [Doing; N], drain_timeout: &str) {
    let setup = paths_here().iter().fold(Setup::default(), |setup, path| {
        setup.listener(&format!("http2 = true\npath = {path:?}"))
    });
    let setup = setup.file("www/a", "content").sizes(&[70_000]).listener("kind = \"redirect\"");
    let setup = setup.set("server", drain_timeout).set("tls", "handshake_timeout = \"5m\"");
    let mut kettle = Kettle::start(
        setup.set("limits", "idle_timeout = \"5m\"").set("limits", "request_timeout = \"5m\""),
    );
    let connect = |suite| clients.map(|begin| begin(&kettle, suite));
    let clients = [TLS13_AES_128, TLS12_AES_128].map(connect);
    kettle.signal(Signal::TERM);
    let ended = kettle.ended();
    drop(clients);
    let messages = kettle.messages().text();
    assert!(ended.status.success());
    assert!(!messages.contains("the time to drain is over"), "{messages}");
}

/// A header that came alone is a beginning; to have connected is none.
#[test]
fn who_has_only_connected_goes_before_whose_proxy_header_was_taken() {
    let setup = Setup::path("user").listener("accept_proxy = [\"127.0.0.0/8\"]");
    let kettle = Kettle::start(setup);
    let mut silent = kettle.connect_plain();
    let mut begun = TcpStream::connect(kettle.addresses[1]).unwrap();
    begun.write_all(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n").unwrap();
    kettle.wait_for_status("/total/proxy_headers/v1 client", 1);
    kettle.wait_for_status("/total/connections_open", 2);
    kettle.signal(Signal::TERM);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    begun.set_nonblocking(true).unwrap();
    assert_eq!(begun.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn what_arrives_together_with_the_stop_is_answered() {
    let mut kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let [mut idle, mut fresh] = [(); 2].map(|()| kettle.connect(TLS13_AES_128));
    assert_eq!(idle.get("/a").body, b"content");
    // Both requests, a hello and the signal wait for the process when it goes on.
    kettle.signal(Signal::STOP);
    for client in [&mut idle, &mut fresh] {
        client.send(&get("/a")).unwrap();
    }
    let mut newcomer = Dialer::suite(TLS13_AES_128).begin(kettle.address());
    newcomer.tls.write_tls(&mut newcomer.wire).unwrap();
    kettle.signal(Signal::TERM);
    kettle.signal(Signal::CONT);
    newcomer.finish_handshake_with(&get("/a"));
    for client in [&mut idle, &mut fresh, &mut newcomer] {
        let response = client.response();
        assert_eq!(response.body, b"content");
        assert_eq!(client.end(), End::Orderly);
    }
    assert!(kettle.ended().status.success());
}

/// A download that waits for its client.
fn begin(kettle: &Kettle, path: &str) -> Client {
    let dialer = Dialer::suite(TLS13_AES_128).reading_slowly();
    let mut client = dialer.connect(kettle.address_by(path));
    client.send(&get(&format!("/{LARGE}"))).unwrap();
    assert_eq!(client.response_head().status, 200);
    client
}
