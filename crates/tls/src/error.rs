//! The faults of certificates, keys, the TLS policy and the generated certificate.
//!
//! Every message names the file or setting and says what to do next; all of them are the
//! operator's to mend. Errors of connections belong to the modules that run connections.

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

/// The fault of a certificate, a key or another file that cannot be used at all. Its words stand where it is found.
#[derive(Debug)]
pub struct IdentityError {
    path: PathBuf,
    fault: String,
    advice: String,
}

impl IdentityError {
    /// Makes one that names the file to look at first, what is wrong with it, and what to do.
    pub(crate) fn new(path: &Path, fault: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { path: path.into(), fault: fault.into(), advice: advice.into() }
    }

    /// The file to look at first.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.fault, self.advice)
    }
}

impl std::error::Error for IdentityError {}

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
