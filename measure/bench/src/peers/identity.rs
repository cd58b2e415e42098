//! The certificate all servers of a comparison show, as files in the forms they read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use kettle_tls::identity::KeyKind;
use kettle_tls::self_signed;

use super::error::PeerError;
use super::subject::CertificateKey;
use crate::word::Word;

/// A certificate and its key in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Both, the key first.
    pub both: PathBuf,
}

/// The certificate with this kind of key in the folder, made if it is not there: a comparison has one, whatever the server, and
/// RSA keys take long to make.
///
/// # Errors
/// [`PeerError::Unprepared`] if the certificate cannot be made or its files cannot be written.
pub fn obtain(folder: &Path, key: CertificateKey) -> Result<Identity, PeerError> {
    let path = |kind: &str| folder.join(format!("{}-{kind}.pem", key.word()));
    let identity =
        Identity { certificate: path("certificate"), key: path("key"), both: path("both") };
    // Written last, so what is there is whole.
    if identity.both.is_file() {
        return Ok(identity);
    }
    let names = self_signed::default_names(None);
    let pem = self_signed::generate_pem(&names, kind(key))
        .map_err(|error| PeerError::Unprepared(format!("no certificate: {error}")))?;
    let both = [pem.key.as_str(), pem.certificate.as_str()].concat();
    for (path, text) in [
        (&identity.certificate, pem.certificate.as_str()),
        (&identity.key, pem.key.as_str()),
        (&identity.both, both.as_str()),
    ] {
        write_private(path, text).map_err(PeerError::unwritable(path))?;
    }
    Ok(identity)
}

fn kind(key: CertificateKey) -> KeyKind {
    match key {
        CertificateKey::Rsa2048 => KeyKind::Rsa { bits: 2048 },
        CertificateKey::Rsa3072 => KeyKind::Rsa { bits: 3072 },
        CertificateKey::Rsa4096 => KeyKind::Rsa { bits: 4096 },
        CertificateKey::P256 => KeyKind::EcdsaP256,
        CertificateKey::Ed25519 => KeyKind::Ed25519,
    }
}

/// kettle and stunnel warn of keys that others can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&temporary)?.write_all(text.as_bytes())?;
    fs::rename(temporary, path)
}
