//! OpenSSL's words for what an offer holds, as the configuration files of nginx, HAProxy, hitch and stunnel take them.

use kettle_tls::{Cipher, Version};

use super::subject::CertificateKey;

/// The version: `TLSv1.3`.
pub fn version(version: Version) -> &'static str {
    match version {
        Version::Tls12 => "TLSv1.2",
        Version::Tls13 => "TLSv1.3",
    }
}

pub fn suite_tls13(cipher: Cipher) -> &'static str {
    match cipher {
        Cipher::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
        Cipher::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
        Cipher::Chacha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
    }
}

/// The TLS 1.2 suite that fits the certificate.
pub fn suite_tls12(cipher: Cipher, key: CertificateKey) -> &'static str {
    let is_rsa =
        matches!(key, CertificateKey::Rsa2048 | CertificateKey::Rsa3072 | CertificateKey::Rsa4096);
    match (cipher, is_rsa) {
        (Cipher::Aes128Gcm, false) => "ECDHE-ECDSA-AES128-GCM-SHA256",
        (Cipher::Aes256Gcm, false) => "ECDHE-ECDSA-AES256-GCM-SHA384",
        (Cipher::Chacha20Poly1305, false) => "ECDHE-ECDSA-CHACHA20-POLY1305",
        (Cipher::Aes128Gcm, true) => "ECDHE-RSA-AES128-GCM-SHA256",
        (Cipher::Aes256Gcm, true) => "ECDHE-RSA-AES256-GCM-SHA384",
        (Cipher::Chacha20Poly1305, true) => "ECDHE-RSA-CHACHA20-POLY1305",
    }
}
