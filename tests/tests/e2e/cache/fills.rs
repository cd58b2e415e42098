//! Responses that are sent while they arrive.

use super::*;

#[test]
fn a_late_client_gets_what_is_there_at_once_and_the_rest_with_the_first() {
    let cached = Cached::start("");
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n{FRESH}\r\n");
    server.write_all(head.as_bytes()).unwrap();
    server.write_all(&[b'a'; 100_000]).unwrap();
    assert_eq!(first.response_head().header("content-length"), Some("300000"));
    assert_eq!(first.receive_exactly(100_000), [b'a'; 100_000]);
    let mut late = cached.kettle.ask(&get("/app/x"));
    let head = late.response_head();
    assert_eq!(status(&head), "kettle; fwd=uri-miss; stored; collapsed");
    assert_eq!(late.receive_exactly(100_000), [b'a'; 100_000]);
    let mut part = cached.kettle.ask(&request("GET", "/app/x", "Range: bytes=99999-200000\r\n"));
    let head = part.response_head();
    assert_eq!(
        (head.status, head.header("content-range")),
        (206, Some("bytes 99999-200000/300000"))
    );
    assert_eq!(part.receive_exactly(1), b"a");
    server.write_all(&[b'b'; 200_000]).unwrap();
    for client in [&mut first, &mut late] {
        assert_eq!(client.receive_exactly(200_000), [b'b'; 200_000]);
    }
    assert_eq!(part.receive_exactly(100_001), [b'b'; 100_001]);
    assert_eq!(cached.get("/app/x").body.len(), 300_000);
    assert_unasked(&server);
}

#[test]
fn many_who_ask_together_cost_one_request() {
    let cached = Cached::start("");
    let mut clients: Vec<_> = (0..100).map(|_| cached.client()).collect();
    for client in &mut clients {
        client.send(&get("/app/x")).unwrap();
    }
    let mut server = cached.backend.accept();
    answer(&mut server, &ok(FRESH, "one for all"));
    for client in &mut clients {
        assert_eq!(client.response().body, b"one for all");
    }
    assert_unasked(&server);
}

#[test]
fn who_reads_nothing_keeps_nobody_waiting_who_asks_for_the_same() {
    let cached = Cached::start("");
    let body = content(8 << 20);
    let mut slow = Dialer::default().reading_slowly().connect(cached.kettle.address());
    slow.send(&get("/app/x")).unwrap();
    let mut server = cached.backend.accept_request();
    thread::scope(|scope| {
        scope.spawn(|| {
            server.write_all(ok_head(FRESH, body.len() as u64).as_bytes()).unwrap();
            server.write_all(&body).unwrap();
        });
        assert_same(&cached.get("/app/x").body, &body, "with the slow one");
    });
    assert_same(&cached.get("/app/x").body, &body, "after it");
    assert_same(&slow.response().body, &body, "slow");
    assert_unasked(&server);
}

#[test]
fn a_client_that_goes_away_leaves_the_rest_to_others() {
    let cached = Cached::start("");
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    server
        .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n{FRESH}\r\nabc").as_bytes())
        .unwrap();
    first.response_head();
    drop(first);
    server.write_all(b"def").unwrap();
    assert_eq!(cached.get("/app/x").body, b"abcdef");
    assert_unasked(&server);
}

#[test]
fn a_backend_that_dies_cuts_its_readers_and_leaves_nothing() {
    let cached = Cached::start("");
    let mut clients = [cached.client(), cached.client()];
    for client in &mut clients {
        client.send(&get("/app/x")).unwrap();
    }
    let mut server = cached.backend.accept_request();
    server
        .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n{FRESH}\r\nabc").as_bytes())
        .unwrap();
    for client in &mut clients {
        client.response_head();
        assert_eq!(client.receive_exactly(3), b"abc");
    }
    drop(server);
    for client in &mut clients {
        assert_ne!(client.end(), End::Orderly);
    }
    cached.fetch("/app/x", FRESH, "abcdef");
}

#[test]
fn a_body_of_unknown_length_is_kept_once_it_has_ended() {
    let cached = Cached::start("");
    let mut client = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.next_request();
    let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n");
    server.write_all(head.as_bytes()).unwrap();
    assert_eq!(client.response_head().header("transfer-encoding"), Some("chunked"));
    server.write_all(b"3\r\nabc\r\n").unwrap();
    assert_eq!(client.receive_exactly(6), b"3\r\nabc");
    server.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(client.receive_exactly(7), b"\r\n0\r\n\r\n");
    let hit = cached.get("/app/x");
    assert_eq!((hit.header("content-length"), &*hit.body), (Some("3"), &b"abc"[..]));
    cached.fetch("/app/empty", FRESH, "");
    assert_eq!(cached.get("/app/empty").body, b"");
}

#[test]
fn a_fill_goes_on_over_sixty_reloads() {
    let cached = Cached::start("");
    let mut client = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    server
        .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 60\r\n{FRESH}\r\n").as_bytes())
        .unwrap();
    client.response_head();
    for _ in 0..60 {
        let _ = cached.kettle.ctl(&["reload"]).succeed();
        server.write_all(b"x").unwrap();
        assert_eq!(client.receive_exactly(1), b"x");
    }
    assert_eq!(cached.get("/app/x").body, [b'x'; 60]);
    assert_unasked(&server);
}

#[test]
fn what_objects_take_until_the_store_has_them_is_counted() {
    let cached = Cached::start("");
    cached.fetch("/app/unkept", "Cache-Control: no-store\r\n", "x");
    for (target, bytes) in [("/app/small", 10), ("/app/large", 200_000)] {
        cached.keep(target, FRESH, &"x".repeat(bytes));
    }
    cached.wait_for_figure("fill_seconds_count", 2);
}

#[test]
fn the_log_says_why_a_body_broke_off_on_its_way_into_the_store() {
    let cached = Cached::start("");
    for (target, rest, reason) in [
        ("/app/coding", "zz\r\n", "malformed"),
        ("/app/behind", "5\r\nhello\r\nzz\r\n", "malformed"),
        ("/app/end", "", "closed_early"),
    ] {
        let mut client = cached.kettle.ask(&get(target));
        let mut server = cached.backend.accept();
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n");
        answer(&mut server, &head);
        let _ = client.response_head();
        server.write_all(rest.as_bytes()).unwrap();
        drop(server);
        assert_eq!(client.end(), End::Cut, "{target}");
        assert_eq!(cached.kettle.entry(target).text("upstream_failure"), reason);
    }
}
