//! When the tickets behind a TLS 1.3 handshake are sent.

use std::future::poll_fn;
use std::io::Write;
use std::task::Poll;

use kettle_tls::stream::Filled;

use crate::harness::{SUITES, close, connect, fill, flush, read_to_close_notify, receive};

/// TLS 1.3.
const SUITE: rustls::CipherSuite = SUITES[0].2;

#[tokio::test]
async fn tickets_wait_for_what_is_sent_first() {
    let (mut stream, client) = connect(SUITE, |client| {
        client.conn.complete_io(&mut client.sock).unwrap();
        let received = read_to_close_notify(client).unwrap();
        (received, client.conn.tls13_tickets_received())
    })
    .await;
    let tickets_bytes = stream.queued_bytes();
    assert!(tickets_bytes > 0);
    poll_fn(|context| {
        assert!(stream.poll_fill(context).is_pending());
        assert!(matches!(stream.poll_flush_but_tickets(context), Poll::Ready(Ok(()))));
        Poll::Ready(())
    })
    .await;
    assert_eq!(stream.queued_bytes(), tickets_bytes, "sent by themselves");
    stream.seal(&[b"first"]).unwrap();
    poll_fn(|context| stream.poll_flush_but_tickets(context)).await.unwrap();
    assert_eq!(stream.queued_bytes(), 0, "what they waited for has come");
    close(stream).await;
    let (received, tickets) = client.join().unwrap();
    assert_eq!(received, b"first");
    assert!(tickets > 0);
}

#[tokio::test]
async fn a_client_that_waits_for_tickets_gets_them() {
    let (mut stream, client) = connect(SUITE, |client| {
        while client.conn.tls13_tickets_received() == 0 {
            client.conn.complete_io(&mut client.sock).unwrap();
        }
        client.write_all(b"then").unwrap();
        read_to_close_notify(client).unwrap()
    })
    .await;
    assert_eq!(receive(&mut stream, 4).await, b"then");
    close(stream).await;
    assert_eq!(client.join().unwrap(), b"");
}

#[tokio::test]
async fn a_client_that_ends_gets_its_tickets_with_our_end() {
    let (mut stream, client) = connect(SUITE, |client| {
        client.conn.complete_io(&mut client.sock).unwrap();
        client.conn.send_close_notify();
        client.flush().unwrap();
        let received = read_to_close_notify(client).unwrap();
        (received, client.conn.tls13_tickets_received())
    })
    .await;
    assert_eq!(fill(&mut stream).await.unwrap(), Filled::Closed);
    close(stream).await;
    let (received, tickets) = client.join().unwrap();
    assert_eq!(received, b"");
    assert!(tickets > 0);
}

#[tokio::test]
async fn a_flush_holds_nothing_back() {
    let (mut stream, client) = connect(SUITE, |client| read_to_close_notify(client).unwrap()).await;
    flush(&mut stream).await;
    assert_eq!(stream.queued_bytes(), 0);
    close(stream).await;
    assert_eq!(client.join().unwrap(), b"");
}
