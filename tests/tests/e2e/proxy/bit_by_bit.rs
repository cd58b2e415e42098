//! Answers that come bit by bit, as those of language models and streams of events do: none is held back, which nginx does with them
//! unless it is told otherwise (`proxy_buffering off`).

use std::path::Path;

use kettle_tests::tool::{Running, wait_until_listening};

use super::*;

const QUESTION: &str = r#"{"stream":true}"#;

/// A server with these settings of its route and of a store, whose backend a test answers by hand.
fn start(settings: &str) -> (Kettle, Backend) {
    let backend = Backend::listen();
    let setup = before_with("all", settings, "", &[backend.address()])
        .listener("http2 = true")
        .file("kept/.keep", "")
        .more("[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n");
    (Kettle::start(setup), backend)
}

/// The backend's side of the next request, whose head and body were read.
fn asked(backend: &Backend) -> TcpStream {
    let mut server = backend.accept();
    if read_head(&mut server).starts_with("POST") {
        assert_eq!(read_exactly(&mut server, QUESTION.len()), QUESTION.as_bytes());
    }
    server
}

/// Sends event after event, each once its client has the one before.
fn assert_at_once(curl: &Running, mut server: TcpStream, is_chunked: bool, what: &str) {
    let framing = if is_chunked { "Transfer-Encoding: chunked" } else { "Connection: close" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n{framing}\r\n\r\n"
    );
    server.write_all(head.as_bytes()).unwrap();
    for number in 0..20 {
        let event = format!("data: {{\"token\":\"{number} of {what}\"}}\n\n");
        let sent = match is_chunked {
            true => format!("{:x}\r\n{event}\r\n", event.len()),
            false => event.clone(),
        };
        server.write_all(sent.as_bytes()).unwrap();
        curl.stdout.wait_for(event.trim());
    }
    if is_chunked {
        server.write_all(b"0\r\n\r\n").unwrap();
    }
}

#[test]
fn each_event_reaches_its_client_before_the_next_one_is_there() {
    for settings in ["", "cache = { store = \"main\" }", "limit_rate = \"1 MiB\""] {
        let (kettle, backend) = start(settings);
        for protocol in ["--http1.1", "--http2"] {
            for is_chunked in [true, false] {
                let question = [protocol, "--no-buffer", "--data", QUESTION];
                let curl = kettle.curl(&question, "/app/v1/chat/completions").start();
                let what = format!("{settings}{protocol}").replace(['"', '\\'], "");
                assert_at_once(&curl, asked(&backend), is_chunked, &what);
                assert!(curl.finish().status.success(), "{what}");
                // A stream of events that a page listens to.
                let curl = kettle.curl(&[protocol, "--no-buffer"], "/app/events").start();
                assert_at_once(&curl, asked(&backend), is_chunked, &what);
                assert!(curl.finish().status.success(), "{what}");
            }
        }
    }
}

#[test]
fn nginx_holds_back_what_kettle_does_not() {
    if !Path::new(NGINX_PROGRAM).exists() {
        return skip("nginx is not installed");
    }
    let backend = Backend::listen();
    let address = unused_address();
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("nginx.conf");
    fs::write(&conf, nginx_conf(folder.path(), address, backend.address())).unwrap();
    let _nginx =
        Tool::new(NGINX_PROGRAM).args(["-e", "stderr", "-c", conf.to_str().unwrap()]).start();
    wait_until_listening(address);
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET /events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut server = asked(&backend);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    server.write_all(head.as_bytes()).unwrap();
    server.write_all(b"data: first\n\n").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut received = Vec::new();
    let waited = client.read_to_end(&mut received);
    assert_eq!(waited.unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(!String::from_utf8_lossy(&received).contains("first"));
    drop(server);
    client.set_read_timeout(None).unwrap();
    client.read_to_end(&mut received).unwrap();
    assert!(String::from_utf8_lossy(&received).contains("first"));
}

fn nginx_conf(folder: &Path, address: SocketAddr, backend: SocketAddr) -> String {
    let folder = folder.display();
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders = folders.map(|name| format!("{name}_temp_path {folder}/{name};")).concat();
    format!(
        "daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}\n\
         server {{ listen {address}; location / {{ proxy_pass http://{backend}; }} }}\n}}\n"
    )
}

const NGINX_PROGRAM: &str = "/usr/sbin/nginx";
