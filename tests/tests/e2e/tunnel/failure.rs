//! The kernel fails in the middle of a tunnel: it goes on in user space, or ends without a byte of plaintext and without a
//! close_notify.

use kettle_tests::record::whole_records;
use kettle_tests::transcript::contains;

use super::*;
use crate::kernel::failure::fail_nth_call;

/// A tunnel that stands, and whose sending side has not moved into the kernel yet.
fn standing(kettle: &Kettle, backend: &Backend, suite: Suite) -> (Client, TcpStream) {
    let mut client = Dialer::suite(suite).connect(kettle.address());
    client.send(b"ping").unwrap();
    let mut server = backend.accept();
    assert_eq!(read_exactly(&mut server, 4), b"ping");
    server.write_all(b"pong").unwrap();
    assert_eq!(client.receive_exactly(4), b"pong");
    (client, server)
}

fn sending(mut server: TcpStream, body: &[u8]) -> thread::JoinHandle<()> {
    let body = body.to_vec();
    thread::spawn(move || {
        // Where the tunnel is cut, so is this.
        if server.write_all(&body).is_ok() {
            let _ = server.shutdown(Shutdown::Write);
        }
    })
}

#[test]
fn a_socket_that_cannot_be_attached_stays_in_user_space() {
    let backend = Backend::listen();
    let Some(kettle) =
        Kettle::start_in_kernel(before("tls", "crossover = \"64 KiB\"", &[backend.address()]))
    else {
        return;
    };
    let body = content(1_024 * 1_024);
    for suite in ONE_OF_EACH_VERSION {
        let (mut client, server) = standing(&kettle, &backend, suite);
        let saboteur = fail_nth_call(&kettle, "setsockopt", "ENOMEM", 1);
        let serving = sending(server, &body);
        assert_eq!(client.end(), End::Orderly);
        assert_same(client.beyond(), &body, "refused");
        serving.join().unwrap();
        drop((saboteur, client));
        let entry = kettle.tunnel();
        assert_eq!((entry.text("path_sent"), entry.text("reason_sent")), ("user", "no_memory"));
    }
}

#[test]
fn a_key_that_cannot_be_installed_cuts_the_tunnel_without_a_byte_of_plaintext() {
    if !kernel_tls_or_skip() {
        return;
    }
    const CANARY: &str = "this text must not be seen on the wire";
    for suite in ONE_OF_EACH_VERSION {
        let backend = Backend::listen();
        let kettle = Kettle::start(before("tls", "crossover = \"64 KiB\"", &[backend.address()]));
        let (mut client, server) = standing(&kettle, &backend, suite);
        let saboteur = fail_nth_call(&kettle, "setsockopt", "ENOMEM", 2);
        let serving = sending(server, &CANARY.repeat(20_000).into_bytes());
        assert_eq!(client.end(), End::Cut, "{}", suite.name);
        let (_, rest) = whole_records(&client.wire.received);
        assert!(rest.is_empty(), "not all that was sent is a record");
        assert!(!contains(&client.wire.received, CANARY.as_bytes()), "plaintext");
        drop((saboteur, client));
        serving.join().unwrap();
        assert_eq!(kettle.tunnel().text("end"), "failed");
    }
}

#[test]
fn a_splice_that_fails_is_no_close_notify() {
    let backend = Backend::listen();
    let Some(kettle) =
        Kettle::start_in_kernel(before("tls", "crossover = \"64 KiB\"", &[backend.address()]))
    else {
        return;
    };
    let body = content(4 * 1_024 * 1_024);
    for suite in ONE_OF_EACH_VERSION {
        let (mut client, server) = standing(&kettle, &backend, suite);
        let saboteur = fail_nth_call(&kettle, "splice", "EIO", 5);
        let serving = sending(server, &body);
        assert_eq!(client.end(), End::Cut, "{}", suite.name);
        let received = client.beyond().clone();
        assert!(received.len() < body.len());
        assert_same(&received, &body[..received.len()], "what came before");
        drop((saboteur, client));
        serving.join().unwrap();
        let end = kettle.tunnel();
        assert!(
            ["client_reset", "backend_reset"].contains(&end.text("end")),
            "{}",
            end.text("end")
        );
    }
}
