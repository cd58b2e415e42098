//! Clients and servers of ours over loopback.

mod agreement;
mod alerts;
mod openssl;
mod sessions;
mod trust;
mod wire;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use kettle_kernel::ktls::Version;
use rcgen::{CertificateParams, KeyPair};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::acceptors::{Acceptor, Acceptors};
use crate::policy::SiteGroup;
use crate::stream::{Accepting, Filled, Handshaking, Stream, StreamError};
use crate::test_identity::{Authority, Files, only, parameters, resumption, site_of};
use crate::tickets::SharedResumption;
use crate::trust::Roots;

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

type Outcome = Result<Box<Stream>, StreamError>;

/// A certificate that is good for a hundred years.
fn lasting(names: &[&str]) -> CertificateParams {
    let mut parameters = parameters(names);
    parameters.not_after = rcgen::date_time_ymd(2126, 1, 1);
    parameters
}

fn signed(authority: &Authority, parameters: &CertificateParams) -> Arc<Identity> {
    signed_with(authority, parameters, &rcgen::PKCS_ECDSA_P256_SHA256)
}

/// The same with a key of this algorithm.
fn signed_with(
    authority: &Authority,
    parameters: &CertificateParams,
    algorithm: &'static rcgen::SignatureAlgorithm,
) -> Arc<Identity> {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let chain = authority.sign(parameters, &key);
    Identity::from_pem(&chain, &key.serialize_pem()).expect("an identity").into()
}

fn self_signed(parameters: &CertificateParams) -> Arc<Identity> {
    let key = KeyPair::generate().expect("a key");
    let chain = parameters.self_signed(&key).expect("a certificate").pem();
    Identity::from_pem(&chain, &key.serialize_pem()).expect("an identity").into()
}

fn pin_of(identity: &Identity) -> Pin {
    let peer = crate::PeerIdentity::of(&identity.certified().cert).expect("a certificate");
    Pin(peer.spki_sha256)
}

fn roots(authority: &Authority) -> Roots {
    Roots::load(&Files::new().write("roots.pem", authority.own_pem()), None).expect("roots").0
}

/// Returns the connector that most tests here want: `a.example`, vouched for by this authority.
fn trusting(authority: &Authority) -> ConnectorSettings<'static> {
    with_trust(Trust::roots(roots(authority)), Some("a.example"))
}

fn with_trust(trust: Trust, name: Option<&'static str>) -> ConnectorSettings<'static> {
    ConnectorSettings { trust, name, identity: None, alpn: &[], resume_by: ResumeBy::Ticket }
}

fn connector(policy: &Policy, settings: ConnectorSettings<'_>) -> Connector {
    Connector::new(policy, settings).expect("a connector")
}

fn acceptors(policy: &Policy, identity: &Arc<Identity>, group: &SiteGroup<'_>) -> Acceptors {
    acceptors_for(policy, identity, &resumption(), group)
}

fn acceptors_for(
    policy: &Policy,
    identity: &Arc<Identity>,
    resumption: &SharedResumption,
    group: &SiteGroup<'_>,
) -> Acceptors {
    let site = site_of(vec![Arc::clone(identity)]);
    Acceptor::for_group(policy, site, resumption, group).expect("valid").into()
}

/// A server that asks for nothing in particular.
fn serving(identity: &Arc<Identity>) -> Acceptors {
    acceptors(&Policy::default(), identity, &SiteGroup::default())
}

/// An authority, and the certificate for `a.example` that it signed.
fn vouched() -> (Authority, Arc<Identity>) {
    let authority = Authority::new("ca.example");
    let identity = signed(&authority, &lasting(&["a.example"]));
    (authority, identity)
}

/// The same authority, and a server with that certificate.
fn pair() -> (Authority, Acceptors) {
    let (authority, identity) = vouched();
    (authority, serving(&identity))
}

/// Both ends of a connection over loopback.
async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.expect("a connection"), server.expect("a connection").0)
}

async fn accept(socket: TcpStream, acceptors: &Acceptors) -> Outcome {
    let mut accepting = Accepting::begin(socket, &[], acceptors)?;
    loop {
        poll_fn(|context| accepting.poll_progress(context)).await?;
        match accepting.advance() {
            Handshaking::Continues(next) => accepting = next,
            Handshaking::Complete(mut stream) => {
                poll_fn(|context| stream.poll_flush(context)).await?;
                return Ok(stream);
            }
            Handshaking::PlainHttp(..) | Handshaking::Challenged(_) => panic!("no plain HTTP"),
            Handshaking::Failed(error, mut closing) => {
                poll_fn(|context| closing.poll_close(context)).await?;
                return Err(error);
            }
        }
    }
}

/// Returns the streams of both sides: the client's, then the server's.
async fn meet(connector: &Connector, acceptors: &Acceptors) -> (Outcome, Outcome) {
    let (client, server) = sockets().await;
    tokio::join!(Stream::connect(client, connector), accept(server, acceptors))
}

async fn connect(connector: &Connector, acceptors: &Acceptors) -> (Box<Stream>, Box<Stream>) {
    let (client, server) = meet(connector, acceptors).await;
    (client.expect("a client"), server.expect("a server"))
}

/// Why the client failed.
async fn refusal(connector: &Connector, acceptors: &Acceptors) -> StreamError {
    meet(connector, acceptors).await.0.err().expect("a failure")
}

/// Checks that the words of one side arrive at the other.
async fn say(from: &mut Stream, to: &mut Stream, word: &[u8]) {
    from.seal(&[word]).expect("a record");
    poll_fn(|context| from.poll_flush(context)).await.expect("room");
    while to.received().bytes().len() < word.len() {
        assert_eq!(fill(to).await.expect("a record"), Filled::Data);
    }
    assert_eq!(to.received().bytes(), word);
    to.consume(word.len());
}

async fn fill(stream: &mut Stream) -> Result<Filled, StreamError> {
    poll_fn(|context| stream.poll_fill(context)).await
}

/// Words both ways; the client takes its tickets with the server's.
async fn talk(client: &mut Stream, server: &mut Stream) {
    say(client, server, b"ping").await;
    say(server, client, b"pong").await;
}
