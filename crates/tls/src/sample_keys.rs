//! Record keys without a handshake, to test and to fuzz records.

use kettle_kernel::ktls::{Cipher, Version};
use rustls::ConnectionTrafficSecrets;
use rustls::crypto::cipher::{AeadKey, Iv};

use crate::records::{Keys, ProtectionError};

/// Keys that are the same in every run; the fuzzer needs that.
///
/// # Errors
/// [`ProtectionError`] if the suite is unknown.
pub fn keys_of(
    version: Version,
    cipher: Cipher,
    secret: [u8; SECRET_BYTES],
) -> Result<Keys, ProtectionError> {
    let mut key = [0; KEY_BYTES_MAX];
    let mut iv = [0; IV_BYTES];
    let (key_part, iv_part) = secret.split_at(KEY_BYTES_MAX);
    key.copy_from_slice(key_part);
    iv.copy_from_slice(iv_part);
    let key = AeadKey::from(key);
    let iv = Iv::from(iv);
    let secrets = match cipher {
        Cipher::Aes128Gcm => ConnectionTrafficSecrets::Aes128Gcm { key, iv },
        Cipher::Aes256Gcm => ConnectionTrafficSecrets::Aes256Gcm { key, iv },
        Cipher::Chacha20Poly1305 => ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv },
    };
    Keys::new(version, 0, &secrets)
}

/// A key and an IV.
pub const SECRET_BYTES: usize = KEY_BYTES_MAX + IV_BYTES;

const KEY_BYTES_MAX: usize = 32;
const IV_BYTES: usize = 12;

#[cfg(test)]
mod tests;
