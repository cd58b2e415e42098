//! The certificate that an authority gets to see, and that nobody else does.

use rustls::{AlertDescription, ClientConfig, ClientConnection, Error};
use rustls_pki_types::ServerName;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::*;
use crate::acceptors::Acceptors;
use crate::handshake::{Handshake, Step};
use crate::policy::SiteGroup;
use crate::test_identity::{
    able_client, accept, acceptor_for, acceptors, client_config, resumption,
};

const KEY_AUTHORIZATION: &str =
    "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA.NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs";
const TOKEN: &str = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA";

fn client(protocols: &[&str]) -> ClientConfig {
    let mut client = able_client();
    client.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    client
}

fn answering() -> (Acceptors, Challenges) {
    let mut acceptors = acceptors();
    let challenges = Challenges::default();
    acceptors.answer(&challenges);
    (acceptors, challenges)
}

/// The view of a client that was told nothing but a certificate: the certificate, and how the connection ended.
#[derive(Debug)]
struct Seen {
    certificate: Vec<u8>,
    ended_by_close_notify: bool,
    tls12: bool,
}

/// Runs the handshake of an authority, byte by byte if `cut` is 1.
fn ask(
    client: &ClientConfig,
    name: &str,
    acceptors: &Acceptors,
    cut: usize,
) -> Result<Seen, Option<AlertDescription>> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::new(client.clone()), name).expect("a client");
    let mut server = Box::new(Handshake::new(acceptors).expect("a handshake"));
    loop {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("memory");
        }
        assert!(!wire.is_empty(), "the handshake stands still");
        for piece in wire.chunks(cut) {
            server.feed.append(piece);
            let (said, is_over) = match server.advance() {
                Step::Blocked(mut next) => {
                    let said = next.outgoing.filled().to_vec();
                    next.outgoing.clear();
                    server = next;
                    (said, false)
                }
                Step::Challenged(outgoing) => {
                    server = Box::new(Handshake::new(acceptors).expect("a handshake"));
                    (outgoing.filled().to_vec(), true)
                }
                Step::Failed(_, outgoing) => return Err(alert(&mut client, outgoing.filled())),
                Step::Complete(_) => panic!("a connection"),
                Step::PlainHttp(_) => panic!("no plain HTTP"),
            };
            let mut ended_by_close_notify = false;
            let mut said = said.as_slice();
            while !said.is_empty() {
                client.read_tls(&mut said).expect("memory");
                let state = client.process_new_packets().expect("a good server");
                ended_by_close_notify = state.peer_has_closed();
            }
            if is_over {
                assert_eq!(client.alpn_protocol(), Some(ACME_TLS));
                let certificate = client.peer_certificates().expect("certificates")[0].to_vec();
                let tls12 = client.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_2);
                return Ok(Seen { certificate, ended_by_close_notify, tls12 });
            }
        }
    }
}

fn alert(client: &mut ClientConnection, mut said: &[u8]) -> Option<AlertDescription> {
    while !said.is_empty() {
        client.read_tls(&mut said).expect("memory");
        match client.process_new_packets() {
            Ok(_) => {}
            Err(Error::AlertReceived(alert)) => return Some(alert),
            Err(error) => panic!("{error}"),
        }
    }
    None
}

/// The names of a certificate, and the content of its acmeIdentifier.
fn facts(certificate: &[u8]) -> (Vec<String>, Vec<u8>) {
    let (_, certificate) = X509Certificate::from_der(certificate).expect("a certificate");
    let names = certificate.subject_alternative_name().expect("one").expect("names");
    let shown = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => format!("{bytes:?}"),
        other => panic!("{other}"),
    };
    let names = names.value.general_names.iter().map(shown).collect();
    let is_it = |it: &&x509_parser::prelude::X509Extension<'_>| {
        it.oid.to_id_string() == "1.3.6.1.5.5.7.1.31"
    };
    let extension = certificate.extensions().iter().find(is_it).expect("an acmeIdentifier");
    assert!(extension.critical);
    (names, extension.value.to_vec())
}

/// As RFC 8737 §3 has it: an octet string of 32 bytes.
fn identifier_of(key_authorization: &str) -> Vec<u8> {
    let hash = digest::digest(&digest::SHA256, key_authorization.as_bytes());
    [&[4, 32], hash.as_ref()].concat()
}

