//! Responses that begin before their requests have ended: they reach the client at once.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn what_comes_back_reaches_the_client_before_it_has_sent_all() {
    let (backend, kettle) = started("", "");
    // One that was closed would be found out by the next POST only, which is not sent twice (RFC 9110 §9.2.2).
    let mut kept = None;
    for suite in ONE_OF_EACH_VERSION {
        let mut client = Dialer::suite(suite).connect(kettle.address());
        for (framing, first, sent, other, last) in [
            ("Content-Length: 10", "first", "first", "other", "other"),
            (
                "Transfer-Encoding: chunked",
                "5;x\r\nfirst\r\n",
                "5\r\nfirst\r\n",
                "5\r\nother\r\n0\r\n\r\n",
                "5\r\nother\r\n0\r\n\r\n",
            ),
        ] {
            client.send(&request("POST", "/app", &format!("{framing}\r\n"))).unwrap();
            let server = backend.asked(&mut kept);
            read_head(server);
            client.send(first.as_bytes()).unwrap();
            assert_eq!(read_exactly(server, sent.len()), sent.as_bytes());
            server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst").unwrap();
            assert_eq!(client.response_head().status, 200);
            assert_eq!(client.receive_exactly(5), b"first");
            client.send(other.as_bytes()).unwrap();
            assert_eq!(read_exactly(server, last.len()), last.as_bytes());
            server.write_all(b"other").unwrap();
            assert_eq!(client.receive_exactly(5), b"other");
            assert_eq!(kettle.entry("/app").number("body_bytes"), 10);
        }
        // Nothing is half done: both connections serve the next request.
        client.send(&get("/app/next")).unwrap();
        serves(&mut client, backend.asked(&mut kept), "next");
    }
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_with_the_beginning_of_an_answer() {
    let (backend, kettle) = started("", "");
    let asking = request("POST", "/app", "Content-Length: 5\r\nExpect: 100-continue\r\n");
    let mut client = kettle.ask(&asking);
    let mut server = backend.accept();
    for has_begun in [false, true] {
        if has_begun {
            // It did not wait, so it is told nothing.
            client.send(&[&asking[..], b"other"].concat()).unwrap();
        }
        answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
        if !has_begun {
            assert_eq!(client.response_head().status, 100);
        }
        assert_eq!(client.response_head().status, 200);
        assert_eq!(client.receive_exactly(5), b"first");
        if !has_begun {
            client.send(b"other").unwrap();
        }
        assert_eq!(read_exactly(&mut server, 5), b"other");
        server.write_all(b"other").unwrap();
        assert_eq!(client.receive_exactly(5), b"other");
    }
    // One that is here as a whole asks for nothing.
    let mut client = kettle.ask(&asking);
    answer(&mut server, &ok("known"));
    let response = client.response();
    assert_eq!((response.status, response.header("connection")), (200, Some("close")));
    assert_eq!(read_to_end(&mut server).0, b"");
}

#[test]
fn a_client_that_begins_its_body_unasked_waits_for_nobody() {
    // This server never says that it is to go on.
    let (backend, kettle) = started("timeout = \"10m\"", "");
    let mut client = Dialer::default().connect(kettle.address());
    let head = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    let mut kept = None;
    for _ in 0..2 {
        client.send(&request("POST", "/app", head)).unwrap();
        let server = backend.asked(&mut kept);
        read_head(server);
        client.send(b"other").unwrap();
        assert_eq!(read_exactly(server, 5), b"other");
        server.write_all(ok("thanks").as_bytes()).unwrap();
        // After the wait it would be told to go on.
        let response = client.response();
        assert_eq!((response.status, &*response.body), (200, &b"thanks"[..]));
    }
}

#[test]
fn a_client_that_reads_only_when_it_has_sent_all_is_served() {
    let (backend, kettle) = started("", "");
    let bytes = scaled(8, 2) * 1_024 * 1_024;
    let response = content(bytes);
    thread::scope(|threads| {
        threads.spawn(|| {
            let mut server = backend.accept_request();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
            let mut writing = server.try_clone().unwrap();
            let writing = threads.spawn(move || {
                writing.write_all(head.as_bytes()).unwrap();
                writing.write_all(&content(bytes)[..bytes - 1]).unwrap();
            });
            assert_same(&read_exactly(&mut server, bytes), &content(bytes), "the request");
            writing.join().unwrap();
            // Behind the end of a response nobody passes on the rest of its request.
            server.write_all(&content(bytes)[bytes - 1..]).unwrap();
        });
        let mut client =
            kettle.ask(&request("POST", "/app", &format!("Content-Length: {bytes}\r\n")));
        client.send(&response).unwrap();
        assert_same(&client.response().body, &response, "the response");
    });
}

#[test]
fn a_response_that_ends_first_ends_the_request_at_its_server() {
    for response in [ok("enough"), "HTTP/1.1 200 OK\r\n\r\nenough".to_owned()] {
        let (backend, kettle) = started("", "");
        let mut client = kettle.ask(&request("POST", "/app", "Content-Length: 10\r\n"));
        let mut server = backend.accept();
        answer(&mut server, &response);
        server.shutdown(Shutdown::Write).unwrap();
        let head = client.response_head();
        assert_eq!(head.status, 200, "{response:?}");
        assert_eq!(read_to_end(&mut server).0, b"", "its connection has half a request on it");
        if head.header("content-length").is_none() {
            continue;
        }
        assert_eq!(client.receive_exactly(6), b"enough");
        // The client's own connection goes on behind the rest of the body.
        client.send(b"0123456789").unwrap();
        client.send(&get("/app")).unwrap();
        serves(&mut client, &mut backend.accept(), "next");
    }
}

