//! The accidents of a handshake's bytes on their way.

use std::io::{self, Write};

use rustls::sign::SingleCertAndKey;
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Carries bytes both ways, `piece_bytes` at a time towards the client, and ends both after `bytes_max` of these.
async fn relay(client: TcpStream, server: TcpStream, piece_bytes: usize, bytes_max: usize) {
    client.set_nodelay(true).expect("an option");
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async { tokio::io::copy(&mut from_client, &mut to_server).await.map(|_| ()) };
    let down = async {
        let mut left_bytes = bytes_max;
        while left_bytes > 0 {
            let mut room = vec![0; piece_bytes.min(left_bytes)];
            let bytes = from_server.read(&mut room).await?;
            if bytes == 0 {
                break;
            }
            left_bytes -= bytes;
            to_client.write_all(&room[..bytes]).await?;
            // So that the client sees it before more comes.
            tokio::task::yield_now().await;
        }
        io::Result::Ok(())
    };
    tokio::select! {
        _ = up => {}
        _ = down => {}
    }
}

/// The two meet over a relay.
async fn meet_over(
    connector: &Connector,
    acceptors: &Acceptors,
    piece_bytes: usize,
    bytes_max: usize,
) -> (Outcome, Outcome) {
    let (client, front) = sockets().await;
    let (back, server) = sockets().await;
    let relayed = async {
        relay(front, back, piece_bytes, bytes_max).await;
        std::future::pending::<()>().await;
    };
    let met = async { tokio::join!(Stream::connect(client, connector), accept(server, acceptors)) };
    tokio::select! {
        outcome = met => outcome,
        () = relayed => unreachable!(),
    }
}

#[tokio::test]
async fn a_server_may_send_byte_by_byte() {
    let (authority, acceptors) = pair();
    for version in VERSIONS {
        let connector = connector(&only(version), trusting(&authority));
        for piece_bytes in [1, 2, 3, 100] {
            let outcome = meet_over(&connector, &acceptors, piece_bytes, usize::MAX).await;
            assert!(outcome.0.is_ok() && outcome.1.is_ok(), "{version:?} {piece_bytes}");
        }
    }
}

#[tokio::test]
async fn a_server_that_ends_in_the_handshake_is_told_from_other_errors() {
    let (authority, acceptors) = pair();
    for version in VERSIONS {
        let connector = connector(&only(version), trusting(&authority));
        for bytes_max in [0, 1, 5, 6, 100, 130, 500] {
            let (client, _) = meet_over(&connector, &acceptors, 4_096, bytes_max).await;
            let error = client.err().expect("no server");
            let reason = error.reason();
            assert!(matches!(reason, "unexpected_eof" | "reset" | "broken_pipe"), "{error}");
        }
    }
}

/// The client's outcome with somebody who answers the hello with these bytes.
pub(super) async fn answered_with(connector: &Connector, answer: &[u8]) -> StreamError {
    let (client, mut server) = sockets().await;
    let answering = async {
        let mut hello = [0; 16_384];
        let _ = server.read(&mut hello).await;
        let _ = server.write_all(answer).await;
        let _ = server.shutdown().await;
        let _ = server.read_to_end(&mut Vec::new()).await;
    };
    let connecting = async { Stream::connect(client, connector).await };
    tokio::join!(connecting, answering).0.err().expect("no handshake")
}

#[tokio::test]
async fn what_is_not_a_servers_handshake_is_refused() {
    let authority = Authority::new("ca.example");
    let connector = connector(&Policy::default(), trusting(&authority));
    let rows: [(&[u8], &str); 5] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not_tls"),
        (b"220 mail.example ESMTP\r\n", "not_tls"),
        (&[21, 3, 3, 0, 2, 2, 40], "alert_received"),
        (&[22, 3, 3, 0, 0], "not_tls"),
        (&[23, 3, 3, 0, 1, 0], "peer_misbehaved"),
    ];
    for (answer, reason) in rows {
        let error = answered_with(&connector, answer).await;
        assert_eq!(error.reason(), reason, "{error} for {}", answer.escape_ascii());
    }
}

