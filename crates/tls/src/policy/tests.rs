//! Handshakes in memory under different policies.

use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption as ClientResumption,
    Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::{CipherSuite, ClientConfig, HandshakeKind, NamedGroup, ProtocolVersion};
use rustls::{ServerConnection, SignatureScheme};

use rustls_pki_types::ServerName;

use super::*;
use crate::test_identity::{
    able_client, client_config, handshake, identity, only, resumption, site_of,
};

fn identities() -> Arc<Identities> {
    let of = |algorithm| identity(&["a.example"], algorithm);
    site_of(vec![of(&PKCS_ECDSA_P256_SHA256), of(&PKCS_RSA_SHA256)])
}

fn server(policy: &Policy) -> Arc<ServerConfig> {
    server_config(policy, identities(), &resumption()).expect("a configuration")
}

fn connect(client: ClientConfig, policy: &Policy) -> ServerConnection {
    handshake(&Arc::new(client), &server(policy), "a.example").expect("a handshake").1
}

fn suite_of(connection: &ServerConnection) -> CipherSuite {
    connection.negotiated_cipher_suite().expect("a suite").suite()
}

fn group_of(connection: &ServerConnection) -> NamedGroup {
    connection.negotiated_key_exchange_group().expect("a group").name()
}

#[test]
fn default_policy_takes_aes_128_and_the_hybrid_group() {
    let connection = connect(able_client(), &Policy::default());

    assert_eq!(connection.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(suite_of(&connection), CipherSuite::TLS13_AES_128_GCM_SHA256);
    assert_eq!(group_of(&connection), NamedGroup::X25519MLKEM768);
}

#[test]
fn servers_order_of_suites_decides() {
    let orders = [
        (Cipher::Aes256Gcm, CipherSuite::TLS13_AES_256_GCM_SHA384),
        (Cipher::Chacha20Poly1305, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        (Cipher::Aes128Gcm, CipherSuite::TLS13_AES_128_GCM_SHA256),
    ];
    for (first, expected) in orders {
        let policy = Policy { suites: vec![first, Cipher::Aes128Gcm], ..Policy::default() };
        assert_eq!(suite_of(&connect(able_client(), &policy)), expected);
    }
}

#[test]
fn tls_1_2_suites_follow_the_certificate() {
    let connection = connect(able_client(), &only(Version::Tls12));
    assert_eq!(connection.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    assert_eq!(suite_of(&connection), CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256);

    let rsa_only = client_config(
        aws_lc_rs::default_provider(),
        &[SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PKCS1_SHA256],
    );
    let connection = connect(rsa_only, &only(Version::Tls12));
    assert_eq!(suite_of(&connection), CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256);
}

#[test]
fn client_without_ecdsa_gets_the_rsa_certificate_in_tls_1_3() {
    let rsa_only = client_config(aws_lc_rs::default_provider(), &[SignatureScheme::RSA_PSS_SHA256]);
    let server = server(&Policy::default());
    let (client, _) = handshake(&Arc::new(rsa_only), &server, "a.example").expect("a handshake");

    let leaf = &client.peer_certificates().expect("certificates")[0];
    // rsaEncryption, 1.2.840.113549.1.1.1
    let oid = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    assert!(leaf.windows(oid.len()).any(|window| window == oid));
}

#[test]
fn only_enabled_groups_are_used() {
    let groups = [
        (Group::X25519, NamedGroup::X25519),
        (Group::P256, NamedGroup::secp256r1),
        (Group::P384, NamedGroup::secp384r1),
    ];
    for (group, expected) in groups {
        for version in [Version::Tls12, Version::Tls13] {
            let policy = Policy { groups: vec![group], ..only(version) };
            assert_eq!(group_of(&connect(able_client(), &policy)), expected);
        }
    }
}

#[test]
fn disabled_version_is_refused() {
    let client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&version::TLS12])
        .expect("versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let outcome = handshake(&Arc::new(client), &server(&only(Version::Tls13)), "a.example");
    assert!(outcome.is_err());
}

#[test]
fn http_1_1_is_agreed_on_and_http_2_alone_refused() {
    let mut client = able_client();
    client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connection = connect(client.clone(), &Policy::default());
    assert_eq!(connection.alpn_protocol(), Some(b"http/1.1".as_slice()));

    client.alpn_protocols = vec![b"h2".to_vec()];
    assert!(handshake(&Arc::new(client), &server(&Policy::default()), "a.example").is_err());
}

#[test]
fn sessions_resume_with_another_worker_and_after_a_reload() {
    let shared = resumption();
    let make = |identities: Arc<Identities>, policy: &Policy| {
        server_config(policy, identities, &shared).expect("a configuration")
    };
    for version in [Version::Tls12, Version::Tls13] {
        let client = Arc::new(able_client());
        let first = make(identities(), &only(version));
        let renewed = make(identities(), &only(version));

        let (_, full) = handshake(&client, &first, "a.example").expect("a handshake");
        assert_ne!(full.handshake_kind(), Some(HandshakeKind::Resumed));
        let (_, again) = handshake(&client, &renewed, "a.example").expect("a handshake");
        assert_eq!(again.handshake_kind(), Some(HandshakeKind::Resumed), "{version:?}");
    }
}

/// A client's memory that gives the session of any name for any name.
#[derive(Debug)]
struct Forgetful(ClientSessionMemoryCache);

impl ClientSessionStore for Forgetful {
    fn set_kx_hint(&self, _name: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _name: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(same_name(), value);
    }

    fn tls12_session(&self, _name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&same_name())
    }

    fn remove_tls12_session(&self, _name: &ServerName<'static>) {
        self.0.remove_tls12_session(&same_name());
    }

    fn insert_tls13_ticket(&self, _name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(same_name(), value);
    }

    fn take_tls13_ticket(&self, _name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&same_name())
    }
}

