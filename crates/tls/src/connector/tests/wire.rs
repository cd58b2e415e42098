//! What can happen to the bytes of a handshake on their way.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

fn pair() -> (Authority, Acceptors) {
    let authority = Authority::new("ca.example");
    let acceptors = serving(&signed(&authority, &lasting(&["a.example"])));
    (authority, acceptors)
}

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
    let met =
        async { tokio::join!(TlsStream::connect(client, connector), accept(server, acceptors)) };
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
async fn answered_with(connector: &Connector, answer: &[u8]) -> StreamError {
    let (client, mut server) = sockets().await;
    let answering = async {
        let mut hello = [0; 16_384];
        let _ = server.read(&mut hello).await;
        let _ = server.write_all(answer).await;
        let _ = server.read_to_end(&mut Vec::new()).await;
    };
    let connecting = async { TlsStream::connect(client, connector).await };
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

#[tokio::test]
async fn a_handshake_without_end_is_cut() {
    let authority = Authority::new("ca.example");
    let connector = connector(&Policy::default(), trusting(&authority));
    // A message that goes on and on, and warnings.
    let long = [&[22, 3, 3, 64, 0, 2, 255, 255, 255][..], &[0; 16_380]].concat();
    for record in [&long[..], &[21, 3, 3, 0, 2, 1, 90]] {
        let answer = record.repeat(400_000 / record.len());
        let error = answered_with(&connector, &answer).await;
        assert!(matches!(error, StreamError::Handshake(_)), "{error}");
    }
}

#[tokio::test]
async fn what_follows_the_servers_finished_at_once_is_not_lost() {
    let (authority, acceptors) = pair();
    for version in VERSIONS {
        let connector = connector(&only(version), trusting(&authority));
        let (client, front) = sockets().await;
        let (back, server) = sockets().await;
        // Nothing of the server's last words is passed on until all of them are there.
        let talking = async {
            let mut server = accept(server, &acceptors).await.expect("a server");
            server.seal(&[b"behind the Finished"]).expect("a record");
            server.queue_close_notify();
            poll_fn(|context| server.poll_close(context)).await.expect("room");
            server
        };
        let hearing = async {
            let mut client = TlsStream::connect(client, &connector).await.expect("a client");
            while client.received().bytes().len() < 19 {
                assert_eq!(fill(&mut client).await.expect("data"), Fill::Data);
            }
            assert_eq!(client.received().bytes(), b"behind the Finished");
            client.consume(19);
            assert_eq!(fill(&mut client).await.expect("an end"), Fill::Closed);
        };
        let relaying = relay(front, back, 65_536, usize::MAX);
        let done = async { tokio::join!(talking, hearing) };
        tokio::select! {
            _ = done => {}
            () = async { relaying.await; std::future::pending::<()>().await } => {}
        }
    }
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
            poll_fn(|context| connecting.poll_exchange(context)).await.expect("bytes");
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
