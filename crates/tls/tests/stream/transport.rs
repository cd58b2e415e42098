//! What `Transport` carries: an echo, a relay, HTTP/2, files; and how each way of ending looks from the other side.

#![allow(clippy::disallowed_methods, reason = "tasks of a test, not a worker's connections")]

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use bytes::Bytes;
use kettle_tls::connector::ResumeBy;
use kettle_tls::stream::TlsStream;
use kettle_tls::transport::Transport;
use kettle_tls::{Cipher, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional, split};

use crate::client::{connector, offer};
use crate::harness::{accept, has_ktls, pattern};

/// Both ends of a connection, with TLS or without: who connected, who accepted.
async fn pair(is_tls: bool) -> (Transport, Transport) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = tokio::net::TcpStream::from_std(socket).unwrap();
    if is_tls {
        let offer = offer(Version::Tls13, Cipher::Aes128Gcm, ResumeBy::Nothing);
        let connector = connector(&offer);
        let connect = TlsStream::connect(socket, &connector);
        let (accepted, connected) = tokio::join!(accept(&listener), connect);
        (Transport::Tls(connected.unwrap()), Transport::Tls(accepted))
    } else {
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let accepted = tokio::net::TcpStream::from_std(accepted).unwrap();
        (Transport::Plain(socket), Transport::Plain(accepted))
    }
}

/// Sends back what it receives, and ends when the other side does.
async fn echo(transport: Transport) {
    let (mut reader, mut writer) = split(transport);
    copy(&mut reader, &mut writer).await.unwrap();
    writer.shutdown().await.unwrap();
}

/// Carries bytes both ways until both sides have ended.
async fn relay(mut client: Transport, mut backend: Transport) {
    copy_bidirectional(&mut client, &mut backend).await.unwrap();
}

/// Sends all of it and says so, while it receives what comes back.
async fn say_and_hear(transport: Transport, bytes: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = split(transport);
    let say = async {
        writer.write_all(bytes).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut heard = Vec::new();
    let (_, outcome) = tokio::join!(say, reader.read_to_end(&mut heard));
    outcome.unwrap();
    heard
}

#[tokio::test]
async fn an_echo_does_not_ask_what_carries_it() {
    for is_tls in [false, true] {
        let (client, server) = pair(is_tls).await;
        let echoing = tokio::spawn(echo(server));
        let bytes = pattern(3_000_000);
        assert!(say_and_hear(client, &bytes).await == bytes, "TLS: {is_tls}");
        echoing.await.unwrap();
    }
}

#[tokio::test]
async fn a_relay_joins_any_two() {
    for (is_client_tls, is_backend_tls) in
        [(false, false), (true, false), (false, true), (true, true)]
    {
        let (client, front) = pair(is_client_tls).await;
        let (back, backend) = pair(is_backend_tls).await;
        let relaying = tokio::spawn(relay(front, back));
        let echoing = tokio::spawn(echo(backend));
        let bytes = pattern(1_000_003);
        assert!(say_and_hear(client, &bytes).await == bytes);
        relaying.await.unwrap();
        echoing.await.unwrap();
    }
}

#[tokio::test]
async fn http2_speaks_over_it() {
    for is_tls in [false, true] {
        let (client, server) = pair(is_tls).await;
        let serving = tokio::spawn(async move {
            let mut connection = h2::server::handshake(server).await.unwrap();
            while let Some(accepted) = connection.accept().await {
                let (request, mut answer) = accepted.unwrap();
                assert_eq!(request.uri().path(), "/large");
                let mut body = answer.send_response(http::Response::new(()), false).unwrap();
                body.send_data(Bytes::from(pattern(200_000)), true).unwrap();
            }
        });
        let (sender, connection) = h2::client::handshake(client).await.unwrap();
        let driving = tokio::spawn(connection);
        let mut sender = sender.ready().await.unwrap();
        let request = http::Request::get("https://localhost/large").body(()).unwrap();
        let (response, _) = sender.send_request(request, true).unwrap();
        let mut body = response.await.unwrap().into_body();
        let mut received = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece.unwrap();
            body.flow_control().release_capacity(piece.len()).unwrap();
            received.extend_from_slice(&piece);
        }
        assert!(received == pattern(200_000), "TLS: {is_tls}");
        drop((sender, body));
        driving.await.unwrap().unwrap();
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn a_clean_end_is_told_from_a_cut() {
    for is_clean in [true, false] {
        let (mut client, mut server) = pair(true).await;
        server.write_all(b"all of it?").await.unwrap();
        server.flush().await.unwrap();
        if is_clean {
            server.shutdown().await.unwrap();
        } else {
            drop(server);
        }
        let mut received = Vec::new();
        let end = client.read_to_end(&mut received).await.map_err(|error| error.kind());
        assert_eq!(received, b"all of it?");
        assert_eq!(end, if is_clean { Ok(10) } else { Err(ErrorKind::UnexpectedEof) });
    }
}

#[tokio::test]
async fn one_side_may_end_before_the_other() {
    for is_tls in [false, true] {
        let (mut client, mut server) = pair(is_tls).await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = Vec::new();
        server.read_to_end(&mut question).await.unwrap();
        assert_eq!(question, b"question");
        server.write_all(b"answer").await.unwrap();
        server.shutdown().await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"answer");
        let refused = client.write(b"more").await;
        assert!(refused.is_err(), "written after the end");
    }
}

/// Sends spans of a file of 300,000 bytes, one of them beyond its end.
async fn files(is_tls: bool, offload: Option<bool>) {
    let mut file = tempfile::tempfile().unwrap();
    let content = pattern(300_000);
    file.write_all(&content).unwrap();
    let (mut client, mut server) = pair(is_tls).await;
    if let (Transport::Tls(stream), Some(can_rekey)) = (&mut server, offload) {
        poll_fn(|context| stream.poll_offload(context, can_rekey)).await.unwrap();
    }
    let sending = tokio::spawn(async move {
        server.write_all(b"head").await.unwrap();
        for span in [0..0, 0..1, 16_383..16_385, 5..300_000] {
            server.send_file(file.as_fd(), span).await.unwrap();
        }
        server.write_all(b"tail").await.unwrap();
        let cut = server.send_file(file.as_fd(), 299_999..300_001).await;
        assert_eq!(cut.map_err(|error| error.kind()), Err(ErrorKind::UnexpectedEof));
        server.shutdown().await.unwrap();
    });
    let mut received = Vec::new();
    client.read_to_end(&mut received).await.unwrap();
    let last = &content[299_999..];
    let spans = [&content[..1], &content[16_383..16_385], &content[5..]].concat();
    assert!(received == [b"head", &spans[..], b"tail", last].concat());
    sending.await.unwrap();
}

#[tokio::test]
async fn files_go_through_it() {
    files(false, None).await;
    files(true, None).await;
}

#[tokio::test]
async fn files_go_through_it_and_the_kernel() {
    let Some(capabilities) = has_ktls("files_go_through_it_and_the_kernel") else { return };
    files(true, Some(capabilities.carries_rekey())).await;
}

#[tokio::test]
async fn empty_pieces_do_not_hide_those_behind_them() {
    for is_tls in [false, true] {
        let (mut client, mut server) = pair(is_tls).await;
        let mut pieces = [IoSlice::new(b""); 40];
        pieces[39] = IoSlice::new(b"behind");
        assert_eq!(client.write_vectored(&pieces).await.unwrap(), 6);
        client.flush().await.unwrap();
        let mut received = [0; 6];
        server.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"behind");
    }
}
