//! Reads from certificates what an operator and the resolver want to know: names, dates, kind
//! of key, fitness for serving, and whether the chain is complete and in order.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::SignatureScheme;
use rustls_pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

use super::pem::{COPY_AGAIN, no_certificate};
use super::staple;
use super::warning::{IdentityWarning, Utc};
use crate::error::IdentityError;

/// The kind of a certificate's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyKind {
    /// ECDSA on the curve P-256.
    EcdsaP256,
    /// ECDSA on the curve P-384.
    EcdsaP384,
    /// ECDSA on the curve P-521.
    EcdsaP521,
    /// Ed25519.
    Ed25519,
    /// ML-DSA with the parameter set 44, for TLS 1.3 only (RFC 9881).
    MlDsa44,
    /// The same with the parameter set 65.
    MlDsa65,
    /// The same with the parameter set 87.
    MlDsa87,
    /// RSA with a modulus of this many bits.
    Rsa {
        /// The length of the modulus.
        bits: usize,
    },
}

impl KeyKind {
    /// The signature schemes a key of this kind makes (RFC 8446 §4.2.3).
    pub fn schemes(self) -> &'static [SignatureScheme] {
        match self {
            Self::EcdsaP256 => &[SignatureScheme::ECDSA_NISTP256_SHA256],
            Self::EcdsaP384 => &[SignatureScheme::ECDSA_NISTP384_SHA384],
            Self::EcdsaP521 => &[SignatureScheme::ECDSA_NISTP521_SHA512],
            Self::Ed25519 => &[SignatureScheme::ED25519],
            Self::MlDsa44 => &[SignatureScheme::ML_DSA_44],
            Self::MlDsa65 => &[SignatureScheme::ML_DSA_65],
            Self::MlDsa87 => &[SignatureScheme::ML_DSA_87],
            Self::Rsa { .. } => &[
                SignatureScheme::RSA_PSS_SHA512,
                SignatureScheme::RSA_PSS_SHA384,
                SignatureScheme::RSA_PSS_SHA256,
                SignatureScheme::RSA_PKCS1_SHA512,
                SignatureScheme::RSA_PKCS1_SHA384,
                SignatureScheme::RSA_PKCS1_SHA256,
            ],
        }
    }

    /// The type of key, as a site may have one certificate for each.
    pub fn key_type(self) -> &'static str {
        match self {
            Self::EcdsaP256 | Self::EcdsaP384 | Self::EcdsaP521 => "ECDSA",
            Self::Ed25519 => "Ed25519",
            Self::MlDsa44 | Self::MlDsa65 | Self::MlDsa87 => "ML-DSA",
            Self::Rsa { .. } => "RSA",
        }
    }

    pub(crate) fn of(certificate: &X509Certificate<'_>) -> Option<Self> {
        match certificate.public_key().parsed().ok()? {
            PublicKey::RSA(key) => Some(Self::Rsa { bits: key.key_size() }),
            PublicKey::EC(point) => match point.key_size() {
                256 => Some(Self::EcdsaP256),
                384 => Some(Self::EcdsaP384),
                521 | 528 => Some(Self::EcdsaP521),
                _ => None,
            },
            _ => match certificate.public_key().algorithm.algorithm.to_id_string().as_str() {
                // RFC 8410 §3: id-Ed25519.
                "1.3.101.112" => Some(Self::Ed25519),
                // RFC 9881 §2: id-ml-dsa-44 and its siblings.
                "2.16.840.1.101.3.4.3.17" => Some(Self::MlDsa44),
                "2.16.840.1.101.3.4.3.18" => Some(Self::MlDsa65),
                "2.16.840.1.101.3.4.3.19" => Some(Self::MlDsa87),
                _ => None,
            },
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EcdsaP256 => f.write_str("ECDSA P-256"),
            Self::EcdsaP384 => f.write_str("ECDSA P-384"),
            Self::EcdsaP521 => f.write_str("ECDSA P-521"),
            Self::Ed25519 => f.write_str("Ed25519"),
            Self::MlDsa44 => f.write_str("ML-DSA-44"),
            Self::MlDsa65 => f.write_str("ML-DSA-65"),
            Self::MlDsa87 => f.write_str("ML-DSA-87"),
            Self::Rsa { bits } => write!(f, "RSA {bits}"),
        }
    }
}

