//! Handshakes of clients that show certificates, and the sessions they leave.

use kettle_kernel::ktls::Version;
use rcgen::SanType;
use rustls::client::Tls12Resumption;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{AlertDescription, ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;
use rustls_pki_types::pem::PemObject;

use super::*;
use crate::acceptors::Acceptors;
use crate::policy::SiteGroup;
use crate::session::Resumption;
use crate::test_identity::{
    self, ALL_MEANS, Authority, ClientCertificate, Connected, Files, Refused, able_client, accept,
    accept_in_pieces, acceptor_with, client_parameters, only, resumption,
};
use crate::tickets::SharedResumption;

mod pinned;

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

fn roots(authorities: &[&Authority]) -> Roots {
    let pem: String = authorities.iter().map(|authority| authority.own_pem()).collect();
    Roots::load(&Files::new().write("roots.pem", pem), None).expect("roots").0
}

fn revocation(pem: &str) -> RevocationLists {
    RevocationLists::load(&Files::new().write("crl.pem", pem), None).expect("a list").0
}

fn required(authorities: &[&Authority]) -> ClientAuth {
    ClientAuth {
        mode: ClientAuthMode::Required,
        roots: roots(authorities),
        revocation: None,
        depth: None,
    }
}

fn acceptors(version: Version, client_auth: Option<&ClientAuth>) -> Acceptors {
    acceptors_of(version, client_auth, &resumption())
}

fn acceptors_of(
    version: Version,
    client_auth: Option<&ClientAuth>,
    resumption: &SharedResumption,
) -> Acceptors {
    let group = SiteGroup { client_auth, ..SiteGroup::default() };
    acceptor_with(&only(version), resumption, &group).into()
}

fn client(certificate: Option<&ClientCertificate>) -> ClientConfig {
    let mut config = able_client();
    if let Some(ClientCertificate { chain, key }) = certificate {
        let provider = config.crypto_provider();
        let key = CertifiedKey::from_der(chain.clone(), key.clone_key(), provider);
        config.client_auth_cert_resolver =
            Arc::new(SingleCertAndKey::from(key.expect("a key that fits")));
    }
    config
}

fn connect(client: ClientConfig, acceptors: &Acceptors) -> Result<Connected, Refused> {
    accept(&client.into(), "a.example", acceptors)
}

fn refusal(client: ClientConfig, acceptors: &Acceptors) -> (&'static str, AlertDescription) {
    match connect(client, acceptors) {
        Err(Refused { server, client: Some(alert) }) => (server.reason(), alert),
        Err(refused) => panic!("{refused:?}"),
        Ok(_) => panic!("accepted"),
    }
}

fn subject(connected: &Connected) -> Option<&str> {
    Some(&connected.server.session.peer.as_ref()?.subject)
}

#[test]
fn good_certificate_says_who_the_client_is() {
    let authority = Authority::new("ca.example");
    let alice = authority.client(&client_parameters("alice", 1));
    for version in VERSIONS {
        for mode in [ClientAuthMode::Required, ClientAuthMode::Optional] {
            let auth = ClientAuth { mode, ..required(&[&authority]) };
            let acceptors = acceptors(version, Some(&auth));
            let connected = connect(client(Some(&alice)), &acceptors).expect("a handshake");
            assert_eq!(subject(&connected), Some("CN=alice"), "{version:?}");
            let peer = connected.server.session.peer.expect("a peer");
            assert_eq!(*peer.chain[0], *alice.chain[0]);
        }
    }
}

#[test]
fn client_with_an_ml_dsa_key_is_known_too() {
    let authority = Authority::new("authority");
    let certificate =
        authority.client_with(&client_parameters("somebody", 7), &rcgen::PKCS_ML_DSA_65);
    let acceptors = acceptors(Version::Tls13, Some(&required(&[&authority])));

    let connected = connect(client(Some(&certificate)), &acceptors).expect("a connection");

    assert_eq!(subject(&connected), Some("CN=somebody"));
}

#[test]
fn client_that_is_not_asked_is_nobody() {
    let authority = Authority::new("ca.example");
    let alice = authority.client(&client_parameters("alice", 1));
    for version in VERSIONS {
        let connected = connect(client(Some(&alice)), &acceptors(version, None));
        assert_eq!(subject(&connected.expect("a handshake")), None);
    }
}

#[test]
fn client_without_a_certificate_is_told_that_it_needs_one() {
    let auth = required(&[&Authority::new("ca.example")]);
    for (version, alert) in VERSIONS
        .into_iter()
        .zip([AlertDescription::HandshakeFailure, AlertDescription::CertificateRequired])
    {
        let acceptors = acceptors(version, Some(&auth));
        assert_eq!(refusal(client(None), &acceptors), ("certificate_required", alert));
    }
    let auth = ClientAuth { mode: ClientAuthMode::Optional, ..auth };
    for version in VERSIONS {
        let connected = connect(client(None), &acceptors(version, Some(&auth)));
        assert_eq!(subject(&connected.expect("a handshake")), None);
    }
}

#[test]
fn bad_certificates_are_refused_with_the_alert_that_says_why() {
    let authority = Authority::new("ca.example");
    let stranger = Authority::new("other.example");
    let mut expired = client_parameters("alice", 1);
    expired.not_after = rcgen::date_time_ymd(2026, 1, 2);
    let mut early = client_parameters("alice", 1);
    early.not_before = rcgen::date_time_ymd(2125, 1, 1);
    let mut for_servers = client_parameters("alice", 1);
    for_servers.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let mut for_encryption = client_parameters("alice", 1);
    for_encryption.key_usages = vec![rcgen::KeyUsagePurpose::KeyEncipherment];
    let good = client_parameters("alice", 1);
    let revoked = client_parameters("alice", 7);
    let good_list = authority.revoke(&[7], 2126);
    let rows = [
        (authority.client(&expired), "certificate_expired", AlertDescription::CertificateExpired),
        (
            authority.client(&early),
            "certificate_not_yet_valid",
            AlertDescription::CertificateExpired,
        ),
        (stranger.client(&good), "unknown_ca", AlertDescription::UnknownCA),
        (Authority::new("ca.example").client(&good), "unknown_ca", AlertDescription::UnknownCA),
        (authority.client(&revoked), "certificate_revoked", AlertDescription::CertificateRevoked),
        (
            authority.client(&for_servers),
            "bad_certificate",
            AlertDescription::UnsupportedCertificate,
        ),
        (
            authority.client(&for_encryption),
            "bad_certificate",
            AlertDescription::UnsupportedCertificate,
        ),
    ];
    for mode in [ClientAuthMode::Required, ClientAuthMode::Optional] {
        let revocation = Some(revocation(&good_list));
        let auth = ClientAuth { mode, revocation, ..required(&[&authority]) };
        for version in VERSIONS {
            let acceptors = acceptors(version, Some(&auth));
            for (certificate, reason, alert) in &rows {
                let refused = refusal(client(Some(certificate)), &acceptors);
                assert_eq!(refused, (*reason, *alert), "{version:?}");
            }
            let mut signing = good.clone();
            signing.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
            for taken in [&good, &signing] {
                let certificate = authority.client(taken);
                assert!(connect(client(Some(&certificate)), &acceptors).is_ok());
            }
        }
    }
}

#[test]
fn list_that_ran_out_or_is_anothers_vouches_for_nobody() {
    let authority = Authority::new("ca.example");
    let stranger = Authority::new("other.example");
    let alice = authority.client(&client_parameters("alice", 1));
    for list in [authority.expired_list(), stranger.revoke(&[], 2126)] {
        let revocation = Some(revocation(&list));
        let auth = ClientAuth { revocation, ..required(&[&authority]) };
        let refused = refusal(client(Some(&alice)), &acceptors(Version::Tls13, Some(&auth)));
        assert_eq!(refused, ("revocation_unknown", AlertDescription::UnknownCA));
    }
}

#[test]
fn newer_list_counts_behind_an_older_one() {
    let authority = Authority::new("ca.example");
    let alice = authority.client(&client_parameters("alice", 7));
    let lists = authority.superseded_list(2126) + &authority.revoke(&[7], 2126);
    let auth = ClientAuth { revocation: Some(revocation(&lists)), ..required(&[&authority]) };
    let refused = refusal(client(Some(&alice)), &acceptors(Version::Tls13, Some(&auth)));
    assert_eq!(refused, ("certificate_revoked", AlertDescription::CertificateRevoked));
}

#[test]
fn key_of_another_certificate_is_refused() {
    let authority = Authority::new("ca.example");
    let alice = authority.client(&client_parameters("alice", 1));
    let mallory = authority.client(&client_parameters("mallory", 2));
    let auth = required(&[&authority]);
    for version in VERSIONS {
        let mut config = client(None);
        let key = config.crypto_provider().key_provider.load_private_key(mallory.key.clone_key());
        let stolen = CertifiedKey::new(alice.chain.clone(), key.expect("a key"));
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(stolen));
        let refused = refusal(config, &acceptors(version, Some(&auth)));
        assert_eq!(refused, ("bad_certificate", AlertDescription::DecryptError), "{version:?}");
    }
}

