use proptest::prelude::*;
use rustls::ConnectionTrafficSecrets;
use rustls::crypto::cipher::{AeadKey, Iv};

use kettle_kernel::ktls::Version;

use super::raw::RawSealer;
use super::*;

const FORMS: [(Version, usize); 6] = [
    (Version::Tls13, 0),
    (Version::Tls13, 1),
    (Version::Tls13, 2),
    (Version::Tls12, 0),
    (Version::Tls12, 1),
    (Version::Tls12, 2),
];

fn keys((version, cipher): (Version, usize), sequence: u64) -> Keys {
    let (key, iv) = (AeadKey::from([7; 32]), Iv::from([9; 12]));
    let secrets = match cipher {
        0 => ConnectionTrafficSecrets::Aes128Gcm { key, iv },
        1 => ConnectionTrafficSecrets::Aes256Gcm { key, iv },
        _ => ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv },
    };
    Keys::new(version, sequence, &secrets).unwrap()
}

fn pair(form: (Version, usize), sequence: u64) -> (RecordSealer, RecordOpener) {
    let sealer = RecordSealer::new(keys(form, sequence)).unwrap();
    (sealer, RecordOpener::new(&keys(form, sequence)).unwrap())
}

fn seal(sealer: &mut RecordSealer, content_type: ContentType, plaintext: &[u8]) -> Vec<u8> {
    let mut record = vec![0; sealer.prefix_bytes()];
    record.extend_from_slice(plaintext);
    record.resize(record.len() + sealer.suffix_bytes(), 0);
    sealer.seal(content_type, &mut record).unwrap();
    record
}

#[test]
fn key_is_refused_at_its_limit_and_not_before() {
    for form in FORMS.into_iter().filter(|(_, cipher)| *cipher < 2) {
        let (mut sealer, _) = pair(form, AES_GCM_RECORDS_MAX - 1);
        assert_eq!(sealer.records_left(), 1);
        let mut record = seal(&mut sealer, ContentType::ApplicationData, b"last");
        let refused = sealer.seal(ContentType::ApplicationData, &mut record);
        assert_eq!(refused, Err(RecordError::KeyExhausted));
    }
}

#[test]
fn plaintext_of_a_record_is_bounded() {
    for form in FORMS {
        let (mut sealer, _) = pair(form, 0);
        let overhead = sealer.prefix_bytes() + sealer.suffix_bytes();
        let mut record = vec![0; overhead + PLAINTEXT_BYTES_MAX + 1];
        let refused = sealer.seal(ContentType::ApplicationData, &mut record);
        assert_eq!(refused, Err(RecordError::Overflow));
        assert_eq!(sealer.sequence(), 0);
        let refused = sealer.seal(ContentType::ApplicationData, &mut [0; 5]);
        assert_eq!(refused, Err(RecordError::Overflow));
    }
}

#[test]
fn header_says_what_the_version_demands() {
    for form in FORMS {
        let (mut sealer, _) = pair(form, 0);
        let record = seal(&mut sealer, ContentType::Alert, &[1, 0]);
        let outer = if form.0 == Version::Tls13 { 23 } else { 21 };
        assert_eq!(&record[..3], &[outer, 3, 3]);
        assert_eq!(whole_record_bytes(&record), Ok(Some(record.len())));
        for short in 0..record.len() {
            assert_eq!(whole_record_bytes(&record[..short]), Ok(None));
        }
    }
}

#[test]
fn what_is_no_record_is_refused_from_its_header() {
    assert_eq!(whole_record_bytes(b"GET / HTTP/1.1"), Err(RecordError::UnexpectedType));
    assert_eq!(whole_record_bytes(&[23, 2, 3, 0, 1, 0]), Err(RecordError::UnknownVersion));
    assert_eq!(whole_record_bytes(&[23, 3, 3, 0xff, 0xff]), Err(RecordError::Overflow));
}

/// A TLS 1.3 record with this content, type and padding.
fn padded_record(content: &[u8], content_type: u8, padding: usize) -> Vec<u8> {
    RawSealer::new(&keys(FORMS[0], 0)).seal(content_type, content, padding)
}

