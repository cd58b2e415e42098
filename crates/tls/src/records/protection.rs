//! The common part of sealing and opening: an AEAD key, its nonces and its additional data.

use aws_lc_rs::aead::{self, LessSafeKey, Nonce, UnboundKey};
use kettle_kernel::ktls::{Cipher, TrafficKeys, Version};
use rustls::{CipherSuite, ConnectionTrafficSecrets};
use std::fmt;
use zeroize::Zeroizing;

use super::{ContentType, RecordError};

/// One direction's traffic key as rustls hands it over, with the version that says how to use it.
pub struct Keys {
    pub(super) version: Version,
    pub(super) cipher: Cipher,
    pub(super) key: Zeroizing<Vec<u8>>,
    pub(super) iv: [u8; IV_BYTES],
    pub(super) sequence: u64,
}

/// A suite that neither kernel TLS nor this crate carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionError;

impl fmt::Display for ProtectionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("the negotiated cipher suite is none of those kettle protects records with")
    }
}

impl std::error::Error for ProtectionError {}

impl Keys {
    /// Takes over what rustls extracted for one direction; `sequence` is the next record's number.
    ///
    /// # Errors
    /// [`ProtectionError`] if the suite is unknown.
    pub fn new(
        version: Version,
        sequence: u64,
        secrets: &ConnectionTrafficSecrets,
    ) -> Result<Self, ProtectionError> {
        let (cipher, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Cipher::Aes128Gcm, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Cipher::Aes256Gcm, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (Cipher::Chacha20Poly1305, key, iv)
            }
            _ => return Err(ProtectionError),
        };
        let iv = iv.as_ref().try_into().map_err(|_| ProtectionError)?;
        let key = key.as_ref().get(..cipher.key_bytes()).ok_or(ProtectionError)?;
        Ok(Self { version, cipher, key: Zeroizing::new(key.to_vec()), iv, sequence })
    }

    /// Keys that were derived here; `sequence` is the next record's number.
    pub(crate) fn of_suite(
        suite: CipherSuite,
        key: Zeroizing<Vec<u8>>,
        iv: [u8; IV_BYTES],
        sequence: u64,
    ) -> Result<Self, ProtectionError> {
        let (version, cipher) = match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => (Version::Tls13, Cipher::Aes128Gcm),
            CipherSuite::TLS13_AES_256_GCM_SHA384 => (Version::Tls13, Cipher::Aes256Gcm),
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => {
                (Version::Tls13, Cipher::Chacha20Poly1305)
            }
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => {
                (Version::Tls12, Cipher::Aes128Gcm)
            }
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => {
                (Version::Tls12, Cipher::Aes256Gcm)
            }
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
                (Version::Tls12, Cipher::Chacha20Poly1305)
            }
            _ => return Err(ProtectionError),
        };
        Ok(Self { version, cipher, key, iv, sequence })
    }

    /// The same keys in the form the kernel takes them.
    pub(super) fn for_kernel(&self, sequence: u64) -> Option<TrafficKeys> {
        TrafficKeys::new(self.version, self.cipher, &self.key, self.iv, sequence).ok()
    }
}

/// The way nonces and additional data are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NonceForm {
    /// RFC 8446 §5.2: the content type is encrypted, the header is the additional data.
    Tls13,
    /// RFC 5288: four secret bytes, then eight that travel with the record.
    Tls12Gcm,
    /// RFC 7905: the nonce as in TLS 1.3, the additional data as in TLS 1.2.
    Tls12Chacha,
}

impl NonceForm {
    /// Bytes between the header and the ciphertext.
    pub(super) fn explicit_nonce_bytes(self) -> usize {
        match self {
            NonceForm::Tls12Gcm => 8,
            NonceForm::Tls13 | NonceForm::Tls12Chacha => 0,
        }
    }

    /// Bytes between the plaintext and the tag.
    pub(super) fn inner_type_bytes(self) -> usize {
        match self {
            NonceForm::Tls13 => 1,
            NonceForm::Tls12Gcm | NonceForm::Tls12Chacha => 0,
        }
    }
}

