//! What waits in the sending half, and what it costs a connection that has nothing to send.

use std::future::poll_fn;
use std::task::Poll;

use super::{TLS13, connection_at};

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

    // What comes later is no ticket, and the pause of a close stays as long as it is.
    stream.writer.pause = Some(Box::default());
    stream.writer.outgoing.append(b"records");
    assert!(!poll_fn(|context| Poll::Ready(stream.writer.keeps_tickets(context))).await);
    poll_fn(|context| stream.poll_flush(context)).await.expect("sent");
    assert!(stream.writer.pause.is_some());
}
