//! The ends of tunnels: what one side's end tells the other, and nothing more than is true.

use std::io::ErrorKind;

use kettle_tests::backend::backend as describe;
use rustix::process::Signal;

use super::*;

/// A tunnel with a client that has said hello, and its server that has heard it.
fn greeted(kettle: &Kettle, backend: &Backend, suite: Suite) -> (Client, TcpStream) {
    let mut client = Dialer::suite(suite).connect(kettle.address());
    client.send(b"hello").unwrap();
    let mut server = backend.accept();
    assert_eq!(read_exactly(&mut server, 5), b"hello");
    (client, server)
}

/// A tunnel by each version, before a backend: it ends so after these acts of its client and its server.
fn each_ends(settings: &str, end: &str, act: impl Fn(&Kettle, Client, TcpStream)) {
    let backend = Backend::listen();
    let kettle = terminator(settings, &[backend.address()]);
    for suite in ONE_OF_EACH_VERSION {
        let (client, server) = greeted(&kettle, &backend, suite);
        act(&kettle, client, server);
        assert_eq!(kettle.tunnel().text("end"), end, "{settings} {}", suite.name);
    }
}

#[test]
fn the_end_of_the_backend_is_a_close_notify_and_leaves_the_other_direction() {
    each_ends("", "backend_closed", |_, mut client, mut server| {
        server.write_all(b"that was all").unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.end(), End::Orderly);
        assert_eq!(client.beyond(), b"that was all");
        // The client may still speak.
        client.send(b"and so on").unwrap();
        assert_eq!(read_exactly(&mut server, 9), b"and so on");
        client.close_sending();
        let (rest, outcome) = read_to_end(&mut server);
        assert_eq!((rest.as_slice(), outcome.is_ok()), (b"".as_slice(), true));
    });
}

#[test]
fn a_backend_that_dies_is_no_close_notify() {
    each_ends("", "backend_reset", |_, mut client, mut server| {
        server.write_all(b"half of i").unwrap();
        assert_eq!(client.receive_exactly(9), b"half of i");
        reset(server);
        assert_eq!(client.end(), End::Cut);
    });
}

/// A server that answers half a request and reads no more of it resets the rest.
#[test]
fn an_early_answer_arrives_though_the_client_still_sends() {
    each_ends("", "backend_reset", |kettle, mut client, mut server| {
        // So that kettle finds answer, reset and the client's rest at once.
        kettle.signal(Signal::STOP);
        server.write_all(b"413 of half").unwrap();
        reset(server);
        client.send(b"the other half").unwrap();
        kettle.signal(Signal::CONT);
        assert_eq!(client.end(), End::Cut);
        assert_eq!(client.beyond(), b"413 of half");
    });
}

#[test]
fn a_client_that_is_cut_ends_as_the_configuration_says() {
    for (truncation, is_reset) in [("fin", false), ("reset", true)] {
        let settings = format!("truncation = \"{truncation}\"");
        each_ends(&settings, "client_cut", |_, client, mut server| {
            // A FIN, and no close_notify before it.
            client.wire.socket.shutdown(Shutdown::Write).unwrap();
            let (rest, outcome) = read_to_end(&mut server);
            assert_eq!(rest, b"");
            let kind = outcome.err().map(|error| error.kind());
            assert_eq!(kind, is_reset.then_some(ErrorKind::ConnectionReset), "{truncation}");
        });
    }
}

#[test]
fn without_a_server_there_is_no_close_notify() {
    let refused = unused_address();
    let kettle = terminator("", &[refused]);
    for suite in ONE_OF_EACH_VERSION {
        let mut client = kettle.connect(suite);
        assert_eq!(client.end(), End::Cut);
        let entry = kettle.tunnel();
        assert_eq!((entry.text("end"), entry.text("server")), ("refused", ""));
    }
}

#[test]
fn without_a_server_a_client_without_tls_is_reset() {
    let refused = unused_address();
    let kettle = Kettle::start(before("tcp", "", &[refused]));
    let mut client = kettle.connect_plain();
    let (received, outcome) = read_to_end(&mut client);
    assert_eq!(
        (received.as_slice(), outcome.unwrap_err().kind()),
        (&b""[..], ErrorKind::ConnectionReset)
    );
    assert_eq!(kettle.tunnel().text("end"), "refused");
}

