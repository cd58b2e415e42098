//! Clients that read slowly, stop sending, or vanish.

use kettle_tests::content::LARGE;

use super::*;

#[test]
fn a_slow_reader_gets_every_byte() {
    let bytes = LARGE;
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[bytes]));
    for (path, suite) in paths_here().iter().zip(SUITES) {
        let mut client = Dialer::suite(suite).reading_slowly().connect(kettle.address_by(path));
        client.send(&get(&format!("/{bytes}"))).unwrap();
        client.response_head();
        let mut body = client.beyond().split_off(0);
        let mut room = [0; 1_000];
        while body.len() < bytes {
            let count = client.receive(&mut room).unwrap();
            body.extend_from_slice(&room[..count]);
        }
        assert_same(&body, &content(bytes), path);
        assert!(kettle.entry(&format!("/{bytes}")).is_complete());
    }
}

#[test]
fn a_client_that_stops_sending_still_gets_its_response_and_a_close_notify() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[1 << 20]));
    for (path, suite) in paths_and_versions() {
        let mut client = kettle.connect_by(path, suite);
        client.send(&get("/1048576")).unwrap();
        client.close_sending();
        assert_same(&client.response().body, &content(1 << 20), path);
        assert_eq!(client.end(), End::Orderly, "{path}");
    }
}

#[test]
fn a_client_that_closes_its_socket_without_a_word_still_gets_its_response() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[1 << 20]));
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        client.send(&get("/1048576")).unwrap();
        client.wire.socket.shutdown(std::net::Shutdown::Write).unwrap();
        assert_same(&client.response().body, &content(1 << 20), path);
        assert_eq!(client.end(), End::Orderly, "{path}");
    }
}

#[test]
fn clients_that_reset_their_downloads_leave_nothing_behind() {
    let bytes = LARGE;
    let kettle =
        Kettle::start(Setup::paths(paths_here()).sizes(&[bytes]).set("server", "dumpable = true"));
    let target = format!("/{bytes}");
    // The file stays open, and so does whatever a first request opens for good.
    kettle.connect(TLS13_AES_128).get(&target);
    kettle.wait_until_idle();
    let open_before = kettle.open_descriptors();
    for path in paths_here() {
        for _ in 0..5 {
            let address = kettle.address_by(path);
            let mut client = Dialer::suite(TLS13_AES_128).reading_slowly().connect(address);
            client.send(&get(&target)).unwrap();
            client.response_head();
            client.wire.reset();
        }
        assert_same(
            &kettle.connect_by(path, TLS13_AES_128).get(&target).body,
            &content(bytes),
            path,
        );
    }
    kettle.wait_until_idle();
    // The control connection of the last question may still be on its way out.
    assert!(kettle.open_descriptors() <= open_before + 1);
}
