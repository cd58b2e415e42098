//! Connections that begin with a PROXY header, and those that should or should not.

use kettle_tests::raw_handshake::{RawHandshake, RawHello};
use kettle_tests::raw_session::RawSession;
use kettle_tests::record::APPLICATION_DATA;

use super::*;

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc0\0\x02\x01\x9c\x40\x01\xbb";
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
/// The request of a client of PostgreSQL for TLS.
const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const UNKNOWN: &[u8] = b"PROXY UNKNOWN\r\n";

fn behind(networks: &str) -> Kettle {
    Kettle::start(Setup::default().listener(&format!("accept_proxy = {networks}")).sizes(&[0]))
}

/// Sends a header in pieces, then asks for a file.
fn ask(kettle: &Kettle, header: &[u8], piece_bytes: usize, target: &str) {
    let mut wire = Wire::connect(kettle.address());
    for piece in header.chunks(piece_bytes) {
        wire.send(piece).unwrap();
    }
    let handshake = RawHandshake::begin_on(wire, &RawHello::default());
    let request = get(target);
    assert_not_found(handshake.finish(|sending| sending.seal(APPLICATION_DATA, &request)));
}

fn assert_not_found(mut session: RawSession) {
    let content = session.data();
    assert!(content.starts_with(b"HTTP/1.1 404 "), "{}", content.escape_ascii());
}

fn assert_closed_in_silence(mut wire: Wire) {
    wire.read_to_end();
    assert_eq!(wire.received, b"", "no TLS, no alert");
}

fn outcomes(kettle: &Kettle, version: &str, outcome: &str) -> u64 {
    let counts = kettle.status("/total/proxy_headers");
    counts.get(format!("{version} {outcome}")).and_then(|count| count.as_u64()).unwrap_or(0)
}

