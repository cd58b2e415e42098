//! A certificate for trying things out: generated once, kept with its key in one private file,
//! and made anew when it runs out, no longer loads, or more names are wanted.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use kettle_kernel::process::name_beside;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_ML_DSA_44,
    PKCS_ML_DSA_65, PKCS_ML_DSA_87, PKCS_RSA_SHA256, RsaKeySize,
};
use time::OffsetDateTime;
use zeroize::Zeroizing;

pub use crate::error::SelfSignedError;
use crate::identity::{Identity, IdentityWarning, KeyKind, READABLE_BY_OTHERS};

/// A generated certificate that lies ready in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfSigned {
    /// The file with the certificate.
    pub chain: PathBuf,
    /// The file with the key: the same one, so that the two can never be of different making.
    pub key: PathBuf,
    /// The SHA-256 of the certificate as browsers show it.
    pub fingerprint_sha256: String,
    /// The last moment of its validity.
    pub not_after: SystemTime,
    /// It was made by this call, so browsers that trusted the former one will ask again.
    pub is_new: bool,
}

/// A certificate and its key as PEM texts.
pub struct Pem {
    /// The certificate.
    pub certificate: String,
    /// Its key, PKCS #8.
    pub key: Zeroizing<String>,
}

/// The names a machine is reached by from itself and its neighbours.
pub fn default_names(hostname: Option<&str>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    names.extend(hostname.map(str::to_ascii_lowercase).filter(|name| name != "localhost"));
    names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    names
}

/// Returns where the certificate is kept: the systemd state directory, the user's, or the system's.
pub fn default_directory() -> PathBuf {
    directory_from(|variable| std::env::var_os(variable))
}

/// Loads the certificate for these names from the directory, or generates it there.
///
/// # Errors
/// If no name can stand in a certificate, or a new one cannot be made or written there.
pub fn load_or_generate(directory: &Path, names: &[String]) -> Result<SelfSigned, SelfSignedError> {
    load_or_generate_at(directory, names, SystemTime::now())
}

fn load_or_generate_at(
    directory: &Path,
    names: &[String],
    now: SystemTime,
) -> Result<SelfSigned, SelfSignedError> {
    let names = usable(names);
    if names.is_empty() {
        return Err(SelfSignedError::NoUsableName);
    }
    let path = directory.join(FILE_NAME);
    if let Some(identity) = load_usable(&path, &names, now) {
        return Ok(describe(path, &identity, false));
    }
    let pem = generate(&names, KeyKind::EcdsaP256, now)?;
    let text = Zeroizing::new([pem.certificate.as_str(), pem.key.as_str()].concat());
    write_private(directory, &path, text.as_bytes())
        .map_err(|source| SelfSignedError::Unwritable { path: path.clone(), source })?;
    let (identity, _) =
        Identity::load_at(&path, &path, None, now).map_err(SelfSignedError::Load)?;
    Ok(describe(path, &identity, true))
}

fn describe(path: PathBuf, identity: &Identity, is_new: bool) -> SelfSigned {
    SelfSigned {
        chain: path.clone(),
        key: path,
        fingerprint_sha256: identity.fingerprint_sha256().to_owned(),
        not_after: identity.not_after(),
        is_new,
    }
}

/// The kept certificate, unless something calls for a new one. A key that others could read
/// counts as lost.
fn load_usable(path: &Path, names: &[String], now: SystemTime) -> Option<Identity> {
    let (identity, warnings) = Identity::load_at(path, path, None, now).ok()?;
    let is_exposed = fs::metadata(path).ok()?.permissions().mode() & READABLE_BY_OTHERS != 0;
    let is_unfit = is_exposed || warnings.iter().any(IdentityWarning::is_serious);
    let has_all = names.iter().all(|name| identity.names().contains(name));
    let lasts = identity.not_after() > now + RENEW_BEFORE_END;
    (!is_unfit && lasts && has_all).then_some(identity)
}

/// Names that can stand in a certificate, in lower case, each once, in a fixed order.
fn usable(names: &[String]) -> Vec<String> {
    let mut usable: Vec<String> = names
        .iter()
        .map(|name| name.trim_end_matches('.').to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()))
        .map(|name| match name.parse::<std::net::IpAddr>() {
            Ok(address) => address.to_string(),
            Err(_) => name,
        })
        .collect();
    usable.sort_unstable();
    usable.dedup();
    usable
}

