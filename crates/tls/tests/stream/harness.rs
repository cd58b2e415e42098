//! A server stream on one side of a loopback connection, a rustls client on a thread on the other.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use kettle_kernel::probe::Capabilities;
use kettle_tls::stream::{Accepting, Filled, Handshaking, Stream, StreamError};
use kettle_tls::{Acceptor, Cipher, Version};
use rcgen::{CertifiedKey, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
};
use rustls_pki_types::{PrivatePkcs8KeyDer, ServerName};

/// Every pair that kettle offers.
pub const SUITES: [(Version, Cipher, CipherSuite); 6] = [
    (Version::Tls13, Cipher::Aes128Gcm, CipherSuite::TLS13_AES_128_GCM_SHA256),
    (Version::Tls13, Cipher::Aes256Gcm, CipherSuite::TLS13_AES_256_GCM_SHA384),
    (Version::Tls13, Cipher::Chacha20Poly1305, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    (Version::Tls12, Cipher::Aes128Gcm, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    (Version::Tls12, Cipher::Aes256Gcm, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    (
        Version::Tls12,
        Cipher::Chacha20Poly1305,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// The client's connection, with every byte it received kept for a look at the wire.
pub type Client = StreamOwned<ClientConnection, Recorded>;

/// Runs `client` on a thread and returns the established server stream.
pub async fn connect<T: Send + 'static>(
    suite: CipherSuite,
    client: impl FnOnce(&mut Client) -> T + Send + 'static,
) -> (Box<Stream>, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || client(&mut client_connection(address, suite)));
    (accept(&listener).await, thread)
}

/// The next connection, after its handshake.
pub async fn accept(listener: &TcpListener) -> Box<Stream> {
    accept_with(listener, &acceptor()).await
}

/// The next connection, before it.
pub fn accepted(listener: &TcpListener) -> tokio::net::TcpStream {
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    tokio::net::TcpStream::from_std(socket).unwrap()
}

/// Both ends of a TCP connection: ours, and the peer's.
pub fn sockets() -> (tokio::net::TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (accepted(&listener), peer)
}

pub async fn accept_with(listener: &TcpListener, acceptor: &Acceptor) -> Box<Stream> {
    let socket = accepted(listener);
    handshake(Accepting::begin(socket, &[], &acceptor.clone().into()).unwrap()).await.unwrap()
}

pub async fn handshake(mut accepting: Accepting) -> Result<Box<Stream>, StreamError> {
    loop {
        poll_fn(|context| accepting.poll_progress(context)).await?;
        match accepting.advance() {
            Handshaking::Continues(next) => accepting = next,
            Handshaking::Complete(stream) => return Ok(stream),
            Handshaking::PlainHttp(..) | Handshaking::Challenged(_) => panic!("no plain HTTP"),
            Handshaking::Failed(error, _) => return Err(error),
        }
    }
}

/// A client before its handshake.
pub fn client_connection(address: SocketAddr, suite: CipherSuite) -> Client {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    StreamOwned::new(client_of(suite), Recorded { socket, received: Arc::default() })
}

/// The same without a socket. It offers one suite only, so that the server has no choice.
pub fn client_of(suite: CipherSuite) -> ClientConnection {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|offered| offered.suite() == suite);
    let mut roots = RootCertStore::empty();
    roots.add(CERTIFIED.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(config.into(), name).unwrap()
}

/// The certificate of all servers here, which all clients trust.
static CERTIFIED: LazyLock<CertifiedKey<KeyPair>> =
    LazyLock::new(|| rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap());

pub fn acceptor() -> Acceptor {
    Acceptor::new(&server_config(), &[Version::Tls12, Version::Tls13])
}

/// A server that can do everything.
pub fn server_config() -> ServerConfig {
    let key = PrivatePkcs8KeyDer::from(CERTIFIED.signing_key.serialize_der());
    ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CERTIFIED.cert.der().clone()], key.into())
        .unwrap()
}

/// Receives until `wanted` bytes have come.
pub async fn receive(stream: &mut Stream, wanted: usize) -> Vec<u8> {
    while stream.received().bytes().len() < wanted {
        assert_eq!(fill(stream).await.unwrap(), Filled::Data);
    }
    let received = stream.received().bytes().to_vec();
    stream.consume(received.len());
    received
}

pub async fn fill(stream: &mut Stream) -> Result<Filled, StreamError> {
    poll_fn(|context| stream.poll_fill(context)).await
}

pub async fn flush(stream: &mut Stream) {
    poll_fn(|context| stream.poll_flush(context)).await.unwrap();
}

/// close_notify, and the end of our side.
pub async fn close(mut stream: Box<Stream>) {
    stream.queue_close_notify();
    poll_fn(|context| stream.poll_close(context)).await.unwrap();
}

/// Bytes that differ from record to record.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|position| (position * 31 + position / 256) as u8).collect()
}

/// Everything up to the close_notify; an error if the connection ends without one.
pub fn read_to_close_notify(client: &mut Client) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    client.read_to_end(&mut received)?;
    Ok(received)
}

/// A socket whose received bytes are kept.
pub struct Recorded {
    socket: TcpStream,
    pub received: Arc<Mutex<Vec<u8>>>,
}

impl Recorded {
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The records received so far: content type and body.
    pub fn records(&self) -> Vec<(u8, Vec<u8>)> {
        let received = self.received.lock().unwrap();
        let mut rest = received.as_slice();
        let mut records = Vec::new();
        while let [content_type, 3, _, high, low, after @ ..] = rest {
            let bytes = usize::from(*high) * 256 + usize::from(*low);
            records.push((*content_type, after[..bytes].to_vec()));
            rest = &after[bytes..];
        }
        assert!(rest.is_empty(), "what follows is no TLS record: {rest:02x?}");
        records
    }
}

impl Read for Recorded {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.socket.read(room)?;
        self.received.lock().unwrap().extend_from_slice(&room[..bytes]);
        Ok(bytes)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Tells whether this kernel carries kTLS; without it the test is skipped, or fails where a runner is
/// known to have it.
pub fn has_ktls() -> Option<Capabilities> {
    let capabilities = Capabilities::run();
    match capabilities.tx_reason() {
        Some(reason) => kettle_skip::skip_without_kernel_tls(reason),
        None => return Some(capabilities),
    }
    None
}

/// The time a test waits for the other side.
pub const PATIENCE: Duration = Duration::from_secs(20);
