//! A TLS client that keeps what it received, as it stood on the wire. It offers exactly what a test tells it to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, KeyLog, SignatureScheme,
    SupportedProtocolVersion, version,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, ServerName};
use socket2::{Domain, SockFilter, SockRef, Socket, Type};

use crate::certificate::{Issued, roots};
use crate::environment::{patience, wait_until};
use crate::http::Connection;
use crate::record::{Record, records};
use crate::suite::Suite;

/// The offer of a client, and the sessions it remembers.
#[derive(Clone)]
pub struct Dialer {
    versions: Vec<&'static SupportedProtocolVersion>,
    suite: Option<Suite>,
    groups: Vec<&'static dyn SupportedKxGroup>,
    signature_scheme: Option<SignatureScheme>,
    alpn: Vec<Vec<u8>>,
    server_name: String,
    key_log: Option<Arc<dyn KeyLog>>,
    receive_buffer_bytes: Option<usize>,
    segment_bytes: Option<u32>,
    resumption: Resumption,
    certificate: Option<Issued>,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Default for Dialer {
    fn default() -> Self {
        Self {
            versions: vec![&version::TLS13, &version::TLS12],
            suite: None,
            // The cheapest of all.
            groups: vec![kx_group::X25519],
            signature_scheme: None,
            alpn: Vec::new(),
            server_name: "localhost".to_owned(),
            key_log: None,
            receive_buffer_bytes: None,
            segment_bytes: None,
            resumption: Resumption::disabled(),
            certificate: None,
            config: OnceLock::new(),
        }
    }
}

impl Dialer {
    /// Offers only this suite.
    pub fn suite(suite: Suite) -> Self {
        Self { versions: vec![suite.version], suite: Some(suite), ..Self::default() }
    }

    /// Offers these groups.
    #[must_use]
    pub fn groups(self, groups: &[&'static dyn SupportedKxGroup]) -> Self {
        Self { groups: groups.to_vec(), ..self }
    }

    /// Lets the server sign its handshake only in this way; certificates may be signed in any.
    #[must_use]
    pub fn handshake_signature(self, scheme: SignatureScheme) -> Self {
        Self { signature_scheme: Some(scheme), ..self }
    }

    /// Offers these protocols.
    #[must_use]
    pub fn alpn(self, protocols: &[&str]) -> Self {
        Self { alpn: protocols.iter().map(|name| name.as_bytes().to_vec()).collect(), ..self }
    }

    /// Asks for this name.
    #[must_use]
    pub fn server_name(self, name: &str) -> Self {
        Self { server_name: name.to_owned(), ..self }
    }

    /// Tells `log` the secrets.
    #[must_use]
    pub fn key_log(self, log: Arc<dyn KeyLog>) -> Self {
        Self { key_log: Some(log), ..self }
    }

    /// Takes in only little before somebody reads: the server soon has to wait.
    #[must_use]
    pub fn reading_slowly(self) -> Self {
        Self { receive_buffer_bytes: Some(SLOW_READERS_BUFFER_BYTES), ..self }
    }

    /// Takes segments of this size at most: the server's kernel keeps no more than a few of them for it.
    #[must_use]
    pub fn segments(self, bytes: u32) -> Self {
        Self { segment_bytes: Some(bytes), ..self }
    }

    /// Remembers sessions as `resumption` says.
    #[must_use]
    pub fn resuming(self, resumption: Resumption) -> Self {
        Self { resumption, ..self }
    }

    /// Shows this certificate where it is asked for one.
    #[must_use]
    pub fn certificate(self, certificate: Issued) -> Self {
        Self { certificate: Some(certificate), ..self }
    }

    /// Connects and finishes the handshake.
    #[must_use]
    pub fn connect(&self, address: SocketAddr) -> Client {
        self.try_connect(address).unwrap_or_else(|error| panic!("the handshake failed: {error}"))
    }

    /// Connects; the handshake may fail.
    pub fn try_connect(&self, address: SocketAddr) -> io::Result<Client> {
        let mut client = self.begin(address);
        while client.tls.is_handshaking() {
            client.tls.complete_io(&mut client.wire)?;
        }
        client.flush()?;
        Ok(client)
    }

    /// Connects, without a word of TLS so far.
    #[must_use]
    pub fn begin(&self, address: SocketAddr) -> Client {
        let config = self.config.get_or_init(|| self.make_config());
        let name = ServerName::try_from(self.server_name.clone()).unwrap();
        let tls = ClientConnection::new(Arc::clone(config), name).unwrap();
        let wire = Wire::dial(address, self.receive_buffer_bytes, self.segment_bytes);
        Client { tls, wire, beyond: Vec::new() }
    }

    fn make_config(&self) -> Arc<ClientConfig> {
        let mut provider = aws_lc_rs::default_provider();
        if let Some(suite) = self.suite {
            provider.cipher_suites = vec![suite.supported];
        }
        provider.kx_groups.clone_from(&self.groups);
        if let Some(wanted) = self.signature_scheme {
            let known = provider.signature_verification_algorithms.mapping.iter();
            let chosen: Vec<_> = known.filter(|(scheme, _)| *scheme == wanted).copied().collect();
            provider.signature_verification_algorithms.mapping = chosen.leak();
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&self.versions)
            .unwrap();
        let builder = builder.with_root_certificates(roots());
        let mut config = match &self.certificate {
            Some(Issued { der, key, .. }) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![der.clone()], key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols.clone_from(&self.alpn);
        config.resumption = self.resumption.clone();
        if let Some(log) = &self.key_log {
            config.key_log = Arc::clone(log);
        }
        Arc::new(config)
    }
}

/// A TLS connection to the server.
pub struct Client {
    /// The client's TLS.
    pub tls: ClientConnection,
    /// The socket, and what came from it.
    pub wire: Wire,
    beyond: Vec<u8>,
}

/// The way the server ended a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With close_notify.
    Orderly,
    /// Without: what was received may not be all.
    Cut,
    /// With a fatal alert.
    Alert(AlertDescription),
    /// Not at all, for as long as one can wait.
    Open,
}

impl Client {
    /// Asks for a new key in both directions with a KeyUpdate that requests one in return.
    pub fn update_keys(&mut self) {
        self.tls.refresh_traffic_keys().unwrap();
        self.flush().unwrap();
    }

