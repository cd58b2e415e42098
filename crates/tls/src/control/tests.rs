use std::time::Duration;

use super::*;

fn reader(version: Version) -> ControlReader {
    ControlReader::new(version, Peer::Client, Instant::now())
}

fn alert_of(outcome: Result<Action, Violation>) -> Option<Alert> {
    outcome.err().map(|violation| violation.alert)
}

#[test]
fn key_update_is_read_in_both_forms() {
    let now = Instant::now();
    let mut control = reader(Version::Tls13);
    assert_eq!(
        control.handshake(&[24, 0, 0, 1, 0], now),
        Ok(Action::UpdateReceiveKey { is_requested: false })
    );
    assert_eq!(
        control.handshake(&[24, 0, 0, 1, 1], now),
        Ok(Action::UpdateReceiveKey { is_requested: true })
    );
}

#[test]
fn key_update_may_come_in_pieces() {
    let now = Instant::now();
    let mut control = reader(Version::Tls13);
    for byte in [24, 0, 0, 1] {
        assert_eq!(control.handshake(&[byte], now), Ok(Action::Nothing));
    }
    let action = control.handshake(&[1], now);
    assert_eq!(action, Ok(Action::UpdateReceiveKey { is_requested: true }));
}

#[test]
fn application_data_inside_a_key_update_is_refused() {
    let mut control = reader(Version::Tls13);
    assert_eq!(control.handshake(&[24, 0], Instant::now()), Ok(Action::Nothing));
    assert!(control.application_data(5).is_err());
}

#[test]
fn nothing_may_come_between_the_parts_of_a_key_update() {
    type Record = fn(&mut ControlReader) -> Result<Action, Violation>;
    let between: [Record; 6] = [
        |control| control.application_data(1).map(|()| Action::Nothing),
        |control| control.application_data(0).map(|()| Action::Nothing),
        |control| control.alert(&[1, 0]),
        |control| control.alert(&[2, 40]),
        |control| control.alert(&[1, 90]),
        |control| control.handshake(&[], Instant::now()),
    ];
    for (number, between) in between.into_iter().enumerate() {
        for bytes in 1..KEY_UPDATE_BYTES {
            let mut control = reader(Version::Tls13);
            assert_eq!(
                control.handshake(&KEY_UPDATE[..bytes], Instant::now()),
                Ok(Action::Nothing)
            );
            assert!(control.is_inside_key_update());
            let alert = alert_of(between(&mut control));
            assert_eq!(alert, Some(Alert::UNEXPECTED_MESSAGE), "{number} after {bytes}");
        }
    }
}

#[test]
fn other_handshake_messages_are_refused_by_their_first_byte() {
    for message in [&[1u8, 0, 0, 1][..], &[4, 0, 0, 0], &[4], &[]] {
        let refused = reader(Version::Tls13).handshake(message, Instant::now());
        assert_eq!(alert_of(refused), Some(Alert::UNEXPECTED_MESSAGE), "{message:?}");
    }
}

#[test]
fn nothing_may_follow_a_key_update_in_its_record() {
    for more in [&[24][..], &[24, 0, 0, 1, 0], &[4], &[0]] {
        let record = [&KEY_UPDATE[..], more].concat();
        let refused = reader(Version::Tls13).handshake(&record, Instant::now());
        assert_eq!(alert_of(refused), Some(Alert::UNEXPECTED_MESSAGE), "{more:?}");
        let mut control = reader(Version::Tls13);
        assert_eq!(control.handshake(&record[..3], Instant::now()), Ok(Action::Nothing));
        let refused = control.handshake(&record[3..], Instant::now());
        assert_eq!(alert_of(refused), Some(Alert::UNEXPECTED_MESSAGE), "{more:?}");
    }
}

#[test]
fn key_update_of_another_length_is_malformed() {
    for message in [
        &[24, 0, 0, 0][..],
        &[24, 0, 0, 2, 0, 0],
        &[24, 0, 0, 2],
        &[24, 0, 1, 1],
        &[24, 1, 0, 1],
        &[24, 1],
    ] {
        let refused = reader(Version::Tls13).handshake(message, Instant::now());
        assert_eq!(alert_of(refused), Some(Alert::DECODE_ERROR), "{message:?}");
        let mut control = reader(Version::Tls13);
        let refused =
            message.iter().find_map(|&byte| alert_of(control.handshake(&[byte], Instant::now())));
        assert_eq!(refused, Some(Alert::DECODE_ERROR), "{message:?} byte by byte");
    }
}

