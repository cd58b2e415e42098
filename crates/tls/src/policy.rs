//! The operator's bounds on a handshake (versions, suites, groups, tickets) as types, and the rustls configuration made of it.
//! Among versions and suites the server's preference decides.

use std::sync::Arc;

use kettle_kernel::ktls::{Cipher, Version};
use rustls::compress::CompressionCache;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::client_auth::ClientAuth;
use crate::compressed_chain::COMPRESSORS;
pub use crate::error::PolicyError;
use crate::identity::Identities;
use crate::tickets::{Audience, SharedResumption};

/// A key exchange group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// ML-KEM-768 with X25519, against recorded traffic being broken later; TLS 1.3 only.
    X25519MlKem768,
    /// X25519.
    X25519,
    /// The NIST curve P-256.
    P256,
    /// The NIST curve P-384.
    P384,
}

/// The handshake settings of all listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Enabled versions, in any order.
    pub versions: Vec<Version>,
    /// Ciphers of the enabled suites, preferred first.
    pub suites: Vec<Cipher>,
    /// Enabled groups. If a client offers several of them, rustls follows its order.
    pub groups: Vec<Group>,
    /// Tickets after a TLS 1.3 handshake; without any, TLS 1.2 has none either. Clients may ask for
    /// fewer (RFC 9149), never for more.
    pub tickets_per_handshake: usize,
    /// True if clients that take certificates compressed get them so (RFC 8879).
    pub certificate_compression: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            versions: vec![Version::Tls12, Version::Tls13],
            // AES-128 is as safe as it need be and costs the least.
            suites: vec![Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Chacha20Poly1305],
            groups: Group::ALL.to_vec(),
            tickets_per_handshake: 2,
            certificate_compression: false,
        }
    }
}

/// The common settings of sites whose connections one acceptor takes.
#[derive(Clone, Copy, Debug)]
pub struct SiteGroup<'a> {
    /// The service behind the listener. Sessions that were made for one service open no other.
    pub service: &'a str,
    /// The way clients show who they are, if they are asked.
    pub client_auth: Option<&'a ClientAuth>,
    /// The protocols spoken, by their registered names (RFC 7301 §6), preferred first.
    pub alpn: &'a [&'a [u8]],
    /// True if a client must offer one of them. A client that offers others only is always refused.
    pub is_alpn_required: bool,
}

impl Default for SiteGroup<'_> {
    /// HTTP/1 for everybody.
    fn default() -> Self {
        Self { service: HTTPS_SERVICE, client_auth: None, alpn: &HTTP1, is_alpn_required: false }
    }
}

impl SiteGroup<'_> {
    /// Returns the audience for sessions of these sites.
    #[must_use]
    pub fn audience(&self) -> Audience {
        let mut parts = vec![self.service.as_bytes()];
        if self.is_alpn_required {
            parts.extend(self.alpn);
        }
        Audience::new(&parts, self.client_auth)
    }
}

/// Makes the rustls configuration that all connections of a group of sites share.
///
/// Early data is never accepted: it can be replayed.
pub(crate) fn group_config(
    policy: &Policy,
    identities: Arc<Identities>,
    resumption: &SharedResumption,
    group: &SiteGroup<'_>,
) -> Result<ServerConfig, PolicyError> {
    check(policy)?;
    let versions: Vec<_> = policy.versions.iter().map(supported).collect();
    let provider = Arc::new(provider(policy));
    let verifier = match group.client_auth {
        Some(client_auth) => client_auth.verifier(Arc::clone(&provider))?,
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(PolicyError::refused)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::clone(&identities) as _);
    // rustls would compress in handshakes, and keep what it did in a list under one lock.
    config.cert_compression_cache = Arc::new(CompressionCache::Disabled);
    if policy.certificate_compression {
        identities.iter().for_each(|identity| identity.compress_chain());
        config.cert_compressors = COMPRESSORS.to_vec();
    }
    config.ignore_client_order = true;
    config.alpn_protocols = group.alpn.iter().map(|protocol| protocol.to_vec()).collect();
    // The record keys leave rustls after every handshake: see `records`.
    config.enable_secret_extraction = true;
    config.max_early_data_size = 0;
    config.send_tls13_tickets = policy.tickets_per_handshake;
    config.max_tls13_tickets = policy.tickets_per_handshake;
    let (ticketer, sessions) =
        resumption.for_audience(group.audience(), group.client_auth.is_some());
    config.session_storage = sessions;
    if policy.tickets_per_handshake > 0 {
        // The one ticket of a TLS 1.2 handshake; without this, rustls makes none.
        config.ticketer = ticketer;
    }
    Ok(config)
}

