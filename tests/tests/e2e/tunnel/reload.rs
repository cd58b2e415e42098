//! A reload changes what new connections get, and no tunnel.

use std::net::SocketAddr;

use kettle_tests::backend::{Backend, backend, read_exactly};
use kettle_tests::client::{Client, Dialer, End};
use kettle_tests::environment::scaled;
use kettle_tests::http::Connection;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;

use super::before;

fn ping(client: &mut Client) {
    client.send(b"ping").unwrap();
    let mut room = [0; 4];
    let mut received = 0;
    while received < room.len() {
        received += client.receive(&mut room[received..]).unwrap();
    }
    assert_eq!(&room, b"ping");
}

#[test]
fn tunnels_outlive_reloads() {
    let kettle = Kettle::start(before("tls", "", &[Backend::echoing()]));
    let dialer = Dialer::default();
    let mut clients: Vec<_> =
        (0..scaled(50, 5)).map(|_| dialer.connect(kettle.address())).collect();
    clients.iter_mut().for_each(ping);
    let before_descriptors = kettle.open_descriptors();
    for reload in 0..scaled(20, 5) {
        let (old, new) = (format!("queue = {}", 100 + reload), format!("queue = {}", 101 + reload));
        let text = std::fs::read_to_string(kettle.folder.config()).unwrap();
        if text.contains(&old) {
            kettle.folder.change_config(&old, &new);
        } else {
            kettle.folder.change_config("name = \"app\"", &format!("name = \"app\"\n{new}"));
        }
        let _ = kettle.ctl(&["reload"]).succeed();
        clients.iter_mut().for_each(ping);
    }
    // A tunnel keeps nothing of the configurations it outlives, not even their listening sockets.
    assert!(kettle.open_descriptors() < before_descriptors + 10, "descriptors pile up");
    for mut client in clients {
        client.close_sending();
        assert_eq!(client.end(), End::Orderly);
    }
}

#[test]
fn a_backend_that_is_gone_keeps_its_tunnels_and_gets_no_more() {
    let (old, new) = (Backend::echoing(), Backend::listen());
    let kettle = Kettle::start(before("tls", "", &[old]));
    let mut client = Dialer::default().connect(kettle.address());
    ping(&mut client);
    let address: SocketAddr = new.address();
    kettle.folder.change_config(&old.to_string(), &address.to_string());
    let _ = kettle.ctl(&["reload"]).succeed();
    let mut after = Dialer::default().connect(kettle.address());
    after.send(b"new").unwrap();
    assert_eq!(read_exactly(&mut new.accept(), 3), b"new");
    ping(&mut client);
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
