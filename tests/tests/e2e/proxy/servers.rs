//! Servers as people have them: over TLS, over a Unix socket, and programs that are not ours.

use std::os::unix::net::UnixListener;

use kettle_tests::certificate::ClientAuthority;
use rustls::version::{TLS12, TLS13};

use super::*;
use crate::tunnel::peers::Peer;
use crate::tunnel::{VERIFIED, terminator};

#[test]
fn servers_that_speak_tls_are_verified_and_their_connections_kept() {
    let body = content(1_024 * 1_024);
    for version in ["tls1.2", "tls1.3"] {
        let inner = Setup::default().file("www/app/file", body.clone());
        let inner = Kettle::start(inner.set("tls", &format!("versions = [\"{version}\"]")));
        let settings = format!("{VERIFIED}\n[backend.check]\nkind = \"tls\"\ninterval = \"50ms\"");
        let server = format!("[[backend.server]]\naddress = \"{}\"\n", inner.address());
        let kettle = Kettle::start(before("", &format!("{server}{settings}"), &[]));
        let mut client = Dialer::default().connect(kettle.address());
        for is_reused in [false, true] {
            let response = client.get("/app/file");
            assert_eq!(response.status, 200);
            assert_same(&response.body, &body, version);
            let entry = kettle.entry("/app/file");
            assert_eq!(entry.is_true("upstream_reused"), is_reused);
        }
        let [first, second] = [(); 2].map(|()| inner.entry("/app/file").number("connection"));
        assert_eq!(first, second);
        let mut other = Dialer::default().connect(kettle.address());
        assert_eq!(other.get("/app/none").status, 404);
    }
}

#[test]
fn what_clients_are_offered_says_nothing_of_servers() {
    let older = Setup::default().set("tls", "versions = [\"tls1.2\"]");
    let inner = Kettle::start(older.file("www/app/file", "inside"));
    let server = format!("[[backend.server]]\naddress = \"{}\"\n{VERIFIED}\n", inner.address());
    for (own, status) in [("", 200), ("versions = [\"tls1.3\"]", 502)] {
        let setup = before("", &format!("{server}{own}"), &[]);
        let kettle = Kettle::start(setup.set("tls", "versions = [\"tls1.3\"]"));
        let mut client = Dialer::default().connect(kettle.address());
        assert_eq!(client.get("/app/file").status, status, "{own}");
    }
}

#[test]
fn a_server_that_speaks_tls_is_told_an_end_in_order_and_no_other() {
    let backend = Backend::listen();
    let inner = terminator("", &[backend.address()]);
    let server = format!("[[backend.server]]\naddress = \"{}\"\n{VERIFIED}", inner.address());
    let kettle = Kettle::start(before("", &server, &[]));
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let early = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nok";
    for (announced_bytes, body, response, end) in [
        (0, "", closing, "client_closed"),
        (2, "me", closing, "client_closed"),
        (9, "half", early, "client_cut"),
    ] {
        let length = format!("Content-Length: {announced_bytes}\r\n");
        let mut client = kettle.ask(&request("POST", "/app", &length));
        client.send(body.as_bytes()).unwrap();
        let mut server = backend.accept_request();
        assert_eq!(read_exactly(&mut server, body.len()), body.as_bytes());
        server.write_all(response.as_bytes()).unwrap();
        assert_eq!(client.response().body, b"ok");
        assert_eq!(read_to_end(&mut server).0, b"");
        drop(server);
        assert_eq!(inner.tunnel().text("end"), end, "{body}");
    }
}

#[test]
fn a_kept_connection_ends_in_order_when_a_reload_has_no_use_for_it_and_at_a_stop() {
    let backend = Backend::listen();
    let inner = [(); 2].map(|()| terminator("", &[backend.address()]));
    let [before_reload, after_reload] = [0, 1].map(|index| inner[index].address().to_string());
    let server = format!(
        "keep_alive_timeout = \"1h\"\n[[backend.server]]\naddress = \"{before_reload}\"\n{VERIFIED}"
    );
    let kettle = Kettle::start(before("", &server, &[]));
    let mut client = Dialer::default().connect(kettle.address());
    let mut ask = || {
        client.send(&get("/app")).unwrap();
        let mut server = backend.accept();
        answer(&mut server, &ok("kept"));
        assert_eq!(client.response().body, b"kept");
        server
    };
    let mut kept = ask();
    kettle.reload_with(&before_reload, &after_reload);
    assert_eq!(read_to_end(&mut kept).0, b"");
    drop(kept);
    assert_eq!(inner[0].tunnel().text("end"), "client_closed");
    let mut kept = ask();
    kettle.signal(Signal::TERM);
    assert_eq!(read_to_end(&mut kept).0, b"");
    drop(kept);
    assert_eq!(inner[1].tunnel().text("end"), "client_closed");
}

