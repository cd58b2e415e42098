//! The events at a key's limit (RFC 8446 §5.5), seen by a peer that opens records by hand: no
//! test could send the 2^24 records that lead there, so the connection starts shortly before it.

mod bytes;
mod differential;
mod errors;
mod exceptions;
mod failed;
mod kernel;
mod limits;
mod peers;
mod receive;
mod writer;

use std::future::poll_fn;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream as Peer};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kettle_kernel::ktls::{self, Version};
use kettle_kernel::pipe::Pipe;
use kettle_kernel::probe::Capabilities;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::crypto::aws_lc_rs;
use rustls::kernel::KernelConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{CipherSuite, ExtractedSecrets, ServerConfig};
use rustls_pki_types::ServerName;

use super::offload::RECORDS_RESERVED;
use super::writer::{KernelSending, Sending, SendingKey};
use super::*;
use crate::acceptors::Acceptor;
use crate::buffers::Queue;
use crate::control;
use crate::handshake::{Established, Handshake, Step};
use crate::policy::{Policy, server_config};
use crate::records::raw::RawSealer;
use crate::records::{AES_GCM_RECORDS_MAX, ContentType, Keys, RecordOpener, whole_record_bytes};
use crate::test_identity::{client_config, own_site, resumption};

const TLS13: CipherSuite = CipherSuite::TLS13_AES_128_GCM_SHA256;
const TLS12: CipherSuite = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;

/// A client that opens and seals records itself.
struct ByHand {
    socket: Peer,
    opener: RecordOpener,
    sealer: RawSealer,
    updater: KernelConnection<ClientConnectionData>,
    version: Version,
    received: Vec<u8>,
}

impl ByHand {
    /// The next record: its type and plaintext. Follows a KeyUpdate.
    fn next(&mut self) -> (ContentType, Vec<u8>) {
        let bytes = loop {
            if let Some(bytes) = whole_record_bytes(&self.received).expect("a record") {
                break bytes;
            }
            let mut room = [0; 4_096];
            let read = self.socket.read(&mut room).expect("bytes");
            assert!(read > 0, "the connection ended");
            self.received.extend_from_slice(&room[..read]);
        };
        let mut record: Vec<u8> = self.received.drain(..bytes).collect();
        let opened = self.opener.open(&mut record).expect("a record under the current key");
        let plaintext = record[opened.plaintext].to_vec();
        if opened.content_type == ContentType::Handshake && plaintext == [24, 0, 0, 1, 0] {
            let (sequence, secrets) = self.updater.update_rx_secret().expect("a next key");
            let keys = Keys::new(self.version, sequence, &secrets).expect("a suite");
            self.opener = RecordOpener::new(&keys).expect("a suite");
        }
        (opened.content_type, plaintext)
    }
}

/// A connection whose next record, from the server to the client, has this number.
fn connection_at(suite: CipherSuite, sequence: u64) -> (Stream, ByHand) {
    let (mut established, secrets, updater) = handshake_in_memory(suite);
    // Tickets would have to be opened under the numbers that are skipped.
    established.outgoing.clear();
    established.sealer.skip_records(sequence - established.sealer.sequence());
    let version = established.session.version;
    let keys = Keys::new(version, sequence, &secrets.rx.1).expect("a suite");
    let (socket, peer) = sockets();
    peer.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let opener = RecordOpener::new(&keys).expect("a suite");
    let sending = Keys::new(version, secrets.tx.0, &secrets.tx.1).expect("a suite");
    let sealer = RawSealer::new(&sending);
    let peer = ByHand { socket: peer, opener, sealer, updater, version, received: Vec::new() };
    (Stream::new(socket, established, control::Peer::Client), peer)
}

/// Both ends of a connection: ours, and the peer's.
fn sockets() -> (TcpStream, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = Peer::connect(listener.local_addr().expect("bound")).expect("a connection");
    let (socket, _) = listener.accept().expect("a connection");
    socket.set_nonblocking(true).expect("a mode");
    (TcpStream::from_std(socket).expect("a runtime"), peer)
}