/// An AEAD key bound to the way its version uses it.
pub(super) struct Protection {
    pub(super) form: NonceForm,
    pub(super) key: LessSafeKey,
    iv: [u8; 12],
}

impl Protection {
    pub(super) fn new(keys: &Keys) -> Result<Self, ProtectionError> {
        let algorithm = match keys.cipher {
            Cipher::Aes128Gcm => &aead::AES_128_GCM,
            Cipher::Aes256Gcm => &aead::AES_256_GCM,
            Cipher::Chacha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        let form = match (keys.version, keys.cipher) {
            (Version::Tls13, _) => NonceForm::Tls13,
            (Version::Tls12, Cipher::Chacha20Poly1305) => NonceForm::Tls12Chacha,
            (Version::Tls12, _) => NonceForm::Tls12Gcm,
        };
        let key = UnboundKey::new(algorithm, &keys.key).map_err(|_| ProtectionError)?;
        Ok(Self { form, key: LessSafeKey::new(key), iv: keys.iv })
    }

    /// The nonce of the record with this number: the IV XOR the number (RFC 8446 §5.3).
    ///
    /// For TLS 1.2 AES-GCM the last eight bytes are also what the record carries, as rustls
    /// chose them during the handshake, so the same numbers never give the same nonce twice.
    pub(super) fn nonce(&self, sequence: u64) -> [u8; 12] {
        let [a, b, c, d, number @ ..] = self.iv;
        let [e, f, g, h, i, j, k, l] = (u64::from_be_bytes(number) ^ sequence).to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// The nonce of a received TLS 1.2 AES-GCM record.
    pub(super) fn nonce_with_explicit(&self, explicit: [u8; 8]) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, received) in nonce.iter_mut().skip(4).zip(explicit) {
            *byte = received;
        }
        nonce
    }

    pub(super) fn additional_data(
        &self,
        sequence: u64,
        content_type: ContentType,
        version: [u8; 2],
        plaintext_bytes: usize,
    ) -> Result<AdditionalData, RecordError> {
        Ok(match self.form {
            NonceForm::Tls13 => {
                let body = plaintext_bytes + 1 + aead::MAX_TAG_LEN;
                AdditionalData::Tls13(header(ContentType::ApplicationData, version, body)?)
            }
            NonceForm::Tls12Gcm | NonceForm::Tls12Chacha => {
                let mut data = [0; 13];
                let (number, rest) = data.split_at_mut(8);
                number.copy_from_slice(&sequence.to_be_bytes());
                rest.copy_from_slice(&header(content_type, version, plaintext_bytes)?);
                AdditionalData::Tls12(data)
            }
        })
    }
}

/// The additional data of one record.
pub(super) enum AdditionalData {
    Tls13([u8; 5]),
    Tls12([u8; 13]),
}

impl AsRef<[u8]> for AdditionalData {
    fn as_ref(&self) -> &[u8] {
        match self {
            AdditionalData::Tls13(data) => data,
            AdditionalData::Tls12(data) => data,
        }
    }
}

pub(super) fn header(
    content_type: ContentType,
    version: [u8; 2],
    body_bytes: usize,
) -> Result<[u8; 5], RecordError> {
    let body_bytes = u16::try_from(body_bytes).map_err(|_| RecordError::Overflow)?;
    let ([high, low], [major, minor]) = (body_bytes.to_be_bytes(), version);
    Ok([content_type.byte(), major, minor, high, low])
}

/// The version that both put in a record's header.
pub(super) const VERSION: [u8; 2] = [3, 3];

/// aws-lc-rs' nonce type from ours.
pub(super) fn unique(nonce: [u8; 12]) -> Nonce {
    Nonce::assume_unique_for_key(nonce)
}

/// The implicit part of a nonce, in every suite.
pub(crate) const IV_BYTES: usize = 12;

/// Every AEAD here has a tag of 16 bytes.
pub(super) const TAG_BYTES: usize = aead::MAX_TAG_LEN;
