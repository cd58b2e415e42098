//! A server's identity: a certificate chain, its private key and perhaps an OCSP staple, loaded
//! from files with an exact account of what is wrong with them. Which identity a connection
//! gets is decided in `identity::select`.

pub(crate) mod inspect;
mod pair;
pub(crate) mod pem;
mod select;
mod staple;
mod warning;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use kettle_kernel::file_stamp::FileStamp;
use rustls::sign::CertifiedKey;

pub use inspect::{KeyKind, ends_soon};
pub use select::Identities;
pub(crate) use warning::READABLE_BY_OTHERS;
pub use warning::{IdentityWarning, Utc};

use crate::compressed_chain::CompressedChain;
pub use crate::error::{FileRole, IdentityError};
use inspect::Facts;
use pair::Pair;
use staple::Staple;

/// A certificate chain with its key, ready for handshakes.
pub struct Identity {
    pair: Arc<Pair>,
    staple: Option<KnownStaple>,
    stapled: Option<Stapled>,
}

/// The content of the file of a staple, whether or not it is sent.
struct KnownStaple {
    staple: Staple,
    stamp: Option<FileStamp>,
}

/// The same certificate with a staple, for as long as the staple is fresh.
struct Stapled {
    certified: Arc<CertifiedKey>,
    until: Option<SystemTime>,
    /// Its chain with the staple, where it is to be compressed.
    compressed: OnceLock<CompressedChain>,
}

impl Identity {
    /// Loads a PEM chain (leaf first), a PEM key and an OCSP response in DER.
    ///
    /// A fault that makes the identity unusable is an error; everything else comes back as warnings.
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
        chain: &Path,
        key: &Path,
        ocsp: Option<&Path>,
        now: SystemTime,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        let (files, warnings) = Files::open(chain, key, ocsp, None, now)?;
        Ok((files.identity(None), warnings))
    }

    /// [`load`](Self::load) of the files that this one was loaded from: what has not changed since is opened and not read. If
    /// nothing has changed, this is given again, with its warnings of now.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_again(
        self: &Arc<Self>,
        chain: &Path,
        key: &Path,
        ocsp: Option<&Path>,
    ) -> Result<(Arc<Self>, Vec<IdentityWarning>), IdentityError> {
        self.load_again_at(chain, key, ocsp, SystemTime::now())
    }

    /// [`load_again`](Self::load_again), checking validity at a given moment.
    pub(crate) fn load_again_at(
        self: &Arc<Self>,
        chain: &Path,
        key: &Path,
        ocsp: Option<&Path>,
        now: SystemTime,
    ) -> Result<(Arc<Self>, Vec<IdentityWarning>), IdentityError> {
        let (files, warnings) = Files::open(chain, key, ocsp, Some(self), now)?;
        let identity = match files.are_of(self) {
            true => Arc::clone(self),
            false => Arc::new(files.identity(Some(self))),
        };
        Ok((identity, warnings))
    }

    /// An identity from PEM texts that are in no file.
    pub(crate) fn from_pem(certificate: &str, key: &str) -> Result<Self, IdentityError> {
        let pair = Arc::new(Pair::from_pem(certificate, key)?);
        Ok(Self { pair, staple: None, stapled: None })
    }

    fn facts(&self) -> &Facts {
        &self.pair.facts
    }

    /// The DNS names and addresses the certificate is for, in lower case.
    pub fn names(&self) -> &[String] {
        &self.facts().names
    }

    /// The names by which clients may ask for the certificate: those that it is for, and the common name of its subject,
    /// by which old certificates are still found.
    pub fn asked_names(&self) -> Vec<String> {
        let Facts { names, common_name, .. } = self.facts();
        let common_name = common_name.iter().filter(|name| !names.contains(name));
        names.iter().chain(common_name).cloned().collect()
    }

    /// True if the certificate is for this name, directly or by a wildcard of one label.
    ///
    /// `name` may itself be a wildcard, as sites have them.
    pub fn covers(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names().iter().any(|own| {
            own.eq_ignore_ascii_case(name)
                || match (own.strip_prefix("*."), parent) {
                    (Some(own), Some(parent)) => own.eq_ignore_ascii_case(parent),
                    _ => false,
                }
        })
    }

    /// The first moment of the certificate's validity.
    pub fn not_before(&self) -> SystemTime {
        self.facts().not_before
    }

    /// The last moment of the certificate's validity.
    pub fn not_after(&self) -> SystemTime {
        self.facts().not_after
    }

    /// True if a renewed certificate should be in its place by now, see [`ends_soon`].
    pub fn ends_soon(&self, now: SystemTime) -> bool {
        ends_soon(self.not_before(), self.not_after(), now)
    }

    /// The SHA-256 of the leaf as browsers show it: upper-case hex with colons.
    pub fn fingerprint_sha256(&self) -> &str {
        &self.pair.fingerprint
    }

    /// The kind of key.
    pub fn key_kind(&self) -> KeyKind {
        self.pair.key_kind
    }

    /// The chain and its key, as a client shows them.
    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.pair.certified
    }

    /// When its staple runs out, if it has one and knows.
    pub fn staple_until(&self) -> Option<SystemTime> {
        self.stapled.as_ref()?.until
    }

    /// Compresses what is shown, with its staple and without, for clients that take it so. That takes its time, once.
    pub(crate) fn compress_chain(&self) {
        let plain = &self.pair;
        plain.compressed.get_or_init(|| CompressedChain::new(&plain.certified));
        if let Some(stapled) = &self.stapled {
            stapled.compressed.get_or_init(|| CompressedChain::new(&stapled.certified));
        }
    }

    /// Returns the key with which rustls signs with at this moment: a staple that ran out is left off, because
    /// clients treat a stale one as a failure and an absent one as none.
    pub(crate) fn certified_at(&self, now: SystemTime) -> &Arc<CertifiedKey> {
        match &self.stapled {
            Some(stapled) if stapled.until.is_none_or(|until| now < until) => &stapled.certified,
            _ => &self.pair.certified,
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("names", &self.names())
            .field("key_kind", &self.key_kind())
            .field("fingerprint", &self.fingerprint_sha256())
            .finish_non_exhaustive()
    }
}

