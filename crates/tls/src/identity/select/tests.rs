//! Which identity a client gets, by name and by the signatures it can verify.

use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_ML_DSA_65, PKCS_RSA_SHA256};

use super::*;
use crate::identity::KeyKind;
use crate::test_identity::identity;

const ECDSA_AND_RSA: &[SignatureScheme] =
    &[SignatureScheme::RSA_PSS_SHA256, SignatureScheme::ECDSA_NISTP256_SHA256];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// One site for each list of names, each with a certificate for its first name.
fn sites(lists: &[(&[&str], bool)]) -> Identities {
    let mut identities = Identities::new();
    for (list, default) in lists {
        let first = identity(&list[..1], &PKCS_ECDSA_P256_SHA256);
        identities.add_site(&names(list), *default, vec![first]);
    }
    identities
}

/// The first name of the certificate that a client asking for this name gets.
fn chosen(identities: &Identities, name: &str) -> String {
    identities.choose(Some(name), ECDSA_AND_RSA, true).expect("an identity").names()[0].clone()
}

#[test]
fn exact_name_comes_before_wildcard_and_wildcard_before_default() {
    let sites = sites(&[
        (&["default.example"], true),
        (&["*.shop.example"], false),
        (&["www.shop.example"], false),
    ]);

    assert_eq!(chosen(&sites, "www.shop.example"), "www.shop.example");
    assert_eq!(chosen(&sites, "cdn.shop.example"), "*.shop.example");
    assert_eq!(chosen(&sites, "elsewhere.example"), "default.example");
}

#[test]
fn wildcard_stands_for_exactly_one_label() {
    let sites = sites(&[(&["default.example"], true), (&["*.shop.example"], false)]);

    for name in ["shop.example", "a.b.shop.example", ".shop.example"] {
        assert_eq!(chosen(&sites, name), "default.example", "{name}");
    }
}

#[test]
fn case_and_a_final_dot_do_not_matter() {
    let sites = sites(&[(&["default.example"], true), (&["WWW.Shop.example"], false)]);

    assert_eq!(chosen(&sites, "www.sHOP.Example"), "www.shop.example");
    assert_eq!(chosen(&sites, "www.shop.example."), "www.shop.example");
}

#[test]
fn overlong_and_empty_names_get_the_default() {
    let sites = sites(&[(&["default.example"], true), (&["a.example"], false)]);

    assert_eq!(chosen(&sites, &"a".repeat(254)), "default.example");
    assert_eq!(chosen(&sites, ""), "default.example");
}

#[test]
fn client_without_a_name_gets_the_default() {
    let sites = sites(&[(&["a.example"], false), (&["b.example"], true)]);
    let chosen = sites.choose(None, ECDSA_AND_RSA, true).expect("an identity");
    assert_eq!(chosen.names(), ["b.example"]);
}

#[test]
fn first_site_is_the_default_when_none_claims_to_be() {
    let sites = sites(&[(&["a.example"], false), (&["b.example"], false)]);
    assert_eq!(chosen(&sites, "c.example"), "a.example");
}

#[test]
fn underscore_makes_a_site_the_default() {
    let sites = sites(&[(&["a.example"], false), (&["b.example", "_"], false)]);
    assert_eq!(chosen(&sites, "c.example"), "b.example");
}

#[test]
fn name_stays_with_the_site_that_had_it_first() {
    let sites = sites(&[(&["a.example"], false), (&["b.example", "a.example"], false)]);
    assert_eq!(chosen(&sites, "a.example"), "a.example");
}

#[test]
fn site_without_certificates_gets_the_default() {
    let mut sites = sites(&[(&["a.example"], false)]);
    sites.add_site(&names(&["bare.example"]), true, Vec::new());
    assert_eq!(chosen(&sites, "bare.example"), "a.example");
}

#[test]
fn no_sites_give_no_identity() {
    assert!(Identities::new().choose(Some("a.example"), ECDSA_AND_RSA, true).is_none());
}

#[test]
fn client_gets_the_first_key_it_can_verify() {
    let mut sites = Identities::new();
    let list = vec![
        identity(&["a.example"], &PKCS_ED25519),
        identity(&["a.example"], &PKCS_ECDSA_P256_SHA256),
        identity(&["a.example"], &PKCS_RSA_SHA256),
    ];
    sites.add_site(&names(&["a.example"]), true, list);
    let kind = |schemes: &[SignatureScheme]| {
        sites.choose(Some("a.example"), schemes, false).expect("an identity").key_kind()
    };

    assert_eq!(kind(ECDSA_AND_RSA), KeyKind::EcdsaP256);
    assert_eq!(kind(&[SignatureScheme::RSA_PKCS1_SHA256]), KeyKind::Rsa { bits: 2048 });
    assert_eq!(
        kind(&[SignatureScheme::ED25519, SignatureScheme::RSA_PSS_SHA256]),
        KeyKind::Ed25519
    );
    // None fits: the first, with which rustls ends the handshake properly.
    assert_eq!(kind(&[SignatureScheme::ECDSA_NISTP384_SHA384]), KeyKind::Ed25519);
}

