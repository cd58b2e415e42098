//! The faults of certificates, keys, the TLS policy and the generated certificate.
//!
//! Every message names the file or setting and says what to do next; all of them are the
//! operator's to mend. Errors of connections belong to the modules that run connections.

mod advice;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The part a file plays for an identity, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// The certificate chain, leaf first.
    Chain,
    /// The private key of the leaf.
    Key,
    /// The stapled OCSP response.
    Staple,
    /// The authorities whose certificates are taken.
    Roots,
    /// Which of their certificates were revoked.
    RevocationList,
    /// The secret from which ticket keys are made.
    TicketSecret,
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chain => "certificate",
            Self::Key => "private key",
            Self::Staple => "OCSP response",
            Self::Roots => "CA certificate file",
            Self::RevocationList => "revocation list",
            Self::TicketSecret => "ticket secret",
        })
    }
}

/// Why a certificate and its key cannot be used at all.
#[derive(Debug)]
pub enum IdentityError {
    /// The file could not be read.
    Unreadable {
        /// The purpose of the file.
        role: FileRole,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is longer than any sensible file of its kind.
    TooLarge {
        /// The purpose of the file.
        role: FileRole,
        /// The file.
        path: PathBuf,
        /// The longest file accepted.
        bytes_max: u64,
    },
    /// The file holds binary DER where PEM is wanted.
    LooksLikeDer {
        /// The purpose of the file.
        role: FileRole,
        /// The file.
        path: PathBuf,
    },
    /// The file is a PKCS#12 bundle.
    LooksLikePkcs12 {
        /// The file.
        path: PathBuf,
    },
    /// The file is text, but none of its PEM sections is a certificate.
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// It holds a private key instead: probably the two settings are swapped.
        holds_key: bool,
    },
    /// The file is text, but none of its PEM sections is a private key.
    NoKey {
        /// The file.
        path: PathBuf,
        /// It holds a certificate instead: probably the two settings are swapped.
        holds_certificate: bool,
    },
    /// The key is protected by a passphrase.
    KeyEncrypted {
        /// The key file.
        path: PathBuf,
    },
    /// A PEM section is damaged.
    BadPem {
        /// The purpose of the file.
        role: FileRole,
        /// The file.
        path: PathBuf,
        /// The fault of it, without a byte of the file.
        detail: &'static str,
    },
    /// The file is text of a word processor or of Windows: a mark stands before a section.
    ByteOrderMark {
        /// The purpose of the file.
        role: FileRole,
        /// The file.
        path: PathBuf,
        /// It is UTF-16 all through.
        is_utf16: bool,
    },
    /// A certificate is well-formed PEM but not a well-formed certificate.
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// Which certificate of the file, counted from 1.
        position: usize,
        /// The finding of the decoder.
        detail: String,
    },
    /// A certificate is no certificate authority's, where one is wanted.
    NotAuthority {
        /// The file.
        path: PathBuf,
        /// Which certificate of the file, counted from 1.
        position: usize,
    },
    /// The authorities' names are more than a client can be told.
    NamesTooLong {
        /// The file.
        path: PathBuf,
        /// The length of them together, in bytes.
        bytes: usize,
    },
    /// The key is of a kind that is not supported, or damaged.
    UnsupportedKey {
        /// The key file.
        path: PathBuf,
    },
    /// The key belongs to another certificate.
    KeyMismatch {
        /// The key file.
        key: PathBuf,
        /// The certificate file.
        chain: PathBuf,
        /// The key fits this later certificate of the same file, counted from 1.
        fits_position: Option<usize>,
    },
    /// The staple is not a successful OCSP response.
    BadStaple {
        /// The OCSP file.
        path: PathBuf,
        /// The fault of it.
        detail: &'static str,
    },
    /// The file is text, but none of its PEM sections is a revocation list.
    NoRevocationList {
        /// The file.
        path: PathBuf,
    },
    /// The system has no certificate authorities that can be used.
    NoSystemRoots {
        /// The reason for which its certificates could not be read, if that is known.
        detail: String,
    },
    /// The ticket secret is none.
    WeakSecret {
        /// The file.
        path: PathBuf,
        /// The fault of it.
        detail: &'static str,
    },
    /// A revocation list cannot be decoded.
    BadRevocationList {
        /// The file.
        path: PathBuf,
        /// Which list of the file, counted from 1.
        position: usize,
        /// The finding of the decoder.
        detail: String,
    },
}

