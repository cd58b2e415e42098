//! A client changes its keys: the server follows in user space and on kernels that can, and elsewhere finishes the response
//! under way and ends. Never does it send what cannot be decrypted.

use std::time::{Duration, Instant};

use kettle_tests::environment::THROUGH_THE_KERNEL;
use kettle_tests::raw_session::{Received, body_of};
use kettle_tests::record::{ALERT, HANDSHAKE};
use kettle_tests::suite::{TLS13_AES_256, TLS13_CHACHA20};
use kettle_tests::tool::Running;

use super::*;

#[test]
fn both_keys_change_in_user_space_as_often_as_a_client_asks() {
    let kettle = Kettle::start(Setup::path("user").sizes(&[70_000]));
    for suite in [TLS13_AES_128, TLS13_AES_256, TLS13_CHACHA20] {
        let mut client = kettle.connect(suite);
        for _ in 0..4 {
            assert_same(&client.get("/70000").body, &content(70_000), suite.name);
            client.update_keys();
        }
        assert_same(&client.get("/70000").body, &content(70_000), suite.name);
    }
}

#[test]
fn both_keys_change_in_a_kernel_that_can() {
    if !kernel_tls_or_skip() {
        return;
    }
    if !kernel_changes_keys() {
        return skip("this kernel cannot change keys");
    }
    let kettle = Kettle::start(in_the_kernel().alone());
    for (path, suite) in
        THROUGH_THE_KERNEL.iter().zip([TLS13_AES_128, TLS13_AES_256, TLS13_CHACHA20])
    {
        let mut client = kettle.connect_by(path, suite);
        let counts = KernelCounts::now();
        for _ in 0..4 {
            assert_same(&client.get("/70000").body, &content(70_000), path);
            client.update_keys();
        }
        assert_same(&client.get("/70000").body, &content(70_000), path);
        assert_eq!(counts.growth("TlsTxSw"), 1, "{path}");
        assert_eq!(counts.growth("TlsTxRekeyOk"), 4, "{path}");
    }
    assert_eq!(kettle.status("/total/kernel_rekeys"), 12);
}

/// The request may come before, with or behind the KeyUpdate: the answer must be under a new key or not at all.
#[test]
fn whoever_asks_for_a_new_key_gets_it_before_the_next_response_or_the_end() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    let orders: [&[Say]; 5] = [
        &[Say::AskForKey, Say::Send, Say::Get],
        &[Say::AskForKey, Say::Get],
        &[Say::Get, Say::AskForKey],
        &[Say::Get, Say::AskForKey, Say::Get],
        &[Say::AskForKey, Say::AskForKey, Say::Get],
    ];
    for path in paths_here() {
        for order in orders {
            let mut session = RawSession::connect(kettle.address_by(path));
            session.send(APPLICATION_DATA, &get("/70000"));
            assert_eq!(session.bodies(70_000).1, 0);
            let responses = order.iter().filter(|said| matches!(said, Say::Get)).count();
            say(&mut session, order);
            if changes_keys(path) {
                let answers = session.bodies(70_000 * responses).1;
                assert_eq!(answers, 1, "{path}: {order:?}");
            } else {
                let end = session.receive();
                assert_eq!(end, Received::Record(ALERT, vec![1, 0]), "{path}: {order:?}");
                assert_eq!(session.receive(), Received::Closed, "{path}: {order:?}");
            }
        }
    }
}

/// A record in one write with the first request is read before the kernel sends anything, and answered on every kernel.
#[test]
fn a_new_key_that_is_asked_for_with_the_first_request_comes_before_the_switch() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    let orders: [&[Say]; 4] = [
        &[Say::AskForKey, Say::Send, Say::Get],
        &[Say::AskForKey, Say::Get],
        &[Say::Get, Say::AskForKey],
        &[Say::Get, Say::AskForKey, Say::Get],
    ];
    for path in paths_here() {
        for order in orders {
            let mut session = RawSession::connect(kettle.address_by(path));
            let responses = order.iter().filter(|said| matches!(said, Say::Get)).count();
            say(&mut session, order);
            let answers = session.bodies(70_000 * responses).1;
            assert_eq!(answers, 1, "{path}: {order:?}");
            say(&mut session, &[Say::Get]);
            assert_eq!(session.bodies(70_000).1, 0, "{path}: {order:?}");
        }
    }
}

