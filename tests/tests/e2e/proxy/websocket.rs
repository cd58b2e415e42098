//! Changes of protocol: a tunnel begins after a real 101 that names what was asked for, and never before.

use super::*;

const ASKING: &str =
    "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";

const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
    Sec-WebSocket-Accept: y\r\n\r\n";

/// A tunnel that stands.
fn standing(mut client: Client, backend: &Backend) -> (Client, TcpStream) {
    client.send(&request("GET", "/app", ASKING)).unwrap();
    let mut server = backend.accept();
    let head = answer(&mut server, AGREED);
    assert!(head.contains("connection: upgrade\r\nupgrade: websocket\r\n"), "{head}");
    let response = client.response_head();
    assert_eq!((response.status, response.header("upgrade")), (101, Some("WebSocket")));
    assert_eq!(response.header("connection"), Some("upgrade"));
    assert_eq!(response.header("sec-websocket-accept"), Some("y"));
    (client, server)
}

#[test]
fn both_sides_speak_freely_after_a_101() {
    let (backend, kettle) = started("websocket = true", "");
    for suite in ONE_OF_EACH_VERSION {
        let client = Dialer::suite(suite).connect(kettle.address());
        let (mut client, mut server) = standing(client, &backend);
        client.send(b"ping").unwrap();
        assert_eq!(read_exactly(&mut server, 4), b"ping");
        server.write_all(b"pong").unwrap();
        assert_eq!(client.receive_exactly(4), b"pong");
        drop(server);
        assert_eq!(client.end(), End::Orderly);
        client.close_sending();
        assert_eq!(kettle.entry("/app").number("status"), 101);
        let tunnel = kettle.tunnel();
        assert_eq!((tunnel.text("backend"), tunnel.text("end")), ("app", "backend_closed"));
        // That is in the line of the request, which may have come over a connection of others.
        assert!(!tunnel.has("connect_us"), "{tunnel:?}");
    }
}

#[test]
fn one_that_waited_for_its_server_over_a_reload_lasts_as_long_as_that_says() {
    let backend = Backend::listen();
    let app = "queue_timeout = \"1m\"\nidle_timeout = \"10m\"";
    let setup = before("websocket = true", app, &[backend.address()]).more("connections = 1\n");
    let kettle = Kettle::start(setup);
    let mut first = kettle.ask(&request("GET", "/app", ""));
    let mut server = backend.accept_request();
    let mut waiting = kettle.ask(&request("GET", "/app", ASKING));
    kettle.wait_for_status("/backends/0/waiting", 1);
    kettle.reload_with("idle_timeout = \"10m\"", "idle_timeout = \"1s\"");
    let response = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nfirst";
    server.write_all(response.as_bytes()).unwrap();
    assert_eq!(first.response().body, b"first");
    let mut server = backend.accept();
    answer(&mut server, AGREED);
    assert_eq!(waiting.response_head().status, 101);
    assert_eq!(kettle.tunnel().text("end"), "idle");
}

#[test]
fn what_stands_behind_the_heads_is_not_lost() {
    let (backend, kettle) = started("websocket = true", "");
    let early = [request("GET", "/app", ASKING), b"early".to_vec()].concat();
    let mut client = kettle.ask(&early);
    let mut server = backend.accept();
    answer(&mut server, &format!("{AGREED}first"));
    assert_eq!(client.response_head().status, 101);
    assert_eq!(client.receive_exactly(5), b"first");
    assert_eq!(read_exactly(&mut server, 5), b"early");
}

