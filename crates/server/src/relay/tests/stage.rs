//! A tunnel and the two peers at its ends.

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kettle_config::{Truncation, TunnelPathChoice};
use kettle_kernel::probe::Capabilities;
use kettle_runtime::offloads::Offloads;
use kettle_runtime::pipes::Pipes;
use kettle_runtime::tx_path::Flow;
use kettle_tls::connector::{Connector, ConnectorSettings, ResumeBy, Trust};
use kettle_tls::identity::Identities;
use kettle_tls::policy::{Group, Policy};
use kettle_tls::stream::{Accepting, Handshaking, Stream};
use kettle_tls::tickets::SharedResumption;
use kettle_tls::{Acceptor, Acceptors, Cipher, SiteGroup, Version, self_signed};
use kettle_upstream::backend::Socket;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use crate::relay::{Relay, RelaySettings, Side, TunnelEnd};

/// The protocol of an end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tls13,
    Tls12,
    Tcp,
    Unix,
}

pub(crate) use Kind::{Tcp, Tls12, Tls13, Unix};

/// The far end of one of the tunnel's connections.
pub(crate) enum Peer {
    Tls(Box<Stream>),
    Tcp(TcpStream),
    Unix(UnixStream),
}

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// The way a connection ended, as its peer saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// With close_notify, or FIN without TLS.
    Closed,
    /// With FIN and without close_notify.
    Cut,
    Reset,
    /// With a fatal alert.
    Alerted,
}

/// The end of a tunnel.
pub(super) struct Ended {
    pub(super) end: TunnelEnd,
    pub(super) flows: [Flow; 2],
    pub(super) pipes_in_use: usize,
}

/// The setup of a tunnel.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(super) client: Kind,
    pub(super) backend: Kind,
    pub(super) received: Vec<u8>,
    pub(super) settings: RelaySettings,
}

impl Setup {
    pub(crate) fn new(client: Kind, backend: Kind) -> Self {
        let settings = RelaySettings {
            path: TunnelPathChoice::User,
            crossover: 0,
            truncation: Truncation::Fin,
        };
        Self { client, backend, received: Vec::new(), settings }
    }

    /// The tunnel, not yet under way, and its peers.
    pub(crate) async fn build(self) -> (Relay, Rc<Pipes>, Peer, Peer) {
        let (client, client_peer) = connection(self.client, true).await;
        let (backend, backend_peer) = connection(self.backend, false).await;
        let pipes = Rc::new(Pipes::default());
        let offloads = Rc::new(offloads());
        let relay = Relay::new(
            client,
            backend,
            [self.received, Vec::new()],
            &self.settings,
            &pipes,
            &offloads,
        );
        (relay, pipes, client_peer, backend_peer)
    }

    /// The peers, and the tunnel under way.
    pub(super) async fn open(self) -> (Peer, Peer, JoinHandle<Ended>) {
        let (mut relay, pipes, client, backend) = self.build().await;
        let tunnel = spawn_local(async move {
            let end = poll_fn(|context| relay.poll(context)).await;
            poll_fn(|context| relay.poll_linger(context)).await;
            Ended { end, flows: relay.flows(), pipes_in_use: pipes.in_use() }
        });
        (client, backend, tunnel)
    }
}

/// Runs a test where tunnels can live.
pub(crate) async fn locally<F: Future>(test: F) -> F::Output {
    let tasks = LocalSet::new();
    tokio::time::timeout(TEST_TIMEOUT, tasks.run_until(test)).await.expect("in time")
}

/// Nothing takes as long, but for a tunnel that hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|position| (position * 31 + position / 251) as u8).collect()
}

pub(crate) fn offloads() -> Offloads {
    Offloads::new(capabilities(), Arc::default(), Arc::default())
}

pub(super) fn capabilities() -> Arc<Capabilities> {
    static PROBED: OnceLock<Arc<Capabilities>> = OnceLock::new();
    Arc::clone(PROBED.get_or_init(|| Arc::new(Capabilities::run())))
}