#[test]
fn plain_text_is_no_http_where_something_else_is_carried() {
    const UNEXPECTED_MESSAGE: [u8; 7] = [21, 3, 1, 0, 2, 2, 10];
    let kettle = terminator("", &[unused_address()]);
    for said in ["EHLO mail.example\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET "] {
        let received = Wire::answer(kettle.address(), said.as_bytes());
        assert_eq!(received, UNEXPECTED_MESSAGE, "{said}");
    }
    kettle.wait_for_status("/total/handshakes_failed/not_tls", 3);
}

#[test]
fn what_breaks_tls_reaches_no_backend_as_an_end() {
    each_ends("", "client_violation", |_, mut client, mut server| {
        client.wire.write_all(b"\x17\x03\x03\0\x20 not what the key would have made..").unwrap();
        assert!(matches!(client.end(), End::Alert(_)));
        let (rest, outcome) = read_to_end(&mut server);
        assert_eq!(rest, b"");
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn an_idle_tunnel_ends_without_a_close_notify_and_a_busy_one_does_not() {
    let backend = Backend::listen();
    let app = describe("app", "idle_timeout = \"1s\"", &[backend.address()]);
    let kettle = Kettle::start(before_app("tls", "", &app));
    let (mut busy, mut answering) = greeted(&kettle, &backend, TLS13_AES_128);
    // The second begins when the busy one has lasted for longer than an idle one may.
    for _ in 0..2 {
        let (mut client, mut server) = greeted(&kettle, &backend, TLS13_AES_128);
        let idle = thread::spawn(move || {
            let end = client.end();
            drop(client);
            (end, read_to_end(&mut server))
        });
        while !idle.is_finished() {
            busy.send(b"x").unwrap();
            assert_eq!(read_exactly(&mut answering, 1), b"x");
        }
        let (end, (_, outcome)) = idle.join().unwrap();
        assert_eq!(end, End::Cut);
        // A FIN would say that this was all.
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(kettle.tunnel().text("end"), "idle");
    }
    answering.write_all(b"still here").unwrap();
    assert_eq!(busy.receive_exactly(10), b"still here");
}

#[test]
fn a_stop_lets_tunnels_finish() {
    let backend = Backend::listen();
    let mut kettle = Kettle::start(before("tls", "", &[backend.address()]));
    let (mut client, mut server) = greeted(&kettle, &backend, TLS13_AES_128);
    kettle.signal(Signal::TERM);
    kettle.messages().wait_for("finishing requests");
    server.write_all(b"the rest").unwrap();
    drop(server);
    assert_eq!(client.end(), End::Orderly);
    assert_eq!(client.beyond(), b"the rest");
    // It need not end for that.
    assert!(kettle.ended().status.success());
}

#[test]
fn the_time_of_a_tunnel_ends_though_it_always_has_something_to_say() {
    let backend = Backend::listen();
    let app = describe("app", "total_timeout = \"1s\"", &[backend.address()]);
    let kettle = Kettle::start(before_app("tls", "", &app));
    let (mut client, mut server) = greeted(&kettle, &backend, TLS13_AES_128);
    let writing = thread::spawn(move || {
        // Until it is cut.
        while server.write_all(&[7; 4_096]).is_ok() {}
    });
    assert_eq!(client.end(), End::Cut);
    writing.join().unwrap();
    assert_eq!(kettle.tunnel().text("end"), "too_long");
}

#[test]
fn what_a_stop_cuts_off_is_no_end() {
    let backend = Backend::listen();
    let app = describe("app", "queue_timeout = \"5m\"", &[backend.address()]);
    let setup = before_app("tcp", "", &app).set("server", "drain_timeout = \"1s\"");
    let mut kettle = Kettle::start(setup.more("connections = 1\n"));
    let mut client = kettle.connect_plain();
    client.write_all(b"half of i").unwrap();
    let mut server = backend.accept();
    assert_eq!(read_exactly(&mut server, 9), b"half of i");
    // Waits for the server that the other one has.
    let mut waiting = kettle.connect_plain();
    kettle.wait_for_status("/total/connections_open", 2);
    kettle.signal(Signal::TERM);
    for socket in [&mut waiting, &mut client, &mut server] {
        let (_, outcome) = read_to_end(socket);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    assert_eq!(kettle.tunnel().text("end"), "server_stopping");
    let _ = kettle.ended();
}