    /// Finishes a handshake that has only begun, and sends `plaintext` in one write with the last message of it.
    pub fn finish_handshake_with(&mut self, plaintext: &[u8]) {
        self.finish_handshake_and(plaintext, |_| {});
    }

    /// As [`finish_handshake_with`](Self::finish_handshake_with), with what `more` sends behind that in the same write.
    pub fn finish_handshake_and(
        &mut self,
        plaintext: &[u8],
        more: impl FnOnce(&mut ClientConnection),
    ) {
        self.tls.writer().write_all(plaintext).unwrap();
        let mut more = Some(more);
        while self.tls.is_handshaking() || self.tls.wants_write() {
            if !self.tls.is_handshaking()
                && let Some(more) = more.take()
            {
                more(&mut self.tls);
            }
            let flight = self.flight();
            self.wire.write_all(&flight).unwrap();
            if self.tls.is_handshaking() {
                self.receive_handshake();
            }
        }
    }

    /// Sends the last flight of a TLS 1.2 handshake with bytes behind it in the same write, made from all that was received.
    /// The server's answer is not read.
    pub fn finish_handshake_and_bytes(&mut self, behind: impl FnOnce(&[u8]) -> Vec<u8>) {
        let mut behind = Some(behind);
        loop {
            let mut flight = self.flight();
            let has_finished = flight.windows(6).any(|window| window == CHANGE_CIPHER_SPEC_RECORD);
            if has_finished && let Some(behind) = behind.take() {
                flight.extend(behind(&self.wire.received));
            }
            self.wire.write_all(&flight).unwrap();
            if has_finished {
                return;
            }
            self.receive_handshake();
        }
    }

    /// The hello of a handshake that has not begun yet, which is not sent.
    pub fn hello(&mut self) -> Vec<u8> {
        self.flight()
    }

    fn flight(&mut self) -> Vec<u8> {
        let mut flight = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut flight).unwrap();
        }
        flight
    }

    /// Receives a part of the handshake.
    pub fn receive_handshake(&mut self) {
        self.tls.read_tls(&mut self.wire).unwrap();
        self.tls.process_new_packets().unwrap();
    }

    /// Says close_notify, and leaves the socket as it is.
    pub fn say_goodbye(&mut self) {
        self.tls.send_close_notify();
        self.flush().unwrap();
    }

    /// Says that nothing more will be sent, and closes that direction.
    pub fn close_sending(&mut self) {
        self.say_goodbye();
        self.wire.socket.shutdown(Shutdown::Write).unwrap();
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.wire)?;
        }
        Ok(())
    }

    /// Reads to the end of the connection, which leaves what was received in `beyond`.
    pub fn end(&mut self) -> End {
        let mut room = vec![0; 65_536];
        loop {
            match self.receive(&mut room) {
                Ok(0) => return End::Orderly,
                Ok(count) => self.beyond.extend_from_slice(&room[..count]),
                Err(error) => return end_of(&error),
            }
        }
    }

    /// The records received so far. Bytes that are no record fail the test.
    pub fn records(&self) -> Vec<Record> {
        records(&self.wire.received)
    }
}