#[test]
fn a_check_over_tls_ends_in_order() {
    let inner = terminator("", &[Backend::echoing()]);
    let check = "[backend.check]\nkind = \"tls\"\ninterval = \"50ms\"";
    let server =
        format!("[[backend.server]]\naddress = \"{}\"\n{VERIFIED}\n{check}", inner.address());
    let _kettle = Kettle::start(before("", &server, &[]));
    for _ in 0..3 {
        assert_eq!(inner.tunnel().text("end"), "client_closed");
    }
}

#[test]
fn a_server_that_nobody_vouches_for_is_a_502() {
    let inner = Kettle::start(Setup::default());
    let tls = "[backend.tls]\nname = \"elsewhere\"\nroots = \"authority.pem\"";
    let server = format!("[[backend.server]]\naddress = \"{}\"\n", inner.address());
    let kettle = Kettle::start(before("", &format!("{server}{tls}"), &[]));
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/app").status, 502);
    assert_eq!(kettle.entry("/app").text("upstream_failure"), "tls");
}

#[test]
fn a_certificate_refused_behind_the_handshake_is_told() {
    let known = ClientAuthority::new("clients");
    let unknown = ClientAuthority::new("strangers");
    let strange = unknown.issue("kettle", 1, 2099);
    let inner = Setup::default()
        .file("clients.pem", known.pem())
        .site("client_auth = { roots = \"clients.pem\" }");
    let inner = Kettle::start(inner);
    let server = format!("[[backend.server]]\naddress = \"{}\"\n{VERIFIED}\n", inner.address());
    let shown = "certificate = { chain = \"strange.pem\", key = \"strange.key\" }";
    for (certificate, reason, told) in [
        ("", "certificate_required", "asked for a certificate, got none"),
        (shown, "alert_received", "UnknownCA"),
    ] {
        let setup = before("", &format!("{server}{certificate}"), &[])
            .file("strange.pem", strange.chain.clone())
            .file("strange.key", strange.key.clone());
        let kettle = Kettle::start(setup);
        assert_eq!(Dialer::default().connect(kettle.address()).get("/app").status, 502);
        assert_eq!(kettle.entry("/app").text("upstream_failure"), reason);
        let shown = kettle.ctl(&["backends"]).succeed();
        assert!(shown.contains(told), "{shown}");
    }
}

#[test]
fn a_server_that_breaks_tls_is_told_by_what_it_did() {
    for version in [&TLS12, &TLS13] {
        let backend = Backend::listen();
        let setup = before("", VERIFIED, &[backend.address()]);
        let kettle = Kettle::start(setup);
        let mut client = kettle.ask(&get("/app"));
        let mut server = in_tls(version, backend.accept());
        read_head(&mut server);
        server.sock.write_all(ok("plain").as_bytes()).unwrap();
        assert_eq!(client.response().status, 502);
        assert_eq!(kettle.entry("/app").text("upstream_failure"), "unexpected_record_type");
        let shown = kettle.ctl(&["backends"]).succeed();
        assert!(shown.contains("unexpected_record_type"), "{shown}");
    }
}

#[test]
fn unix_sockets_are_servers_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let (mut server, _) = listener.accept().unwrap();
        for body in ["one", "two"] {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                server.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            server.write_all(ok(body).as_bytes()).unwrap();
        }
    });
    let server = format!("[[backend.server]]\naddress = \"unix:{}\"\n", path.display());
    let kettle = Kettle::start(before("", &server, &[]));
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/app").body, b"one");
    assert_eq!(client.get("/app").body, b"two");
    serving.join().unwrap();
}