#[test]
fn certificate_for_the_name_comes_before_an_earlier_one_that_is_not() {
    let mut sites = Identities::new();
    let list = vec![
        identity(&["a.example"], &PKCS_ECDSA_P256_SHA256),
        identity(&["a.example", "*.b.example"], &PKCS_RSA_SHA256),
    ];
    sites.add_site(&names(&["a.example", "www.b.example", "c.example"]), true, list);
    let kind = |name: Option<&str>, schemes: &[SignatureScheme]| {
        sites.choose(name, schemes, true).expect("an identity").key_kind()
    };
    let rsa = KeyKind::Rsa { bits: 2048 };

    assert_eq!(kind(Some("a.example"), ECDSA_AND_RSA), KeyKind::EcdsaP256);
    assert_eq!(kind(Some("WWW.b.example."), ECDSA_AND_RSA), rsa);
    // None is for it, or none of those that are can be verified.
    assert_eq!(kind(Some("c.example"), ECDSA_AND_RSA), KeyKind::EcdsaP256);
    assert_eq!(kind(None, ECDSA_AND_RSA), KeyKind::EcdsaP256);
    let ecdsa = &[SignatureScheme::ECDSA_NISTP256_SHA256];
    assert_eq!(kind(Some("www.b.example"), ecdsa), KeyKind::EcdsaP256);
}

#[test]
fn tls13_signs_no_handshake_by_pkcs1() {
    let mut sites = Identities::new();
    let list = vec![
        identity(&["a.example"], &PKCS_RSA_SHA256),
        identity(&["b.example"], &PKCS_ECDSA_P256_SHA256),
    ];
    sites.add_site(&names(&["a.example"]), true, list);
    let kind = |schemes: &[SignatureScheme], offers_tls13| {
        sites.choose(Some("a.example"), schemes, offers_tls13).expect("an identity").key_kind()
    };
    let pkcs1 = SignatureScheme::RSA_PKCS1_SHA256;
    let ecdsa = SignatureScheme::ECDSA_NISTP256_SHA256;
    let rsa = KeyKind::Rsa { bits: 2048 };

    assert_eq!(kind(&[pkcs1, ecdsa], true), KeyKind::EcdsaP256);
    assert_eq!(kind(&[pkcs1, ecdsa], false), rsa);
    assert_eq!(kind(&[pkcs1, ecdsa, SignatureScheme::RSA_PSS_SHA256], true), rsa);
    // A client that offers TLS 1.3 may get TLS 1.2.
    assert_eq!(kind(&[pkcs1], true), rsa);
}

#[test]
fn ml_dsa_is_for_tls13_only() {
    let mut sites = Identities::new();
    let list = vec![
        identity(&["a.example"], &PKCS_ML_DSA_65),
        identity(&["a.example"], &PKCS_ECDSA_P256_SHA256),
    ];
    sites.add_site(&names(&["a.example"]), true, list);
    let kind = |schemes: &[SignatureScheme], offers_tls13| {
        sites.choose(Some("a.example"), schemes, offers_tls13).expect("an identity").key_kind()
    };
    let both = [SignatureScheme::ML_DSA_65, SignatureScheme::ECDSA_NISTP256_SHA256];

    assert_eq!(kind(&both, true), KeyKind::MlDsa65);
    assert_eq!(kind(&both, false), KeyKind::EcdsaP256);
    assert_eq!(kind(&[SignatureScheme::ML_DSA_44, both[1]], true), KeyKind::EcdsaP256);
}

#[test]
fn a_name_whose_certificate_is_awaited_gets_none_of_another() {
    let of = |name: &str| vec![identity(&[name], &PKCS_ECDSA_P256_SHA256)];
    let mut sites = Identities::new();
    sites.add_awaiting(&names(&["new.example", "a.new.example"]), Vec::new());
    sites.add_site(&names(&["old.example", "www.old.example"]), false, of("old.example"));
    sites.add_awaiting(&names(&["half.example", "more.half.example"]), of("half.example"));
    let shown = |name| sites.choose(name, ECDSA_AND_RSA, true).map(|it| it.names()[0].clone());
    assert!(sites.may_lack_any());
    for (name, expected) in [
        (Some("new.example"), None),
        (Some("a.new.example"), None),
        (Some("old.example"), Some("old.example")),
        // That of a site which awaits none is shown as it is.
        (Some("www.old.example"), Some("old.example")),
        (Some("HALF.example."), Some("half.example")),
        (Some("more.half.example"), None),
        // The first one is the default, and has none.
        (Some("nobody.example"), None),
        (None, None),
    ] {
        assert_eq!(shown(name).as_deref(), expected, "{name:?}");
        assert_eq!(sites.awaits(name), expected.is_none(), "{name:?}");
    }
    assert!(!Identities::new().may_lack_any());
}