/// A chain whose first certificate has about as many bytes.
fn long(authority: &Authority, bytes: usize) -> ClientCertificate {
    let mut parameters = client_parameters("alice", 1);
    let name = |number| format!("{number:0>60}.example").try_into().expect("ASCII");
    let names = 0..bytes / 70;
    parameters.subject_alt_names = names.map(|number| SanType::DnsName(name(number))).collect();
    let certificate = authority.client(&parameters);
    assert!(certificate.chain[0].len().abs_diff(bytes) < bytes / 20 + 500);
    certificate
}

#[test]
fn long_flights_in_many_records_leave_what_is_behind_them_alone() {
    let authority = Authority::new("ca.example");
    let auth = required(&[&authority]);
    for version in VERSIONS {
        let acceptors = acceptors(version, Some(&auth));
        for (bytes, fragment_bytes) in
            [(500, None), (17_000, None), (17_000, Some(512)), (50_000, Some(2_048))]
        {
            let mut config = client(Some(&long(&authority, bytes)));
            config.max_fragment_size = fragment_bytes;
            for piece_bytes in [usize::MAX, 4_096, 1_000] {
                let name = ServerName::try_from("a.example").expect("a name");
                let client = ClientConnection::new(config.clone().into(), name).expect("a client");
                // Half of a record follows the Finished in one write with it.
                let behind = |wire: Vec<u8>| {
                    let is_last = wire[0] != 22 || wire[5] != 1;
                    let tail: &[u8] = if is_last { &[23, 3, 3, 0, 40, 1, 2] } else { &[] };
                    let wire = [&wire, tail].concat();
                    wire.chunks(piece_bytes).map(<[u8]>::to_vec).collect()
                };
                let connected = accept_in_pieces(client, &acceptors, behind).expect("a handshake");
                assert_eq!(subject(&connected), Some("CN=alice"));
                assert_eq!(connected.server.incoming.filled(), [23, 3, 3, 0, 40, 1, 2]);
            }
        }
    }
}

