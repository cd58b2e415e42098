//! The authorities from which a certificate may come: CA certificates and revocation lists, loaded from files with an exact
//! account of what is wrong with them.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_kernel::file_stamp::FileStamp;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Version};
use x509_parser::revocation_list::CertificateRevocationList;

use crate::error::{FileRole, IdentityError};
use crate::identity::inspect::{bad_certificate, decode, moment};
use crate::identity::pem::{self, COPY_AGAIN, OpenedFile};
use crate::identity::{IdentityWarning, Utc};
use crate::peer_identity::sha256;
use crate::pin::Pin;

/// The certificate authorities whose certificates are taken.
#[derive(Clone)]
pub struct Roots {
    pub(crate) store: Arc<RootCertStore>,
    pub(crate) digests: Vec<[u8; 32]>,
    /// True if they are no authorities, and each stands for itself.
    pub(crate) are_pinned: bool,
    file: Arc<RootsFile>,
}

/// The warnings about the file from which they come, and its state when it was read.
#[derive(Default)]
struct RootsFile {
    stamp: Option<FileStamp>,
    /// The pin of the only certificate, where it is perhaps shown itself.
    lone: Option<String>,
    /// When each certificate ends.
    ends: Vec<SystemTime>,
}

impl Roots {
    /// Takes every certificate of a PEM file for an authority. If it was loaded before and has not changed since, it is opened and not
    /// read.
    ///
    /// # Errors
    /// [`IdentityError`] if the file cannot be read, or has something else in it.
    pub fn load(
        path: &Path,
        before: Option<&Self>,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        Self::load_at(path, before, SystemTime::now())
    }

    /// The same for authorities whose names clients are told when they are asked for a certificate.
    ///
    /// # Errors
    /// As [`load`](Self::load), and if there is no room for the names.
    pub fn load_for_clients(
        path: &Path,
        before: Option<&Self>,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        let roots = Self::opened(path, before)?;
        let warnings = roots.warnings(path, true, SystemTime::now());
        let names = roots.store.subjects();
        let bytes: usize = names.iter().map(|name| NAME_LENGTH_BYTES + name.as_ref().len()).sum();
        match bytes <= NAMES_BYTES_MAX {
            true => Ok((roots, warnings)),
            false => Err(IdentityError::new(
                path,
                format!(
                    "the names of the authorities in {} have {bytes} bytes, too many to tell clients",
                    path.display()
                ),
                "leave those in it that issue certificates to clients",
            )),
        }
    }

    /// Takes every certificate of a PEM file for one that clients show.
    ///
    /// # Errors
    /// As [`load`](Self::load), but for certificates that are no authority's.
    pub fn load_pinned(path: &Path) -> Result<Self, IdentityError> {
        let bytes = pem::open(path, FileRole::Roots)?.read()?;
        let certificates = pem::parse_certificates(&bytes, path, FileRole::Roots)?;
        for (index, der) in certificates.iter().enumerate() {
            decode(der, path, index + 1)?;
        }
        let digests = certificates.iter().map(|it| sha256(it)).collect();
        Ok(Self { digests, are_pinned: true, ..Self::none() })
    }

    /// [`load`](Self::load), checking validity at a given moment.
    pub(crate) fn load_at(
        path: &Path,
        before: Option<&Self>,
        now: SystemTime,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        let roots = Self::opened(path, before)?;
        let warnings = roots.warnings(path, false, now);
        Ok((roots, warnings))
    }

    fn opened(path: &Path, before: Option<&Self>) -> Result<Self, IdentityError> {
        let file = pem::open(path, FileRole::Roots)?;
        match before.filter(|before| file.is_still(before.file.stamp)) {
            Some(known) => Ok(known.clone()),
            None => Self::read(&file, path),
        }
    }