#[test]
fn tls13_padding_is_stripped() {
    let mut record = padded_record(b"data", ContentType::Alert.byte(), 100);
    let opened = pair(FORMS[0], 0).1.open(&mut record).unwrap();
    assert_eq!(opened.content_type, ContentType::Alert);
    assert_eq!(&record[opened.plaintext], b"data");
}

#[test]
fn padding_counts_towards_the_longest_plaintext() {
    for (inner_bytes, is_opened) in
        [(PLAINTEXT_BYTES_MAX + 1, true), (PLAINTEXT_BYTES_MAX + 2, false), (16_640 - 16, false)]
    {
        let mut record = padded_record(&[7; 100], 23, inner_bytes - 101);
        let opened = pair(FORMS[0], 0).1.open(&mut record);
        assert_eq!(opened.as_ref().err(), (!is_opened).then_some(&RecordError::Overflow));
        // All of it padding is still too long, whatever else it is.
        let mut record = padded_record(&[], 0, inner_bytes - 1);
        let refused = if is_opened { RecordError::UnexpectedType } else { RecordError::Overflow };
        assert_eq!(pair(FORMS[0], 0).1.open(&mut record), Err(refused));
    }
}

#[test]
fn nothing_but_padding_is_refused() {
    let mut record = padded_record(&[0; 99], 0, 0);
    assert_eq!(pair(FORMS[0], 0).1.open(&mut record), Err(RecordError::UnexpectedType));
}

#[test]
fn unprotected_records_are_refused_after_a_tls13_handshake() {
    let (_, mut opener) = pair(FORMS[0], 0);
    let mut change_cipher_spec = [20, 3, 3, 0, 1, 1];
    assert_eq!(opener.open(&mut change_cipher_spec), Err(RecordError::UnexpectedType));
}

#[test]
fn kernel_goes_on_with_the_next_record_number() {
    for form in FORMS {
        let (mut sealer, _) = pair(form, 3);
        seal(&mut sealer, ContentType::ApplicationData, b"one more");
        assert_eq!(sealer.sequence(), 4);
        assert!(sealer.into_kernel_keys().is_some());
    }
}

proptest! {
    #[test]
    fn what_is_sealed_opens_again(
        form in 0..FORMS.len(),
        sequence in 0..AES_GCM_RECORDS_MAX - 8,
        plaintexts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2_000), 1..6),
    ) {
        let (mut sealer, mut opener) = pair(FORMS[form], sequence);
        for plaintext in plaintexts {
            let mut record = seal(&mut sealer, ContentType::ApplicationData, &plaintext);
            let opened = opener.open(&mut record).unwrap();
            prop_assert_eq!(&record[opened.plaintext], &plaintext[..]);
        }
    }

    #[test]
    fn a_changed_bit_never_opens(form in 0..FORMS.len(), position in 5_usize..40, bit in 0..8_u8) {
        let (mut sealer, mut opener) = pair(FORMS[form], 1);
        let mut record = seal(&mut sealer, ContentType::ApplicationData, &[3; 40]);
        record[position] ^= 1_u8 << bit;
        prop_assert_eq!(opener.open(&mut record), Err(RecordError::BadRecordMac));
    }

    #[test]
    fn a_changed_version_never_opens(form in 0..FORMS.len(), position in 1_usize..3, bit in 0..8_u8) {
        let (mut sealer, mut opener) = pair(FORMS[form], 1);
        let mut record = seal(&mut sealer, ContentType::ApplicationData, &[3; 40]);
        record[position] ^= 1_u8 << bit;
        prop_assert_eq!(opener.open(&mut record), Err(RecordError::BadRecordMac));
    }

    #[test]
    fn arbitrary_bytes_never_panic(form in 0..FORMS.len(), mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (_, mut opener) = pair(FORMS[form], 0);
        let _ = whole_record_bytes(&bytes);
        let _ = opener.open(&mut bytes);
    }

    #[test]
    fn records_never_open_out_of_order(form in 0..FORMS.len()) {
        let (mut sealer, mut opener) = pair(FORMS[form], 0);
        let _first = seal(&mut sealer, ContentType::ApplicationData, b"first");
        let mut second = seal(&mut sealer, ContentType::ApplicationData, b"second");
        prop_assert_eq!(opener.open(&mut second), Err(RecordError::BadRecordMac));
    }
}
