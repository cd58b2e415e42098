//! Connections to a server that are used again, and those that must not be.

use std::sync::mpsc;

use super::*;

/// As [`warmed`], with metrics to be read at an address.
fn measured(backend: &Backend, listen: SocketAddr) -> (Kettle, Client, TcpStream) {
    let setup = before("", "", &[backend.address()]);
    warm(setup.metrics(listen), backend)
}

fn free_address() -> SocketAddr {
    TcpListener::bind((unused_ip(), 0)).unwrap().local_addr().unwrap()
}

/// A server before a backend, and a client whose first request was answered on the connection returned, which no time ends.
fn warmed(backend: &Backend, settings: &str) -> (Kettle, Client, TcpStream) {
    let settings = format!("keep_alive_timeout = \"1h\"\n{settings}");
    warm(before("", &settings, &[backend.address()]), backend)
}

fn warm(setup: Setup, backend: &Backend) -> (Kettle, Client, TcpStream) {
    let kettle = Kettle::start(setup);
    let mut client = kettle.ask(&get("/app/first"));
    let mut server = backend.accept();
    answer(&mut server, &ok("first"));
    assert_eq!(client.response().body, b"first");
    (kettle, client, server)
}

/// Asserts that the connection was closed by kettle, with nothing said on it before.
fn assert_closed(server: &mut TcpStream) {
    let (received, outcome) = read_to_end(server);
    assert_eq!(received.escape_ascii().to_string(), "");
    let is_kept = outcome.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!is_kept);
}