/// The content of the certificates of one file.
pub(super) struct Facts {
    pub(super) names: Vec<String>,
    /// In lower case. No client of today looks at it.
    pub(super) common_name: Option<String>,
    pub(super) not_before: SystemTime,
    pub(super) not_after: SystemTime,
    /// Absent when the key is of a kind TLS servers here cannot use.
    pub(super) key_kind: Option<KeyKind>,
    pub(super) serial: Vec<u8>,
    /// Clients take the certificate only with a staple.
    pub(super) must_staple: bool,
    /// The public key of each certificate, as SubjectPublicKeyInfo.
    pub(super) public_keys: Vec<Vec<u8>>,
    /// The warnings that hold at any time.
    lasting: Vec<IdentityWarning>,
}

impl Facts {
    /// Returns the warnings about the chain of this file at this moment.
    pub(super) fn warnings(&self, path: &Path, now: SystemTime) -> Vec<IdentityWarning> {
        check_dates(self, path, now).into_iter().chain(self.lasting.iter().cloned()).collect()
    }
}

/// Decodes the chain and checks it.
pub(super) fn inspect(
    chain: &[CertificateDer<'static>],
    path: &Path,
) -> Result<Facts, IdentityError> {
    let certificates = chain
        .iter()
        .enumerate()
        .map(|(index, der)| decode(der, path, index + 1))
        .collect::<Result<Vec<_>, _>>()?;
    let Some(leaf) = certificates.first() else {
        return Err(no_certificate(path, false));
    };
    let mut facts = Facts {
        names: names(leaf),
        common_name: common_name(leaf),
        not_before: moment(leaf.validity().not_before.timestamp()),
        not_after: moment(leaf.validity().not_after.timestamp()),
        key_kind: KeyKind::of(leaf),
        serial: leaf.raw_serial().to_vec(),
        must_staple: must_staple(leaf),
        public_keys: certificates.iter().map(|one| one.public_key().raw.to_vec()).collect(),
        lasting: Vec::new(),
    };
    facts.lasting.extend(check_purpose(leaf, &facts, path));
    facts.lasting.extend(check_order(&certificates, path));
    Ok(facts)
}

pub(crate) fn decode<'c>(
    der: &'c CertificateDer<'static>,
    path: &Path,
    position: usize,
) -> Result<X509Certificate<'c>, IdentityError> {
    match X509Certificate::from_der(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(bad_certificate(path, position, "bytes follow the certificate")),
        Err(error) => Err(bad_certificate(path, position, error)),
    }
}

/// Returns the error of a certificate, counted from 1, that is no well-formed one.
pub(crate) fn bad_certificate(
    path: &Path,
    position: usize,
    detail: impl fmt::Display,
) -> IdentityError {
    let shown = path.display();
    let fault = format!("certificate {position} in {shown} cannot be decoded ({detail})");
    IdentityError::new(path, fault, COPY_AGAIN)
}

/// The DNS names and addresses of the subject alternative name, in lower case.
fn names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = leaf.subject_alternative_name() else {
        return Vec::new();
    };
    let general_names = &extension.value.general_names;
    general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        })
        .collect()
}

fn common_name(leaf: &X509Certificate<'_>) -> Option<String> {
    let name = leaf.subject().iter_common_name().next()?;
    Some(name.as_str().ok()?.to_ascii_lowercase())
}

