//! Hellos that are looked into and handed on, in any two pieces, and what is none.

use kettle_tests::raw_handshake::{ALPN, SERVER_NAME};
use rustix::process::Signal;
use rustls::crypto::aws_lc_rs::kx_group;

use super::*;

/// A listener that hands connections for `localhost` to the first, and all others to the second.
fn passing(named: &Backend, others: &Backend) -> Kettle {
    let setup = Setup::default()
        .listener("kind = \"passthrough\"\nbackend = \"others\"")
        .site("backend = \"named\"")
        .more(&backend("named", "", &[named.address()]))
        .more(&backend("others", "", &[others.address()]));
    Kettle::start(setup)
}

/// The hello of browsers: it comes in two segments.
#[test]
fn a_post_quantum_hello_may_be_cut_at_each_byte() {
    let at = Backend::listen();
    let kettle = Kettle::start(before("passthrough", "", &[at.address()]));
    let mut client = Dialer::default()
        .groups(&[kx_group::X25519MLKEM768, kx_group::X25519])
        .begin(kettle.address());
    let hello = client.hello();
    assert!(hello.len() > 1_400, "{} bytes", hello.len());
    for cut in (1..hello.len()).step_by(scaled(1, 101)) {
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(&hello[..cut]).unwrap();
        wire.write_all(&hello[cut..]).unwrap();
        assert_eq!(read_exactly(&mut at.accept(), hello.len()), hello, "cut at {cut}");
    }
}

#[test]
fn a_hello_goes_where_its_outer_name_says() {
    let [named, others] = [Backend::listen(), Backend::listen()];
    let kettle = passing(&named, &others);
    let hello = RawHello::default();
    // An outer hello of ECH: a config ID, an encapsulated key and a sealed inner hello.
    let ech = [&[0, 0, 1, 0, 1, 7, 0, 32][..], &[5; 32], &[0, 144], &[6; 144]].concat();
    let large = vec![0; 20_000];
    for (what, hello, at) in [
        ("a name", hello.clone(), &named),
        ("no name", hello.clone().without(SERVER_NAME), &others),
        ("ECH", hello.clone().with(0xfe0d, &ech), &named),
        ("more than a record", hello.clone().with(0x1234, &large), &named),
        ("GREASE", hello.with(0x0a0a, &[]), &named),
    ] {
        let sent = hello.records(&[9; 32]);
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(&sent).unwrap();
        assert_eq!(read_exactly(&mut at.accept(), sent.len()), sent, "{what}");
    }
}

#[test]
fn what_is_no_hello_or_says_something_twice_is_refused() {
    let [named, others] = [Backend::listen(), Backend::listen()];
    let kettle = passing(&named, &others);
    let ending = terminator("", &[named.address()]);
    let name = |name: &str| [&[0, 0, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
    let two = [name("localhost"), name("other.example")].concat();
    let two = [&[0, u8::try_from(two.len()).unwrap()], two.as_slice()].concat();
    let two_names = RawHello::default().without(SERVER_NAME).with(SERVER_NAME, &two);
    let twice = RawHello::default().with(SERVER_NAME, &[0, 7, 0, 0, 4, b'e', b'v', b'i', b'l']);
    let protocols_twice =
        RawHello::default().with(ALPN, b"\0\x03\x02h2").with(ALPN, b"\0\x02\x01x");
    let two_lists = RawHello::default().with(ALPN, b"\0\x03\x02h2\0\x02\x01x");
    let alert = |description| vec![21, 3, 1, 0, 2, 2, description];
    for (what, sent, expected) in [
        ("two names", two_names.records(&[9; 32]), alert(50)),
        ("a name twice", twice.records(&[9; 32]), alert(47)),
        ("protocols twice", protocols_twice.records(&[9; 32]), alert(47)),
        ("two lists of protocols", two_lists.records(&[9; 32]), alert(50)),
        ("plain text", b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), alert(10)),
        // Its unread bytes must not turn the end into a reset.
        (
            "plain text and much more",
            [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], &[b'x'; 300_000]].concat(),
            alert(10),
        ),
        // The length with its high bit, the type, version 3.0: RFC 6101 appendix E.
        ("SSLv2", b"\x80\x2e\x01\x03\x00\0\x15\0\0\0\x10\0\0\x2f".to_vec(), alert(10)),
    ] {
        let mut wire = Wire::connect(kettle.address());
        wire.write_all(&sent).unwrap();
        assert_eq!(wire.read(&mut [0; 8]).unwrap(), expected.len(), "{what}");
        assert_eq!(wire.read(&mut [0; 8]).expect("an orderly end"), 0, "{what}");
        assert_eq!(wire.received, expected, "{what}");
        // A listener that ends TLS says no more to it than an alert, whichever it is.
        let received = Wire::answer(ending.address(), &sent);
        assert_eq!((received.len(), received[0]), (7, 21), "{what}");
    }
    kettle.wait_for_status("/total/connections_open", 0);
}

#[test]
fn a_hello_that_does_not_come_is_counted_by_what_ended_the_wait() {
    let at = Backend::listen();
    let setup = before("passthrough", "", &[at.address()]);
    let kettle = Kettle::start(setup.set("tls", "handshake_timeout = \"3s\""));
    let hello = RawHello::default().records(&[9; 32]);
    let half = &hello[..hello.len() / 2];
    let _ = Wire::answer(kettle.address(), half);
    kettle.wait_for_status("/total/handshakes_failed/timed_out", 1);
    let mut wire = Wire::connect(kettle.address());
    wire.write_all(half).unwrap();
    drop(wire);
    kettle.wait_for_status("/total/handshakes_failed/hello_incomplete", 1);
    // As long as a tunnel stands the server can be asked.
    let mut standing = Wire::connect(kettle.address());
    standing.write_all(&hello).unwrap();
    let _server = at.accept();
    let _silent = Wire::connect(kettle.address());
    kettle.wait_for_status("/total/connections_open", 2);
    kettle.signal(Signal::TERM);
    kettle.wait_for_status("/total/handshakes_failed/server_stopping", 1);
}
