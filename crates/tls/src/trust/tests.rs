//! The results of files of authorities and revocation lists.

use rcgen::{IsCa, KeyPair, PublicKeyData};

use super::*;
use crate::identity::pem::{AHEAD, READ};
use crate::test_identity::{Authority, Files, now, parameters};

fn lists(pem: &str) -> (RevocationLists, Vec<IdentityWarning>) {
    let files = Files::new();
    let path = files.write("crl.pem", pem);
    RevocationLists::load_at(&path, None, now()).expect("lists")
}

#[test]
fn newest_list_of_each_issuer_counts_wherever_it_stands() {
    let authority = Authority::new("ca.example");
    let other = Authority::new("other.example");
    // Signed anew they would be other lists.
    let [old, new, others] =
        [authority.superseded_list(2026), authority.revoke(&[7], 2126), other.revoke(&[], 2126)];
    let (expected, warnings) = lists(&format!("{new}{others}"));
    assert_eq!((expected.lists.len(), warnings.len()), (2, 0));
    let first = lists(&(authority.revoke(&[7], 2100) + &others)).0;
    assert!(now() < first.until() && first.until() < expected.until());
    for order in [[&old, &new, &others], [&others, &new, &old], [&new, &old, &others]] {
        let (found, warnings) = lists(&order.map(String::as_str).concat());
        assert_eq!(found.lists, expected.lists);
        assert_eq!(found.digests, expected.digests);
        assert_eq!(warnings, [], "the one that ran out is asked nothing");
    }
    assert_ne!(lists(&new).0.digests, lists(&old).0.digests);
}

#[test]
fn lists_of_two_keys_under_one_name_are_told_of() {
    let [old, new] = [Authority::new("ca.example"), Authority::new("ca.example")];
    let (found, warnings) = lists(&(new.revoke(&[7], 2126) + &old.superseded_list(2126)));
    assert_eq!(found.lists.len(), 1);
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.is_serious());
    assert!(warning.to_string().contains("two keys named CN=ca.example"), "{warning}");
    // Nobody is let in by one that ran out, nor is anybody kept out by an older one of the same key.
    for other in [old.superseded_list(2026), new.superseded_list(2126)] {
        assert_eq!(lists(&(new.revoke(&[7], 2126) + &other)).1, []);
    }
}

/// As they are in a year when authorities of tests are past their time.
fn roots_later(pem: &str) -> Result<(Roots, Vec<IdentityWarning>), String> {
    let files = Files::new();
    let path = files.write("roots.pem", pem);
    let year = Duration::from_secs(365 * 86_400);
    let loaded = Roots::load_at(&path, None, now() + year);
    loaded.map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "roots.pem"))
}

#[test]
fn certificate_of_no_authority_is_no_root() {
    let authority = Authority::new("ca.example");
    let key = KeyPair::generate().expect("a key");
    for is_ca in [IsCa::NoCa, IsCa::ExplicitNoCa] {
        let mut parameters = parameters(&["alice"]);
        parameters.is_ca = is_ca;
        let own = parameters.self_signed(&key).expect("a certificate").pem();
        let signed = authority.sign(&parameters, &key);
        for certificate in [own, signed] {
            let error =
                roots_later(&(authority.own_pem() + &certificate)).expect_err("no authority");
            assert_eq!(
                error,
                "certificate 2 in roots.pem is no certificate authority's; name the authority that \
                 signs, not a certificate it signed; a server's own key is trusted by a pin"
            );
        }
    }
}

#[test]
fn expired_root_is_warned_of_and_taken() {
    let pem = Authority::new("ca.example").own_pem();
    let files = Files::new();
    let loaded = Roots::load_at(&files.write("roots.pem", &pem), None, now());
    assert_eq!(loaded.expect("roots").1, []);
    let (roots, warnings) = roots_later(&pem).expect("roots");
    assert_eq!(roots.store.len(), 1);
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(!warning.is_serious());
    let words = warning.to_string();
    assert!(
        words.starts_with("certificate 1 in ")
            && words.contains("expired at 2027-01-01 00:00:00 UTC"),
        "{words}"
    );
}

#[test]
fn another_key_under_the_name_of_an_authority_is_another_authority() {
    const ECDSA_WITH_SHA256: [u8; 10] = [6, 8, 42, 134, 72, 206, 61, 4, 3, 2];
    const RSA: [u8; 13] = [6, 9, 42, 134, 72, 134, 247, 13, 1, 1, 1, 5, 0];
    const ELLIPTIC_CURVE: [u8; 9] = [6, 7, 42, 134, 72, 206, 61, 2, 1];
    let by = |key: &[u8]| {
        CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: ECDSA_WITH_SHA256.to_vec(),
            public_key_algorithm_id: key.to_vec(),
        }
        .into()
    };
    let unknown = Error::from(CertificateError::UnknownIssuer);
    assert_eq!(chain_error(CertificateError::BadSignature.into()), unknown);
    assert_eq!(chain_error(by(&RSA)), unknown);
    // A signature that the key could have made is only not supported.
    assert_eq!(chain_error(by(&ELLIPTIC_CURVE)), by(&ELLIPTIC_CURVE));
    let revoked = Error::from(CertificateError::Revoked);
    assert_eq!(chain_error(revoked.clone()), revoked);
}

