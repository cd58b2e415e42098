//! A peer breaks the protocol after the handshake: it is told by an alert, wherever that alert is encrypted.

use kettle_tests::environment::paths_here;
use kettle_tests::http::get;
use kettle_tests::kettle::Kettle;
use kettle_tests::raw_session::{RawSession, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE};
use kettle_tests::setup::Setup;

#[test]
fn a_forged_record_is_answered_with_bad_record_mac() {
    after_a_response(|session| {
        let mut record = session.sending.seal(APPLICATION_DATA, &get("/70000"));
        *record.last_mut().unwrap() ^= 1;
        session.send_bytes(&record);
        BAD_RECORD_MAC
    });
}

#[test]
fn an_unprotected_record_is_answered_with_unexpected_message() {
    after_a_response(|session| {
        session.send_bytes(&[ALERT, 3, 3, 0, 2, 1, 0]);
        UNEXPECTED_MESSAGE
    });
}

#[test]
fn a_change_cipher_spec_after_the_handshake_is_answered_with_unexpected_message() {
    after_a_response(|session| {
        session.send_bytes(&[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1]);
        UNEXPECTED_MESSAGE
    });
}

#[test]
fn bytes_that_are_no_record_are_answered_with_unexpected_message() {
    after_a_response(|session| {
        session.send_bytes(&get("/70000"));
        UNEXPECTED_MESSAGE
    });
}

#[test]
fn a_record_longer_than_allowed_is_answered_with_record_overflow() {
    after_a_response(|session| {
        let record = session.sending.seal(APPLICATION_DATA, &vec![b'x'; 16_385]);
        session.send_bytes(&record);
        RECORD_OVERFLOW
    });
}

#[test]
fn a_ticket_from_a_client_is_answered_with_unexpected_message() {
    after_a_response(|session| {
        session.send(HANDSHAKE, &[4, 0, 0, 2, 0, 0]);
        UNEXPECTED_MESSAGE
    });
}

#[test]
fn padding_beyond_the_longest_plaintext_is_answered_with_record_overflow() {
    after_a_response(|session| {
        let mut padded = get("/70000");
        padded.push(APPLICATION_DATA);
        // `seal` adds one more zero, as if it were the type: one byte too many in all.
        padded.resize(16_385, 0);
        session.send(0, &padded);
        RECORD_OVERFLOW
    });
}

#[test]
fn a_record_between_the_halves_of_a_key_update_is_answered_with_unexpected_message() {
    for (content_type, content) in
        [(ALERT, &[1, 0][..]), (ALERT, &[1, 90]), (APPLICATION_DATA, b"x"), (APPLICATION_DATA, &[])]
    {
        after_a_response(|session| {
            session.send(HANDSHAKE, &[24, 0]);
            session.send(content_type, content);
            UNEXPECTED_MESSAGE
        });
    }
}

#[test]
fn a_key_update_with_something_behind_it_is_answered_with_unexpected_message() {
    after_a_response(|session| {
        session.send(HANDSHAKE, &[24, 0, 0, 1, 1, 24]);
        UNEXPECTED_MESSAGE
    });
}

#[test]
fn a_key_update_of_another_length_is_answered_with_decode_error() {
    for message in [&[24, 0, 0, 0][..], &[24, 0, 0, 2, 1, 0]] {
        after_a_response(|session| {
            session.send(HANDSHAKE, message);
            DECODE_ERROR
        });
    }
}

#[test]
fn an_empty_alert_is_answered_with_unexpected_message_and_a_long_one_with_decode_error() {
    for (content, alert) in [(&[][..], UNEXPECTED_MESSAGE), (&[1, 0, 1, 0], DECODE_ERROR)] {
        after_a_response(|session| {
            session.send(ALERT, content);
            alert
        });
    }
}

#[test]
fn a_flood_of_empty_records_is_answered_with_unexpected_message() {
    after_a_response(|session| {
        let flood: Vec<u8> =
            (0..100).flat_map(|_| session.sending.seal(APPLICATION_DATA, &[])).collect();
        session.send_bytes(&flood);
        UNEXPECTED_MESSAGE
    });
}

#[test]
fn a_padded_record_is_as_good_as_any() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        let mut session = RawSession::connect(kettle.address_by(path));
        let mut padded = get("/70000");
        // The content type ends the content; zeros follow, the last of which `seal` takes for the type.
        padded.push(APPLICATION_DATA);
        padded.resize(padded.len() + 300, 0);
        session.send(0, &padded);
        session.bodies(70_000);
    }
}

#[test]
fn a_close_notify_is_answered_in_kind() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        let mut session = RawSession::connect(kettle.address_by(path));
        session.send(APPLICATION_DATA, &get("/70000"));
        session.send(ALERT, &[1, 0]);
        let end = session.receive_beyond(&[HANDSHAKE, APPLICATION_DATA]);
        assert_eq!(end, Received::Record(ALERT, vec![1, 0]), "{path}");
        assert_eq!(session.receive(), Received::Closed);
    }
}

/// By every path: a response, which moves the connection where it belongs, then the offence. It returns the alert to expect.
fn after_a_response(commit: impl Fn(&mut RawSession) -> u8) {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        let mut session = RawSession::connect(kettle.address_by(path));
        session.send(APPLICATION_DATA, &get("/70000"));
        session.bodies(70_000);
        let alert = commit(&mut session);
        let answer = session.receive_beyond(&[HANDSHAKE, APPLICATION_DATA]);
        assert_eq!(answer, Received::Record(ALERT, vec![2, alert]), "{path}");
        assert_eq!(session.receive(), Received::Closed, "{path}");
    }
}

const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const DECODE_ERROR: u8 = 50;