/// The handshake of a server that holds back its last flight, to send it with what follows.
async fn accept_silently(socket: TcpStream, acceptors: &Acceptors) -> Box<Stream> {
    let mut accepting = Accepting::begin(socket, &[], acceptors).expect("a start");
    loop {
        poll_fn(|context| accepting.poll_progress(context)).await.expect("bytes");
        match accepting.advance() {
            Handshaking::Continues(next) => accepting = next,
            Handshaking::Complete(stream) => return stream,
            _ => panic!("no handshake"),
        }
    }
}

#[tokio::test]
async fn what_comes_in_one_read_with_the_last_flight_is_not_lost() {
    let (authority, acceptors) = pair();
    for version in VERSIONS {
        let connector = connector(&only(version), trusting(&authority));
        let (client, server) = sockets().await;
        let talking = async {
            let mut server = accept_silently(server, &acceptors).await;
            server.seal(&[b"behind"]).expect("a record");
            server.queue_close_notify();
            poll_fn(|context| server.poll_close(context)).await.expect("room");
            server
        };
        let hearing = async {
            let mut client = Stream::connect(client, &connector).await.expect("a client");
            hear(&mut client, b"behind").await;
            assert_eq!(fill(&mut client).await.expect("an end"), Filled::Closed);
        };
        tokio::join!(talking, hearing);
    }
}

async fn hear(client: &mut Stream, word: &[u8]) {
    while client.received().bytes().len() < word.len() {
        assert_eq!(fill(client).await.expect("data"), Filled::Data);
    }
    assert_eq!(client.received().bytes(), word);
    client.consume(word.len());
}

/// Sends what a server of rustls has to say.
async fn flush_rustls(server: &mut ServerConnection, socket: &mut TcpStream) {
    let mut wire = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut wire).expect("memory");
    }
    socket.write_all(&wire).await.expect("room");
}

#[tokio::test]
async fn a_server_may_speak_before_the_clients_finished() {
    let (authority, identity) = vouched();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(identity.certified()))));
    config.send_half_rtt_data = true;
    let mut server = ServerConnection::new(config.into()).expect("a server");
    let connector = connector(&only(Version::Tls13), trusting(&authority));
    let (client, mut socket) = sockets().await;
    let talking = async {
        let mut room = [0; 16_384];
        let mut is_greeted = false;
        loop {
            let bytes = socket.read(&mut room).await.expect("bytes");
            server.read_tls(&mut &room[..bytes]).expect("memory");
            server.process_new_packets().expect("a good client");
            if !is_greeted {
                // In the flight of the ServerHello.
                server.writer().write_all(b"220 ready").expect("memory");
                is_greeted = true;
            }
            flush_rustls(&mut server, &mut socket).await;
            if !server.is_handshaking() {
                return;
            }
        }
    };
    let hearing = async {
        let mut client = Stream::connect(client, &connector).await.expect("a client");
        hear(&mut client, b"220 ready").await;
    };
    tokio::join!(talking, hearing);
}

#[tokio::test]
async fn the_steps_can_be_taken_one_by_one() {
    use crate::stream::{ConnectStep, Connecting};
    let (authority, acceptors) = pair();
    let connector = connector(&only(Version::Tls13), trusting(&authority));
    let (client, server) = sockets().await;
    let stepping = async {
        let mut connecting = Connecting::begin(client, &connector, None).expect("a start");
        loop {
            poll_fn(|context| connecting.poll_progress(context)).await.expect("bytes");
            match connecting.advance() {
                ConnectStep::Continues(next) => connecting = next,
                ConnectStep::Complete { mut stream, took_early_data } => {
                    poll_fn(|context| stream.poll_flush(context)).await.expect("room");
                    assert!(!took_early_data);
                    return stream;
                }
                ConnectStep::Failed(error, _) => panic!("{error}"),
            }
        }
    };
    let (mut client, server) = tokio::join!(stepping, accept(server, &acceptors));
    talk(&mut client, &mut server.expect("a server")).await;
}
