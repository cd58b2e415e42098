//! The content of one certificate of a server's chain, for people who look at the server. Nothing is verified here.

use std::time::SystemTime;

use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::identity::KeyKind;
use crate::identity::inspect::moment;
use crate::peer_identity::{AlternativeName, PeerIdentity, line};

/// The content of one certificate.
#[derive(Clone, Debug)]
pub struct PeerCertificate {
    /// Whose it is, in one line (RFC 4514).
    pub subject: Box<str>,
    /// Its signer, by its own account.
    pub issuer: Box<str>,
    /// The names for which it stands.
    pub names: Box<[AlternativeName]>,
    /// It is not valid before.
    pub not_before: SystemTime,
    /// It is not valid after.
    pub not_after: SystemTime,
    /// The kind of its key; none if it is of a kind that is not used here.
    pub key_kind: Option<KeyKind>,
    /// Subject and issuer are the same: it is a root, or stands for itself alone.
    pub is_self_issued: bool,
    /// Its length in DER.
    pub bytes: usize,
}

impl PeerCertificate {
    /// Reads a certificate in DER; `None` if it is none.
    #[must_use]
    pub fn read(der: &[u8]) -> Option<Self> {
        let identity = PeerIdentity::of(&[CertificateDer::from(der)]).ok()?;
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        Some(Self {
            subject: identity.subject,
            issuer: line(certificate.issuer()).into(),
            names: identity.names,
            not_before: moment(validity.not_before.timestamp()),
            not_after: moment(validity.not_after.timestamp()),
            key_kind: KeyKind::of(&certificate),
            is_self_issued: certificate.subject().as_raw() == certificate.issuer().as_raw(),
            bytes: der.len(),
        })
    }
}

#[cfg(test)]
mod tests;
