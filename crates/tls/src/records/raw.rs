//! Records as no honest sealer makes them, for tests.

use aws_lc_rs::aead::Aad;

use super::protection::{Keys, NonceForm, Protection, TAG_BYTES, VERSION, header, unique};
use super::{ContentType, HEADER_BYTES};

/// Seals whatever it is given, under the next number.
pub(crate) struct RawSealer {
    protection: Protection,
    sequence: u64,
}

impl RawSealer {
    pub(crate) fn new(keys: &Keys) -> Self {
        let protection = Protection::new(keys).expect("a suite");
        Self { protection, sequence: keys.sequence }
    }

    /// One record; only TLS 1.3 has padding.
    pub(crate) fn seal(&mut self, content_type: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let form = self.protection.form;
        let mut inner = content.to_vec();
        if form == NonceForm::Tls13 {
            inner.push(content_type);
            inner.resize(inner.len() + padding, 0);
        }
        let known_type = ContentType::from_byte(content_type);
        let additional = self.protection.additional_data(
            self.sequence,
            known_type.unwrap_or(ContentType::ApplicationData),
            VERSION,
            inner.len() - form.inner_type_bytes(),
        );
        let additional = additional.unwrap();
        let nonce = self.protection.nonce(self.sequence);
        self.sequence += 1;
        let key = &self.protection.key;
        let tag = key.seal_in_place_separate_tag(unique(nonce), Aad::from(additional), &mut inner);
        let explicit = &nonce[12 - form.explicit_nonce_bytes()..];
        let body_bytes = explicit.len() + inner.len() + TAG_BYTES;
        let mut record: [u8; HEADER_BYTES] =
            header(ContentType::ApplicationData, VERSION, body_bytes).unwrap();
        if form != NonceForm::Tls13 {
            record[0] = content_type;
        }
        [&record[..], explicit, &inner, tag.expect("sealed").as_ref()].concat()
    }
}
