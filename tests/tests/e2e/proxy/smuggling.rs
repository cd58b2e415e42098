//! Requests that two programs might read in two ways: a server gets exactly one request for each that is answered, or none.

use super::*;

/// The bodies of requests, which would be requests themselves to whoever overlooks the framing.
const INNER: &str = "GET /app/inner HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Serves until kettle closes, and returns the request lines that it saw. A body of unknown framing fails the test.
fn serve(mut server: TcpStream) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let mut first = [0];
        if !matches!(server.peek(&mut first), Ok(1)) {
            return seen;
        }
        let head = read_head(&mut server);
        assert_eq!(head.matches("\r\nhost: ").count(), 1, "{head}");
        let framings = ["content-length: ", "transfer-encoding: "];
        let framings: usize =
            framings.iter().map(|it| head.to_ascii_lowercase().matches(it).count()).sum();
        assert!(framings <= 1, "{head}");
        if let Some((_, rest)) = head.split_once("content-length: ") {
            let bytes: usize = rest.split("\r\n").next().unwrap().parse().unwrap();
            let body = kettle_tests::backend::read_exactly(&mut server, bytes);
            assert_eq!(body.len(), bytes);
        } else if head.contains("transfer-encoding: chunked") {
            let mut body = Vec::new();
            while !body.ends_with(b"0\r\n\r\n") {
                body.extend(kettle_tests::backend::read_exactly(&mut server, 1));
            }
        }
        seen.push(head.lines().next().unwrap().to_owned());
        server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    }
}

/// Sends bytes, and returns the statuses that came back and the request lines that reached the server.
fn outcome(bytes: &[u8]) -> (Vec<u16>, Vec<String>) {
    let backend = Backend::listen();
    let address = backend.address();
    let kettle = Kettle::start(before("", "", &[address]));
    let serving = thread::spawn(move || {
        let mut seen = Vec::new();
        loop {
            let mut server = backend.accept();
            let mut first = [0; 4];
            if matches!(server.peek(&mut first), Ok(4)) && &first == b"STOP" {
                read_to_end(&mut server).1.unwrap();
                return seen;
            }
            seen.extend(serve(server));
        }
    });
    let mut client = kettle.ask(bytes);
    client.say_goodbye();
    let _ = client.end();
    let received = String::from_utf8(client.beyond().clone()).unwrap();
    let statuses = received.match_indices("HTTP/1.1 ");
    let statuses = statuses.filter_map(|(at, _)| received[at + 9..].get(..3)?.parse().ok());
    let statuses = statuses.collect();
    drop((client, kettle));
    let mut stop = TcpStream::connect(address).unwrap();
    stop.write_all(b"STOP").unwrap();
    drop(stop);
    (statuses, serving.join().unwrap())
}

#[test]
fn what_could_be_read_in_two_ways_reaches_no_server() {
    let length = INNER.len();
    for head in [
        // Both framings, in each order and spelling (the classic ones).
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"),
        format!("Content-Length: 0\r\nContent-Length: {length}\r\n"),
        format!("Content-Length: {length}, {length}\r\n"),
        format!("Content-Length: +{length}\r\n"),
        format!("Content-Length: {length} \x0b\r\n"),
        format!("Content-Length : {length}\r\n"),
        format!("Content-Length\t: {length}\r\n"),
        format!(" Content-Length: {length}\r\n"),
        format!("X: y\r\n Content-Length: {length}\r\n"),
        format!("X: y\nContent-Length: {length}\r\n"),
        format!("X: y\rContent-Length: {length}\r\n"),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked, chunked\r\n".to_owned(),
        "Transfer-Encoding: \"chunked\"\r\n".to_owned(),
        "Transfer-Encoding:\x0bchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked\0\r\n".to_owned(),
        "Host: other\r\n".to_owned(),
    ] {
        let bytes = format!("POST /app HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{INNER}");
        let (statuses, seen) = outcome(bytes.as_bytes());
        assert!(matches!(statuses[..], [400 | 501]), "{head:?}: {statuses:?}");
        assert_eq!(seen, [""; 0], "{head:?}");
    }
}

#[test]
fn http_1_0_with_a_transfer_coding_is_refused() {
    // CVE-2026-2835: HTTP/1.0 and Transfer-Encoding, taken for a body up to the end of the connection.
    for head in ["Transfer-Encoding: chunked\r\n", "Transfer-Encoding: identity, chunked\r\n"] {
        let bytes = format!(
            "POST /app HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n{head}\r\n0\r\n\r\n{INNER}"
        );
        let (statuses, seen) = outcome(bytes.as_bytes());
        assert!(matches!(statuses[..], [400]), "{head:?}: {statuses:?}");
        assert_eq!(seen, [""; 0], "{head:?}");
    }
}

#[test]
fn what_means_one_thing_only_reaches_a_server_as_that() {
    let length = INNER.len();
    for (head, body, expected) in [
        (format!("Content-Length: {length}\r\n"), INNER.to_owned(), 1),
        (format!("Content-Length: {length}\r\nX_Content_Length: 0\r\n"), INNER.to_owned(), 1),
        (
            format!("Content-Length: {length}\r\nConnection: Content-Length\r\n"),
            INNER.to_owned(),
            1,
        ),
        (
            "Transfer-Encoding: Chunked\r\n".to_owned(),
            format!("{length:x}\r\n{INNER}\r\n0\r\n\r\n"),
            1,
        ),
        (
            "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding\r\n".to_owned(),
            "0\r\n\r\n".to_owned(),
            1,
        ),
        (String::new(), INNER.to_owned(), 2),
        ("Connection: Host, X-Forwarded-For, Upgrade\r\n".to_owned(), String::new(), 1),
        ("Content-Length: 0\r\n".to_owned(), INNER.to_owned(), 2),
    ] {
        let bytes = format!("POST /app HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{body}");
        let (statuses, seen) = outcome(bytes.as_bytes());
        assert_eq!(statuses, vec![200; expected], "{head:?}");
        assert_eq!(seen.len(), expected, "{head:?}: {seen:?}");
        assert_eq!(seen[0], "POST /app HTTP/1.1", "{head:?}");
    }
}

#[test]
fn a_host_is_one_that_the_site_answers_to() {
    // The third of Pingora's: what decides who is asked must be what the server is told. A default site takes any name, and the
    // server gets that name and no other.
    for (target, host) in [
        ("/app", "localhost"),
        ("https://LOCALHOST/app", "elsewhere"),
        ("https://localhost:8443/app", "localhost"),
    ] {
        let (backend, kettle) = started("", "");
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nX-Host: evil\r\n\r\n");
        let mut client = kettle.ask(request.as_bytes());
        let head = super::answer(&mut backend.accept(), &super::ok(""));
        let hosts: Vec<_> = head.lines().filter(|line| line.starts_with("host: ")).collect();
        assert!(matches!(hosts[..], ["host: localhost" | "host: localhost:8443"]), "{head}");
        assert!(!head.contains("elsewhere"), "{head}");
        assert_eq!(client.response().status, 200);
    }
    let (_backend, kettle) = started("", "");
    let mut client = kettle.ask(b"GET /app HTTP/1.1\r\nHost: elsewhere\r\n\r\n");
    assert_eq!(client.response().status, 421);
}