#[test]
fn system_has_authorities_or_says_how_to_get_them() {
    match Roots::system() {
        Ok(roots) => assert!(!roots.digests.is_empty()),
        Err(error) => assert!(error.to_string().contains("ca-certificates"), "{error}"),
    }
}

#[test]
fn names_of_authorities_fit_into_a_message_to_clients() {
    // In a certificate it stands three times, and that may have 64 KiB.
    let name = "a".repeat(15_000);
    let authority = || Authority::new(&name).own_pem();
    let files = Files::new();
    let four: String = (0..4).map(|_| authority()).collect();
    let path = files.write("roots.pem", &four);
    assert_eq!(Roots::load_for_clients(&path, None).expect("roots").0.digests.len(), 4);
    let path = files.write("roots.pem", four + &authority());
    // The authorities of a backend are told to nobody.
    assert_eq!(Roots::load(&path, None).expect("roots").0.digests.len(), 5);
    let error = Roots::load_for_clients(&path, None).expect_err("too long");
    assert!(error.to_string().contains(" have 75"), "{error}");
}

/// The certificate that `openssl req -x509` makes, and an authority that was made as one.
#[test]
fn a_lone_authority_that_may_be_meant_to_be_shown_itself_is_a_warning() {
    let files = Files::new();
    let key = KeyPair::generate().expect("a key");
    let mut plain = parameters(&["a.example"]);
    plain.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let plain = plain.self_signed(&key).expect("a certificate").pem();
    let authority = Authority::new("ca.example").own_pem();
    let alone = files.write("alone.pem", &plain);
    let (_, warnings) = Roots::load_at(&alone, None, now()).expect("roots");
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let text = warning.to_string();
    let pin = text.split(['[', ']']).nth(1).expect("a pin").trim_matches('"');
    assert_eq!(pin.parse(), Ok(Pin(sha256(&key.subject_public_key_info()))), "{text}");
    assert!(text.contains("in place of `roots`") && !warning.is_serious(), "{text}");
    let (_, warnings) = Roots::load_for_clients(&alone, None).expect("roots");
    let of_clients = warnings.iter().map(ToString::to_string);
    assert_eq!(
        of_clients.filter(|it| it.contains("clients must show one that it signed")).count(),
        1
    );
    for quiet in [authority.clone(), plain + &authority] {
        let path = files.write("quiet.pem", quiet);
        assert_eq!(Roots::load_at(&path, None, now()).expect("roots").1, []);
    }
}

/// Loads a file again as it is, and says whether it was read.
fn is_read<T>(load: impl FnOnce() -> T) -> (T, bool) {
    READ.take();
    let loaded = load();
    (loaded, !READ.take().is_empty())
}

#[test]
fn authorities_that_did_not_change_are_not_read_again() {
    AHEAD.set(Duration::from_secs(60));
    let files = Files::new();
    let [one, other] = [Authority::new("ca.example"), Authority::new("other.example")];
    let path = files.write("roots.pem", one.own_pem());
    let (before, said) = Roots::load_at(&path, None, now()).expect("roots");
    let ((same, said_again), read) =
        is_read(|| Roots::load_at(&path, Some(&before), now()).expect("roots"));
    assert!(!read && Arc::ptr_eq(&same.store, &before.store));
    assert_eq!(said_again, said);
    // The warnings about them are of this moment.
    let century = Duration::from_secs(100 * 365 * 86_400);
    let ((_, said), read) =
        is_read(|| Roots::load_at(&path, Some(&same), now() + century).expect("roots"));
    assert!(!read && said.last().is_some_and(|it| it.to_string().contains("expired at")));
    let path = files.write("roots.pem", other.own_pem());
    let ((renewed, _), read) =
        is_read(|| Roots::load_at(&path, Some(&same), now()).expect("roots"));
    assert!(read && renewed.digests != before.digests);
    // A file that changed just now may change again within the same tick of the clock.
    AHEAD.set(Duration::ZERO);
    let path = files.write("new.pem", one.own_pem());
    let (fresh, _) = Roots::load_at(&path, None, now()).expect("roots");
    assert!(is_read(|| Roots::load_at(&path, Some(&fresh), now())).1);
}

#[test]
fn revocation_lists_that_did_not_change_are_not_read_again() {
    AHEAD.set(Duration::from_secs(60));
    let files = Files::new();
    let [old, new] = [Authority::new("ca.example"), Authority::new("ca.example")];
    let path = files.write("crl.pem", new.revoke(&[7], 2126) + &old.superseded_list(2126));
    let (before, said) = RevocationLists::load_at(&path, None, now()).expect("lists");
    assert_eq!(said.len(), 1, "{said:?}");
    let ((same, said_again), read) =
        is_read(|| RevocationLists::load_at(&path, Some(&before), now()).expect("lists"));
    assert!(!read && Arc::ptr_eq(&same.lists, &before.lists));
    assert_eq!(said_again, said);
    let later = before.until() + Duration::from_secs(1);
    let ((_, said), read) =
        is_read(|| RevocationLists::load_at(&path, Some(&same), later).expect("lists"));
    let [warning] = said.as_slice() else { panic!("{said:?}") };
    assert!(!read && warning.to_string().contains("ran out at"), "{warning}");
    let path = files.write("crl.pem", new.revoke(&[7, 8], 2126));
    let ((renewed, _), read) =
        is_read(|| RevocationLists::load_at(&path, Some(&same), now()).expect("lists"));
    assert!(read && renewed.digests != before.digests);
}
