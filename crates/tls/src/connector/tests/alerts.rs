//! The alerts of a client to a server that breaks the handshake.

use std::sync::Mutex;

use rustls::sign::SingleCertAndKey;

use super::*;
use crate::buffers::Queue;
use crate::control::Alert;
use crate::handshake::{Handshake, HandshakeError, Step};
use crate::hello::MESSAGE_HEADER_BYTES;
use crate::records::{ContentType, HEADER_BYTES, RecordSealer};
use crate::secrets::{Secret, TrafficSecret};

/// A client that has sent its hello, what a server answers, and that server.
fn answered(version: Version) -> (Box<ClientHandshake<'static>>, Vec<u8>, Box<Handshake>) {
    let (authority, acceptors) = pair();
    let connector = connector(&only(version), trusting(&authority));
    let client = ClientHandshake::new(&connector, None).expect("a configuration");
    let ClientStep::Blocked(mut client) = Box::new(client).advance() else { panic!("no hello") };
    let mut server = Handshake::new(&acceptors).expect("a configuration");
    give(&mut server.feed, client.outgoing.filled());
    let Step::Blocked(mut server) = Box::new(server).advance() else { panic!("no answer") };
    client.outgoing.clear();
    let flight = server.outgoing.filled().to_vec();
    server.outgoing.clear();
    (client, flight, server)
}

fn give(feed: &mut crate::handshake::Feed, bytes: &[u8]) {
    feed.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
    feed.commit(bytes.len());
}

/// The ServerHello at the front of a flight, in a record of its own.
fn server_hello(flight: &[u8]) -> Vec<u8> {
    let bytes = usize::from(u16::from_be_bytes([flight[7], flight[8]]));
    let message = &flight[HEADER_BYTES..][..MESSAGE_HEADER_BYTES + bytes];
    let [high, low] = u16::try_from(message.len()).expect("a short one").to_be_bytes();
    [&[ContentType::Handshake.byte(), 3, 3, high, low], message].concat()
}

/// Returns what the client says at its end, and why.
fn failed(mut client: Box<ClientHandshake<'_>>, bytes: &[u8]) -> (HandshakeError, Vec<u8>) {
    give(&mut client.feed, bytes);
    match client.advance() {
        ClientStep::Failed(error, outgoing) => (error, outgoing.filled().to_vec()),
        ClientStep::Blocked(_) => panic!("it waits for more"),
        ClientStep::Complete(..) => panic!("a handshake"),
    }
}

/// Returns what a server hears of that.
fn heard(mut server: Box<Handshake>, said: &[u8]) -> HandshakeError {
    give(&mut server.feed, said);
    match server.advance() {
        Step::Failed(error, _) => error,
        _ => panic!("it heard nothing"),
    }
}

/// A record of this type that is only announced, and as long as that.
fn announced(content_type: u8, bytes: u16) -> Vec<u8> {
    let [high, low] = bytes.to_be_bytes();
    vec![content_type, 3, 3, high, low]
}

#[test]
fn a_record_that_cannot_be_is_answered_under_the_key_of_that_moment() {
    let application_data = ContentType::ApplicationData.byte();
    let mut rows =
        vec![(Version::Tls13, announced(application_data, 16_384 + 257), Alert::RECORD_OVERFLOW)];
    for version in VERSIONS {
        rows.push((version, announced(application_data, 18_500), Alert::RECORD_OVERFLOW));
        rows.push((version, announced(99, 10), Alert::UNEXPECTED_MESSAGE));
    }
    for (version, record, alert) in rows {
        let (client, flight, server) = answered(version);
        let (error, said) = failed(client, &[server_hello(&flight), record.clone()].concat());
        assert!(matches!(error, HandshakeError::Violation(_)), "{version:?}: {error}");
        let heard = heard(server, &said).alert_received();
        assert_eq!(heard.map(u8::from), Some(alert.0), "{version:?} {record:?}");
    }
}

/// The head of EncryptedExtensions of 200 KB.
const LONG: [u8; 4] = [8, 3, 13, 64];

/// The secret that a server needs to break its word: that of its handshake records.
#[derive(Debug, Default)]
struct ServerSecret(Mutex<Vec<u8>>);

