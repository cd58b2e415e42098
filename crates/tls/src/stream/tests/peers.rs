//! A client that writes its records by hand, and the two servers it writes to: ours over a socket, rustls' in memory.

use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::{CipherSuite, Error, ExtractedSecrets, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::differential::Said;
use super::{advance_client, client_of, handshake_in_memory, server_of};
use crate::Version;
use crate::buffers::Queue;
use crate::control::Peer;
use crate::records::raw::RawSealer;
use crate::records::{ContentType, Keys, RecordOpener, whole_record_bytes};
use crate::stream::{Filled, Stream, StreamError};

/// The verdict of a server on what it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It waits for more.
    GoesOn,
    /// It took it for a close_notify.
    Closed,
    /// It took it for a fatal alert.
    PeerFailed,
    /// It ended the connection, with this alert if any.
    Failed(Option<u8>),
}

/// The outcome of one stream of records.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    /// Ours only: what the peer did.
    pub(super) what: &'static str,
    pub(super) data: Vec<u8>,
    /// True if the server changed its key before it sent data again.
    pub(super) has_updated: bool,
}

/// The client's keys after a handshake.
struct Client {
    version: Version,
    sealer: RawSealer,
    opener: RecordOpener,
    updater: KernelConnection<ClientConnectionData>,
}

impl Client {
    fn new(
        version: Version,
        secrets: &ExtractedSecrets,
        updater: KernelConnection<ClientConnectionData>,
    ) -> Self {
        let sending = Keys::new(version, secrets.tx.0, &secrets.tx.1).expect("a suite");
        let receiving = Keys::new(version, secrets.rx.0, &secrets.rx.1).expect("a suite");
        let opener = RecordOpener::new(&receiving).expect("a suite");
        Self { version, sealer: RawSealer::new(&sending), opener, updater }
    }

    fn write(&mut self, said: &[Said]) -> Vec<u8> {
        let mut wire = Vec::new();
        for said in said {
            match said {
                Said::Record { content_type, content, padding } => {
                    wire.extend(self.sealer.seal(*content_type, content, *padding));
                }
                Said::Damaged { content_type, content, bit } => {
                    let mut record = self.sealer.seal(*content_type, content, 0);
                    record[bit / 8] ^= 1 << (bit % 8);
                    wire.extend(record);
                }
                Said::Plain(bytes) => wire.extend(bytes),
                Said::NextKey if self.version == Version::Tls13 => {
                    let (sequence, secrets) = self.updater.update_tx_secret().expect("a key");
                    let keys = Keys::new(self.version, sequence, &secrets).expect("a suite");
                    self.sealer = RawSealer::new(&keys);
                }
                Said::NextKey => {}
            }
        }
        wire
    }

    /// The fatal alert that was received, and whether a KeyUpdate was.
    fn read(&mut self, mut wire: &[u8]) -> (Option<u8>, bool) {
        let mut alert = None;
        let mut has_updated = false;
        while let Some(bytes) = whole_record_bytes(wire).expect("a record") {
            let mut record = wire[..bytes].to_vec();
            wire = &wire[bytes..];
            let opened = self.opener.open(&mut record).expect("under the right key");
            match (opened.content_type, &record[opened.plaintext]) {
                (ContentType::Alert, &[2, description]) => alert = Some(description),
                (ContentType::Handshake, [24, ..]) => {
                    has_updated = true;
                    let (sequence, secrets) = self.updater.update_rx_secret().expect("a key");
                    let keys = Keys::new(self.version, sequence, &secrets).expect("a suite");
                    self.opener = RecordOpener::new(&keys).expect("a suite");
                }
                _ => {}
            }
        }
        assert!(wire.is_empty(), "half a record");
        (alert, has_updated)
    }
}