#[test]
fn key_update_request_must_be_zero_or_one() {
    for request in [2, 255] {
        let refused = reader(Version::Tls13).handshake(&[24, 0, 0, 1, request], Instant::now());
        assert_eq!(alert_of(refused), Some(Alert::ILLEGAL_PARAMETER));
    }
}

#[test]
fn key_updates_are_counted_against_the_time_that_passed() {
    let start = Instant::now();
    for (seconds, allowed) in [(0, 32), (1, 40), (2, 48), (12, 128)] {
        let mut control = ControlReader::new(Version::Tls13, Peer::Client, start);
        let now = start + Duration::from_secs(seconds);
        for number in 0..allowed {
            assert!(control.handshake(&KEY_UPDATE, now).is_ok(), "{number} after {seconds} s");
        }
        let refused = alert_of(control.handshake(&KEY_UPDATE, now));
        assert_eq!(refused, Some(Alert::UNEXPECTED_MESSAGE), "after {seconds} s");
    }
}

#[test]
fn one_key_update_a_second_is_no_flood_whenever_it_is_read() {
    // Those that came during a response are read at its end.
    for seconds in [30, 600, 7_200] {
        let mut now = Instant::now();
        let mut control = ControlReader::new(Version::Tls13, Peer::Client, now);
        for response in 0..100 {
            now += Duration::from_secs(seconds);
            for number in 0..seconds {
                let read = control.handshake(&KEY_UPDATE, now);
                assert!(read.is_ok(), "{number} of response {response} of {seconds} s");
            }
        }
    }
}

#[test]
fn a_quiet_time_allows_a_bounded_flood() {
    let start = Instant::now();
    let mut control = ControlReader::new(Version::Tls13, Peer::Client, start);
    let now = start + Duration::from_secs(600);
    let taken = (0..).take_while(|_| control.handshake(&KEY_UPDATE, now).is_ok()).count();
    assert_eq!(taken, 1_112);
}

#[test]
fn fatal_alerts_end_and_warnings_are_counted() {
    let mut control = reader(Version::Tls12);
    assert_eq!(control.alert(&[2, 40]), Ok(Action::PeerFailed(Alert(40))));
    assert_eq!(control.alert(&[1, 0]), Ok(Action::PeerCloses));
    assert_eq!(control.alert(&[2, 0]), Ok(Action::PeerCloses));
    for _ in 0..WARNINGS_MAX {
        assert_eq!(control.alert(&[1, 90]), Ok(Action::Nothing));
    }
    assert_eq!(alert_of(control.alert(&[1, 90])), Some(Alert::UNEXPECTED_MESSAGE));
}

#[test]
fn in_tls13_the_description_tells_how_grave_an_alert_is() {
    for level in [0, 1, 2, 7] {
        let mut control = reader(Version::Tls13);
        assert_eq!(control.alert(&[level, 90]), Ok(Action::Nothing), "user_canceled");
        assert_eq!(control.alert(&[level, 0]), Ok(Action::PeerCloses), "close_notify");
        assert_eq!(control.alert(&[level, 40]), Ok(Action::PeerFailed(Alert(40))));
        assert_eq!(control.alert(&[level, 255]), Ok(Action::PeerFailed(Alert(255))));
    }
}

#[test]
fn in_tls12_an_unknown_level_is_refused() {
    for alert in [[0, 0], [3, 0], [3, 90]] {
        let refused = alert_of(reader(Version::Tls12).alert(&alert));
        assert_eq!(refused, Some(Alert::ILLEGAL_PARAMETER), "{alert:?}");
    }
}

#[test]
fn a_record_of_alerts_holds_exactly_one() {
    for version in [Version::Tls12, Version::Tls13] {
        assert_eq!(alert_of(reader(version).alert(&[])), Some(Alert::UNEXPECTED_MESSAGE));
        for content in [&[1][..], &[1, 90, 1], &[1, 90, 1, 0]] {
            let refused = alert_of(reader(version).alert(content));
            assert_eq!(refused, Some(Alert::DECODE_ERROR), "{content:?}");
        }
    }
}

#[test]
fn alerts_say_how_grave_they_are() {
    assert_eq!(Alert::CLOSE_NOTIFY.message(), [1, 0]);
    assert_eq!(Alert::NO_RENEGOTIATION.message(), NO_RENEGOTIATION);
    assert_eq!(Alert::BAD_RECORD_MAC.message(), [2, 20]);
}

#[test]
fn each_error_of_a_record_has_its_alert() {
    for (error, alert) in [
        (RecordError::BadRecordMac, 20),
        (RecordError::Overflow, 22),
        (RecordError::UnexpectedType, 10),
        (RecordError::UnknownVersion, 50),
        (RecordError::KeyExhausted, 80),
    ] {
        let violation = Violation::from(error);
        assert_eq!(violation.alert, Alert(alert));
        assert_eq!(violation.to_string(), violation.what);
    }
}

