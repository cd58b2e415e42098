//! The bytes of a handshake that are received before it is over, on either side.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::task::Poll;

use super::{Peer, TcpStream, server_of, sockets};
use crate::acceptors::Acceptor;
use crate::connector::{Connector, ConnectorSettings, ResumeBy, Trust};
use crate::pin::Pin;
use crate::policy::Policy;
use crate::stream::accept::{HANDSHAKE_BYTES_MAX, TOO_MUCH};
use crate::stream::{Accepting, ClosingSocket, ConnectStep, Connecting, Handshaking, StreamError};

/// Says so much, and ends.
fn speak(mut peer: Peer, bytes: usize) -> std::thread::JoinHandle<Peer> {
    std::thread::spawn(move || {
        peer.write_all(&vec![22; bytes]).expect("sent");
        peer.shutdown(Shutdown::Write).expect("ended");
        peer
    })
}

fn accepting(socket: TcpStream, received: &[u8]) -> Accepting {
    let acceptor = Acceptor::new(&server_of(), &Policy::default().versions);
    Accepting::begin(socket, received, &acceptor.into()).expect("begun")
}

fn failure(handshaking: Handshaking) -> (StreamError, ClosingSocket) {
    match handshaking {
        Handshaking::Failed(error, closing) => (error, closing),
        _ => panic!("an honest client"),
    }
}

#[tokio::test]
async fn a_client_says_no_more_than_a_handshake_needs() {
    for (before, later, is_too_much) in [
        (HANDSHAKE_BYTES_MAX, 0, false),
        (HANDSHAKE_BYTES_MAX, 1, true),
        (0, HANDSHAKE_BYTES_MAX, false),
        (0, HANDSHAKE_BYTES_MAX + 1, true),
    ] {
        let (socket, peer) = sockets();
        let peer = speak(peer, later);
        let mut accepting = accepting(socket, &vec![22; before]);
        while poll_fn(|context| accepting.poll_progress(context)).await.is_ok() {}
        let (error, _closing) = failure(accepting.advance());
        assert_eq!(
            error.reason() == "peer_misbehaved" && error.to_string().contains(TOO_MUCH.what),
            is_too_much,
            "{error}"
        );
        drop(peer.join().expect("sent"));
    }
}

#[tokio::test]
async fn a_server_says_no_more_than_a_handshake_needs() {
    let settings = ConnectorSettings {
        trust: Trust::pins(&[Pin([0; 32])]),
        name: Some("a.example"),
        identity: None,
        alpn: &[],
        resume_by: ResumeBy::Nothing,
    };
    let connector = Connector::new(&Policy::default(), settings).expect("a connector");
    for (bytes, is_too_much) in [(HANDSHAKE_BYTES_MAX, false), (HANDSHAKE_BYTES_MAX + 1, true)] {
        let (socket, peer) = sockets();
        let peer = speak(peer, bytes);
        let mut connecting = Connecting::begin(socket, &connector, None).expect("begun");
        while poll_fn(|context| connecting.poll_progress(context)).await.is_ok() {}
        let ConnectStep::Failed(error, _closing) = connecting.advance() else {
            panic!("an honest server")
        };
        assert_eq!(error.to_string().contains(TOO_MUCH.what), is_too_much, "{error}");
        drop(peer.join().expect("sent"));
    }
}

#[tokio::test]
async fn what_failed_is_told_and_the_peers_end_waited_for() {
    let (socket, mut peer) = sockets();
    let mut accepting = accepting(socket, &[]);
    let is_pending = poll_fn(|context| Poll::Ready(accepting.poll_progress(context).is_pending()));
    assert!(is_pending.await, "nothing has come");
    peer.write_all(b"\x17\x03\x03\x00\x01?").expect("sent");
    poll_fn(|context| accepting.poll_progress(context)).await.expect("received");
    let (_, mut closing) = failure(accepting.advance());
    for _ in 0..2 {
        let closed = poll_fn(|context| Poll::Ready(closing.poll_close(context))).await;
        assert!(closed.is_pending(), "{closed:?}");
    }
    let mut told = Vec::new();
    peer.read_to_end(&mut told).expect("an end");
    assert_eq!(told[0], 21, "an alert");
    drop(peer);
    poll_fn(|context| closing.poll_close(context)).await.expect("closed");
}