pub(super) async fn connection(kind: Kind, is_accepted: bool) -> (Side, Peer) {
    if kind == Unix {
        let (near, far) = UnixStream::pair().expect("a pair");
        return (Socket::Unix(near).into(), Peer::Unix(far));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (connected, (accepted, _)) = (connected.expect("connected"), accepted.expect("accepted"));
    let version = match kind {
        Tls13 => Version::Tls13,
        Tls12 => Version::Tls12,
        Tcp | Unix => return (accepted.into(), Peer::Tcp(connected)),
    };
    let (connected, accepted) = tokio::join!(connect(connected, version), accept(accepted));
    match is_accepted {
        true => (accepted.into(), Peer::Tls(connected)),
        false => (connected.into(), Peer::Tls(accepted)),
    }
}

/// A connection with TLS: the side that connected, and the one that accepted.
pub(crate) async fn tls_pair(kind: Kind) -> (Box<Stream>, Box<Stream>) {
    let (side, peer) = connection(kind, false).await;
    match (side, peer) {
        (Side::Tls(near), Peer::Tls(far)) => (near, far),
        _ => panic!("{kind:?} has no TLS"),
    }
}

async fn connect(socket: TcpStream, version: Version) -> Box<Stream> {
    #[expect(clippy::disallowed_methods, reason = "it is the server beside it")]
    let trust = Trust::dangerous_anyone();
    let resume_by = ResumeBy::Nothing;
    let name = Some("localhost");
    let settings = ConnectorSettings { trust, name, identity: None, alpn: &[], resume_by };
    let policy = Policy {
        versions: vec![version],
        suites: vec![Cipher::Aes128Gcm],
        groups: vec![Group::X25519],
        ..Policy::default()
    };
    let connector = Connector::new(&policy, settings).expect("an offer");
    Stream::connect(socket, &connector).await.expect("a handshake")
}

async fn accept(socket: TcpStream) -> Box<Stream> {
    let mut accepting = Accepting::begin(socket, &[], &acceptors()).expect("begun");
    loop {
        poll_fn(|context| accepting.poll_progress(context)).await.expect("exchanged");
        match accepting.advance() {
            Handshaking::Continues(next) => accepting = next,
            Handshaking::Complete(mut stream) => {
                // In TLS 1.2 the server has the last word.
                poll_fn(|context| stream.poll_flush(context)).await.expect("flushed");
                return stream;
            }
            Handshaking::Failed(error, _) => panic!("{error}"),
            Handshaking::PlainHttp(..) | Handshaking::Challenged(_) => panic!("no TLS"),
        }
    }
}

pub(super) fn acceptors() -> Acceptors {
    let identity = self_signed::generate_in_memory(&["localhost".to_owned()]).expect("made");
    let mut identities = Identities::new();
    identities.add_site(&["localhost".to_owned()], true, vec![Arc::new(identity)]);
    let resumption = SharedResumption::new(Duration::from_secs(3_600), 64).expect("a key");
    let group = SiteGroup::default();
    let policy = Policy::default();
    Acceptor::for_group(&policy, identities.into(), &resumption, &group).expect("valid").into()
}

impl Peer {
    pub(super) fn stream(&mut self) -> &mut dyn Duplex {
        match self {
            Self::Tls(stream) => &mut **stream,
            Self::Tcp(socket) => socket,
            Self::Unix(socket) => socket,
        }
    }

    pub(super) fn into_stream(self) -> Box<dyn Duplex> {
        match self {
            Self::Tls(stream) => stream,
            Self::Tcp(socket) => Box::new(socket),
            Self::Unix(socket) => Box::new(socket),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream().write_all(bytes).await.expect("sent");
        self.stream().flush().await.expect("sent");
    }

    /// Ends its side as it should.
    pub(crate) async fn close(&mut self) {
        self.stream().shutdown().await.expect("ended");
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tls(stream) => stream.socket(),
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }

    /// FIN, without a close_notify where there is TLS.
    pub(super) fn cut(&self) {
        kettle_kernel::socket::shutdown_write(self.fd()).expect("ended");
    }

    pub(super) fn reset(self) {
        kettle_kernel::socket::reset_on_close(self.fd()).expect("set");
    }

    pub(crate) async fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut received = vec![0; bytes];
        self.stream().read_exact(&mut received).await.expect("as many bytes");
        received
    }

    /// Returns the bytes until the end, and how it ends.
    pub(crate) async fn rest(&mut self) -> (Vec<u8>, Seen) {
        rest(self.stream()).await
    }
}

pub(super) async fn rest(stream: &mut (impl AsyncRead + Unpin + ?Sized)) -> (Vec<u8>, Seen) {
    let mut received = Vec::new();
    let seen = match stream.read_to_end(&mut received).await {
        Ok(_) => Seen::Closed,
        Err(error) => match error.kind() {
            ErrorKind::UnexpectedEof => Seen::Cut,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Seen::Reset,
            ErrorKind::ConnectionAborted => Seen::Alerted,
            _ => panic!("{error}"),
        },
    };
    (received, seen)
}
