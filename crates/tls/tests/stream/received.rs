//! Bytes that were read before the handshake, given in: a peeked hello, and whatever stood behind it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use kettle_tls::stream::Accepting;
use rustls::{ClientConfig, ClientConnection, Stream};
use rustls_pki_types::ServerName;

use crate::harness::{AnyCertificate, SUITES, acceptor, flush, handshake, provider_of, receive};

/// Returns the first bytes of a client that reads nothing yet, and the connection from which they come.
fn client(suite: rustls::CipherSuite) -> ClientConnection {
    let config = ClientConfig::builder_with_provider(provider_of(suite).into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    ClientConnection::new(config.into(), ServerName::try_from("localhost").unwrap()).unwrap()
}

#[tokio::test]
async fn hello_may_have_been_read_before_in_whole_or_in_part() {
    for (_, _, suite) in SUITES {
        for part in [0, 1, 4, 5, 6, 100, usize::MAX] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (socket, _) = listener.accept().unwrap();
            let mut client = client(suite);
            let mut hello = Vec::new();
            client.write_tls(&mut hello).unwrap();
            let (before, after) = hello.split_at(part.min(hello.len()));
            let (before, after) = (before.to_vec(), after.to_vec());
            let thread = std::thread::spawn(move || {
                peer.write_all(&after).unwrap();
                let mut stream = Stream::new(&mut client, &mut peer);
                stream.write_all(b"ping").unwrap();
                let mut answer = [0; 4];
                stream.read_exact(&mut answer).unwrap();
                answer
            });
            socket.set_nonblocking(true).unwrap();
            let socket = tokio::net::TcpStream::from_std(socket).unwrap();
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let mut client = client(suite);
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
        socket.set_nonblocking(true).unwrap();
        let socket = tokio::net::TcpStream::from_std(socket).unwrap();
        let accepting = Accepting::begin(socket, &received, &acceptor().into()).unwrap();
        let mut stream = handshake(accepting).await.unwrap();
        assert_eq!(receive(&mut stream, 4).await, b"ping", "{half}");
        drop(thread.join().unwrap());
    }
}

const CHANGE_CIPHER_SPEC: [u8; 6] = [20, 3, 3, 0, 1, 1];
