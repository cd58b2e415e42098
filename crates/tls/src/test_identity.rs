//! Certificates, files and in-memory handshakes for the unit tests of this crate.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_kernel::ktls::Version;
use rcgen::{
    CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, PKCS_ECDSA_P256_SHA256, RevokedCertParams, SerialNumber,
    SignatureAlgorithm,
};
use rustls::client::{Resumption as ClientResumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, Error, ServerConfig, ServerConnection,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};

use crate::acceptors::{Acceptor, Acceptors};
use crate::connector::trust::TrustsAnyone;
use crate::handshake::{Established, Handshake, HandshakeError, Step};
use crate::identity::{Identities, Identity};
use crate::policy::{Policy, SiteGroup};
use crate::session::Resumption;
use crate::tickets::SharedResumption;

/// The moment at which the tests judge: 2026-06-01 00:00 UTC.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_780_272_000)
}

/// A certificate request for 2026, named after its first host.
pub(crate) fn parameters(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names.clone()).expect("valid names");
    parameters.distinguished_name = DistinguishedName::new();
    let common_name = names.first().map_or("nameless", String::as_str);
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2027, 1, 1);
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters
}

/// A certificate authority that signs leaves.
pub(crate) struct Authority {
    parameters: CertificateParams,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut parameters = parameters(&[name]);
        parameters.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.key_usages =
            vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        Self { parameters, key: KeyPair::generate().expect("a key") }
    }

    pub(crate) fn own_pem(&self) -> String {
        self.parameters.self_signed(&self.key).expect("a certificate").pem()
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    pub(crate) fn sign(&self, parameters: &CertificateParams, key: &KeyPair) -> String {
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        parameters.signed_by(key, &issuer).expect("a certificate").pem()
    }

    /// A list of these serial numbers, good until the beginning of a year.
    pub(crate) fn revoke(&self, serials: &[u64], good_until: i32) -> String {
        self.list(serials, 2026, rcgen::date_time_ymd(good_until, 1, 1))
    }

    /// A list whose time is over.
    pub(crate) fn expired_list(&self) -> String {
        self.list(&[], 2026, rcgen::date_time_ymd(2026, 2, 1))
    }

    /// A list from before the others.
    pub(crate) fn superseded_list(&self, good_until: i32) -> String {
        self.list(&[], 2025, rcgen::date_time_ymd(good_until, 1, 1))
    }

    fn list(&self, serials: &[u64], since: i32, next_update: time::OffsetDateTime) -> String {
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        let revoked = |&serial: &u64| RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: rcgen::date_time_ymd(2026, 2, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let parameters = CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(since, 1, 1),
            next_update,
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        parameters.signed_by(&issuer).expect("a list").pem().expect("PEM")
    }

    /// A chain of one certificate for a client, and its key.
    pub(crate) fn client(&self, parameters: &CertificateParams) -> ClientCertificate {
        self.client_with(parameters, &PKCS_ECDSA_P256_SHA256)
    }

    /// The same with a key of this algorithm.
    pub(crate) fn client_with(
        &self,
        parameters: &CertificateParams,
        algorithm: &'static SignatureAlgorithm,
    ) -> ClientCertificate {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        let certificate = parameters.signed_by(&key, &issuer).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        ClientCertificate { chain: vec![certificate.der().clone()], key: key.into() }
    }

    pub(crate) fn sign_authority(&self, other: &Self) -> String {
        self.sign(&other.parameters, &other.key)
    }
}

/// The certificate that a client shows.
pub(crate) struct ClientCertificate {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// A request for a client's certificate that is good for a hundred years.
pub(crate) fn client_parameters(name: &str, serial: u64) -> CertificateParams {
    let mut parameters = parameters(&[name]);
    parameters.subject_alt_names.clear();
    parameters.not_after = rcgen::date_time_ymd(2126, 1, 1);
    parameters.serial_number = Some(SerialNumber::from(serial));
    parameters.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    parameters
}

/// A directory that holds files of one test.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file that only its owner can read.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        path
    }
}

/// An identity for these names with a key of this algorithm, signed by itself.
pub(crate) fn identity(names: &[&str], algorithm: &'static SignatureAlgorithm) -> Arc<Identity> {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let certificate = parameters(names).self_signed(&key).expect("a certificate");
    let files = Files::new();
    let path = files.write("both.pem", certificate.pem() + &key.serialize_pem());
    let (identity, _) = Identity::load_at(&path, &path, None, now()).expect("an identity");
    Arc::new(identity)
}

/// A client that trusts everybody and verifies these schemes only.
pub(crate) fn client_config(provider: CryptoProvider, schemes: &[SignatureScheme]) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustsAnyone(schemes.to_vec())))
        .with_no_client_auth()
}

/// A client with everything that aws-lc-rs can do.
pub(crate) fn able_client() -> ClientConfig {
    let provider = aws_lc_rs::default_provider();
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    client_config(provider, &schemes)
}

/// Acceptors of one site, always the same.
pub(crate) fn acceptors() -> Acceptors {
    static ACCEPTORS: LazyLock<Acceptors> =
        LazyLock::new(|| acceptor_for(&resumption(), &SiteGroup::default()).into());
    ACCEPTORS.clone()
}

