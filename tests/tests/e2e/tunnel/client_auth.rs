//! Clients that show certificates before they are carried to a backend.

use kettle_tests::certificate::{ClientAuthority, Issued};
use rustls::HandshakeKind;
use rustls::client::Resumption;

use super::introduction::{read_v2, values};
use super::*;

/// A site that lets in whom this authority knows, and has a backend with these settings.
fn asking(authority: &ClientAuthority, settings: &str, at: &Backend) -> Kettle {
    asking_behind("off", authority, settings, at)
}

fn asking_behind(
    starttls: &str,
    authority: &ClientAuthority,
    settings: &str,
    at: &Backend,
) -> Kettle {
    let setup = Setup::default()
        .set("tls", "watch = true")
        .listener(&format!("kind = \"tls\"\nstarttls = \"{starttls}\""))
        .site("backend = \"app\"")
        .site("client_auth = { roots = \"clients.pem\", crl = \"clients.crl\" }")
        .file("clients.pem", authority.pem())
        .file("clients.crl", authority.revoke(&[], GOOD))
        .more(&backend("app", settings, &[at.address()]))
        .more("connections = 1\n");
    Kettle::start(setup)
}

fn alice(authority: &ClientAuthority, suite: Suite) -> Dialer {
    Dialer::suite(suite).certificate(authority.issue("alice", 1, GOOD))
}

fn bob(authority: &ClientAuthority, suite: Suite) -> Dialer {
    Dialer::suite(suite).certificate(authority.issue("bob", 2, GOOD))
}

fn revoke_bob(kettle: &Kettle, authority: &ClientAuthority) {
    kettle.folder.replace("clients.crl", authority.revoke(&[2], GOOD));
    let _ = kettle.ctl(&["reload"]).succeed();
}

/// Clients that are known one by one, until their certificate is taken out of the file.
#[test]
fn a_pinned_certificate_lets_in_its_owner_and_nobody_else_of_its_authority() {
    let authority = ClientAuthority::new("clients");
    let at = Backend::echoing();
    let certificates = ["alice", "carol"].map(|name| authority.issue(name, 1, GOOD));
    let setup = Setup::default()
        .listener("kind = \"tls\"")
        .site("backend = \"app\"\nclient_auth = { roots = \"clients.pem\", pinned = true }")
        .file("clients.pem", certificates.iter().map(|it| &*it.chain).collect::<String>())
        .more(&backend("app", "", &[at]));
    let kettle = Kettle::start(setup);
    let is_let_in = |suite: Suite, certificate: &Issued| {
        let dialer = Dialer::suite(suite).certificate(certificate.clone());
        let Ok(mut client) = dialer.try_connect(kettle.address()) else { return false };
        client.send(b"hi").is_ok() && client.receive(&mut [0; 2]).is_ok_and(|bytes| bytes > 0)
    };
    for suite in ONE_OF_EACH_VERSION {
        assert!(certificates.iter().all(|it| is_let_in(suite, it)));
        assert!(!is_let_in(suite, &authority.issue("alice", 1, GOOD)), "another of the same name");
    }
    let [alice, carol] = &certificates;
    kettle.folder.replace("clients.pem", &carol.chain);
    let _ = kettle.ctl(&["reload"]).succeed();
    for suite in ONE_OF_EACH_VERSION {
        assert!(is_let_in(suite, carol) && !is_let_in(suite, alice));
    }
}

#[test]
fn backend_and_log_are_told_who_the_client_is() {
    let authority = ClientAuthority::new("clients");
    let at = Backend::listen();
    let kettle = asking(&authority, "send_proxy = \"v2\"", &at);
    for suite in ONE_OF_EACH_VERSION {
        let end = match Dialer::suite(suite).try_connect(kettle.address()) {
            Err(error) => end_of(&error),
            Ok(mut nobody) => nobody.end(),
        };
        assert!(matches!(end, End::Alert(_)), "{end:?}");
        let mut client = alice(&authority, suite).connect(kettle.address());
        client.send(b"hello").unwrap();
        let mut server = at.accept();
        let (_, rest) = read_v2(&mut server);
        let said = values(&rest[12..]);
        let (_, tls) = said.iter().find(|(kind, _)| *kind == 0x20).unwrap();
        // By TLS, with a certificate, on this connection and in the session, and it is good.
        assert_eq!(tls[..5], [7, 0, 0, 0, 0]);
        assert!(values(&tls[5..]).contains(&(0x22, b"alice".to_vec())), "{tls:?}");
        assert_eq!(read_exactly(&mut server, 5), b"hello");
        drop((client, server));
        assert_eq!(kettle.tunnel().text("client"), "CN=alice,O=kettle's tests");
    }
}

#[test]
fn who_is_revoked_while_waiting_reaches_nobody() {
    for suite in ONE_OF_EACH_VERSION {
        let authority = ClientAuthority::new("clients");
        let at = Backend::listen();
        let kettle = asking(&authority, "queue_timeout = \"5m\"", &at);
        let mut first = alice(&authority, suite).connect(kettle.address());
        first.send(b"alice").unwrap();
        let mut server = at.accept();
        assert_eq!(read_exactly(&mut server, 5), b"alice");
        let mut waiting = bob(&authority, suite).connect(kettle.address());
        waiting.send(b"bob").unwrap();
        kettle.wait_for_status("/backends/0/waiting", 1);
        revoke_bob(&kettle, &authority);
        // A client that has a server keeps it.
        server.write_all(b"alice").unwrap();
        assert_eq!(first.receive_exactly(5), b"alice");
        drop((first, server));
        assert_eq!(waiting.end(), End::Cut);
        assert_ne!(kettle.tunnel().text("end"), "session_refused");
        assert_eq!(kettle.tunnel().text("end"), "session_refused");
        assert_next_is_alice(&kettle, &alice(&authority, suite), &at);
    }
}