    /// Returns the warnings about the authorities of `path`, for servers or for clients, at this moment.
    fn warnings(&self, path: &Path, for_clients: bool, now: SystemTime) -> Vec<IdentityWarning> {
        let shown = path.display();
        let RootsFile { lone, ends, .. } = &*self.file;
        let lone = lone.as_ref().map(|pin| {
            let (vouched, advice) = match for_clients {
                true => ("clients", String::new()),
                false => (
                    "servers",
                    format!(
                        "; for a server that shows it write `pins = [\"{pin}\"]` in place of `roots`"
                    ),
                ),
            };
            let text = format!(
                "the only certificate in {shown} is a self-signed authority's: {vouched} must show one that it signed, \
                 and are refused with itself{advice}"
            );
            IdentityWarning::mild(path, text)
        });
        let ended = ends.iter().enumerate().filter(|(_, not_after)| now > **not_after);
        let ended = ended.map(|(index, not_after)| {
            let text = format!(
                "certificate {} in {shown} expired at {}, but what it signed is still taken; put \
                 a renewed one in its place, or remove it, and reload",
                index + 1,
                Utc(*not_after)
            );
            IdentityWarning::mild(path, text)
        });
        lone.into_iter().chain(ended).collect()
    }

    fn read(file: &OpenedFile<'_>, path: &Path) -> Result<Self, IdentityError> {
        let certificates = pem::parse_certificates(&file.read()?, path, FileRole::Roots)?;
        let mut roots = Self::none();
        let mut about = RootsFile { stamp: file.stamp(), ..RootsFile::default() };
        let is_alone = certificates.len() == 1;
        for (index, der) in certificates.into_iter().enumerate() {
            let position = index + 1;
            let certificate = decode(&der, path, position)?;
            // Before version 3 a certificate could not say so.
            if certificate.version() == X509Version::V3 && !certificate.is_ca() {
                let shown = path.display();
                return Err(IdentityError::new(
                    path,
                    format!("certificate {position} in {shown} is no certificate authority's"),
                    "name the authority that signs, not a certificate it signed; a server's own key is trusted by a pin",
                ));
            }
            if is_alone && is_perhaps_shown(&certificate) {
                about.lone = Some(Pin(sha256(certificate.public_key().raw)).to_string());
            }
            about.ends.push(moment(certificate.validity().not_after.timestamp()));
            roots.add(der).map_err(|error| bad_certificate(path, position, error))?;
        }
        roots.file = Arc::new(about);
        Ok(roots)
    }

    fn none() -> Self {
        let store = Arc::new(RootCertStore::empty());
        Self { store, digests: Vec::new(), are_pinned: false, file: Arc::default() }
    }

    /// Takes the authorities of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`, as far as they can be read.
    ///
    /// # Errors
    /// [`IdentityError`] if there is not one.
    pub fn system() -> Result<Self, IdentityError> {
        let rustls_native_certs::CertificateResult { certs, errors, .. } =
            rustls_native_certs::load_native_certs();
        let mut roots = Self::none();
        for certificate in certs {
            // There is always one that is too old for anything.
            let _ = roots.add(certificate);
        }
        if !roots.digests.is_empty() {
            return Ok(roots);
        }
        let fault = match errors.first() {
            Some(error) => {
                format!("the system's certificate authorities cannot be read ({error})")
            }
            None => "the system has no certificate authorities".to_owned(),
        };
        let advice =
            "install them (Debian's package is ca-certificates), or name a file of authorities";
        Err(IdentityError::new(Path::new(SYSTEM_ROOTS), fault, advice))
    }

    fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        let digest = sha256(&certificate);
        Arc::make_mut(&mut self.store).add(certificate)?;
        self.digests.push(digest);
        Ok(())
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roots({})", self.digests.len())
    }
}

/// True for what `openssl req -x509` makes when nothing else is asked: it is marked as an authority's, and meant to be shown
/// itself as often as not. An authority that was made as one says that it signs certificates.
fn is_perhaps_shown(certificate: &X509Certificate<'_>) -> bool {
    let signs = match certificate.key_usage() {
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        _ => false,
    };
    certificate.issuer().as_raw() == certificate.subject().as_raw() && !signs
}

/// Until when a chain is good that was verified now, in seconds since 1970. One that is over already is not among those it was
/// verified by: servers send them still.
pub(crate) fn valid_until(
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: UnixTime,
) -> u64 {
    let ends = std::iter::once(end_entity).chain(intermediates).filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        u64::try_from(certificate.validity().not_after.timestamp()).ok()
    });
    ends.filter(|end| now.as_secs() <= *end).min().unwrap_or(0)
}

