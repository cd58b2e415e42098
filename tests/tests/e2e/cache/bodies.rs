//! The ends of the bodies of backends, and which of them are kept: one that broke off never is.

use std::time::Duration;

use kettle_tests::backend::in_tls;
use rustls::version::{TLS12, TLS13};
use socket2::SockRef;

use super::*;
use crate::proxy::any_response;
use crate::tunnel::VERIFIED;

const OLD_GET: &[u8] = b"GET /app/x HTTP/1.0\r\nHost: localhost\r\n\r\n";

/// More than is answered from memory.
const PART: &[u8] = &[b'a'; 100_000];

#[test]
fn a_body_up_to_the_end_of_its_connection_is_kept_unless_that_is_reset() {
    for is_reset in [false, true] {
        let cached = Cached::start("");
        let [mut new, mut old] = [cached.client(), cached.client()];
        new.send(&get("/app/x")).unwrap();
        let mut server = cached.backend.accept();
        answer(&mut server, &format!("HTTP/1.0 200 OK\r\n{FRESH}\r\n"));
        server.write_all(PART).unwrap();
        new.response_head();
        old.send(OLD_GET).unwrap();
        old.response_head();
        old.receive_exactly(PART.len());
        if is_reset {
            SockRef::from(&server).set_linger(Some(Duration::ZERO)).unwrap();
        }
        drop(server);
        // The end of the connection is all that clients of HTTP/1.0 have, too.
        assert_eq!(old.end(), if is_reset { End::Cut } else { End::Orderly });
        if is_reset {
            assert_eq!(new.end(), End::Cut);
            assert!(!new.beyond().ends_with(b"0\r\n\r\n"));
            assert_asked_anew(&cached);
        } else {
            while !new.beyond().ends_with(b"\r\n0\r\n\r\n") {
                new.receive_more();
            }
            cached.wait_until_kept("/app/x");
            assert_same(&cached.get("/app/x").body, PART, "what is kept");
        }
    }
}

/// RFC 9112 §9.8: without a length, an end that TLS does not vouch for may be anybody's.
#[test]
fn an_end_without_close_notify_is_one_only_behind_a_known_length() {
    for version in [&TLS12, &TLS13] {
        let length = format!("Content-Length: {}\r\n", PART.len());
        for (framing, is_vouched_for, is_whole) in
            [(&*length, false, true), ("", true, true), ("", false, false)]
        {
            // The table is the backend's, wherever it stands.
            let cached = Cached::with_store("", VERIFIED);
            let mut client = cached.kettle.ask(&get("/app/x"));
            let mut server = in_tls(version, cached.backend.accept());
            answer(&mut server, &format!("HTTP/1.1 200 OK\r\n{framing}{FRESH}\r\n"));
            server.write_all(PART).unwrap();
            server.flush().unwrap();
            if is_vouched_for {
                server.conn.send_close_notify();
                server.flush().unwrap();
            }
            drop(server);
            if is_whole {
                assert_same(&any_response(&mut client).body, PART, framing);
                cached.wait_until_kept("/app/x");
                continue;
            }
            assert_eq!(client.end(), End::Cut);
            assert!(!client.beyond().ends_with(b"0\r\n\r\n"));
            let _next = cached.kettle.ask(&get("/app/x"));
            read_head(&mut in_tls(version, cached.backend.accept()));
        }
    }
}

#[test]
fn a_backend_that_dies_before_its_last_chunk_cuts_a_hundred_clients_and_is_asked_once_more() {
    let cached = Cached::start("");
    let mut clients: Vec<_> = (0..100).map(|_| cached.client()).collect();
    let ask = |client: &mut Client| client.send(&get("/app/x")).unwrap();
    clients.iter_mut().for_each(ask);
    let mut server = cached.backend.accept();
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n");
    answer(&mut server, &head);
    server.write_all(b"3\r\nabc\r\n").unwrap();
    for client in &mut clients {
        client.response_head();
        assert_eq!(client.receive_exactly(6), b"3\r\nabc");
    }
    assert_unasked(&server);
    drop(server);
    for client in &mut clients {
        assert_eq!((client.end(), &**client.beyond()), (End::Cut, &b""[..]));
    }
    let mut clients: Vec<_> = (0..100).map(|_| cached.client()).collect();
    clients.iter_mut().for_each(ask);
    let mut server = cached.backend.accept();
    answer(&mut server, &ok(FRESH, "whole"));
    for client in &mut clients {
        assert_eq!(client.response().body, b"whole");
    }
    assert_unasked(&server);
}

