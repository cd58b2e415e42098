//! Bytes that are received without being opened, those of them that are kept, and when a socket is read again.

use std::future::poll_fn;
use std::io::{self, Write};
use std::net::Shutdown;
use std::task::{Context, Poll};

use super::{ByHand, TLS12, TLS13, connection_at};
use crate::buffers::Queue;
use crate::stream::reader::Received;
use crate::stream::receive::poll_readable;
use crate::stream::{Filled, Stream};

const ALERT: u8 = 21;
const APPLICATION_DATA: u8 = 23;

/// Sends this and waits until it has come.
async fn say(stream: &Stream, peer: &mut ByHand, bytes: &[u8]) {
    peer.socket.write_all(bytes).expect("sent");
    stream.tcp().readable().await.expect("received");
}

/// Polls once.
async fn now<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll_fn(|context| Poll::Ready(poll(context))).await
}

#[tokio::test]
async fn records_are_dropped_as_a_whole_in_whatever_pieces_they_come() {
    for suite in [TLS13, TLS12] {
        let (mut stream, mut peer) = connection_at(suite, 1);
        let [first, second, third] = [4_096, 5_000, 4_095]
            .map(|bytes| peer.sealer.seal(APPLICATION_DATA, &vec![b'a'; bytes], 0));
        assert!(now(|context| stream.poll_discard(context, 20_000)).await.is_pending());
        say(&stream, &mut peer, &first).await;
        let dropped = now(|context| stream.poll_discard(context, 20_000)).await;
        assert!(matches!(dropped, Poll::Ready(Ok(4_096))), "{dropped:?}");
        // In the header, in the body, behind the end.
        for part in [&second[..3], &second[3..100]] {
            say(&stream, &mut peer, part).await;
            assert!(now(|context| stream.poll_discard(context, 5_000)).await.is_pending());
        }
        say(&stream, &mut peer, &[&second[100..], &third].concat()).await;
        let dropped = now(|context| stream.poll_discard(context, 20_000)).await;
        assert!(matches!(dropped, Poll::Ready(Ok(5_000))), "{dropped:?}");
        // One that is as small as a ticket may be one.
        let dropped = now(|context| stream.poll_discard(context, 20_000)).await;
        assert!(matches!(dropped, Poll::Ready(Ok(0))), "{dropped:?}");
        assert_eq!(poll_fn(|context| stream.poll_fill(context)).await.expect("data"), Filled::Data);
        assert_eq!(stream.received().bytes(), [b'a'; 4_095]);
    }
}

#[tokio::test]
async fn nothing_is_waited_for_that_would_not_be_dropped() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    let dropped = now(|context| stream.poll_discard(context, 4_095)).await;
    assert!(matches!(dropped, Poll::Ready(Ok(0))), "{dropped:?}");
    let [exact, goodbye] = [(APPLICATION_DATA, &[b'a'; 4_096][..]), (ALERT, &[1, 0])]
        .map(|(content_type, content)| peer.sealer.seal(content_type, content, 0));
    say(&stream, &mut peer, &[exact, goodbye].concat()).await;
    let dropped = now(|context| stream.poll_discard(context, 4_096)).await;
    assert!(matches!(dropped, Poll::Ready(Ok(4_096))), "{dropped:?}");
    assert_eq!(poll_fn(|context| stream.poll_fill(context)).await.expect("an end"), Filled::Closed);
    let dropped = now(|context| stream.poll_discard(context, 20_000)).await;
    assert!(matches!(dropped, Poll::Ready(Ok(0))), "{dropped:?}");
}

#[tokio::test]
async fn what_is_not_opened_yet_is_known_and_whether_it_is_a_close_notify() {
    for (content_type, content, is_one) in
        [(ALERT, &[1, 0][..], true), (ALERT, &[1, 90], false), (APPLICATION_DATA, &[1, 0], false)]
    {
        let (mut stream, mut peer) = connection_at(TLS13, 1);
        let record = peer.sealer.seal(content_type, content, 0);
        let (come, more) = record.split_at(7);
        assert_eq!(stream.unopened_bytes(), 0);
        assert_eq!(stream.is_close_notify(&record), is_one, "{content:?}");
        say(&stream, &mut peer, come).await;
        assert!(now(|context| stream.poll_fill(context)).await.is_pending());
        assert_eq!(stream.unopened_bytes(), 7);
        assert_eq!(stream.is_close_notify(more), is_one, "{content:?}");
        assert!(!stream.is_close_notify(&[more, b"behind"].concat()));
        assert!(!stream.is_close_notify(&more[..3]) && !stream.is_close_notify(&record));
    }
}

