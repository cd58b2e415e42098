//! Random record keys without a handshake, to measure what records cost.

use aws_lc_rs::rand;
use kettle_kernel::ktls::{Cipher, Version};
use rustls::ConnectionTrafficSecrets;
use rustls::crypto::cipher::{AeadKey, Iv};

use crate::records::{Keys, ProtectionError};

/// Keys that no peer knows.
///
/// # Errors
/// [`ProtectionError`] if the system gives no random numbers.
pub fn sample_keys(version: Version, cipher: Cipher) -> Result<Keys, ProtectionError> {
    let mut secret = [0; KEY_BYTES_MAX];
    rand::fill(&mut secret).map_err(|_| ProtectionError)?;
    let mut iv = [0; IV_BYTES];
    rand::fill(&mut iv).map_err(|_| ProtectionError)?;
    let (key, iv) = (AeadKey::from(secret), Iv::from(iv));
    let secrets = match cipher {
        Cipher::Aes128Gcm => ConnectionTrafficSecrets::Aes128Gcm { key, iv },
        Cipher::Aes256Gcm => ConnectionTrafficSecrets::Aes256Gcm { key, iv },
        Cipher::Chacha20Poly1305 => ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv },
    };
    Keys::new(version, 0, &secrets)
}

const KEY_BYTES_MAX: usize = 32;
const IV_BYTES: usize = 12;

#[cfg(test)]
mod tests;
