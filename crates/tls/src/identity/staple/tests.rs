//! OCSP responses as OpenSSL writes them, and damaged ones.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use rcgen::{CustomExtension, KeyPair};

use super::*;
use crate::identity::Identity;
use crate::test_identity::{Authority, Files, now, parameters};

const GOOD: &[u8] = include_bytes!("../fixtures/good.der");
const REVOKED: &[u8] = include_bytes!("../fixtures/revoked.der");

#[test]
fn good_response_is_read() {
    let staple = Staple::decode(GOOD).expect("a staple");
    assert_eq!(staple.serial, [0x12, 0x34]);
    assert!(staple.is_good);
    // 2026-11-21 21:25:11 UTC
    assert_eq!(staple.this_update, UNIX_EPOCH + Duration::from_secs(1_795_296_311));
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

#[test]
fn staples_are_demanded_by_a_feature_among_others() {
    assert!(is_among_features(&[0x30, 3, 2, 1, 5]));
    assert!(is_among_features(&[0x30, 6, 2, 1, 17, 2, 1, 5]));
    for other in [&[0x30, 3, 2, 1, 17][..], &[0x30, 0], &[0x30, 3, 2, 1], &[2, 1, 5], &[]] {
        assert!(!is_among_features(other), "{other:?}");
    }
}

#[test]
fn certificate_that_demands_a_staple_is_told_to_have_none() {
    let mut demanding = parameters(&["a.example"]);
    let feature =
        CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 24], vec![0x30, 3, 2, 1, 5]);
    demanding.custom_extensions = vec![feature];
    let authority = Authority::new("Example Issuer");
    let key = KeyPair::generate().expect("a key");
    let files = Files::new();
    let pem = authority.sign(&demanding, &key) + &authority.own_pem() + &key.serialize_pem();
    let both = files.write("both.pem", pem);
    let (_, warnings) = Identity::load_at(&both, &both, None, now()).expect("an identity");
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.is_serious() && warning.to_string().contains("must-staple"), "{warning}");
}

proptest! {
    #[test]
    fn altered_bytes_never_panic(position in 0..GOOD.len(), byte: u8) {
        let mut altered = GOOD.to_vec();
        altered[position] = byte;
        _ = Staple::decode(&altered);
    }
}