/// An acceptor with a certificate of its own for `a.example`.
pub(crate) fn acceptor_for(resumption: &SharedResumption, group: &SiteGroup<'_>) -> Acceptor {
    acceptor_with(&Policy::default(), resumption, group)
}

pub(crate) fn acceptor_with(
    policy: &Policy,
    resumption: &SharedResumption,
    group: &SiteGroup<'_>,
) -> Acceptor {
    Acceptor::for_group(policy, own_site(), resumption, group).expect("valid")
}

/// Sessions of an hour, under keys of their own.
pub(crate) fn resumption() -> SharedResumption {
    SharedResumption::new(Duration::from_secs(3600), 64).expect("a key")
}

/// One site, `a.example`, with these certificates.
pub(crate) fn site_of(certificates: Vec<Arc<Identity>>) -> Arc<Identities> {
    let mut identities = Identities::new();
    identities.add_site(&["a.example".to_owned()], true, certificates);
    identities.into()
}

/// That site with a certificate of its own.
pub(crate) fn own_site() -> Arc<Identities> {
    site_of(vec![identity(&["a.example"], &PKCS_ECDSA_P256_SHA256)])
}

pub(crate) fn only(version: Version) -> Policy {
    Policy { versions: vec![version], ..Policy::default() }
}

/// A way to resume: the version, what the client keeps, and how the session goes on.
pub(crate) type Means = (Version, Tls12Resumption, Resumption);

pub(crate) const ALL_MEANS: [Means; 3] = [
    (Version::Tls13, Tls12Resumption::Disabled, Resumption::Ticket),
    (Version::Tls12, Tls12Resumption::SessionIdOrTickets, Resumption::Ticket),
    (Version::Tls12, Tls12Resumption::SessionIdOnly, Resumption::SessionId),
];

/// The same client with a memory of sessions that keeps this of TLS 1.2.
pub(crate) fn remembering(mut config: ClientConfig, kept: Tls12Resumption) -> Arc<ClientConfig> {
    config.resumption = ClientResumption::in_memory_sessions(64).tls12_resumption(kept);
    Arc::new(config)
}

/// The connections of both sides after a handshake in memory, with the tickets behind it.
pub(crate) struct Connected {
    pub(crate) server: Box<Established>,
    pub(crate) client: ClientConnection,
}

/// Why there is no connection, for either side.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) server: HandshakeError,
    pub(crate) client: Option<AlertDescription>,
}

/// Runs a handshake against our own side of it. The bytes that the client sends arrive cut as `cut` says.
pub(crate) fn accept_in_pieces(
    client: ClientConnection,
    acceptors: &Acceptors,
    cut: impl Fn(Vec<u8>) -> Vec<Vec<u8>>,
) -> Result<Connected, Refused> {
    let mut client = client;
    let mut server = Box::new(Handshake::new(acceptors).expect("a handshake"));
    loop {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("memory");
        }
        assert!(!wire.is_empty(), "the handshake stands still");
        let mut pieces = cut(wire).into_iter();
        while let Some(piece) = pieces.next() {
            server.feed.append(&piece);
            server = match server.advance() {
                Step::Blocked(mut next) => {
                    show(&mut client, next.outgoing.filled()).expect("a good server");
                    next.outgoing.clear();
                    next
                }
                Step::Complete(mut server) => {
                    show(&mut client, server.outgoing.filled()).expect("a good server");
                    assert!(!client.is_handshaking());
                    pieces.for_each(|rest| server.incoming.append(&rest));
                    return Ok(Connected { server, client });
                }
                Step::PlainHttp(_) | Step::Challenged(_) => panic!("no plain HTTP"),
                Step::Failed(server, outgoing) => {
                    let client = match show(&mut client, outgoing.filled()) {
                        Err(Error::AlertReceived(alert)) => Some(alert),
                        Err(error) => panic!("{error}"),
                        Ok(()) => None,
                    };
                    return Err(Refused { server, client });
                }
            };
        }
    }
}

/// Runs a handshake against our own side of it.
pub(crate) fn accept(
    client: &Arc<ClientConfig>,
    name: &str,
    acceptors: &Acceptors,
) -> Result<Connected, Refused> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let client = ClientConnection::new(Arc::clone(client), name).expect("a client");
    accept_in_pieces(client, acceptors, |wire| vec![wire])
}

fn show(client: &mut ClientConnection, mut wire: &[u8]) -> Result<(), Error> {
    while !wire.is_empty() {
        client.read_tls(&mut wire).expect("memory");
        client.process_new_packets()?;
    }
    Ok(())
}

/// Runs a handshake in memory, with the tickets that follow it.
pub(crate) fn handshake(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<(ClientConnection, ServerConnection), Error> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::clone(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    for _ in 0..FLIGHTS_MAX {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("memory");
        }
        server.read_tls(&mut wire.as_slice()).expect("memory");
        let outcome = server.process_new_packets();

        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).expect("memory");
        }
        let mut wire = wire.as_slice();
        while !wire.is_empty() {
            client.read_tls(&mut wire).expect("memory");
            client.process_new_packets()?;
        }
        outcome?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok((client, server))
}

/// TLS 1.2 takes two round trips; a hello retry adds one; the last carries the tickets.
const FLIGHTS_MAX: usize = 4;