#[test]
fn an_authority_sees_the_certificate_and_nothing_else() {
    let (acceptors, challenges) = answering();
    challenges.present_tls_alpn("B.example", KEY_AUTHORIZATION).expect("room");

    let mut suites = provider::default_provider();
    suites.cipher_suites.retain(|suite| suite.tls13().is_none());
    let schemes = suites.signature_verification_algorithms.supported_schemes();
    let mut tls12 = client_config(suites, &schemes);
    tls12.alpn_protocols = vec![ACME_TLS.to_vec()];
    for (client, is_tls12) in [(client(&["acme-tls/1"]), false), (tls12, true)] {
        for cut in [1, usize::MAX] {
            let seen = ask(&client, "b.example", &acceptors, cut).expect("a handshake");
            assert!(seen.ended_by_close_notify, "{seen:?}");
            assert_eq!(seen.tls12, is_tls12);
            let (names, identifier) = facts(&seen.certificate);
            assert_eq!(names, ["B.example"]);
            assert_eq!(identifier, identifier_of(KEY_AUTHORIZATION));
        }
    }
    let [tls_alpn, http] = challenges.counted();
    assert_eq!((tls_alpn.kind, tls_alpn.answered, tls_alpn.unknown), ("tls-alpn-01", 4, 0));
    assert_eq!((http.kind, http.answered, http.unknown), ("http-01", 0, 0));
}

/// A HelloRetryRequest lies between the hello that is read and the certificate.
#[test]
fn an_authority_may_be_asked_for_another_key_share() {
    let (acceptors, challenges) = answering();
    challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION).expect("room");
    let mut groups = provider::default_provider();
    groups.kx_groups.insert(0, provider::kx_group::MLKEM768);
    let schemes = groups.signature_verification_algorithms.supported_schemes();
    let mut client = client_config(groups, &schemes);
    client.alpn_protocols = vec![ACME_TLS.to_vec()];
    let seen = ask(&client, "b.example", &acceptors, usize::MAX).expect("a handshake");
    assert_eq!(facts(&seen.certificate).1, identifier_of(KEY_AUTHORIZATION));
}

#[test]
fn addresses_are_asked_for_by_their_reverse_names() {
    let (acceptors, challenges) = answering();
    let v6 = "4.3.2.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    for (address, asked, shown) in [
        ("192.0.2.7", "7.2.0.192.in-addr.arpa", "[192, 0, 2, 7]"),
        ("2001:db8::1234", v6, "[32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 18, 52]"),
    ] {
        challenges.present_tls_alpn(address, KEY_AUTHORIZATION).expect("room");
        let seen = ask(&client(&["acme-tls/1"]), asked, &acceptors, usize::MAX);
        assert_eq!(facts(&seen.expect("a handshake").certificate).0, [shown]);
        challenges.withdraw_tls_alpn(address, TOKEN);
        let refused = ask(&client(&["acme-tls/1"]), asked, &acceptors, usize::MAX);
        assert_eq!(refused.unwrap_err(), Some(AlertDescription::NoApplicationProtocol));
    }
}

#[test]
fn nobody_else_sees_it() {
    let (acceptors, challenges) = answering();
    challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION).expect("room");
    for protocols in [&[][..], &["http/1.1"], &["acme-tls/1", "http/1.1"]] {
        let connected = accept(&Arc::new(client(protocols)), "b.example", &acceptors);
        let connected = connected.expect("a handshake");
        let leaf = &connected.client.peer_certificates().expect("certificates")[0];
        let (_, leaf) = X509Certificate::from_der(leaf).expect("a certificate");
        assert_eq!(leaf.subject().to_string(), "CN=a.example", "{protocols:?}");
    }
    let [tls_alpn, _] = challenges.counted();
    assert_eq!((tls_alpn.answered, tls_alpn.unknown), (0, 0));
}

#[test]
fn what_was_not_presented_ends_with_an_alert() {
    let (acceptors, challenges) = answering();
    challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION).expect("room");
    for name in ["a.example", "www.b.example", "127.0.0.1"] {
        let refused = ask(&client(&["acme-tls/1"]), name, &acceptors, usize::MAX);
        assert_eq!(refused.unwrap_err(), Some(AlertDescription::NoApplicationProtocol), "{name}");
    }
    assert_eq!(challenges.counted()[0].unknown, 3);
}