/// Returns what an error while receiving says about how the server ended the connection.
pub fn end_of(error: &io::Error) -> End {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (inner, error.kind()) {
        (Some(rustls::Error::AlertReceived(alert)), _) => End::Alert(*alert),
        (None, io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => End::Cut,
        (None, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => End::Open,
        _ => panic!("the server's bytes make no sense: {error}"),
    }
}

impl Connection for Client {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = rustls::Stream::new(&mut self.tls, &mut self.wire);
        stream.write_all(bytes)?;
        stream.flush()
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        rustls::Stream::new(&mut self.tls, &mut self.wire).read(room)
    }

    fn beyond(&mut self) -> &mut Vec<u8> {
        &mut self.beyond
    }
}

/// "Return a constant" (linux/bpf_common.h): so many bytes of a packet are kept.
const BPF_RET: u16 = 6;

const SLOW_READERS_BUFFER_BYTES: usize = 32 * 1024;

/// In TLS 1.2 the Finished follows it at once.
const CHANGE_CIPHER_SPEC_RECORD: [u8; 6] = [20, 3, 3, 0, 1, 1];

/// A TCP connection that keeps what it received.
pub struct Wire {
    /// The socket.
    pub socket: TcpStream,
    /// All that came from it.
    pub received: Vec<u8>,
    beyond: Vec<u8>,
}

impl Wire {
    /// Connects.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self::dial(address, None, None)
    }

    /// Connects, and takes in only little before somebody reads: the server soon has to wait.
    #[must_use]
    pub fn connect_reading_slowly(address: SocketAddr) -> Self {
        Self::dial(address, Some(SLOW_READERS_BUFFER_BYTES), None)
    }

    fn dial(address: SocketAddr, buffer_bytes: Option<usize>, segment_bytes: Option<u32>) -> Self {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        if let Some(bytes) = buffer_bytes {
            // The window is agreed on when the connection is made.
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        if let Some(bytes) = segment_bytes {
            socket.set_tcp_mss(bytes).unwrap();
        }
        socket.connect_timeout(&address.into(), patience()).unwrap();
        let socket = TcpStream::from(socket);
        socket.set_read_timeout(Some(patience())).unwrap();
        socket.set_write_timeout(Some(patience())).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket, received: Vec::new(), beyond: Vec::new() }
    }

    /// Connects, says this, and returns all that comes back until the server closes its side.
    pub fn answer(address: SocketAddr, said: &[u8]) -> Vec<u8> {
        let mut wire = Self::connect(address);
        wire.write_all(said).unwrap();
        wire.read_to_end();
        wire.received
    }

    /// Resets the connection, as a client that crashed does.
    pub fn reset(self) {
        SockRef::from(&self.socket).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Loses the server, on this machine and by IPv4, once all that was sent has come: from now on nothing arrives here, and no
    /// word says so. A filter that takes no packet comes before TCP.
    pub fn lose(&self) {
        let client = self.socket.local_addr().unwrap().port();
        let server = self.socket.peer_addr().unwrap().port();
        wait_until("all has come", || tcp_queues(client, server).0 == "00000000");
        let return_nothing = SockFilter::new(BPF_RET, 0, 0, 0);
        SockRef::from(&self.socket).attach_filter(&[return_nothing]).unwrap();
    }

    /// The server, which has said its last word, still takes what the client sends. A reset could take that word from a
    /// client that has not read it yet.
    pub fn assert_not_reset(&mut self) {
        for _ in 0..3 {
            self.socket.write_all(&[0]).expect("the server reset the connection");
        }
        assert!(self.socket.take_error().unwrap().is_none(), "the server reset the connection");
    }

    /// Waits until the server, on this machine and by IPv4, has read all that was sent.
    pub fn wait_until_read(&self) {
        let client = self.socket.local_addr().unwrap().port();
        let server = self.socket.peer_addr().unwrap().port();
        // Bytes that have come are acknowledged, so that is looked at first (`tx_queue:rx_queue` in /proc/net/tcp).
        wait_until("it has come", || tcp_queues(client, server).0 == "00000000");
        wait_until("it is read", || tcp_queues(server, client).1 == "00000000");
    }

    /// True if the server, on this machine and by IPv4, reads within a moment all that was sent.
    pub fn is_soon_read(&self) -> bool {
        let client = self.socket.local_addr().unwrap().port();
        let server = self.socket.peer_addr().unwrap().port();
        let is_read = || {
            tcp_queues(client, server).0 == "00000000" && tcp_queues(server, client).1 == "00000000"
        };
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            if is_read() {
                return true;
            }
        }
        false
    }

    /// Reads until the server closes its side, cleanly or with a reset.
    pub fn read_to_end(&mut self) {
        let mut room = vec![0; 65_536];
        loop {
            match self.read(&mut room) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return,
                Err(error) => panic!("the connection does not end: {error}"),
            }
        }
    }
}

impl Read for Wire {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(room)?;
        self.received.extend_from_slice(&room[..count]);
        Ok(count)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Returns the send and receive queues of the end of a TCP connection that has the first port, in hexadecimal digits.
fn tcp_queues(here: u16, there: u16) -> (String, String) {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let here = format!(":{here:04X}");
    let there = format!(":{there:04X}");
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut ours = rows.filter(|row| row[1].ends_with(&here) && row[2].ends_with(&there));
    let (sent, received) = ours.next().unwrap()[4].split_once(':').unwrap();
    (sent.to_owned(), received.to_owned())
}

/// Plain HTTP, as the redirect listener and the metrics endpoint speak it.
impl Connection for Wire {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.read(room)
    }

    fn beyond(&mut self) -> &mut Vec<u8> {
        &mut self.beyond
    }
}
