//! The counts, questions and answers while the kernel encrypts, on a socket whose kernel does not.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::task::{Context, Poll};

use kettle_kernel::ktls::Cipher;
use kettle_kernel::pipe::Pipe;

use super::{ByHand, KERNEL, TLS12, TLS13, connection_at};
use crate::Version;
use crate::control::{Alert, NO_RENEGOTIATION};
use crate::records::{AES_GCM_RECORDS_MAX, RecordSealer};
use crate::sample_keys::{SECRET_BYTES, keys_of};
use crate::stream::offload::RECORDS_RESERVED;
use crate::stream::writer::{Answer, KernelOutput, KernelSending, Sending, SendingKey};
use crate::stream::{Filled, OffloadError, Stream, StreamError};

/// A connection of which this is taken to be known in the kernel.
fn in_kernel(sending: KernelSending) -> (Stream, ByHand) {
    let (mut stream, peer) = connection_at(TLS13, 1);
    stream.writer.sending = Sending::Kernel(sending);
    (stream, peer)
}

async fn write(stream: &mut Stream, bytes: &[u8]) -> Result<usize, StreamError> {
    let pieces = [IoSlice::new(bytes)];
    poll_fn(|context| stream.poll_kernel_write(context, &pieces, false)).await
}

#[test]
fn what_tcp_must_have_is_each_byte_and_what_each_record_adds() {
    for (version, cipher, overhead_bytes) in [
        (Version::Tls13, Cipher::Aes128Gcm, 5 + 1 + 16),
        (Version::Tls12, Cipher::Aes256Gcm, 5 + 8 + 16),
        (Version::Tls12, Cipher::Chacha20Poly1305, 5 + 16),
    ] {
        let keys = keys_of(version, cipher, [7; SECRET_BYTES]).expect("a suite");
        let mut sealer = RecordSealer::new(keys).expect("a suite");
        sealer.skip_records(3);
        let output = KernelOutput::new(&sealer, 1_000);
        assert_eq!(output.bytes_at(3), 1_000);
        assert_eq!(output.bytes_at(7), 1_000 + 4 * overhead_bytes, "{version:?} {cipher:?}");
    }
}

#[tokio::test]
async fn what_the_kernel_keeps_open_is_pushed_or_the_socket_says_why_not() {
    let (mut stream, _peer) = in_kernel(KERNEL);
    poll_fn(|context| stream.poll_kernel_push(context)).await.expect("pushed");
    kettle_kernel::socket::shutdown_write(stream.socket()).expect("ended");
    let pushed = poll_fn(|context| stream.poll_kernel_push(context)).await;
    assert!(matches!(pushed, Err(StreamError::Io(_))), "{pushed:?}");
}

#[tokio::test]
async fn what_the_kernel_is_given_is_sent_and_counted() {
    let (mut stream, mut peer) = in_kernel(KERNEL);
    let keys = keys_of(Version::Tls13, Cipher::Aes128Gcm, [7; SECRET_BYTES]).expect("a suite");
    let sealer = RecordSealer::new(keys).expect("a suite");
    stream.writer.kernel_output = Some(Box::new(KernelOutput::new(&sealer, 100)));
    let counted = |stream: &Stream| match (&stream.writer.sending, &stream.writer.kernel_output) {
        (Sending::Kernel(sending), Some(output)) => (sending.records_unchecked, output.bytes),
        _ => panic!("no kernel"),
    };

    assert_eq!(write(&mut stream, &[b'w'; 20_000]).await.expect("sent"), 20_000);
    assert_eq!(counted(&stream), (1 + 2, 20_100), "a full record and one that is not");

    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(b"0123456789").expect("written");
    let mut offset = 3;
    let file = file.as_fd();
    let sent = poll_fn(|context| stream.poll_kernel_sendfile(context, file, &mut offset, 5)).await;
    assert_eq!((sent.expect("sent"), offset), (5, 8));
    assert_eq!(counted(&stream), (4, 20_105));

    let mut pipe = Pipe::new(65_536).expect("a pipe");
    let (mut source, end) = std::os::unix::net::UnixStream::pair().expect("sockets");
    source.write_all(b"piped").expect("written");
    assert_eq!(pipe.fill(end.as_fd(), 5).expect("filled"), 5);
    let pieces = pipe.pieces_max() as u64;
    let sent = poll_fn(|context| stream.poll_kernel_splice(context, &mut pipe, 100)).await;
    assert_eq!(sent.expect("sent"), 5);
    assert_eq!(counted(&stream), (4 + pieces, 20_110));

    stream.writer.answer(Answer::NoRenegotiation).expect("answered");
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    poll_fn(|context| stream.poll_flush(context)).await.expect("nothing");
    assert_eq!(counted(&stream), (4 + pieces, 20_112), "once");

    stream.queue_close_notify();
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    drop(stream);
    let mut received = Vec::new();
    peer.socket.read_to_end(&mut received).expect("an end");
    let expected = [
        &[b'w'; 20_000][..],
        b"34567",
        b"piped",
        &NO_RENEGOTIATION,
        &Alert::CLOSE_NOTIFY.message(),
    ];
    assert!(received == expected.concat());
}