/// The files of an identity, as far as they had to be read.
struct Files {
    pair: Arc<Pair>,
    staple: Option<StapleFile>,
}

struct StapleFile {
    /// Nothing where it is as it was.
    read: Option<Vec<u8>>,
    known: KnownStaple,
    is_sent: bool,
}

impl Files {
    fn open(
        chain: &Path,
        key: &Path,
        ocsp: Option<&Path>,
        before: Option<&Identity>,
        now: SystemTime,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        let (pair, mode) = Pair::load(chain, key, before.map(|before| &before.pair))?;
        let mut warnings = pair.facts.warnings(chain, now);
        if pair.has_dh_parameters {
            warnings.push(IdentityWarning::mild(chain, DH_PARAMETERS_UNUSED));
        }
        warnings.extend(IdentityWarning::of_mode(FileRole::Key, key, mode));
        let mut staple = None;
        if let Some(path) = ocsp {
            let object = |known: &KnownStaple| object(&known.staple, path, &pair.facts, now);
            // A staple that was not sent was not kept.
            let is_enough = |before: &&Identity| {
                before.stapled.is_some() || before.staple.as_ref().and_then(object).is_some()
            };
            let known = before.filter(is_enough).and_then(|before| before.staple.as_ref());
            let file = StapleFile::open(path, known)?;
            let objection = object(&file.known);
            staple = Some(StapleFile { is_sent: objection.is_none(), ..file });
            warnings.extend(objection);
        }
        if pair.facts.must_staple && !staple.as_ref().is_some_and(|staple| staple.is_sent) {
            let text = format!(
                "the certificate {} demands an OCSP response (must-staple) and there is none to send, so \
                 clients refuse it; fetch one, name it by `ocsp` and reload",
                chain.display()
            );
            warnings.push(IdentityWarning::serious(chain, text));
        }
        Ok((Self { pair, staple }, warnings))
    }

