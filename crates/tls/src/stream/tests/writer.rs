//! The bytes that wait in the sending half, and what they cost a connection that has nothing to send.

use std::future::poll_fn;
use std::io::Write;
use std::task::Poll;
use std::time::Duration;

use super::bytes::fill_up;
use super::{TLS13, connection_at};
use crate::stream::Filled;

#[tokio::test]
async fn only_tickets_are_waited_for_and_only_once() {
    let (mut stream, _peer) = connection_at(TLS13, 1);
    poll_fn(|context| Poll::Ready(stream.writer.keeps_tickets(context))).await;
    assert!(stream.writer.pause.is_none(), "a timer for nothing");

    stream.writer.outgoing.append(b"tickets");
    stream.writer.tickets_bytes = b"tickets".len();
    assert!(poll_fn(|context| Poll::Ready(stream.writer.keeps_tickets(context))).await);
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    assert!(stream.writer.tickets_bytes == 0 && stream.writer.pause.is_none());

    // A message that comes later is no ticket, and the pause of a close stays as long as it is.
    stream.writer.pause = Some(Box::default());
    stream.writer.outgoing.append(b"records");
    assert!(!poll_fn(|context| Poll::Ready(stream.writer.keeps_tickets(context))).await);
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    assert!(stream.writer.pause.is_some());
}

#[tokio::test]
async fn what_was_sent_is_acknowledged_once_the_peer_has_it() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    stream.seal(&[b"word"]).expect("sealed");
    assert!(!stream.is_acknowledged(), "not even sent");
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    peer.next();
    let acknowledged = async {
        while !stream.is_acknowledged() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), acknowledged).await.expect("acknowledged");
    fill_up(&mut stream).await;
    assert!(!stream.is_acknowledged());
    stream.writer.outgoing.clear();
    assert!(!stream.is_acknowledged(), "in the kernel");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it is what the test is about")]
async fn records_that_are_skipped_were_sent_and_received() {
    let (mut stream, mut peer) = connection_at(TLS13, 1);
    stream.dangerous_skip_records(3, 2);
    peer.opener.skip_records(3);
    stream.seal(&[b"word"]).expect("sealed");
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    assert_eq!(peer.next().1, b"word");
    let [.., third] = [(); 3].map(|()| peer.sealer.seal(23, b"answer", 0));
    peer.socket.write_all(&third).expect("sent");
    assert_eq!(poll_fn(|context| stream.poll_fill(context)).await.expect("opened"), Filled::Data);
}
