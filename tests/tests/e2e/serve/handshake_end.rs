//! Handshakes that fail: who broke off is let go at once, who broke the protocol is told how.

use std::net::Shutdown;
use std::time::Instant;

use kettle_tests::raw_handshake::{
    ALPN, EARLY_DATA, KEY_SHARE, RENEGOTIATION_INFO, RawHandshake, RawHello, SIGNATURE_ALGORITHMS,
    SUPPORTED_GROUPS, SUPPORTED_VERSIONS, message, plain_records,
};
use kettle_tests::raw_session::Received;
use kettle_tests::record::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE};

use super::*;

#[test]
fn what_a_hello_must_not_be_gets_the_alert_of_its_rfc() {
    let kettle = Kettle::start(with_a_file());
    let hello = RawHello::default;
    let tls12 = || hello().without(SUPPORTED_VERSIONS);
    let fallback =
        |hello: RawHello| RawHello { suites: vec![0x13, 1, 0xc0, 0x2b, 0x56, 0], ..hello };
    let protocols = b"\0\x09\x08http/1.1";
    let twice = |hello: RawHello| hello.with(ALPN, protocols).with(ALPN, protocols);
    let cases: [(&str, RawHello, u8); 11] = [
        ("SSL 3.0", RawHello { legacy_version: 0x0300, ..hello() }, PROTOCOL_VERSION),
        ("a fallback to TLS 1.2", fallback(tls12()), INAPPROPRIATE_FALLBACK),
        (
            "a fallback to TLS 1.1",
            fallback(RawHello { legacy_version: 0x0302, ..tls12() }),
            INAPPROPRIATE_FALLBACK,
        ),
        ("a renegotiation", hello().with(RENEGOTIATION_INFO, &[2, 7, 7]), HANDSHAKE_FAILURE),
        ("no groups", hello().without(SUPPORTED_GROUPS), MISSING_EXTENSION),
        ("no schemes", hello().without(SIGNATURE_ALGORITHMS), MISSING_EXTENSION),
        ("no share", RawHello { has_key_share: false, ..hello() }, MISSING_EXTENSION),
        (
            "nothing but versions",
            RawHello { has_key_share: false, ..hello() }
                .without(SUPPORTED_GROUPS)
                .without(SIGNATURE_ALGORITHMS),
            MISSING_EXTENSION,
        ),
        ("protocols twice", twice(hello()), ILLEGAL_PARAMETER),
        ("the same in TLS 1.2", twice(tls12()), ILLEGAL_PARAMETER),
        ("GREASE twice", hello().with(0x0a0a, &[]).with(0x0a0a, &[]), ILLEGAL_PARAMETER),
    ];
    for (case, hello, alert) in cases {
        for fragment_bytes in [16_384, 7] {
            let hello = RawHello { fragment_bytes, ..hello.clone() };
            let records = hello.records(&[9; 32]);
            expect_alert(&kettle, &records, alert, case);
            // A warning ahead of it changes nothing.
            expect_alert(
                &kettle,
                &[&[ALERT, 3, 3, 0, 2, 1, 90], records.as_slice()].concat(),
                alert,
                case,
            );
            expect_alert_after_retry(&kettle, &records, alert, case);
        }
    }
    // An empty one is what an honest client sends (RFC 5746 §3.4), and no fallback is one to our best version.
    let honest = hello().with(RENEGOTIATION_INFO, &[0]);
    let honest = RawHello { suites: vec![0x13, 1, 0x56, 0], ..honest };
    answers(RawHandshake::begin(kettle.address(), &honest));
}

