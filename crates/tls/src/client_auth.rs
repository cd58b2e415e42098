//! Clients that show who they are by a certificate (RFC 8446 §4.3.2, RFC 5246 §7.4.4).

use std::collections::HashSet;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::error::PolicyError;
use crate::peer_identity::{PeerIdentity, sha256};
use crate::rustls_callbacks;
use crate::trust::{RevocationLists, Roots, chain_error, may_sign, valid_until};

/// The choice whether a client must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthMode {
    /// It must.
    Required,
    /// It may; one that is not good ends the handshake all the same.
    Optional,
}

/// Which certificates clients are asked for.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    /// The choice whether they must have one.
    pub mode: ClientAuthMode,
    /// The authorities that may have issued it.
    pub roots: Roots,
    /// The certificates that were revoked. With lists, each certificate below the root needs one that is valid now and knows of
    /// it.
    pub revocation: Option<RevocationLists>,
    /// The number of authorities that may stand between a certificate and its root; as many as
    /// rustls takes (six) without.
    pub depth: Option<usize>,
}

impl ClientAuth {
    pub(crate) fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, PolicyError> {
        if self.roots.are_pinned {
            let verifier = Arc::new(PinnedVerifier {
                digests: self.roots.digests.iter().copied().collect(),
                is_mandatory: self.mode == ClientAuthMode::Required,
                algorithms: provider.signature_verification_algorithms,
            });
            return Ok(Arc::new(NotingVerifier { verifier, lists_until: u64::MAX, depth: None }));
        }
        let roots = Arc::clone(&self.roots.store);
        let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider);
        if let Some(revocation) = &self.revocation {
            builder =
                builder.with_crls(revocation.lists.iter().cloned()).enforce_revocation_expiration();
        }
        if self.mode == ClientAuthMode::Optional {
            builder = builder.allow_unauthenticated();
        }
        let verifier = builder.build().map_err(PolicyError::refused)?;
        let lists_until = self.revocation.as_ref().map_or(u64::MAX, |lists| lists.until);
        Ok(Arc::new(NotingVerifier { verifier, lists_until, depth: self.depth }))
    }
}

/// Verifies as rustls does, and takes only what [`PeerIdentity`] can read and what may sign. Notes until when the certificate and what
/// is known of its revocation are valid: no session of its owner lasts longer.
#[derive(Debug)]
struct NotingVerifier {
    verifier: Arc<dyn ClientCertVerifier>,
    /// A revocation list runs out then, in seconds since 1970.
    lists_until: u64,
    depth: Option<usize>,
}

/// The authorities of a chain that may stand in a path with no more of them than this, by their names; nothing where there are
/// more candidates, so that nobody can tell how long the path is. Those who signed themselves are roots or nothing.
fn within<'c>(
    depth: usize,
    end_entity: &CertificateDer<'_>,
    intermediates: &'c [CertificateDer<'c>],
) -> Option<Vec<CertificateDer<'c>>> {
    let names = |der: &[u8]| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let [issuer, subject] = [certificate.issuer(), certificate.subject()];
        Some((issuer.as_raw().to_vec(), subject.as_raw().to_vec()))
    };
    let mut left: Vec<_> =
        intermediates.iter().filter_map(|der| Some((der, names(der)?))).collect();
    left.retain(|(_, (issuer, subject))| issuer != subject);
    let mut taken = Vec::new();
    let mut issuers = vec![names(end_entity)?.0];
    for _ in 0..depth {
        let (next, others): (Vec<_>, _) =
            left.into_iter().partition(|(_, (_, subject))| issuers.contains(subject));
        left = others;
        issuers = next.iter().map(|(_, (issuer, _))| issuer.clone()).collect();
        taken.extend(next.into_iter().map(|(der, _)| CertificateDer::from(der.as_ref())));
    }
    (taken.len() <= depth).then_some(taken)
}

impl ClientCertVerifier for NotingVerifier {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let within = match self.depth {
            None => None,
            Some(depth) => Some(
                within(depth, end_entity, intermediates).ok_or(CertificateError::UnknownIssuer)?,
            ),
        };
        let taken = within.as_deref().unwrap_or(intermediates);
        let verified = self.verifier.verify_client_cert(end_entity, taken, now);
        let verified = verified.map_err(chain_error)?;
        may_sign(end_entity)?;
        let bad = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
        PeerIdentity::of(std::slice::from_ref(end_entity)).map_err(bad)?;
        let certificates_until = valid_until(end_entity, intermediates, now);
        rustls_callbacks::note_certificate_until(certificates_until.min(self.lists_until));
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Takes these certificates alone. That a client has the key is proved by its signature, as ever.
#[derive(Debug)]
struct PinnedVerifier {
    /// SHA-256 of each.
    digests: HashSet<[u8; 32]>,
    is_mandatory: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for PinnedVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.digests.contains(&sha256(end_entity)) {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
