//! A certificate authority that lives as long as the tests, and what it issues.

use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256,
};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;

/// A certificate chain and its key, in PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub chain: String,
    /// Its key.
    pub key: String,
    /// The certificate in DER, to tell which one a server sent.
    pub der: CertificateDer<'static>,
}

/// The type of a key.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// ECDSA on P-256.
    Ecdsa,
    /// RSA with 2,048 bits.
    Rsa,
    /// Ed25519.
    Ed25519,
}

/// A certificate for `names`.
#[must_use]
pub fn issue(names: &[&str], kind: Kind) -> Issued {
    let key = KeyPair::generate_for(match kind {
        Kind::Ecdsa => &PKCS_ECDSA_P256_SHA256,
        Kind::Rsa => &PKCS_RSA_SHA256,
        Kind::Ed25519 => &PKCS_ED25519,
    });
    let key = key.unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let params = CertificateParams::new(names).unwrap();
    let certificate = params.signed_by(&key, authority()).unwrap();
    Issued { chain: certificate.pem(), key: key.serialize_pem(), der: certificate.der().clone() }
}

/// The authority's own certificate in PEM, for clients to trust.
#[must_use]
pub fn authority_pem() -> String {
    authority().pem()
}

/// The same for rustls.
#[must_use]
pub fn roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    Arc::clone(ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add(authority().der().clone()).unwrap();
        Arc::new(roots)
    }))
}

fn authority() -> &'static CertifiedIssuer<'static, KeyPair> {
    static AUTHORITY: OnceLock<CertifiedIssuer<'static, KeyPair>> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "kettle's tests");
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    })
}