#[test]
fn records_that_no_handshake_has_get_an_alert_at_once() {
    let kettle = Kettle::start(with_a_file());
    let hello = RawHello::default().records(&[9; 32]);
    let half = &plain_records(HANDSHAKE, &hello[5..105], 16_384);
    let warning = [ALERT, 3, 3, 0, 2, 1, 41];
    let first = |kind, body: &[u8]| plain_records(HANDSHAKE, &message(kind, body), 16_384);
    let cases: [(&str, Vec<u8>, u8); 14] = [
        ("an empty KeyUpdate in place of a hello", first(24, &[]), UNEXPECTED_MESSAGE),
        ("a long KeyUpdate in place of a hello", first(24, &[0; 40]), UNEXPECTED_MESSAGE),
        ("a ServerHello in place of a hello", first(2, &[7]), UNEXPECTED_MESSAGE),
        ("an unknown type", vec![24], UNEXPECTED_MESSAGE),
        ("a type of SSL 2", vec![0x80, 0x2e, 1, 3, 1], UNEXPECTED_MESSAGE),
        ("a record too long", vec![HANDSHAKE, 3, 1, 0x40, 1], RECORD_OVERFLOW),
        ("an empty record", vec![HANDSHAKE, 3, 1, 0, 0], UNEXPECTED_MESSAGE),
        (
            "data inside a hello",
            [half, &[APPLICATION_DATA, 3, 3, 0, 1, 7][..]].concat(),
            UNEXPECTED_MESSAGE,
        ),
        (
            "a change of cipher inside a hello",
            [half, &[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1][..]].concat(),
            UNEXPECTED_MESSAGE,
        ),
        ("a warning inside a hello", [half, &warning[..]].concat(), UNEXPECTED_MESSAGE),
        ("warnings without end", warning.repeat(40), UNEXPECTED_MESSAGE),
        ("half an alert", vec![ALERT, 3, 3, 0, 1, 2], UNEXPECTED_MESSAGE),
        ("an alert of no level", vec![ALERT, 3, 3, 0, 2, 3, 40], ILLEGAL_PARAMETER),
        (
            "a message longer than any",
            plain_records(HANDSHAKE, &[1, 1, 0, 0], 16_384),
            DECODE_ERROR,
        ),
    ];
    for (case, sent, alert) in cases {
        expect_alert(&kettle, &sent, alert, case);
    }
}

#[test]
fn a_key_exchange_without_a_point_gets_an_alert() {
    let kettle = Kettle::start(with_a_file());
    for body in [&[0][..], &[], &[1, 7], &[33, 7]] {
        let sent = plain_records(HANDSHAKE, &message(16, body), 16_384);
        let answer = after_the_flight_of_tls12(&kettle, &sent);
        let [ALERT, 3, 3, 0, 2, 2, alert] = answer[..] else { panic!("{body:?}: {answer:?}") };
        assert!([ILLEGAL_PARAMETER, DECODE_ERROR].contains(&alert), "{body:?}: {alert}");
    }
}

/// The server's keys change with its own Finished, which comes last.
#[test]
fn faults_in_the_middle_of_a_tls12_handshake_get_an_alert_in_the_clear() {
    let kettle = Kettle::start(with_a_file());
    let point = [&[32][..], &[9; 32]].concat();
    let exchange = &plain_records(HANDSHAKE, &message(16, &point), 16_384)[..];
    let half = &plain_records(HANDSHAKE, &message(16, &point)[..10], 16_384)[..];
    let change = &[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1][..];
    let data = &[APPLICATION_DATA, 3, 3, 0, 1, 7][..];
    let warning = &[ALERT, 3, 3, 0, 2, 1, 90][..];
    let empty = &[HANDSHAKE, 3, 3, 0, 0][..];
    let plain_finished = &plain_records(HANDSHAKE, &message(20, &[7; 12]), 16_384)[..];
    let odd_finished = &[&[HANDSHAKE, 3, 3, 0, 40][..], &[7; 40]].concat()[..];
    let too_long = &plain_records(HANDSHAKE, &[16, 1, 0, 0], 16_384)[..];
    let two_bytes = &[CHANGE_CIPHER_SPEC, 3, 3, 0, 2, 1, 1][..];
    let other_value = &[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 2][..];
    let cases: [(&str, &[&[u8]], u8); 13] = [
        ("a change of cipher of two bytes", &[exchange, two_bytes], UNEXPECTED_MESSAGE),
        ("a change of cipher of another value", &[exchange, other_value], UNEXPECTED_MESSAGE),
        ("data inside a key exchange", &[half, data], UNEXPECTED_MESSAGE),
        ("a warning inside a key exchange", &[half, warning], UNEXPECTED_MESSAGE),
        ("an empty record inside a key exchange", &[half, empty], UNEXPECTED_MESSAGE),
        ("an empty record", &[empty], UNEXPECTED_MESSAGE),
        ("a message longer than any", &[too_long], DECODE_ERROR),
        ("a change of cipher too early", &[change], UNEXPECTED_MESSAGE),
        ("two key exchanges", &[exchange, exchange], UNEXPECTED_MESSAGE),
        ("a Finished in the clear", &[exchange, plain_finished], UNEXPECTED_MESSAGE),
        ("data before the Finished", &[exchange, data], UNEXPECTED_MESSAGE),
        ("warnings without end", &[exchange, &warning.repeat(40)], UNEXPECTED_MESSAGE),
        ("a Finished nobody sealed", &[exchange, change, odd_finished], BAD_RECORD_MAC),
    ];
    for (case, sent, alert) in cases {
        let answer = after_the_flight_of_tls12(&kettle, &sent.concat());
        assert_eq!(answer, [ALERT, 3, 3, 0, 2, 2, alert], "{case}");
    }
    // A client that gives up gets no answer.
    for before in [half, exchange] {
        let sent = [before, &[ALERT, 3, 3, 0, 2, 2, 40]].concat();
        assert_eq!(after_the_flight_of_tls12(&kettle, &sent), [0; 0]);
    }
    kettle.wait_until_idle();
}

