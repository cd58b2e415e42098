//! Sessions that are resumed: by which means, by which worker, and when they must not be.

use rustls::HandshakeKind;
use rustls::client::{Resumption, Tls12Resumption};

use super::*;

#[test]
fn tls13_tickets_are_known_to_every_worker() {
    is_resumed_by_every_worker(TLS13_AES_128, sessions(), "ticket");
}

#[test]
fn tls12_tickets_are_known_to_every_worker() {
    let tickets = sessions().tls12_resumption(Tls12Resumption::SessionIdOrTickets);
    is_resumed_by_every_worker(TLS12_AES_128, tickets, "ticket");
}

#[test]
fn tls12_session_ids_are_known_to_every_worker() {
    let ids = sessions().tls12_resumption(Tls12Resumption::SessionIdOnly);
    is_resumed_by_every_worker(TLS12_AES_128, ids, "session_id");
}

/// Twelve connections would all have to meet the same of three workers for a session known to one alone.
fn is_resumed_by_every_worker(suite: Suite, resumption: Resumption, by: &str) {
    let setup = Setup::default().file("www/a", "content").set("server", "workers = 3");
    let kettle = Kettle::start(setup);
    let dialer = Dialer::suite(suite).resuming(resumption);
    use_once(&dialer, &kettle);
    assert_eq!(kettle.entry("/a").text("resumed"), "full");
    for _ in 0..12 {
        let client = use_once(&dialer, &kettle);
        assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::Resumed));
        assert_eq!(kettle.entry("/a").text("resumed"), by);
    }
}

#[test]
fn a_resumed_connection_takes_every_path() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for suite in [TLS13_AES_128, TLS12_AES_128] {
        let dialer = Dialer::suite(suite).resuming(sessions());
        let _ = dialer.connect(kettle.address()).get("/70000");
        for path in paths_here() {
            let mut client = dialer.connect(kettle.address_by(path));
            assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::Resumed), "{path}");
            assert_same(&client.get("/70000").body, &content(70_000), path);
        }
    }
}

#[test]
fn tickets_of_an_earlier_start_are_refused() {
    let mut kettle = Kettle::start(Setup::default().file("www/a", "content"));
    for suite in [TLS13_AES_128, TLS12_AES_128] {
        let dialer = Dialer::suite(suite).resuming(sessions());
        use_once(&dialer, &kettle);
        kettle.restart();
        let client = use_once(&dialer, &kettle);
        assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::Full), "{}", suite.name);
    }
}

#[test]
fn tickets_survive_a_reload() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let dialer = Dialer::suite(TLS13_AES_128).resuming(sessions());
    use_once(&dialer, &kettle);
    let _ = kettle.ctl(&["reload"]).succeed();
    let client = use_once(&dialer, &kettle);
    assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::Resumed));
}

#[test]
fn without_tickets_nothing_is_resumed() {
    let setup = Setup::default().file("www/a", "content");
    let kettle = Kettle::start(setup.set("tls", "tickets = 0").set("tls", "session_cache = 0"));
    for suite in [TLS13_AES_128, TLS12_AES_128] {
        let dialer = Dialer::suite(suite).resuming(sessions());
        use_once(&dialer, &kettle);
        let client = use_once(&dialer, &kettle);
        assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::Full), "{}", suite.name);
    }
}

#[test]
fn openssl_resumes_in_both_versions() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let reconnected = kettle.openssl(&["-tls1_2", "-reconnect"]).output();
    assert_eq!(reconnected.text().matches("Reused, TLSv1.2").count(), 5);
    let session = kettle.folder.path("session.pem").display().to_string();
    let request = "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for version in ["-tls1_2", "-tls1_3"] {
        for (flag, kind) in [("-sess_out", "New, "), ("-sess_in", "Reused, ")] {
            let said = kettle.openssl(&[version, flag, &session]).typed(request);
            assert!(said.text().contains(kind), "{version} {flag}: {}", said.text());
        }
    }
}

#[test]
fn a_session_of_one_site_does_not_open_another() {
    let second = issue(&["second.test"], Kind::Ecdsa);
    let setup = Setup::default().file("www/a", "content").issued("second", &second).another_site(
        &["second.test"],
        "second",
        "[[site.route]]\nroot = \"www\"",
    );
    let kettle = Kettle::start(setup);
    let session = kettle.folder.path("session.pem").display().to_string();
    let request = "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for version in BY_TICKET_AND_BY_ID {
        let save = [version, &["-sess_out", &session]].concat();
        let _ = kettle.openssl(&save).typed(request);
        for (name, is_resumed) in [("second.test", false), ("localhost", true)] {
            let words = [version, &["-sess_in", &session, "-servername", name]].concat();
            let text = kettle.openssl(&words).output().text();
            assert_eq!(text.contains("Reused, "), is_resumed, "{version:?} {name}: {text}");
        }
    }
}

#[test]
fn a_session_id_of_one_listener_opens_no_other() {
    let app = backend("app", "", &[Backend::echoing()]);
    let setup = Setup::default().file("www/a", "content").listener("");
    let kettle = Kettle::start(setup.listener("kind = \"tls\"\nbackend = \"app\"").more(&app));
    let ids = sessions().tls12_resumption(Tls12Resumption::SessionIdOnly);
    let dialer = Dialer::suite(TLS12_AES_128).resuming(ids);
    use_once(&dialer, &kettle);
    let again = use_once(&dialer, &kettle);
    assert_eq!(again.tls.handshake_kind(), Some(HandshakeKind::Resumed));
    let tunnel = dialer.connect(kettle.addresses[1]);
    assert_eq!(tunnel.tls.handshake_kind(), Some(HandshakeKind::Full));
}

/// RFC 5246 §7.2.2, whoever says it.
#[test]
fn a_session_id_ends_with_a_fatal_alert() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    for (is_resumed, is_from_client) in [(false, false), (false, true), (true, false), (true, true)]
    {
        let ids = sessions().tls12_resumption(Tls12Resumption::SessionIdOnly);
        let dialer = Dialer::suite(TLS12_AES_128).resuming(ids);
        let mut client = use_once(&dialer, &kettle);
        if is_resumed {
            client.close_sending();
            client = use_once(&dialer, &kettle);
            assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::Resumed));
        }
        if is_from_client {
            assert!(client.tls.read_tls(&mut &FORGED[..]).is_ok());
            assert!(client.tls.process_new_packets().is_err());
            client.tls.write_tls(&mut client.wire).unwrap();
        } else {
            client.wire.write_all(FORGED).unwrap();
        }
        client.wire.read_to_end();
        let again = use_once(&dialer, &kettle);
        let case = format!("{is_resumed} {is_from_client}");
        assert_eq!(again.tls.handshake_kind(), Some(HandshakeKind::Full), "{case}");
    }
}

/// A connection that has read a response, and with it the tickets before it.
fn use_once(dialer: &Dialer, kettle: &Kettle) -> Client {
    let mut client = dialer.connect(kettle.address());
    assert_eq!(client.get("/a").body, b"content");
    client
}

fn sessions() -> Resumption {
    Resumption::in_memory_sessions(64)
}

/// Whole, and sealed by nobody.
const FORGED: &[u8] = b"\x17\x03\x03\x00\x20an honest peer did not seal this";

/// For `openssl s_client`.
const BY_TICKET_AND_BY_ID: [&[&str]; 3] = [&["-tls1_2"], &["-tls1_2", "-no_ticket"], &["-tls1_3"]];