fn remembering(certificate: &ClientCertificate, kept: Tls12Resumption) -> Arc<ClientConfig> {
    test_identity::remembering(client(Some(certificate)), kept)
}

#[test]
fn resumed_session_knows_its_client() {
    let authority = Authority::new("ca.example");
    let auth = required(&[&authority]);
    let alice = authority.client(&client_parameters("alice", 1));
    for certificate in [alice, long(&authority, 10_000)] {
        for (version, kept, resumed) in ALL_MEANS {
            let resumption = resumption();
            let client = remembering(&certificate, kept);
            for expected in [Resumption::Full, resumed, resumed] {
                // As after a reload that changed nothing.
                let acceptors = acceptors_of(version, Some(&auth.clone()), &resumption);
                let connected = accept(&client, "a.example", &acceptors).expect("a handshake");
                assert_eq!(connected.server.session.resumed, expected, "{version:?}");
                assert_eq!(subject(&connected), Some("CN=alice"), "{version:?}");
            }
        }
    }
}

#[test]
fn session_ends_with_the_certificate_or_the_first_list_to_run_out() {
    let authority = Authority::new("ca.example");
    let other = Authority::new("other.example");
    let alice = authority.client(&client_parameters("alice", 1));
    let year = |year| u64::try_from(rcgen::date_time_ymd(year, 1, 1).unix_timestamp());
    let until = |lists: Option<String>| {
        let revocation = lists.map(|pem| revocation(&pem));
        let auth = ClientAuth { revocation, ..required(&[&authority]) };
        let provider = client(None).crypto_provider().clone();
        let verifier = auth.verifier(provider).expect("a verifier");
        rustls_callbacks::Observed::default().during(|| {
            let verified = verifier.verify_client_cert(&alice.chain[0], &[], UnixTime::now());
            verified.map(|_| rustls_callbacks::session_until()).expect("a good certificate")
        })
    };
    let rows = [
        (None, 2126),
        (Some(authority.revoke(&[], 2130)), 2126),
        (Some(authority.revoke(&[], 2100)), 2100),
        (Some(authority.revoke(&[], 2110) + &other.revoke(&[], 2090)), 2090),
        // One that was replaced ends nothing.
        (Some(authority.superseded_list(2080) + &authority.revoke(&[], 2110)), 2110),
    ];
    for (lists, expected) in rows {
        assert_eq!(Ok(until(lists)), year(expected));
    }
}

