//! A server's identity: a certificate chain, its private key and perhaps an OCSP staple, loaded
//! from files with an exact account of what is wrong with them. Which identity a connection
//! gets is decided in `identity::select`.

pub(crate) mod inspect;
pub(crate) mod pem;
mod select;
mod staple;
mod warning;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

pub use inspect::{KeyKind, ends_soon};
pub use select::Identities;
pub use warning::{IdentityWarning, Utc};

pub use crate::error::{FileRole, IdentityError};
use inspect::Facts;
use pem::{ChainFile, KeyFile};
use staple::Staple;

/// A certificate chain with its key, ready for handshakes.
pub struct Identity {
    certified: Arc<CertifiedKey>,
    stapled: Option<Stapled>,
    key_kind: KeyKind,
    names: Vec<String>,
    common_name: Option<String>,
    not_before: SystemTime,
    not_after: SystemTime,
    fingerprint: String,
}

/// The same certificate with a staple, for as long as the staple is fresh.
struct Stapled {
    certified: Arc<CertifiedKey>,
    until: Option<SystemTime>,
}

impl Identity {
    /// Loads a PEM chain (leaf first), a PEM key and an OCSP response in DER.
    ///
    /// What makes the identity unusable is an error; everything else comes back as warnings.
    /// Those that will make clients refuse the server say so by
    /// [`is_serious`](IdentityWarning::is_serious).
    ///
    /// # Errors
    /// If a file cannot be read or is not what it should be, or key and certificate do not fit.
    pub fn load(
        chain: &Path,
        key: &Path,
        ocsp: Option<&Path>,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        Self::load_at(chain, key, ocsp, SystemTime::now())
    }