/// Generates a certificate for these names, and keeps it nowhere.
///
/// # Errors
/// If a name cannot stand in a certificate, or no key can be made.
pub fn generate_pem(names: &[String], kind: KeyKind) -> Result<Pem, SelfSignedError> {
    generate(&usable(names), kind, SystemTime::now())
}

/// Generates an identity for these names that lives in this process only.
///
/// # Errors
/// As [`generate_pem`].
pub fn generate_in_memory(names: &[String]) -> Result<Identity, SelfSignedError> {
    let pem = generate_pem(names, KeyKind::EcdsaP256)?;
    Identity::from_pem(&pem.certificate, &pem.key).map_err(SelfSignedError::Load)
}

fn generate(names: &[String], kind: KeyKind, now: SystemTime) -> Result<Pem, SelfSignedError> {
    let failed = |error: rcgen::Error| SelfSignedError::Generation(error.to_string());
    let key = generate_key(kind)?;
    let mut parameters = CertificateParams::new(names.to_vec()).map_err(failed)?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "kettle self-signed");
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.not_before = OffsetDateTime::from(now - BACKDATED);
    parameters.not_after = OffsetDateTime::from(now - BACKDATED + VALIDITY);
    let certificate = parameters.self_signed(&key).map_err(failed)?;
    Ok(Pem { certificate: certificate.pem(), key: Zeroizing::new(key.serialize_pem()) })
}

/// RSA keys of 4096 bits may take seconds.
pub(crate) fn generate_key(kind: KeyKind) -> Result<KeyPair, SelfSignedError> {
    let rsa = |size| KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, size);
    let key = match kind {
        KeyKind::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyKind::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        KeyKind::Ed25519 => generate_ed25519(),
        KeyKind::MlDsa44 => KeyPair::generate_for(&PKCS_ML_DSA_44),
        KeyKind::MlDsa65 => KeyPair::generate_for(&PKCS_ML_DSA_65),
        KeyKind::MlDsa87 => KeyPair::generate_for(&PKCS_ML_DSA_87),
        KeyKind::Rsa { bits: 2048 } => rsa(RsaKeySize::_2048),
        KeyKind::Rsa { bits: 3072 } => rsa(RsaKeySize::_3072),
        KeyKind::Rsa { bits: 4096 } => rsa(RsaKeySize::_4096),
        KeyKind::EcdsaP521 | KeyKind::Rsa { .. } => Err(rcgen::Error::KeyGenerationUnavailable),
    };
    key.map_err(|error| SelfSignedError::Generation(error.to_string()))
}

/// With the public key beside the private one (RFC 5958), as rcgen writes it by itself, OpenSSL 3.0 does not read it.
fn generate_ed25519() -> Result<KeyPair, rcgen::Error> {
    let key = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new())
        .map_err(|_| rcgen::Error::RingUnspecified)?;
    KeyPair::from_pkcs8_der_and_sign_algo(&key.as_ref().into(), &PKCS_ED25519)
}

/// Writes beside the target and renames, so that a reader or a crash never meets half a file.
fn write_private(directory: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let temporary = name_beside(path);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        _ = fs::remove_file(&temporary);
    }
    written
}

/// `STATE_DIRECTORY` (systemd.exec(5)), then the XDG base directories, then the system's.
fn directory_from(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("STATE_DIRECTORY")
        .or_else(|| absolute("XDG_STATE_HOME").map(|path| path.join("kettle")))
        .or_else(|| absolute("HOME").map(|path| path.join(".local/state/kettle")))
        .unwrap_or_else(|| PathBuf::from("/var/lib/kettle"))
}

const FILE_NAME: &str = "self-signed.pem";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Browsers refuse leaves that are valid for more than 398 days.
const VALIDITY: Duration = DAY.saturating_mul(397);
/// For clients whose clocks are behind.
const BACKDATED: Duration = DAY;
/// A server that starts may run for a while.
const RENEW_BEFORE_END: Duration = DAY.saturating_mul(30);

#[cfg(test)]
mod tests;