/// Says hello in TLS 1.2, and this behind the server's flight. Returns what comes then, to the end.
fn after_the_flight_of_tls12(kettle: &Kettle, sent: &[u8]) -> Vec<u8> {
    let hello = RawHello {
        suites: vec![0xc0, 0x2b, 0xc0, 0x2f],
        has_key_share: false,
        ..RawHello::default().without(SUPPORTED_VERSIONS)
    };
    let mut wire = Wire::connect(kettle.address());
    wire.write_all(&hello.records(&[])).unwrap();
    // ServerHelloDone ends the flight.
    while !wire.received.ends_with(&[14, 0, 0, 0]) {
        assert_ne!(wire.read(&mut [0; 16_384]).unwrap(), 0, "closed in its flight");
    }
    let flight_bytes = wire.received.len();
    wire.write_all(sent).unwrap();
    wire.read_to_end();
    wire.received.split_off(flight_bytes)
}

#[test]
fn faults_under_the_handshake_keys_get_an_alert_under_the_servers() {
    let kettle = Kettle::start(with_a_file());
    // With early data announced, what does not authenticate is passed over, and nothing else.
    for hello in [RawHello::default(), RawHello::default().with(EARLY_DATA, &[])] {
        for (alert, faults) in [
            (UNEXPECTED_MESSAGE, &UNEXPECTED[..]),
            (DECODE_ERROR, &MALFORMED),
            (RECORD_OVERFLOW, &[("a record too long", |_| vec![APPLICATION_DATA, 3, 3, 0x41, 1])]),
            (DECRYPT_ERROR, &[("another Finished", another_finished)]),
        ] {
            for (case, fault) in faults {
                let mut handshake = RawHandshake::begin(kettle.address(), &hello);
                let sent = fault(&mut handshake);
                let mut session = handshake.send_instead(&sent);
                assert_eq!(session.receive(), Received::Record(ALERT, vec![2, alert]), "{case}");
                assert_eq!(session.receive(), Received::Closed, "{case}");
            }
        }
    }
}

