//! Protects outgoing records, in place.

use aws_lc_rs::aead::Aad;
use kettle_kernel::ktls::{Cipher, TrafficKeys, Version};

use super::protection::{
    Keys, NonceForm, Protection, ProtectionError, TAG_BYTES, VERSION, header, unique,
};
use super::{AES_GCM_RECORDS_MAX, ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, RecordError};

/// Protects one direction's outgoing records.
///
/// Every call that seals uses up a sequence number, whatever becomes of the record.
pub struct RecordSealer {
    protection: Protection,
    keys: Keys,
    sequence: u64,
    /// The number of records this key has protected, which after a hand-over differs from
    /// `sequence` only in being bounded.
    records_max: u64,
}

impl RecordSealer {
    /// Starts sealing where rustls stopped.
    ///
    /// # Errors
    /// [`ProtectionError`] if the suite is unknown.
    pub fn new(keys: Keys) -> Result<Self, ProtectionError> {
        let records_max = match keys.cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => AES_GCM_RECORDS_MAX,
            // RFC 8446 §5.5: for ChaCha20 the sequence number would wrap first.
            Cipher::Chacha20Poly1305 => u64::MAX >> 2,
        };
        let protection = Protection::new(&keys)?;
        Ok(Self { protection, sequence: keys.sequence, keys, records_max })
    }

    /// The version whose record layout is used.
    #[must_use]
    pub fn version(&self) -> Version {
        self.keys.version
    }

    /// The cipher that protects the records.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        self.keys.cipher
    }

    /// The number of the next record.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Goes on this many records later, as if those between had been sent.
    pub(crate) fn skip_records(&mut self, records: u64) {
        self.sequence = self.sequence.saturating_add(records);
    }

    /// Returns the number of further records that this key may protect.
    #[must_use]
    pub fn records_left(&self) -> u64 {
        self.records_max.saturating_sub(self.sequence)
    }

    /// Bytes of a record before its plaintext.
    #[must_use]
    pub fn prefix_bytes(&self) -> usize {
        HEADER_BYTES + self.protection.form.explicit_nonce_bytes()
    }

    /// Bytes of a record after its plaintext.
    #[must_use]
    pub fn suffix_bytes(&self) -> usize {
        self.protection.form.inner_type_bytes() + TAG_BYTES
    }

    /// Seals one record in place: `record` holds [`prefix_bytes`](Self::prefix_bytes) of room,
    /// the plaintext, and [`suffix_bytes`](Self::suffix_bytes) of room.
    ///
    /// # Errors
    /// [`RecordError::Overflow`] if the plaintext is longer than a record may carry or `record`
    /// has no room for prefix and suffix, [`RecordError::KeyExhausted`] at the key's limit.
    pub fn seal(
        &mut self,
        content_type: ContentType,
        record: &mut [u8],
    ) -> Result<(), RecordError> {
        if self.records_left() == 0 {
            return Err(RecordError::KeyExhausted);
        }
        let overhead_bytes = self.prefix_bytes() + self.suffix_bytes();
        let plaintext_bytes =
            record.len().checked_sub(overhead_bytes).ok_or(RecordError::Overflow)?;
        if plaintext_bytes > PLAINTEXT_BYTES_MAX {
            return Err(RecordError::Overflow);
        }
        let sequence = self.sequence;
        self.sequence += 1;
        let form = self.protection.form;
        let outer_type = match form {
            NonceForm::Tls13 => ContentType::ApplicationData,
            NonceForm::Tls12Gcm | NonceForm::Tls12Chacha => content_type,
        };
        let nonce = self.protection.nonce(sequence);
        let body_bytes = record.len() - HEADER_BYTES;
        let (prefix, sealed) = record.split_at_mut(self.prefix_bytes());
        let (head, explicit) = prefix.split_at_mut(HEADER_BYTES);
        head.copy_from_slice(&header(outer_type, VERSION, body_bytes)?);
        if let (NonceForm::Tls12Gcm, Some(sent)) = (form, nonce.last_chunk::<8>()) {
            explicit.copy_from_slice(sent);
        }
        let (inner, tag) = sealed.split_at_mut(plaintext_bytes + form.inner_type_bytes());
        if let (NonceForm::Tls13, Some(inner_type)) = (form, inner.last_mut()) {
            *inner_type = content_type.byte();
        }
        let additional =
            self.protection.additional_data(sequence, content_type, VERSION, plaintext_bytes)?;
        let computed = self
            .protection
            .key
            .seal_in_place_separate_tag(unique(nonce), Aad::from(additional), inner)
            .map_err(|_| RecordError::Overflow)?;
        tag.copy_from_slice(computed.as_ref());
        Ok(())
    }

    /// The keys for the kernel to go on with. The sealer is consumed: nothing in user space can
    /// seal under this key again.
    #[must_use]
    pub fn into_kernel_keys(self) -> Option<TrafficKeys> {
        self.keys.for_kernel(self.sequence)
    }
}
