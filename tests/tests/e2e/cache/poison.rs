//! Requests by which a client would have others get what is not theirs.

use std::io::Write;

use kettle_tests::http::{Connection, request};

use super::{Cached, answer, assert_unasked, ok, read_head, status};

const FRESH: &str = "Cache-Control: max-age=100\r\n";

#[test]
fn nothing_is_kept_of_what_went_past_the_store_with_all_fields() {
    let cached = Cached::start("");
    let mut server = None;
    cached.get_through(&mut server, "/app/x", "", &ok("Cache-Control: no-store\r\n", "one"));
    for (method, headers) in [
        ("GET", "X-Original-URL: /admin\r\n"),
        ("GET", "Authorization: Basic YTpi\r\n"),
        ("GET", "Content-Length: 4\r\n"),
        ("OPTIONS", ""),
    ] {
        let mut client = cached.client();
        let body = if headers.starts_with("Content") { "evil" } else { "" };
        let head = request(method, "/app/x", headers);
        client.send(&[&head, body.as_bytes()].concat()).unwrap();
        let server = cached.backend.asked(&mut server);
        let head = read_head(server);
        assert!(head.starts_with(method), "{head}");
        if !body.is_empty() {
            let mut read = [0; 4];
            std::io::Read::read_exact(server, &mut read).unwrap();
        }
        server.write_all(ok(FRESH, "evil").as_bytes()).unwrap();
        assert_eq!(client.response().body, b"evil");
    }
    let (own, _) = cached.get_through(&mut server, "/app/x", "", &ok(FRESH, "own"));
    assert_eq!(own.body, b"own");
}

#[test]
fn one_host_has_one_key_however_it_is_written() {
    let cached = Cached::start("");
    let mut server = None;
    cached.get_through(&mut server, "/app/x", "", &ok(FRESH, "own"));
    cached.wait_until_kept("/app/x");
    let server = server.unwrap();
    for head in [
        "GET /app/x HTTP/1.1\r\nHost: LocalHost\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost.\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost:443\r\n\r\n",
        // What the target says stands above the field (RFC 9112 §3.2.2).
        "GET https://localhost/app/x HTTP/1.1\r\nHost: evil\r\n\r\n",
    ] {
        let mut client = cached.kettle.ask(head.as_bytes());
        let response = client.response();
        assert!(status(&response).starts_with("kettle; hit"), "{head}: {}", status(&response));
    }
    for head in [
        "GET /app/x HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost, evil\r\n\r\n",
        "GET /app/x HTTP/1.1\r\nHost: localhost/evil\r\n\r\n",
        "GET /app/x HTTP/1.1\r\n\r\n",
    ] {
        let mut client = cached.kettle.ask(head.as_bytes());
        assert_eq!(client.response().status, 400, "{head}");
    }
    assert_unasked(&server);
}

#[test]
fn another_port_has_a_key_of_its_own_and_a_strangers_host_reaches_no_backend() {
    let cached = Cached::start("");
    let mut server = None;
    cached.get_through(&mut server, "/app/x", "", &ok(FRESH, "own"));
    cached.wait_until_kept("/app/x");
    let mut server = server.unwrap();
    let ask = |host: &str| {
        let mut client = cached.client();
        let head = format!("GET /app/x HTTP/1.1\r\nHost: {host}\r\n\r\n");
        client.send(head.as_bytes()).unwrap();
        client
    };
    let mut client = ask("localhost:81");
    let head = answer(&mut server, &ok("Cache-Control: max-age=0\r\n", "other"));
    assert!(head.contains("\r\nhost: localhost:81\r\n"), "{head}");
    assert_eq!(client.response().body, b"other");
    assert_eq!(ask("evil").response().status, 421);
    assert_unasked(&server);
    assert_eq!(cached.get("/app/x").body, b"own");
}

#[test]
fn a_path_that_looks_like_a_files_is_kept_only_if_the_backend_says_so() {
    let cached = Cached::start("");
    let mut server = None;
    let account = "Cache-Control: private\r\n";
    for target in ["/app/account.php/x.css", "/app/account.php;x.css", "/app/account.php%3Bx.css"] {
        for fields in [account, ""] {
            let (_, head) = cached.get_through(&mut server, target, "", &ok(fields, "mine"));
            assert!(head.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{head}");
        }
        let (other, _) = cached.get_through(&mut server, target, "", &ok(account, "others"));
        assert_eq!(other.body, b"others", "{target}");
    }
    for target in ["/app/account.php%2fx.css", "/app/a%00.css", "/app/a%0D%0AX:x.css"] {
        assert_eq!(cached.get(target).status, 400, "{target}");
    }
    // Kept under the path as it was asked for, and under no other.
    cached.get_through(&mut server, "/app/a.php/x.css", "", &ok(FRESH, "style"));
    cached.wait_until_kept("/app/a.php/x.css");
    let (own, _) = cached.get_through(&mut server, "/app/a.php", "", &ok(account, "account"));
    assert_eq!(own.body, b"account");
}

#[test]
fn a_range_fills_the_whole_and_a_head_nothing() {
    let cached = Cached::start("");
    let mut server = None;
    let mut client = cached.kettle.ask(&request("HEAD", "/app/x", ""));
    let socket = server.get_or_insert_with(|| cached.backend.accept());
    let head = answer(socket, &ok(FRESH, ""));
    assert!(head.starts_with("HEAD "), "{head}");
    client.response_head();
    let range = "Range: bytes=1-2\r\n";
    let (part, head) = cached.get_through(&mut server, "/app/x", range, &ok(FRESH, "0123"));
    assert!(head.starts_with("GET ") && !head.contains("ange: bytes"), "{head}");
    assert_eq!((part.status, &*part.body), (206, &b"12"[..]));
    assert_eq!(cached.get("/app/x").body, b"0123");
    // A part that nobody asked for is nobody else's.
    let part = "HTTP/1.1 206 X\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\n";
    cached.get_through(&mut server, "/app/y", "", &format!("{part}{FRESH}\r\nx"));
    let (whole, _) = cached.get_through(&mut server, "/app/y", "", &ok(FRESH, "whole"));
    assert_eq!(whole.body, b"whole");
}

#[test]
fn a_long_url_is_a_key_like_others_or_too_long_for_any() {
    let cached = Cached::start("");
    let mut server = None;
    let long = format!("/app/x?{}", "a".repeat(7_000));
    cached.get_through(&mut server, &long, "", &ok(FRESH, "long"));
    cached.wait_until_kept(&long);
    cached.get_through(&mut server, &format!("{long}b"), "", &ok(FRESH, "longer"));
    assert_eq!(cached.get(&long).body, b"long");
    let endless = format!("/app/x?{}", "a".repeat(70_000));
    let refused = cached.get(&endless).status;
    assert!(matches!(refused, 414 | 431), "{refused}");
    assert_unasked(&server.unwrap());
}
