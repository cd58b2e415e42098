//! Records that the kernel encrypts. Skipped without kTLS, except where a runner must have it.

use std::collections::HashSet;
use std::future::poll_fn;
use std::io::{IoSlice, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::thread::JoinHandle;

use kettle_kernel::pipe::Pipe;
use kettle_kernel::tls_stat;
use kettle_tls::connector::ResumeBy;
use kettle_tls::stream::{Filled, Stream, StreamError};
use kettle_tls::{Acceptor, Cipher, Resumption, Version};
use rustls::crypto::aws_lc_rs::Ticketer;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::client::{connector, offer};
use crate::harness::{
    SUITES, accept_with, close, connect, flush, has_ktls, pattern, read_to_close_notify, receive,
    server_config, sockets,
};

async fn kernel_write(stream: &mut Stream, mut bytes: &[u8], more: bool) {
    while !bytes.is_empty() {
        let sent =
            poll_fn(|context| stream.poll_kernel_write(context, &[IoSlice::new(bytes)], more))
                .await
                .unwrap();
        bytes = &bytes[sent..];
    }
}

async fn kernel_sendfile(stream: &mut Stream, file: &std::fs::File, bytes: u64) {
    let mut offset = 0;
    while offset < bytes {
        let left = (bytes - offset) as usize;
        let sent = poll_fn(|context| {
            stream.poll_kernel_sendfile(context, file.as_fd(), &mut offset, left)
        })
        .await
        .unwrap();
        assert!(sent > 0, "the file is long enough");
    }
}

#[tokio::test]
async fn the_switch_loses_nothing_at_any_moment_of_a_connections_life() {
    let Some(capabilities) = has_ktls() else { return };
    let mut file = tempfile::tempfile().unwrap();
    let content = pattern(100_003);
    file.write_all(&content).unwrap();
    for (version, cipher, suite) in SUITES {
        assert!(capabilities.carries_tx(version, cipher), "{suite:?}");
        for records_before in [0, 1, 2, 7] {
            let offloaded_before = tls_stat::read().unwrap().count("TlsTxSw");
            let (mut stream, client) = connect(suite, move |client| {
                client.write_all(b"request").unwrap();
                let received = read_to_close_notify(client).unwrap();
                (received, client.sock.records())
            })
            .await;
            receive(&mut stream, 7).await;
            for _ in 0..records_before {
                stream.seal(&[b"user "]).unwrap();
                flush(&mut stream).await;
            }
            let can_rekey = capabilities.carries_rekey();
            poll_fn(|context| stream.poll_offload(context, can_rekey)).await.unwrap();
            assert!(stream.is_offloaded());
            kernel_write(&mut stream, b"head", true).await;
            kernel_sendfile(&mut stream, &file, content.len() as u64).await;
            kernel_write(&mut stream, b"tail", false).await;
            close(stream).await;
            let (received, records) = client.join().unwrap();
            let expected =
                [&b"user ".repeat(records_before), &b"head"[..], &content, b"tail"].concat();
            assert!(received == expected, "{suite:?} after {records_before} records");
            let offloaded = tls_stat::read().unwrap().count("TlsTxSw");
            assert!(offloaded > offloaded_before, "the kernel did not encrypt: {offloaded:?}");
            if version == Version::Tls12 && cipher != Cipher::Chacha20Poly1305 {
                assert_no_nonce_twice(&records);
            }
        }
    }
}

#[tokio::test]
async fn a_client_moves_into_the_kernel_as_a_server_does() {
    let Some(capabilities) = has_ktls() else { return };
    let content = pattern(100_003);
    for (version, cipher, suite) in SUITES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connector = connector(&offer(version, cipher, ResumeBy::Ticket));
        let mut config = server_config();
        config.ticketer = Ticketer::new().unwrap();
        let acceptor = Acceptor::new(&config, &[version]);
        // In the second session the Finished come in another order.
        for resumed in [Resumption::Full, Resumption::Ticket] {
            let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let connect = Stream::connect(socket, &connector);
            let accept = async {
                let mut server = accept_with(&listener, &acceptor).await;
                flush(&mut server).await;
                server
            };
            let (client, server) = tokio::join!(connect, accept);
            let mut client = client.unwrap();
            let mut server = server;
            assert_eq!(client.session().unwrap().resumed, resumed, "{suite:?}");
            server.seal(&[b"hello"]).unwrap();
            flush(&mut server).await;
            receive(&mut client, 5).await;
            client.seal(&[b"user "]).unwrap();
            let can_rekey = capabilities.carries_rekey();
            poll_fn(|context| client.poll_offload(context, can_rekey)).await.unwrap();
            assert!(client.is_offloaded());
            let send = async {
                kernel_write(&mut client, &content, false).await;
                close(client).await;
            };
            let hear = async { receive(&mut server, content.len() + 5).await };
            let ((), heard) = tokio::join!(send, hear);
            assert!(heard == [b"user ", &content[..]].concat(), "{suite:?} {resumed:?}");
        }
    }
}

