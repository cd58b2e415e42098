//! Whose certificates are taken, and what is said of the others.

use rcgen::{ExtendedKeyUsagePurpose, IsCa};
use rustls::ServerConfig;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::*;

fn expired(names: &[&str]) -> CertificateParams {
    let mut expired = parameters(names);
    expired.not_after = rcgen::date_time_ymd(2026, 1, 2);
    expired
}

#[tokio::test]
async fn a_server_with_an_ml_dsa_key_is_trusted_in_tls13() {
    let authority = Authority::new("ca.example");
    let kinds = [&rcgen::PKCS_ML_DSA_44, &rcgen::PKCS_ML_DSA_65, &rcgen::PKCS_ML_DSA_87];
    for algorithm in kinds {
        let identity = signed_with(&authority, &lasting(&["a.example"]), algorithm);
        let connector = connector(&only(Version::Tls13), trusting(&authority));
        drop(connect(&connector, &serving(&identity)).await);
    }
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_says_who_the_server_is() {
    let (authority, identity) = vouched();
    for version in VERSIONS {
        let connector = connector(&only(version), trusting(&authority));
        let (mut client, mut server) = connect(&connector, &serving(&identity)).await;
        assert_eq!(client.session().unwrap().version, version);
        assert_eq!(client.session().unwrap().server_name.as_deref(), Some("a.example"));
        let peer = client.session().unwrap().peer.as_deref().expect("a peer");
        assert_eq!(&*peer.subject, "CN=a.example");
        assert_eq!(peer.spki_sha256, pin_of(&identity).0);
        assert_eq!(server.session().unwrap().server_name.as_deref(), Some("a.example"));
        assert!(server.session().unwrap().peer.is_none());
        talk(&mut client, &mut server).await;
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_taken_is_explained_to_both_sides() {
    let authority = Authority::new("ca.example");
    let stranger = Authority::new("other.example");
    let mut early = lasting(&["a.example"]);
    early.not_before = rcgen::date_time_ymd(2125, 1, 1);
    let mut for_clients = lasting(&["a.example"]);
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let mut for_encryption = lasting(&["a.example"]);
    for_encryption.key_usages = vec![rcgen::KeyUsagePurpose::KeyEncipherment];
    let mut nameless = lasting(&["a.example"]);
    nameless.subject_alt_names.clear();
    let mut authoritative = lasting(&["a.example"]);
    authoritative.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let good = lasting(&["a.example"]);
    let rows = [
        (
            signed(&authority, &expired(&["a.example"])),
            "certificate_expired",
            "expired on 2026-01-02",
        ),
        (signed(&authority, &early), "certificate_not_yet_valid", "before 2125-01-01"),
        (signed(&stranger, &good), "unknown_ca", "not trusted (CN=other.example); name that"),
        (self_signed(&good), "unknown_ca", "not trusted (CN=a.example)"),
        (signed(&Authority::new("ca.example"), &good), "unknown_ca", "not trusted (CN=ca.example)"),
        (
            signed(&authority, &lasting(&["b.example", "*.c.example"])),
            "wrong_name",
            "not for a.example but for b.example, *.c.example; set `name`",
        ),
        (signed(&authority, &nameless), "wrong_name", "but for no name at all"),
        (signed(&authority, &for_clients), "bad_certificate", "not for servers"),
        (signed(&authority, &for_encryption), "bad_certificate", "key usage, digitalSignature"),
        (self_signed(&authoritative), "bad_certificate", "an authority's own"),
    ];
    for version in VERSIONS {
        let connector = connector(&only(version), trusting(&authority));
        for (identity, reason, text) in &rows {
            let (client, server) = meet(&connector, &serving(identity)).await;
            let error = client.err().expect("a refusal");
            assert_eq!(error.reason(), *reason, "{error}");
            assert!(error.is_about_certificate());
            let line = error.to_string();
            assert!(line.contains(text), "{line}");
            assert!(!line.contains('\n'));
            assert_eq!(server.err().expect("an alert").reason(), "alert_received", "{reason}");
        }
    }
}

#[tokio::test]
async fn the_pin_that_an_authoritys_own_certificate_is_refused_with_can_be_trusted() {
    let mut authoritative = lasting(&["a.example"]);
    // A pinned key counts whatever it is for.
    authoritative.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
    authoritative.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let identity = self_signed(&authoritative);
    let authority = Authority::new("ca.example");
    let strict = connector(&Policy::default(), trusting(&authority));
    let line = refusal(&strict, &serving(&identity)).await.to_string();
    let pin = line.split('"').nth(1).expect("a pin").parse().expect("a pin");
    let pinned = connector(&Policy::default(), with_trust(Trust::pins(&[pin]), None));
    connect(&pinned, &serving(&identity)).await;
}

#[tokio::test]
async fn a_pinned_key_is_taken_whatever_its_certificate_says() {
    let identity = self_signed(&expired(&["elsewhere.example"]));
    let other = Pin([7; 32]);
    for version in VERSIONS {
        for name in [None, Some("a.example"), Some("192.0.2.1")] {
            let settings = with_trust(Trust::pins(&[other, pin_of(&identity)]), name);
            let connector = connector(&only(version), settings);
            let (mut client, mut server) = connect(&connector, &serving(&identity)).await;
            let asked = name.filter(|name| name.contains("example"));
            assert_eq!(server.session().unwrap().server_name.as_deref(), asked);
            assert_eq!(client.session().unwrap().server_name.as_deref(), asked);
            assert!(client.session().unwrap().peer.is_some());
            talk(&mut client, &mut server).await;
        }
    }
}

#[tokio::test]
async fn another_key_than_the_pinned_one_is_refused_with_its_pin() {
    let (_, identity) = vouched();
    for version in VERSIONS {
        let settings = with_trust(Trust::pins(&[Pin([7; 32])]), Some("a.example"));
        let (client, server) =
            meet(&connector(&only(version), settings), &serving(&identity)).await;
        let error = client.err().expect("a refusal");
        assert_eq!(error.reason(), "pin_mismatch");
        assert!(error.to_string().contains(&pin_of(&identity).to_string()), "{error}");
        assert_eq!(server.err().expect("an alert").reason(), "alert_received");
    }
}

#[tokio::test]
async fn a_certificate_shown_without_its_key_proves_nothing() {
    let (authority, identity) = vouched();
    let key = Arc::clone(&self_signed(&lasting(&["a.example"])).certified().key);
    let stolen = CertifiedKey::new(identity.certified().cert.clone(), key);
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(stolen)));
    let acceptors: Acceptors = Acceptor::new(&config, &VERSIONS).into();
    let pins = with_trust(Trust::pins(&[pin_of(&identity)]), None);
    for version in VERSIONS {
        for settings in [trusting(&authority), pins.clone()] {
            let error = refusal(&connector(&only(version), settings), &acceptors).await;
            assert_eq!(error.reason(), "bad_certificate");
            assert!(error.to_string().contains("did not prove"), "{error}");
        }
    }
}

#[tokio::test]
async fn an_address_is_verified_and_not_asked_for() {
    let authority = Authority::new("ca.example");
    let acceptors = serving(&signed(&authority, &lasting(&["127.0.0.1", "::1"])));
    let at = |name| {
        let settings = with_trust(Trust::roots(roots(&authority)), Some(name));
        connector(&Policy::default(), settings)
    };
    for name in ["127.0.0.1", "::1"] {
        let (client, server) = connect(&at(name), &acceptors).await;
        assert_eq!(
            (&client.session().unwrap().server_name, &server.session().unwrap().server_name),
            (&None, &None)
        );
    }
    let error = refusal(&at("127.0.0.2"), &acceptors).await;
    assert_eq!(error.reason(), "wrong_name");
    assert!(error.to_string().contains("not for 127.0.0.2 but for 127.0.0.1, ::1;"), "{error}");
}

#[tokio::test]
async fn a_name_is_the_same_with_capitals_and_a_last_dot() {
    let (authority, acceptors) = pair();
    for name in ["A.Example", "a.example."] {
        let settings = ConnectorSettings { name: Some(name), ..trusting(&authority) };
        let (_, server) = connect(&connector(&Policy::default(), settings), &acceptors).await;
        assert_eq!(server.session().unwrap().server_name.as_deref(), Some("a.example"));
    }
}

#[test]
fn settings_that_make_no_client_are_refused() {
    let authority = Authority::new("ca.example");
    let refused = |policy: &Policy, settings: ConnectorSettings<'_>, words: &str| {
        let said = Connector::new(policy, settings).err().expect("a refusal").to_string();
        assert!(said.contains(words), "{said}");
    };
    let policy = Policy::default();
    let nameless = ConnectorSettings { name: None, ..trusting(&authority) };
    refused(&policy, nameless, "nothing says which name");
    for name in ["*.example", "a b", "", ".", "a.example:443", "[::1]"] {
        let settings = ConnectorSettings { name: Some(name), ..trusting(&authority) };
        refused(&policy, settings, &format!("{name:?} is neither a host name nor an IP address"));
    }
    refused(&policy, with_trust(Trust::pins(&[]), None), "there is no pin");
    let long = [b'a'; 256];
    for name in [&long[..], b""] {
        let alpn: [&[u8]; 2] = [b"h2", name];
        let settings = ConnectorSettings { alpn: &alpn, ..trusting(&authority) };
        refused(&policy, settings, "is no application protocol");
    }
    let without_version = Policy { versions: Vec::new(), ..policy };
    refused(&without_version, trusting(&authority), "no TLS version is enabled");
}

#[test]
fn what_a_certificate_says_cannot_break_or_flood_a_line() {
    let hostile = || "a\n\u{202e}".repeat(1_000).into();
    let names = (0..1_000).map(|_| hostile()).collect();
    let wrong_name = CertificateRefusal::WrongName { expected: "a.example".into(), names };
    let unknown_issuer = CertificateRefusal::UnknownIssuer { issuer: hostile() };
    let unusable = CertificateRefusal::Unusable(hostile());
    assert!(wrong_name.to_string().contains("and 992 more"));
    for refusal in [wrong_name, unknown_issuer, unusable] {
        let line = refusal.to_string();
        assert!(line.len() < 20_000 && !line.contains(['\n', '\u{202e}']), "{line}");
    }
    let odd = CertificateRefusal::UnknownIssuer { issuer: "O=\"Müller \\, Söhne\"".into() };
    assert!(odd.to_string().contains("(O=\"Müller \\, Söhne\")"), "{odd}");
}