impl IdentityError {
    /// The file to look at first.
    pub fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::TooLarge { path, .. }
            | Self::LooksLikeDer { path, .. }
            | Self::LooksLikePkcs12 { path }
            | Self::NoCertificate { path, .. }
            | Self::NoKey { path, .. }
            | Self::KeyEncrypted { path }
            | Self::BadPem { path, .. }
            | Self::ByteOrderMark { path, .. }
            | Self::BadCertificate { path, .. }
            | Self::NotAuthority { path, .. }
            | Self::NamesTooLong { path, .. }
            | Self::UnsupportedKey { path }
            | Self::BadStaple { path, .. }
            | Self::NoRevocationList { path }
            | Self::WeakSecret { path, .. }
            | Self::BadRevocationList { path, .. } => path,
            Self::KeyMismatch { key, .. } => key,
            Self::NoSystemRoots { .. } => Path::new(SYSTEM_ROOTS),
        }
    }
}

/// Returns the fault of a file that has a mark of the byte order.
fn marked(role: FileRole, is_utf16: bool, path: &Path) -> String {
    let path = path.display();
    match is_utf16 {
        true => format!("the {role} {path} is text in UTF-16"),
        false => format!(
            "the {role} {path} has a byte order mark (BOM) before a section, which hides it"
        ),
    }
}

impl IdentityError {
    /// Returns the fault.
    fn fault(&self) -> String {
        let path = self.path().display();
        match self {
            Self::Unreadable { role, source, .. } => {
                format!("cannot read the {role} {path}: {source}")
            }
            Self::TooLarge { role, bytes_max, .. } => {
                format!("{path} is longer than {bytes_max} bytes, so it is hardly a {role}")
            }
            Self::LooksLikeDer { role, .. } => {
                format!("the {role} {path} looks like DER, not PEM")
            }
            Self::LooksLikePkcs12 { .. } => format!("{path} looks like a PKCS#12 bundle"),
            Self::NoCertificate { holds_key: true, .. } => {
                format!("{path} holds a private key but no certificate")
            }
            Self::NoCertificate { .. } => format!("{path} has no certificate in it"),
            Self::NoKey { holds_certificate: true, .. } => {
                format!("{path} holds a certificate but no private key")
            }
            Self::NoKey { .. } => format!("{path} has no private key in it"),
            Self::KeyEncrypted { .. } => {
                format!("the private key {path} is protected by a passphrase")
            }
            Self::BadPem { role, detail, .. } => {
                format!("the {role} {path} is damaged PEM ({detail})")
            }
            Self::ByteOrderMark { role, is_utf16, .. } => marked(*role, *is_utf16, self.path()),
            Self::BadCertificate { position, detail, .. } => {
                format!("certificate {position} in {path} cannot be decoded ({detail})")
            }
            Self::NotAuthority { position, .. } => {
                format!("certificate {position} in {path} is no certificate authority's")
            }
            Self::NamesTooLong { bytes, .. } => {
                format!(
                    "the names of the authorities in {path} have {bytes} bytes, too many to tell clients"
                )
            }
            Self::UnsupportedKey { .. } => {
                format!("the private key {path} is damaged or of an unsupported kind")
            }
            Self::KeyMismatch { chain, fits_position: Some(position), .. } => format!(
                "the private key {path} belongs to certificate {position} in {}",
                chain.display()
            ),
            Self::KeyMismatch { chain, .. } => format!(
                "the private key {path} does not belong to the certificate {}",
                chain.display()
            ),
            Self::BadStaple { detail, .. } => {
                format!("the OCSP response {path} cannot be used: {detail}")
            }
            Self::NoSystemRoots { detail } if detail.is_empty() => {
                "the system has no certificate authorities".to_owned()
            }
            Self::NoSystemRoots { detail } => {
                format!("the system's certificate authorities cannot be read ({detail})")
            }
            Self::NoRevocationList { .. } => format!("{path} has no revocation list in it"),
            Self::WeakSecret { detail, .. } => {
                format!("the ticket secret {path} cannot be used: {detail}")
            }
            Self::BadRevocationList { position, detail, .. } => {
                format!("revocation list {position} in {path} cannot be used ({detail})")
            }
        }
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.fault(), self.advice())
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The folder where most systems keep them.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs";

/// Why the configured versions, suites and groups cannot make a TLS server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// `tls.versions` is empty.
    NoVersion,
    /// `tls.suites` is empty.
    NoSuite,
    /// `tls.groups` is empty.
    NoGroup,
    /// TLS 1.2 is enabled, but none of the groups exists in TLS 1.2.
    NoGroupForTls12,
    /// rustls refused the combination.
    Refused(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion => {
                f.write_str("no TLS version is enabled; name tls1.2, tls1.3 or both")
            }
            Self::NoSuite => f.write_str(
                "no cipher suite is enabled; name aes-128-gcm, aes-256-gcm or chacha20-poly1305",
            ),
            Self::NoGroup => f.write_str(
                "no key exchange group is enabled; name x25519mlkem768, x25519, p-256 or p-384",
            ),
            Self::NoGroupForTls12 => f.write_str(
                "TLS 1.2 is enabled, but x25519mlkem768 exists in TLS 1.3 only; add x25519, p-256 \
                 or p-384, or leave tls1.2 out",
            ),
            Self::Refused(detail) => write!(f, "the TLS settings do not fit together: {detail}"),
        }
    }
}

