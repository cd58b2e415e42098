//! The offer of a client in a handshake: exactly one choice of each, so that a measurement knows what it measured.

use kettle_tls::connector::{Connector, ConnectorSettings, Trust};
use kettle_tls::policy::{Group, Policy};
use kettle_tls::{Cipher, Version};

pub use kettle_tls::connector::ResumeBy;

/// The offer of a client: one version, one suite, one group, one way of resuming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    pub version: Version,
    /// The cipher of the only suite offered; in TLS 1.2 its ECDHE suite for both ECDSA and RSA certificates.
    pub cipher: Cipher,
    /// The only group offered. OpenSSL asks for the certificate's curve among a TLS 1.2 client's groups too, so P-256 is
    /// appended there.
    pub group: Group,
    /// The way a later connection of the same session resumes it.
    pub resume_by: ResumeBy,
    /// HTTP/2 in place of HTTP/1.1, with this many of a transaction's requests at once; its bodies are always opened, since
    /// frames lie in them.
    pub http2: Option<u32>,
}

impl Offer {
    /// A client that takes any certificate and checks no signature: it knows nothing of who answers. For measuring,
    /// where that would only be work of the client.
    ///
    /// # Errors
    /// A sentence for the user: TLS has no such combination, or the host is no name for a certificate.
    pub fn dangerous_connector(&self, host: &str) -> Result<Connector, String> {
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
        Connector::new(&policy, settings).map_err(|error| error.to_string())
    }

    /// Refuses what rustls would accept, and fail every handshake or resume by something else.
    fn check(&self) -> Result<(), &'static str> {
        if self.http2.is_some() && self.resume_by == ResumeBy::EarlyData {
            return Err(
                "requests over HTTP/2 are not sent as early data; resume by ticket instead",
            );
        }
        match (self.version, self.resume_by) {
            (Version::Tls12, ResumeBy::EarlyData) | (Version::Tls13, ResumeBy::SessionId) => Err(
                "TLS 1.3 has no session IDs and TLS 1.2 no early data; resume by ticket instead",
            ),
            (Version::Tls12, _) if self.group == Group::X25519MlKem768 => {
                Err("x25519mlkem768 exists in TLS 1.3 only; choose x25519, p-256 or p-384")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
