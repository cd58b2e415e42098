//! A reload changes what new connections get, and no tunnel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use kettle_tests::environment::{Ends, raise_open_files_limit};

use super::*;

fn ping(client: &mut Client) {
    echoed(client, b"ping");
}

/// Sixty reloads, as fast as they are done, while data flows through all tunnels and new ones come and go.
#[test]
fn tunnels_outlive_reloads() {
    raise_open_files_limit();
    let app = backend("app", "queue = 100", &[Backend::echoing()]);
    let listener = "kind = \"tls\"\nbackend = \"app\"\ncrossover = \"16 KiB\"";
    let setup = Setup::default().listener(listener).more(&app).set("server", "dumpable = true");
    let kettle = Kettle::start(setup.set("server", "workers = 2"));
    let dialer = Dialer::default();
    let address = kettle.address();
    let mut clients: Vec<_> = (0..scaled(500, 20)).map(|_| dialer.connect(address)).collect();
    let reload = |number: usize| {
        kettle.folder.change_config(
            &format!("queue = {}", 99 + number),
            &format!("queue = {}", 100 + number),
        );
        let _ = kettle.ctl(&["reload"]).succeed();
    };
    // Memory that a reload, a turn of all tunnels and a handshake need once is no growth.
    reload(1);
    clients.iter_mut().for_each(|client| echoed(client, &content(LONG_BYTES)));
    let memory_before = kettle.memory_bytes();
    let descriptors_before = kettle.open_descriptors();

    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let _until = Ends(is_over);
        let share = clients.len().div_ceil(4);
        for (part, clients) in clients.chunks_mut(share).enumerate() {
            scope.spawn(move || {
                for turn in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    for (number, client) in clients.iter_mut().enumerate() {
                        let mut message = format!("{part} {number} {turn} ").into_bytes();
                        let is_long = (number + turn) % 50 == 0;
                        message.extend(content(if is_long { LONG_BYTES } else { 500 }));
                        echoed(client, &message);
                    }
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let mut client = dialer.connect(address);
                echoed(&mut client, b"short");
                client.close_sending();
                assert_eq!(client.end(), End::Orderly);
            }
        });
        (2..=scaled(60, 6)).for_each(reload);
    });

    clients.iter_mut().for_each(ping);
    kettle.wait_for_status("/total/connections_open", clients.len());
    // A tunnel keeps nothing of the configurations it outlives, not even their listening sockets.
    // A connection is counted as closed a moment before its descriptors are.
    let deadline = Instant::now() + patience();
    while kettle.open_descriptors() >= descriptors_before + 10 {
        let now = kettle.open_descriptors();
        assert!(Instant::now() < deadline, "{descriptors_before} descriptors, now {now}");
        kettle.wait_for_status("/total/connections_open", clients.len());
    }
    // Memory that a crowd leaves is given back a moment after it has left.
    while kettle.memory_bytes() >= memory_before + GROWTH_BYTES_MAX {
        let now = kettle.memory_bytes();
        assert!(Instant::now() < deadline, "{memory_before} bytes, now {now}");
        kettle.wait_for_status("/total/connections_open", clients.len());
    }
    for mut client in clients {
        client.close_sending();
        assert_eq!(client.end(), End::Orderly);
    }
}

#[test]
fn a_backend_that_is_gone_keeps_its_tunnels_and_gets_no_more() {
    let old = Backend::echoing();
    let new = Backend::listen();
    let kettle = Kettle::start(before("tls", "", &[old]));
    let mut client = Dialer::default().connect(kettle.address());
    ping(&mut client);
    let address: SocketAddr = new.address();
    kettle.reload_with(&old.to_string(), &address.to_string());
    let _after = kettle.ask(b"new");
    assert_eq!(read_exactly(&mut new.accept(), 3), b"new");
    ping(&mut client);
}

