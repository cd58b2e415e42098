//! The events while an object arrives: others ask otherwise, the backend says something first, somebody writes or purges.

use kettle_tests::http::get;

use super::*;
use crate::http2::frames::*;

const STALE: &str = "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n";

/// The chunked head of a response and its first three bytes.
fn begun(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n3\r\nabc\r\n")
}

#[test]
fn interim_responses_reach_all_who_wait() {
    let cached = Cached::of_route("early_hints = \"all\"");
    let mut clients = [cached.client(), cached.client()];
    clients[0].send(&get("/app/x")).unwrap();
    let mut server = cached.backend.accept_request();
    for link in ["</a.css>", "</b.css>"] {
        let hint = format!(
            "HTTP/1.1 103 Early Hints\r\nLink: {link}\r\nSet-Cookie: a=b\r\nConnection: x\r\nX: y\r\n\r\n"
        );
        server.write_all(hint.as_bytes()).unwrap();
    }
    // The second comes when they have been sent already.
    for (number, client) in clients.iter_mut().enumerate() {
        if number > 0 {
            client.send(&get("/app/x")).unwrap();
        }
        for link in ["</a.css>", "</b.css>"] {
            let hint = client.response_head();
            assert_eq!((hint.status, hint.header("link")), (103, Some(link)));
            assert_eq!((hint.header("x"), hint.header("set-cookie")), (None, None));
        }
    }
    server.write_all(ok(FRESH, "body").as_bytes()).unwrap();
    for client in &mut clients {
        assert_eq!(client.response().body, b"body");
    }
    cached.wait_until_kept("/app/x");
    assert_eq!(cached.get("/app/x").status, 200);
    // Nor do those get any who speak a version without them.
    let mut old = cached.kettle.ask(b"GET /app/y HTTP/1.0\r\nHost: localhost\r\n\r\n");
    answer(&mut server, &format!("HTTP/1.1 103 X\r\nLink: </c>\r\n\r\n{}", ok(FRESH, "other")));
    assert_eq!(old.response_head().status, 200);
}

#[test]
fn a_head_of_what_arrives_is_answered_from_its_head() {
    let cached = Cached::start("");
    for (target, response) in
        [("/app/x", format!("{}abc", ok_head(FRESH, 6))), ("/app/y", begun(FRESH))]
    {
        let mut first = cached.kettle.ask(&get(target));
        let mut server = cached.backend.accept();
        answer(&mut server, &response);
        first.response_head();
        let head = cached.ask("HEAD", target, "");
        assert_eq!(status(&head), "kettle; fwd=uri-miss; stored; collapsed");
        let known = (target == "/app/x").then_some("6");
        assert_eq!((head.status, head.header("content-length")), (200, known));
        assert_unasked(&server);
    }
}