#[test]
fn session_of_a_chain_too_long_for_tickets_is_not_resumed() {
    let authority = Authority::new("ca.example");
    let auth = required(&[&authority]);
    for (version, kept, _) in ALL_MEANS {
        let client = remembering(&long(&authority, 17_000), kept);
        let acceptors = acceptors(version, Some(&auth));
        for _ in 0..2 {
            let connected = accept(&client, "a.example", &acceptors).expect("a handshake");
            assert_eq!(connected.server.session.resumed, Resumption::Full);
        }
    }
}

/// As `ssl_verify_depth` counts: authorities between the certificate and the root.
#[test]
fn chain_with_more_authorities_than_the_depth_is_refused() {
    let all: Vec<Authority> =
        ["root", "one", "two", "three"].iter().map(|name| Authority::new(name)).collect();
    let der = |pem: String| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let auth = required(&[&all[0]]);
    for version in VERSIONS {
        for between in 0..all.len() {
            let mut alice = all[between].client(&client_parameters("alice", 1));
            for number in (1..=between).rev() {
                alice.chain.push(der(all[number - 1].sign_authority(&all[number])));
            }
            // A root that is sent, and one that has nothing to do with it, do not count.
            alice.chain.push(der(all[0].own_pem()));
            alice.chain.push(der(Authority::new("root").sign_authority(&Authority::new("x"))));
            for depth in [None, Some(0), Some(1), Some(2), Some(3)] {
                let acceptors = acceptors(version, Some(&ClientAuth { depth, ..auth.clone() }));
                let is_in = connect(client(Some(&alice)), &acceptors).is_ok();
                assert_eq!(is_in, depth.is_none_or(|it| between <= it), "{between} of {depth:?}");
                if !is_in {
                    let refusal = refusal(client(Some(&alice)), &acceptors);
                    assert_eq!(refusal, ("unknown_ca", AlertDescription::UnknownCA));
                }
            }
        }
    }
}