#[test]
fn who_is_revoked_during_the_handshake_reaches_nobody() {
    for suite in ONE_OF_EACH_VERSION {
        let authority = ClientAuthority::new("clients");
        let at = Backend::listen();
        let kettle = asking(&authority, "", &at);
        let mut late = bob(&authority, suite).begin(kettle.address());
        kettle.wait_for_status("/total/connections_open", 1);
        revoke_bob(&kettle, &authority);
        late.finish_handshake_with(b"bob");
        assert_eq!(late.end(), End::Cut);
        assert_eq!(kettle.tunnel().text("end"), "session_refused");
        assert_next_is_alice(&kettle, &alice(&authority, suite), &at);
    }
}

/// The list changes by itself, under the watch, while a session is being resumed that was good when the hello came.
#[test]
fn who_is_revoked_while_a_session_is_resumed_reaches_nobody() {
    for suite in ONE_OF_EACH_VERSION {
        let authority = ClientAuthority::new("clients");
        let at = Backend::listen();
        let kettle = asking(&authority, "", &at);
        let bob = bob(&authority, suite).resuming(Resumption::in_memory_sessions(8));
        let mut first = bob.connect(kettle.address());
        first.send(b"bob").unwrap();
        let mut server = at.accept();
        assert_eq!(read_exactly(&mut server, 3), b"bob");
        server.write_all(b"tickets come before this").unwrap();
        let _ = first.receive_exactly(24);
        drop((first, server));
        let _ = kettle.tunnel();
        let mut again = bob.begin(kettle.address());
        again.tls.write_tls(&mut again.wire).unwrap();
        while again.tls.handshake_kind().is_none() {
            again.receive_handshake();
        }
        assert_eq!(again.tls.handshake_kind(), Some(HandshakeKind::Resumed), "{}", suite.name);
        kettle.folder.replace("clients.crl", authority.revoke(&[2], GOOD));
        kettle.messages().wait_for("reloaded");
        again.finish_handshake_with(b"bob");
        assert_eq!(again.end(), End::Cut, "{}", suite.name);
        assert_eq!(kettle.tunnel().text("end"), "session_refused", "{}", suite.name);
        assert_next_is_alice(&kettle, &alice(&authority, suite), &at);
    }
}

#[test]
fn who_is_revoked_while_a_server_takes_its_time_is_not_carried() {
    for suite in ONE_OF_EACH_VERSION {
        let authority = ClientAuthority::new("clients");
        let at = Backend::listen();
        let kettle = asking_behind("smtp", &authority, "connect_timeout = \"1m\"", &at);
        let mut client = bob(&authority, suite).begin(kettle.address());
        client.wire.write_all(b"EHLO me\r\nSTARTTLS\r\n").unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"Ready to start TLS\r\n") {
            said.extend(read_exactly(&mut client.wire.socket, 1));
        }
        client.finish_handshake_with(b"EHLO bob\r\n");
        let mut server = at.accept();
        revoke_bob(&kettle, &authority);
        server.write_all(b"220 mail.example\r\n").unwrap();
        assert_eq!(client.end(), End::Cut);
        assert_eq!(kettle.tunnel().text("end"), "session_refused");
        assert_eq!(read_to_end(&mut server).0, b"");
    }
}

/// Nobody is asked for a certificate, so nobody is another one than before.
#[test]
fn who_is_asked_for_nothing_comes_in_over_a_reload() {
    for suite in ONE_OF_EACH_VERSION {
        let at = Backend::listen();
        let app = backend("app", "queue_timeout = \"5m\"", &[at.address()]);
        let listener = "kind = \"tls\"\nbackend = \"app\"\nbackend_by_alpn = {}";
        let setup = Setup::default().listener(listener).more(&app).more("connections = 1\n");
        let kettle = Kettle::start(setup.more(&backend("other", "", &[at.address()])));
        let mut first = Dialer::suite(suite).connect(kettle.address());
        first.send(b"1").unwrap();
        let mut server = at.accept();
        assert_eq!(read_exactly(&mut server, 1), b"1");
        let mut waiting = Dialer::suite(suite).connect(kettle.address());
        waiting.send(b"2").unwrap();
        kettle.wait_for_status("/backends/0/waiting", 1);
        let mut late = Dialer::suite(suite).begin(kettle.address());
        kettle.wait_for_status("/total/connections_open", 3);
        // The sessions of a listener with other backends are for somebody else.
        kettle.reload_with("alpn = {}", "alpn = { h2 = \"other\" }");
        drop((first, server));
        let mut server = at.accept();
        assert_eq!(read_exactly(&mut server, 1), b"2");
        drop((waiting, server));
        late.finish_handshake_with(b"3");
        assert_eq!(read_exactly(&mut at.accept(), 1), b"3");
    }
}

/// Nobody else connected to the backend before.
fn assert_next_is_alice(kettle: &Kettle, alice: &Dialer, at: &Backend) {
    let mut client = alice.connect(kettle.address());
    client.send(b"alice").unwrap();
    assert_eq!(read_exactly(&mut at.accept(), 5), b"alice");
}

/// A year that is far away.
const GOOD: i32 = 2120;
