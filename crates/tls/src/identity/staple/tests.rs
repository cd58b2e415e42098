//! OCSP responses as OpenSSL writes them, and damaged ones.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;

const GOOD: &[u8] = include_bytes!("../fixtures/good.der");
const REVOKED: &[u8] = include_bytes!("../fixtures/revoked.der");

#[test]
fn good_response_is_read() {
    let staple = Staple::decode(GOOD).expect("a staple");
    assert_eq!(staple.serial, [0x12, 0x34]);
    assert!(staple.is_good);
    // 2026-11-28 21:25:11 UTC
    assert_eq!(staple.next_update, Some(UNIX_EPOCH + Duration::from_secs(1_795_901_111)));
}

#[test]
fn revoked_response_is_not_good() {
    assert!(!Staple::decode(REVOKED).expect("a staple").is_good);
}

#[test]
fn responder_error_is_told_from_rubbish() {
    let try_later = [0x30, 0x03, 0x0a, 0x01, 0x03];
    assert!(Staple::decode(&try_later).expect_err("an error").contains("responder"));
    assert!(Staple::decode(b"hello").expect_err("an error").contains("not an OCSP"));
}

#[test]
fn every_cut_is_an_error() {
    for bytes in 0..GOOD.len() {
        assert!(Staple::decode(&GOOD[..bytes]).is_err(), "{bytes} bytes");
    }
}

#[test]
fn impossible_dates_are_refused() {
    for text in ["20261301000000Z", "20260230000000Z", "2026010100000Z", "20260101000000", "é"] {
        assert_eq!(moment(text.as_bytes()), None, "{text}");
    }
    assert!(moment(b"20260101000000Z").is_some());
}

proptest! {
    #[test]
    fn altered_bytes_never_panic(position in 0..GOOD.len(), byte: u8) {
        let mut altered = GOOD.to_vec();
        altered[position] = byte;
        _ = Staple::decode(&altered);
    }
}
