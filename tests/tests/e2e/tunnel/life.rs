//! Tunnels while something else changes: the sides at different times, the kill switch, the configuration.

use std::io::ErrorKind;

use aws_lc_rs::digest::{Context, SHA256};
use kettle_tests::environment::has_kernel_tls;
use rustls::AlertDescription;
use socket2::SockRef;

use super::*;

fn paths() -> &'static [&'static str] {
    if has_kernel_tls() { &["user", "kernel-splice", "auto"] } else { &["user"] }
}

#[test]
fn a_client_that_said_all_gets_all_of_a_long_answer() {
    let body = content(scaled(10, 2) * 1_024 * 1_024);
    for (path, suite) in paths().iter().flat_map(|path| ONE_OF_EACH_VERSION.map(|it| (path, it))) {
        let at = Backend::listen();
        let kettle = terminator(&format!("path = \"{path}\""), &[at.address()]);
        let mut client = kettle.connect(suite);
        client.send(b"ask").unwrap();
        // Only close_notify: the socket stays open in both directions.
        client.tls.send_close_notify();
        client.tls.write_tls(&mut client.wire).unwrap();
        let mut server = at.accept();
        let (asked, outcome) = read_to_end(&mut server);
        assert_eq!((asked.as_slice(), outcome.is_ok()), (&b"ask"[..], true), "{path}");
        let sent = body.clone();
        let serving = thread::spawn(move || server.write_all(&sent).unwrap());
        assert_eq!(client.end(), End::Orderly, "{path} {}", suite.name);
        assert_same(client.beyond(), &body, path);
        serving.join().unwrap();
        drop(client);
        assert_eq!(kettle.tunnel().number("bytes_sent"), body.len() as u64, "{path}");
    }
}

#[test]
fn a_backend_may_speak_first_and_end_before_its_client_speaks() {
    let at = Backend::listen();
    let kettle = terminator("", &[at.address()]);
    for suite in ONE_OF_EACH_VERSION {
        let mut silent = kettle.connect(suite);
        let mut server = at.accept();
        server.write_all(b"220 ready\r\n").unwrap();
        assert_eq!(silent.receive_exactly(11), b"220 ready\r\n");
        silent.beyond().clear();
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(silent.end(), End::Orderly, "{}", suite.name);
        // It may speak yet.
        silent.send(b"QUIT").unwrap();
        assert_eq!(read_exactly(&mut server, 4), b"QUIT");
        silent.close_sending();
        assert_eq!(read_to_end(&mut server).0, b"");
        assert_eq!(kettle.tunnel().text("end"), "backend_closed");
    }
}

/// One byte less, as many, and one more than what goes before the kernel takes over, and a reset behind it.
#[test]
fn a_reset_where_the_kernel_takes_over_loses_nothing_before_it() {
    const CROSSOVER: usize = 16_384;
    for bytes in [CROSSOVER - 1, CROSSOVER, CROSSOVER + 1, 2 * CROSSOVER] {
        let body = content(bytes);
        let at = Backend::listen();
        let settings = "crossover = \"16 KiB\"";
        let tls = terminator(settings, &[at.address()]);
        let plain = Kettle::start(before("tcp", settings, &[at.address()]));
        let reset_behind = |mut server: TcpStream| {
            // Before, a reset would be one of the connect.
            assert_eq!(read_exactly(&mut server, 5), b"hello");
            server.write_all(&body).unwrap();
            SockRef::from(&server).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        };
        let mut client = tls.ask(b"hello");
        reset_behind(at.accept());
        assert_eq!(client.end(), End::Cut, "{bytes} bytes");
        assert_same(client.beyond(), &body, "sealed");
        assert_eq!(tls.tunnel().text("end"), "backend_reset");

        let mut client = plain.connect_plain();
        client.write_all(b"hello").unwrap();
        reset_behind(at.accept());
        let (received, outcome) = read_to_end(&mut client);
        assert_same(&received, &body, "plain");
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionReset, "{bytes} bytes");
        assert_eq!(plain.tunnel().text("end"), "backend_reset");
    }
}

fn echoed(client: &mut Client, bytes: usize) {
    let body = content(bytes);
    client.send(&body).unwrap();
    assert_same(&client.receive_exactly(bytes), &body, "the echo");
    client.wire.received.clear();
}

#[test]
fn the_kill_switch_leaves_open_tunnels_where_they_are() {
    let kettle = terminator("path = \"kernel-splice\"", &[Backend::echoing()]);
    let mut ends = Vec::new();
    let mut old = Dialer::default().connect(kettle.address());
    echoed(&mut old, 40_000);
    let _ = kettle.ctl(&["path", "user"]).succeed();
    let mut new = Dialer::default().connect(kettle.address());
    for client in [&mut old, &mut new] {
        echoed(client, 40_000);
    }
    let _ = kettle.ctl(&["path", "auto"]).succeed();
    for mut client in [old, new] {
        echoed(&mut client, 40_000);
        client.close_sending();
        assert_eq!(client.end(), End::Orderly);
        let entry = kettle.tunnel();
        assert_eq!(entry.number("bytes_sent") % 40_000, 0);
        ends.push([entry.text("path_sent").to_owned(), entry.text("reason_sent").to_owned()]);
    }
    let [old, new] = &ends[..] else { panic!() };
    if has_kernel_tls() {
        assert_eq!(old, &["kernel-splice", ""]);
        assert_eq!(new, &["user", "kill_switch"]);
    } else {
        assert_eq!(old[0], "user");
        assert_eq!(new, &["user", "kill_switch"]);
    }
}

