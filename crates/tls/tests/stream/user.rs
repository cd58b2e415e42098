//! Records sealed in user space, and what is received on every path.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake};

use kettle_kernel::transfer::Wait;
use kettle_tls::stream::{FileRecords, Filled, StreamError};

use crate::harness::{
    PATIENCE, SUITES, close, connect, fill, flush, pattern, read_to_close_notify, receive, sockets,
};

#[tokio::test]
async fn every_suite_carries_both_directions() {
    for (version, cipher, suite) in SUITES {
        let (mut stream, client) = connect(suite, move |client| {
            client.write_all(b"ping").unwrap();
            read_to_close_notify(client).unwrap()
        })
        .await;
        assert_eq!(
            (stream.session().unwrap().version, stream.session().unwrap().cipher),
            (version, cipher)
        );
        assert_eq!(receive(&mut stream, 4).await, b"ping");
        stream.seal(&[b"po", b"", b"ng"]).unwrap();
        close(stream).await;
        assert_eq!(client.join().unwrap(), b"pong", "{suite:?}");
    }
}

#[tokio::test]
async fn head_and_body_share_records_of_full_size() {
    for (_, _, suite) in SUITES {
        for body_bytes in [0, 1, 16_283, 16_284, 16_285, 16_384, 40_000] {
            let (mut stream, client) = connect(suite, move |client| {
                let received = read_to_close_notify(client).unwrap();
                (received, client.sock.records())
            })
            .await;
            let head = pattern(100);
            let body = pattern(body_bytes);
            stream.seal(&[&head, &body]).unwrap();
            close(stream).await;
            let (received, records) = client.join().unwrap();
            assert_eq!(received, [head, body].concat());
            let data: Vec<_> = records.iter().filter(|(kind, _)| *kind == 23).collect();
            let fewest = (100 + body_bytes).div_ceil(16_384);
            // TLS 1.3 hides its handshake, tickets and alert in records of the same type.
            assert!(data.len() >= fewest && data.len() <= fewest + 6, "{}", data.len());
        }
    }
}

#[tokio::test]
async fn files_are_read_straight_into_records() {
    let mut file = tempfile::tempfile().unwrap();
    let content = pattern(300_000);
    file.write_all(&content).unwrap();
    for (_, _, suite) in SUITES {
        for (start, bytes) in [(0, 1), (0, 16_384), (1, 16_385), (5, 131_072), (0, 300_000)] {
            let (mut stream, client) =
                connect(suite, |client| read_to_close_notify(client).unwrap()).await;
            let mut head = &b"head"[..];
            let mut sent = 0;
            while sent < bytes {
                let offset = start + sent;
                let left = bytes - sent;
                let sealed = stream.seal_file(head, file.as_fd(), offset, left, Wait::Allowed);
                let FileRecords::Sealed(read @ 1..) = sealed.unwrap() else {
                    panic!("the file is long enough")
                };
                sent += read as u64;
                head = &[];
                flush(&mut stream).await;
            }
            close(stream).await;
            let expected = &content[start as usize..(start + bytes) as usize];
            assert_eq!(client.join().unwrap(), [b"head", expected].concat());
        }
    }
}