#[test]
fn names_that_nobody_has_are_validated_all_the_same() {
    let (mut acceptors, challenges) = answering();
    acceptors.refuse_others();
    let acceptors = acceptors.demanding_protocol();
    challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION).expect("room");
    let seen = ask(&client(&["acme-tls/1"]), "b.example", &acceptors, usize::MAX);
    assert!(seen.expect("a handshake").ended_by_close_notify);
}

#[test]
fn who_speaks_the_protocol_itself_keeps_it() {
    let speaking = SiteGroup { alpn: &[ACME_TLS], ..SiteGroup::default() };
    let mut acceptors = Acceptors::new(acceptor_for(&resumption(), &speaking));
    let challenges = Challenges::default();
    challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION).expect("room");
    acceptors.answer(&challenges);
    let connected = accept(&Arc::new(client(&["acme-tls/1"])), "b.example", &acceptors);
    assert!(connected.is_ok());
    assert_eq!(challenges.counted()[0].answered, 0);
}

#[test]
fn of_two_orders_for_a_name_the_newer_is_shown_until_it_ends() {
    let (acceptors, challenges) = answering();
    let shown = || {
        let seen = ask(&client(&["acme-tls/1"]), "b.example", &acceptors, usize::MAX);
        seen.map(|seen| facts(&seen.certificate).1)
    };
    for key_authorization in ["one.thumb", "two.thumb", "one.thumb"] {
        challenges.present_tls_alpn("b.example", key_authorization).expect("room");
        assert_eq!(shown(), Ok(identifier_of(key_authorization)));
    }
    challenges.withdraw_tls_alpn("b.example", "one");
    assert_eq!(shown(), Ok(identifier_of("two.thumb")));
    challenges.withdraw_tls_alpn("b.example", "three");
    assert_eq!(shown(), Ok(identifier_of("two.thumb")));
    challenges.withdraw_all();
    assert_eq!(shown(), Err(Some(AlertDescription::NoApplicationProtocol)));
}

#[test]
fn tokens_are_answered_by_their_key_authorizations_only() {
    let challenges = Challenges::default();
    assert_eq!(challenges.http(TOKEN), None);
    challenges.present_http(TOKEN, KEY_AUTHORIZATION).expect("room");
    assert_eq!(challenges.http(TOKEN).as_deref(), Some(KEY_AUTHORIZATION));
    for (token, key_authorization) in [
        ("other", KEY_AUTHORIZATION),
        ("", ".thumb"),
        ("a", "a"),
        ("a", "a."),
        ("a/b", "a/b.thumb"),
        ("a", "a.<b>"),
        ("a", &format!("a.{}", "b".repeat(KEY_AUTHORIZATION_BYTES_MAX))),
    ] {
        let refused = challenges.present_http(token, key_authorization);
        let said = refused.expect_err("no token").to_string();
        assert_eq!(said, "no key authorization of this token", "{key_authorization}");
    }
    challenges.withdraw_http(TOKEN);
    assert_eq!(challenges.http(TOKEN), None);
    assert_eq!((challenges.counted()[1].answered, challenges.counted()[1].unknown), (1, 2));
}

#[test]
fn there_is_a_bound_and_what_is_there_already_needs_no_room() {
    let challenges = Challenges::default();
    challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION).expect("room");
    for number in 1..CHALLENGES_MAX {
        let token = format!("token{number}");
        challenges.present_http(&token, &format!("{token}.thumb")).expect("room");
    }
    for refused in [
        challenges.present_http("more", "more.thumb"),
        challenges.present_tls_alpn("c.example", KEY_AUTHORIZATION),
    ] {
        let said = refused.expect_err("no room").to_string();
        assert_eq!(said, "as many challenges are answered as can be");
    }
    assert_eq!(challenges.present_http("token1", "token1.other"), Ok(()));
    assert_eq!(challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION), Ok(()));
    challenges.withdraw_http("token1");
    assert_eq!(challenges.present_http("more", "more.thumb"), Ok(()));
}

#[test]
fn names_that_no_certificate_can_have_are_refused() {
    let challenges = Challenges::default();
    for name in ["", "ä.example", &"a".repeat(300)] {
        let refused = challenges.present_tls_alpn(name, KEY_AUTHORIZATION);
        let said = refused.expect_err("no certificate").to_string();
        assert!(said.starts_with("no certificate can be made: "), "{name}: {said}");
    }
}