#[tokio::test]
async fn nothing_goes_out_behind_what_the_kernel_could_not_encrypt() {
    let (mut stream, mut peer) = in_kernel(KERNEL);
    let Stream { writer, socket, .. } = &mut stream;
    let call = || Err(io::Error::from_raw_os_error(EBADMSG));
    let sent = poll_fn(|context| writer.poll_kernel(socket, context, 1, 1, call)).await;
    assert!(matches!(sent, Err(StreamError::Io(_))), "{sent:?}");
    stream.writer.answer(Answer::NoRenegotiation).expect("nothing to do");
    stream.queue_close_notify();
    poll_fn(|context| stream.poll_close(context)).await.expect("closed");
    let mut received = Vec::new();
    peer.socket.read_to_end(&mut received).expect("an end");
    assert_eq!(received, []);
}

/// The relay of a tunnel cuts it each time that the end of it is polled.
#[tokio::test]
async fn a_record_left_open_is_given_up_however_often_a_connection_is_cut() {
    let (mut stream, mut peer) = in_kernel(KERNEL);
    let keys = keys_of(Version::Tls13, Cipher::Aes128Gcm, [7; SECRET_BYTES]).expect("a suite");
    let sealer = RecordSealer::new(keys).expect("a suite");
    // More than TCP will ever be given.
    stream.writer.kernel_output = Some(Box::new(KernelOutput::new(&sealer, 1 << 20)));
    assert_eq!(write(&mut stream, b"sent").await.expect("sent"), 4);
    peer.socket.read_exact(&mut [0; 4]).expect("received");
    // Until it is acknowledged nothing can be said.
    while kettle_kernel::socket::pending_output_bytes(stream.socket()).expect("known") > 0 {}
    let mut given_up = [false; 3].map(|_| {
        stream.cut();
        stream.writer.keeps_open_record(&stream.socket)
    });
    given_up.sort_unstable();
    assert_eq!(given_up, [false, true, true], "the first look has nothing to compare");
}

/// If nobody answers the question, the answer is an error.
#[tokio::test]
async fn the_kernel_is_asked_for_its_number_near_the_limit_and_not_before() {
    let near = AES_GCM_RECORDS_MAX - RECORDS_RESERVED;
    for (records_unchecked, cipher, is_asked) in [
        (near - 2, Cipher::Aes128Gcm, false),
        (near - 1, Cipher::Aes128Gcm, true),
        (near - 1, Cipher::Chacha20Poly1305, false),
    ] {
        let (mut stream, _peer) = in_kernel(KernelSending { cipher, records_unchecked, ..KERNEL });
        let written = write(&mut stream, b"x").await;
        assert_eq!(written.is_err(), is_asked, "{records_unchecked} {cipher:?}: {written:?}");
    }
}

