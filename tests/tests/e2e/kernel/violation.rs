//! A peer breaks the protocol after the handshake: it is told by an alert, wherever that alert is encrypted.

use kettle_tests::raw_session::Received;
use kettle_tests::record::{ALERT, CHANGE_CIPHER_SPEC, HANDSHAKE};

use super::*;

/// By every path: a response, which moves the connection where it belongs, then the offence, which its alert answers.
#[test]
fn each_violation_is_answered_with_its_alert() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for path in paths_here() {
        for (what, commit, alert) in VIOLATIONS {
            let mut session = RawSession::connect(kettle.address_by(path));
            session.send(APPLICATION_DATA, &get("/70000"));
            session.bodies(70_000);
            commit(&mut session);
            let answer = session.receive_beyond(&[HANDSHAKE, APPLICATION_DATA]);
            assert_eq!(answer, Received::Record(ALERT, vec![2, *alert]), "{what} by {path}");
            assert_eq!(session.receive(), Received::Closed, "{what} by {path}");
        }
    }
}

const VIOLATIONS: &[(&str, Violation, u8)] = &[
    ("a forged record", forged, BAD_RECORD_MAC),
    ("an unprotected one", |it| it.send_bytes(&[ALERT, 3, 3, 0, 2, 1, 0]), UNEXPECTED_MESSAGE),
    (
        "change_cipher_spec after the handshake",
        |it| it.send_bytes(&[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1]),
        UNEXPECTED_MESSAGE,
    ),
    ("bytes that are no record", |it| it.send_bytes(&get("/70000")), UNEXPECTED_MESSAGE),
    ("a record too long", |it| it.send(APPLICATION_DATA, &[b'x'; 16_385]), RECORD_OVERFLOW),
    ("a ticket from a client", |it| it.send(HANDSHAKE, &[4, 0, 0, 2, 0, 0]), UNEXPECTED_MESSAGE),
    ("padding beyond the longest plaintext", padded_too_far, RECORD_OVERFLOW),
    ("an end within a key update", |it| within_update(it, ALERT, &[1, 0]), UNEXPECTED_MESSAGE),
    ("a warning within one", |it| within_update(it, ALERT, &[1, 90]), UNEXPECTED_MESSAGE),
    ("data within one", |it| within_update(it, APPLICATION_DATA, b"x"), UNEXPECTED_MESSAGE),
    ("nothing within one", |it| within_update(it, APPLICATION_DATA, &[]), UNEXPECTED_MESSAGE),
    (
        "a key update with something behind it",
        |it| it.send(HANDSHAKE, &[24, 0, 0, 1, 1, 24]),
        UNEXPECTED_MESSAGE,
    ),
    ("an empty key update", |it| it.send(HANDSHAKE, &[24, 0, 0, 0]), DECODE_ERROR),
    ("a long key update", |it| it.send(HANDSHAKE, &[24, 0, 0, 2, 1, 0]), DECODE_ERROR),
    ("an empty alert", |it| it.send(ALERT, &[]), UNEXPECTED_MESSAGE),
    ("a long alert", |it| it.send(ALERT, &[1, 0, 1, 0]), DECODE_ERROR),
    ("a flood of empty records", flood, UNEXPECTED_MESSAGE),
];

type Violation = fn(&mut RawSession);

fn forged(session: &mut RawSession) {
    let mut record = session.sending.seal(APPLICATION_DATA, &get("/70000"));
    *record.last_mut().unwrap() ^= 1;
    session.send_bytes(&record);
}

fn padded_too_far(session: &mut RawSession) {
    let mut padded = get("/70000");
    padded.push(APPLICATION_DATA);
    // `seal` adds one more zero, as if it were the type: one byte too many in all.
    padded.resize(16_385, 0);
    session.send(0, &padded);
}

/// A record between the halves of a key update.
fn within_update(session: &mut RawSession, content_type: u8, content: &[u8]) {
    session.send(HANDSHAKE, &[24, 0]);
    session.send(content_type, content);
}

fn flood(session: &mut RawSession) {
    let record = |_| session.sending.seal(APPLICATION_DATA, &[]);
    let records: Vec<u8> = (0..100).flat_map(record).collect();
    session.send_bytes(&records);
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

const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const DECODE_ERROR: u8 = 50;