#[test]
fn who_waits_is_carried_to_the_servers_of_a_reload() {
    let full = Backend::echoing();
    let free = Backend::echoing();
    let app = backend("app", "queue_timeout = \"1m\"\nsend_proxy = \"off\"", &[full]);
    let app = app + "connections = 1\n";
    let setup = before_app("tls", "", &app);
    let kettle = Kettle::start(setup.set("server", "workers = 2"));
    let mut first = Dialer::default().connect(kettle.address());
    ping(&mut first);
    let asking = |_| kettle.ask(b"who?");
    let waiting: Vec<_> = (0..WAITING).map(asking).collect();
    kettle.wait_for_status("/backends/0/waiting", WAITING);
    let change = |old: &str, new: &str| {
        kettle.reload_with(old, new);
    };
    change("send_proxy = \"off\"", "send_proxy = \"v1\"");
    change(&full.to_string(), &free.to_string());
    thread::scope(|scope| {
        for mut client in waiting {
            // It ends, and lets the next one have its place.
            scope.spawn(move || {
                let mut said = Vec::new();
                while !said.ends_with(b"who?") {
                    said.extend(client.receive_exactly(1));
                    client.wire.received.clear();
                }
                // As the backend is introduced to its clients now.
                assert!(said.starts_with(b"PROXY TCP4 "), "{}", said.escape_ascii());
            });
        }
    });
    ping(&mut first);
}

#[test]
fn a_server_of_a_reload_is_told_what_a_client_that_waits_connected_to() {
    let settings = "queue_timeout = \"1m\"\nsend_proxy = \"off\"";
    let app = backend("app", settings, &[Backend::echoing()]) + "connections = 1\n";
    let setup = before_app("tls", "", &app);
    let kettle = Kettle::start(setup);
    let change = |old: &str, new: &str| {
        kettle.reload_with(old, new);
    };
    let address = kettle.address();
    change(&address.to_string(), &format!("0.0.0.0:{}", address.port()));
    let [mut first, mut second] = [(); 2].map(|()| Dialer::default().connect(address));
    ping(&mut first);
    second.send(b"who?").unwrap();
    kettle.wait_for_status("/backends/0/waiting", 1);
    change("send_proxy = \"off\"", "send_proxy = \"v1\"");
    first.close_sending();
    let own = second.wire.socket.local_addr().unwrap();
    let ip = own.ip();
    let to = address.ip();
    let ports = [own.port(), address.port()];
    let due = format!("PROXY TCP4 {ip} {to} {} {}\r\nwho?", ports[0], ports[1]);
    assert_eq!(String::from_utf8(second.receive_exactly(due.len())).unwrap(), due);
}

#[test]
fn a_refused_reload_leaves_a_check_under_way_alone() {
    let listening = Backend::listen();
    let check = "[backend.check]\nkind = \"http\"\ninterval = \"1h\"\ntimeout = \"1m\"\nfall = 1";
    let app = backend("app", check, &[listening.address()]);
    let setup = before_app("tls", "", &app);
    let kettle = Kettle::start(setup);
    let mut asked = listening.accept();
    kettle.folder.change_config("name = \"app\"", "nmae = \"app\"");
    assert!(!kettle.ctl(&["reload"]).output().status.success());
    asked.write_all(b"HTTP/1.1 500 no\r\n\r\n").unwrap();
    kettle.wait_for_status("/backends/0/servers/0/health", "down");
}

#[test]
fn a_session_opens_no_other_listener() {
    let app = backend("app", "", &[Backend::echoing()]);
    let listener = "kind = \"tls\"\nbackend = \"app\"";
    let setup = Setup::default().listener(listener).listener(listener).listener("").more(&app);
    let kettle = Kettle::start(setup);
    let dialer = Dialer::default().resuming(rustls::client::Resumption::in_memory_sessions(8));
    let resumed = |address: SocketAddr| {
        let mut client = dialer.connect(address);
        let kind = client.tls.handshake_kind().unwrap();
        // The tickets come behind the handshake.
        if address == kettle.addresses[2] {
            let _ = client.get("/");
        } else {
            ping(&mut client);
        }
        kind == rustls::HandshakeKind::Resumed
    };
    let [first, second, files] = kettle.addresses[..] else { panic!() };
    assert!(!resumed(first));
    assert!(resumed(first));
    assert!(!resumed(second), "another listener");
    assert!(resumed(second));
    assert!(!resumed(files), "files");
    assert!(resumed(files));
    assert!(!resumed(first), "back from files");
}

/// Clients that wait for a server.
const WAITING: usize = 5;

/// More than the crossover, so that the tunnel moves into the kernel where that can be.
const LONG_BYTES: usize = 40_000;

/// The memory that the allocators keep of the short tunnels; less than 20 KiB a reload.
const GROWTH_BYTES_MAX: u64 = 1024 * 1024;