/// The name has no way any more, and who has a server keeps it until both are done.
#[test]
fn a_backend_that_is_taken_out_keeps_its_tunnels_and_its_name_is_refused() {
    let setup = Setup::default()
        .listener("kind = \"tls\"")
        .site("backend = \"app\"")
        .another_site(&["other.example"], "localhost", "backend = \"other\"")
        .more(&backend("other", "", &[Backend::echoing()]));
    let gone = backend("app", "", &[Backend::echoing()]);
    let kettle = Kettle::start(setup.more(&gone));
    let mut old = Dialer::default().connect(kettle.address());
    echoed(&mut old, 100);
    kettle.folder.change_config(&gone, "");
    kettle.reload_with("backend = \"app\"", "");
    let refused = Dialer::default().try_connect(kettle.address()).map(drop);
    let end = refused.map_err(|error| end_of(&error));
    assert_eq!(end, Err(End::Alert(AlertDescription::UnrecognisedName)));
    assert_eq!(kettle.status("/backends/0/name"), "other");
    assert_eq!(kettle.status("/backends/1"), serde_json::Value::Null);
    echoed(&mut old, 100_000);
    assert!(kettle.ctl(&["tunnels"]).succeed().contains("app"));
    old.close_sending();
    assert_eq!(old.end(), End::Orderly);
    let entry = kettle.tunnel();
    assert_eq!((entry.text("backend"), entry.text("end")), ("app", "client_closed"));
}

#[test]
fn a_tunnel_whose_times_are_over_together_ends_once() {
    let at = Backend::listen();
    let times = "idle_timeout = \"1s\"\ntotal_timeout = \"1s\"";
    let app = backend("app", times, &[at.address()]);
    let setup = before_app("tls", "", &app);
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    let mut server = at.accept();
    assert_eq!(client.end(), End::Cut);
    let (_, outcome) = read_to_end(&mut server);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let entry = kettle.tunnel();
    assert!(["idle", "too_long"].contains(&entry.text("end")), "{}", entry.text("end"));
    kettle.wait_for_status("/total/connections_open", 0);
}

/// Bytes that are sent a piece at a time, and their hash.
struct Stream {
    piece: Vec<u8>,
    hash: Context,
}

impl Stream {
    fn new() -> Self {
        // Its length is no divisor of a record's, so that no two records are alike.
        Self { piece: content(65_521), hash: Context::new(&SHA256) }
    }

    /// Pieces of so many bytes in all.
    fn send(mut self, bytes: usize, mut write: impl FnMut(&[u8])) -> Vec<u8> {
        let mut left = bytes;
        while left > 0 {
            let piece = &self.piece[..left.min(self.piece.len())];
            write(piece);
            self.hash.update(piece);
            left -= piece.len();
        }
        self.hash.finish().as_ref().to_vec()
    }

    fn receive(mut self, bytes: usize, mut read: impl FnMut(&mut [u8]) -> usize) -> Vec<u8> {
        let mut left = bytes;
        while left > 0 {
            let room = &mut self.piece[..];
            let length = room.len().min(left);
            let count = read(&mut room[..length]);
            assert!(count > 0, "the end, {left} bytes too early");
            self.hash.update(&self.piece[..count]);
            left -= count;
        }
        self.hash.finish().as_ref().to_vec()
    }
}

/// As many MiB each way as `KETTLE_TUNNEL_MIB` says: 1,024 are 65,536 full records, and more than any buffer holds.
#[test]
fn all_bytes_of_a_large_tunnel_arrive_in_order() {
    let mib = std::env::var("KETTLE_TUNNEL_MIB").map(|mib| mib.parse().unwrap());
    let bytes = mib.unwrap_or_else(|_| scaled(16, 2)) * 1_024 * 1_024;
    for (path, suite) in paths().iter().zip(ONE_OF_EACH_VERSION.into_iter().cycle()) {
        let at = Backend::listen();
        let kettle = terminator(&format!("path = \"{path}\""), &[at.address()]);
        let mut client = kettle.connect(suite);
        let mut server = at.accept();
        let serving = thread::spawn(move || {
            use std::io::Read;
            let received = Stream::new().receive(bytes, |room| server.read(room).unwrap());
            let sent = Stream::new().send(bytes, |piece| server.write_all(piece).unwrap());
            (received, sent)
        });
        let sent = Stream::new().send(bytes, |piece| client.send(piece).unwrap());
        let received = Stream::new().receive(bytes, |room| {
            client.wire.received.clear();
            client.receive(room).unwrap()
        });
        assert_eq!(serving.join().unwrap(), (sent, received), "{path} {}", suite.name);
        assert_eq!(client.end(), End::Orderly, "{path}");
        drop(client);
        let entry = kettle.tunnel();
        let counted = [entry.number("bytes_received"), entry.number("bytes_sent")];
        assert_eq!(counted, [bytes as u64; 2], "{path}");
    }
}

#[test]
fn a_tunnel_beyond_the_limit_of_its_worker_waits_until_another_ends() {
    let at = Backend::listen();
    let setup = before("tcp", "", &[at.address()]).set("limits", "connections_per_worker = 1");
    let kettle = Kettle::start(setup);
    let mut first = kettle.connect_plain();
    let mut server = at.accept();
    let mut second = kettle.connect_plain();
    second.write_all(b"second").unwrap();
    // Its worker has had turns since.
    first.write_all(b"first").unwrap();
    assert_eq!(read_exactly(&mut server, 5), b"first");
    server.write_all(b"heard").unwrap();
    assert_eq!(read_exactly(&mut first, 5), b"heard");
    assert_eq!(kettle.status("/total/connections_open"), 1);
    drop(first);
    drop(read_to_end(&mut server));
    drop(server);
    assert_eq!(read_exactly(&mut at.accept(), 6), b"second");
}