/// A KeyUpdate that came while the connection moved is read behind the response, which is whole.
#[test]
fn a_new_key_that_is_asked_for_behind_the_first_request_spoils_nothing() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        let mut session = RawSession::connect(kettle.address_by(path));
        say(&mut session, &[Say::Get, Say::Send, Say::AskForKey]);
        let mut answers = session.bodies(70_000).1;
        // On a kernel that cannot change keys it may be the end, if it was not read before the switch.
        if answers == 0 && !changes_keys(path) {
            assert_eq!(session.receive(), Received::Record(ALERT, vec![1, 0]), "{path}");
            assert_eq!(session.receive(), Received::Closed, "{path}");
            continue;
        }
        say(&mut session, &[Say::Get]);
        answers += session.bodies(70_000).1;
        assert_eq!(answers, 1, "{path}");
    }
}

/// They are read when the response has been sent, all at once.
#[test]
fn one_answer_does_for_all_key_updates_that_came_during_one_response() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[8 << 20]));
    for path in paths_here() {
        let mut session = RawSession::connect_reading_slowly(kettle.address_by(path));
        session.send(APPLICATION_DATA, &get("/8388608"));
        let Received::Record(APPLICATION_DATA, first) = session.receive_beyond(&[HANDSHAKE]) else {
            panic!("{path}: no response");
        };
        let begun = Instant::now();
        say(&mut session, &[Say::AskForKey; 12]);
        // Eight a second are allowed. Others are served meanwhile.
        while begun.elapsed() < Duration::from_secs(1) {
            assert_eq!(kettle.connect_by("user", TLS13_AES_128).get("/nothing").status, 404);
        }
        assert_eq!(session.bodies((8 << 20) - body_of(&first).len()).1, 0, "{path}");
        if changes_keys(path) {
            session.send(APPLICATION_DATA, &get("/8388608"));
            assert_eq!(session.bodies(8 << 20).1, 1, "{path}");
        } else {
            assert_eq!(session.receive(), Received::Record(ALERT, vec![1, 0]), "{path}");
            assert_eq!(session.receive(), Received::Closed, "{path}");
        }
    }
}

#[test]
fn a_key_update_during_a_download_spoils_nothing() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[4 << 20]));
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        client.send(&get("/4194304")).unwrap();
        client.response_head();
        client.update_keys();
        assert_same(&client.receive_exactly(4 << 20), &content(4 << 20), path);
    }
}

#[test]
fn a_new_key_of_the_client_alone_asks_nothing_of_the_kernel() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        let mut session = RawSession::connect(kettle.address_by(path));
        for _ in 0..3 {
            session.send(APPLICATION_DATA, &get("/70000"));
            let mut received = 0;
            while received < 70_000 {
                match session.receive() {
                    Received::Record(APPLICATION_DATA, content) => received += content.len(),
                    // Tickets come as handshake messages; a KeyUpdate would be one too many.
                    Received::Record(HANDSHAKE, content) => assert_eq!(content[0], 4, "{path}"),
                    other => panic!("{path}: {other:?}"),
                }
            }
            session.update_key(false);
        }
    }
}

#[test]
fn a_flood_of_key_updates_is_ended_with_an_alert() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        for is_requested in [false, true] {
            let mut session = RawSession::connect(kettle.address_by(path));
            // The response moves the connection to where it belongs.
            session.send(APPLICATION_DATA, &get("/70000"));
            assert_eq!(session.bodies(70_000).1, 0);
            let mut flood = Vec::new();
            for _ in 0..flood_records() {
                flood.extend(
                    session.sending.seal(HANDSHAKE, &[24, 0, 0, 1, u8::from(is_requested)]),
                );
                session.sending = session.sending.next();
            }
            session.send_bytes(&flood);
            let end = session.receive_beyond(&[HANDSHAKE, APPLICATION_DATA]);
            // The first one that cannot be answered is the end.
            let is_answered = !is_requested || changes_keys(path);
            let alert = if is_answered { [2, UNEXPECTED_MESSAGE] } else { [1, 0] };
            assert_eq!(end, Received::Record(ALERT, alert.to_vec()), "{path}");
            assert_eq!(session.receive(), Received::Closed);
        }
    }
}