#[tokio::test]
async fn near_the_limit_the_key_changes_or_the_connection_ends() {
    let near = AES_GCM_RECORDS_MAX - RECORDS_RESERVED;
    // Ten records, and three to end.
    let last = AES_GCM_RECORDS_MAX - 13;
    for (suite, can_rekey, sequence, is_due, key) in [
        (TLS13, true, near - 11, false, SendingKey::Good),
        (TLS13, true, near - 10, true, SendingKey::Good),
        (TLS13, true, last + 1, true, SendingKey::Good),
        (TLS13, false, near - 10, false, SendingKey::NearsLimit),
        (TLS13, false, last, false, SendingKey::NearsLimit),
        (TLS12, true, last, false, SendingKey::NearsLimit),
    ] {
        let (mut stream, _peer) = connection_at(suite, 1);
        stream.writer.sending = Sending::Kernel(KernelSending { can_rekey, ..KERNEL });
        stream.writer.note_kernel_sequence(sequence, 10).expect("not over");
        assert_eq!((stream.writer.due.key_update, stream.writer.key), (is_due, key), "{sequence}");
        let Sending::Kernel(sending) = &stream.writer.sending else { panic!("no kernel") };
        assert_eq!(sending.records_unchecked, sequence);
    }
    let (mut stream, _peer) = in_kernel(KernelSending { can_rekey: false, ..KERNEL });
    let over = stream.writer.note_kernel_sequence(last + 1, 10);
    assert!(matches!(over, Err(StreamError::KeyExhausted)) && !stream.is_offloaded(), "{over:?}");
}

#[tokio::test]
async fn a_kernel_that_changes_no_key_says_goodbye_when_asked_for_another() {
    let (mut stream, _peer) = in_kernel(KERNEL);
    stream.writer.answer(Answer::KeyUpdate).expect("answered");
    assert!(stream.writer.due.key_update && stream.is_offloaded());
    assert!(!stream.must_close() && !stream.is_key_refused());

    let (mut stream, _peer) = in_kernel(KernelSending { can_rekey: false, ..KERNEL });
    stream.writer.answer(Answer::KeyUpdate).expect("answered");
    assert!(!stream.writer.due.key_update && stream.must_close() && stream.is_key_refused());
    assert!(!stream.has_fatal_alert());
    assert_eq!(stream.writer.due.alert, Some(Alert::CLOSE_NOTIFY));
    let written = write(&mut stream, b"late").await;
    assert!(matches!(written, Err(StreamError::KeyExhausted)), "{written:?}");
    let moved = poll_fn(|context| stream.poll_offload(context, true)).await;
    assert!(matches!(moved, Err(OffloadError::Ended(StreamError::KeyExhausted))), "{moved:?}");
    // The caller has learnt it before anything was sent, and may take it back.
    stream.cut();
    stream.writer.answer(Answer::KeyUpdate).expect("nothing");
    assert!(stream.writer.due.is_empty(), "an answer of who may not speak");
}

#[tokio::test]
async fn what_is_in_the_kernel_moves_there_no_more() {
    let (mut stream, _peer) = in_kernel(KERNEL);
    stream.writer.due.no_renegotiation = true;
    poll_fn(|context| stream.poll_offload(context, true)).await.expect("there");
    assert!(stream.writer.due.no_renegotiation, "sent by who was asked to do nothing");
}

#[tokio::test]
async fn a_kernel_that_takes_no_more_is_waited_for_and_its_error_told() {
    let (mut stream, peer) = in_kernel(KERNEL);
    let block = [b'a'; 65_536];
    let pieces = [IoSlice::new(&block)];
    stream.tcp().writable().await.expect("room");
    let mut write_now =
        |context: &mut Context<'_>| Poll::Ready(stream.poll_kernel_write(context, &pieces, false));
    while let Poll::Ready(taken) = poll_fn(&mut write_now).await {
        assert!(taken.expect("taken") > 0);
    }
    // With bytes unread, so that the connection is reset.
    drop(peer);
    let failed = write(&mut stream, b"to nobody").await;
    assert!(matches!(failed, Err(StreamError::Io(_))), "{failed:?}");
}

#[tokio::test]
async fn behind_the_wish_for_another_key_nothing_is_opened() {
    let (mut stream, mut peer) = in_kernel(KernelSending { can_rekey: false, ..KERNEL });
    let wish = peer.sealer.seal(22, &[24, 0, 0, 1, 1], 0);
    let forged = b"\x17\x03\x03\x00\x11sealed by nobody.";
    peer.socket.write_all(&[&wish[..], forged].concat()).expect("sent");
    let filled = poll_fn(|context| stream.poll_fill(context)).await;
    assert!(matches!(filled, Ok(Filled::Closed)) && !stream.has_fatal_alert(), "{filled:?}");
}

/// The error that kernel TLS answers when it could not encrypt, on most machines.
const EBADMSG: i32 = 74;
