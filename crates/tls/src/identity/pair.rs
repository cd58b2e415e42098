//! A chain and its key, which fit each other, and how their files were when they were read: what did not change since is not read
//! again, each for itself.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use kettle_kernel::file_stamp::FileStamp;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::inspect::{self, Facts, KeyKind};
use super::pem::{self, ChainFile};
use super::{FileRole, IdentityError, colon_hex_sha256};
use crate::compressed_chain::CompressedChain;

/// The certificate and key of a server, without a staple.
pub(super) struct Pair {
    pub(super) certified: Arc<CertifiedKey>,
    /// But for the public keys: the certificates have them.
    pub(super) facts: Facts,
    pub(super) key_kind: KeyKind,
    pub(super) fingerprint: String,
    pub(super) has_dh_parameters: bool,
    /// Its chain without a staple, where it is to be compressed.
    pub(super) compressed: OnceLock<CompressedChain>,
    chain_stamp: Option<FileStamp>,
    key_stamp: Option<FileStamp>,
}

/// One of both: as it is read now, or as another pair has it.
enum Half<'b, T> {
    Read(T),
    Known(&'b Arc<Pair>),
}

impl Pair {
    /// Opens both files, and reads what is not as it was when it was read for `before`. Gives the permissions of the key's file,
    /// too, and `before` itself where both are as they were.
    pub(super) fn load(
        chain_path: &Path,
        key_path: &Path,
        before: Option<&Arc<Self>>,
    ) -> Result<(Arc<Self>, u32), IdentityError> {
        let file = pem::open(chain_path, FileRole::Chain)?;
        let known = before.filter(|before| file.is_still(before.chain_stamp));
        let mut chain_stamp = file.stamp();
        let mut key_mode = file.mode();
        let chain = match known {
            Some(known) => Half::Known(known),
            None => {
                let read = pem::read_chain(&file)?;
                let facts = inspect::inspect(&read.chain, chain_path)?;
                Half::Read((read, facts))
            }
        };
        let mut key_stamp = chain_stamp;
        let key = match (&chain, key_path == chain_path) {
            // Read once: another may take its place between two reads, and its key is not for this chain.
            (Half::Read((read, _)), true) => Half::Read(pem::parse_key(&read.text, key_path)?),
            (Half::Known(known), true) => Half::Known(known),
            (_, false) => {
                let file = pem::open(key_path, FileRole::Key)?;
                (key_stamp, key_mode) = (file.stamp(), file.mode());
                match before.filter(|before| file.is_still(before.key_stamp)) {
                    Some(known) => Half::Known(known),
                    None => Half::Read(pem::parse_key(&file.read()?, key_path)?),
                }
            }
        };
        let (certificates, facts, has_dh_parameters) = match (chain, &key) {
            (Half::Known(known), Half::Known(_)) => return Ok((Arc::clone(known), key_mode)),
            (Half::Known(known), Half::Read(_)) => {
                chain_stamp = known.chain_stamp;
                let certificates = known.certified.cert.clone();
                let facts = inspect::inspect(&certificates, chain_path)?;
                (certificates, facts, known.has_dh_parameters)
            }
            (Half::Read((ChainFile { chain, has_dh_parameters, .. }, facts)), _) => {
                (chain, facts, has_dh_parameters)
            }
        };
        let key = match key {
            Half::Read(der) => signing_key(der, key_path)?,
            Half::Known(known) => {
                key_stamp = known.key_stamp;
                Arc::clone(&known.certified.key)
            }
        };
        let pair = Self::of(certificates, facts, key, (chain_path, key_path))?;
        let pair = Self { has_dh_parameters, chain_stamp, key_stamp, ..pair };
        Ok((Arc::new(pair), key_mode))
    }

    /// From what is in no file.
    pub(super) fn from_pem(certificate: &str, key: &str) -> Result<Self, IdentityError> {
        let nowhere = Path::new("");
        let chain = pem::parse_certificates(certificate.as_bytes(), nowhere, FileRole::Chain)?;
        let facts = inspect::inspect(&chain, nowhere)?;
        let key = signing_key(pem::parse_key(key.as_bytes(), nowhere)?, nowhere)?;
        Self::of(chain, facts, key, (nowhere, nowhere))
    }

    /// Brings a chain and a key together, if the key is the first certificate's.
    fn of(
        chain: Vec<CertificateDer<'static>>,
        mut facts: Facts,
        key: Arc<dyn SigningKey>,
        (chain_path, key_path): (&Path, &Path),
    ) -> Result<Self, IdentityError> {
        let unsupported = || unsupported_key(key_path);
        let public_key = key.public_key().ok_or_else(unsupported)?;
        let fits = facts.public_keys.iter().position(|one| one == public_key.as_ref());
        if fits != Some(0) {
            return Err(key_mismatch(key_path, chain_path, fits.map(|index| index + 1)));
        }
        facts.public_keys = Vec::new();
        Ok(Self {
            key_kind: facts.key_kind.ok_or_else(unsupported)?,
            fingerprint: chain.first().map(|leaf| colon_hex_sha256(leaf)).unwrap_or_default(),
            certified: Arc::new(CertifiedKey::new(chain, key)),
            facts,
            has_dh_parameters: false,
            compressed: OnceLock::new(),
            chain_stamp: None,
            key_stamp: None,
        })
    }
}

fn signing_key(
    key: PrivateKeyDer<'static>,
    path: &Path,
) -> Result<Arc<dyn SigningKey>, IdentityError> {
    let der = Zeroizing::new(key);
    any_supported_type(&der).map_err(|_| unsupported_key(path))
}

fn unsupported_key(path: &Path) -> IdentityError {
    IdentityError::new(
        path,
        format!("the private key {} is damaged or of an unsupported kind", path.display()),
        "use ECDSA on P-256, P-384 or P-521, RSA of 2048 to 8192 bits, Ed25519, or ML-DSA",
    )
}

/// Returns the error of a key that is another certificate's: of that at this position of the file, counted from 1, or of none there.
fn key_mismatch(key: &Path, chain: &Path, fits_position: Option<usize>) -> IdentityError {
    let shown = key.display();
    let chain = chain.display();
    match fits_position {
        Some(position) => IdentityError::new(
            key,
            format!("the private key {shown} belongs to certificate {position} in {chain}"),
            "put that certificate first in its file, followed by the one that issued it",
        ),
        None => IdentityError::new(
            key,
            format!("the private key {shown} does not belong to the certificate {chain}"),
            "name the key that the certificate was requested with",
        ),
    }
}
