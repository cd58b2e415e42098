//! Bodies of requests: how they are framed, who waits for whom, and what an early answer does.

use super::*;

#[test]
fn a_body_keeps_its_framing() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&request("POST", "/app", "Content-Length: 5\r\n"));
    let mut server = backend.accept();
    let head = read_head(&mut server);
    assert!(head.ends_with("content-length: 5\r\n\r\n"), "{head}");
    client.send(b"hello").unwrap();
    assert_eq!(read_exactly(&mut server, 5), b"hello");
    server.write_all(ok("one").as_bytes()).unwrap();
    assert_eq!(client.response().body, b"one");
    // Chunks are made anew: extensions are the client's own business.
    client.send(&request("PUT", "/app", "Transfer-Encoding: chunked\r\n")).unwrap();
    let head = read_head(&mut server);
    assert!(head.ends_with("transfer-encoding: chunked\r\n\r\n"), "{head}");
    client.send(b"3;x=y\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n").unwrap();
    assert_eq!(read_exactly(&mut server, 27), b"3\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n");
    server.write_all(ok("two").as_bytes()).unwrap();
    assert_eq!(client.response().body, b"two");
    client.send(&request("POST", "/app", "Content-Length: 0\r\n")).unwrap();
    let head = answer(&mut server, &ok("three"));
    assert!(head.ends_with("content-length: 0\r\n\r\n"), "{head}");
    assert_eq!(client.response().body, b"three");
}

#[test]
fn large_bodies_flow_both_ways() {
    let (backend, kettle) = started("", "");
    for suite in ONE_OF_EACH_VERSION {
        flow(&backend, &mut Dialer::suite(suite).connect(kettle.address()));
    }
}

/// Sends a body and gets it back.
fn flow(backend: &Backend, client: &mut Client) {
    let sent = content(3 * 1_024 * 1_024 + 7);
    let head = format!("Content-Length: {}\r\n", sent.len());
    let bytes = sent.len();
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut server = backend.accept_request();
            let body = read_exactly(&mut server, bytes);
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n");
            server.write_all(head.as_bytes()).unwrap();
            server.write_all(&body).unwrap();
        });
        client.send(&request("POST", "/app", &head)).unwrap();
        client.send(&sent).unwrap();
        kettle_tests::content::assert_same(&client.response().body, &sent, "came back");
    });
}

#[test]
fn a_client_that_asks_first_is_told_when_the_server_says_so() {
    let (backend, kettle) = started("", "");
    let asking = request("POST", "/app", "Content-Length: 5\r\nExpect: 100-continue\r\n");
    let mut client = kettle.ask(&asking);
    let mut server = backend.accept();
    let head = answer(&mut server, "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(head.contains("\r\nexpect: 100-continue\r\n"), "{head}");
    assert_eq!(client.response_head().status, 100);
    client.send(b"hello").unwrap();
    assert_eq!(read_exactly(&mut server, 5), b"hello");
    server.write_all(ok("thanks").as_bytes()).unwrap();
    assert_eq!(client.response().body, b"thanks");
    // A server that wants none says so, and the body never comes.
    client.send(&asking).unwrap();
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    answer(&mut server, refusal);
    let response = client.response();
    assert_eq!((response.status, response.header("connection")), (413, Some("close")));
    assert_eq!(read_to_end(&mut server).0, b"", "its connection has half a request on it");
}

#[test]
fn a_client_is_told_in_the_end_by_us_where_the_server_says_nothing() {
    // A server with little time still gets the body within it.
    for route in ["", "timeout = \"800ms\""] {
        let (backend, kettle) = started(route, "");
        let head = "Content-Length: 5\r\nExpect: 100-continue\r\n";
        let mut client = kettle.ask(&request("POST", "/app", head));
        let mut server = backend.accept_request();
        assert_eq!(client.response_head().status, 100, "{route}");
        client.send(b"hello").unwrap();
        assert_eq!(read_exactly(&mut server, 5), b"hello", "{route}");
        server.write_all(ok("late").as_bytes()).unwrap();
        assert_eq!(client.response().body, b"late", "{route}");
    }
}

#[test]
fn an_answer_in_the_middle_of_a_body_is_passed_on() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&request("POST", "/app", "Content-Length: 10\r\n"));
    client.send(b"first").unwrap();
    let mut server = backend.accept_request();
    assert_eq!(read_exactly(&mut server, 5), b"first");
    server.write_all(b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno").unwrap();
    assert_eq!(client.response().body, b"no");
    assert_eq!(read_to_end(&mut server).0, b"", "its connection has half a request on it");
    // The client's own connection goes on behind the rest of the body.
    client.send(b"other").unwrap();
    client.send(&get("/app")).unwrap();
    serves(&mut client, &mut backend.accept(), "next");
}