/// A fault's name, and its making.
type Fault = (&'static str, fn(&mut RawHandshake) -> Vec<u8>);

const UNEXPECTED: [Fault; 12] = [
    ("a change of cipher of two bytes", |_| vec![CHANGE_CIPHER_SPEC, 3, 3, 0, 2, 1, 1]),
    ("a change of cipher of another value", |_| vec![CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 2]),
    ("an empty alert", |it| it.sending.seal(ALERT, &[])),
    ("an empty padded alert", |it| it.sending.seal_inner([&[ALERT], [0; 30].as_slice()].concat())),
    ("an empty handshake record", |it| it.sending.seal(HANDSHAKE, &[])),
    ("a Finished in the clear", |it| plain_records(HANDSHAKE, &it.finished, 99)),
    ("nothing but padding", |it| it.sending.seal_inner(vec![0; 20])),
    ("an empty handshake record as long as a Finished", |it| {
        let empty = it.sending.seal_inner([&[HANDSHAKE], [0; 36].as_slice()].concat());
        [empty, it.sending.seal(HANDSHAKE, &it.finished)].concat()
    }),
    ("warnings without end", |it| (0..40).flat_map(|_| it.sending.seal(ALERT, &[1, 90])).collect()),
    ("an empty record behind half a Finished", |it| {
        let half = it.sending.seal(HANDSHAKE, &it.finished[..10]);
        [half, it.sending.seal(HANDSHAKE, &[])].concat()
    }),
    ("data inside a Finished", |it| {
        let half = it.sending.seal(HANDSHAKE, &it.finished[..10]);
        [half, it.sending.seal(APPLICATION_DATA, b"data")].concat()
    }),
    ("a KeyUpdate in the record of the Finished", |it| {
        let both = [it.finished.as_slice(), &[24, 0, 0, 1, 0]].concat();
        it.sending.seal(HANDSHAKE, &both)
    }),
];

const MALFORMED: [Fault; 3] = [
    ("a short Finished", |it| it.sending.seal(HANDSHAKE, &message(20, &it.finished[4..35]))),
    ("a long Finished", |it| {
        let long = message(20, &[&it.finished[4..], &[0; 16]].concat());
        it.sending.seal(HANDSHAKE, &long)
    }),
    ("a message longer than any", |it| it.sending.seal(HANDSHAKE, &[20, 1, 0, 0])),
];

fn another_finished(handshake: &mut RawHandshake) -> Vec<u8> {
    *handshake.finished.last_mut().unwrap() ^= 1;
    handshake.sending.seal(HANDSHAKE, &handshake.finished)
}

#[test]
fn who_ends_a_handshake_is_let_go_at_once() {
    let kettle = Kettle::start(with_a_file());
    let hello = RawHello::default().records(&[9; 32]);
    for (said, answer) in [([2, 40], &[][..]), ([2, 0], &CLOSE_NOTIFY), ([1, 0], &CLOSE_NOTIFY)] {
        let alert = [ALERT, 3, 3, 0, 2, said[0], said[1]];
        // Alone, behind half a hello, and behind a whole one with the server's answer under way.
        let began = Instant::now();
        let received = Wire::answer(kettle.address(), &alert);
        assert_eq!(received, answer, "{said:?}");
        let mut wire = Wire::connect(kettle.address());
        let half = plain_records(HANDSHAKE, &hello[5..60], 16_384);
        wire.write_all(&[half.as_slice(), &alert].concat()).unwrap();
        wire.read_to_end();
        let _ = Wire::answer(kettle.address(), &[hello.as_slice(), &alert].concat());
        kettle.wait_until_idle();
        assert_at_once(began);
    }
    for (said, answer) in [
        ([2, 40], Received::Closed),
        ([1, 0], Received::Record(ALERT, vec![1, 0])),
        ([1, 41], Received::Closed),
    ] {
        let began = Instant::now();
        let mut handshake = RawHandshake::begin(kettle.address(), &RawHello::default());
        let alert = handshake.sending.seal(ALERT, &said);
        let mut session = handshake.send_instead(&alert);
        assert_eq!(session.receive(), answer, "{said:?}");
        kettle.wait_until_idle();
        assert_at_once(began);
    }
}

#[test]
fn early_data_is_passed_over_up_to_one_full_record() {
    let kettle = Kettle::start(with_a_file());
    let early = |bodies: &[usize]| {
        let records = bodies.iter().flat_map(|&bytes| {
            let [high, low] = u16::try_from(bytes).unwrap().to_be_bytes();
            [vec![APPLICATION_DATA, 3, 3, high, low], vec![7; bytes]].concat()
        });
        let behind = records.collect();
        RawHello { behind, ..RawHello::default().with(EARLY_DATA, &[]) }
    };
    for bodies in [&[1][..], &[16; 3], &[17; 3], &[100; 20], &[8_192; 2], &[16_384], &[16_640]] {
        answers(RawHandshake::begin(kettle.address(), &early(bodies)));
    }
    for bodies in [&[8_192; 3][..], &[16_640, 17], &[17; 800]] {
        let handshake = RawHandshake::begin(kettle.address(), &early(bodies));
        let mut session = handshake.send_instead(&[]);
        let alert = Received::Record(ALERT, vec![2, UNEXPECTED_MESSAGE]);
        assert_eq!(session.receive(), alert, "{bodies:?}");
    }
    // Not promised, not passed over.
    let unannounced = RawHello { behind: early(&[100]).behind, ..RawHello::default() };
    let mut session = RawHandshake::begin(kettle.address(), &unannounced).send_instead(&[]);
    assert_eq!(session.receive(), Received::Record(ALERT, vec![2, BAD_RECORD_MAC]));
}

#[test]
fn a_finished_in_pieces_or_padded_succeeds() {
    let kettle = Kettle::start(with_a_file());
    for early_data in [false, true] {
        let hello = match early_data {
            true => RawHello::default().with(EARLY_DATA, &[]),
            false => RawHello::default(),
        };
        for pieces in [1, 2, 36] {
            let mut handshake = RawHandshake::begin(kettle.address(), &hello);
            let finished = handshake.finished.clone();
            let (last, before) = {
                let mut all: Vec<_> = finished.chunks(36_usize.div_ceil(pieces)).collect();
                (all.pop().unwrap(), all)
            };
            for piece in before {
                let record = handshake.sending.seal(HANDSHAKE, piece);
                handshake.wire.write_all(&record).unwrap();
            }
            handshake.finished = last.to_vec();
            answers(handshake);
        }
        let mut handshake = RawHandshake::begin(kettle.address(), &hello);
        let padded = [handshake.finished.as_slice(), &[HANDSHAKE], &[0; 100]].concat();
        let record = handshake.sending.seal_inner(padded);
        let mut session = handshake.send_instead(&record);
        session.send(APPLICATION_DATA, &get("/a"));
        let _ = session.data();
    }
}

#[test]
fn a_hello_in_records_of_one_byte_succeeds() {
    let kettle = Kettle::start(with_a_file());
    let hello = RawHello { fragment_bytes: 1, ..RawHello::default() };
    answers(RawHandshake::begin(kettle.address(), &hello));
}

fn answers(handshake: RawHandshake) {
    let mut session = handshake.finish(|keys| keys.seal(APPLICATION_DATA, &get("/a")));
    let content = session.data();
    assert!(content.starts_with(b"HTTP/1.1 200 ") && content.ends_with(b"content"));
}

/// The alert comes without more from the client, and the end right behind it while the server still listens.
fn expect_alert(kettle: &Kettle, sent: &[u8], alert: u8, case: &str) {
    let mut wire = Wire::connect(kettle.address());
    wire.write_all(sent).unwrap();
    let began = Instant::now();
    wire.read_to_end();
    assert_eq!(wire.received, [ALERT, 3, 3, 0, 2, 2, alert], "{case}");
    assert_at_once(began);
    wire.socket.shutdown(Shutdown::Write).unwrap();
}

/// Before the server would have given up waiting for the client. An emulated machine has no such time.
fn assert_at_once(began: Instant) {
    assert!(is_guest() || began.elapsed() < LINGER, "it took {:?}", began.elapsed());
}

/// As the second hello, behind the server's request for another key share.
fn expect_alert_after_retry(kettle: &Kettle, sent: &[u8], alert: u8, case: &str) {
    let mut wire = Wire::connect(kettle.address());
    let no_share =
        RawHello { has_key_share: false, ..RawHello::default() }.with(KEY_SHARE, &[0, 0]);
    wire.write_all(&no_share.records(&[])).unwrap();
    // The HelloRetryRequest, and a change_cipher_spec for middleboxes.
    while !wire.received.ends_with(&[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1]) {
        assert_ne!(wire.read(&mut [0; 16_384]).unwrap(), 0, "{case}: no second hello is asked for");
    }
    let retry_bytes = wire.received.len();
    wire.write_all(&[&[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1], sent].concat()).unwrap();
    wire.read_to_end();
    assert_eq!(wire.received[retry_bytes..], [ALERT, 3, 3, 0, 2, 2, alert], "{case}");
}

const LINGER: Duration = Duration::from_secs(5);
const CLOSE_NOTIFY: [u8; 7] = [ALERT, 3, 3, 0, 2, 1, 0];

const UNEXPECTED_MESSAGE: u8 = 10;
const BAD_RECORD_MAC: u8 = 20;
const RECORD_OVERFLOW: u8 = 22;
const HANDSHAKE_FAILURE: u8 = 40;
const ILLEGAL_PARAMETER: u8 = 47;
const DECODE_ERROR: u8 = 50;
const DECRYPT_ERROR: u8 = 51;
const PROTOCOL_VERSION: u8 = 70;
const INAPPROPRIATE_FALLBACK: u8 = 86;
const MISSING_EXTENSION: u8 = 109;
