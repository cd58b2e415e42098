//! What a client tells a server that breaks the handshake.

use super::*;
use crate::control::Alert;
use crate::handshake::{Handshake, HandshakeError, Step};
use crate::hello::MESSAGE_HEADER_BYTES;
use crate::records::{ContentType, HEADER_BYTES};

/// A client that has sent its hello, what a server answers, and that server.
fn answered(version: Version) -> (Box<ClientHandshake<'static>>, Vec<u8>, Box<Handshake>) {
    let authority = Authority::new("ca.example");
    let acceptors = serving(&signed(&authority, &lasting(&["a.example"])));
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

/// What the client says at its end, and why.
fn failed(mut client: Box<ClientHandshake<'_>>, bytes: &[u8]) -> (HandshakeError, Vec<u8>) {
    give(&mut client.feed, bytes);
    match client.advance() {
        ClientStep::Failed(error, outgoing) => (error, outgoing.filled().to_vec()),
        ClientStep::Blocked(_) => panic!("it waits for more"),
        ClientStep::Complete(..) => panic!("a handshake"),
    }
}

/// What a server hears of that.
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