pub(crate) fn handshake_in_memory(
    suite: CipherSuite,
) -> (Established, ExtractedSecrets, KernelConnection<ClientConnectionData>) {
    let acceptor = Acceptor::new(&server_of(), &Policy::default().versions);
    let mut server = Box::new(Handshake::new(&acceptor.into()).expect("new"));
    let mut client = client_of(suite);
    let mut from_server = Vec::new();
    loop {
        let mut to_server = Queue::default();
        let is_done = advance_client(&mut client, &mut from_server, &mut to_server);
        server.feed.append(to_server.filled());
        match server.advance() {
            Step::Blocked(next) => server = next,
            Step::Complete(mut established) => {
                if !is_done {
                    from_server.extend_from_slice(established.outgoing.filled());
                    advance_client(&mut client, &mut from_server, &mut established.incoming);
                }
                let (secrets, updater) =
                    client.dangerous_into_kernel_connection().expect("complete");
                return (*established, secrets, updater);
            }
            Step::PlainHttp(_) | Step::Challenged(_) => panic!("no plain HTTP"),
            Step::Failed(error, _) => panic!("{error}"),
        }
        from_server.extend_from_slice(server.outgoing.filled());
        server.outgoing.clear();
    }
}

fn server_of() -> Arc<ServerConfig> {
    server_config(&Policy::default(), own_site(), &resumption()).expect("valid")
}

/// Offers one suite only, so that the server has no choice.
fn client_of(suite: CipherSuite) -> UnbufferedClientConnection {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|offered| offered.suite() == suite);
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let mut config = client_config(provider, &schemes);
    config.enable_secret_extraction = true;
    let name = ServerName::try_from("a.example").expect("a name");
    UnbufferedClientConnection::new(Arc::new(config), name).expect("new")
}