#[tokio::test]
async fn what_a_backend_sends_goes_through_a_pipe() {
    let Some(capabilities) = has_ktls() else { return };
    let content = pattern(1_000_003);
    for (_, _, suite) in SUITES {
        let offloaded_before = tls_stat::read().unwrap().count("TlsTxSw");
        let (mut stream, client) = connect(suite, move |client| {
            let received = read_to_close_notify(client).unwrap();
            (received, client.sock.records())
        })
        .await;
        let can_rekey = capabilities.carries_rekey();
        poll_fn(|context| stream.poll_offload(context, can_rekey)).await.unwrap();
        let (backend, source) = backend_that_sends(content.clone());
        let mut pipe = Pipe::new(256 * 1_024).unwrap();
        loop {
            let filled =
                backend.async_io(Interest::READABLE, || pipe.fill(backend.as_fd(), usize::MAX));
            if filled.await.unwrap() == 0 {
                break;
            }
            while !pipe.is_empty() {
                poll_fn(|context| stream.poll_kernel_splice(context, &mut pipe, usize::MAX))
                    .await
                    .unwrap();
            }
        }
        source.join().unwrap();
        kernel_write(&mut stream, b"tail", false).await;
        close(stream).await;
        let (received, records) = client.join().unwrap();
        assert!(received == [&content[..], b"tail"].concat(), "{suite:?}");
        assert!(
            records.iter().all(|(_, body)| !body.windows(64).any(|part| content[..64] == *part))
        );
        assert!(tls_stat::read().unwrap().count("TlsTxSw") > offloaded_before);
    }
}

#[tokio::test]
async fn a_pipe_is_sent_only_by_a_kernel_that_has_the_key() {
    let (mut stream, client) =
        connect(SUITES[0].2, |client| read_to_close_notify(client).unwrap()).await;
    let (backend, source) = backend_that_sends(b"in the clear".to_vec());
    let mut pipe = Pipe::new(64 * 1_024).unwrap();
    let fill = || pipe.fill(backend.as_fd(), 100);
    assert_eq!(backend.async_io(Interest::READABLE, fill).await.unwrap(), 12);
    let refused = poll_fn(|context| stream.poll_kernel_splice(context, &mut pipe, 100)).await;
    assert!(matches!(refused, Err(StreamError::Bug(_))), "{refused:?}");
    assert_eq!(pipe.held_bytes(), 12);
    source.join().unwrap();
    close(stream).await;
    assert_eq!(client.join().unwrap(), b"");
}

/// A plain connection whose other end sends `bytes` and ends.
fn backend_that_sends(bytes: Vec<u8>) -> (TcpStream, JoinHandle<()>) {
    let (socket, mut source) = sockets();
    (socket, std::thread::spawn(move || source.write_all(&bytes).unwrap()))
}

/// In TLS 1.2 AES-GCM the nonce of a record is what it begins with.
fn assert_no_nonce_twice(records: &[(u8, Vec<u8>)]) {
    // The Finished is the first protected record: what follows ChangeCipherSpec.
    let protected = records.iter().skip_while(|(content_type, _)| *content_type != 20).skip(1);
    let nonces: Vec<&[u8]> = protected.map(|(_, body)| &body[..8]).collect();
    assert!(nonces.len() > 2);
    let distinct: HashSet<_> = nonces.iter().collect();
    assert_eq!(distinct.len(), nonces.len(), "a nonce was used twice: {nonces:02x?}");
}

