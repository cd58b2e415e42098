//! A certificate authority that lives as long as the tests, and what it issues.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, RevokedCertParams,
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
pub fn issue(names: &[&str], kind: Kind) -> Issued {
    issue_until(names, kind, FAR)
}

/// The same, good until the beginning of a year.
pub fn issue_until(names: &[&str], kind: Kind, until: i32) -> Issued {
    issue_with(names, kind, |params| params.not_after = rcgen::date_time_ymd(until, 1, 1))
}

/// The same, good since 80 days and until so many seconds from now.
pub fn issue_ending(names: &[&str], left: Duration) -> Issued {
    let since = SystemTime::now() - Duration::from_secs(80 * 24 * 3_600);
    let until = SystemTime::now() + left;
    issue_with(names, Kind::Ecdsa, |params| {
        (params.not_before, params.not_after) = (since.into(), until.into());
    })
}

/// The same for a key that is there, in PEM, good for the years from one to another.
pub fn issue_for_key(names: &[&str], key: &str, (since, until): (i32, i32)) -> Issued {
    sign(names, KeyPair::from_pem(key).unwrap(), |params| {
        params.not_before = rcgen::date_time_ymd(since, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
    })
}

fn issue_with(names: &[&str], kind: Kind, change: impl FnOnce(&mut CertificateParams)) -> Issued {
    let key = KeyPair::generate_for(match kind {
        Kind::Ecdsa => &PKCS_ECDSA_P256_SHA256,
        Kind::Rsa => &PKCS_RSA_SHA256,
        Kind::Ed25519 => &PKCS_ED25519,
    });
    sign(names, key.unwrap(), change)
}

fn sign(names: &[&str], key: KeyPair, change: impl FnOnce(&mut CertificateParams)) -> Issued {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    change(&mut params);
    let certificate = params.signed_by(&key, authority()).unwrap();
    Issued { chain: certificate.pem(), key: key.serialize_pem(), der: certificate.der().clone() }
}

/// The authority's own certificate in PEM, for clients to trust.
pub fn authority_pem() -> String {
    authority().pem()
}

/// The same for rustls.
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
    AUTHORITY.get_or_init(|| certified_issuer("kettle's tests"))
}

fn certified_issuer(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// An authority that issues certificates to clients.
pub struct ClientAuthority(CertifiedIssuer<'static, KeyPair>);

impl ClientAuthority {
    /// One of this name.
    pub fn new(name: &str) -> Self {
        Self(certified_issuer(name))
    }

    /// Its own certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a client, good until the beginning of a year.
    pub fn issue(&self, name: &str, serial: u64, until: i32) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "kettle's tests");
        params.distinguished_name.push(DnType::CommonName, name);
        params.serial_number = Some(serial.into());
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued {
            chain: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
        }
    }

    /// A list of revoked serial numbers, good until the beginning of a year, in PEM.
    pub fn revoke(&self, serials: &[u64], until: i32) -> String {
        let revoked = |&serial: &u64| RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: rcgen::date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(until, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

/// Longer than any test runs.
const FAR: i32 = 4096;