#[test]
fn a_request_that_breaks_off_beside_its_response_cuts_it() {
    let (backend, kettle) = started("request_body = \"1 KiB\"", "");
    let long = format!("600\r\n{}", "x".repeat(0x600));
    for rest in ["zz\r\n", &long, ""] {
        let mut client = kettle.ask(&request("POST", "/app", "Transfer-Encoding: chunked\r\n"));
        let mut server = backend.accept();
        answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        assert_eq!(client.response_head().status, 200);
        assert_eq!(client.receive_exactly(4), b"half");
        client.send(rest.as_bytes()).unwrap();
        if rest.is_empty() {
            client.close_sending();
        }
        assert_eq!(client.end(), End::Cut, "{}", rest.len());
        let (part, _) = read_to_end(&mut server);
        assert!(!part.ends_with(b"0\r\n\r\n"), "no end is made up for the server");
        assert!(!kettle.entry("/app").is_complete());
    }
}

#[test]
fn a_server_that_takes_no_more_may_still_answer() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&request("POST", "/app", "Content-Length: 10\r\n"));
    let mut server = backend.accept();
    answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
    assert_eq!(client.response_head().status, 200);
    assert_eq!(client.receive_exactly(5), b"first");
    server.shutdown(Shutdown::Read).unwrap();
    client.send(b"0123456789").unwrap();
    server.write_all(b"other").unwrap();
    assert_eq!(client.receive_exactly(5), b"other");
    client.send(&get("/app/next")).unwrap();
}

#[test]
fn a_server_that_closes_behind_an_interim_response_and_its_answer_is_heard() {
    let (backend, kettle) = started("", "");
    let head = request("POST", "/app", "Content-Length: 400000\r\n");
    let upload = [&head[..], &vec![b'a'; 400_000]].concat();
    // The kernel decides if its answer is seen or its end is met first.
    for _ in 0..30 {
        let mut client = kettle.ask(&upload);
        let mut server = backend.accept();
        let interim = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
        let last = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
        answer(&mut server, &[interim, last].concat());
        drop(server);
        let mut status = client.response_head().status;
        while status < 200 {
            status = client.response_head().status;
        }
        assert_eq!(status, 413);
    }
}

#[test]
fn a_client_that_owes_the_rest_of_its_request_is_given_up() {
    let backend = Backend::listen();
    // The server's own time ends nothing here.
    let setup = before("timeout = \"10m\"", "", &[backend.address()]);
    let kettle = Kettle::start(setup.set("limits", "write_timeout = \"1s\""));
    for (body, rest) in [("", ""), ("5\r\nfirst\r\n", "5\r\nother\r\n")] {
        let mut client = kettle.ask(&request("POST", "/app", "Transfer-Encoding: chunked\r\n"));
        client.send(body.as_bytes()).unwrap();
        let mut server = backend.accept_request();
        assert_eq!(read_exactly(&mut server, body.len()), body.as_bytes());
        server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst").unwrap();
        assert_eq!(client.response_head().status, 200);
        assert_eq!(client.receive_exactly(5), b"first");
        client.send(rest.as_bytes()).unwrap();
        assert_eq!(read_to_end(&mut server).0, rest.as_bytes());
        assert_eq!(client.end(), End::Cut);
        assert!(!kettle.entry("/app").is_complete());
    }
}

#[test]
fn a_server_that_always_has_more_to_send_hears_its_client() {
    const BYTES_MAX: usize = 256 << 20;
    const STOP: &[u8] = b"4\r\nstop\r\n0\r\n\r\n";
    let (backend, kettle) = started("", "");
    let head = "Transfer-Encoding: chunked\r\nConnection: close\r\n";
    let mut client = kettle.ask(&request("POST", "/app", head));
    let bytes_before = scaled(64, 4) << 20;
    let is_told = &AtomicBool::new(false);
    thread::scope(|threads| {
        let server = backend.accept_request();
        let mut writing = server.try_clone().unwrap();
        threads.spawn(move || {
            let chunk = [&b"100000\r\n"[..], &vec![b'x'; 0x10_0000], b"\r\n"].concat();
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            writing.write_all(head).unwrap();
            while !is_told.load(Ordering::Relaxed) && writing.write_all(&chunk).is_ok() {}
            let _ = writing.write_all(b"0\r\n\r\n");
        });
        threads.spawn(move || {
            let mut heard = Vec::new();
            let _ = server.take(STOP.len() as u64).read_to_end(&mut heard);
            is_told.store(true, Ordering::Relaxed);
            assert_eq!(heard.escape_ascii().to_string(), STOP.escape_ascii().to_string());
        });
        // Nothing is opened, so that kettle hardly ever waits for room.
        let mut room = vec![0; 1 << 20];
        let mut received_bytes = 0;
        let mut is_sent = false;
        while received_bytes < BYTES_MAX
            && let count @ 1.. = client.wire.socket.read(&mut room).unwrap()
        {
            received_bytes += count;
            if received_bytes >= bytes_before && !std::mem::replace(&mut is_sent, true) {
                client.send(STOP).unwrap();
            }
        }
        // So that the server ends, and the test with it.
        drop(client);
        assert!(received_bytes < BYTES_MAX, "it was not heard");
    });
    assert!(kettle.entry("/app").is_complete());
}
