//! The client of each request: as a trusted proxy names it, over whatever connection it comes, in log and guards and towards
//! servers.

use kettle_tests::certificate::ClientAuthority;
use kettle_tests::http::get;

use super::*;
use crate::http2::frames::*;

const NAMED: &str =
    "X-Forwarded-For: 6.6.6.6, 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Request-Id: one\r\n";

/// A server that believes those who connect from this machine, or from elsewhere.
fn trusting(networks: &str, route: &str, servers: &Backend) -> Kettle {
    let listener = format!("http2 = true\ntrusted_proxies = [\"{networks}\"]\n");
    Kettle::start(before(route, "", &[servers.address()]).listener(&listener))
}

fn said<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[test]
fn each_request_of_a_connection_has_a_client_of_its_own() {
    let servers = Backend::listen();
    let kettle = trusting("127.0.0.0/8", "", &servers);
    let mut server: Option<TcpStream> = None;
    let mut client = kettle.ask(&request("GET", "/app/named", NAMED));
    let head = answer(servers.asked(&mut server), &ok("a"));
    assert_eq!(client.response().body, b"a");
    assert_eq!(said(&head, "x-forwarded-for"), ["192.0.2.1, 127.0.0.1"]);
    assert_eq!(said(&head, "x-forwarded-proto"), ["http"]);
    assert_eq!(said(&head, "x-request-id"), ["one"]);
    assert!(said(&head, "forwarded")[0].starts_with("for=192.0.2.1;proto=http;"), "{head}");
    client.send(&get("/app/unnamed")).unwrap();
    let unnamed = answer(servers.asked(&mut server), &ok("b"));
    assert_eq!(client.response().body, b"b");
    assert_eq!(said(&unnamed, "x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(said(&unnamed, "x-forwarded-proto"), ["https"]);
    let entry = kettle.entry("/app/named");
    assert_eq!((entry.text("remote"), entry.text("request_id")), ("192.0.2.1", "one"));
    assert!(!entry.has("remote_port"), "the proxy did not say it");
    let entry = kettle.entry("/app/unnamed");
    assert!(entry.remote().starts_with("127.0.0.1:"));
    assert_eq!(said(&unnamed, "x-request-id"), [entry.text("request_id")]);
}

#[test]
fn each_stream_has_a_client_of_its_own_in_guards_and_log() {
    let servers = Backend::listen();
    let kettle = trusting("127.0.0.0/8", "deny = [\"192.0.2.0/24\"]", &servers);
    let mut frames = Frames::connect(&kettle, &[]);
    let mut server: Option<TcpStream> = None;
    for (stream, client) in [(1, "203.0.113.7"), (3, "192.0.2.9"), (5, "2001:db8::1")] {
        let block = fields("GET", "/app", &[("x-forwarded-for", client)]);
        frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
        if client == "192.0.2.9" {
            let page = String::from_utf8(frames.body(stream)).unwrap();
            let entry = kettle.entry("/app");
            assert_eq!((entry.number("status"), entry.text("remote")), (403, client));
            assert!(page.contains(&format!("Request {}<", entry.text("request_id"))), "{page}");
            continue;
        }
        let head = answer(servers.asked(&mut server), &ok(client));
        assert_eq!(said(&head, "x-forwarded-for"), [format!("{client}, 127.0.0.1")]);
        assert_eq!(frames.body(stream), client.as_bytes());
        assert_eq!(kettle.entry("/app").text("remote"), client);
    }
}

#[test]
fn strangers_name_nobody() {
    let servers = Backend::listen();
    let kettle = trusting("10.0.0.0/8", "", &servers);
    let _client = kettle.ask(&request("GET", "/app", NAMED));
    let head = answer(&mut servers.accept(), &ok("a"));
    assert_eq!(said(&head, "x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(said(&head, "x-forwarded-proto"), ["https"]);
    assert_eq!(said(&head, "x-request-id"), ["one"]);
    let entry = kettle.entry("/app");
    assert!(entry.remote().starts_with("127.0.0.1:"));
    assert_eq!(entry.text("request_id").len(), 16, "anybody may have said the other");
}

#[test]
fn a_tunnel_is_its_requests_clients() {
    let servers = Backend::listen();
    let kettle = trusting("127.0.0.1", "websocket = true", &servers);
    let asking = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
    let mut client = kettle.ask(&request("GET", "/app", &format!("{NAMED}{asking}")));
    let mut server = servers.accept();
    let agreed =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    answer(&mut server, agreed);
    assert_eq!(client.response_head().status, 101);
    client.send(b"ping").unwrap();
    assert_eq!(read_exactly(&mut server, 4), b"ping");
    drop((server, client));
    let tunnel = kettle.tunnel();
    assert_eq!((tunnel.text("remote"), tunnel.text("peer")), ("192.0.2.1", "127.0.0.1"));
}

#[test]
fn words_say_who_asks_and_for_what() {
    let authority = ClientAuthority::new("authority");
    let ann = authority.issue("ann", 1, 3_000);
    let servers = Backend::listen();
    let route = "request_headers = { X-Client = \"{client_ip}\", X-URL = \"{scheme}://{host}:{port}{uri}\", \
        X-Subject = \"{client_subject}\", Client-Cert = \"{client_cert}\", \
        Client-Cert-Chain = \"{client_cert_chain}\", X-Secret = [] }\n\
        headers = { X-Powered-By = [] }\nbackend_host = \"{host}\"";
    let setup = before(route, "", &[servers.address()])
        .site("client_auth = { roots = \"clients.pem\", mode = \"optional\" }")
        .file("clients.pem", authority.pem())
        .file("ann.pem", ann.chain)
        .file("ann.key", ann.key);
    let kettle = Kettle::start(setup);
    let port = kettle.address().port();
    let response = "HTTP/1.1 200 OK\r\nX-Powered-By: x\r\nX-Other: 1\r\nContent-Length: 0\r\n\r\n";
    let mut server: Option<TcpStream> = None;
    for shows in [true, false] {
        let paths = ["ann.pem", "ann.key"].map(|it| kettle.folder.path(it).display().to_string());
        let certificate = ["--cert", &paths[0], "--key", &paths[1]];
        let lies = ["X-Subject: root", "X_Client: 6.6.6.6", "client-cert: :AA==:", "X-SECRET: 1"];
        let lies = lies.iter().flat_map(|line| ["-H", line]);
        let words: Vec<_> = ["--include"].into_iter().chain(lies).collect();
        let words = if shows { [&words[..], &certificate].concat() } else { words };
        let curl = kettle.curl(&words, "/app/a//b:c?d");
        let asking = std::thread::spawn(move || Tool::succeed(curl));
        let head = answer(servers.asked(&mut server), response);
        let answered = asking.join().unwrap().to_ascii_lowercase();
        assert!(
            answered.contains("x-other: 1") && !answered.contains("x-powered-by"),
            "{answered}"
        );
        assert!(head.starts_with("GET /app/a//b:c?d HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
        assert_eq!(said(&head, "x-client"), ["127.0.0.1"]);
        assert_eq!(said(&head, "x-url"), [format!("https://localhost:{port}/app/a//b:c?d")]);
        assert!(!head.contains("6.6.6.6") && !head.contains("root"), "{head}");
        assert!(!head.to_ascii_lowercase().contains("x-secret"), "{head}");
        assert_eq!(said(&head, "client-cert-chain"), Vec::<&str>::new());
        match (shows, &*said(&head, "x-subject"), &*said(&head, "client-cert")) {
            (true, ["CN=ann,O=kettle's tests"], [certificate]) => {
                assert!(certificate.starts_with(":MI") && certificate.ends_with(':'), "{head}");
            }
            (false, [], []) => {}
            _ => panic!("{shows}: {head}"),
        }
    }
}

#[test]
fn what_is_kept_is_asked_for_with_what_its_key_has() {
    let servers = Backend::listen();
    let route = "request_headers = { X-URL = \"{scheme}://{host}{uri}\" }\nbackend_host = \"{host}:{port}\"\n\
        [site.route.cache]\nstore = \"main\"\n";
    let setup = Setup::default()
        .listener("trusted_proxies = [\"127.0.0.1\"]")
        .more(&format!("[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n{route}"))
        .more("[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n")
        .file("kept/.keep", "")
        .more(&kettle_tests::backend::backend("app", "", &[servers.address()]));
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    let mut server: Option<TcpStream> = None;
    let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 2\r\n\r\nok";
    let by_tls = "X-Forwarded-For: 192.0.2.1\r\n";
    client.send(&request("GET", "/app//a:b", by_tls)).unwrap();
    let head = answer(servers.asked(&mut server), fresh);
    assert_eq!(client.response().body, b"ok");
    assert!(head.starts_with("GET /app/a:b HTTP/1.1\r\nhost: localhost:443\r\n"), "{head}");
    assert_eq!(said(&head, "x-url"), ["https://localhost/app/a:b"]);
    assert!(!head.contains("192.0.2.1") && said(&head, "x-request-id").is_empty(), "{head}");
    // One spelling of it is kept.
    client.send(&request("GET", "/app/a:b", by_tls)).unwrap();
    assert_eq!(client.response().body, b"ok");
    // A client that asked in plain text gets no answer that others got over TLS.
    client.send(&request("GET", "/app/a:b", "X-Forwarded-Proto: http\r\n")).unwrap();
    let head =
        answer(servers.asked(&mut server), "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
    let response = client.response();
    assert_eq!((response.status, said(&head, "x-forwarded-proto")), (302, vec!["http"]));
    assert_eq!(response.header("cache-status"), Some("kettle; fwd=uri-miss"));
}