#[test]
fn conditions_and_ranges_of_what_arrives_are_those_of_files() {
    let cached = Cached::start("");
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept();
    answer(&mut server, &begun(&format!("{FRESH}ETag: \"v1\"\r\n")));
    first.response_head();
    let none = cached.ask("HEAD", "/app/x", "If-None-Match: \"v1\"\r\n");
    assert_eq!((none.status, none.header("etag")), (304, Some("\"v1\"")));
    // The backend alone can say if it has what a client means by If-Match (RFC 9111 §4.3.2).
    let mut other = cached.kettle.ask(&request("GET", "/app/x", "If-Match: \"v2\"\r\n"));
    let refusal = "HTTP/1.1 412 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let head = answer(&mut cached.backend.accept(), refusal);
    assert!(head.contains("If-Match: \"v2\""), "{head}");
    let failed = other.response();
    assert_eq!(failed.status, 412);
    assert_eq!(status(&failed), "kettle; fwd=request; detail=precondition");
    // Only from the store are those answered who ask for that; here it is on its way to it.
    let only = cached.ask("HEAD", "/app/x", "Cache-Control: only-if-cached\r\n");
    assert_eq!(only.status, 200);
    // Nobody knows how long it will be, so a range is answered with all of it.
    let mut part = cached.kettle.ask(&request("GET", "/app/x", "Range: bytes=1-2\r\n"));
    assert_eq!(part.response_head().status, 200);
    server.write_all(b"3\r\ndef\r\n0\r\n\r\n").unwrap();
    assert_eq!(part.receive_exactly(21), b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
    cached.wait_until_kept("/app/x");
    let ranges = "Range: bytes=1-2\r\nIf-Range: ";
    for (etag, expected) in [("\"v1\"", 206), ("\"v2\"", 200)] {
        let part = cached.ask("GET", "/app/x", &format!("{ranges}{etag}\r\n"));
        assert_eq!(part.status, expected, "{etag}");
    }
    assert_unasked(&server);
    // The same while one of known length arrives.
    let server = &mut server;
    let mut first = cached.kettle.ask(&get("/app/y"));
    answer(server, &format!("{}abc", ok_head(&format!("{FRESH}ETag: \"v1\"\r\n"), 6)));
    first.response_head();
    for (etag, expected) in [("\"v1\"", 206), ("\"v2\"", 200)] {
        let mut part = cached.kettle.ask(&request("GET", "/app/y", &format!("{ranges}{etag}\r\n")));
        assert_eq!(part.response_head().status, expected, "{etag}");
    }
}

#[test]
fn who_shows_credentials_shares_nothing_that_arrives() {
    let cached = Cached::start("");
    for (target, control) in [("/app/x", "max-age=100"), ("/app/y", "public, max-age=100")] {
        let mut first = cached.kettle.ask(&get(target));
        let mut shared = cached.backend.accept();
        let fields = format!("Cache-Control: {control}\r\n");
        answer(&mut shared, &format!("{}abc", ok_head(&fields, 6)));
        first.response_head();
        for credentials in ["Authorization: Basic YTpi\r\n", "Cookie: a=b\r\n"] {
            let mut client = cached.kettle.ask(&request("GET", target, credentials));
            let mut own = cached.backend.accept();
            let head = answer(&mut own, &ok("Connection: close\r\n", "own"));
            assert!(head.to_lowercase().contains(&credentials.to_lowercase()), "{head}");
            assert_eq!(client.response().body, b"own");
        }
    }
}

#[test]
fn what_turns_out_to_vary_goes_to_those_it_was_made_for() {
    let cached = Cached::start("");
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.next_request();
    let mut other = cached.kettle.ask(&request("GET", "/app/x", "X-Kind: b\r\n"));
    cached.wait_for_waiters(1);
    server.write_all(ok(&format!("{FRESH}Vary: X-Kind\r\n"), "none").as_bytes()).unwrap();
    assert_eq!(first.response().body, b"none");
    let head = cached.backend.answer(&ok(FRESH, "of b"));
    assert!(head.contains("X-Kind: b"), "{head}");
    let response = other.response();
    assert_eq!((&*response.body, status(&response)), (&b"of b"[..], "kettle; fwd=vary-miss"));
}

#[test]
fn a_write_that_is_answered_early_is_over_with_its_response() {
    let cached = Cached::start("");
    let mut writer = cached.kettle.ask(&request("PUT", "/app/x", "Content-Length: 6\r\n"));
    let mut writing = cached.backend.accept_request();
    writer.send(b"new").unwrap();
    writing.write_all(ok_head("", 4).as_bytes()).unwrap();
    writer.response_head();
    // Somebody reads in the middle of it, and what that reads is kept.
    cached.keep("/app/x", FRESH, "half new");
    writer.send(b"est").unwrap();
    writing.write_all(b"half").unwrap();
    assert_eq!(writer.receive_exactly(4), b"half");
    // The object that was kept goes a moment after the response's last byte.
    thread::scope(|threads| {
        let answering = threads.spawn(|| cached.backend.answer(&ok(FRESH, "newest")));
        while cached.get("/app/x").body != b"newest" {
            assert!(!answering.is_finished(), "the backend was not asked again");
        }
    });
}

#[test]
fn what_is_purged_while_it_is_validated_comes_anew() {
    let cached = Cached::start("");
    cached.fetch("/app/x", STALE, "old");
    let mut client = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.next();
    let head = read_head(&mut server);
    assert!(head.contains("if-none-match: \"v1\""), "{head}");
    cached.purge(&["https://localhost/app/x"]);
    let same = format!("HTTP/1.1 304 X\r\nETag: \"v1\"\r\n{FRESH}\r\n");
    server.write_all(same.as_bytes()).unwrap();
    let head = cached.backend.answer(&ok(FRESH, "new"));
    assert!(!head.contains("if-none-match"), "{head}");
    assert_eq!(client.response().body, b"new");
    cached.wait_until_kept("/app/x");
    assert_eq!(cached.get("/app/x").body, b"new");
}

#[test]
fn a_304_that_a_purge_has_overtaken_leaves_what_came_since() {
    let cached = Cached::start("");
    for (target, fields, is_fresh) in
        [("/app/x", FRESH, true), ("/app/y", "Cache-Control: no-cache\r\n", false)]
    {
        cached.fetch(target, STALE, "old");
        let mut client = cached.kettle.ask(&get(target));
        let mut server = cached.backend.next_request();
        cached.purge(&[&format!("https://localhost{target}")]);
        let newer = format!("Connection: close\r\nETag: \"v2\"\r\n{fields}");
        cached.fetch(target, &newer, "new");
        if is_fresh {
            cached.wait_until_kept(target);
        }
        let same = format!("HTTP/1.1 304 X\r\nETag: \"v1\"\r\n{FRESH}\r\n");
        server.write_all(same.as_bytes()).unwrap();
        if !is_fresh {
            // It says nothing of what came since.
            let mut server = Some(server);
            let head = answer(cached.backend.asked(&mut server), &ok(FRESH, "newest"));
            assert!(!head.contains("\"v1\""), "{head}");
        }
        let expected: &[u8] = if is_fresh { b"new" } else { b"newest" };
        assert_eq!(client.response().body, expected, "{target}");
    }
}

#[test]
fn what_is_written_and_purged_beside_it_leaves_one_request_to_all_who_wait() {
    let cached = Cached::start("");
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    let mut writer = cached.kettle.ask(&request("POST", "/app/other", ""));
    let mut idle = cached.backend.accept();
    answer(&mut idle, &ok("", "written"));
    assert_eq!(writer.response().body, b"written");
    let prefix = ["cache", "purge", "--prefix", "https://localhost/app/other/"];
    let _ = cached.kettle.ctl(&prefix).succeed();
    let mut second = cached.kettle.ask(&get("/app/x"));
    cached.wait_for_waiters(1);
    server.write_all(ok(FRESH, "one for both").as_bytes()).unwrap();
    for client in [&mut first, &mut second] {
        assert_eq!(client.response().body, b"one for both");
    }
    assert_unasked(&idle);
}

#[test]
fn a_write_that_is_taken_back_has_left_nothing_of_what_was_there() {
    let setup = Setup::default().listener("http2 = true");
    let mut cached = Cached::set_up(setup, "", "", "");
    let mut frames = Frames::connect(&cached.kettle, &[]);
    let targets: Vec<_> = (0..10).map(|number| format!("/app/{number}")).collect();
    for (stream, target) in (1..).step_by(2).zip(&targets) {
        cached.keep(target, &format!("{FRESH}Connection: close\r\n"), "old");
        let post = fields("POST", target, &[]);
        frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &post));
        let mut server = cached.backend.accept_request();
        // So that kettle finds the answer and the reset at once.
        cached.kettle.signal(Signal::STOP);
        server.write_all(ok("Connection: close\r\n", "").as_bytes()).unwrap();
        frames.send(&frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
        cached.kettle.signal(Signal::CONT);
        frames.ping();
    }
    drop(frames);
    cached.kettle.restart();
    for target in &targets {
        let _client = cached.kettle.ask(&request("GET", target, ""));
        // The backend is asked: nothing is there.
        read_head(&mut cached.backend.accept());
    }
}

