//! The cipher suites kettle offers, one by one.

use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use crate::environment::paths_here;

/// A version and a cipher.
#[derive(Clone, Copy)]
pub struct Suite {
    /// The name of the suite in kettle's access log.
    pub name: &'static str,
    /// The name of the version in kettle's access log.
    pub version_name: &'static str,
    /// The version.
    pub version: &'static SupportedProtocolVersion,
    /// The suite.
    pub supported: SupportedCipherSuite,
    /// Bytes that a record has besides header and content.
    pub overhead_bytes: usize,
    /// Bytes on the wire, in each record, that make its nonce unique.
    pub explicit_nonce_bytes: usize,
}

/// TLS 1.3 with AES-128-GCM.
pub const TLS13_AES_128: Suite =
    tls13("TLS13_AES_128_GCM_SHA256", cipher_suite::TLS13_AES_128_GCM_SHA256);
/// TLS 1.3 with AES-256-GCM.
pub const TLS13_AES_256: Suite =
    tls13("TLS13_AES_256_GCM_SHA384", cipher_suite::TLS13_AES_256_GCM_SHA384);
/// TLS 1.3 with ChaCha20-Poly1305.
pub const TLS13_CHACHA20: Suite =
    tls13("TLS13_CHACHA20_POLY1305_SHA256", cipher_suite::TLS13_CHACHA20_POLY1305_SHA256);
/// TLS 1.2 with AES-128-GCM.
pub const TLS12_AES_128: Suite = tls12(
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    8,
);
/// TLS 1.2 with AES-256-GCM.
pub const TLS12_AES_256: Suite = tls12(
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    8,
);
/// TLS 1.2 with ChaCha20-Poly1305.
pub const TLS12_CHACHA20: Suite = tls12(
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    0,
);

/// Every suite.
pub const SUITES: [Suite; 6] =
    [TLS13_AES_128, TLS13_AES_256, TLS13_CHACHA20, TLS12_AES_128, TLS12_AES_256, TLS12_CHACHA20];

/// One suite of each version.
pub const ONE_OF_EACH_VERSION: [Suite; 2] = [TLS13_AES_128, TLS12_AES_128];

/// Each path that can be taken here, with one suite of each version.
pub fn paths_and_versions() -> impl Iterator<Item = (&'static str, Suite)> {
    paths_here().iter().flat_map(|path| ONE_OF_EACH_VERSION.map(|suite| (*path, suite)))
}

const fn tls13(name: &'static str, supported: SupportedCipherSuite) -> Suite {
    // Inner content type and tag.
    let overhead_bytes = 1 + TAG_BYTES;
    Suite {
        name,
        version_name: "TLSv1.3",
        version: &TLS13,
        supported,
        overhead_bytes,
        explicit_nonce_bytes: 0,
    }
}

const fn tls12(
    name: &'static str,
    supported: SupportedCipherSuite,
    explicit_nonce_bytes: usize,
) -> Suite {
    let overhead_bytes = explicit_nonce_bytes + TAG_BYTES;
    Suite {
        name,
        version_name: "TLSv1.2",
        version: &TLS12,
        supported,
        overhead_bytes,
        explicit_nonce_bytes,
    }
}

const TAG_BYTES: usize = 16;
