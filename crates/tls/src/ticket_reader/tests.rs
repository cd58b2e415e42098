//! Tickets as a server sends them, whole, in pieces, several at once, and as none should.

use proptest::prelude::*;
use rustls::CipherSuite;

use super::*;
use crate::records::{ContentType, Keys, RecordOpener, whole_record_bytes};
use crate::session::Session;
use crate::stream::tests::handshake_in_memory;

/// A client's side after a handshake, and the handshake messages that the server sent behind it: two tickets.
fn client() -> (TicketReader, Vec<u8>) {
    let (established, secrets, connection) =
        handshake_in_memory(CipherSuite::TLS13_AES_128_GCM_SHA256);
    let Session { version, .. } = established.session;
    let keys = Keys::new(version, secrets.rx.0, &secrets.rx.1).expect("a suite");
    let mut opener = RecordOpener::new(&keys).expect("a suite");
    let mut wire = established.outgoing.filled().to_vec();
    let mut messages = Vec::new();
    while let Some(bytes) = whole_record_bytes(&wire).expect("records") {
        let mut record: Vec<u8> = wire.drain(..bytes).collect();
        let opened = opener.open(&mut record).expect("an honest server");
        assert_eq!(opened.content_type, ContentType::Handshake);
        messages.extend_from_slice(&record[opened.plaintext]);
    }
    (TicketReader::new(connection, SessionEnd::NEVER, Instant::now()), messages)
}

#[test]
fn tickets_may_share_a_record_and_stand_before_another_message() {
    let (mut client, tickets) = client();
    let key_update = [24, 0, 0, 1, 0];
    let record = [tickets.as_slice(), &key_update].concat();
    assert_eq!(client.take_tickets(&record, Instant::now()), Ok(&key_update[..]));
    assert_eq!(client.tickets.count, 2);
    let said =
        u32::from_be_bytes(*tickets[MESSAGE_HEADER_BYTES..].first_chunk().expect("a ticket"));
    assert_eq!(client.tickets.lifetime, Duration::from_secs(said.into()));
    assert!(said > 0);
    assert!(!client.is_inside_ticket());
}

#[test]
fn a_ticket_may_come_in_pieces_of_any_size() {
    proptest!(ProptestConfig::with_cases(16), |(pieces in prop::collection::vec(1_usize..40, 1..8))| {
        let (mut client, tickets) = client();
        let mut rest = tickets.as_slice();
        for bytes in pieces.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at((*bytes).min(rest.len()));
            prop_assert_eq!(client.take_tickets(piece, Instant::now()), Ok(&[][..]));
            rest = later;
        }
        prop_assert_eq!(client.tickets.count, 2);
        prop_assert!(!client.is_inside_ticket());
    });
}

#[test]
fn other_messages_are_left_alone() {
    let (mut client, _) = client();
    for message in [&[24, 0, 0, 1, 0][..], &[13, 0, 0, 0], &[]] {
        assert_eq!(client.take_tickets(message, Instant::now()), Ok(message));
    }
}

#[test]
fn a_malformed_a_longer_and_one_too_many_tickets_are_refused() {
    let (mut malformed, _) = client();
    let refused = malformed.take_tickets(&[4, 0, 0, 2, 0, 0], Instant::now());
    assert_eq!(refused.map_err(|violation| violation.alert), Err(Alert::DECODE_ERROR));

    let (mut longer, _) = client();
    let refused = longer.take_tickets(&[4, 255, 255, 255, 0], Instant::now());
    assert_eq!(refused.map_err(|violation| violation.what), Err("a ticket longer than any"));

    let (mut many, tickets) = client();
    let now = Instant::now();
    let refused = (0..TICKETS_AT_ONCE).find_map(|_| many.take_tickets(&tickets, now).err());
    assert_eq!(refused.map(|violation| violation.what), Some("too many tickets"));
}

#[test]
fn a_server_may_send_one_now_and_then_for_as_long_as_it_likes() {
    let (mut client, tickets) = client();
    for minutes in 0..200 {
        let now = Instant::now() + Duration::from_secs(60 * minutes);
        assert_eq!(client.take_tickets(&tickets, now), Ok(&[][..]), "after {minutes} minutes");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    proptest!(ProptestConfig::with_cases(64), |(bytes in prop::collection::vec(any::<u8>(), 0..64))| {
        let (mut client, _) = client();
        let _ = client.take_tickets(&[&[4, 0, 0][..], &bytes].concat(), Instant::now());
    });
}
