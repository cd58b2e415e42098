//! The key schedule of TLS 1.3 with SHA-256 (RFC 8446 §7.1), for clients that write their own records.

use aws_lc_rs::{digest, hkdf, hmac};

/// HKDF-Expand-Label (RFC 8446 §7.1).
pub(crate) fn expand_label(
    secret: &hkdf::Prk,
    label: &str,
    context: &[u8],
    bytes: usize,
) -> Vec<u8> {
    let label = format!("tls13 {label}");
    let length = u16::try_from(bytes).unwrap().to_be_bytes();
    let [label_length, context_length] =
        [label.len(), context.len()].map(|length| [u8::try_from(length).unwrap()]);
    let info = [&length, label_length.as_slice(), label.as_bytes(), &context_length, context];
    let mut expanded = vec![0; bytes];
    secret.expand(&info, Length(bytes)).unwrap().fill(&mut expanded).unwrap();
    expanded
}

/// Returns the secret that the key schedule begins with.
pub(crate) fn early_secret(psk: &[u8]) -> hkdf::Prk {
    hkdf::Salt::new(hkdf::HKDF_SHA256, &[0; 32]).extract(psk)
}

/// Returns the verify data of a Finished, or of a binder (RFC 8446 §4.4.4).
pub(crate) fn verify_data(secret: &[u8], transcript_hash: &[u8]) -> Vec<u8> {
    let base = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &expand_label(&base, "finished", &[], 32));
    hmac::sign(&key, transcript_hash).as_ref().to_vec()
}

/// The salt that leads from one secret of the key schedule to the next.
pub(crate) fn derived(secret: &hkdf::Prk) -> hkdf::Salt {
    let salt = expand_label(secret, "derived", &hash(&[]), 32);
    hkdf::Salt::new(hkdf::HKDF_SHA256, &salt)
}

/// Of a transcript, by SHA-256.
pub(crate) fn hash(transcript: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, transcript).as_ref().to_vec()
}

/// Of what is expanded, in bytes.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
