//! Which acceptor a client gets, however its first bytes come.

use rustls::crypto::aws_lc_rs;
use rustls::{AlertDescription, ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use super::*;
use crate::policy::Group;
use crate::session::Alpn;
use crate::test_identity::{
    Refused, able_client, accept, accept_in_pieces, acceptor_for, acceptor_with, client_config,
    only, resumption,
};

fn group(service: &'static str) -> SiteGroup<'static> {
    SiteGroup { service, ..SiteGroup::default() }
}

/// Everybody gets `https`, and some names another.
fn acceptors() -> Acceptors {
    let resumption = resumption();
    let mut acceptors = Acceptors::new(acceptor_for(&resumption, &group("https")));
    let other = acceptor_with(&only(Version::Tls12), &resumption, &group("other"));
    acceptors.add(["b.example", "*.c.example", "127.0.0.1"], &other);
    acceptors
}

fn client_for(name: &str) -> ClientConnection {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    ClientConnection::new(able_client().into(), name).expect("a client")
}

fn service(
    name: &str,
    acceptors: &Acceptors,
    cut: impl Fn(Vec<u8>) -> Vec<Vec<u8>>,
) -> &'static str {
    let connected = accept_in_pieces(client_for(name), acceptors, cut).expect("a handshake");
    let session = connected.server.session;
    let of = |service| Some(group(service).audience()) == session.audience;
    match session.version {
        Version::Tls13 if of("https") => "https",
        Version::Tls12 if of("other") => "other",
        _ => panic!("{session:?}"),
    }
}

fn whole(wire: Vec<u8>) -> Vec<Vec<u8>> {
    vec![wire]
}

#[test]
fn name_decides() {
    let acceptors = acceptors();
    for (name, expected) in [
        ("b.example", "other"),
        ("B.EXAMPLE", "other"),
        ("x.c.example", "other"),
        ("c.example", "https"),
        ("x.x.c.example", "https"),
        ("a.example", "https"),
        // A client that asks for an address sends no name.
        ("127.0.0.1", "https"),
    ] {
        assert_eq!(service(name, &acceptors, whole), expected, "{name}");
    }
}

#[test]
fn hello_may_come_byte_by_byte() {
    let acceptors = acceptors();
    let bytes = |wire: Vec<u8>| wire.into_iter().map(|byte| vec![byte]).collect();
    assert_eq!(service("b.example", &acceptors, bytes), "other");
    assert_eq!(service("a.example", &acceptors, bytes), "https");
}

#[test]
fn hello_may_be_split_over_records_at_each_byte() {
    let acceptors = acceptors();
    let mut hello = Vec::new();
    client_for("b.example").write_tls(&mut hello).expect("memory");
    for at in 1..hello.len() - 5 {
        let split = |wire: Vec<u8>| match wire.split_first_chunk::<5>() {
            // Only the hello: what follows is protected, or ends with its record.
            Some((header, message)) if message.first() == Some(&1) && header[0] == 22 => {
                let record = |part: &[u8]| [&[22, 3, 1, 0, 0][..], part].concat();
                let (front, back) = message.split_at(at.min(message.len() - 1));
                let mut records = [record(front), record(back)];
                for record in &mut records {
                    let bytes = u16::try_from(record.len() - 5).expect("short").to_be_bytes();
                    record[3..5].copy_from_slice(&bytes);
                }
                vec![records.concat()]
            }
            _ => vec![wire],
        };
        assert_eq!(service("b.example", &acceptors, split), "other", "{at}");
    }
}

#[test]
fn warnings_before_the_hello_change_nothing() {
    let acceptors = acceptors();
    for (name, expected) in [("a.example", "https"), ("b.example", "other")] {
        let warned = |wire: Vec<u8>| match wire.first() {
            Some(22) if wire.get(5) == Some(&1) => {
                vec![[&[21, 3, 1, 0, 2, 1, 90], wire.as_slice()].concat()]
            }
            _ => vec![wire],
        };
        assert_eq!(service(name, &acceptors, warned), expected, "{name}");
    }
}

#[test]
fn choice_holds_when_the_client_is_asked_again() {
    let resumption = resumption();
    let mut acceptors = Acceptors::new(acceptor_for(&resumption, &group("https")));
    let p384 = Policy { groups: vec![Group::P384], ..Policy::default() };
    acceptors.add(["b.example"], &acceptor_with(&p384, &resumption, &group("other")));
    let connected = accept(&able_client().into(), "b.example", &acceptors).expect("a handshake");
    assert_eq!(connected.server.session.group, "P-384");
    assert_eq!(connected.server.session.audience, Some(group("other").audience()));
}

fn refusal(client: ClientConfig, name: &str, acceptors: &Acceptors) -> (String, AlertDescription) {
    match accept(&client.into(), name, acceptors) {
        Err(Refused { server, client: Some(alert) }) => (server.reason().to_owned(), alert),
        Err(refused) => panic!("{refused:?}"),
        Ok(_) => panic!("{name} was accepted"),
    }
}

#[test]
fn names_of_nobody_are_refused_where_the_listener_says_so() {
    let mut acceptors = acceptors();
    acceptors.refuse_others();
    assert_eq!(service("b.example", &acceptors, whole), "other");
    let (reason, alert) = refusal(able_client(), "a.example", &acceptors);
    assert_eq!((reason.as_str(), alert), ("unrecognized_name", AlertDescription::UnrecognisedName));
    let (_, alert) = refusal(able_client(), "127.0.0.1", &acceptors);
    assert_eq!(alert, AlertDescription::MissingExtension);
}

#[test]
fn protocol_is_agreed_on_or_refused() {
    let resumption = resumption();
    let offering = |protocols: &[&[u8]]| {
        let mut client = able_client();
        client.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        client
    };
    let both: &[&[u8]] = &[b"mail", b"http/1.1"];
    for is_alpn_required in [false, true] {
        let group = SiteGroup { alpn: both, is_alpn_required, ..SiteGroup::default() };
        let acceptors = acceptor_for(&resumption, &group).into();
        let agreed = |client: ClientConfig| {
            let connected = accept(&client.into(), "a.example", &acceptors).expect("a handshake");
            assert_eq!(
                connected.client.alpn_protocol(),
                connected.server.session.alpn.as_ref().map(Alpn::as_bytes)
            );
            connected.server.session.alpn
        };
        assert_eq!(agreed(offering(&[b"http/1.1", b"mail"])), Some(Alpn::new(b"mail")));
        let expected =
            ("no_application_protocol".to_owned(), AlertDescription::NoApplicationProtocol);
        assert_eq!(refusal(offering(&[b"h2"]), "a.example", &acceptors), expected);
        if is_alpn_required {
            assert_eq!(refusal(offering(&[]), "a.example", &acceptors), expected);
        } else {
            assert_eq!(agreed(offering(&[])), None);
        }
    }
}

#[test]
fn one_that_shares_nothing_is_told_by_the_acceptor_of_its_name() {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suite.tls13().is_some());
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let only_tls13 = client_config(provider, &schemes);
    let acceptors = acceptors();
    assert!(accept(&only_tls13.clone().into(), "a.example", &acceptors).is_ok());
    let (_, alert) = refusal(only_tls13, "b.example", &acceptors);
    assert_eq!(alert, AlertDescription::ProtocolVersion);
}

#[test]
fn a_name_whose_certificate_is_awaited_is_refused_by_an_alert_of_its_own() {
    let mut identities = Identities::new();
    identities.add_awaiting(&["b.example".to_owned(), "127.0.0.1".to_owned()], Vec::new());
    let mut acceptors = acceptors();
    acceptors.refuse_awaited(&Arc::new(identities));
    for name in ["b.example", "127.0.0.1"] {
        let refused = accept_in_pieces(client_for(name), &acceptors, whole);
        let Refused { server, client } = refused.err().expect("no handshake");
        assert_eq!(server.reason(), "certificate_awaited");
        assert_eq!(client, Some(AlertDescription::UnrecognisedName), "{name}");
    }
    acceptors.refuse_awaited(&Arc::default());
    assert_eq!(service("b.example", &acceptors, whole), "other");
}
