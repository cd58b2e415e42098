//! The stream as tokio's traits know it: how much one write takes, and what is an end.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::{ByHand, TLS13, connection_at};
use crate::records::ContentType;
use crate::stream::{Filled, Stream, front_pieces};

const APPLICATION_DATA: u8 = 23;

/// The most that one write takes.
const WRITE_BYTES: usize = 8 * 16_384;

#[test]
fn the_front_of_what_is_written_is_bounded_in_bytes_and_pieces() {
    let pieces = [&b""[..], b"ab", b"", b"cdef", b"g"].map(IoSlice::new);
    let (front, bytes) = front_pieces(&pieces, 5);
    assert_eq!((&front[..2], front.concat().len(), bytes), (&[&b"ab"[..], b"cde"][..], 5, 5));
    let (front, bytes) = front_pieces(&pieces, 100);
    assert_eq!((front.concat(), bytes), (b"abcdefg".to_vec(), 7));
    let many = [IoSlice::new(b"x"); 20];
    assert_eq!(front_pieces(&many, 100).1, 16);
}

/// Writes until the peer takes no more; returns how much was taken.
pub(super) async fn fill_up(stream: &mut Stream) -> usize {
    let block = vec![b'a'; 2 * WRITE_BYTES];
    let mut context = Context::from_waker(Waker::noop());
    let mut written = 0;
    stream.tcp().writable().await.expect("room");
    while let Poll::Ready(bytes) = Pin::new(&mut *stream).poll_write(&mut context, &block) {
        written += bytes.expect("taken");
    }
    written
}

#[tokio::test]
async fn nothing_piles_up_behind_what_the_peer_does_not_take() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    assert!(stream.is_write_vectored());
    assert_eq!(stream.write(&[]).await.expect("nothing"), 0);
    assert_eq!(stream.write(&vec![b'a'; 2 * WRITE_BYTES]).await.expect("taken"), WRITE_BYTES);
    let written = WRITE_BYTES + fill_up(&mut stream).await;
    let queued_bytes = stream.queued_bytes();
    assert!((1..2 * WRITE_BYTES).contains(&queued_bytes), "{queued_bytes}");
    let mut context = Context::from_waker(Waker::noop());
    assert!(AsyncWrite::poll_flush(Pin::new(&mut stream), &mut context).is_pending());
    let reader = std::thread::spawn(move || {
        let mut read = 0;
        while read < written {
            let (content_type, data) = peer.next();
            assert_eq!(content_type, ContentType::ApplicationData);
            read += data.len();
        }
        (read, peer.next())
    });
    stream.shutdown().await.expect("closed");
    assert_eq!(reader.join().expect("read"), (written, (ContentType::Alert, vec![1, 0])));
}

#[tokio::test]
async fn an_empty_record_is_no_end_whoever_reads_it() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    for reader in 0..3 {
        let empty = peer.sealer.seal(APPLICATION_DATA, b"", 0);
        peer.socket.write_all(&empty).expect("sent");
        stream.tcp().readable().await.expect("received");
        let mut room = [0; 4];
        let mut shown = 0;
        let mut buffer = ReadBuf::new(&mut room);
        let is_pending = poll_fn(|context| {
            Poll::Ready(match reader {
                0 => AsyncRead::poll_read(Pin::new(&mut stream), context, &mut buffer).is_pending(),
                1 => stream.poll_fill(context).is_pending(),
                _ => stream.poll_visit(context, |data| shown += data.len() + 1).is_pending(),
            })
        });
        assert!(is_pending.await, "{reader}");
    }
}

#[tokio::test]
async fn a_long_record_is_read_in_parts() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    let data = peer.sealer.seal(APPLICATION_DATA, b"0123456789", 0);
    peer.socket.write_all(&data).expect("sent");
    let mut room = [0; 4];
    for part in [&b"0123"[..], b"4567", b"89"] {
        let bytes = stream.read(&mut room).await.expect("a part");
        assert_eq!(&room[..bytes], part);
        assert_eq!(stream.read(&mut []).await.expect("no room"), 0);
    }
}

/// A peer that went with bytes unread, so that its end is a reset.
async fn reset(stream: &mut Stream, peer: ByHand) {
    stream.write_all(b"unread").await.expect("taken");
    stream.flush().await.expect("sent");
    peer.socket.peek(&mut [0]).expect("received");
    drop(peer);
    stream.tcp().readable().await.expect("an end");
}

#[tokio::test]
async fn a_peer_that_has_gone_is_no_error_unless_something_was_to_be_told() {
    let (mut stream, peer) = connection_at(TLS13, 1);
    reset(&mut stream, peer).await;
    let told = stream.shutdown().await.expect_err("a close_notify to nobody");
    assert_ne!(told.kind(), ErrorKind::NotConnected);

    let (mut stream, peer) = connection_at(TLS13, 1);
    reset(&mut stream, peer).await;
    stream.cut();
    stream.shutdown().await.expect("nothing was left to say");
}

#[tokio::test]
async fn of_a_plain_stream_so_many_bytes_are_dropped_and_the_rest_is_received() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let near = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let mut stream = Stream::plain(near, Vec::new());
    let (mut far, _) = listener.accept().unwrap();
    far.write_all(b"body and more").unwrap();
    far.shutdown(std::net::Shutdown::Write).unwrap();
    let dropped = poll_fn(|context| stream.poll_discard(context, 4)).await.unwrap();
    let filled = poll_fn(|context| stream.poll_fill(context)).await.unwrap();
    assert_eq!((dropped, filled), (4, Filled::Data));
    assert_eq!(stream.received().bytes(), b" and more");
    assert_eq!(poll_fn(|context| stream.poll_discard(context, 4)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_plain_stream_over_a_unix_socket_holds_nothing_back_and_says_no_error() {
    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let near = std::net::TcpStream::from(std::os::fd::OwnedFd::from(near));
    let mut stream = Stream::plain(tokio::net::TcpStream::from_std(near).unwrap(), Vec::new());
    let head = [IoSlice::new(b"head")];
    let taken = poll_fn(|context| stream.poll_kernel_write(context, &head, true)).await.unwrap();
    poll_fn(|context| stream.poll_kernel_push(context)).await.unwrap();
    let mut received = [0; 4];
    std::io::Read::read_exact(&mut far, &mut received).unwrap();
    assert_eq!((taken, &received), (4, b"head"));
}
