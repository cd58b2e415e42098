use super::*;
use crate::records::raw::RawSealer;
use crate::secrets::Secret;
use crate::test_identity::acceptors;

fn tls12() -> Known<'static> {
    Known { is_tls13: false, client_handshake_secret: None }
}

fn tls13() -> Known<'static> {
    Known { is_tls13: true, client_handshake_secret: None }
}

fn record(content_type: u8, body_bytes: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(body_bytes).expect("short").to_be_bytes();
    let mut record = vec![content_type, 3, 3, high, low];
    record.resize(record.len() + body_bytes, 1);
    record
}

/// One that has passed the ClientHello.
fn behind_the_hello() -> Guard {
    Guard { is_first: false, hello: Hello::CheckedAgain, ..Guard::new(acceptors()) }
}

fn alert_of(verdict: Result<Verdict, HandshakeError>) -> Alert {
    match verdict {
        Err(HandshakeError::Violation(violation)) => violation.alert,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_shown_before_it_is_whole() {
    let whole = record(22, 100);
    for end in 0..whole.len() {
        let verdict = behind_the_hello().check(&whole[..end], &tls12());
        assert!(matches!(verdict, Ok(Verdict::Wait)), "{end}");
    }
    let two = [whole.as_slice(), &record(20, 1)].concat();
    assert!(matches!(behind_the_hello().check(&two, &tls12()), Ok(Verdict::Show(105))));
}

#[test]
fn a_header_is_enough_to_refuse_a_record() {
    for first in [0, 19, 24, 0x80, 255] {
        let verdict = Guard::new(acceptors()).check(&[first], &tls12());
        assert_eq!(alert_of(verdict), Alert::UNEXPECTED_MESSAGE, "{first}");
    }
    for (body, known, alert) in [
        ([22, 3, 3, 0x40, 0x01], tls12(), Alert::RECORD_OVERFLOW),
        ([23, 3, 3, 0x41, 0x01], tls13(), Alert::RECORD_OVERFLOW),
        ([22, 3, 3, 0, 0], tls12(), Alert::UNEXPECTED_MESSAGE),
        ([21, 3, 3, 0, 0], tls13(), Alert::UNEXPECTED_MESSAGE),
        ([20, 3, 3, 0, 0], tls13(), Alert::UNEXPECTED_MESSAGE),
    ] {
        assert_eq!(alert_of(behind_the_hello().check(&body, &known)), alert, "{body:?}");
    }
    for (body, known) in [([22, 3, 3, 0x40, 0], tls12()), ([23, 3, 3, 0x41, 0], tls13())] {
        assert!(matches!(behind_the_hello().check(&body, &known), Ok(Verdict::Wait)), "{body:?}");
    }
}

#[test]
fn behind_the_change_of_cipher_records_of_tls12_may_carry_overhead() {
    let mut guard = behind_the_hello();
    assert!(matches!(guard.check(&record(20, 1), &tls12()), Ok(Verdict::Show(6))));
    assert!(matches!(guard.check(&[22, 3, 3, 0x48, 0], &tls12()), Ok(Verdict::Wait)));
    let too_long = guard.check(&[22, 3, 3, 0x48, 1], &tls12());
    assert_eq!(alert_of(too_long), Alert::RECORD_OVERFLOW);
    // An alert is protected from here on, and looks like anything.
    assert!(matches!(guard.check(&record(21, 26), &tls12()), Ok(Verdict::Show(31))));
}

#[test]
fn a_change_of_cipher_has_one_byte_of_one_value() {
    for known in [tls12(), tls13()] {
        for body in [&[1, 1][..], &[1, 0], &[0], &[2]] {
            let odd = [&[20, 3, 3, 0, u8::try_from(body.len()).expect("short")], body].concat();
            let verdict = behind_the_hello().check(&odd, &known);
            assert_eq!(alert_of(verdict), Alert::UNEXPECTED_MESSAGE, "{body:?}");
        }
        let verdict = behind_the_hello().check(&[20, 3, 3, 0, 1, 1], &known);
        assert!(matches!(verdict, Ok(Verdict::Show(6))));
    }
    // Under a key it looks like anything.
    let mut guard = behind_the_hello();
    assert!(matches!(guard.check(&record(20, 1), &tls12()), Ok(Verdict::Show(6))));
    assert!(matches!(guard.check(&record(20, 30), &tls12()), Ok(Verdict::Show(35))));
}

/// Whatever it holds, and wherever it is cut.
#[test]
fn a_first_message_that_is_no_hello_is_unexpected() {
    for kind in (0..=255).filter(|kind| *kind != CLIENT_HELLO) {
        for body_bytes in [0_u8, 1, 40] {
            let message = [vec![kind, 0, 0, body_bytes], vec![0; body_bytes.into()]].concat();
            for fragment_bytes in [1, message.len()] {
                let records: Vec<u8> = message
                    .chunks(fragment_bytes)
                    .flat_map(|it| {
                        [&[22, 3, 3, 0, u8::try_from(it.len()).expect("short")], it].concat()
                    })
                    .collect();
                let verdict = Guard::new(acceptors()).check(&records, &tls12());
                assert_eq!(alert_of(verdict), Alert::UNEXPECTED_MESSAGE, "{kind} {body_bytes}");
            }
        }
    }
    // One that is too long for rustls gets its alert.
    let long = [22, 3, 3, 0, 4, CLIENT_HELLO, 1, 0, 0];
    let verdict = Guard::new(acceptors()).check(&long, &tls12());
    assert!(matches!(verdict, Ok(Verdict::Show(9))));
}

#[test]
fn alerts_that_end_the_handshake_end_it() {
    for (body, is_tls13) in
        [([1, 0], true), ([1, 0], false), ([2, 40], true), ([2, 0], false), ([1, 41], true)]
    {
        let alert = [21, 3, 3, 0, 2, body[0], body[1]];
        let verdict = behind_the_hello().check(&alert, &Known { is_tls13, ..tls12() });
        let error = verdict.expect_err("an end");
        assert_eq!(error.alert_received(), Some(body[1].into()));
    }
    for (body, is_tls13) in [([1, 90], true), ([1, 90], false), ([1, 41], false)] {
        let alert = [21, 3, 3, 0, 2, body[0], body[1]];
        let verdict = behind_the_hello().check(&alert, &Known { is_tls13, ..tls12() });
        assert!(matches!(verdict, Ok(Verdict::Show(7))), "{body:?}");
    }
    let odd_level = behind_the_hello().check(&[21, 3, 3, 0, 2, 3, 40], &tls12());
    assert_eq!(alert_of(odd_level), Alert::ILLEGAL_PARAMETER);
    for broken in [record(21, 1), record(21, 3)] {
        let verdict = behind_the_hello().check(&broken, &tls12());
        assert_eq!(alert_of(verdict), Alert::UNEXPECTED_MESSAGE);
    }
}

#[test]
fn rejected_early_data_is_dropped_up_to_one_full_record() {
    let announced =
        || Guard { early_data_bytes_left: Some(EARLY_DATA_BYTES_MAX), ..behind_the_hello() };
    for (bodies, is_too_much) in [
        (vec![16_384 + 256], false),
        (vec![8_192; 2], false),
        (vec![16_384 + 256, 0], true),
        (vec![1; 2_774], false),
        (vec![1; 2_775], true),
        (vec![0; 3_329], false),
        (vec![0; 3_330], true),
    ] {
        let mut guard = announced();
        let (last, before) = bodies.split_last().expect("some");
        for &bytes in before {
            let verdict = guard.check(&record(23, bytes), &tls13());
            assert!(matches!(verdict, Ok(Verdict::Skip(all)) if all == bytes + 5), "{bytes}");
        }
        let verdict = guard.check(&record(23, *last), &tls13());
        if is_too_much {
            assert_eq!(alert_of(verdict), Alert::UNEXPECTED_MESSAGE, "{}", bodies.len());
        } else {
            assert!(matches!(verdict, Ok(Verdict::Skip(_))), "{}", bodies.len());
        }
    }
    // A version that knows none ends it.
    let mut guard = announced();
    assert!(matches!(guard.check(&record(23, 9), &tls12()), Ok(Verdict::Show(14))));
}

/// A client's Certificate may be cut into records anywhere, and a part of it may begin as a Finished does.
#[test]
fn behind_a_record_as_long_as_a_finished_a_message_may_go_on() {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let secret = TrafficSecret::new(suite.tls13().expect("of 1.3"), Secret::copy_of(&[7; 32]));
    let known = Known { is_tls13: true, client_handshake_secret: Some(&secret) };
    let beginning = [&[11, 0, 0, 200][..], &[0; 32]].concat();
    let rest = [FINISHED, 1, 2, 3, 4];
    for (first, is_message_begun) in [(&beginning[..], true), (&[], false)] {
        let mut sealer = RawSealer::new(&secret.keys().expect("keys"));
        let mut guard = behind_the_hello();
        if is_message_begun {
            let record = sealer.seal(22, first, 0);
            assert_eq!(guard.check(&record, &known).expect("one"), Verdict::Show(record.len()));
        }
        let record = sealer.seal(22, &rest, 0);
        let verdict = guard.check(&record, &known);
        if is_message_begun {
            assert_eq!(verdict.expect("a part"), Verdict::Show(record.len()));
        } else {
            assert_eq!(alert_of(verdict), Alert::DECODE_ERROR);
        }
    }
}

/// The record behind the one that an honest client sends shows that it was another.
#[test]
fn an_empty_record_as_long_as_a_finished_is_refused_with_the_next() {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    let secret = TrafficSecret::new(suite.tls13().expect("of 1.3"), Secret::copy_of(&[7; 32]));
    let known = Known { is_tls13: true, client_handshake_secret: Some(&secret) };
    let finished = [&[FINISHED, 0, 0, 32][..], &[1; 32]].concat();
    for (content, padding_bytes, is_refused) in
        [(&[][..], 36, true), (&finished[..20], 16, false), (&finished[..], 0, false)]
    {
        let mut sealer = RawSealer::new(&secret.keys().expect("keys"));
        let mut guard = behind_the_hello();
        let record = sealer.seal(22, content, padding_bytes);
        assert_eq!(guard.check(&record, &known).expect("one"), Verdict::Show(record.len()));
        let record = sealer.seal(22, &finished, 0);
        let verdict = guard.check(&record, &known);
        match is_refused {
            true => assert_eq!(alert_of(verdict), Alert::UNEXPECTED_MESSAGE),
            false => assert_eq!(verdict.expect("a part"), Verdict::Show(record.len())),
        }
    }
}

#[test]
fn plain_http_is_known_by_its_method() {
    for (received, is_http) in [
        (b"GET / HTTP/1.1\r\n".as_slice(), Some(true)),
        (b"VERSION-CONTROL", Some(false)),
        (b"PRI * HTTP/2.0", Some(true)),
        (b"SSH-2.0-OpenSSH", Some(false)),
        (b"get / HTTP/1.1", Some(false)),
        (b" GET", Some(false)),
        (b"UPDATEREDIRECTREF /", Some(true)),
        (b"AAAAAAAAAAAAAAAAAAAAAA", Some(false)),
        (b"GET", None),
        (b"G", None),
        (b"", Some(false)),
        (&[22, 3, 1], Some(false)),
    ] {
        assert_eq!(is_plain_http(received), is_http, "{received:?}");
    }
}