#[test]
fn bodies_about_the_bounds_come_whole_and_are_kept_up_to_the_longest() {
    const LONGEST: usize = 70_000;
    let cached = Cached::with_store("", &format!("max_object = {LONGEST}"));
    for bytes in [65_535, 65_536, 65_537, LONGEST - 1, LONGEST, LONGEST + 1] {
        for is_chunked in [false, true] {
            let target = format!("/app/{bytes}/{is_chunked}");
            let body = content(bytes);
            let ask = || {
                let mut client = cached.kettle.ask(&get(&target));
                let mut socket = cached.backend.next();
                if is_chunked {
                    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
                    answer(&mut socket, &format!("{head}{FRESH}\r\n{bytes:x}\r\n"));
                    socket.write_all(&body).unwrap();
                    socket.write_all(b"\r\n0\r\n\r\n").unwrap();
                } else {
                    answer(&mut socket, &ok_head(FRESH, bytes as u64));
                    socket.write_all(&body).unwrap();
                }
                let response = any_response(&mut client);
                assert_same(&response.body, &body, &target);
                response
            };
            ask();
            if bytes > LONGEST {
                assert_eq!(status(&ask()), "kettle; fwd=bypass; detail=too-large");
                continue;
            }
            cached.wait_until_kept(&target);
            assert_same(&cached.get(&target).body, &body, &target);
            let end = cached.ask("GET", &target, "Range: bytes=-3\r\n");
            assert_eq!((end.status, &*end.body), (206, &body[bytes - 3..]));
        }
    }
}

#[test]
fn a_response_with_two_lengths_is_no_response_and_what_is_stale_may_do() {
    let cached = Cached::start("stale_if_error = \"1h\"");
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
    let (refused, _) = cached.get_through("/app/x", "", twice);
    assert_eq!((refused.status, status(&refused)), (502, "kettle; fwd=uri-miss"));
    let reason = cached.kettle.entry("/app/x");
    assert_eq!(reason.text("upstream_failure"), "content_length_repeated");
    let stale = "Cache-Control: max-age=0\r\nETag: \"a\"\r\n";
    cached.fetch("/app/x", stale, "old");
    let (response, _) = cached.get_through("/app/x", "", twice);
    assert_eq!((response.status, &*response.body), (200, &b"old"[..]));
}

#[test]
fn statuses_that_nobody_asked_for_are_passed_on_and_not_kept() {
    let cached = Cached::start("");
    let part = format!(
        "HTTP/1.1 206 X\r\nContent-Range: bytes 0-2/9\r\nContent-Length: 3\r\n{FRESH}\r\nabc"
    );
    let same = format!("HTTP/1.1 304 X\r\nETag: \"a\"\r\n{FRESH}\r\n");
    for (code, response) in [(206, &part), (304, &same)] {
        let target = format!("/app/{code}");
        for _ in 0..2 {
            let (passed, _) = cached.get_through(&target, "", response);
            assert_eq!((passed.status, status(&passed)), (code, "kettle; fwd=uri-miss"));
        }
        let whole = cached.fetch(&target, FRESH, "whole");
        assert_eq!((whole.status, &*whole.body), (200, &b"whole"[..]));
        cached.wait_until_kept(&target);
    }
    // One that is not known is taken for what its class says (RFC 9110 §15), and kept only where it says for how long.
    for (code, fields, is_kept) in [(299, FRESH, true), (599, FRESH, true), (299, "", false)] {
        let target = format!("/app/{code}/{is_kept}");
        let odd = ok(fields, "odd").replace("200 OK", &format!("{code} Odd"));
        cached.get_through(&target, "", &odd);
        if is_kept {
            cached.wait_until_kept(&target);
            let hit = cached.ask("GET", &target, "Range: bytes=0-0\r\nIf-None-Match: *\r\n");
            assert_eq!((hit.status, &*hit.body), (code, &b"odd"[..]));
        } else {
            cached.get_through(&target, "", &odd);
        }
    }
    // One that HTTP does not have is passed on, and never kept.
    for code in [600, 999] {
        let target = format!("/app/{code}");
        let odd = ok(FRESH, "odd").replace("200 OK", &format!("{code} Odd"));
        for _ in 0..2 {
            let (passed, _) = cached.get_through(&target, "", &odd);
            assert_eq!((passed.status, status(&passed)), (code, "kettle; fwd=uri-miss"));
        }
    }
    for code in ["099", "20"] {
        let odd = ok(FRESH, "odd").replace("200", code);
        let (refused, _) = cached.get_through("/app/refused", "", &odd);
        assert_eq!(refused.status, 502, "{code}");
    }
}

fn assert_asked_anew(cached: &Cached) {
    cached.fetch("/app/x", FRESH, "whole");
}
