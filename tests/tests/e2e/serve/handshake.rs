//! The parameters on which a handshake agrees, its refusals, and clients that do not finish theirs.

use kettle_tests::certificate::Issued;
use kettle_tests::suite::TLS13_CHACHA20;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::{AlertDescription, SignatureScheme};

use super::*;

#[test]
fn every_group_makes_a_connection() {
    let kettle = Kettle::start(with_a_file());
    let groups: [(&'static dyn SupportedKxGroup, _); 4] = [
        (kx_group::X25519MLKEM768, "X25519MLKEM768"),
        (kx_group::X25519, "X25519"),
        (kx_group::SECP256R1, "P-256"),
        (kx_group::SECP384R1, "P-384"),
    ];
    for (group, name) in groups {
        let mut client = Dialer::suite(TLS13_AES_128).groups(&[group]).connect(kettle.address());
        assert_eq!(client.get("/a").body, b"content");
        assert_eq!(kettle.entry("/a").text("group"), name);
    }
}

#[test]
fn the_order_of_groups_is_the_clients() {
    let kettle = Kettle::start(with_a_file());
    let hybrid = kx_group::X25519MLKEM768;
    let classic = kx_group::X25519;
    for (offered, chosen) in [([hybrid, classic], "X25519MLKEM768"), ([classic, hybrid], "X25519")]
    {
        Dialer::default().groups(&offered).connect(kettle.address()).get("/a");
        assert_eq!(kettle.entry("/a").text("group"), chosen);
    }
}

#[test]
fn a_protocol_that_is_not_spoken_is_refused_by_name() {
    let kettle = Kettle::start(with_a_file());
    let dialer = Dialer::default().alpn(&["h2", "spdy/3"]);
    assert_eq!(refusal(&kettle, &dialer), AlertDescription::NoApplicationProtocol);
    let mut client = Dialer::default().alpn(&["h2", "http/1.1"]).connect(kettle.address());
    assert_eq!(client.tls.alpn_protocol(), Some(b"http/1.1".as_slice()));
    assert_eq!(client.get("/a").body, b"content");
}

#[test]
fn a_version_that_is_not_offered_is_refused() {
    let kettle = Kettle::start(with_a_file().set("tls", "versions = [\"tls1.3\"]"));
    let refused = refusal(&kettle, &Dialer::suite(TLS12_AES_128));
    assert_eq!(refused, AlertDescription::ProtocolVersion);
    let kettle = Kettle::start(with_a_file().set("tls", "versions = [\"tls1.2\"]"));
    let refused = refusal(&kettle, &Dialer::suite(TLS13_AES_128));
    assert_eq!(refused, AlertDescription::ProtocolVersion);
    let old = ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"];
    kettle.openssl(&old).fail("SSL alert number");
}

#[test]
fn a_suite_that_is_not_offered_is_refused() {
    let kettle = Kettle::start(with_a_file().set("tls", "suites = [\"aes-256-gcm\"]"));
    for suite in SUITES {
        let outcome = Dialer::suite(suite).try_connect(kettle.address());
        assert_eq!(outcome.is_ok(), suite.name.contains("AES_256"), "{}", suite.name);
    }
}

#[test]
fn the_order_of_suites_is_the_servers() {
    let suites = "suites = [\"chacha20-poly1305\", \"aes-256-gcm\", \"aes-128-gcm\"]";
    let kettle = Kettle::start(with_a_file().set("tls", suites));
    // The client offers AES first.
    Dialer::default().connect(kettle.address()).get("/a");
    assert_eq!(kettle.entry("/a").text("suite"), TLS13_CHACHA20.name);
}

#[test]
fn the_certificate_is_one_whose_signature_the_client_can_verify() {
    let ecdsa = issue(&["localhost"], Kind::Ecdsa);
    let more = [("rsa", Kind::Rsa), ("ed25519", Kind::Ed25519)];
    let more = more.map(|(name, kind)| (name, issue(&["localhost"], kind)));
    let mut setup = with_a_file().certificate(ecdsa.clone());
    for (name, issued) in &more {
        setup = setup.site_certificate(name).issued(name, issued);
    }
    let kettle = Kettle::start(setup);
    let [(_, rsa), (_, ed25519)] = &more;
    let expected: [(SignatureScheme, &Issued); 3] = [
        (SignatureScheme::ECDSA_NISTP256_SHA256, &ecdsa),
        (SignatureScheme::RSA_PSS_SHA256, rsa),
        (SignatureScheme::ED25519, ed25519),
    ];
    for (scheme, issued) in expected {
        let client = Dialer::default().handshake_signature(scheme).connect(kettle.address());
        assert_eq!(client.tls.peer_certificates().unwrap()[0], issued.der, "{scheme:?}");
    }
}

/// TLS 1.3 signs no handshake by PKCS#1, though clients offer it for the signatures of certificates (RFC 8446 §4.2.3).
#[test]
fn a_client_that_verifies_rsa_by_pkcs1_only_gets_another_key_in_tls13() {
    let ecdsa = issue(&["localhost"], Kind::Ecdsa);
    let setup = with_a_file()
        .certificate(issue(&["localhost"], Kind::Rsa))
        .site_certificate("ecdsa")
        .issued("ecdsa", &ecdsa);
    let kettle = Kettle::start(setup);
    for (version, signature) in [("-tls1_3", "ECDSA"), ("-tls1_2", "RSA")] {
        let words = [version, "-sigalgs", "RSA+SHA256:ECDSA+SHA256"];
        let said = kettle.openssl(&words).succeed();
        assert!(said.contains(&format!("Peer signature type: {signature}\n")), "{said}");
    }
}

#[test]
fn renegotiation_is_refused_wherever_records_are_made() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        let address = kettle.address_by(path).to_string();
        let words = ["s_client", "-connect", &address, "-servername", "localhost", "-tls1_2"];
        let mut openssl = Tool::new("openssl").args(words).start();
        openssl.type_in(get("/70000"));
        openssl.stdout.wait_until("the body", |bytes| (bytes.len() > 70_000).then_some(()));
        openssl.type_in("R\n");
        openssl.stderr.wait_for("no renegotiation");
    }
}

