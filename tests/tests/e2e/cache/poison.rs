//! Requests by which a client would have others get what is not theirs.

use super::*;

#[test]
fn nothing_is_kept_of_what_went_past_the_store_with_all_fields() {
    let cached = Cached::start("");
    cached.fetch("/app/x", "Cache-Control: no-store\r\n", "one");
    for (method, headers) in [
        ("GET", "X-Original-URL: /admin\r\n"),
        ("GET", "Authorization: Basic YTpi\r\n"),
        ("GET", "Content-Length: 4\r\n"),
        ("OPTIONS", ""),
    ] {
        let body = if headers.starts_with("Content") { "evil" } else { "" };
        let head = request(method, "/app/x", headers);
        let mut client = cached.kettle.ask(&[&head, body.as_bytes()].concat());
        let mut server = cached.backend.next();
        let head = read_head(&mut server);
        assert!(head.starts_with(method), "{head}");
        if !body.is_empty() {
            let mut read = [0; 4];
            std::io::Read::read_exact(&mut server, &mut read).unwrap();
        }
        server.write_all(ok(FRESH, "evil").as_bytes()).unwrap();
        assert_eq!(client.response().body, b"evil");
    }
    cached.fetch("/app/x", FRESH, "own");
}

#[test]
fn one_host_has_one_key_however_it_is_written() {
    let cached = Cached::start("");
    cached.keep("/app/x", FRESH, "own");
    for head in [
        "GET /app/x HTTP/1.1\r\nHost: LocalHost\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost.\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost:443\r\n\r\n",
        // The target's host stands above the field (RFC 9112 §3.2.2).
        "GET https://localhost/app/x HTTP/1.1\r\nHost: evil\r\n\r\n",
    ] {
        assert_hit(&cached.kettle.ask(head.as_bytes()).response());
    }
    for head in [
        "GET /app/x HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost, evil\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost/evil\r\n\r\n",
        "GET /app/x HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(cached.kettle.ask(head.as_bytes()).response().status, 400, "{head}");
    }
    cached.backend.assert_unasked();
}

#[test]
fn another_port_has_a_key_of_its_own_and_a_strangers_host_reaches_no_backend() {
    let cached = Cached::start("");
    cached.keep("/app/x", FRESH, "own");
    let ask = |host: &str| {
        let head = format!("GET /app/x HTTP/1.1\r\nHost: {host}\r\n\r\n");
        cached.kettle.ask(head.as_bytes())
    };
    let mut client = ask("localhost:81");
    let head = cached.backend.answer(&ok("Cache-Control: max-age=0\r\n", "other"));
    assert!(head.contains("\r\nhost: localhost:81\r\n"), "{head}");
    assert_eq!(client.response().body, b"other");
    assert_eq!(ask("evil").response().status, 421);
    cached.backend.assert_unasked();
    assert_eq!(cached.get("/app/x").body, b"own");
}

#[test]
fn a_path_that_looks_like_a_files_is_kept_only_if_the_backend_says_so() {
    let cached = Cached::start("");
    let account = "Cache-Control: private\r\n";
    for target in ["/app/account.php/x.css", "/app/account.php;x.css", "/app/account.php%3Bx.css"] {
        for fields in [account, ""] {
            let (_, head) = cached.get_through(target, "", &ok(fields, "mine"));
            assert!(head.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{head}");
        }
        cached.fetch(target, account, "others");
    }
    for target in ["/app/account.php%2fx.css", "/app/a%00.css", "/app/a%0D%0AX:x.css"] {
        assert_eq!(cached.get(target).status, 400, "{target}");
    }
    // Kept under the path as it was asked for, and under no other.
    cached.keep("/app/a.php/x.css", FRESH, "style");
    cached.fetch("/app/a.php", account, "account");
}

#[test]
fn a_range_fills_the_whole_and_a_head_nothing() {
    let cached = Cached::start("");
    let mut client = cached.kettle.ask(&request("HEAD", "/app/x", ""));
    let head = cached.backend.answer(&ok(FRESH, ""));
    assert!(head.starts_with("HEAD "), "{head}");
    client.response_head();
    let range = "Range: bytes=1-2\r\n";
    let (part, head) = cached.get_through("/app/x", range, &ok(FRESH, "0123"));
    assert!(head.starts_with("GET ") && !head.contains("ange: bytes"), "{head}");
    assert_eq!((part.status, &*part.body), (206, &b"12"[..]));
    assert_eq!(cached.get("/app/x").body, b"0123");
    // A part that nobody asked for is nobody else's.
    let part = "HTTP/1.1 206 X\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\n";
    cached.get_through("/app/y", "", &format!("{part}{FRESH}\r\nx"));
    cached.fetch("/app/y", FRESH, "whole");
}

#[test]
fn a_long_url_is_a_key_like_others_or_too_long_for_any() {
    let cached = Cached::start("");
    let long = format!("/app/x?{}", "a".repeat(7_000));
    cached.keep(&long, FRESH, "long");
    cached.fetch(&format!("{long}b"), FRESH, "longer");
    assert_eq!(cached.get(&long).body, b"long");
    let endless = format!("/app/x?{}", "a".repeat(70_000));
    let refused = cached.get(&endless).status;
    assert!(matches!(refused, 414 | 431), "{refused}");
    cached.backend.assert_unasked();
}
