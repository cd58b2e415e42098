//! Answers as servers give them, and as they should not.

use super::*;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind], &length[..], body].concat()
}

fn record(content_type: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[content_type, 3, 3], &length[..], content].concat()
}

#[test]
fn messages_may_be_spread_over_records() {
    let hello = [&[3, 3][..], &RETRY_RANDOM, &[0]].concat();
    let messages = [
        message(SERVER_HELLO, &hello),
        message(11, &[0; 300]),
        message(CERTIFICATE_STATUS, &[1]),
        message(NEW_SESSION_TICKET, &[0, 0, 0x1c, 0x20, 0, 0]),
    ]
    .concat();
    let expected = Answer { is_retry: true, is_stapled: true, ticket_seconds: Some(7200) };
    for piece in [1, 5, 100, 1_000] {
        let wire: Vec<u8> =
            messages.chunks(piece).flat_map(|part| record(HANDSHAKE, part)).collect();
        assert_eq!(Answer::read(&wire), expected, "{piece}");
        // Behind the keys nothing can be read.
        let sealed = [record(20, &[1]), wire].concat();
        assert_eq!(Answer::read(&sealed), Answer::default());
    }
}

#[test]
fn what_is_cut_short_says_what_it_says() {
    let wire = record(HANDSHAKE, &message(NEW_SESSION_TICKET, &[0, 0, 0, 1]));
    for bytes in 0..wire.len() {
        assert_eq!(Answer::read(&wire[..bytes]), Answer::default());
    }
    assert_eq!(Answer::read(&wire).ticket_seconds, Some(1));
    assert_eq!(Answer::read(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Answer::default());
}