#[test]
fn one_connection_serves_many_requests_of_many_clients() {
    let backend = Backend::listen();
    let listen = free_address();
    let (kettle, mut client, mut server) = measured(&backend, listen);
    for number in 0..20 {
        if number % 5 == 0 {
            client = Dialer::default().connect(kettle.address());
        }
        passes(&mut client, &mut server, "/app", "again");
    }
    let metrics = scrape(listen);
    for line in [
        "kettle_upstream_connections{backend=\"app\",state=\"idle\"} 1",
        "kettle_upstream_connections{backend=\"app\",state=\"active\"} 0",
        "kettle_upstream_responses_total{backend=\"app\",status=\"200\"} 21",
        "kettle_upstream_retries_total{backend=\"app\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[test]
fn without_keep_alive_each_request_has_a_connection_of_its_own() {
    let backend = Backend::listen();
    let (_kettle, mut client, mut server) = warmed(&backend, "keep_alive = 0");
    assert_closed(&mut server);
    client.send(&get("/app")).unwrap();
    let head = serves(&mut client, &mut backend.accept(), "second");
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
}

#[test]
fn what_a_server_says_unasked_is_no_answer_to_the_next_request() {
    for stray in ["HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", "x"] {
        let backend = Backend::listen();
        let (_kettle, mut client, mut server) = warmed(&backend, "");
        // In one write with a response, and later.
        client.send(&get("/app/with")).unwrap();
        answer(&mut server, &format!("{}{stray}", ok("with")));
        assert_eq!(client.response().body, b"with");
        assert_closed(&mut server);
        client.send(&get("/app/next")).unwrap();
        let mut server = backend.accept();
        answer(&mut server, &ok("next"));
        assert_eq!(client.response().body, b"next");
        server.write_all(stray.as_bytes()).unwrap();
        client.send(&get("/app/last")).unwrap();
        let mut other = backend.accept();
        answer(&mut other, &ok("last"));
        assert_eq!(client.response().body, b"last");
        assert_closed(&mut server);
    }
}

#[test]
fn a_server_that_says_close_is_believed() {
    let backend = Backend::listen();
    let (_kettle, mut client, mut server) = warmed(&backend, "");
    for response in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        client.send(&get("/app")).unwrap();
        answer(&mut server, response);
        assert!(client.response_head().status < 400);
        assert_closed(&mut server);
        client.send(&get("/app")).unwrap();
        server = backend.accept();
        answer(&mut server, &ok(""));
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_request_on_a_connection_that_had_died_is_sent_once_more_if_that_is_safe() {
    let no_body = "Content-Length: 0\r\n";
    for (method, fields, is_repeated) in [
        ("GET", "", true),
        ("DELETE", "", true),
        ("PUT", "", true),
        ("PUT", no_body, true),
        ("POST", "", false),
        ("POST", no_body, false),
    ] {
        let backend = Backend::listen();
        let listen = free_address();
        let (kettle, mut client, mut server) = measured(&backend, listen);
        client.send(&request(method, "/app/late", fields)).unwrap();
        // The server had decided to close before it saw the request.
        let head = read_head(&mut server);
        let says = usize::from(matches!(method, "PUT" | "POST"));
        assert_eq!(head.matches("content-length: 0\r\n").count(), says, "{head}");
        server.shutdown(Shutdown::Both).unwrap();
        drop(server);
        if is_repeated {
            answer(&mut backend.accept(), &ok("second try"));
            assert_eq!(client.response().body, b"second try");
        } else {
            assert_eq!(client.response().status, 502);
        }
        let entry = kettle.entry("/app/late");
        let metrics = scrape(listen);
        let retries = u8::from(is_repeated);
        let line = format!("kettle_upstream_retries_total{{backend=\"app\"}} {retries}");
        assert!(metrics.contains(&line), "{method}: {metrics}");
        assert_eq!(entry.number("status"), if is_repeated { 200 } else { 502 });
    }
}

/// Of requests that may not be repeated only one is lost to a server that closes without saying so, whichever it was.
#[test]
fn what_may_not_be_repeated_takes_no_kept_connection_of_a_server_that_let_one_die() {
    for first in ["POST", "GET"] {
        let backend = Backend::listen();
        let (_kettle, mut client, mut server) = warmed(&backend, "");
        client.send(&request(first, "/app/late", "")).unwrap();
        read_head(&mut server);
        drop(server);
        let mut kept = if first == "GET" {
            let mut again = backend.accept();
            answer(&mut again, &ok("again"));
            assert_eq!(client.response().status, 200);
            again
        } else {
            assert_eq!(client.response().status, 502);
            client.send(&get("/app/kept")).unwrap();
            let mut kept = backend.accept();
            answer(&mut kept, &ok("kept"));
            assert_eq!(client.response().status, 200);
            kept
        };
        for method in ["POST", "PATCH"] {
            client.send(&request(method, "/app/new", "Content-Length: 2\r\n")).unwrap();
            client.send(b"{}").unwrap();
            let mut new = backend.accept_request();
            assert_eq!(read_exactly(&mut new, 2), b"{}");
            new.write_all(ok("new").as_bytes()).unwrap();
            assert_eq!(client.response().body, b"new");
            // A request that may be repeated goes by the one used last.
            passes(&mut client, &mut new, "/app/again", "again");
        }
        // None of them was closed for that.
        kept.set_nonblocking(true).unwrap();
        assert_eq!(kept.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}

/// Each connection is closed a moment after its answer, whatever comes.
#[test]
fn a_server_that_closes_a_moment_after_each_answer_costs_one_request() {
    let backend = Backend::listen();
    let address = backend.address();
    let serving = thread::spawn(move || {
        let (_silent, clock) = mpsc::channel::<()>();
        for connection in 0_u64.. {
            let mut server = backend.accept();
            if read_head(&mut server).starts_with("GET /app/stop ") {
                return;
            }
            let _ = read_exactly(&mut server, 2);
            server.write_all(ok("taken").as_bytes()).unwrap();
            let _ = clock.recv_timeout(Duration::from_millis(1 + connection % 10));
        }
    });
    let kettle = Kettle::start(before("", "", &[address]));
    let mut client = Dialer::default().connect(kettle.address());
    let mut lost = 0;
    for _ in 0..100 {
        client
            .send(&[&request("POST", "/app", "Content-Length: 2\r\n")[..], b"{}"].concat())
            .unwrap();
        match client.response().status {
            200 => {}
            502 => lost += 1,
            status => panic!("{status}"),
        }
    }
    assert!(lost <= 1, "{lost} of 100");
    client.send(&get("/app/stop")).unwrap();
    serving.join().unwrap();
}

#[test]
fn a_new_connection_that_dies_is_not_tried_again() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&get("/app"));
    let server = backend.accept_request();
    drop(server);
    assert_eq!(client.response().status, 502);
    assert_eq!(kettle.entry("/app").text("upstream_failure"), "closed_early");
}

/// The settings of a server that takes one request at a time, for which others wait.
fn taking_one(backend: &Backend) -> String {
    let address = backend.address();
    format!(
        "queue_timeout = \"5m\"\n[[backend.server]]\naddress = \"{address}\"\nconnections = 1\n"
    )
}

#[test]
fn a_kept_connection_leaves_its_place_to_others() {
    let backend = Backend::listen();
    let kettle = Kettle::start(before("", &taking_one(&backend), &[]));
    let mut second = Dialer::default().connect(kettle.address());
    let mut first = kettle.ask(&get("/app/first"));
    let mut server = backend.accept();
    second.send(&get("/app/second")).unwrap();
    answer(&mut server, &ok("first"));
    assert_eq!(first.response().body, b"first");
    let head = answer(&mut server, &ok("second"));
    assert!(head.starts_with("GET /app/second "), "{head}");
    assert_eq!(second.response().body, b"second");
}

#[test]
fn a_response_that_is_here_keeps_no_server_busy_though_its_client_reads_nothing() {
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n";
    for response in [&*ok(&"first".repeat(50_000)), chunks] {
        let backend = Backend::listen();
        let kettle = Kettle::start(before("", &taking_one(&backend), &[]));
        let mut slow = kettle.ask(&get("/app/first"));
        let mut server = backend.accept();
        answer(&mut server, response);
        let mut other = kettle.ask(&get("/app/second"));
        answer(&mut server, &ok("second"));
        assert_eq!(other.response().body, b"second");
        assert_eq!(slow.response_head().status, 200);
    }
}

#[test]
fn a_connection_that_stands_for_one_client_serves_nobody_else() {
    for (fields, challenge) in [
        ("Authorization: NTLM TlRMTVNTUAAB\r\n", ""),
        ("Authorization: negotiate YII\r\n", ""),
        ("", "WWW-Authenticate: Basic realm=\"a\", Negotiate\r\n"),
        ("", "WWW-Authenticate: NTLM TlRMTVNTUAAC\r\n"),
    ] {
        let backend = Backend::listen();
        let (_kettle, mut client, mut server) = warmed(&backend, "");
        client.send(&request("GET", "/app/mine", fields)).unwrap();
        // A connection that others have used is not shown who this one is.
        let mut own =
            if fields.is_empty() { server.try_clone().unwrap() } else { backend.accept() };
        answer(&mut own, &ok("mine").replace("\r\n\r\n", &format!("\r\n{challenge}\r\n")));
        assert_eq!(client.response().body, b"mine");
        assert_closed(&mut own);
        if !fields.is_empty() {
            passes(&mut client, &mut server, "/app/theirs", "theirs");
        }
    }
}

#[test]
fn a_request_that_is_sent_again_comes_before_those_that_wait() {
    let backend = Backend::listen();
    let settings = format!(
        "queue = 1\nqueue_timeout = \"5m\"\n[[backend.server]]\naddress = \"{}\"\nconnections = 1\n",
        backend.address()
    );
    let kettle = Kettle::start(before("", &settings, &[]));
    let [mut first, mut second] = [(); 2].map(|()| Dialer::default().connect(kettle.address()));
    first.send(&get("/app/first")).unwrap();
    let mut server = backend.accept();
    answer(&mut server, &ok("first"));
    assert_eq!(first.response().body, b"first");
    first.send(&get("/app/late")).unwrap();
    read_head(&mut server);
    second.send(&get("/app/second")).unwrap();
    kettle.wait_for_status("/backends/0/waiting", 1);
    server.shutdown(Shutdown::Both).unwrap();
    drop(server);
    let mut server = backend.accept();
    for (client, path) in [(&mut first, "late"), (&mut second, "second")] {
        let head = answer(&mut server, &ok(path));
        assert!(head.starts_with(&format!("GET /app/{path} ")), "{head}");
        assert_eq!(client.response().body, path.as_bytes());
    }
}
