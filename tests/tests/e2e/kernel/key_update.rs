//! A client changes its keys: the server follows in user space and on kernels that can, and elsewhere finishes under the
//! key it has. Never does it send what cannot be decrypted.

use kettle_tests::client::End;
use kettle_tests::content::{assert_same, content};
use kettle_tests::environment::{
    THROUGH_THE_KERNEL, kernel_changes_keys, kernel_tls_or_skip, paths_here, skip,
};
use kettle_tests::http::{Connection, get};
use kettle_tests::kernel_counts::KernelCounts;
use kettle_tests::kettle::Kettle;
use kettle_tests::raw_session::{RawSession, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, HANDSHAKE};
use kettle_tests::setup::Setup;
use kettle_tests::suite::{TLS13_AES_128, TLS13_AES_256, TLS13_CHACHA20};
use kettle_tests::tool::{Running, Tool};

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

#[test]
fn where_the_kernel_cannot_change_keys_the_next_response_is_the_last_and_ends_orderly() {
    if !kernel_tls_or_skip() {
        return;
    }
    if kernel_changes_keys() {
        return skip("this kernel can change keys");
    }
    let kettle = Kettle::start(in_the_kernel());
    for path in THROUGH_THE_KERNEL {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        assert_same(&client.get("/70000").body, &content(70_000), path);
        client.update_keys();
        let response = client.get("/70000");
        assert_same(&response.body, &content(70_000), path);
        assert_eq!(response.header("connection"), Some("close"));
        assert_eq!(client.end(), End::Orderly, "{path}");
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
        assert_same(&client.body(4 << 20), &content(4 << 20), path);
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
            session.send(APPLICATION_DATA, &get("/70000"));
            let mut flood = Vec::new();
            for _ in 0..100 {
                flood.extend(
                    session.sending.seal(HANDSHAKE, &[24, 0, 0, 1, u8::from(is_requested)]),
                );
                session.sending = session.sending.next();
            }
            session.send_bytes(&flood);
            let end = session.receive_beyond(&[HANDSHAKE, APPLICATION_DATA]);
            assert_eq!(end, Received::Record(ALERT, vec![2, UNEXPECTED_MESSAGE]), "{path}");
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
            openssl.type_in(get("/a"));
            openssl.stdout.wait_for("the body");
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
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let mut gnutls = Tool::new("gnutls-cli")
            .args(["--insecure", "--inline-commands", "--sni-hostname", "localhost"])
            .args(["--priority", "NORMAL:-VERS-ALL:+VERS-TLS1.3", "--port", &port, &host])
            .start();
        gnutls.stdout.wait_for("Simple Client Mode");
        gnutls.type_in(get("/70000"));
        gnutls.stdout.wait_until("the first body", |bytes| (bytes.len() > 70_000).then_some(()));
        gnutls.type_in("^rekey^\n");
        gnutls.type_in(get("/a"));
        gnutls.stdout.wait_for("the body");
        assert_no_complaint(&gnutls);
    }
}

fn assert_no_complaint(client: &Running) {
    let said = client.stderr.text().to_lowercase();
    assert!(!said.contains("bad record mac") && !said.contains("decryption failed"), "{said}");
}

fn in_the_kernel() -> Setup {
    Setup::paths(&THROUGH_THE_KERNEL).sizes(&[70_000])
}

const UNEXPECTED_MESSAGE: u8 = 10;