impl rustls::KeyLog for ServerSecret {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        if label == "SERVER_HANDSHAKE_TRAFFIC_SECRET" {
            *self.0.lock().expect("a lock") = secret.to_vec();
        }
    }
}

/// rustls refuses it without an alert of its own.
#[test]
fn a_message_longer_than_any_is_answered_at_its_head() {
    let record = [&[ContentType::Handshake.byte(), 3, 3, 0, 4][..], &LONG].concat();
    // In place of the ServerHello; in TLS 1.2 behind it, too.
    for (version, is_behind) in
        [(Version::Tls12, false), (Version::Tls12, true), (Version::Tls13, false)]
    {
        let (client, flight, server) = answered(version);
        let front = if is_behind { server_hello(&flight) } else { Vec::new() };
        let (_, said) = failed(client, &[front, record.clone()].concat());
        let heard = heard(server, &said).alert_received();
        assert_eq!(heard.map(u8::from), Some(Alert::DECODE_ERROR.0), "{version:?} {is_behind}");
    }
}

#[test]
fn a_protected_message_longer_than_any_is_answered_at_its_head() {
    let (authority, identity) = vouched();
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(identity.certified()))));
    let secret = Arc::new(ServerSecret::default());
    config.key_log = Arc::clone(&secret) as Arc<dyn rustls::KeyLog>;
    let mut server = rustls::ServerConnection::new(config.into()).expect("a server");
    let connector = connector(&only(Version::Tls13), trusting(&authority));
    let client = ClientHandshake::new(&connector, None).expect("a configuration");
    let ClientStep::Blocked(mut client) = Box::new(client).advance() else { panic!("no hello") };
    server.read_tls(&mut client.outgoing.filled()).expect("memory");
    server.process_new_packets().expect("a good client");
    client.outgoing.clear();
    let mut flight = Vec::new();
    server.write_tls(&mut flight).expect("memory");

    let suite = server.negotiated_cipher_suite().and_then(|it| it.tls13()).expect("TLS 1.3");
    let secret = Secret::copy_of(&secret.0.lock().expect("a lock"));
    let keys = TrafficSecret::new(suite, secret).keys().expect("keys");
    let mut sealer = RecordSealer::new(keys).expect("keys");
    let mut record = Queue::default();
    record.append_sealed(&mut sealer, ContentType::Handshake, &LONG).expect("a record");
    let (_, said) = failed(client, &[&server_hello(&flight), record.filled()].concat());
    server.read_tls(&mut &said[..]).expect("memory");
    let heard = server.process_new_packets().expect_err("an alert");
    assert_eq!(heard, rustls::Error::AlertReceived(rustls::AlertDescription::DecodeError));
}

#[test]
fn a_handshake_that_the_server_cancels_is_ended_as_it_should_be() {
    let close_notify = [ContentType::Alert.byte(), 3, 3, 0, 2, 1, 0];
    for version in VERSIONS {
        // In place of its ServerHello, where it is not protected.
        let (client, _, _) = answered(version);
        let (error, said) = failed(client, &close_notify);
        assert_eq!(error.alert_received().map(u8::from), Some(0), "{version:?}: {error}");
        assert_eq!(said, close_notify, "{version:?}");
    }
}

/// The same the other way round, where it is protected (RFC 8446 §6.1).
#[test]
fn a_handshake_that_the_client_cancels_is_ended_as_it_should_be() {
    let (mut client, flight, server) = answered(Version::Tls13);
    give(&mut client.feed, &server_hello(&flight));
    let ClientStep::Blocked(mut client) = client.advance() else { panic!("a handshake") };
    client.append_alert(Alert::CLOSE_NOTIFY);
    let mut server = server;
    give(&mut server.feed, client.outgoing.filled());
    let Step::Failed(error, outgoing) = server.advance() else { panic!("it goes on") };
    assert_eq!(error.alert_received().map(u8::from), Some(0), "{error}");
    // Two bytes of alert, its type, and the tag.
    let said = outgoing.filled();
    assert_eq!((said.first(), said.len()), (Some(&23), HEADER_BYTES + 2 + 1 + 16), "{said:?}");
}
