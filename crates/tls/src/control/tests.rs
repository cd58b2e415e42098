use super::*;

fn reader(version: Version) -> ControlReader {
    ControlReader::new(version, Peer::Client)
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
fn other_handshake_messages_are_refused() {
    for message in
        [&[1u8, 0, 0, 1][..], &[4, 0, 0, 0], &[24, 0, 0, 2, 0], &[24, 0, 0, 1, 0, 24], &[]]
    {
        let refused = reader(Version::Tls13).handshake(message, Instant::now());
        assert_eq!(refused.map_err(|v| v.alert), Err(Alert::UNEXPECTED_MESSAGE), "{message:?}");
    }
}

#[test]
fn key_update_request_must_be_zero_or_one() {
    let refused = reader(Version::Tls13).handshake(&[24, 0, 0, 1, 2], Instant::now());
    assert_eq!(refused.map_err(|violation| violation.alert), Err(Alert(47)));
}

#[test]
fn more_than_a_few_key_updates_a_second_are_refused() {
    let start = Instant::now();
    let mut control = reader(Version::Tls13);
    for _ in 0..KEY_UPDATES_PER_PERIOD_MAX {
        assert!(control.handshake(&KEY_UPDATE, start).is_ok());
    }
    assert!(control.handshake(&KEY_UPDATE, start).is_err());
    assert!(control.handshake(&KEY_UPDATE, start + KEY_UPDATES_PERIOD).is_ok());
}

#[test]
fn fatal_alerts_end_and_warnings_are_counted() {
    let mut control = reader(Version::Tls12);
    assert_eq!(control.alert(&[2, 40]), Ok(Action::PeerFailed(Alert(40))));
    assert_eq!(control.alert(&[1, 0]), Ok(Action::PeerCloses));
    for _ in 0..WARNINGS_MAX {
        assert_eq!(control.alert(&[1, 90]), Ok(Action::Nothing));
    }
    assert!(control.alert(&[1, 90]).is_err());
    assert!(control.alert(&[1]).is_err());
}

#[test]
fn renegotiation_is_refused_by_warning_and_not_for_ever() {
    let mut control = reader(Version::Tls12);
    for _ in 0..WARNINGS_MAX {
        let action = control.handshake(&[1, 0, 0, 9], Instant::now());
        assert_eq!(action, Ok(Action::RefuseRenegotiation));
    }
    assert!(control.handshake(&[1, 0, 0, 9], Instant::now()).is_err());
    assert!(reader(Version::Tls12).handshake(&[20, 0, 0, 12], Instant::now()).is_err());
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
fn each_side_asks_to_renegotiate_in_its_own_way() {
    let ask = |peer, message: &[u8]| {
        ControlReader::new(Version::Tls12, peer).handshake(message, Instant::now())
    };
    assert_eq!(ask(Peer::Client, &[1, 0, 0, 40]), Ok(Action::RefuseRenegotiation));
    assert_eq!(ask(Peer::Server, &[0, 0, 0, 0]), Ok(Action::RefuseRenegotiation));
    assert!(ask(Peer::Client, &[0, 0, 0, 0]).is_err());
    assert!(ask(Peer::Server, &[1, 0, 0, 40]).is_err());
}

#[test]
fn application_data_inside_a_message_read_elsewhere_is_refused() {
    let mut control = ControlReader::new(Version::Tls13, Peer::Server);
    control.set_inside_message(true);
    assert!(control.application_data(5).is_err());
    control.set_inside_message(false);
    assert!(control.application_data(5).is_ok());
}