/// Why a chain is not taken: an issuer with the name of a trusted authority and another key is another authority, such as one
/// that was made anew.
pub(crate) fn chain_error(error: Error) -> Error {
    use CertificateError::{BadSignature, UnsupportedSignatureAlgorithmForPublicKeyContext};
    let Error::InvalidCertificate(bad) = &error else { return error };
    let is_by_another_key = match bad {
        BadSignature => true,
        UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id,
            public_key_algorithm_id,
        } => !is_of_one_kind(signature_algorithm_id, public_key_algorithm_id),
        _ => false,
    };
    if is_by_another_key { CertificateError::UnknownIssuer.into() } else { error }
}

/// True if keys of this kind make such signatures at all, by the arcs that both object identifiers begin with: those of RSA
/// (RFC 8017 §A.1) and of elliptic curves (RFC 5480 §2.1.1); Ed25519's is one for both (RFC 8410 §3).
fn is_of_one_kind(signature_algorithm_id: &[u8], public_key_algorithm_id: &[u8]) -> bool {
    let [signature, key] = [signature_algorithm_id, public_key_algorithm_id].map(|id| id.get(2..6));
    signature == key
}

/// Refuses a certificate that may not sign handshakes: every handshake here is signed by it (RFC 5246 §7.4.6, RFC 8446 §4.4.2.2),
/// and rustls does not look.
pub(crate) fn may_sign(end_entity: &CertificateDer<'_>) -> Result<(), Error> {
    let signs = match X509Certificate::from_der(end_entity) {
        Ok((_, certificate)) => match certificate.key_usage() {
            Ok(Some(usage)) => usage.value.digital_signature(),
            Ok(None) => true,
            Err(_) => return Err(CertificateError::BadEncoding.into()),
        },
        Err(_) => return Err(CertificateError::BadEncoding.into()),
    };
    if signs { Ok(()) } else { Err(CertificateError::InvalidPurpose.into()) }
}

/// Lists of revoked certificates: of those with one issuer, the newest.
#[derive(Clone)]
pub struct RevocationLists {
    pub(crate) lists: Arc<[CertificateRevocationListDer<'static>]>,
    pub(crate) digests: Vec<[u8; 32]>,
    /// The first of them runs out then, in seconds since 1970.
    pub(crate) until: u64,
    file: Arc<ListsFile>,
}

/// The warnings about the file from which they come, and its state when it was read.
struct ListsFile {
    stamp: Option<FileStamp>,
    /// When each list runs out.
    ends: Vec<SystemTime>,
    /// Issuers with a list of another key besides, and when that runs out.
    of_another_key: Vec<(String, SystemTime)>,
}

impl RevocationLists {
    /// Reads PEM with any number of lists, or one list in DER, as authorities publish it. If the file was loaded before and has not
    /// changed since, it is opened and not read.
    ///
    /// # Errors
    /// [`IdentityError`] if the file cannot be read, or has something else in it.
    pub fn load(
        path: &Path,
        before: Option<&Self>,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        Self::load_at(path, before, SystemTime::now())
    }

    /// [`load`](Self::load), checking validity at a given moment.
    pub(crate) fn load_at(
        path: &Path,
        before: Option<&Self>,
        now: SystemTime,
    ) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        let file = pem::open(path, FileRole::RevocationList)?;
        let lists = match before.filter(|before| file.is_still(before.file.stamp)) {
            Some(known) => known.clone(),
            None => Self::read(&file, path)?,
        };
        let shown = path.display();
        let mut warnings = Vec::new();
        let mut issuers = HashSet::new();
        for (issuer, next_update) in &lists.file.of_another_key {
            if *next_update > now && issuers.insert(issuer) {
                let text = format!(
                    "{shown} has revocation lists of two keys named {issuer}, and only the newest list of a name is \
                     asked, so clients with certificates of the other key are refused; have those issued again by \
                     the newer key"
                );
                warnings.push(IdentityWarning::serious(path, text));
            }
        }
        for &next_update in lists.file.ends.iter().filter(|next_update| **next_update <= now) {
            let text = format!(
                "the revocation list {shown} ran out at {}, so every client's certificate is refused; \
                 fetch a new one and reload",
                Utc(next_update)
            );
            warnings.push(IdentityWarning::serious(path, text));
        }
        Ok((lists, warnings))
    }