fn same_name() -> ServerName<'static> {
    ServerName::try_from("same.example").expect("a name")
}

#[test]
fn session_of_one_site_does_not_open_another() {
    for version in [Version::Tls12, Version::Tls13] {
        let server = server(&only(version));
        let mut client = able_client();
        let memory = Forgetful(ClientSessionMemoryCache::new(8));
        client.resumption = ClientResumption::store(Arc::new(memory));
        let client = Arc::new(client);
        let kind_for = |name| {
            let (_, connection) = handshake(&client, &server, name).expect("a handshake");
            connection.handshake_kind()
        };

        kind_for("a.example");
        assert_eq!(kind_for("a.example"), Some(HandshakeKind::Resumed));
        assert_ne!(kind_for("b.example"), Some(HandshakeKind::Resumed), "{version:?}");
    }
}

#[test]
fn number_of_tickets_is_the_policys() {
    for tickets in [0, 1, 3] {
        let shared = resumption();
        let policy = Policy { tickets_per_handshake: tickets, ..only(Version::Tls13) };
        let server = server_config(&policy, identities(), &shared).expect("a configuration");
        let memory = Arc::new(Forgetful(ClientSessionMemoryCache::new(8)));
        let mut client = able_client();
        client.resumption = ClientResumption::store(memory.clone());
        handshake(&Arc::new(client), &server, "a.example").expect("a handshake");
        let received = std::iter::from_fn(|| memory.take_tls13_ticket(&same_name()));
        assert_eq!(received.count(), tickets);
    }
}

#[test]
fn record_keys_can_be_taken_out() {
    let connection = connect(able_client(), &Policy::default());
    assert!(connection.dangerous_extract_secrets().is_ok());
}

#[test]
fn early_data_is_not_accepted() {
    assert_eq!(server(&Policy::default()).max_early_data_size, 0);
}

#[test]
fn empty_and_contradictory_policies_are_refused() {
    let good = Policy::default();
    let hybrid = vec![Group::X25519MlKem768];
    for (policy, words) in [
        (Policy { versions: vec![], ..good.clone() }, "no TLS version is enabled"),
        (Policy { suites: vec![], ..good.clone() }, "no cipher suite is enabled"),
        (Policy { groups: vec![], ..good.clone() }, "no key exchange group is enabled"),
        (Policy { groups: hybrid.clone(), ..good }, "x25519mlkem768 exists in TLS 1.3 only"),
    ] {
        let refused = server_config(&policy, identities(), &resumption()).map(|_| ());
        let said = refused.expect_err("a refusal").to_string();
        assert!(said.contains(words), "{said}");
    }
    let tls13 = Policy { groups: hybrid, ..only(Version::Tls13) };
    assert!(server_config(&tls13, identities(), &resumption()).is_ok());
}