#[test]
fn bodies_beyond_the_limit_are_a_413() {
    let (backend, kettle) = started("request_body = \"1 KiB\"", "");
    let mut client = kettle.ask(&request("POST", "/app", "Content-Length: 1025\r\n"));
    assert_eq!(client.response().status, 413);
    let mut client = kettle.ask(&request("POST", "/app", "Transfer-Encoding: chunked\r\n"));
    let mut server = backend.accept_request();
    client.send(&[&b"600\r\n"[..], &[b'x'; 0x600]].concat()).unwrap();
    assert_eq!(client.response().status, 413);
    let (part, _) = read_to_end(&mut server);
    assert!(!part.ends_with(b"0\r\n\r\n"), "no end is made up for the server");
    // As long as the limit it passes, however it is cut.
    let mut client = kettle.ask(&request("POST", "/app", "Transfer-Encoding: chunked\r\n"));
    client.send(&[b"1\r\nx\r\n".repeat(1_024), b"0\r\n\r\n".to_vec()].concat()).unwrap();
    let mut server = backend.accept_request();
    let mut received = Vec::new();
    while !received.ends_with(b"0\r\n\r\n") {
        received.extend(read_exactly(&mut server, 1));
    }
    server.write_all(ok("").as_bytes()).unwrap();
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_broken_body_reaches_no_end_at_the_server() {
    let (backend, kettle) = started("", "");
    for (framing, body) in [
        ("Transfer-Encoding: chunked\r\n", &b"3\r\nabc\r\nxyz\r\n"[..]),
        ("Transfer-Encoding: chunked\r\n", b"3\r\nabcd\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", b"3\nabc\r\n0\r\n\r\n"),
    ] {
        let mut client = kettle.ask(&request("POST", "/app", framing));
        let mut server = backend.accept_request();
        client.send(body).unwrap();
        assert_eq!(client.response().status, 400);
        assert_eq!(client.end(), End::Orderly);
        let (part, _) = read_to_end(&mut server);
        assert!(!part.ends_with(b"0\r\n\r\n"), "{}", part.escape_ascii());
    }
    // The client ends in the middle, with and without a goodbye.
    for is_orderly in [true, false] {
        let mut client = kettle.ask(&request("POST", "/app", "Content-Length: 10\r\n"));
        client.send(b"half").unwrap();
        let mut server = backend.accept_request();
        assert_eq!(read_exactly(&mut server, 4), b"half");
        if is_orderly {
            client.close_sending()
        } else {
            client.wire.reset()
        }
        assert_eq!(read_to_end(&mut server).0, b"");
    }
}

/// Reads only when it is told to.
fn stalled(mut server: TcpStream, bytes: usize) -> Vec<u8> {
    let mut body = vec![0; bytes];
    server.read_exact(&mut body).unwrap();
    body
}

#[test]
fn a_server_that_reads_nothing_holds_up_its_client_and_no_memory() {
    let (backend, kettle) = started("", "");
    let bytes = 64 * 1_024 * 1_024;
    let before_bytes = kettle.memory_bytes();
    let address = kettle.address();
    let sending = thread::spawn(move || {
        let mut client = Dialer::default().connect(address);
        client.send(&request("POST", "/app", &format!("Content-Length: {bytes}\r\n"))).unwrap();
        let piece = vec![b'x'; 1_024 * 1_024];
        for _ in 0..64 {
            client.send(&piece).unwrap();
        }
        client.response()
    });
    let mut server = backend.accept_request();
    // A first part flows; what lies between is in the sockets.
    assert_eq!(read_exactly(&mut server, 8 * 1_024 * 1_024).len(), 8 * 1_024 * 1_024);
    let grown = kettle.memory_bytes().saturating_sub(before_bytes);
    assert!(grown < 8 * 1_024 * 1_024, "{grown} bytes more");
    let mut writing = server.try_clone().unwrap();
    assert_eq!(stalled(server, bytes - 8 * 1_024 * 1_024).len(), bytes - 8 * 1_024 * 1_024);
    writing.write_all(ok("all").as_bytes()).unwrap();
    assert_eq!(sending.join().unwrap().body, b"all");
}

#[test]
fn the_last_response_of_a_connection_is_whole_however_long_it_is() {
    let (backend, kettle) = started("", "");
    for bytes in [0, 1, 16_384, 40_000, 1_000_000] {
        let body = content(bytes);
        let mut client = kettle.ask(&request("GET", "/app", "Connection: close\r\n"));
        let mut server = backend.accept();
        let head =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n");
        answer(&mut server, &head);
        server.write_all(&body).unwrap();
        let response = client.response();
        kettle_tests::content::assert_same(&response.body, &body, "the body");
        assert_eq!(client.end(), End::Orderly, "{bytes}");
        let entry = kettle.entry("/app");
        assert!(entry.is_complete());
        assert_eq!(entry.number("body_bytes"), bytes as u64);
    }
}