#[test]
fn what_breaks_off_while_it_arrives_is_no_whole_over_http_2_either() {
    let cached = Cached::set_up(Setup::default().listener("http2 = true"), "", "", "");
    for (target, head, part) in [
        ("/app/length", ok_head(FRESH, 100_000), "x".repeat(50_000)),
        ("/app/chunks", begun(FRESH), format!("c350\r\n{}", "x".repeat(50_000))),
        ("/app/coding", begun(FRESH), format!("c350\r\n{}\r\nzz", "x".repeat(50_000))),
    ] {
        let bytes = if target == "/app/length" { 50_000 } else { 50_003 };
        let mut clients = [(); 2].map(|()| Frames::connect(&cached.kettle, &[]));
        clients[0].send(&crate::http2::frames::get(1, target));
        let mut server = cached.backend.accept_request();
        server.write_all(head.as_bytes()).unwrap();
        let _ = clients[0].next_of(HEADERS);
        // One gets what it asked for, the other one what is there.
        clients[1].send(&crate::http2::frames::get(1, target));
        let _ = clients[1].next_of(HEADERS);
        server.write_all(part.as_bytes()).unwrap();
        drop(server);
        for client in &mut clients {
            let mut received = 0;
            loop {
                let frame = client.next().unwrap();
                match frame.kind {
                    RST_STREAM => break assert_eq!(code(&frame.payload), INTERNAL_ERROR),
                    DATA => received += frame.payload.len(),
                    _ => {}
                }
                assert!(frame.kind != DATA || frame.flags & END_STREAM == 0, "{target}");
            }
            assert_eq!(received, bytes, "{target}");
            assert!(!cached.kettle.entry(target).is_complete());
            // Its connection goes on.
            client.ping();
        }
        // Nothing of it is kept.
        clients[1].send(&crate::http2::frames::get(3, target));
        answer(&mut cached.backend.accept(), &ok("Cache-Control: no-store\r\n", "new"));
        assert_eq!(clients[1].body(3), b"new");
    }
}
