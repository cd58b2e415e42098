//! Bodies that a client drops unopened, and bodies that it looks at where they were opened.

use std::future::poll_fn;
use std::io::Write;

use kettle_tls::connector::ResumeBy;
use kettle_tls::stream::{Filled, Stream, StreamError};

use crate::client::{Server, connect, connector, offer, serve, tls12};
use crate::harness::{SUITES, fill, pattern, server_config};

/// Receives a body of `bytes` bytes, drops as many as possible unopened and compares the others; returns how many were
/// dropped and how many opened.
async fn discard(stream: &mut Stream, bytes: usize) -> Result<(usize, usize), StreamError> {
    let body = pattern(bytes + 16_384);
    let mut dropped = 0;
    let mut opened = 0;
    loop {
        let received = stream.received().bytes();
        let place = dropped + opened;
        assert!(received == &body[place..place + received.len()], "other bytes at {place}");
        opened += received.len();
        stream.consume(stream.received().bytes().len());
        let left = bytes.saturating_sub(dropped + opened);
        if left == 0 {
            return Ok((dropped, opened));
        }
        match poll_fn(|context| stream.poll_discard(context, left as u64)).await? {
            0 => assert_eq!(fill(stream).await?, Filled::Data),
            bytes => dropped += bytes as usize,
        }
    }
}

/// Sends `bodies` one after the other, each after a byte of the client, and changes keys in between.
fn send_bodies(server: &mut Server, bodies: &[usize]) {
    let _ = server.conn.complete_io(&mut server.sock);
    for &bytes in bodies {
        std::io::Read::read_exact(server, &mut [0; 1]).unwrap();
        server.write_all(&pattern(bytes)).unwrap();
        // TLS 1.2 has no KeyUpdate.
        let _ = server.conn.refresh_traffic_keys();
    }
    // Closing with unread bytes, an answer to the KeyUpdate, would reset the connection.
    let _ = std::io::copy(server, &mut std::io::sink());
}

#[tokio::test]
async fn every_byte_is_dropped_once_and_what_is_opened_is_right() {
    const BODIES: [usize; 8] = [1, 4_095, 4_096, 16_384, 16_385, 20_480, 100_000, 1_000_000];
    for (version, cipher, suite) in SUITES {
        let server = serve(server_config(), 1, |server| send_bodies(server, &BODIES));
        let connector = connector(&offer(version, cipher, ResumeBy::Nothing));
        let mut stream = connect(server.address, &connector).await;
        for bytes in BODIES {
            stream.seal(&[b"?"]).unwrap();
            poll_fn(|context| stream.poll_flush(context)).await.unwrap();
            let (dropped, opened) = discard(&mut stream, bytes).await.unwrap();
            assert_eq!(dropped + opened, bytes, "{suite:?}");
            // Bytes that were read together with a ticket or a KeyUpdate are opened, and the short end of a body.
            assert!(bytes < 100_000 || dropped > bytes / 2, "{suite:?}: {dropped} of {bytes}");
        }
        drop(stream);
        server.thread.join().unwrap();
    }
}

#[tokio::test]
async fn no_more_is_dropped_than_asked_for() {
    let server = serve(server_config(), 1, |server| send_bodies(server, &[40_000]));
    let mut stream = connect(server.address, &connector(&tls12())).await;
    stream.seal(&[b"?"]).unwrap();
    poll_fn(|context| stream.poll_flush(context)).await.unwrap();
    let (dropped, opened) = discard(&mut stream, 30_000).await.unwrap();
    // The second record reaches beyond, so it was opened as a whole.
    assert_eq!((dropped, opened), (16_384, 16_384));
    drop(stream);
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_connection_that_ends_inside_a_dropped_record_is_an_error() {
    let server = serve(server_config(), 1, |server| {
        let _ = server.conn.complete_io(&mut server.sock);
        server.conn.writer().write_all(&pattern(16_384)).unwrap();
        let mut record = Vec::new();
        server.conn.write_tls(&mut record).unwrap();
        server.sock.write_all(&record[..10_000]).unwrap();
    });
    let mut stream = connect(server.address, &connector(&tls12())).await;
    let error = discard(&mut stream, 16_384).await.unwrap_err();
    assert!(matches!(error.reason(), "unexpected_eof" | "reset"), "{error}");
    server.thread.join().unwrap();
}

#[tokio::test]
async fn a_body_is_shown_record_by_record_and_not_kept() {
    for (version, cipher, suite) in SUITES {
        let server = serve(server_config(), 1, |server| send_bodies(server, &[300_000]));
        let connector = connector(&offer(version, cipher, ResumeBy::Nothing));
        let mut stream = connect(server.address, &connector).await;
        stream.seal(&[b"?"]).unwrap();
        poll_fn(|context| stream.poll_flush(context)).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < 300_000 {
            let mut see = |plaintext: &[u8]| seen.extend_from_slice(plaintext);
            let filled = poll_fn(|context| stream.poll_visit(context, &mut see)).await;
            assert_eq!(filled.unwrap(), Filled::Data);
            assert!(stream.received().bytes().is_empty());
        }
        assert!(seen == pattern(300_000), "{suite:?}");
        drop(stream);
        server.thread.join().unwrap();
    }
}
