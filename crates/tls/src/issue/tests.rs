//! Keys that come back as they were, and requests that say what they are for.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The alternative names of a request that its key has signed, and its public key.
fn read(request: &[u8]) -> (Vec<String>, Vec<u8>) {
    let (rest, request) = X509CertificationRequest::from_der(request).expect("a request");
    assert!(rest.is_empty());
    let subject = &request.certification_request_info.subject;
    assert_eq!(subject.to_string(), "");
    let mut found = Vec::new();
    for extension in request.requested_extensions().expect("extensions") {
        let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
        found.extend(names.general_names.iter().map(|name| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            GeneralName::IPAddress(bytes) => format!("{bytes:?}"),
            other => panic!("{other}"),
        }));
    }
    (found, request.certification_request_info.subject_pki.raw.to_vec())
}

#[test]
fn requests_are_for_names_stars_and_addresses() {
    let key = CertificateKey::generate(KeyKind::EcdsaP256).expect("a key");
    let asked = names(&["example.org", "*.example.org", "192.0.2.7", "2001:db8::1"]);
    let (found, _) = read(&key.request(&asked).expect("a request"));
    let v6 = "[32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]";
    assert_eq!(found, ["example.org", "*.example.org", "[192, 0, 2, 7]", v6]);
    assert!(key.request(&[]).is_err());
    assert!(key.request(&names(&["ä.example"])).is_err());
}

#[test]
fn each_kind_of_key_comes_back_from_its_file() {
    let kinds = [KeyKind::EcdsaP256, KeyKind::EcdsaP384, KeyKind::Rsa { bits: 2048 }];
    for kind in kinds {
        let key = CertificateKey::generate(kind).expect("a key");
        let again = CertificateKey::from_pem(&key.to_pem()).expect("the same");
        let [(_, one), (_, other)] =
            [&key, &again].map(|it| read(&it.request(&names(&["example.org"])).expect("one")));
        assert_eq!(one, other, "{kind:?}");
    }
    assert!(CertificateKey::from_pem("-----BEGIN PRIVATE KEY-----\n").is_err());
}