#[test]
fn session_made_for_another_audience_is_not_resumed() {
    let authority = Authority::new("ca.example");
    let other = Authority::new("other.example");
    let alice = authority.client(&client_parameters("alice", 1));
    let here = required(&[&authority]);
    let optional = ClientAuth { mode: ClientAuthMode::Optional, ..here.clone() };
    let shallow = ClientAuth { depth: Some(1), ..here.clone() };
    let listed = |serials: &[u64]| ClientAuth {
        revocation: Some(revocation(&authority.revoke(serials, 2126))),
        ..here.clone()
    };
    let elsewhere = SiteGroup { service: "mail", client_auth: Some(&here), ..SiteGroup::default() };
    let with = |client_auth| SiteGroup { client_auth, ..SiteGroup::default() };
    let both = required(&[&authority, &other]);
    let revoking = listed(&[1]);
    let empty_list = listed(&[]);
    let longer_list = listed(&[2]);
    let rows = [
        ("without client certificates", with(None), with(Some(&here))),
        ("another service", elsewhere, with(Some(&here))),
        ("a certificate was not needed", with(Some(&optional)), with(Some(&here))),
        ("a CA was removed", with(Some(&both)), with(Some(&here))),
        ("a shorter chain is asked for", with(Some(&here)), with(Some(&shallow))),
        ("a list came", with(Some(&here)), with(Some(&empty_list))),
        ("a list changed", with(Some(&empty_list)), with(Some(&longer_list))),
    ];
    for (version, kept, resumed) in ALL_MEANS {
        let policy = only(version);
        for (case, before, after) in rows {
            let resumption = resumption();
            let client = remembering(&alice, kept);
            let at = |group: &SiteGroup<'_>| {
                let acceptors = acceptor_with(&policy, &resumption, group).into();
                let connected = accept(&client, "a.example", &acceptors).expect("a handshake");
                let is_known = subject(&connected) == Some("CN=alice");
                assert_eq!(is_known, group.client_auth.is_some(), "{case}");
                connected.server.session.resumed
            };
            assert_eq!(at(&before), Resumption::Full, "{case} {version:?}");
            assert_eq!(at(&after), Resumption::Full, "{case} {version:?} {resumed:?}");
            assert_eq!(at(&after), resumed, "{case} {version:?}");
        }
        // And once it is revoked, it is over.
        let resumption = resumption();
        let client = remembering(&alice, kept);
        let at = |group: &SiteGroup<'_>| {
            accept(&client, "a.example", &acceptor_with(&policy, &resumption, group).into())
        };
        assert!(at(&with(Some(&here))).is_ok());
        assert!(at(&with(Some(&revoking))).is_err(), "{version:?} {resumed:?}");
    }
}

#[test]
fn order_of_authorities_makes_no_other_audience() {
    let one = Authority::new("ca.example");
    let two = Authority::new("other.example");
    let audience = |authorities: &[&Authority]| {
        let auth = required(authorities);
        SiteGroup { client_auth: Some(&auth), ..SiteGroup::default() }.audience()
    };
    let one = &one;
    let two = &two;
    let pems = (one.own_pem(), two.own_pem());
    // Signed anew it would be another certificate.
    let of = |pem: String| {
        let roots = Roots::load(&Files::new().write("roots.pem", pem), None).expect("roots").0;
        let auth =
            ClientAuth { mode: ClientAuthMode::Required, roots, revocation: None, depth: None };
        SiteGroup { client_auth: Some(&auth), ..SiteGroup::default() }.audience()
    };
    assert_eq!(of(pems.0.clone() + &pems.1), of(pems.1.clone() + &pems.0 + &pems.1));
    assert_ne!(of(pems.0.clone() + &pems.1), of(pems.0));
    assert_ne!(audience(&[one]), audience(&[two]));
}