    /// True if an identity would be made that is the same as this one.
    fn are_of(&self, identity: &Identity) -> bool {
        let is_same = match &self.staple {
            Some(staple) => staple.read.is_none() && staple.is_sent == identity.stapled.is_some(),
            None => identity.staple.is_none(),
        };
        is_same && Arc::ptr_eq(&self.pair, &identity.pair)
    }

    fn identity(self, before: Option<&Identity>) -> Identity {
        let Self { pair, staple } = self;
        let Some(StapleFile { read, known, is_sent }) = staple else {
            return Identity { pair, staple: None, stapled: None };
        };
        let sent = before.and_then(|before| before.stapled.as_ref());
        let der = read.or_else(|| sent?.certified.ocsp.clone()).filter(|_| is_sent);
        let stapled = der.map(|der| Stapled {
            certified: Arc::new(CertifiedKey { ocsp: Some(der), ..(*pair.certified).clone() }),
            until: known.staple.next_update,
            compressed: OnceLock::new(),
        });
        Identity { pair, staple: Some(known), stapled }
    }
}

impl StapleFile {
    fn open(path: &Path, before: Option<&KnownStaple>) -> Result<Self, IdentityError> {
        let file = pem::open(path, FileRole::Staple)?;
        if let Some(KnownStaple { staple, stamp }) = before.filter(|it| file.is_still(it.stamp)) {
            let known = KnownStaple { staple: staple.clone(), stamp: *stamp };
            return Ok(Self { read: None, known, is_sent: false });
        }
        let der = file.read()?.to_vec();
        let shown = path.display();
        let staple = Staple::decode(&der).map_err(|detail| {
            IdentityError::new(
                path,
                format!("the OCSP response {shown} cannot be used: {detail}"),
                format!(
                    "fetch it again with `openssl ocsp -issuer ISSUER -cert CERT -url URL \
                     -respout {shown}`"
                ),
            )
        })?;
        let known = KnownStaple { staple, stamp: file.stamp() };
        Ok(Self { read: Some(der), known, is_sent: false })
    }
}

/// Why a staple is not to be sent with this certificate, if so.
fn object(staple: &Staple, path: &Path, facts: &Facts, now: SystemTime) -> Option<IdentityWarning> {
    let shown = path.display();
    match staple.next_update {
        _ if staple.serial != facts.serial => Some(IdentityWarning::serious(
            path,
            format!(
                "the OCSP response {shown} is about another certificate and is not sent; fetch the \
                 one for this certificate"
            ),
        )),
        _ if !staple.is_good => Some(IdentityWarning::serious(
            path,
            format!(
                "the OCSP response {shown} does not call the certificate good (it is revoked or \
                 unknown) and is not sent; have the certificate issued again"
            ),
        )),
        // RFC 6960 §4.2.2.1.
        _ if staple.this_update > now + CLOCK_SKEW_MAX => Some(IdentityWarning::mild(
            path,
            format!(
                "the OCSP response {shown} is valid from {} only and is not sent; check this machine's clock",
                Utc(staple.this_update)
            ),
        )),
        Some(next_update) if next_update <= now => Some(IdentityWarning::mild(
            path,
            format!(
                "the OCSP response {shown} ran out at {} and is not sent; fetch a new one and reload",
                Utc(next_update)
            ),
        )),
        _ => None,
    }
}

fn colon_hex_sha256(der: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, der);
    let pairs: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

/// The greatest distance between the clocks of a responder and of this machine.
const CLOCK_SKEW_MAX: Duration = Duration::from_mins(5);

/// Without the path: many files have them, and one warning says it for all.
const DH_PARAMETERS_UNUSED: &str = "DH parameters in certificate files are not used: keys are exchanged by elliptic curves \
                                    and ML-KEM only; they may stay there";

#[cfg(test)]
mod tests;