#[test]
fn a_handshake_in_single_bytes_succeeds() {
    let kettle = Kettle::start(with_a_file());
    let mut client = Dialer::suite(TLS13_AES_128).begin(kettle.address());
    while client.tls.is_handshaking() || client.tls.wants_write() {
        let mut flight = Vec::new();
        client.tls.write_tls(&mut flight).unwrap();
        for byte in flight {
            client.wire.write_all(&[byte]).unwrap();
        }
        if client.tls.is_handshaking() && !client.tls.wants_write() {
            client.receive_handshake();
        }
    }
    assert_eq!(client.get("/a").body, b"content");
}

#[test]
fn clients_that_leave_during_the_handshake_do_no_harm() {
    let kettle = Kettle::start(with_a_file());
    let hello = Dialer::default().begin(kettle.address()).hello();
    for sent in [0, 1, 5, 6, 43, hello.len() - 1, hello.len()] {
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(&hello[..sent]).unwrap();
        if sent % 2 == 0 {
            wire.reset();
        }
    }
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
    kettle.wait_until_idle();
}

#[test]
fn a_close_notify_during_the_handshake_ends_it() {
    let kettle = Kettle::start(with_a_file());
    for suite in ONE_OF_EACH_VERSION {
        let mut client = Dialer::suite(suite).begin(kettle.address());
        client.tls.write_tls(&mut client.wire).unwrap();
        client.wire.write_all(&[21, 3, 3, 0, 2, 1, 0]).unwrap();
        client.wire.socket.shutdown(std::net::Shutdown::Write).unwrap();
        client.wire.read_to_end();
    }
    kettle.wait_until_idle();
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
}

#[test]
fn bytes_that_are_no_handshake_are_answered_with_an_alert_at_most() {
    let kettle = Kettle::start(with_a_file());
    for sent in [
        b"SSH-2.0-x\r\n".to_vec(),
        vec![0; 1_000],
        vec![22, 3, 1, 0xff, 0xff],
        vec![21, 3, 3, 0, 2, 1, 0],
    ] {
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(&sent).unwrap();
        wire.socket.shutdown(std::net::Shutdown::Write).unwrap();
        wire.read_to_end();
        let alerts = kettle_tests::record::records(&wire.received);
        assert!(alerts.iter().all(|record| record.content_type == 21), "{sent:?}");
    }
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
}

#[test]
fn an_alert_is_not_followed_by_a_reset_while_the_client_still_sends() {
    let kettle = Kettle::start(with_a_file());
    let mut wire = Wire::connect(kettle.address());
    // A handshake message that is none, with much more behind it.
    wire.write_all(&[22, 3, 3, 0, 4, 99, 0, 0, 0]).unwrap();
    wire.write_all(&[0; 100_000]).unwrap();
    let mut alert = [0; 7];
    wire.read_exact(&mut alert).unwrap();
    assert_eq!(alert[..5], [21, 3, 3, 0, 2]);
    assert_eq!(wire.read(&mut alert).unwrap(), 0);
    assert_eq!(kettle.status("/total/connections_open"), 1);
    wire.assert_not_reset();
}

fn refusal(kettle: &Kettle, dialer: &Dialer) -> AlertDescription {
    let error = dialer.try_connect(kettle.address()).err().expect("a refusal");
    match end_of(&error) {
        End::Alert(alert) => alert,
        other => panic!("{other:?}"),
    }
}