#[test]
fn openssl_changes_keys_in_both_ways() {
    let kettle =
        Kettle::start(Setup::paths(paths_here()).file("www/a", "the body").sizes(&[70_000]));
    for path in paths_here() {
        for key in ["K\n", "k\n"] {
            let address = kettle.address_by(path).to_string();
            let words = ["s_client", "-connect", &address, "-servername", "localhost", "-tls1_3"];
            let mut openssl = Tool::new("openssl").args(words).start();
            openssl.type_in(get("/70000"));
            openssl
                .stdout
                .wait_until("the first body", |bytes| (bytes.len() > 70_000).then_some(()));
            openssl.type_in(key);
            openssl.stderr.wait_for("KEYUPDATE");
            if key == "k\n" || changes_keys(path) {
                openssl.type_in(get("/a"));
                openssl.stdout.wait_for("the body");
            } else {
                openssl.stdout.wait_for("closed");
            }
            assert_no_complaint(&openssl);
        }
    }
}

#[test]
fn gnutls_changes_keys() {
    let kettle =
        Kettle::start(Setup::paths(paths_here()).file("www/a", "the body").sizes(&[70_000]));
    for path in paths_here() {
        let address = kettle.address_by(path);
        let host = address.ip().to_string();
        let port = address.port().to_string();
        let mut gnutls = Tool::new("gnutls-cli")
            .args(["--insecure", "--inline-commands", "--sni-hostname", "localhost"])
            .args(["--priority", "NORMAL:-VERS-ALL:+VERS-TLS1.3", "--port", &port, &host])
            .start();
        gnutls.stdout.wait_for("Simple Client Mode");
        gnutls.type_in(get("/70000"));
        gnutls.stdout.wait_until("the first body", |bytes| (bytes.len() > 70_000).then_some(()));
        gnutls.type_in("^rekey^\n");
        if changes_keys(path) {
            gnutls.type_in(get("/a"));
            gnutls.stdout.wait_for("the body");
        } else {
            gnutls.stdout.wait_for("Peer has closed the GnuTLS connection");
        }
        assert_no_complaint(&gnutls);
    }
}

/// The words of a client.
#[derive(Clone, Copy, Debug)]
enum Say {
    Get,
    AskForKey,
    /// The records so far, in one write.
    Send,
}

fn say(session: &mut RawSession, words: &[Say]) {
    let mut said = Vec::new();
    for word in words {
        match word {
            Say::Get => said.extend(session.sending.seal(APPLICATION_DATA, &get("/70000"))),
            Say::AskForKey => {
                said.extend(session.sending.seal(HANDSHAKE, &[24, 0, 0, 1, 1]));
                session.sending = session.sending.next();
            }
            Say::Send => session.send_bytes(&std::mem::take(&mut said)),
        }
    }
    session.send_bytes(&said);
}

/// True if a connection whose responses go this way can change its sending key.
fn changes_keys(path: &str) -> bool {
    path == "user" || kernel_changes_keys()
}

/// More than are allowed while a test is waited for: eight a second.
fn flood_records() -> u64 {
    48 + 8 * patience().as_secs()
}

fn assert_no_complaint(client: &Running) {
    let said = client.stderr.text().to_lowercase();
    assert!(!said.contains("bad record mac") && !said.contains("decryption failed"), "{said}");
}

fn in_the_kernel() -> Setup {
    Setup::paths(&THROUGH_THE_KERNEL).sizes(&[70_000])
}

const UNEXPECTED_MESSAGE: u8 = 10;
