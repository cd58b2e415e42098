//! Bytes that were read before the handshake, given in: a peeked hello, and whatever stood behind it.

use std::io::{Read, Write};

use kettle_tls::stream::Accepting;
use rustls::Stream;

use crate::harness::{SUITES, acceptor, client_of, flush, handshake, receive, sockets};

#[tokio::test]
async fn hello_may_have_been_read_before_in_whole_or_in_part() {
    for (_, _, suite) in SUITES {
        for part in [0, 1, 4, 5, 6, 100, usize::MAX] {
            let (socket, mut peer) = sockets();
            let mut client = client_of(suite);
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let (before, after) = hello.split_at(part.min(hello.len()));
            let before = before.to_vec();
            let after = after.to_vec();
            let thread = std::thread::spawn(move || {
                peer.write_all(&after).unwrap();
                let mut stream = Stream::new(&mut client, &mut peer);
                stream.write_all(b"ping").unwrap();
                let mut answer = [0; 4];
                stream.read_exact(&mut answer).unwrap();
                answer
            });
            let accepting = Accepting::begin(socket, &before, &acceptor().into()).unwrap();
            let mut stream = handshake(accepting).await.unwrap();
            assert_eq!(receive(&mut stream, 4).await, b"ping");
            stream.seal(&[b"pong"]).unwrap();
            flush(&mut stream).await;
            assert_eq!(&thread.join().unwrap(), b"pong", "{suite:?} {part}");
        }
    }
}

#[tokio::test]
async fn half_a_record_behind_the_hello_is_not_lost() {
    let suite = rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
    // The client's change_cipher_spec may come any time (RFC 8446 §5): here half of it came with the hello.
    for half in 1..CHANGE_CIPHER_SPEC.len() {
        let (socket, mut peer) = sockets();
        let mut client = client_of(suite);
        let mut received = Vec::new();
        client.write_tls(&mut received).unwrap();
        let (before, after) = CHANGE_CIPHER_SPEC.split_at(half);
        received.extend_from_slice(before);
        let thread = std::thread::spawn(move || {
            peer.write_all(after).unwrap();
            while client.is_handshaking() {
                client.read_tls(&mut peer).unwrap();
                client.process_new_packets().unwrap();
            }
            let mut flight = Vec::new();
            client.writer().write_all(b"ping").unwrap();
            while client.wants_write() {
                client.write_tls(&mut flight).unwrap();
            }
            // Its own has been sent already.
            peer.write_all(flight.strip_prefix(&CHANGE_CIPHER_SPEC).unwrap()).unwrap();
            peer
        });
        let accepting = Accepting::begin(socket, &received, &acceptor().into()).unwrap();
        let mut stream = handshake(accepting).await.unwrap();
        assert_eq!(receive(&mut stream, 4).await, b"ping", "{half}");
        drop(thread.join().unwrap());
    }
}

const CHANGE_CIPHER_SPEC: [u8; 6] = [20, 3, 3, 0, 1, 1];
