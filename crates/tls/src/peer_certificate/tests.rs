//! Certificates as people are told of them.

use super::*;
use crate::self_signed::{Pem, generate_pem};
use rustls_pki_types::pem::PemObject;

#[test]
fn a_certificate_says_whose_it_is_and_until_when() {
    let Pem { certificate, .. } =
        generate_pem(&["a.example".to_owned()], KeyKind::EcdsaP256).unwrap();
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let certificate = PeerCertificate::read(&der).unwrap();
    assert_eq!(certificate.names[0].to_string(), "a.example");
    assert_eq!(certificate.key_kind, Some(KeyKind::EcdsaP256));
    assert_eq!(certificate.is_self_issued, certificate.subject == certificate.issuer);
    assert_eq!(certificate.bytes, der.len());
    assert!(
        certificate.not_before < SystemTime::now() && SystemTime::now() < certificate.not_after
    );
}

#[test]
fn what_is_no_certificate_is_not_read() {
    for der in [&[][..], &[0x30], &[0x30, 0x82, 0xff, 0xff], b"hello"] {
        assert!(PeerCertificate::read(der).is_none());
    }
}
