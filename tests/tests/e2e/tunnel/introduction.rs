//! The words to a backend about a connection, by its PROXY header.

use super::*;

fn introducing(version: &str, listener: &str, at: &Backend) -> Kettle {
    let listener = format!("kind = \"tls\"\nbackend = \"app\"\n{listener}");
    let app = backend("app", &format!("send_proxy = \"{version}\""), &[at.address()]);
    Kettle::start(Setup::default().listener(&listener).more(&app))
}

/// A whole header of version 2: its first 16 bytes, and the rest.
pub(super) fn read_v2(socket: &mut std::net::TcpStream) -> (Vec<u8>, Vec<u8>) {
    let head = read_exactly(socket, 16);
    let bytes = usize::from(u16::from_be_bytes([head[14], head[15]]));
    let rest = read_exactly(socket, bytes);
    (head, rest)
}

/// The values behind the addresses, by their types.
pub(super) fn values(mut rest: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut values = Vec::new();
    while let [kind, high, low, more @ ..] = rest {
        let (value, behind) = more.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        values.push((*kind, value.to_vec()));
        rest = behind;
    }
    values
}

#[test]
fn version_1_names_both_addresses() {
    let at = Backend::listen();
    let kettle = introducing("v1", "", &at);
    let mut client = Dialer::default().connect(kettle.address());
    let own = client.wire.socket.local_addr().unwrap();
    client.send(b"GET").unwrap();
    let to = kettle.address();
    let ip = own.ip();
    let to_ip = to.ip();
    let expected = format!("PROXY TCP4 {ip} {to_ip} {} {}\r\nGET", own.port(), to.port());
    let received = read_exactly(&mut at.accept(), expected.len());
    assert_eq!(String::from_utf8(received).unwrap(), expected);
}

#[test]
fn version_2_says_what_tls_agreed_on() {
    let at = Backend::listen();
    let kettle = introducing("v2", "alpn = [\"h2\"]", &at);
    let mut client = Dialer::default().alpn(&["h2"]).connect(kettle.address());
    let own = client.wire.socket.local_addr().unwrap();
    client.send(b"GET").unwrap();
    let mut server = at.accept();
    let (head, rest) = read_v2(&mut server);
    assert_eq!(&head[..14], b"\r\n\r\n\0\r\nQUIT\n\x21\x11");
    assert_eq!(rest[8..10], own.port().to_be_bytes());
    let values = values(&rest[12..]);
    let of = |kind| values.iter().find(|(known, _)| *known == kind).map(|(_, it)| it.clone());
    assert_eq!(of(0x01).unwrap(), b"h2");
    assert_eq!(of(0x02).unwrap(), b"localhost");
    assert!(!of(0x05).unwrap().is_empty(), "a unique id");
    let tls = of(0x20).unwrap();
    assert_eq!(tls[0], 1, "the client spoke TLS and showed no certificate");
    let said = String::from_utf8_lossy(&tls);
    assert!(said.contains("TLSv1.3") && said.contains("TLS_AES_128_GCM_SHA256"), "{said}");
    assert_eq!(read_exactly(&mut server, 3), b"GET");
}

#[test]
fn the_client_of_a_header_received_is_the_one_passed_on() {
    let at = Backend::listen();
    let kettle = introducing("v1", "accept_proxy = [\"127.0.0.0/8\"]", &at);
    let mut client = Dialer::default().begin(kettle.address());
    let wire: &mut Wire = &mut client.wire;
    std::io::Write::write_all(wire, b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\r\n").unwrap();
    client.tls.write_tls(&mut client.wire).unwrap();
    client.finish_handshake_with(b"GET");
    let expected = b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\r\nGET";
    assert_eq!(read_exactly(&mut at.accept(), expected.len()), expected);
    drop(client);
    let entry = kettle.tunnel();
    assert_eq!(entry.remote(), "192.0.2.7:40000");
    assert!(entry.text("peer").starts_with("127."));
}

#[test]
fn a_tls_server_that_closes_on_one_address_is_not_out_for_all() {
    let at = Backend::listen();
    let app =
        backend("app", &format!("send_proxy = \"v1\"\nfails = 1\n{VERIFIED}"), &[at.address()]);
    let kettle = Kettle::start(before_app("tcp", "", &app));
    for ends_in_order in [true, false] {
        let mut client = kettle.connect_plain();
        let mut server = at.accept();
        assert_eq!(read_exactly(&mut server, 10), b"PROXY TCP4");
        if ends_in_order {
            server.shutdown(Shutdown::Write).unwrap();
            let _ = read_to_end(&mut server);
        }
        // With bytes unread: by a reset.
        drop(server);
        let _ = read_to_end(&mut client);
        assert_eq!(kettle.tunnel().text("end"), "turned_away");
        assert_eq!(kettle.status("/backends/0/servers/0/health"), "up");
    }
}