#[tokio::test]
async fn a_socket_is_received_straight_into_records() {
    let content = pattern(300_000);
    for (_, _, suite) in SUITES {
        let (mut stream, client) =
            connect(suite, |client| read_to_close_notify(client).unwrap()).await;
        let (backend, mut source) = sockets();
        let sent = content.clone();
        let source = std::thread::spawn(move || source.write_all(&sent).unwrap());
        loop {
            backend.readable().await.unwrap();
            let mut room = stream.record_room(b"", usize::MAX).unwrap();
            match room.lend(|slices| backend.try_read_vectored(slices)) {
                Ok(0) => break,
                Ok(bytes) => room.commit(bytes).unwrap(),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
            flush(&mut stream).await;
        }
        source.join().unwrap();
        close(stream).await;
        assert!(client.join().unwrap() == content);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_no_failure_of_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let unreadable = std::fs::File::open(folder.path()).unwrap();
    let (mut stream, client) =
        connect(SUITES[0].2, |client| read_to_close_notify(client).unwrap()).await;
    let sealed = stream.seal_file(b"head", unreadable.as_fd(), 0, 10, Wait::Allowed).unwrap();
    let FileRecords::Failed(error) = sealed else { panic!("{sealed:?}") };
    assert_eq!(error.kind(), std::io::ErrorKind::IsADirectory);
    stream.seal(&[b"instead"]).unwrap();
    close(stream).await;
    assert_eq!(client.join().unwrap(), b"instead");
}

#[tokio::test]
async fn the_end_of_a_file_is_told() {
    let file = tempfile::tempfile().unwrap();
    let (mut stream, client) =
        connect(SUITES[0].2, |client| client.read(&mut [0; 1]).is_err()).await;
    let sealed = stream.seal_file(b"head", file.as_fd(), 0, 10, Wait::Allowed);
    assert!(matches!(sealed, Ok(FileRecords::Sealed(0))), "{sealed:?}");
    stream.cut();
    drop(stream);
    assert!(client.join().unwrap());
}

#[tokio::test]
async fn a_cut_connection_shows_no_close_notify() {
    for (_, _, suite) in SUITES {
        let (mut stream, client) =
            connect(suite, |client| read_to_close_notify(client).map_err(|e| e.kind())).await;
        stream.seal(&[b"half of it"]).unwrap();
        flush(&mut stream).await;
        stream.cut();
        drop(stream);
        assert_eq!(client.join().unwrap(), Err(std::io::ErrorKind::UnexpectedEof));
    }
}

#[tokio::test]
async fn data_sent_together_with_the_finished_is_not_lost() {
    for (_, _, suite) in SUITES {
        let (mut stream, client) = connect(suite, |client| {
            // Queued before the handshake: rustls sends both in one flight.
            client.conn.writer().write_all(b"early bird").unwrap();
            while client.conn.is_handshaking() || client.conn.wants_write() {
                client.conn.complete_io(&mut client.sock).unwrap();
            }
            read_to_close_notify(client).unwrap()
        })
        .await;
        assert_eq!(receive(&mut stream, 10).await, b"early bird");
        stream.seal(&[b"worm"]).unwrap();
        close(stream).await;
        assert_eq!(client.join().unwrap(), b"worm");
    }
}

#[tokio::test]
async fn the_peers_key_update_is_followed() {
    for (_, _, suite) in &SUITES[..3] {
        let (mut stream, client) = connect(*suite, |client| {
            for word in [b"one", b"two"] {
                client.write_all(word).unwrap();
                client.conn.refresh_traffic_keys().unwrap();
            }
            client.write_all(b"end").unwrap();
            read_to_close_notify(client).unwrap()
        })
        .await;
        assert_eq!(receive(&mut stream, 9).await, b"onetwoend");
        stream.seal(&[b"fine"]).unwrap();
        close(stream).await;
        assert_eq!(client.join().unwrap(), b"fine");
    }
}

#[tokio::test]
async fn a_peer_that_takes_nothing_is_read_on_and_makes_nothing_grow() {
    let (told, is_told) = std::sync::mpsc::channel();
    let (mut stream, client) = connect(SUITES[0].2, move |client| {
        for word in [b"one", b"two", b"six"] {
            client.write_all(word).unwrap();
            client.conn.refresh_traffic_keys().unwrap();
        }
        client.flush().unwrap();
        is_told.recv().unwrap();
        read_to_close_notify(client).unwrap().len()
    })
    .await;
    let mut sealed_bytes = 0;
    let block = pattern(16_384);
    while poll_fn(|context| Poll::Ready(stream.poll_flush(context))).await.is_ready() {
        stream.seal(&[&block]).unwrap();
        sealed_bytes += block.len();
    }
    let queued_bytes = stream.queued_bytes();
    assert_eq!(receive(&mut stream, 9).await, b"onetwosix");
    while stream.key_changes().received < 3 {
        assert!(poll_fn(|context| Poll::Ready(stream.poll_fill(context))).await.is_pending());
        tokio::task::yield_now().await;
    }
    assert_eq!((stream.queued_bytes(), stream.key_changes().sent), (queued_bytes, 0));
    told.send(()).unwrap();
    // Once the peer takes something, all three are answered by one.
    flush(&mut stream).await;
    assert_eq!(stream.key_changes().sent, 1);
    stream.seal(&[b"end"]).unwrap();
    close(stream).await;
    assert_eq!(client.join().unwrap(), sealed_bytes + 3);
}

#[tokio::test]
async fn who_waits_to_send_is_woken_though_somebody_else_receives() {
    let (may_say, is_time_to_say) = std::sync::mpsc::channel();
    let (may_read, is_time_to_read) = std::sync::mpsc::channel();
    let (mut stream, client) = connect(SUITES[0].2, move |client| {
        while client.conn.is_handshaking() {
            client.conn.complete_io(&mut client.sock).unwrap();
        }
        is_time_to_say.recv().unwrap();
        client.write_all(b"word").unwrap();
        client.conn.refresh_traffic_keys().unwrap();
        client.write_all(b"last").unwrap();
        is_time_to_read.recv().unwrap();
        read_to_close_notify(client).unwrap().len()
    })
    .await;
    let sender = Arc::new(Woken::default());
    let receiver = Arc::new(Woken::default());
    let sender_waker = sender.clone().into();
    let receiver_waker = receiver.clone().into();
    let mut sends = Context::from_waker(&sender_waker);
    let mut receives = Context::from_waker(&receiver_waker);
    let block = pattern(16_384);
    let mut sealed_bytes = 0;
    loop {
        stream.seal(&[&block]).unwrap();
        sealed_bytes += block.len();
        if stream.poll_flush(&mut sends).is_pending() {
            break;
        }
        tokio::task::yield_now().await;
    }
    may_say.send(()).unwrap();
    while stream.received().bytes().len() < 8 {
        let _ = stream.poll_fill(&mut receives);
        tokio::task::yield_now().await;
    }
    assert!(stream.poll_fill(&mut receives).is_pending());
    sender.0.store(false, Relaxed);
    may_read.send(()).unwrap();
    let woken = async {
        while !sender.0.load(Relaxed) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, woken).await.unwrap();
    flush(&mut stream).await;
    assert_eq!(stream.key_changes().sent, 1);
    close(stream).await;
    assert_eq!(client.join().unwrap(), sealed_bytes);
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

#[tokio::test]
async fn garbage_gets_a_bad_record_mac_alert() {
    for (_, _, suite) in SUITES {
        let (mut stream, client) = connect(suite, |client| {
            client.write_all(b"x").unwrap();
            let record = [&[23, 3, 3, 0, 40][..], &[0; 40]].concat();
            client.sock.write_all(&record).unwrap();
            read_to_close_notify(client).unwrap_err().to_string()
        })
        .await;
        let error = loop {
            match fill(&mut stream).await {
                Ok(Filled::Data) => {}
                Ok(end) => panic!("{end:?}"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StreamError::Violation(_)), "{error}");
        poll_fn(|context| stream.poll_close(context)).await.unwrap();
        let told = client.join().unwrap();
        assert!(told.contains("BadRecordMac"), "{told}");
    }
}

#[tokio::test]
async fn close_notify_of_the_peer_is_told_from_a_cut() {
    for is_clean in [true, false] {
        let (mut stream, client) = connect(SUITES[0].2, move |client| {
            client.write_all(b"bye").unwrap();
            if is_clean {
                client.conn.send_close_notify();
                client.flush().unwrap();
            }
            client.sock.socket().shutdown(std::net::Shutdown::Write).unwrap();
            // Keeps the socket until the server has seen the end.
            let _ = client.read(&mut [0; 1]);
        })
        .await;
        receive(&mut stream, 3).await;
        let expected = if is_clean { Filled::Closed } else { Filled::Truncated };
        assert_eq!(fill(&mut stream).await.unwrap(), expected);
        drop(stream);
        client.join().unwrap();
    }
}

/// The kernel tells a reset once, to whichever call comes first.
#[tokio::test]
async fn a_reset_that_sending_meets_is_not_taken_for_a_cut() {
    let (mut stream, client) = connect(SUITES[0].2, move |client| {
        client.write_all(b"bye").unwrap();
        kettle_kernel::socket::reset_on_close(client.sock.socket().as_fd()).unwrap();
    })
    .await;
    client.join().unwrap();
    stream.peer_ended().await;
    stream.seal(&[b"for nobody"]).unwrap();
    receive(&mut stream, 3).await;
    for _ in 0..2 {
        let error = fill(&mut stream).await.unwrap_err();
        assert!(matches!(error, StreamError::Io(_)), "{error}");
    }
}
