//! What a client offers in a handshake: exactly one choice of each, so that a measurement knows what it measured.

use std::fmt;

use kettle_tls::connector::{Connector, ConnectorError, ConnectorSettings, Trust};
use kettle_tls::policy::{Group, Policy};
use kettle_tls::{Cipher, Version};

pub use kettle_tls::connector::ResumeBy;

/// What a client offers: one version, one suite, one group, one way of resuming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    pub version: Version,
    /// The cipher of the only suite offered; in TLS 1.2 its ECDHE suite for both ECDSA and RSA certificates.
    pub cipher: Cipher,
    /// The only group offered. OpenSSL asks for the certificate's curve among a TLS 1.2 client's groups too, so P-256 is
    /// appended there.
    pub group: Group,
    /// How a later connection of the same session resumes it.
    pub resume_by: ResumeBy,
    /// HTTP/2 in place of HTTP/1.1, with so many of a transaction's requests at once; its bodies are always opened, since
    /// frames lie in them.
    pub http2: Option<u32>,
}

impl Offer {
    /// A client that takes any certificate and checks no signature: it knows nothing of who answers. For measuring,
    /// where that would only be work of the client.
    ///
    /// # Errors
    /// [`OfferError`] if there is no such combination, or no such host.
    pub fn dangerous_connector(&self, host: &str) -> Result<Connector, OfferError> {
        self.check()?;
        let mut groups = vec![self.group];
        if self.version == Version::Tls12 && self.group != Group::P256 {
            groups.push(Group::P256);
        }
        let policy = Policy {
            versions: vec![self.version],
            suites: vec![self.cipher],
            groups,
            ..Policy::default()
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place: who answers is measured, not trusted"
        )]
        let trust = Trust::dangerous_anyone();
        let settings = ConnectorSettings {
            trust,
            name: Some(host),
            identity: None,
            alpn: if self.http2.is_some() { &[b"h2"] } else { &[b"http/1.1"] },
            resume_by: self.resume_by,
        };
        Connector::new(&policy, settings).map_err(OfferError::Connector)
    }

    /// What rustls would accept, and fail every handshake or resume by something else.
    fn check(&self) -> Result<(), OfferError> {
        if self.http2.is_some() && self.resume_by == ResumeBy::EarlyData {
            return Err(OfferError::NoEarlyHttp2);
        }
        match (self.version, self.resume_by) {
            (Version::Tls12, ResumeBy::EarlyData) | (Version::Tls13, ResumeBy::SessionId) => {
                Err(OfferError::NoSuchResumption)
            }
            (Version::Tls12, _) if self.group == Group::X25519MlKem768 => {
                Err(OfferError::NoGroupInTls12)
            }
            _ => Ok(()),
        }
    }
}

/// Why a client cannot offer what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferError {
    /// The group exists in TLS 1.3 only.
    NoGroupInTls12,
    /// TLS 1.3 resumes by tickets only, TLS 1.2 has no early data.
    NoSuchResumption,
    /// Requests over HTTP/2 are not sent as early data.
    NoEarlyHttp2,
    /// It makes no TLS client.
    Connector(ConnectorError),
}

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGroupInTls12 => {
                f.write_str("x25519mlkem768 exists in TLS 1.3 only; choose x25519, p-256 or p-384")
            }
            Self::NoSuchResumption => f.write_str(
                "TLS 1.3 has no session IDs and TLS 1.2 no early data; resume by ticket instead",
            ),
            Self::NoEarlyHttp2 => f.write_str(
                "requests over HTTP/2 are not sent as early data; resume by ticket instead",
            ),
            Self::Connector(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OfferError {}

#[cfg(test)]
mod tests;