fn must_staple(leaf: &X509Certificate<'_>) -> bool {
    let mut extensions = leaf.extensions().iter();
    // RFC 7633 §6: id-pe-tlsfeature.
    let features = extensions.find(|it| it.oid.to_id_string() == "1.3.6.1.5.5.7.1.24");
    features.is_some_and(|features| staple::is_among_features(features.value))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(octets.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// Dates before 1970 count as 1970: such a certificate is long expired either way.
pub(crate) fn moment(unix_seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(unix_seconds).unwrap_or(0))
}

fn check_dates(facts: &Facts, path: &Path, now: SystemTime) -> Option<IdentityWarning> {
    let shown = path.display();
    let begin = Utc(facts.not_before);
    let end = Utc(facts.not_after);
    if now > facts.not_after {
        let text = format!(
            "the certificate {shown} expired at {end}; put a renewed one in its place and reload"
        );
        return Some(IdentityWarning::serious(path, text));
    }
    if now < facts.not_before {
        let text = format!(
            "the certificate {shown} is valid from {begin} only; check this machine's clock, or use \
             the certificate it replaces until then"
        );
        return Some(IdentityWarning::serious(path, text));
    }
    ends_soon(facts.not_before, facts.not_after, now).then(|| {
        let text = format!(
            "the certificate {shown} ends at {end}; put a renewed one in its place and reload, and look why \
             that was not done yet"
        );
        IdentityWarning::mild(path, text)
    })
}

/// True if a certificate that is valid should have been replaced by now: in its last 14 days, or the last third of its
/// lifetime if that is less. Outside of its validity something else is wrong.
pub fn ends_soon(not_before: SystemTime, not_after: SystemTime, now: SystemTime) -> bool {
    let lifetime = not_after.duration_since(not_before).unwrap_or_default();
    let left = not_after.duration_since(now).unwrap_or_default();
    (not_before..=not_after).contains(&now) && left < WARNED_BEFORE_END.min(lifetime / 3)
}

/// Clients of ACME renew a certificate of 90 days 30 days before its end.
const WARNED_BEFORE_END: Duration = Duration::from_secs(14 * 24 * 60 * 60);

fn check_purpose(leaf: &X509Certificate<'_>, facts: &Facts, path: &Path) -> Vec<IdentityWarning> {
    let shown = path.display();
    let mut warnings = Vec::new();
    if facts.names.is_empty() {
        let text = format!(
            "the certificate {shown} names no host (no subject alternative name), so clients \
             refuse it; have it issued again with the site's names"
        );
        warnings.push(IdentityWarning::serious(path, text));
    }
    let signs = match leaf.key_usage() {
        Ok(Some(usage)) => usage.value.digital_signature(),
        _ => true,
    };
    let serves = match leaf.extended_key_usage() {
        Ok(Some(usage)) => usage.value.server_auth || usage.value.any,
        _ => true,
    };
    let is_authority = leaf.is_ca();
    let reason = match (signs, serves) {
        (false, _) if is_authority => Some("it is a certificate authority's own certificate"),
        (false, _) => Some("its key usage lacks digitalSignature"),
        (true, false) => Some("its extended key usage lacks serverAuth"),
        (true, true) => None,
    };
    if let Some(reason) = reason {
        let text = format!(
            "the certificate {shown} is not for servers: {reason}; have a server certificate issued"
        );
        warnings.push(IdentityWarning::serious(path, text));
    } else if is_authority {
        let text = format!(
            "{shown} is marked as a certificate authority, so some clients refuse it; add \
             `-addext basicConstraints=critical,CA:FALSE` to `openssl req`"
        );
        warnings.push(IdentityWarning::mild(path, text));
    }
    warnings
}

/// Follows the issuers from the leaf on. The last certificate's issuer may be absent when it is
/// not the leaf: servers leave the root out.
fn check_order(certificates: &[X509Certificate<'_>], path: &Path) -> Option<IdentityWarning> {
    let shown = path.display();
    for (index, certificate) in certificates.iter().enumerate() {
        let issuer = certificate.issuer().as_raw();
        if issuer == certificate.subject().as_raw() {
            return None;
        }
        let position = index + 1;
        let is_issuer = |other: &X509Certificate<'_>| other.subject().as_raw() == issuer;
        let follower = certificates.get(position);
        if follower.is_some_and(is_issuer) {
            continue;
        }
        if certificates.iter().any(is_issuer) {
            let text = format!(
                "certificate {position} in {shown} is not followed by its issuer; order the file \
                 leaf first, each certificate followed by the one that issued it"
            );
            return Some(IdentityWarning::mild(path, text));
        }
        return (index == 0 || follower.is_some()).then(|| {
            let text = format!(
                "the issuer of certificate {position} in {shown} ({}) is not in the file; \
                 unless it is a root that clients have, append its certificate",
                certificate.issuer()
            );
            IdentityWarning::mild(path, text)
        });
    }
    None
}