#[tokio::test]
async fn requests_are_still_opened_after_the_switch() {
    let Some(capabilities) = has_ktls() else { return };
    for (_, _, suite) in SUITES {
        let (mut stream, client) = connect(suite, |client| {
            for _ in 0..3 {
                client.write_all(b"again").unwrap();
                let mut answer = [0; 2];
                std::io::Read::read_exact(client, &mut answer).unwrap();
            }
            client.conn.send_close_notify();
            client.flush().unwrap();
            read_to_close_notify(client).unwrap()
        })
        .await;
        for _ in 0..3 {
            assert_eq!(receive(&mut stream, 5).await, b"again");
            let can_rekey = capabilities.carries_rekey();
            poll_fn(|context| stream.poll_offload(context, can_rekey)).await.unwrap();
            kernel_write(&mut stream, b"ok", false).await;
        }
        close(stream).await;
        assert_eq!(client.join().unwrap(), b"");
    }
}

#[tokio::test]
async fn a_cut_waits_for_no_record_that_was_left_open() {
    if has_ktls().is_none() {
        return;
    }
    for (_, _, suite) in SUITES {
        let (mut stream, client) = connect(suite, |client| {
            let mut received = Vec::new();
            let end = std::io::Read::read_to_end(client, &mut received);
            (received, end.is_ok())
        })
        .await;
        poll_fn(|context| stream.poll_offload(context, false)).await.unwrap();
        kernel_write(&mut stream, b"whole", false).await;
        kernel_write(&mut stream, b"left open", true).await;
        stream.cut();
        poll_fn(|context| stream.poll_close(context)).await.unwrap();
        assert_eq!(client.join().unwrap(), (b"whole".to_vec(), false), "{suite:?}");
    }
}

/// Before Linux 6.14. Only the owner of the connection knows whether the close_notify that is due then is true.
#[tokio::test]
async fn a_key_that_the_kernel_cannot_change_ends_the_connection_one_way_or_the_other() {
    if has_ktls().is_none() {
        return;
    }
    for is_all in [true, false] {
        let (mut stream, client) = connect(SUITES[0].2, |client| {
            let mut sent = [0; 4];
            std::io::Read::read_exact(client, &mut sent).unwrap();
            client.write_all(b"data").unwrap();
            client.conn.refresh_traffic_keys().unwrap();
            client.write_all(b"under the next key").unwrap();
            (sent, read_to_close_notify(client))
        })
        .await;
        poll_fn(|context| stream.poll_offload(context, false)).await.unwrap();
        kernel_write(&mut stream, b"part", false).await;
        assert!(!stream.is_key_refused());
        let mut received: Vec<u8> = Vec::new();
        while poll_fn(|context| stream.poll_visit(context, |data| received.extend(data)))
            .await
            .unwrap()
            == Filled::Data
        {}
        assert!(stream.is_key_refused());
        assert_eq!(received, b"data");
        if !is_all {
            stream.cut();
        }
        poll_fn(|context| stream.poll_close(context)).await.unwrap();
        while let Ok(false) = poll_fn(|context| stream.poll_drain(context)).await {}
        let (sent, end) = client.join().unwrap();
        assert_eq!((&sent, end.is_ok()), (b"part", is_all));
    }
}

#[tokio::test]
async fn a_refused_switch_leaves_the_connection_in_user_space() {
    // The first attach is ours, behind the stream's back: the second is refused (EEXIST), and
    // no key was given up for it. Without kTLS the very first is.
    let (mut stream, client) = connect(SUITES[0].2, |client| {
        client.write_all(b"x").unwrap();
        read_to_close_notify(client).unwrap()
    })
    .await;
    receive(&mut stream, 1).await;
    flush(&mut stream).await;
    let _ = kettle_kernel::ktls::attach(stream.socket());
    let refused = poll_fn(|context| stream.poll_offload(context, false)).await;
    assert!(matches!(refused, Err(kettle_tls::stream::OffloadError::Refused(_))), "{refused:?}");
    assert!(!stream.is_offloaded());
    stream.seal(&[b"still here"]).unwrap();
    close(stream).await;
    assert_eq!(client.join().unwrap(), b"still here");
}
