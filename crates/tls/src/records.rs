//! TLS record protection after the handshake (RFC 8446 §5, RFC 5246 §6.2).
//!
//! A [`RecordSealer`] and a [`RecordOpener`] each own one direction's key, nonce and sequence
//! number. Handing a direction to the kernel consumes its sealer, so no nonce can be used twice.
//! The AEADs are aws-lc-rs; this file only lays out records.

mod open;
mod protection;
#[cfg(test)]
pub(crate) mod raw;
mod seal;
#[cfg(test)]
mod tests;

use std::fmt;

pub use open::{Opened, RecordOpener};
pub(crate) use protection::IV_BYTES;
pub use protection::{Keys, ProtectionError};
pub use seal::RecordSealer;

/// `opaque type; uint16 version; uint16 length`.
pub const HEADER_BYTES: usize = 5;

/// The most plaintext one record may carry (RFC 8446 §5.1).
pub const PLAINTEXT_BYTES_MAX: usize = 16_384;

/// The most a TLS 1.2 record's body may measure (RFC 5246 §6.2.3); TLS 1.3 allows less.
pub(crate) const BODY_BYTES_MAX: usize = PLAINTEXT_BYTES_MAX + 2_048;

/// The most a TLS 1.3 record's body may measure (RFC 8446 §5.2).
pub(crate) const BODY_BYTES_MAX_TLS13: usize = PLAINTEXT_BYTES_MAX + 256;

/// The largest record either version can send, header included.
pub const RECORD_BYTES_MAX: usize = HEADER_BYTES + BODY_BYTES_MAX;

/// AES-GCM keys carry at most this many records (RFC 8446 §5.5: 2^24.5 full-size records).
pub const AES_GCM_RECORDS_MAX: u64 = 1 << 24;

/// `ContentType` (RFC 8446 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// Only legal before the handshake ends.
    ChangeCipherSpec,
    /// An alert.
    Alert,
    /// A handshake message or a piece of one.
    Handshake,
    /// Application data.
    ApplicationData,
}

impl ContentType {
    /// The byte on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            ContentType::ChangeCipherSpec => 20,
            ContentType::Alert => 21,
            ContentType::Handshake => 22,
            ContentType::ApplicationData => 23,
        }
    }

    /// The content type a byte on the wire stands for.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            20 => Some(ContentType::ChangeCipherSpec),
            21 => Some(ContentType::Alert),
            22 => Some(ContentType::Handshake),
            23 => Some(ContentType::ApplicationData),
            _ => None,
        }
    }
}

/// Why a record could not be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The record does not authenticate under the current key.
    BadRecordMac,
    /// The record, or its plaintext, is longer than the protocol allows.
    Overflow,
    /// The record's type or inner type is none that may be sent now.
    UnexpectedType,
    /// The record's version is none of TLS.
    UnknownVersion,
    /// The key has protected as many records as it safely can.
    KeyExhausted,
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RecordError::BadRecordMac => "a record does not authenticate",
            RecordError::Overflow => "a record is longer than TLS allows",
            RecordError::UnexpectedType => "a record has a type that may not be sent now",
            RecordError::UnknownVersion => "a record has a version that TLS does not have",
            RecordError::KeyExhausted => "the key has protected as many records as it safely can",
        })
    }
}

impl std::error::Error for RecordError {}

/// The length of the first whole record in `buffer`, header included, or `None` if more bytes
/// are needed to tell or to complete it.
///
/// # Errors
/// [`RecordError`] if what is there cannot be the beginning of a protected record.
pub fn whole_record_bytes(buffer: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some((header, rest)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let [content_type, major, _minor, high, low] = *header;
    if ContentType::from_byte(content_type).is_none() {
        return Err(RecordError::UnexpectedType);
    }
    if major != 3 {
        return Err(RecordError::UnknownVersion);
    }
    let body_bytes = usize::from(u16::from_be_bytes([high, low]));
    if body_bytes > BODY_BYTES_MAX {
        return Err(RecordError::Overflow);
    }
    Ok((rest.len() >= body_bytes).then_some(HEADER_BYTES + body_bytes))
}

/// Returns the number of further bytes that the first record in `buffer` needs, as far as can be told: zero without a header.
#[must_use]
pub fn missing_record_bytes(buffer: &[u8]) -> usize {
    let Some(([_, _, _, high, low], rest)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        return 0;
    };
    let body_bytes = usize::from(u16::from_be_bytes([*high, *low])).min(BODY_BYTES_MAX);
    body_bytes.saturating_sub(rest.len())
}