#[test]
fn nginx_behind_us_serves_what_it_serves() {
    const SERVER: &str = "
  server {
    listen ADDRESS;
    location /app/ { alias FOLDER/; }
    location /app/who { return 200 \"$http_x_forwarded_for $http_host $http_x_forwarded_proto\"; }
    location /app/small { client_max_body_size 1k; return 200 ok; }
  }
";
    let text = "0123456789".repeat(100_000);
    let Some(nginx) = Peer::nginx(SERVER, &[("file", text.clone())]) else {
        return;
    };
    let kettle = Kettle::start(before("", "", &[nginx.address]));
    let mut client = Dialer::default().connect(kettle.address());
    serves_the_file(&mut client, &text);
    assert_eq!(client.get("/app/who").body, b"127.0.0.1 localhost https");
    assert_eq!(client.get("/app/none").status, 404);
    assert!(kettle.entry("/app/none").is_true("upstream_reused"));
    // It refuses the body by its announced length and closes.
    client.send(&request("POST", "/app/small", "Content-Length: 100000\r\n")).unwrap();
    client.send(&[b'x'; 100_000]).unwrap();
    assert_eq!(client.response().status, 413);
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/app/file").body.len(), 1_000_000);
}

/// A file of a server behind us: whole, a part of it, as it was, and its head.
fn serves_the_file(client: &mut Client, text: &str) {
    let whole = client.get("/app/file");
    assert_same(&whole.body, text.as_bytes(), "the whole file");
    client.send(&request("GET", "/app/file", "Range: bytes=5-9\r\n")).unwrap();
    let part = client.response();
    assert_eq!((part.status, &*part.body), (206, &b"56789"[..]));
    let tag = whole.header("etag").unwrap();
    client.send(&request("GET", "/app/file", &format!("If-None-Match: {tag}\r\n"))).unwrap();
    assert_eq!(client.response().status, 304);
    client.send(&request("HEAD", "/app/file", "")).unwrap();
    assert_eq!(client.response_head().header("content-length"), Some("1000000"));
}

#[test]
fn node_behind_us_streams_both_ways_and_changes_protocols() {
    const PROGRAM: &str = "
const server = require('http').createServer((request, response) => {
  if (request.url === '/app/echo') { request.pipe(response); return; }
  response.setHeader('Trailer', 'X-Sum');
  response.write('chunk');
  setImmediate(() => { response.addTrailers({'X-Sum': '1'}); response.end('ed'); });
});
server.on('upgrade', (request, socket, head) => {
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n');
  socket.write(head);
  socket.pipe(socket);
});
server.listen(PORT, 'HOST');
";
    let host = unused_address().ip().to_string();
    let program = PROGRAM.replace("HOST", &host);
    let Some(node) = Peer::start("node", &[], &program, &[]) else { return };
    let kettle = Kettle::start(before("websocket = true", "", &[node.address]));
    let mut client = kettle.ask(&get("/app/chunked"));
    assert_eq!(super::chunked_response(&mut client).body, b"chunked");
    client.send(&request("POST", "/app/echo", "Transfer-Encoding: chunked\r\n")).unwrap();
    client.send(b"5\r\nhello\r\n0\r\n\r\n").unwrap();
    assert_eq!(super::chunked_response(&mut client).body, b"hello");
    let asking = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    client.send(&request("GET", "/app/live", asking)).unwrap();
    assert_eq!(client.response_head().status, 101);
    client.send(b"over and out").unwrap();
    assert_eq!(client.receive_exactly(12), b"over and out");
}

#[test]
fn apache_behind_us_serves_what_it_serves() {
    const SETTINGS: &str = "
TypesConfig /dev/null
AddOutputFilter INCLUDES .shtml
Alias /app FOLDER
<Location /app/file>
  SetOutputFilter DEFLATE
</Location>
<Location /app/echo>
  SetHandler reflector
</Location>
<Location /app/small>
  SetHandler reflector
  LimitRequestBody 10
</Location>
";
    let modules = ["alias", "mime", "filter", "deflate", "include", "reflector"];
    let text = "0123456789".repeat(100_000);
    let page = "<!--#include virtual=\"file\" --><!--#include virtual=\"file\" -->".to_owned();
    let files = [("file", text.clone()), ("page.shtml", page)];
    let Some(apache) = Peer::apache(&modules, SETTINGS, &files) else { return };
    let kettle = Kettle::start(before("", "", &[apache.address]));
    let mut client = Dialer::default().connect(kettle.address());
    serves_the_file(&mut client, &text);
    // Put together while it is sent.
    client.send(&get("/app/page.shtml")).unwrap();
    let page = super::chunked_response(&mut client);
    assert_same(&page.body, text.repeat(2).as_bytes(), "a page of two parts");
    // Compressed, and so another representation.
    client.send(&request("GET", "/app/file", "Accept-Encoding: gzip\r\n")).unwrap();
    let compressed = super::any_response(&mut client);
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(compressed.body.starts_with(&[0x1f, 0x8b]) && compressed.body.len() < 100_000);
    let expecting = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    client.send(&request("POST", "/app/echo", expecting)).unwrap();
    assert_eq!(client.response_head().status, 100);
    client.send(b"hello").unwrap();
    assert_eq!(super::any_response(&mut client).body, b"hello");
    client.send(&request("POST", "/app/echo", "Transfer-Encoding: chunked\r\n")).unwrap();
    client.send(b"5\r\nhello\r\n0\r\n\r\n").unwrap();
    assert_eq!(super::any_response(&mut client).body, b"hello");
    assert_eq!(client.get("/app/none").status, 404);
    assert!(kettle.entry("/app/none").is_true("upstream_reused"));
    // It refuses the body by its announced length, and asks for none of it.
    client
        .send(&request("POST", "/app/small", "Content-Length: 100\r\nExpect: 100-continue\r\n"))
        .unwrap();
    assert_eq!(super::any_response(&mut client).status, 413);
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/app/file").body.len(), 1_000_000);
}