#[tokio::test]
async fn the_peers_end_is_seen_behind_what_is_not_read() {
    let (stream, mut peer) = connection_at(TLS13, 1);
    say(&stream, &mut peer, b"unread").await;
    let mut ended = Box::pin(stream.peer_ended());
    assert!(now(|context| ended.as_mut().poll(context)).await.is_pending());
    peer.socket.shutdown(Shutdown::Write).expect("ended");
    ended.await;
}

#[tokio::test]
async fn what_is_drained_ends_where_the_peer_ends() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    say(&stream, &mut peer, b"whatever").await;
    while let Poll::Ready(drained) = now(|context| stream.poll_drain(context)).await {
        assert!(!drained.expect("what was said"));
    }
    peer.socket.shutdown(Shutdown::Write).expect("ended");
    assert!(poll_fn(|context| stream.poll_drain(context)).await.expect("an end"));
}

#[tokio::test]
async fn the_rest_of_a_record_is_read_and_no_more() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    let record = peer.sealer.seal(APPLICATION_DATA, &[b'a'; 10_000], 0);
    for (bytes, room_bytes) in [(3, 4_096), (100, record.len() - 100)] {
        stream.reader.ciphertext.clear();
        stream.reader.ciphertext.append(&record[..bytes]);
        assert_eq!(stream.reader.room_bytes(), room_bytes);
    }
}

#[tokio::test]
async fn two_full_records_are_read_at_once() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    let full = [b'a'; 16_384];
    let records = [0; 2].map(|_| peer.sealer.seal(APPLICATION_DATA, &full, 0)).concat();
    say(&stream, &mut peer, &records).await;
    while stream.tcp().peek(&mut vec![0; records.len()]).await.expect("bytes") < records.len() {}
    assert_eq!(poll_fn(|context| stream.poll_fill(context)).await.expect("data"), Filled::Data);
    assert_eq!(stream.take_front(full.len()).bytes(), full);
    stream.consume(1);
    assert_eq!(stream.received().bytes(), &full[1..]);
}

/// Each call more than that asks the kernel for what it has said already.
#[tokio::test]
async fn a_socket_is_read_again_only_if_there_may_be_more() {
    let (stream, mut peer) = connection_at(TLS13, 1);
    let mut answers: Vec<io::Result<usize>> = Vec::new();
    for (answer, is_read_again) in [
        (Ok(5), true),
        (Ok(0), true),
        (Ok(3), false),
        (Err(io::ErrorKind::WouldBlock), false),
        (Err(io::ErrorKind::ConnectionReset), true),
    ] {
        // New bytes make it ready anew.
        say(&stream, &mut peer, b"x").await;
        answers.extend([Ok(5), answer.map_err(io::Error::from)]);
        let mut call = || answers.pop().expect("an answer");
        let first = now(|context| poll_readable(&stream.socket, context, 5, &mut call)).await;
        match (answer, first) {
            (Err(io::ErrorKind::WouldBlock), Poll::Pending) => {}
            (expected, Poll::Ready(first)) => {
                assert_eq!(first.map_err(|error| error.kind()), expected);
            }
            (expected, Poll::Pending) => panic!("no answer for {expected:?}"),
        }
        let again = now(|context| poll_readable(&stream.socket, context, 5, &mut call)).await;
        assert_eq!(again.is_ready(), is_read_again, "{answer:?}");
        answers.clear();
    }
}

#[test]
fn what_was_received_can_be_taken_out_in_parts() {
    let mut queue = Queue::default();
    queue.append(b"0123456789");
    for mut received in [Received::from(b"0123456789".to_vec()), Received::from(queue)] {
        received.consume(1);
        assert_eq!(received.take_front(3).as_ref(), b"123");
        assert_eq!(received.bytes(), b"456789");
        assert_eq!(received.take_front(6).bytes(), b"456789");
        assert!(received.bytes().is_empty() && received.take_front(1).bytes().is_empty());
    }
}
