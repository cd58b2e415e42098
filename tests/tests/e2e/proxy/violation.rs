//! A client breaks TLS while a server is asked for it: it is told by an alert, and the server gets nothing that came behind.

use kettle_tests::raw_session::{RawSession, Received};
use kettle_tests::record::{ALERT, APPLICATION_DATA, HANDSHAKE};

use super::*;

#[test]
fn a_client_that_breaks_tls_while_a_response_is_under_way_is_told() {
    during_a_response(&get("/app"));
}

#[test]
fn a_client_that_breaks_tls_while_its_request_goes_on_beside_the_response_is_told() {
    during_a_response(&request("POST", "/app", "Content-Length: 10\r\n"));
}

#[test]
fn a_client_that_breaks_tls_in_the_body_of_a_request_is_told() {
    let (backend, kettle) = started("", "");
    let mut client = RawSession::connect(kettle.address());
    client.send(APPLICATION_DATA, &request("POST", "/app", "Content-Length: 10\r\n"));
    let mut server = backend.accept_request();
    client.send(APPLICATION_DATA, b"first");
    assert_eq!(read_exactly(&mut server, 5), b"first");
    forge(&mut client);
    expect_alert(&mut client, "");
    assert_eq!(read_to_end(&mut server).0, b"");
}

#[test]
fn a_server_gets_no_body_behind_a_forged_record() {
    // This server never says that the client is to go on.
    let (backend, kettle) = started("timeout = \"10m\"", "");
    let mut client = RawSession::connect(kettle.address());
    let head = "Content-Length: 10\r\nExpect: 100-continue\r\n";
    client.send(APPLICATION_DATA, &request("POST", "/app", head));
    let mut server = backend.accept_request();
    let first = client.sending.seal(APPLICATION_DATA, b"first");
    client.send_bytes(&[&first, FORGED].concat());
    // The honest part is passed on, unless the request has failed before.
    client.send(APPLICATION_DATA, b"other");
    let got = read_to_end(&mut server).0;
    assert!(b"first".starts_with(&got), "{}", got.escape_ascii());
    expect_alert(&mut client, "");
}

/// By every path: the beginning of a response, then the offence.
fn during_a_response(request: &[u8]) {
    let server = Backend::listen();
    let route = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n";
    let setup = Setup::paths(paths_here()).more(route);
    let kettle = Kettle::start(setup.more(&backend("app", "", &[server.address()])));
    for path in paths_here() {
        let mut client = RawSession::connect(kettle.address_by(path));
        client.send(APPLICATION_DATA, request);
        let mut server = server.accept_request();
        server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst").unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"first") {
            match client.receive_beyond(&[HANDSHAKE]) {
                Received::Record(APPLICATION_DATA, content) => received.extend(content),
                other => panic!("{path}: {other:?}"),
            }
        }
        forge(&mut client);
        expect_alert(&mut client, path);
        assert_eq!(read_to_end(&mut server).0, b"", "{path}");
    }
}

fn forge(client: &mut RawSession) {
    client.send_bytes(FORGED);
}

/// Nothing but an alert, and no close_notify behind it.
fn expect_alert(client: &mut RawSession, path: &str) {
    let alert = client.receive_beyond(&[HANDSHAKE]);
    assert_eq!(alert, Received::Record(ALERT, vec![2, BAD_RECORD_MAC]), "{path}");
    assert_eq!(client.receive(), Received::Closed, "{path}");
}

/// Whole, and sealed by nobody.
const FORGED: &[u8] = b"\x17\x03\x03\x00\x20an honest peer did not seal this";

const BAD_RECORD_MAC: u8 = 20;
