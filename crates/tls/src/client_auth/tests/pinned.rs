//! Clients whose certificates are known one by one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn pinned(certificates: &[&CertificateDer<'_>]) -> Roots {
    let begin = "-----BEGIN CERTIFICATE-----";
    let pem = |it: &&CertificateDer<'_>| {
        format!("{begin}\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(it))
    };
    let pem: String = certificates.iter().map(pem).collect();
    Roots::load_pinned(&Files::new().write("clients.pem", pem)).expect("certificates")
}

/// A pinned certificate is taken by its key, whatever its signer and its dates are; and no other of the same authority, or with
/// the same name.
#[test]
fn a_pinned_certificate_is_taken_and_no_other() {
    let authority = Authority::new("ca.example");
    let alice = authority.client(&client_parameters("alice", 1));
    let mut parameters = client_parameters("bob", 2);
    parameters.not_before = rcgen::date_time_ymd(2001, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let bob = authority.client(&parameters);
    let other = authority.client(&client_parameters("alice", 1));
    let pins = pinned(&[&alice.chain[0], &bob.chain[0]]);
    for version in VERSIONS {
        for mode in [ClientAuthMode::Required, ClientAuthMode::Optional] {
            let auth = ClientAuth { mode, roots: pins.clone(), revocation: None, depth: None };
            let acceptors = acceptors(version, Some(&auth));
            for (certificate, name) in [(&alice, "CN=alice"), (&bob, "CN=bob")] {
                let connected = connect(client(Some(certificate)), &acceptors);
                assert_eq!(subject(&connected.expect("a handshake")), Some(name), "{version:?}");
            }
            let (reason, alert) = refusal(client(Some(&other)), &acceptors);
            assert_eq!(alert, AlertDescription::UnknownCA, "{version:?} {reason}");
            let nobody = connect(client(None), &acceptors);
            assert_eq!(nobody.is_ok(), mode == ClientAuthMode::Optional, "{version:?}");
        }
    }
}

/// A client is not known by the word of an authority.
#[test]
fn a_session_is_for_those_who_are_pinned_or_for_those_who_are_vouched_for() {
    let authority = Authority::new("ca.example");
    let pem = authority.own_pem();
    let own = CertificateDer::from_pem_slice(pem.as_bytes()).expect("one");
    let roots = Roots::load(&Files::new().write("roots.pem", pem), None).expect("roots").0;
    let signed = ClientAuth { roots, ..required(&[&authority]) };
    let alone = ClientAuth { roots: pinned(&[&own]), ..signed.clone() };
    let audience = |auth| SiteGroup { client_auth: Some(auth), ..SiteGroup::default() }.audience();
    assert!(alone.roots.digests == signed.roots.digests && audience(&signed) != audience(&alone));
}
