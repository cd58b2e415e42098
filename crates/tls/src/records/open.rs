//! Opens incoming records, in place.

use std::ops::Range;

use aws_lc_rs::aead::Aad;

use super::protection::{Keys, NonceForm, Protection, ProtectionError, TAG_BYTES, unique};
use super::{BODY_BYTES_MAX_TLS13, ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, RecordError};

/// Opens one direction's incoming records.
pub struct RecordOpener {
    protection: Protection,
    sequence: u64,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The type of its content.
    pub content_type: ContentType,
    /// The range in the record where the plaintext now is.
    pub plaintext: Range<usize>,
}

impl RecordOpener {
    /// Starts opening where rustls stopped.
    ///
    /// # Errors
    /// [`ProtectionError`] if the suite is unknown.
    pub fn new(keys: &Keys) -> Result<Self, ProtectionError> {
        Ok(Self { protection: Protection::new(keys)?, sequence: keys.sequence })
    }

    /// Returns the bytes of plaintext in the record behind this header, if it is application data without padding. TLS 1.3
    /// shows neither from outside (RFC 8446 §5.2, §5.4).
    #[must_use]
    pub fn plaintext_bytes(&self, header: [u8; HEADER_BYTES]) -> Option<u16> {
        let [content_type, _, _, high, low] = header;
        let form = self.protection.form;
        let overhead_bytes = form.explicit_nonce_bytes() + form.inner_type_bytes() + TAG_BYTES;
        let is_data = ContentType::from_byte(content_type) == Some(ContentType::ApplicationData);
        let body_bytes = u16::from_be_bytes([high, low]);
        let bytes = body_bytes.checked_sub(u16::try_from(overhead_bytes).ok()?)?;
        (is_data && usize::from(bytes) <= PLAINTEXT_BYTES_MAX).then_some(bytes)
    }

    /// Passes over one record that is dropped unopened: the next is opened under the next number.
    ///
    /// # Errors
    /// [`RecordError::KeyExhausted`].
    pub fn skip(&mut self) -> Result<(), RecordError> {
        self.sequence = self.sequence.checked_add(1).ok_or(RecordError::KeyExhausted)?;
        Ok(())
    }

    /// Goes on this many records later, as if those between had come.
    pub(crate) fn skip_records(&mut self, records: u64) {
        self.sequence = self.sequence.saturating_add(records);
    }

    /// Opens one whole record (see [`super::whole_record_bytes`]) in place.
    ///
    /// # Errors
    /// [`RecordError`]; the connection cannot go on after one.
    pub fn open(&mut self, record: &mut [u8]) -> Result<Opened, RecordError> {
        let opened = self.peek(record)?;
        self.skip()?;
        Ok(opened)
    }

    /// As [`open`](Self::open), for a copy of a record that will be opened later.
    ///
    /// # Errors
    /// As there.
    pub fn peek(&self, record: &mut [u8]) -> Result<Opened, RecordError> {
        let (head, body) =
            record.split_first_chunk_mut::<HEADER_BYTES>().ok_or(RecordError::BadRecordMac)?;
        let [content_type, major, minor, ..] = *head;
        let outer_type = ContentType::from_byte(content_type).ok_or(RecordError::UnexpectedType)?;
        let sequence = self.sequence;
        let form = self.protection.form;
        if form == NonceForm::Tls13 {
            // Unprotected records, compatibility ChangeCipherSpec included, end with the handshake.
            if outer_type != ContentType::ApplicationData {
                return Err(RecordError::UnexpectedType);
            }
            if body.len() > BODY_BYTES_MAX_TLS13 {
                return Err(RecordError::Overflow);
            }
        }
        let explicit_bytes = form.explicit_nonce_bytes();
        let overhead_bytes = explicit_bytes + form.inner_type_bytes() + TAG_BYTES;
        let inner_bytes =
            body.len().checked_sub(overhead_bytes).ok_or(RecordError::BadRecordMac)?;
        let (explicit, sealed) = body.split_at_mut(explicit_bytes);
        let nonce = match explicit.first_chunk::<8>() {
            Some(received) => self.protection.nonce_with_explicit(*received),
            None => self.protection.nonce(sequence),
        };
        let additional =
            self.protection.additional_data(sequence, outer_type, [major, minor], inner_bytes)?;
        let plaintext = self
            .protection
            .key
            .open_in_place(unique(nonce), Aad::from(additional), sealed)
            .map_err(|_| RecordError::BadRecordMac)?;
        let start = HEADER_BYTES + explicit_bytes;
        // Padding counts (RFC 8446 §5.4).
        if plaintext.len() > PLAINTEXT_BYTES_MAX + form.inner_type_bytes() {
            return Err(RecordError::Overflow);
        }
        let (content_type, bytes) = match form {
            NonceForm::Tls13 => inner_type(plaintext)?,
            NonceForm::Tls12Gcm | NonceForm::Tls12Chacha => (outer_type, plaintext.len()),
        };
        Ok(Opened { content_type, plaintext: start..start + bytes })
    }
}

/// The content type is the last byte that is not zero; what follows is padding (RFC 8446 §5.4).
fn inner_type(inner: &[u8]) -> Result<(ContentType, usize), RecordError> {
    let position = inner.iter().rposition(|&byte| byte != 0).ok_or(RecordError::UnexpectedType)?;
    let content_type = inner
        .get(position)
        .and_then(|&byte| ContentType::from_byte(byte))
        .ok_or(RecordError::UnexpectedType)?;
    Ok((content_type, position))
}
