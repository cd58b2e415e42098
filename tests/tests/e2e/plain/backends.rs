//! Requests that go on to a backend, what is kept of its responses, and tunnels.

use std::net::Shutdown;

use kettle_tests::backend::{answer, read_head};

use super::*;

const BODY_BYTES: usize = 3_000_000;

fn passing(servers: &Backend, listener: &str, route: &str) -> Kettle {
    let route = format!("[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n{route}\n");
    let cache = "[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let cache = if route.contains("cache") { cache } else { "" };
    let app = backend("app", "", &[servers.address()]);
    Kettle::start(plain(listener).file("kept/.keep", "").more(&format!("{route}{cache}{app}")))
}

#[test]
fn a_body_is_spliced_from_socket_to_socket() {
    let servers = Backend::listen();
    let kettle = passing(&servers, "", "");
    let mut client = Wire::connect(kettle.addresses[1]);
    client.send(&request("GET", "/app", "")).unwrap();
    let mut server = servers.accept();
    let head = read_head(&mut server);
    assert!(head.contains("\r\nx-forwarded-proto: http\r\n"), "{head}");
    let body = content(BODY_BYTES);
    write!(server, "HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| server.write_all(&body).unwrap());
        assert!(client.response().body == body);
    });
    let entry = kettle.entry("/app");
    assert_eq!((entry.text("path"), entry.text("reason")), ("plain", "splice"));
    // A body that has no length is read and written, in chunks.
    client.send(&request("GET", "/app?chunks", "")).unwrap();
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    answer(&mut server, chunks);
    let head = client.response_head();
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    assert_eq!(client.receive_exactly(13), b"3\r\nabc\r\n0\r\n\r\n");
}

#[test]
fn an_upload_goes_on_once_the_client_was_told_so() {
    let servers = Backend::listen();
    let kettle = passing(&servers, "", "");
    let mut client = Wire::connect(kettle.addresses[1]);
    let head = format!("Expect: 100-continue\r\nContent-Length: {BODY_BYTES}\r\n");
    client.send(&request("POST", "/app", &head)).unwrap();
    assert_eq!(client.response_head().status, 100);
    let body = content(BODY_BYTES);
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| client.socket.try_clone().unwrap().write_all(&body).unwrap());
        let mut server = servers.accept_request();
        assert!(read_exactly(&mut server, BODY_BYTES) == body);
        sent.join().unwrap();
        server.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    assert_eq!(client.response().status, 201);
}

/// FIN is the end of a body whose length nobody said: one that was cut must not look so.
#[test]
fn a_cut_is_no_end() {
    let servers = Backend::listen();
    let kettle = passing(&servers, "", "");
    for (version, framing, is_reset) in [
        ("1.0", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true),
        ("1.1", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false),
        ("1.1", "Content-Length: 9\r\n\r\nabc", false),
        ("1.0", "Content-Length: 9\r\n\r\nabc", false),
    ] {
        let mut client = Wire::connect(kettle.addresses[1]);
        client
            .send(format!("GET /app HTTP/{version}\r\nHost: localhost\r\n\r\n").as_bytes())
            .unwrap();
        let mut server = servers.accept();
        answer(&mut server, &format!("HTTP/1.1 200 OK\r\n{framing}"));
        assert_eq!(client.response_head().status, 200);
        client.receive_exactly(3);
        drop(server);
        let mut rest = Vec::new();
        let ended = client.socket.read_to_end(&mut rest);
        assert_eq!(ended.is_err(), is_reset, "{version} {framing:?} {ended:?}");
    }
}

#[test]
fn a_tunnel_goes_from_socket_to_socket() {
    let servers = Backend::listen();
    let kettle = passing(&servers, "", "websocket = true");
    let mut client = Wire::connect(kettle.addresses[1]);
    let asking = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
    // The bytes behind the request go first.
    client.send(&[&request("GET", "/app", asking)[..], b"early"].concat()).unwrap();
    let mut server = servers.accept();
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Accept: y\r\n\r\n";
    answer(&mut server, agreed);
    assert_eq!(client.response_head().status, 101);
    assert_eq!(read_exactly(&mut server, 5), b"early");
    let body = content(BODY_BYTES);
    std::thread::scope(|scope| {
        scope.spawn(|| server.write_all(&body).unwrap());
        assert!(client.receive_exactly(BODY_BYTES) == body);
    });
    client.socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut server).0, b"");
    server.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    client.socket.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
    let tunnel = kettle.tunnel();
    assert!(format!("{tunnel:?}").contains("plain"), "{tunnel:?}");
}

/// A backend's redirect to HTTPS, kept for those that asked without, would send those round in circles that came by it.
#[test]
fn what_is_kept_for_one_scheme_is_not_for_the_other() {
    let servers = Backend::listen();
    let kettle = passing(&servers, "", "[site.route.cache]\nstore = \"main\"");
    let mut server = None;
    let mut by_http = Wire::connect(kettle.addresses[1]);
    let mut by_https = Dialer::default().connect(kettle.addresses[0]);
    let redirect = "HTTP/1.1 301 Moved Permanently\r\nCache-Control: max-age=100\r\n\
        Location: https://localhost/app\r\nContent-Length: 0\r\n\r\n";
    let page = "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 4\r\n\r\npage";
    by_http.send(&request("GET", "/app", "")).unwrap();
    let head = answer(servers.asked(&mut server), redirect);
    assert!(head.contains("\r\nx-forwarded-proto: http\r\n"), "{head}");
    assert_eq!(by_http.response().status, 301);
    by_https.send(&request("GET", "/app", "")).unwrap();
    let head = answer(servers.asked(&mut server), page);
    assert!(head.contains("\r\nx-forwarded-proto: https\r\n"), "{head}");
    assert_eq!(by_https.response().body, b"page");
    for _ in 0..2 {
        assert_eq!(by_http.get("/app").status, 301);
        assert_eq!(by_https.get("/app").body, b"page");
    }
    // A purge names the scheme.
    let forgotten = |url: &str| kettle.ctl(&["cache", "purge", url]).succeed();
    assert!(forgotten("http://localhost/app").contains("forgotten: http://localhost/app"));
    assert_eq!(by_https.get("/app").body, b"page");
    by_http.send(&request("GET", "/app", "")).unwrap();
    answer(servers.asked(&mut server), redirect);
    assert_eq!(by_http.response().status, 301);
    // A write changes what both get.
    by_https.send(&request("POST", "/app", "Content-Length: 0\r\n")).unwrap();
    answer(servers.asked(&mut server), "HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(by_https.response_head().status, 204);
    by_http.send(&request("GET", "/app", "")).unwrap();
    answer(servers.asked(&mut server), page);
    assert_eq!(by_http.response().body, b"page");
}
