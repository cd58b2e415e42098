//! The stream as tokio's traits know it: an echo, HTTP/2; and how each way of ending looks from the other side.

#![allow(clippy::disallowed_methods, reason = "tasks of a test, not a worker's connections")]

use std::io::{ErrorKind, IoSlice};
use std::net::{TcpListener, TcpStream};

use bytes::Bytes;
use kettle_tls::connector::ResumeBy;
use kettle_tls::stream::Stream;
use kettle_tls::{Cipher, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};

use crate::client::{connector, offer};
use crate::harness::{accept, pattern};

/// Both ends of a connection: who connected, who accepted.
async fn pair() -> (Box<Stream>, Box<Stream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = tokio::net::TcpStream::from_std(socket).unwrap();
    let offer = offer(Version::Tls13, Cipher::Aes128Gcm, ResumeBy::Nothing);
    let connector = connector(&offer);
    let connect = Stream::connect(socket, &connector);
    let (accepted, connected) = tokio::join!(accept(&listener), connect);
    (connected.unwrap(), accepted)
}

/// Sends back what it receives, and ends when the other side does.
async fn echo(stream: Box<Stream>) {
    let (mut reader, mut writer) = split(stream);
    copy(&mut reader, &mut writer).await.unwrap();
    writer.shutdown().await.unwrap();
}

/// Sends all of it and says so, while it receives what comes back.
async fn say_and_hear(stream: Box<Stream>, bytes: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = split(stream);
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
async fn an_echo_comes_back_whole() {
    let (client, server) = pair().await;
    let echoing = tokio::spawn(echo(server));
    let bytes = pattern(3_000_000);
    assert!(say_and_hear(client, &bytes).await == bytes);
    echoing.await.unwrap();
}

#[tokio::test]
async fn http2_speaks_over_it() {
    let (client, server) = pair().await;
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
    assert!(received == pattern(200_000));
    drop((sender, body));
    driving.await.unwrap().unwrap();
    serving.await.unwrap();
}

#[tokio::test]
async fn a_clean_end_is_told_from_a_cut() {
    for is_clean in [true, false] {
        let (mut client, mut server) = pair().await;
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
    let (mut client, mut server) = pair().await;
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

#[tokio::test]
async fn empty_pieces_do_not_hide_those_behind_them() {
    let (mut client, mut server) = pair().await;
    let mut pieces = [IoSlice::new(b""); 40];
    pieces[39] = IoSlice::new(b"behind");
    assert_eq!(client.write_vectored(&pieces).await.unwrap(), 6);
    client.flush().await.unwrap();
    let mut received = [0; 6];
    server.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"behind");
}