/// The whole way: through a socket, and what comes back.
pub(super) fn to_kettle(suite: CipherSuite, said: &[Said], pieces: &[usize]) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (mut established, secrets, updater) = handshake_in_memory(suite);
        let version = established.session.version;
        if version == Version::Tls12 {
            // The client has read it.
            established.outgoing.clear();
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("bound")).await;
        let socket = socket.expect("connected");
        socket.set_nodelay(true).expect("TCP");
        let (mut reading, mut writing) = socket.into_split();
        let (accepted, _) = listener.accept().await.expect("a connection");
        let mut stream = Stream::new(accepted, established, Peer::Client);
        let mut client = Client::new(version, &secrets, updater);
        let wire = client.write(said);
        let write = async {
            let mut rest = wire.as_slice();
            for &bytes in pieces {
                let (piece, behind) = rest.split_at(bytes.min(rest.len()));
                // The server may have given up before the end.
                let _ = writing.write_all(piece).await;
                rest = behind;
                // Until the server has read it.
                tokio::task::yield_now().await;
            }
            let _ = writing.write_all(rest).await;
            let _ = writing.shutdown().await;
        };
        let read = async {
            let mut wire = Vec::new();
            reading.read_to_end(&mut wire).await.map(|_| wire)
        };
        let (outcome, (), wire) = tokio::join!(serve(&mut stream), write, read);
        let (verdict, what, data) = outcome;
        // After a fatal alert there is nobody to read an answer.
        let (alert, has_updated) = match verdict {
            Verdict::PeerFailed => (None, false),
            _ => client.read(&wire.expect("an orderly end")),
        };
        if let Verdict::Failed(noted) = verdict {
            assert_eq!(noted, alert, "the alert on the wire");
        }
        Outcome { verdict, what, data, has_updated }
    })
}

async fn serve(stream: &mut Stream) -> (Verdict, &'static str, Vec<u8>) {
    let mut data = Vec::new();
    let (verdict, what) = loop {
        let filled = poll_fn(|context| stream.poll_fill(context)).await;
        data.extend(stream.received().bytes());
        stream.consume(stream.received().bytes().len());
        match filled {
            Ok(Filled::Data) => {}
            Ok(Filled::Truncated) => break (Verdict::GoesOn, ""),
            Ok(Filled::Closed) => break (Verdict::Closed, ""),
            Err(StreamError::Violation(what)) => {
                break (Verdict::Failed(Some(what.alert.0)), what.what);
            }
            Err(StreamError::AlertReceived(_)) => break (Verdict::PeerFailed, ""),
            Err(error) => panic!("{error}"),
        }
    };
    match verdict {
        Verdict::GoesOn => stream.seal(&[b"done"]).expect("sealed"),
        Verdict::PeerFailed => stream.cut(),
        _ => {}
    }
    poll_fn(|context| stream.poll_close(context)).await.expect("closed");
    // One call takes no flood to its end, and a reset would take the alert with it.
    while let Ok(false) = poll_fn(|context| stream.poll_drain(context)).await {}
    (verdict, what, data)
}

pub(super) fn to_rustls(suite: CipherSuite, said: &[Said]) -> Outcome {
    let (mut server, secrets, updater) = rustls_in_memory(suite);
    let version =
        if suite.as_str().unwrap().starts_with("TLS13") { Version::Tls13 } else { Version::Tls12 };
    let mut client = Client::new(version, &secrets, updater);
    let wire = client.write(said);
    let mut rest = wire.as_slice();
    let mut data = Vec::new();
    let mut answer = Vec::new();
    let mut outcome = Ok(());
    let mut is_closed = false;
    while !rest.is_empty() && outcome.is_ok() && server.wants_read() {
        server.read_tls(&mut rest).expect("room");
        outcome = server.process_new_packets().map(|state| is_closed = state.peer_has_closed());
        match server.reader().read_to_end(&mut data) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            _ => {}
        }
    }
    if outcome.is_ok() {
        server.writer().write_all(b"done").expect("memory");
    }
    while server.wants_write() {
        server.write_tls(&mut answer).expect("memory");
    }
    let (alert, has_updated) = client.read(&answer);
    let verdict = match (outcome, alert) {
        (Ok(()), None) if is_closed => Verdict::Closed,
        (Ok(()), None) => Verdict::GoesOn,
        (Err(Error::AlertReceived(_)), None) => Verdict::PeerFailed,
        (_, alert) => Verdict::Failed(alert),
    };
    Outcome { verdict, what: "", data, has_updated }
}

fn rustls_in_memory(
    suite: CipherSuite,
) -> (ServerConnection, ExtractedSecrets, KernelConnection<ClientConnectionData>) {
    let mut server = ServerConnection::new(server_of()).expect("new");
    let mut client: UnbufferedClientConnection = client_of(suite);
    let mut to_client = Vec::new();
    let mut to_server = Queue::default();
    loop {
        let is_done = advance_client(&mut client, &mut to_client, &mut to_server);
        server.read_tls(&mut to_server.filled()).expect("memory");
        to_server.clear();
        server.process_new_packets().expect("an honest client");
        while !is_done && server.wants_write() {
            server.write_tls(&mut to_client).expect("memory");
        }
        if !server.is_handshaking() {
            if !is_done {
                advance_client(&mut client, &mut to_client, &mut to_server);
            }
            let (secrets, updater) = client.dangerous_into_kernel_connection().expect("complete");
            return (server, secrets, updater);
        }
    }
}