#[test]
fn nothing_is_a_tunnel_before_the_servers_101() {
    // CVE-2026-2833: what a client sent behind a request to upgrade went to the server unread.
    let (backend, kettle) = started("websocket = true", "");
    let smuggled = b"GET /app/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut client = kettle.ask(&[request("GET", "/app", ASKING), smuggled.to_vec()].concat());
    let mut server = backend.accept();
    answer(&mut server, &ok("no upgrade here"));
    assert_eq!(client.response().body, b"no upgrade here");
    // It is a request of its own, on a connection of its own, with our words.
    let mut other = backend.accept();
    let head = answer(&mut other, &ok("a request"));
    assert!(head.starts_with("GET /app/smuggled HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
    assert!(head.contains("x-forwarded-for"), "{head}");
    assert_eq!(client.response().body, b"a request");
    assert_eq!(read_to_end(&mut server).0, b"");
}

#[test]
fn a_101_that_nobody_asked_for_or_for_something_else_is_a_502() {
    let backend = Backend::listen();
    for (route, headers, answered) in [
        ("", "", AGREED.to_owned()),
        ("", ASKING, AGREED.to_owned()),
        ("websocket = true", "", AGREED.to_owned()),
        ("websocket = true", "Upgrade: websocket\r\n", AGREED.to_owned()),
        ("websocket = true", ASKING, AGREED.replace("WebSocket", "h2c")),
        ("websocket = true", ASKING, AGREED.replace("WebSocket", "websocket, h2c")),
        ("websocket = true", ASKING, AGREED.replace("Upgrade: WebSocket\r\n", "")),
        ("websocket = true", ASKING, AGREED.replace("Connection: Upgrade\r\n", "")),
    ] {
        let kettle = Kettle::start(before(route, "", &[backend.address()]));
        let mut client = kettle.ask(&request("GET", "/app", headers));
        let mut server = backend.accept();
        let head = answer(&mut server, &answered);
        let is_asked = route.contains("true") && headers == ASKING;
        assert_eq!(head.contains("upgrade: "), is_asked, "{head}");
        assert_eq!(client.response().status, 502, "{route} {headers:?} {answered:?}");
        assert_eq!(read_to_end(&mut server).0, b"");
    }
}

#[test]
fn a_tunnel_of_http_would_pass_by_all_rules_and_is_not_made() {
    let (backend, kettle) = started("websocket = true", "");
    for protocols in ["h2c", "websocket, H2C", "HTTP/2.0", "TLS/1.0", "echo"] {
        let asking = format!(
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: {protocols}\r\nHTTP2-Settings: AAMAAABk\r\n"
        );
        let mut client = kettle.ask(&request("GET", "/app", &asking));
        let mut server = backend.accept();
        let response = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let head = answer(&mut server, response).to_ascii_lowercase();
        assert!(!head.contains("upgrade") && !head.contains("http2-settings"), "{head}");
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn old_clients_and_those_with_a_body_change_no_protocol() {
    let (backend, kettle) = started("websocket = true", "");
    let old = format!("GET /app HTTP/1.0\r\nHost: localhost\r\n{ASKING}\r\n");
    let with_body = request("POST", "/app", &format!("{ASKING}Content-Length: 1\r\n"));
    for bytes in [old.into_bytes(), [with_body, b"x".to_vec()].concat()] {
        let mut client = kettle.ask(&bytes);
        let mut server = backend.accept();
        let head = read_head(&mut server);
        assert!(!head.to_ascii_lowercase().contains("upgrade"), "{head}");
        server
            .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn tunnels_and_downloads_outlive_reloads() {
    let backend = Backend::listen();
    let setup = before("websocket = true", "", &[backend.address()]);
    let kettle = Kettle::start(setup);
    let client = Dialer::default().connect(kettle.address());
    let (mut client, mut server) = standing(client, &backend);
    let mut downloading = kettle.ask(&request("GET", "/app/file", ""));
    let mut sender = backend.accept();
    answer(&mut sender, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
    assert_eq!(downloading.response_head().status, 200);
    for number in 0..20 {
        let _ = kettle.ctl(&["reload"]).succeed();
        client.send(b"ping").unwrap();
        assert_eq!(read_exactly(&mut server, 4), b"ping", "after reload {number}");
        sender.write_all(b"x").unwrap();
        assert_eq!(downloading.receive_exactly(1), b"x", "after reload {number}");
    }
    // A request that comes later is the new configuration's.
    downloading.send(&request("GET", "/app/next", "")).unwrap();
    answer(&mut sender, &ok("kept over the reload"));
    assert_eq!(downloading.response().body, b"kept over the reload");
}