    fn read(file: &OpenedFile<'_>, path: &Path) -> Result<Self, IdentityError> {
        let mut lists = Vec::new();
        for (index, der) in pem::read_revocation_lists(file)?.into_iter().enumerate() {
            let bad = |detail| {
                let position = index + 1;
                let shown = path.display();
                let fault =
                    format!("revocation list {position} in {shown} cannot be used ({detail})");
                IdentityError::new(path, fault, COPY_AGAIN)
            };
            lists.push(List::decode(der).map_err(bad)?);
        }
        let (lists, superseded) = newest(lists);
        let by_scope: HashMap<_, _> = lists.iter().map(|list| (&list.scope, list)).collect();
        let is_of_another_key =
            |old: &List| by_scope.get(&old.scope).is_some_and(|list| list.is_of_another_key(old));
        let of_another_key = superseded.into_iter().filter(is_of_another_key);
        let of_another_key = of_another_key.map(|old| (old.issuer, old.next_update)).collect();
        let digests = lists.iter().map(|list| list.digest).collect();
        let seconds = |list: &List| list.next_update.duration_since(UNIX_EPOCH).ok();
        let until = lists.iter().filter_map(seconds).min().map_or(0, |least| least.as_secs());
        let ends = lists.iter().map(|list| list.next_update).collect();
        let about = ListsFile { stamp: file.stamp(), ends, of_another_key };
        let lists = lists.into_iter().map(|list| list.der).collect();
        Ok(Self { lists, digests, until, file: Arc::new(about) })
    }

    /// When the first of them runs out.
    #[must_use]
    pub fn until(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.until)
    }
}

/// A list, and what decides whether it counts.
struct List {
    der: CertificateRevocationListDer<'static>,
    digest: [u8; 32],
    /// The issuer and the part of its certificates the list is about, as they stand in the list.
    scope: (Vec<u8>, Option<Vec<u8>>),
    /// The issuer in words.
    issuer: String,
    /// Which of the issuer's keys signed it.
    key_identifier: Option<Vec<u8>>,
    this_update: SystemTime,
    next_update: SystemTime,
}

impl List {
    fn decode(der: CertificateRevocationListDer<'static>) -> Result<Self, String> {
        let (rest, parsed) =
            CertificateRevocationList::from_der(&der).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            return Err("bytes follow the list".to_owned());
        }
        let Some(next_update) = parsed.next_update() else {
            return Err("it does not say when the next is due".to_owned());
        };
        // RFC 5280 §5.2.5: id-ce-issuingDistributionPoint.
        let mut extensions = parsed.extensions().iter();
        let part = extensions.find(|extension| extension.oid.to_id_string() == "2.5.29.28");
        let scope = (parsed.issuer().as_raw().to_vec(), part.map(|part| part.value.to_vec()));
        let issuer = parsed.issuer().to_string();
        let key_identifier =
            parsed.extensions().iter().find_map(|it| match it.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(key) => {
                    Some(key.key_identifier.as_ref()?.0.to_vec())
                }
                _ => None,
            });
        let this_update = moment(parsed.last_update().timestamp());
        let next_update = moment(next_update.timestamp());
        let digest = sha256(&der);
        Ok(Self { digest, scope, issuer, key_identifier, this_update, next_update, der })
    }

    fn is_of_another_key(&self, other: &Self) -> bool {
        let keys = self.key_identifier.as_ref().zip(other.key_identifier.as_ref());
        keys.is_some_and(|(own, other)| own != other)
    }
}

/// The newest list of each scope, and the others: rustls asks the first it finds, in whatever order they stand, and does not
/// look at which key signed it before it verifies it.
fn newest(mut lists: Vec<List>) -> (Vec<List>, Vec<List>) {
    lists.sort_unstable_by_key(|list| (Reverse((list.this_update, list.next_update)), list.digest));
    let mut scopes = HashSet::new();
    lists.into_iter().partition(|list| scopes.insert(list.scope.clone()))
}

impl fmt::Debug for RevocationLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RevocationLists({})", self.digests.len())
    }
}

/// Each name stands behind its length (RFC 8446 §4.2.4). All extensions of a CertificateRequest have 64 KiB together, and so has
/// the list in TLS 1.2; the certificates of all public authorities have 16 KiB of names.
const NAMES_BYTES_MAX: usize = 60 * 1024;
const NAME_LENGTH_BYTES: usize = 2;

/// The folder where most systems keep them.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs";

#[cfg(test)]
mod tests;