#[test]
fn the_client_of_the_header_is_in_the_log() {
    let kettle = behind(r#"["127.0.0.0/8"]"#);
    for (number, header) in [V1, V2].into_iter().enumerate() {
        for piece_bytes in [1, 7, header.len()] {
            let target = format!("/asked-{number}-{piece_bytes}");
            ask(&kettle, header, piece_bytes, &target);
            assert_eq!(kettle.entry(&target).remote(), "192.0.2.7:40000");
        }
    }
    assert_eq!((outcomes(&kettle, "v1", "client"), outcomes(&kettle, "v2", "client")), (3, 3));
}

#[test]
fn a_balancer_may_speak_for_itself() {
    let kettle = behind(r#"["127.0.0.1"]"#);
    for (number, header) in [LOCAL, UNKNOWN].into_iter().enumerate() {
        let target = format!("/asked-{number}");
        ask(&kettle, header, header.len(), &target);
        assert!(kettle.entry(&target).remote().starts_with("127.0.0.1:"));
    }
}

#[test]
fn the_hello_may_come_with_the_header() {
    let kettle = behind(r#"["127.0.0.0/8", "::1"]"#);
    for header in [V1, V2] {
        let hello = RawHello { before: header.to_vec(), ..RawHello::default() };
        let handshake = RawHandshake::begin(kettle.address(), &hello);
        let request = get("/with-it");
        assert_not_found(handshake.finish(|sending| sending.seal(APPLICATION_DATA, &request)));
    }
}

#[test]
fn a_header_must_be_there_and_right() {
    let kettle = behind(r#"["127.0.0.0/8"]"#);
    let long = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
    let short = [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0b".as_slice(), &[0; 11]].concat();
    for (sent, outcome) in [
        (b"\x16\x03\x01\x02\0\x01".as_slice(), "missing"),
        (b"GET / HTTP/1.1\r\n\r\n", "missing"),
        (b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\n", "malformed"),
        (&short, "malformed"),
        (&long, "too_long"),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", "too_long"),
    ] {
        let before = outcomes(&kettle, "none", outcome);
        let mut wire = Wire::connect(kettle.address());
        wire.send(sent).unwrap();
        assert_closed_in_silence(wire);
        assert_eq!(outcomes(&kettle, "none", outcome), before + 1, "{}", sent.escape_ascii());
    }
}

#[test]
fn a_header_that_never_ends_is_not_waited_for() {
    let listener = "accept_proxy = [\"127.0.0.0/8\"]";
    let setup = Setup::default().listener(listener).set("tls", "handshake_timeout = \"5m\"");
    let kettle = Kettle::start(setup);
    let silent = Wire::connect(kettle.address());
    let mut half = Wire::connect(kettle.address());
    half.send(&V1[..20]).unwrap();
    for wire in [silent, half] {
        assert_closed_in_silence(wire);
    }
    assert_eq!(outcomes(&kettle, "none", "timed_out"), 2);
}

#[test]
fn strangers_may_come_without_a_header_and_not_with_one() {
    let kettle = behind(r#"["192.0.2.0/24"]"#);
    ask(&kettle, b"", 1, "/direct");
    assert!(kettle.entry("/direct").remote().starts_with("127.0.0.1:"));
    for header in [V1, V2, LOCAL] {
        let mut wire = Wire::connect(kettle.address());
        wire.send(header).unwrap();
        assert_closed_in_silence(wire);
    }
    assert_eq!(outcomes(&kettle, "none", "stranger"), 3);
}

#[test]
fn without_the_setting_a_header_is_no_tls() {
    let carrying = "kind = \"tls\"\nbackend = \"app\"";
    let setup = Setup::default().listener("").listener(carrying).listener("kind = \"redirect\"");
    let kettle = Kettle::start(setup.more(&backend("app", "", &[Backend::echoing()])));
    for header in [V1, V2] {
        let received = [0, 1, 2].map(|listener| Wire::answer(kettle.addresses[listener], header));
        let is_alert = |said: &[u8]| matches!(said, [21, 3, _, 0, 2, 2, 10]);
        let is_refused = |said: &[u8]| said.starts_with(b"HTTP/1.1 400 ");
        // Version 1 looks like a request, and who speaks HTTP answers it as one.
        let is_text = header == V1;
        assert!(if is_text { is_refused(&received[0]) } else { is_alert(&received[0]) });
        assert!(is_alert(&received[1]), "{:?}", received[1]);
        assert!(is_refused(&received[2]));
    }
    assert_eq!(kettle.status("/total/proxy_headers"), serde_json::json!({}));
}

/// Whatever comes behind it.
#[test]
fn tunnels_are_carried_behind_a_header() {
    let at = Backend::listen();
    let app = backend("app", "send_proxy = \"v1\"", &[at.address()]);
    let listener =
        |kind: &str| format!("kind = {kind}\nbackend = \"app\"\naccept_proxy = [\"127.0.0.0/8\"]");
    let setup = Setup::default()
        .listener(&listener("\"tcp\""))
        .listener(&listener("\"passthrough\""))
        .listener(&listener("\"tls\"\nstarttls = \"postgres\""));
    let kettle = Kettle::start(setup.more(&app));
    for (index, before) in [&b""[..], b"", SSL_REQUEST].into_iter().enumerate() {
        let mut client = Dialer::default().begin(kettle.addresses[index]);
        client.wire.send(&[V1, before].concat()).unwrap();
        if before.is_empty() {
            let mut said = b"GET".to_vec();
            if index == 1 {
                client.tls.write_tls(&mut said).unwrap();
                said.drain(..3);
            }
            client.wire.send(&said).unwrap();
            assert_eq!(read_exactly(&mut at.accept(), V1.len() + said.len()), [V1, &said].concat());
        } else {
            assert_eq!(read_exactly(&mut client.wire, 1), b"S");
            client.finish_handshake_with(b"GET");
            assert_eq!(read_exactly(&mut at.accept(), V1.len() + 3), [V1, b"GET"].concat());
        }
        drop(client);
        assert_eq!(kettle.tunnel().remote(), "192.0.2.7:40000");
        let mut without = Wire::connect(kettle.addresses[index]);
        without.send(SSL_REQUEST).unwrap();
        assert_closed_in_silence(without);
    }
    assert_eq!(outcomes(&kettle, "none", "missing"), 3);
}

#[test]
fn redirects_are_given_behind_a_header() {
    let kettle = Kettle::start(
        Setup::default().listener("kind = \"redirect\"\naccept_proxy = [\"127.0.0.0/8\"]"),
    );
    let mut client = Wire::connect(kettle.address());
    assert_eq!(client.exchange(&[V1, &get("/a")].concat()).status, 308);
}

/// Clients behind a load balancer are let in, kept out and counted by their own address.
#[test]
fn networks_and_limits_are_about_the_client_of_the_header() {
    let route =
        "deny = [\"192.0.2.7/32\"]\nrate_limit = { requests = 1, period = \"1h\", burst = 1 }";
    let setup = Setup::default().listener("accept_proxy = [\"127.0.0.0/8\"]").sizes(&[0]);
    let kettle = Kettle::start(setup.route(route));
    let another = b"PROXY TCP4 192.0.2.8 192.0.2.1 40000 443\r\n";
    let third = b"PROXY TCP4 192.0.2.9 192.0.2.1 40000 443\r\n";
    for (header, status) in [
        (V1, "403"),
        (V2, "403"),
        (&another[..], "404"),
        (&another[..], "429"),
        (&third[..], "404"),
    ] {
        let mut wire = Wire::connect(kettle.address());
        wire.send(header).unwrap();
        let handshake = RawHandshake::begin_on(wire, &RawHello::default());
        let request = get("/none");
        let mut session = handshake.finish(|sending| sending.seal(APPLICATION_DATA, &request));
        let content = session.data();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(content.starts_with(expected.as_bytes()), "{}", content.escape_ascii());
    }
}
