//! Subjects in one line, and the names beside them.

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, PublicKeyData, SanType,
};

use super::*;

fn identity_of(parameters: &CertificateParams) -> PeerIdentity {
    let key = KeyPair::generate().expect("a key");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    PeerIdentity::of(&[certificate.der().clone()]).expect("well formed")
}

fn subject_of(attributes: &[(DnType, &str)]) -> String {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    for (kind, value) in attributes {
        parameters.distinguished_name.push(kind.clone(), *value);
    }
    identity_of(&parameters).subject.into()
}

#[test]
fn subject_is_written_last_part_first() {
    let attributes = [
        (DnType::CountryName, "DE"),
        (DnType::OrganizationName, "Example"),
        (DnType::CommonName, "alice"),
    ];
    assert_eq!(subject_of(&attributes), "CN=alice,O=Example,C=DE");
    assert_eq!(subject_of(&[]), "");
}

#[test]
fn nobody_gets_the_line_of_another_by_what_is_in_a_value() {
    for (value, line) in [
        ("alice,O=Example", r"CN=alice\,O\=Example"),
        ("a+b;c<d>e\"f\\g", r#"CN=a\+b\;c\<d\>e\"f\\g"#),
        ("#616c", r"CN=\#616c"),
        (" a b ", r"CN=\ a b\ "),
        ("a\r\nb\0", r"CN=a\0d\0ab\00"),
        ("\u{9b}31m", r"CN=\c2\9b31m"),
        ("Zoë", "CN=Zoë"),
    ] {
        assert_eq!(subject_of(&[(DnType::CommonName, value)]), line);
    }
}

#[test]
fn attribute_of_an_unknown_kind_stands_there_in_der() {
    let kind = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 99_999, 1]);
    assert_eq!(subject_of(&[(kind, "ab")]), "1.3.6.1.4.1.99999.1=#0c026162");
}

#[test]
fn alternative_names_are_told_by_kind() {
    let mut parameters = CertificateParams::default();
    let text = |text: &str| text.try_into().expect("ASCII");
    parameters.subject_alt_names = vec![
        SanType::DnsName(text("*.a.example")),
        SanType::IpAddress([127, 0, 0, 1].into()),
        SanType::URI(text("spiffe://a.example/b")),
        SanType::Rfc822Name(text("b@a.example")),
        SanType::IpAddress(IpAddr::from([0_u8; 16])),
    ];
    let expected = [
        AlternativeName::Dns("*.a.example".into()),
        AlternativeName::Address([127, 0, 0, 1].into()),
        AlternativeName::Uri("spiffe://a.example/b".into()),
        AlternativeName::Email("b@a.example".into()),
        AlternativeName::Address(IpAddr::from([0_u8; 16])),
    ];
    assert_eq!(*identity_of(&parameters).names, expected);
}

#[test]
fn pin_is_the_hash_of_the_public_key_as_the_certificate_has_it() {
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::default().self_signed(&key).expect("a certificate");
    let chain = [certificate.der().clone(), certificate.der().clone()];
    let identity = PeerIdentity::of(&chain).expect("well formed");
    assert_eq!(identity.spki_sha256, sha256(&key.subject_public_key_info()));
    assert_eq!(identity.chain.len(), 2);
    assert_eq!(*identity.chain[0], **certificate.der());
}

#[test]
fn what_is_no_certificate_is_refused() {
    assert_eq!(PeerIdentity::of(&[]), Err(Malformed));
    assert_eq!(PeerIdentity::of(&[vec![0x30, 0].into()]), Err(Malformed));
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::default();
    // subjectAltName, and no list in it.
    let broken = CustomExtension::from_oid_content(&[2, 5, 29, 17], vec![0x30, 0x05, 0x82]);
    parameters.custom_extensions = vec![broken];
    let certificate = parameters.self_signed(&key).expect("a certificate");
    assert_eq!(PeerIdentity::of(&[certificate.der().clone()]), Err(Malformed));
    let trailing = [certificate.der().as_ref(), &[0]].concat();
    assert_eq!(PeerIdentity::of(&[trailing.into()]), Err(Malformed));
}
