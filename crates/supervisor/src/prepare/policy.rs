//! The versions, ciphers and key exchanges of the configuration, in the words of `tls`.

use kettle_config::{BackendTls, Group as ConfigGroup, Suite, Tls, TlsListener, TlsVersion};
use kettle_tls::policy::{Group, Policy};
use kettle_tls::{Cipher, Version};

/// Returns the policy for all clients.
pub(super) fn of(tls: &Tls) -> Policy {
    let group = |group: &ConfigGroup| match group {
        ConfigGroup::X25519MlKem768 => Group::X25519MlKem768,
        ConfigGroup::X25519 => Group::X25519,
        ConfigGroup::P256 => Group::P256,
        ConfigGroup::P384 => Group::P384,
    };
    Policy {
        versions: versions(&tls.versions),
        suites: suites(&tls.suites),
        groups: tls.groups.iter().map(group).collect(),
        tickets_per_handshake: tls.tickets.into(),
        certificate_compression: tls.certificate_compression,
    }
}

/// Returns the policy for a listener that may say otherwise.
pub(super) fn of_listener(listener: &TlsListener, all: &Policy) -> Policy {
    let mut policy = all.clone();
    if !listener.versions.is_empty() {
        policy.versions = versions(&listener.versions);
    }
    if !listener.suites.is_empty() {
        policy.suites = suites(&listener.suites);
    }
    policy
}

/// Returns the policy for the servers of a backend: nothing of that for clients.
pub(super) fn of_backend(tls: &BackendTls) -> Policy {
    Policy { versions: versions(&tls.versions), suites: suites(&tls.suites), ..Policy::default() }
}

fn versions(versions: &[TlsVersion]) -> Vec<Version> {
    let version = |version: &TlsVersion| match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    };
    versions.iter().map(version).collect()
}

fn suites(suites: &[Suite]) -> Vec<Cipher> {
    let cipher = |suite: &Suite| match suite {
        Suite::Aes128Gcm => Cipher::Aes128Gcm,
        Suite::Aes256Gcm => Cipher::Aes256Gcm,
        Suite::Chacha20Poly1305 => Cipher::Chacha20Poly1305,
    };
    suites.iter().map(cipher).collect()
}