/// True if the client has finished.
fn advance_client(
    client: &mut UnbufferedClientConnection,
    incoming: &mut Vec<u8>,
    to_server: &mut Queue,
) -> bool {
    loop {
        let UnbufferedStatus { discard, state } = client.process_tls_records(incoming);
        let is_done = match state.expect("an honest server") {
            ConnectionState::EncodeTlsData(mut encode) => {
                let bytes = encode.encode(to_server.room(4_096)).expect("room");
                to_server.commit(bytes);
                None
            }
            ConnectionState::TransmitTlsData(transmit) => {
                transmit.done();
                None
            }
            ConnectionState::BlockedHandshake => Some(false),
            ConnectionState::WriteTraffic(_) => Some(true),
            _ => panic!("an unexpected state"),
        };
        incoming.drain(..discard);
        if let Some(is_done) = is_done {
            return is_done;
        }
    }
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> Result<(), StreamError> {
    if stream.is_offloaded() {
        let pieces = [IoSlice::new(bytes)];
        poll_fn(|context| stream.poll_kernel_write(context, &pieces, false)).await?;
    } else {
        stream.seal(&[bytes])?;
    }
    poll_fn(|context| stream.poll_flush(context)).await
}

#[tokio::test]
async fn user_space_changes_its_key_before_the_limit() {
    let (mut stream, mut peer) = connection_at(TLS13, AES_GCM_RECORDS_MAX - RECORDS_RESERVED - 1);
    for word in [b"old", b"new", b"too"] {
        send(&mut stream, word).await.expect("sent");
    }
    assert_eq!(peer.next(), (ContentType::ApplicationData, b"old".to_vec()));
    assert_eq!(peer.next(), (ContentType::Handshake, vec![24, 0, 0, 1, 0]));
    assert_eq!(peer.next(), (ContentType::ApplicationData, b"new".to_vec()));
    assert_eq!(peer.next(), (ContentType::ApplicationData, b"too".to_vec()));
    assert!(!stream.must_close());
    assert_eq!(stream.key_changes().sent, 1);
}

#[tokio::test]
async fn tls12_closes_before_the_limit_and_never_passes_it() {
    let (mut stream, mut peer) = connection_at(TLS12, AES_GCM_RECORDS_MAX - 2);
    send(&mut stream, b"near").await.expect("sent");
    assert!(stream.must_close());
    assert_eq!(peer.next(), (ContentType::ApplicationData, b"near".to_vec()));
    send(&mut stream, b"last").await.expect("sent");
    let refused = send(&mut stream, b"past").await;
    assert!(matches!(refused, Err(StreamError::KeyExhausted)), "{refused:?}");
    assert_eq!(peer.next(), (ContentType::ApplicationData, b"last".to_vec()));
}

#[tokio::test]
async fn the_kernel_gets_a_new_key_or_the_connection_closes() {
    let Some(capabilities) = has_ktls() else { return };
    for (suite, can_rekey) in [(TLS13, capabilities.carries_rekey()), (TLS12, false)] {
        let (mut stream, mut peer) =
            connection_at(suite, AES_GCM_RECORDS_MAX - RECORDS_RESERVED - 2);
        poll_fn(|context| stream.poll_offload(context, can_rekey)).await.expect("offloaded");
        send(&mut stream, b"old").await.expect("sent");
        send(&mut stream, b"new").await.expect("sent");
        assert_eq!(peer.next(), (ContentType::ApplicationData, b"old".to_vec()));
        assert_eq!(stream.must_close(), !can_rekey, "{suite:?}");
        if can_rekey {
            assert_eq!(peer.next(), (ContentType::Handshake, vec![24, 0, 0, 1, 0]));
            assert_eq!(stream.key_changes().kernel, 1);
        }
        assert_eq!(peer.next(), (ContentType::ApplicationData, b"new".to_vec()));
    }
}

#[tokio::test]
async fn the_kernel_never_passes_the_limit() {
    let Some(_) = has_ktls() else { return };
    // As many bytes as all of them would hold leave none for the end.
    for last in [vec![b'a'; 4], vec![b'a'; 8 * 16_384]] {
        let (mut stream, mut peer) = connection_at(TLS12, AES_GCM_RECORDS_MAX - 8);
        poll_fn(|context| stream.poll_offload(context, false)).await.expect("offloaded");
        send(&mut stream, b"first").await.expect("sent");
        assert!(stream.must_close());
        let mut sent = 1;
        while send(&mut stream, &last).await.is_ok() {
            sent += 1;
        }
        assert_eq!(sent, if last.len() > 4 { 1 } else { 5 });
        let refused = send(&mut stream, b"past").await;
        assert!(refused.is_err(), "sent under an exhausted key");
        poll_fn(|context| stream.poll_close(context)).await.expect("ended");
        assert_eq!(peer.next(), (ContentType::ApplicationData, b"first".to_vec()));
        for _ in 1..sent {
            assert_eq!(peer.next(), (ContentType::ApplicationData, last.clone()));
        }
        assert_eq!(peer.socket.read(&mut [0]).expect("an end"), 0);
    }
}

/// A socket without kernel TLS takes no key, whatever the kernel can do.
#[tokio::test]
async fn behind_a_next_key_that_the_kernel_refuses_nothing_is_sent() {
    let (mut stream, peer) = connection_at(TLS13, 1);
    stream.writer.sending = Sending::Kernel(KERNEL);
    stream.writer.due.key_update = true;
    stream.queue_close_notify();
    let failed = poll_fn(|context| stream.poll_flush(context)).await;
    assert!(matches!(failed, Err(StreamError::Kernel(_))), "{failed:?}");
    assert_eq!(stream.key_changes().refused, Some("not_attached"));
    poll_fn(|context| stream.poll_close(context)).await.expect("ended");
    let mut sent = Vec::new();
    (&peer.socket).read_to_end(&mut sent).expect("an end");
    assert_eq!(sent, control::KEY_UPDATE);
}

#[tokio::test]
async fn records_made_of_small_pieces_are_never_counted_too_low() {
    let Some(_) = has_ktls() else { return };
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    poll_fn(|context| stream.poll_offload(context, false)).await.expect("offloaded");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let source = Peer::connect(listener.local_addr().expect("bound")).expect("connected");
    source.set_nodelay(true).expect("an option");
    let (backend, _) = listener.accept().expect("a connection");
    let mut pipe = Pipe::new(256 * 1_024).expect("a pipe");
    for byte in 0..60_u8 {
        (&source).write_all(&[byte]).expect("sent");
        while backend.peek(&mut [0]).expect("a byte") == 0 {}
        assert_eq!(pipe.fill(backend.as_fd(), 1).expect("a byte"), 1);
    }
    while !pipe.is_empty() {
        let sent = poll_fn(|context| stream.poll_kernel_splice(context, &mut pipe, 60)).await;
        assert!(sent.expect("sent") > 0);
    }
    let Sending::Kernel(sending) = &stream.writer.sending else { panic!("in the kernel") };
    let fd = stream.socket();
    let sequence = ktls::sequence(fd, ktls::RecordDirection::Tx, sending.version, sending.cipher);
    let sequence = sequence.expect("a number");
    assert!(sending.records_unchecked >= sequence, "{} {sequence}", sending.records_unchecked);
    let mut received = Vec::new();
    while received.len() < 60 {
        received.extend(peer.next().1);
    }
    assert_eq!(received, (0..60).collect::<Vec<u8>>());
}

/// Too few, and the end could come before the last bytes.
#[tokio::test]
async fn what_acknowledgements_hide_is_asked_for_again() {
    let mut answers =
        vec![Ok(4_711), Err(io::ErrorKind::WouldBlock), Err(io::ErrorKind::WouldBlock)];
    let written = poll_fn(|context| {
        let answer = answers.pop().expect("nobody asks again after an answer");
        offload::poll_written(answer.map_err(io::Error::from), context)
    });
    assert_eq!(written.await, 4_711);
    let unknown = Err(io::ErrorKind::Unsupported.into());
    let context = &Context::from_waker(Waker::noop());
    assert_eq!(offload::poll_written(unknown, context), Poll::Ready(0));
}

#[tokio::test]
async fn a_bug_ends_one_connection_and_no_other() {
    async fn serves(mut stream: Stream) -> Result<(), StreamError> {
        let pieces = [IoSlice::new(b"in the clear")];
        poll_fn(|context| stream.poll_kernel_write(context, &pieces, false)).await?;
        send(&mut stream, b"never").await
    }
    let writer = "crates/tls/src/stream/writer.rs";
    let counted = || bug::counts().get(writer).copied().unwrap_or_default();
    let before = counted();
    let (mut other, mut others_peer) = connection_at(TLS13, 1);
    for _ in 0..3 {
        let (stream, mut peer) = connection_at(TLS13, 1);
        assert!(matches!(serves(stream).await, Err(StreamError::Bug(_))));
        let mut rest = Vec::new();
        assert_eq!(peer.socket.read_to_end(&mut rest).expect("an end"), 0, "{rest:?}");
    }
    assert!(counted() >= before + 3);
    send(&mut other, b"sealed").await.expect("sent");
    assert_eq!(others_peer.next(), (ContentType::ApplicationData, b"sealed".to_vec()));
}

#[tokio::test]
async fn without_keys_the_kernel_gets_nothing() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    let pieces = [IoSlice::new(b"in the clear")];
    let refused = poll_fn(|context| stream.poll_kernel_write(context, &pieces, false)).await;
    assert!(matches!(refused, Err(StreamError::Bug(_))), "{refused:?}");
    send(&mut stream, b"sealed").await.expect("sent");
    assert_eq!(peer.next(), (ContentType::ApplicationData, b"sealed".to_vec()));
    stream.queue_close_notify();
    let refused = poll_fn(|context| stream.poll_kernel_write(context, &pieces, false)).await;
    assert!(matches!(refused, Err(StreamError::Ended)), "{refused:?}");
    assert_eq!(peer.next(), (ContentType::Alert, vec![1, 0]));
}

#[tokio::test]
async fn an_end_of_ours_is_not_read_as_the_peers() {
    let (mut stream, _peer) = connection_at(TLS13, AES_GCM_RECORDS_MAX / 2);
    // The peer wants another key, the kernel cannot change it: what follows is not read.
    stream.writer.key = SendingKey::Refused;
    let read = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 8]).await;
    assert!(read.is_err(), "a reader would take what it has for the whole");
}

/// A kernel that is taken for one that encrypts: on a socket without kernel TLS every byte goes out as it is.
const KERNEL: KernelSending = KernelSending {
    version: Version::Tls13,
    cipher: ktls::Cipher::Aes128Gcm,
    can_rekey: true,
    records_unchecked: 1,
};

fn has_ktls() -> Option<Capabilities> {
    let capabilities = Capabilities::run();
    match capabilities.tx_reason() {
        Some(reason) => kettle_skip::skip_without_kernel_tls(reason),
        None => return Some(capabilities),
    }
    None
}
