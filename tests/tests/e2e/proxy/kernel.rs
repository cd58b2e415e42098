//! Bodies from a backend on connections that the kernel encrypts.

use kettle_tests::environment::kernel_changes_keys;
use kettle_tests::raw_session::{RawSession, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, HANDSHAKE};

use super::*;

/// Asks, and lets a thread answer with a body that announces `bytes`.
fn ask(client: &mut Client, mut server: TcpStream, body: &[u8], bytes: usize) -> TcpStream {
    client.send(&get("/app")).unwrap();
    answer(&mut server, &format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n"));
    let body = body.to_vec();
    let mut sending = server.try_clone().unwrap();
    thread::spawn(move || {
        let _ = sending.write_all(&body);
    });
    server
}

#[test]
fn long_bodies_go_through_a_pipe_and_others_from_memory() {
    if !kernel_tls_or_skip() {
        return;
    }
    for suite in ONE_OF_EACH_VERSION {
        let backend = Backend::listen();
        let setup = before("", "", &[backend.address()]).file("www/file", content(200_000));
        let kettle = Kettle::start(setup);
        let mut client = Dialer::suite(suite).connect(kettle.address());
        client.send(&get("/app")).unwrap();
        let mut server = backend.accept();
        answer(&mut server, &super::ok("small"));
        assert_eq!(client.response().body, b"small");
        assert_eq!(kettle.entry("/app").path(), "user");
        for bytes in [3_000_000, 65_536, 500_001] {
            let body = content(bytes);
            server = ask(&mut client, server, &body, bytes);
            assert_same(&client.response().body, &body, suite.name);
            let entry = kettle.entry("/app");
            assert!(entry.is_complete());
            assert_eq!(
                (entry.path().as_str(), entry.number("body_bytes")),
                ("kernel-splice", bytes as u64)
            );
        }
        // A body that comes later stays in the kernel, whatever it is.
        let body = content(30_000);
        server = ask(&mut client, server, &body, 30_000);
        assert_same(&client.response().body, &body, suite.name);
        assert_eq!(kettle.entry("/app").path(), "kernel-write");
        client.send(&get("/app")).unwrap();
        answer(
            &mut server,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        );
        assert_eq!(chunked_response(&mut client).body, b"abc");
        assert_eq!(kettle.entry("/app").path(), "kernel-write");
        assert_same(&client.get("/file").body, &content(200_000), suite.name);
        assert_eq!(kettle.entry("/file").path(), "kernel-sendfile");
    }
}

#[test]
fn a_server_that_dies_in_the_middle_is_no_end_there_either() {
    if !kernel_tls_or_skip() {
        return;
    }
    for suite in ONE_OF_EACH_VERSION {
        let (backend, kettle) = started("", "");
        let mut client = Dialer::suite(suite).connect(kettle.address());
        client.send(&get("/app")).unwrap();
        let mut server = backend.accept();
        answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        server.write_all(&content(400_000)).unwrap();
        drop(server);
        assert_eq!(client.response_head().status, 200);
        assert_eq!(client.end(), End::Cut);
        assert_same(client.beyond(), &content(400_000), suite.name);
        assert!(!kettle.entry("/app").is_complete());
    }
}

#[test]
fn a_server_that_says_too_much_is_not_asked_again() {
    if !kernel_tls_or_skip() {
        return;
    }
    let (backend, kettle) = started("", "");
    let body = content(100_004);
    let mut client = kettle.ask(&get("/app"));
    let mut server = backend.accept();
    answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    server.write_all(&body).unwrap();
    assert_same(&client.response().body, &body[..100_000], "the body");
    client.send(&get("/app")).unwrap();
    // Whatever lies behind it, the next request has a connection of its own.
    let mut other = backend.accept();
    answer(&mut other, &super::ok("next"));
    assert_eq!(client.response().body, b"next");
    assert_eq!(read_to_end(&mut server).0, b"");
}

/// The end of the connection is the end of this body. Before Linux 6.14 it breaks off where the client wants another key.
#[test]
fn a_body_that_breaks_off_for_a_key_has_no_close_notify() {
    if !kernel_tls_or_skip() {
        return;
    }
    let backend = Backend::listen();
    let setup = before("", "", &[backend.address()]).file("www/file", content(200_000));
    let kettle = Kettle::start(setup);
    let mut session = RawSession::connect(kettle.address());
    session.send(APPLICATION_DATA, &get("/file"));
    let mut received = 0;
    while received < 200_000 {
        received += data(&mut session).unwrap().len();
    }
    session.send(APPLICATION_DATA, b"GET /app HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let mut server = backend.accept();
    answer(&mut server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    while !data(&mut session).unwrap().ends_with(b"first") {}
    session.update_key(true);
    if kernel_changes_keys() {
        // Until kettle has read it, the response goes on under the old key.
        loop {
            server.write_all(b"1\r\nx\r\n").unwrap();
            match session.receive() {
                Received::Record(APPLICATION_DATA, piece) => assert_eq!(piece, b"x"),
                Received::Record(HANDSHAKE, update) => return assert_eq!(update, [24, 0, 0, 1, 0]),
                other => panic!("{other:?}"),
            }
        }
    }
    // Until kettle has read the KeyUpdate the response goes on.
    while server.write_all(b"1\r\nx\r\n").is_ok() {
        match data(&mut session) {
            Ok(piece) => assert_eq!(piece, b"x"),
            Err(_) => break,
        }
    }
    assert!(!kettle.entry("/app").is_complete());
}

/// Before Linux 6.14 nothing may follow but a close_notify where the client asks for a key while the backend is waited for.
#[test]
fn a_response_that_a_key_is_asked_for_before_ends_with_close_notify() {
    if !kernel_tls_or_skip() {
        return;
    }
    if kernel_changes_keys() {
        return skip("this kernel changes keys");
    }
    let backend = Backend::listen();
    let setup = before("", "", &[backend.address()]).file("www/file", content(200_000));
    let kettle = Kettle::start(setup);
    for bytes in [5, 200_000] {
        let mut session = RawSession::connect(kettle.address());
        session.send(APPLICATION_DATA, &get("/file"));
        let mut received = 0;
        while received < 200_000 {
            received += data(&mut session).unwrap().len();
        }
        session.send(APPLICATION_DATA, &get("/app"));
        let mut server = backend.accept();
        session.update_key(true);
        session.wire.wait_until_read();
        let body = String::from_utf8(vec![b'x'; bytes]).unwrap();
        answer(&mut server, &super::ok(&body));
        assert_eq!(session.receive_beyond(&[HANDSHAKE]), Received::Record(ALERT, vec![1, 0]));
        assert_eq!(session.receive(), Received::Closed);
        let entry = kettle.entry("/app");
        assert!(!entry.is_complete() && entry.number("bytes_sent") == 0, "{entry:?}");
    }
}

/// Receives what comes next, but for tickets; or the end, which must not be said.
fn data(session: &mut RawSession) -> Result<Vec<u8>, Received> {
    match session.receive_beyond(&[HANDSHAKE]) {
        Received::Record(APPLICATION_DATA, data) => Ok(data),
        Received::Record(..) => panic!("an alert in the middle of a response"),
        end => Err(end),
    }
}
