use proptest::prelude::*;
use rustls::ConnectionTrafficSecrets;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::cipher::{AeadKey, Iv};

use kettle_kernel::ktls::{Cipher, Version};

use super::protection::{Protection, VERSION};
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
    let key = AeadKey::from([7; 32]);
    let iv = Iv::from([9; 12]);
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
        // Of what it holds, only this is shown, and no key.
        let kernel_keys = format!("{:?}", sealer.into_kernel_keys().unwrap());
        assert!(kernel_keys.contains("sequence: 4,"), "{kernel_keys}");
    }
}

#[test]
fn content_types_are_those_of_the_rfc() {
    for byte in 0..=u8::MAX {
        let known = ContentType::from_byte(byte);
        assert_eq!(known.is_some(), (20..24).contains(&byte), "{byte}");
        assert!(known.is_none_or(|known| known.byte() == byte));
    }
}

#[test]
fn lengths_are_judged_by_the_longest_of_each_version() {
    let header = |bytes: u16| [&[23, 3, 3][..], &bytes.to_be_bytes()].concat();
    assert_eq!(whole_record_bytes(&header(18_432)), Ok(None));
    assert_eq!(whole_record_bytes(&header(18_433)), Err(RecordError::Overflow));
    assert_eq!(RECORD_BYTES_MAX, 5 + 18_432);
    for (body_bytes, error) in
        [(16_640, RecordError::BadRecordMac), (16_641, RecordError::Overflow)]
    {
        let mut record = header(body_bytes);
        record.resize(5 + usize::from(body_bytes), 0);
        assert_eq!(pair(FORMS[0], 0).1.open(&mut record), Err(error));
        assert_eq!(pair(FORMS[3], 0).1.open(&mut record), Err(RecordError::BadRecordMac));
    }
}

#[test]
fn the_longest_record_goes_through() {
    for form in FORMS {
        let (mut sealer, mut opener) = pair(form, 0);
        let content = vec![7; PLAINTEXT_BYTES_MAX];
        let mut record = seal(&mut sealer, ContentType::ApplicationData, &content);
        let header = *record.first_chunk().unwrap();
        assert_eq!(opener.plaintext_bytes(header), Some(16_384));
        let opened = opener.open(&mut record).unwrap();
        assert_eq!(&record[opened.plaintext], content);
    }
}

#[test]
fn what_a_record_holds_can_be_told_from_its_header() {
    for form in FORMS {
        let (mut sealer, opener) = pair(form, 0);
        for bytes in [0, 1, 300] {
            let record = seal(&mut sealer, ContentType::ApplicationData, &vec![7; bytes.into()]);
            let header = *record.first_chunk().unwrap();
            assert_eq!(opener.plaintext_bytes(header), Some(bytes));
            let [_, major, minor, high, low] = header;
            assert_eq!(opener.plaintext_bytes([21, major, minor, high, low]), None);
        }
        let overhead = u16::try_from(sealer.prefix_bytes() - 5 + sealer.suffix_bytes()).unwrap();
        for body_bytes in [overhead - 1, overhead + 16_385] {
            let [high, low] = body_bytes.to_be_bytes();
            assert_eq!(opener.plaintext_bytes([23, 3, 3, high, low]), None, "{body_bytes}");
        }
    }
}

#[test]
fn what_is_missing_of_a_record_is_told_once_its_header_is_there() {
    for (received, missing) in [
        (&[][..], 0),
        (&[23, 3, 3, 0], 0),
        (&[23, 3, 3, 0, 9], 9),
        (&[23, 3, 3, 1, 0, 1, 2], 254),
        (&[23, 3, 3, 0, 1, 1], 0),
        (&[23, 3, 3, 0, 1, 1, 23], 0),
        (&[23, 3, 3, 0xff, 0xff], 18_432),
    ] {
        assert_eq!(missing_record_bytes(received), missing, "{received:?}");
    }
}

#[test]
fn a_record_that_is_passed_over_counts() {
    for form in FORMS {
        let (mut sealer, mut opener) = pair(form, 0);
        seal(&mut sealer, ContentType::ApplicationData, b"dropped");
        let mut second = seal(&mut sealer, ContentType::ApplicationData, b"second");
        opener.skip().unwrap();
        assert!(opener.open(&mut second).is_ok());
    }
}

/// The sealer and the opener share them, so that they would agree on wrong ones.
#[test]
fn nonces_and_additional_data_are_those_of_the_rfcs() {
    for form in FORMS {
        let protection = Protection::new(&keys(form, 0)).unwrap();
        let nonce = protection.nonce(0x0102_0304_0506_0708);
        assert_eq!(nonce, [9, 9, 9, 9, 8, 11, 10, 13, 12, 15, 14, 1]);
        let received = protection.nonce_with_explicit([1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(received, [9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8]);
        let data = protection.additional_data(0x0102, ContentType::Alert, VERSION, 300).unwrap();
        let expected = match form.0 {
            Version::Tls13 => &[23, 3, 3, 1, 61][..],
            Version::Tls12 => &[0, 0, 0, 0, 0, 0, 1, 2, 21, 3, 3, 1, 44],
        };
        assert_eq!(data.as_ref(), expected);
    }
}

#[test]
fn each_suite_has_its_version_and_cipher() {
    use Version::{Tls12, Tls13};
    use cipher_suite::*;
    for (suite, version, cipher) in [
        (TLS13_AES_128_GCM_SHA256, Tls13, Cipher::Aes128Gcm),
        (TLS13_AES_256_GCM_SHA384, Tls13, Cipher::Aes256Gcm),
        (TLS13_CHACHA20_POLY1305_SHA256, Tls13, Cipher::Chacha20Poly1305),
        (TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, Tls12, Cipher::Aes128Gcm),
        (TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, Tls12, Cipher::Aes256Gcm),
        (TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, Tls12, Cipher::Chacha20Poly1305),
        (TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, Tls12, Cipher::Aes128Gcm),
        (TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, Tls12, Cipher::Aes256Gcm),
        (TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, Tls12, Cipher::Chacha20Poly1305),
    ] {
        let keys = Keys::of_suite(suite.suite(), vec![0; 32].into(), [0; 12], 7).unwrap();
        assert_eq!((keys.version, keys.cipher, keys.sequence), (version, cipher, 7));
    }
}

#[test]
fn errors_are_told_in_words() {
    let words = [
        RecordError::BadRecordMac,
        RecordError::Overflow,
        RecordError::UnexpectedType,
        RecordError::UnknownVersion,
        RecordError::KeyExhausted,
    ]
    .map(|error| error.to_string());
    assert!(words.iter().all(|words| words.contains("record")), "{words:?}");
    assert!(ProtectionError.to_string().contains("suite"));
}

proptest! {
    #[test]
    fn what_is_sealed_opens_again(
        form in 0..FORMS.len(),
        sequence in 0..AES_GCM_RECORDS_MAX - 8,
        plaintexts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2_000), 1..6),
    ) {
        let _panics = kettle_kernel::bug::panics();
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