/// The configuration for sites that ask for nothing in particular.
#[cfg(test)]
pub(crate) fn server_config(
    policy: &Policy,
    identities: Arc<Identities>,
    resumption: &SharedResumption,
) -> Result<Arc<ServerConfig>, PolicyError> {
    group_config(policy, identities, resumption, &SiteGroup::default()).map(Arc::new)
}

/// Refuses what rustls would accept at start and then fail every handshake with.
pub(crate) fn check(policy: &Policy) -> Result<(), PolicyError> {
    let is_hybrid = |group: &Group| *group == Group::X25519MlKem768;
    let fault = if policy.versions.is_empty() {
        "no TLS version is enabled; name tls1.2, tls1.3 or both"
    } else if policy.suites.is_empty() {
        "no cipher suite is enabled; name aes-128-gcm, aes-256-gcm or chacha20-poly1305"
    } else if policy.groups.is_empty() {
        "no key exchange group is enabled; name x25519mlkem768, x25519, p-256 or p-384"
    } else if policy.versions.contains(&Version::Tls12) && policy.groups.iter().all(is_hybrid) {
        "TLS 1.2 is enabled, but x25519mlkem768 exists in TLS 1.3 only; add x25519, p-256 \
         or p-384, or leave tls1.2 out"
    } else {
        return Ok(());
    };
    Err(PolicyError(fault.into()))
}

pub(crate) fn provider(policy: &Policy) -> CryptoProvider {
    // A client would offer those of other versions too.
    let is_enabled = |suite: &SupportedCipherSuite| {
        let version = if suite.tls13().is_some() { Version::Tls13 } else { Version::Tls12 };
        policy.versions.contains(&version)
    };
    let suites = policy.suites.iter().copied().flat_map(suites_with);
    CryptoProvider {
        cipher_suites: suites.filter(is_enabled).collect(),
        kx_groups: policy.groups.iter().map(|group| group.supported()).collect(),
        ..aws_lc_rs::default_provider()
    }
}

/// The suites of TLS 1.3 and of TLS 1.2 for ECDSA and RSA certificates. TLS 1.2 without forward
/// secrecy or with CBC is not offered at all.
fn suites_with(cipher: Cipher) -> [SupportedCipherSuite; 3] {
    match cipher {
        Cipher::Aes128Gcm => [
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ],
        Cipher::Aes256Gcm => [
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ],
        Cipher::Chacha20Poly1305 => [
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
    }
}

pub(crate) fn supported(version: &Version) -> &'static SupportedProtocolVersion {
    match version {
        Version::Tls12 => &version::TLS12,
        Version::Tls13 => &version::TLS13,
    }
}

impl Group {
    /// Every group, preferred first.
    pub const ALL: [Self; 4] = [Self::X25519MlKem768, Self::X25519, Self::P256, Self::P384];

    /// The word for it in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::X25519MlKem768 => "x25519mlkem768",
            Self::X25519 => "x25519",
            Self::P256 => "p-256",
            Self::P384 => "p-384",
        }
    }

    /// Its name as TLS libraries and people write it.
    pub fn title(self) -> &'static str {
        match self {
            Self::X25519MlKem768 => "X25519MLKEM768",
            Self::X25519 => "X25519",
            Self::P256 => "P-256",
            Self::P384 => "P-384",
        }
    }

    pub(crate) fn supported(self) -> &'static dyn SupportedKxGroup {
        match self {
            Self::X25519MlKem768 => kx_group::X25519MLKEM768,
            Self::X25519 => kx_group::X25519,
            Self::P256 => kx_group::SECP256R1,
            Self::P384 => kx_group::SECP384R1,
        }
    }
}

/// The service behind all https listeners: a session of one is good for the others.
pub const HTTPS_SERVICE: &str = "https";

/// By their registered names (RFC 7301 §6): a client may insist on HTTP/1.0.
pub const HTTP1: [&[u8]; 2] = [b"http/1.1", b"http/1.0"];

/// The same, and HTTP/2 before them.
pub const HTTP2_AND_1: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];

#[cfg(test)]
mod tests;
