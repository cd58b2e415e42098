//! The client's side: what is offered in a handshake, exactly one choice of each, so that a measurement knows what it measured.

mod handshake;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

pub use crate::error::OfferError;
use crate::observed;
use crate::policy::{self, Group};
use crate::{Cipher, Version};

pub(crate) use handshake::{ClientHandshake, ClientStep};

/// What a client offers: one version, one suite, one group, one way of resuming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// The only version offered.
    pub version: Version,
    /// The cipher of the only suite offered; in TLS 1.2 its ECDHE suite for both ECDSA and RSA certificates.
    pub cipher: Cipher,
    /// The only group offered. OpenSSL asks for the certificate's curve among a TLS 1.2 client's groups too, so P-256 is
    /// appended there.
    pub group: Group,
    /// How a later connection of the same session resumes it.
    pub resume_by: ResumeBy,
}

/// How a later connection of the same session resumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumeBy {
    /// Never: every handshake is a full one.
    Nothing,
    /// By session ID (TLS 1.2; RFC 5246 §7.3): the client does not offer the ticket extension.
    SessionId,
    /// By ticket (TLS 1.2: RFC 5077; TLS 1.3: RFC 8446 §2.2, each ticket used once, with a new key exchange).
    Ticket,
    /// By ticket, with the request as early data (0-RTT, RFC 8446 §2.3).
    EarlyData,
}

/// An offer made ready for connections, with a memory of the sessions they made. Clones share it.
#[derive(Clone)]
pub struct Connector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    host: Arc<str>,
    resume_by: ResumeBy,
}

impl Connector {
    /// A connector that takes any certificate and checks no signature: it knows nothing of who answers. For measuring,
    /// where that would only be work of the client.
    ///
    /// # Errors
    /// [`OfferError`] if there is no such combination, or no such host.
    pub fn dangerous_trust_anyone(offer: &Offer, host: &str) -> Result<Self, OfferError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| OfferError::NoHost(host.to_owned()))?;
        check(offer)?;
        let provider = Arc::new(provider(offer));
        let schemes = provider.signature_verification_algorithms.supported_schemes();
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[policy::supported(&offer.version)])
            .map_err(|error| OfferError::Refused(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustsAnyone(schemes)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // The record keys leave rustls after every handshake: see `records`.
        config.enable_secret_extraction = true;
        config.key_log = observed::key_log();
        config.enable_early_data = offer.resume_by == ResumeBy::EarlyData;
        config.resumption = memory(offer.resume_by);
        let resume_by = offer.resume_by;
        Ok(Self { config: Arc::new(config), name, host: Arc::from(host), resume_by })
    }

    /// The same offer with a new, empty memory of sessions: the next handshake is a full one.
    #[must_use]
    pub fn forget_sessions(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = memory(self.resume_by);
        Self { config: Arc::new(config), ..self.clone() }
    }
}

/// What an offer cannot be: rustls would accept it and fail every handshake, or resume by something else.
fn check(offer: &Offer) -> Result<(), OfferError> {
    match (offer.version, offer.resume_by) {
        (Version::Tls12, ResumeBy::EarlyData) | (Version::Tls13, ResumeBy::SessionId) => {
            Err(OfferError::NoSuchResumption)
        }
        (Version::Tls12, _) if offer.group == Group::X25519MlKem768 => {
            Err(OfferError::NoGroupInTls12)
        }
        _ => Ok(()),
    }
}

fn provider(offer: &Offer) -> CryptoProvider {
    let is_offered = |suite: &rustls::SupportedCipherSuite| {
        (offer.version == Version::Tls13) == suite.tls13().is_some()
    };
    let mut groups = vec![offer.group];
    if offer.version == Version::Tls12 && offer.group != Group::P256 {
        groups.push(Group::P256);
    }
    CryptoProvider {
        cipher_suites: policy::suites_with(offer.cipher).into_iter().filter(is_offered).collect(),
        kx_groups: groups.into_iter().map(Group::supported).collect(),
        ..aws_lc_rs::default_provider()
    }
}

/// rustls gives out each TLS 1.3 ticket once, and a TLS 1.2 session as often as it is asked.
fn memory(resume_by: ResumeBy) -> Resumption {
    let memory = Resumption::in_memory_sessions(SESSIONS_MAX);
    match resume_by {
        ResumeBy::Nothing => Resumption::disabled(),
        ResumeBy::SessionId => memory.tls12_resumption(Tls12Resumption::SessionIdOnly),
        // A TLS 1.2 server without tickets may be resumed by session ID; `Session::resumed` tells.
        ResumeBy::Ticket | ResumeBy::EarlyData => {
            memory.tls12_resumption(Tls12Resumption::SessionIdOrTickets)
        }
    }
}

#[derive(Debug)]
struct TrustsAnyone(Vec<SignatureScheme>);

impl ServerCertVerifier for TrustsAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}

/// One server is talked to; rustls keeps eight TLS 1.3 tickets or one TLS 1.2 session for it.
const SESSIONS_MAX: usize = 1;
