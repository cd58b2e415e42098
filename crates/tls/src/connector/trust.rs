//! Whose certificates a client takes: those that an authority signed, or those with a known key.
//!
//! Verifying is rustls'; added is an account of why a certificate is not taken.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::sessions::session_end;
use crate::error::PolicyError;
use crate::peer_identity::{PeerIdentity, sha256};
use crate::pin::Pin;
use crate::refusal::CertificateRefusal;
use crate::rustls_callbacks;
use crate::trust::{Roots, chain_error, may_sign, valid_until};

/// The certificates that a client trusts.
#[derive(Clone, Debug)]
pub struct Trust(Whom);

#[derive(Clone)]
enum Whom {
    SignedBy(Roots),
    WithKey(Arc<[Pin]>),
    Anyone,
}

impl Trust {
    /// Servers whose certificate these authorities vouch for, is valid now and is for the name.
    #[must_use]
    pub fn roots(roots: Roots) -> Self {
        Self(Whom::SignedBy(roots))
    }

    /// Servers that prove to have one of these keys. Names, dates and signatures of the certificate do not count.
    #[must_use]
    pub fn pins(pins: &[Pin]) -> Self {
        Self(Whom::WithKey(pins.into()))
    }

    /// Any server: no certificate and no signature is looked at. For measuring, where that would only be work of
    /// the client. Such a connection has no [`peer`](crate::Session::peer).
    #[must_use]
    pub fn dangerous_anyone() -> Self {
        Self(Whom::Anyone)
    }

    pub(super) fn needs_name(&self) -> bool {
        matches!(self.0, Whom::SignedBy(_))
    }

    pub(super) fn proves_peer(&self) -> bool {
        !matches!(self.0, Whom::Anyone)
    }

    pub(super) fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, PolicyError> {
        let algorithms = provider.signature_verification_algorithms;
        Ok(match &self.0 {
            Whom::SignedBy(roots) => {
                let roots = Arc::clone(&roots.store);
                let provider = Arc::clone(provider);
                let builder = WebPkiServerVerifier::builder_with_provider(roots, provider);
                let authorities = builder.build().map_err(PolicyError::refused)?;
                Arc::new(Verifier { accepts: Accepts::Signed(authorities), algorithms })
            }
            Whom::WithKey(pins) if pins.is_empty() => {
                let fault = "there is no pin; name one, or trust authorities by `roots`";
                return Err(PolicyError(fault.into()));
            }
            Whom::WithKey(pins) => {
                Arc::new(Verifier { accepts: Accepts::Keys(Arc::clone(pins)), algorithms })
            }
            Whom::Anyone => Arc::new(TrustsAnyone(algorithms.supported_schemes())),
        })
    }
}

impl fmt::Debug for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignedBy(roots) => write!(f, "{roots:?}"),
            Self::WithKey(pins) => write!(f, "{pins:?}"),
            Self::Anyone => f.write_str("Anyone"),
        }
    }
}

/// Verifies, and notes why a certificate is not taken.
#[derive(Debug)]
struct Verifier {
    accepts: Accepts,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Accepts {
    Signed(Arc<WebPkiServerVerifier>),
    Keys(Arc<[Pin]>),
}

impl Verifier {
    fn verify(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), (Error, Option<CertificateRefusal>)> {
        let refused = |error| (error, None);
        // A certificate that is taken must be readable afterwards: see `Session::peer`.
        let bad = |_| refused(CertificateError::BadEncoding.into());
        PeerIdentity::of(std::slice::from_ref(end_entity)).map_err(bad)?;
        match &self.accepts {
            Accepts::Signed(authorities) => authorities
                .verify_server_cert(end_entity, intermediates, name, &[], now)
                .map_err(|error| refused(chain_error(error)))
                .and_then(|_| may_sign(end_entity).map_err(refused)),
            Accepts::Keys(pins) => {
                // The same reader finds the key that the handshake's signature is verified with.
                let parsed = ParsedCertificate::try_from(end_entity).map_err(refused)?;
                let pin = Pin(sha256(parsed.subject_public_key_info().as_ref()));
                match pins.contains(&pin) {
                    true => Ok(()),
                    false => {
                        let error = CertificateError::ApplicationVerificationFailure.into();
                        Err((error, Some(CertificateRefusal::WrongKey { pin })))
                    }
                }
            }
        }
    }

    fn checked(
        signature: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        if matches!(signature, Err(Error::InvalidCertificate(_))) {
            rustls_callbacks::note_refusal(CertificateRefusal::NoProof);
        }
        signature
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verify(end_entity, intermediates, server_name, now);
        verified.map_err(|(error, refusal)| {
            let refusal =
                refusal.unwrap_or_else(|| CertificateRefusal::of(&error, end_entity, server_name));
            rustls_callbacks::note_refusal(refusal);
            error
        })?;
        let certificates_until = match self.accepts {
            Accepts::Signed(_) => valid_until(end_entity, intermediates, now),
            // Dates do not count.
            Accepts::Keys(_) => u64::MAX,
        };
        rustls_callbacks::note_session_end(session_end(certificates_until, now));
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::checked(verify_tls12_signature(message, certificate, signed, &self.algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::checked(verify_tls13_signature(message, certificate, signed, &self.algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Takes every certificate and every signature of these schemes.
#[derive(Debug)]
pub(crate) struct TrustsAnyone(pub(crate) Vec<SignatureScheme>);

impl ServerCertVerifier for TrustsAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
