//! The faults of certificates, keys, the TLS policy and the generated certificate.
//!
//! Every message names the file or setting and says what to do next; all of them are the
//! operator's to mend. Errors of connections belong to the modules that run connections.

use std::borrow::Cow;
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

/// The fault of settings that make no TLS server, or no client. Its words stand where it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(pub(crate) Cow<'static, str>);

impl PolicyError {
    /// Makes one of the reason for which the settings, each of them right, cannot be used together.
    pub fn refused(reason: impl fmt::Display) -> Self {
        Self(format!("the TLS settings do not fit together: {reason}").into())
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

/// The reason for which there is no key, no request for a certificate, or no answer to a challenge.
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