#[test]
fn renegotiation_is_refused_by_warning_and_not_for_ever() {
    let mut control = reader(Version::Tls12);
    for _ in 0..WARNINGS_MAX {
        let action = control.handshake(&[1, 0, 0, 1, 9], Instant::now());
        assert_eq!(action, Ok(Action::RefuseRenegotiation));
    }
    assert!(control.handshake(&[1, 0, 0, 1, 9], Instant::now()).is_err());
    assert!(reader(Version::Tls12).handshake(&[20, 0, 0, 12], Instant::now()).is_err());
    assert!(reader(Version::Tls12).handshake(&[], Instant::now()).is_err());
}

#[test]
fn a_renegotiation_may_come_in_pieces_with_data_between() {
    let hello = [&[1, 0, 1, 4][..], &[20; 260]].concat();
    for piece_bytes in [1, 3, 4, 5, 263] {
        let mut control = reader(Version::Tls12);
        let mut refused = 0;
        for piece in hello.chunks(piece_bytes) {
            assert_eq!(refused, 0, "before its end");
            let action = control.handshake(piece, Instant::now()).unwrap();
            refused += usize::from(action == Action::RefuseRenegotiation);
            assert!(control.application_data(1).is_ok());
            assert_eq!(control.alert(&[1, 0]), Ok(Action::PeerCloses));
        }
        assert_eq!(refused, 1);
        assert!(!control.is_inside_key_update());
        assert!(control.handshake(&[20], Instant::now()).is_err(), "the next message begins");
    }
}

#[test]
fn two_renegotiations_in_a_record_are_both_counted() {
    let hellos = [1, 0, 0, 1, 9].repeat(WARNINGS_MAX.into());
    let mut control = reader(Version::Tls12);
    assert_eq!(control.handshake(&hellos, Instant::now()), Ok(Action::RefuseRenegotiation));
    assert!(control.handshake(&[1, 0, 0, 1, 9], Instant::now()).is_err());
}

#[test]
fn a_renegotiation_longer_than_any_is_malformed() {
    let mut control = reader(Version::Tls12);
    assert_eq!(control.handshake(&[1, 0, 0xff, 0xff], Instant::now()), Ok(Action::Nothing));
    let refused = alert_of(reader(Version::Tls12).handshake(&[1, 1, 0, 0], Instant::now()));
    assert_eq!(refused, Some(Alert::DECODE_ERROR));
}

#[test]
fn empty_records_are_bounded_between_data() {
    let mut control = reader(Version::Tls13);
    for _ in 0..EMPTY_RECORDS_MAX {
        assert!(control.application_data(0).is_ok());
    }
    assert!(control.application_data(1).is_ok());
    for _ in 0..EMPTY_RECORDS_MAX {
        assert!(control.application_data(0).is_ok());
    }
    assert!(control.application_data(0).is_err());
}

#[test]
fn what_is_not_empty_ends_a_row_of_empty_records() {
    let mut tls13 = reader(Version::Tls13);
    let mut tls12 = reader(Version::Tls12);
    for _ in 0..3 {
        for _ in 0..EMPTY_RECORDS_MAX {
            assert!(tls13.application_data(0).is_ok() && tls12.application_data(0).is_ok());
        }
        assert!(tls13.handshake(&KEY_UPDATE, Instant::now()).is_ok());
        assert!(tls12.alert(&[1, 90]).is_ok());
    }
}

#[test]
fn each_side_asks_to_renegotiate_in_its_own_way() {
    let ask = |peer, message: &[u8]| {
        ControlReader::new(Version::Tls12, peer, Instant::now()).handshake(message, Instant::now())
    };
    assert_eq!(ask(Peer::Client, &[1, 0, 0, 1, 0]), Ok(Action::RefuseRenegotiation));
    assert_eq!(ask(Peer::Server, &[0, 0, 0, 0]), Ok(Action::RefuseRenegotiation));
    assert!(ask(Peer::Client, &[0, 0, 0, 0]).is_err());
    assert!(ask(Peer::Server, &[1, 0, 0, 40]).is_err());
}

#[test]
fn application_data_inside_a_message_read_elsewhere_is_refused() {
    let mut control = ControlReader::new(Version::Tls13, Peer::Server, Instant::now());
    control.set_inside_message(true);
    assert!(control.application_data(5).is_err());
    assert!(control.alert(&[1, 0]).is_err());
    assert!(!control.is_inside_key_update());
    control.set_inside_message(false);
    assert!(control.application_data(5).is_ok());
}