impl std::error::Error for PolicyError {}

/// Why no certificate for trying things out could be made or kept.
#[derive(Debug)]
pub enum SelfSignedError {
    /// The directory or a file in it could not be written.
    Unwritable {
        /// The directory or file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// None of the names can stand in a certificate.
    NoUsableName,
    /// The certificate could not be generated.
    Generation(String),
    /// The freshly written file does not load.
    Load(IdentityError),
}

impl fmt::Display for SelfSignedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritable { path, source } => {
                write!(f, "cannot keep the generated certificate in {}: {source}", path.display())
            }
            Self::NoUsableName => f.write_str("none of the names can stand in a certificate"),
            Self::Generation(detail) => write!(f, "cannot generate a certificate: {detail}"),
            Self::Load(error) => write!(f, "the generated certificate does not load: {error}"),
        }
    }
}

impl std::error::Error for SelfSignedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unwritable { source, .. } => Some(source),
            Self::Load(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a challenge is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChallengeError {
    /// So many are answered already.
    TooMany,
    /// It is not a token with its key authorization.
    BadToken,
    /// No certificate can be made for the name.
    Certificate(String),
}

impl fmt::Display for ChallengeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => f.write_str("as many challenges are answered as can be"),
            Self::BadToken => f.write_str("no key authorization of this token"),
            Self::Certificate(detail) => write!(f, "no certificate can be made: {detail}"),
        }
    }
}

impl std::error::Error for ChallengeError {}

/// Why there is no key or no request for a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueError(pub(crate) String);

impl IssueError {
    pub(crate) fn of(error: rcgen::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for IssueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IssueError {}

/// Why settings make no TLS client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectorError {
    /// The versions, suites and groups do not fit together.
    Policy(PolicyError),
    /// Roots are trusted, and nothing says for which name.
    NoName,
    /// It is neither a DNS name nor an IP address.
    BadName(String),
    /// The list of pins is empty.
    NoPin,
    /// It is too short or too long for a protocol's name.
    BadProtocol(String),
    /// rustls refused the combination.
    Refused(String),
}

impl fmt::Display for ConnectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => write!(f, "{error}"),
            Self::NoName => f.write_str(
                "nothing says which name the server's certificate must have; set `name`, or trust its key by `pins`",
            ),
            Self::BadName(name) => write!(
                f,
                "{name:?} is neither a host name nor an IP address; name the one that stands in the certificate"
            ),
            Self::NoPin => f.write_str("there is no pin; name one, or trust authorities by `roots`"),
            Self::BadProtocol(name) => {
                write!(f, "\"{name}\" is no application protocol: names have 1 to 255 bytes")
            }
            Self::Refused(detail) => write!(f, "the TLS settings do not fit together: {detail}"),
        }
    }
}

impl std::error::Error for ConnectorError {}

impl From<PolicyError> for ConnectorError {
    fn from(error: PolicyError) -> Self {
        Self::Policy(error)
    }
}
