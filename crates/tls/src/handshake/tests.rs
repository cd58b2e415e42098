//! Handshakes that fail, as a peer that means ill can make them.

use kettle_kernel::ktls::Cipher;
use proptest::prelude::*;
use rustls::client::{Resumption as ClientResumption, Tls12Resumption};
use rustls::{ClientConnection, Error, ServerConfig};
use rustls_pki_types::ServerName;

use super::*;
use crate::policy::{Group, Policy, server_config};
use crate::test_identity::{able_client, acceptors, handshake, only, own_site, resumption};

fn config(policy: &Policy) -> Arc<ServerConfig> {
    server_config(policy, own_site(), &resumption()).expect("valid")
}

fn client_hello() -> Vec<u8> {
    let name = ServerName::try_from("a.example").expect("a name");
    let mut client = ClientConnection::new(able_client().into(), name).expect("a client");
    let mut wire = Vec::new();
    client.write_tls(&mut wire).expect("memory");
    wire
}

fn receive(acceptors: &Acceptors, bytes: &[u8]) -> Step {
    let mut handshake = Handshake::new(acceptors).expect("a handshake");
    handshake.feed.append(bytes);
    Box::new(handshake).advance()
}

#[test]
fn message_behind_a_faulty_one_in_its_record_gets_no_further_than_the_alert() {
    let two_empty_client_hellos = [22, 3, 1, 0, 8, 1, 0, 0, 0, 1, 0, 0, 0];
    let Step::Failed(_, outgoing) = receive(&acceptors(), &two_empty_client_hellos) else {
        panic!("an empty ClientHello was accepted");
    };
    assert_eq!(outgoing.filled(), [21, 3, 3, 0, 2, 2, 50], "decode_error");
}

#[test]
fn no_change_to_a_client_hello_makes_the_handshake_panic() {
    let acceptors = acceptors();
    let hello = client_hello();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let tail = prop::collection::vec(any::<u8>(), 0..64);
    proptest!(|(changes in changes, tail in tail)| {
        let mut bytes = hello.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.extend_from_slice(&tail);
        receive(&acceptors, &bytes);
    });
}

/// A close_notify, which is not fatal.
const CANCELLED: [u8; 7] = [21, 3, 3, 0, 2, 1, 0];

/// Returns the last words of the server to a client that resumes a TLS 1.2 session and then sends this instead of the rest of
/// its flight, or behind the first record of it.
fn last_words(
    cipher: Cipher,
    kept: Tls12Resumption,
    has_changed_cipher: bool,
    sent: &[u8],
) -> Error {
    let policy = Policy { suites: vec![cipher], ..only(Version::Tls12) };
    let config = config(&policy);
    let mut client = able_client();
    client.resumption = ClientResumption::in_memory_sessions(8).tls12_resumption(kept);
    let client = Arc::new(client);
    handshake(&client, &config, "a.example").expect("a full handshake");

    let name = ServerName::try_from("a.example").expect("a name");
    let resuming = Arc::clone(&client);
    let mut client = ClientConnection::new(client, name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("memory");
    let acceptor = Acceptor::new(&config, &policy.versions);
    let Step::Blocked(mut server) = receive(&acceptor.into(), &hello) else { panic!("no answer") };
    client.read_tls(&mut server.outgoing.filled()).expect("memory");
    client.process_new_packets().expect("an honest flight");
    server.outgoing.clear();
    assert_eq!(client.handshake_kind(), Some(HandshakeKind::Resumed));
    let mut flight = Vec::new();
    client.write_tls(&mut flight).expect("memory");
    let change_cipher_spec = if has_changed_cipher { &flight[..6] } else { &[] };
    server.feed.append(&[change_cipher_spec, sent].concat());
    let Step::Failed(_, outgoing) = server.advance() else { panic!("it goes on") };
    let (again, _) = handshake(&resuming, &config, "a.example").expect("a handshake");
    // Only what the server keeps can be forgotten (RFC 5246 §7.2.2).
    let is_kept_here = matches!(kept, Tls12Resumption::SessionIdOnly);
    let kind = match is_kept_here && sent != CANCELLED {
        true => HandshakeKind::Full,
        false => HandshakeKind::Resumed,
    };
    assert_eq!(again.handshake_kind(), Some(kind), "{sent:?}");
    client.read_tls(&mut outgoing.filled()).expect("memory");
    match client.process_new_packets() {
        Ok(state) if state.peer_has_closed() => Error::AlertReceived(AlertDescription::CloseNotify),
        Ok(_) => panic!("no alert"),
        Err(error) => error,
    }
}

#[test]
fn who_resumes_a_tls12_session_is_told_what_it_did_under_the_new_keys() {
    let unknown_type = [9, 3, 3, 0, 1, 0];
    let too_long = [22, 3, 3, 0xff, 0xff];
    let cases: [(&[u8], AlertDescription); 5] = [
        (&unknown_type, AlertDescription::UnexpectedMessage),
        (&too_long, AlertDescription::RecordOverflow),
        (&[21, 3, 3, 0, 2, 3, 0], AlertDescription::IllegalParameter),
        (&CANCELLED, AlertDescription::CloseNotify),
        // rustls has a word for that itself.
        (&[22, 3, 3, 0, 4, 14, 0, 0, 0], AlertDescription::UnexpectedMessage),
    ];
    for kept in [Tls12Resumption::SessionIdOrTickets, Tls12Resumption::SessionIdOnly] {
        for cipher in Policy::default().suites {
            for (sent, alert) in cases {
                let told = last_words(cipher, kept, false, sent);
                assert_eq!(told, Error::AlertReceived(alert), "{cipher:?} {sent:?}");
            }
            for (sent, alert) in &cases[..2] {
                let told = last_words(cipher, kept, true, sent);
                assert_eq!(told, Error::AlertReceived(*alert), "{cipher:?} {sent:?}");
            }
        }
    }
}

#[test]
fn another_name_behind_a_retry_is_an_illegal_parameter() {
    // No client sends a share of this group before it is asked for one.
    let policy = Policy { groups: vec![Group::P384], ..Policy::default() };
    let acceptor = Acceptor::new(&config(&policy), &policy.versions);
    let name = ServerName::try_from("a.example").expect("a name");
    let mut client = ClientConnection::new(able_client().into(), name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("memory");
    let Step::Blocked(mut server) = receive(&acceptor.into(), &hello) else { panic!("no retry") };
    client.read_tls(&mut server.outgoing.filled()).expect("memory");
    client.process_new_packets().expect("a retry");
    server.outgoing.clear();
    let mut again = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut again).expect("memory");
    }
    let place = again.windows(9).position(|bytes| bytes == b"a.example").expect("a name");
    again[place] = b'b';
    server.feed.append(&again);
    let Step::Failed(error, outgoing) = server.advance() else { panic!("it goes on") };
    assert_eq!(outgoing.filled(), [21, 3, 3, 0, 2, 2, 47], "illegal_parameter after {error}");
}
