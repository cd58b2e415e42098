//! Handshakes that fail, as a peer that means ill can make them.

use std::time::Duration;

use proptest::prelude::*;
use rcgen::PKCS_ECDSA_P256_SHA256;
use rustls::ClientConnection;
use rustls_pki_types::ServerName;

use super::*;
use crate::identity::Identities;
use crate::policy::{Policy, server_config};
use crate::test_identity::{able_client, identity};
use crate::tickets::SharedResumption;

fn acceptor() -> Acceptor {
    let mut identities = Identities::new();
    let site = vec![identity(&["a.example"], &PKCS_ECDSA_P256_SHA256)];
    identities.add_site(&["a.example".to_owned()], true, site);
    let resumption = SharedResumption::new(Duration::from_secs(3600), 64).expect("a key");
    let policy = Policy::default();
    let config = server_config(&policy, identities.into(), &resumption).expect("valid");
    Acceptor::new(&config, &policy.versions)
}

fn client_hello() -> Vec<u8> {
    let name = ServerName::try_from("a.example").expect("a name");
    let mut client = ClientConnection::new(able_client().into(), name).expect("a client");
    let mut wire = Vec::new();
    client.write_tls(&mut wire).expect("memory");
    wire
}

fn receive(acceptor: &Acceptor, bytes: &[u8]) -> Step {
    let mut handshake = Handshake::new(acceptor).expect("a handshake");
    handshake.feed.append(bytes);
    Box::new(handshake).advance()
}

#[test]
fn message_behind_a_faulty_one_in_its_record_gets_no_further_than_the_alert() {
    let two_empty_client_hellos = [22, 3, 1, 0, 8, 1, 0, 0, 0, 1, 0, 0, 0];
    let Step::Failed(_, outgoing) = receive(&acceptor(), &two_empty_client_hellos) else {
        panic!("an empty ClientHello was accepted");
    };
    assert_eq!(outgoing.filled(), [21, 3, 3, 0, 2, 2, 50], "decode_error");
}

#[test]
fn no_change_to_a_client_hello_makes_the_handshake_panic() {
    let (acceptor, hello) = (acceptor(), client_hello());
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let tail = prop::collection::vec(any::<u8>(), 0..64);
    proptest!(|(changes in changes, tail in tail)| {
        let mut bytes = hello.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.extend_from_slice(&tail);
        receive(&acceptor, &bytes);
    });
}