    /// [`load`](Self::load), checking validity at a given moment.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_at(
        chain_path: &Path,
        key_path: &Path,
        ocsp_path: Option<&Path>,
        now: SystemTime,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        let ChainFile { chain, has_dh_parameters, text, mode } = pem::read_chain(chain_path)?;
        let facts = inspect::inspect(&chain, chain_path, now)?;
        // Read once: another may take its place between two reads, and its key is not for this chain.
        let key_file = match key_path == chain_path {
            true => KeyFile { key: pem::parse_key(&text, key_path)?, mode },
            false => pem::read_key(key_path)?,
        };
        let (certified, key_kind) = certify(chain, &facts, key_file.key, key_path, chain_path)?;
        let mut warnings = facts.warnings.clone();
        if has_dh_parameters {
            warnings.push(IdentityWarning::DhParameters { path: chain_path.into() });
        }
        if key_file.mode & READABLE_BY_OTHERS != 0 {
            warnings.push(IdentityWarning::KeyReadableByOthers {
                path: key_path.into(),
                mode: key_file.mode,
            });
        }
        let stapled = match ocsp_path {
            Some(path) => staple(path, &facts, &certified, now, &mut warnings)?,
            None => None,
        };
        if facts.must_staple && stapled.is_none() {
            warnings.push(IdentityWarning::StapleWanted { path: chain_path.into() });
        }
        let identity = Self::of(certified, stapled, key_kind, facts);
        Ok((identity, warnings))
    }

    /// An identity from PEM texts that are in no file.
    pub(crate) fn from_pem(certificate: &str, key: &str) -> Result<Self, IdentityError> {
        let nowhere = Path::new("");
        let chain = pem::parse_certificates(certificate.as_bytes(), nowhere, FileRole::Chain)?;
        let facts = inspect::inspect(&chain, nowhere, SystemTime::now())?;
        let key = pem::parse_key(key.as_bytes(), nowhere)?;
        let (certified, key_kind) = certify(chain, &facts, key, nowhere, nowhere)?;
        Ok(Self::of(certified, None, key_kind, facts))
    }

    fn of(
        certified: CertifiedKey,
        stapled: Option<Stapled>,
        key_kind: KeyKind,
        facts: Facts,
    ) -> Self {
        Self {
            fingerprint: certified
                .cert
                .first()
                .map(|leaf| colon_hex_sha256(leaf))
                .unwrap_or_default(),
            certified: Arc::new(certified),
            stapled,
            key_kind,
            names: facts.names,
            common_name: facts.common_name,
            not_before: facts.not_before,
            not_after: facts.not_after,
        }
    }

    /// The DNS names and addresses the certificate is for, in lower case.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The names by which clients may ask for the certificate: those that it is for, and the common name of its subject,
    /// by which old certificates are still found.
    pub fn asked_names(&self) -> Vec<String> {
        let common_name = self.common_name.iter().filter(|name| !self.names.contains(name));
        self.names.iter().chain(common_name).cloned().collect()
    }

    /// Whether the certificate is for this name, directly or by a wildcard of one label.
    ///
    /// `name` may itself be a wildcard, as sites have them.
    pub fn covers(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|own| {
            own.eq_ignore_ascii_case(name)
                || match (own.strip_prefix("*."), parent) {
                    (Some(own), Some(parent)) => own.eq_ignore_ascii_case(parent),
                    _ => false,
                }
        })
    }

    /// The first moment of the certificate's validity.
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// The last moment of the certificate's validity.
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// True if a renewed certificate should be in its place by now, see [`ends_soon`].
    pub fn ends_soon(&self, now: SystemTime) -> bool {
        ends_soon(self.not_before, self.not_after, now)
    }

    /// The SHA-256 of the leaf as browsers show it: upper-case hex with colons.
    pub fn fingerprint_sha256(&self) -> &str {
        &self.fingerprint
    }

    /// The kind of key.
    pub fn key_kind(&self) -> KeyKind {
        self.key_kind
    }

    /// The chain and its key, as a client shows them.
    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }

    /// When its staple runs out, if it has one and knows.
    pub fn staple_until(&self) -> Option<SystemTime> {
        self.stapled.as_ref()?.until
    }

    /// What rustls signs with at this moment: a staple that ran out is left off, because
    /// clients treat a stale one as a failure and an absent one as none.
    pub(crate) fn certified_at(&self, now: SystemTime) -> &Arc<CertifiedKey> {
        match &self.stapled {
            Some(stapled) if stapled.until.is_none_or(|until| now < until) => &stapled.certified,
            _ => &self.certified,
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("names", &self.names)
            .field("key_kind", &self.key_kind)
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

/// Brings a chain and a key together, if the key is the first certificate's.
fn certify(
    chain: Vec<CertificateDer<'static>>,
    facts: &Facts,
    key: PrivateKeyDer<'static>,
    key_path: &Path,
    chain_path: &Path,
) -> Result<(CertifiedKey, KeyKind), IdentityError> {
    let unsupported = || IdentityError::UnsupportedKey { path: key_path.into() };
    let der = Zeroizing::new(key);
    let key = any_supported_type(&der).map_err(|_| unsupported())?;
    let public_key = key.public_key().ok_or_else(unsupported)?;
    let fits = facts.public_keys.iter().position(|one| one == public_key.as_ref());
    if fits != Some(0) {
        return Err(IdentityError::KeyMismatch {
            key: key_path.into(),
            chain: chain_path.into(),
            fits_position: fits.map(|index| index + 1),
        });
    }
    let key_kind = facts.key_kind.ok_or_else(unsupported)?;
    Ok((CertifiedKey::new(chain, key), key_kind))
}

/// Reads the staple and decides whether it may be sent with this certificate.
fn staple(
    path: &Path,
    facts: &Facts,
    certified: &CertifiedKey,
    now: SystemTime,
    warnings: &mut Vec<IdentityWarning>,
) -> Result<Option<Stapled>, IdentityError> {
    let der = pem::read_staple(path)?;
    let staple = Staple::decode(&der)
        .map_err(|detail| IdentityError::BadStaple { path: path.into(), detail })?;
    let path = path.to_path_buf();
    let objection = match staple.next_update {
        _ if staple.serial != facts.serial => {
            Some(IdentityWarning::StapleForAnotherCertificate { path })
        }
        _ if !staple.is_good => Some(IdentityWarning::StapleNotGood { path }),
        // RFC 6960 §4.2.2.1.
        _ if staple.this_update > now + CLOCK_SKEW_MAX => {
            Some(IdentityWarning::StapleNotYetValid { path, this_update: staple.this_update })
        }
        Some(next_update) if next_update <= now => {
            Some(IdentityWarning::StapleExpired { path, next_update })
        }
        _ => None,
    };
    if let Some(objection) = objection {
        warnings.push(objection);
        return Ok(None);
    }
    let certified = CertifiedKey { ocsp: Some(der), ..certified.clone() };
    Ok(Some(Stapled { certified: Arc::new(certified), until: staple.next_update }))
}

fn colon_hex_sha256(der: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, der);
    let pairs: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

/// How far the clocks of a responder and of this machine may be apart.
const CLOCK_SKEW_MAX: Duration = Duration::from_mins(5);

/// Everyone. A group is how operators let the serving user read a key that stays root's.
pub(crate) const READABLE_BY_OTHERS: u32 = 0o004;

#[cfg(test)]
mod tests;
