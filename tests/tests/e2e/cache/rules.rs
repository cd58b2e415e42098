//! The rules of RFC 9111 for kept responses, beyond whether they are kept.

use super::*;
use crate::proxy::guarded::{SECRET, SIGNATURE};

const STALE: &str = "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n";

#[test]
fn a_response_keeps_the_date_it_was_made_at() {
    let cached = Cached::start("");
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let fields = format!("Date: {date}\r\nCache-Control: max-age=9999999999\r\n");
    cached.keep("/app/x", &fields, "body");
    let hit = cached.get("/app/x");
    assert_eq!(hit.header("date"), Some(date));
    assert!(hit.header("age").unwrap().parse::<u64>().unwrap() > 1_000_000_000);
    // One that says no date, or none that is one, gets that of its arrival, once.
    for (target, fields) in [("/app/y", ""), ("/app/z", "Date: now\r\n")] {
        let fields = format!("{fields}{FRESH}");
        let first = cached.keep(target, &fields, "body");
        let dates = [
            first.header("date").unwrap().to_owned(),
            cached.get(target).header("date").unwrap().to_owned(),
        ];
        assert!(dates.iter().all(|date| date.ends_with(" GMT")), "{dates:?}");
        assert_eq!(dates[0], dates[1]);
    }
}

/// RFC 9110 §8.8.2.2: it may have changed once more in that second, however long ago that was.
#[test]
fn a_date_joins_no_parts_of_what_was_made_in_the_same_second() {
    let cached = Cached::start("");
    let date = |second| format!("Sun, 06 Nov 1994 08:49:{second} GMT");
    for (target, made, expected) in [("/app/x", 37, 200), ("/app/y", 38, 206)] {
        let dates = format!("Date: {}\r\nLast-Modified: {}\r\n", date(made), date(37));
        let fields = format!("{dates}Cache-Control: max-age=9999999999\r\n");
        cached.fetch(target, &fields, "body");
        let part = format!("Range: bytes=1-\r\nIf-Range: {}\r\n", date(37));
        assert_eq!(cached.ask("GET", target, &part).status, expected, "{target}");
    }
}

#[test]
fn a_write_removes_what_its_answer_names_of_the_same_origin_too() {
    let cached = Cached::start("");
    for target in ["/app/x", "/app/y", "/app/z"] {
        cached.keep(target, FRESH, "old");
    }
    let mut client = cached.kettle.ask(&request("POST", "/app/w", "Content-Length: 0\r\n"));
    let host = format!("https://localhost:{}", cached.kettle.address().port());
    let fields = format!("Location: /app/x\r\nContent-Location: y\r\nX: {host}/app/z\r\n");
    cached.backend.answer(&ok(&fields, "done"));
    assert_eq!(client.response().body, b"done");
    for target in ["/app/x", "/app/y"] {
        cached.fetch(target, FRESH, "new");
    }
    assert_eq!(cached.get("/app/z").body, b"old");
}

/// RFC 9111 §4.4: what is no error, whatever the method is, and of the same origin only.
#[test]
fn a_write_removes_nothing_where_it_failed_or_of_others() {
    let cached = Cached::start("");
    for (method, status, fields, is_gone) in [
        ("PUT", 204, "", true),
        ("DELETE", 200, "", true),
        ("PATCH", 202, "", true),
        ("POST", 303, "Location: /app/other\r\n", true),
        ("POST", 400, "", false),
        ("PUT", 409, "Location: /app/x\r\n", false),
        ("DELETE", 500, "", false),
        ("OPTIONS", 200, "", false),
    ] {
        for target in ["/app/x", "/app/x?elsewhere"] {
            cached.keep(target, FRESH, "old");
        }
        let mut client = cached.kettle.ask(&request(method, "/app/x", "Content-Length: 0\r\n"));
        let others = "Content-Location: https://other.example/app/x?elsewhere\r\n";
        let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
        let response = format!("HTTP/1.1 {status} X\r\n{fields}{others}{length}\r\n");
        cached.backend.answer(&response);
        assert_eq!(client.response_head().status, status);
        assert_eq!(cached.get("/app/x?elsewhere").body, b"old", "{method} {status}");
        if is_gone {
            cached.fetch("/app/x", FRESH, "new");
        }
        let expected: &[u8] = if is_gone { b"new" } else { b"old" };
        assert_eq!(cached.get("/app/x").body, expected, "{method} {status}");
        let all = ["cache", "purge", "--prefix", "https://localhost/"];
        let _ = cached.kettle.ctl(&all).succeed();
    }
}

#[test]
fn what_says_when_it_was_modified_is_fresh_where_the_operator_wants_it() {
    let cached = Cached::start("heuristic = \"1d\"");
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    cached.keep("/app/x", modified, "body");
    let hit = cached.get("/app/x");
    assert!(status(&hit).starts_with("kettle; hit; ttl=86"), "{}", status(&hit));
}

#[test]
fn what_is_said_to_this_cache_alone_counts_for_it_and_not_for_clients() {
    let cached = Cached::start("targeted = \"CDN-Cache-Control\"");
    let fields = "CDN-Cache-Control: max-age=100\r\nCache-Control: no-store\r\n";
    cached.keep("/app/x", fields, "body");
    assert_eq!(cached.get("/app/x").header("cache-control"), Some("no-store"));
}

#[test]
fn a_304_for_another_object_makes_it_come_anew() {
    let cached = Cached::start("");
    cached.fetch("/app/x", STALE, "old");
    let mut client = cached.kettle.ask(&get("/app/x"));
    let other = format!("HTTP/1.1 304 X\r\nETag: \"v2\"\r\n{FRESH}\r\n");
    let head = cached.backend.answer(&other);
    assert!(head.contains("if-none-match: \"v1\""), "{head}");
    let head = cached.backend.answer(&ok(FRESH, "new"));
    assert!(!head.contains("if-none-match"), "{head}");
    assert_eq!(client.response().body, b"new");
}

#[test]
fn a_304_says_by_what_its_object_is_asked_about_from_then_on() {
    let cached = Cached::start("");
    let weak = "Cache-Control: max-age=0\r\nETag: W/\"v1\"\r\n";
    cached.fetch("/app/x", weak, "body");
    let monday = "Mon, 01 Jan 2024 00:00:00 GMT";
    let same = format!("HTTP/1.1 304 X\r\n{STALE}Last-Modified: {monday}\r\n\r\n");
    for (number, since) in ["", monday].into_iter().enumerate() {
        let (response, head) = cached.get_through("/app/x", "", &same);
        // The tag stays weak: which of the bodies that it names is kept is not known (RFC 9110 §8.8.1).
        let seen = (response.header("etag"), response.header("last-modified"));
        assert_eq!(seen, (Some("W/\"v1\""), Some(monday)));
        let asked = ["if-none-match: W/\"v1\"\r\n", &format!("if-modified-since: {since}\r\n")];
        assert_eq!(asked.map(|line| head.contains(line)), [true, number == 1], "{head}");
    }
}

#[test]
fn a_304_for_one_modified_at_another_time_makes_it_come_anew() {
    let cached = Cached::start("");
    let modified = |day| format!("Last-Modified: Mon, 0{day} Jan 2024 00:00:00 GMT\r\n");
    let stale = format!("Cache-Control: max-age=0\r\n{}", modified(1));
    cached.fetch("/app/x", &stale, "old");
    let mut client = cached.kettle.ask(&get("/app/x"));
    let other = format!("HTTP/1.1 304 X\r\n{FRESH}{}\r\n", modified(8));
    let head = cached.backend.answer(&other);
    assert!(head.contains("if-modified-since"), "{head}");
    let head = cached.backend.answer(&ok(FRESH, "new"));
    assert!(!head.contains("if-modified-since"), "{head}");
    assert_eq!(client.response().body, b"new");
}

#[test]
fn a_304_that_says_no_time_gives_the_first_one_anew_whatever_clients_are_told() {
    let route = "headers = { cache-control = \"no-store\" }";
    let cached = Cached::of_route(route);
    cached.fetch("/app/x", STALE, "body");
    let validated = format!("HTTP/1.1 304 X\r\n{FRESH}\r\n");
    cached.get_through("/app/x", "", &validated);
    let hit = cached.hit("/app/x");
    assert_eq!(hit.header("cache-control"), Some("no-store"));
    // `max-age=0` was its first time, and a 304 without one makes it no fresher.
    cached.fetch("/app/y", STALE, "body");
    for _ in 0..2 {
        let same = "HTTP/1.1 304 X\r\n\r\n";
        let (response, _) = cached.get_through("/app/y", "", same);
        assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304");
    }
}

#[test]
fn the_first_client_gets_an_answer_to_its_own_fields_where_they_count() {
    let cached = Cached::start("");
    for (target, fields) in [
        ("/app/x", "Vary: Origin\r\nCache-Control: no-store\r\n"),
        ("/app/y", "Vary: Accept, Origin\r\nCache-Control: private\r\n"),
        ("/app/z", "Vary: Origin\r\nCache-Control: max-age=100\r\n"),
    ] {
        let origin = "Origin: https://a.example\r\n";
        let mut client = cached.kettle.ask(&request("GET", target, origin));
        let mut server = cached.backend.accept();
        let head = answer(&mut server, &ok(fields, "anybody's"));
        assert!(!head.contains("a.example"), "{head}");
        let mut server = match target {
            "/app/z" => server,
            _ => cached.backend.accept(),
        };
        let head = answer(&mut server, &ok(fields, "own"));
        assert!(head.contains("a.example"), "{head}");
        assert_eq!(client.response().body, b"own", "{target}");
    }
}

#[test]
fn what_varied_once_by_a_field_no_backend_sees_is_one_for_all_after_its_time() {
    let cached = Cached::start("");
    let varied = "Cache-Control: max-age=1\r\nVary: Origin\r\n";
    cached.fetch("/app/x", varied, "once");
    cached.wait_for_objects(2);
    let origin = |name: &str| format!("Origin: https://{name}.example\r\n");
    let ask = || cached.get_through("/app/x", &origin("a"), &ok(FRESH, "all")).0;
    wait_until("it is kept", || status(&ask()) == "kettle; fwd=uri-miss; stored");
    let other = || cached.ask("GET", "/app/x", &origin("b"));
    wait_until("all get it", || status(&other()).starts_with("kettle; hit"));
    assert_eq!(other().body, b"all");
}

#[test]
fn codings_that_no_backend_sees_are_no_reason_to_ask_it_twice() {
    let cached = Cached::start("vary = []");
    let fields = "Vary: Accept-Encoding\r\nCache-Control: no-store\r\n";
    let takes = "Accept-Encoding: br\r\n";
    let (response, _) = cached.get_through("/app/x", takes, &ok(fields, "plain"));
    assert_eq!((&*response.body, status(&response)), (&b"plain"[..], "kettle; fwd=uri-miss"));
}

/// RFC 9111 §4.3.2: the server that has the resource evaluates If-Match and If-Unmodified-Since, and no cache before it.
#[test]
fn conditions_for_the_server_are_passed_on_where_they_do_not_hold_for_what_is_kept() {
    let cached = Cached::start("");
    let fields = format!("{FRESH}ETag: \"v1\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n");
    cached.keep("/app/x", &fields, "kept");
    for (condition, holds) in [
        ("If-Match: \"v0\", \"v1\"", true),
        ("If-Match: \"v2\"", false),
        ("If-Unmodified-Since: Mon, 01 Jan 2024 00:00:00 GMT", true),
        ("If-Unmodified-Since: Sun, 31 Dec 2023 23:59:59 GMT", false),
    ] {
        let line = format!("{condition}\r\n");
        if holds {
            assert_eq!(cached.ask("GET", "/app/x", &line).body, b"kept", "{condition}");
            continue;
        }
        let newer = ok(&format!("{FRESH}ETag: \"v2\"\r\n"), "newer");
        let (response, head) = cached.get_through("/app/x", &line, &newer);
        assert!(head.contains(condition), "{head}");
        assert_eq!((response.status, &*response.body), (200, &b"newer"[..]), "{condition}");
        assert_eq!(status(&response), "kettle; fwd=request; detail=precondition");
    }
    assert_eq!(cached.get("/app/x").body, b"kept");
    cached.backend.assert_unasked();
}

#[test]
fn an_error_that_is_not_kept_is_no_reason_to_go_past_the_store() {
    let cached = Cached::start("");
    let failure = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
    cached.get_through("/app/x", "", failure);
    let response = cached.fetch("/app/x", FRESH, "body");
    assert_eq!(status(&response), "kettle; fwd=uri-miss; stored");
}

#[test]
fn what_has_more_tags_than_can_be_kept_is_not_kept() {
    let cached = Cached::start("tags = \"X-Tags\"");
    let tags: String = (0..257).map(|number| format!("t{number} ")).collect();
    let fields = format!("{FRESH}X-Tags: {tags}\r\n");
    for how in ["uri-miss", "bypass; detail=not-kept"] {
        let response = cached.fetch("/app/x", &fields, "body");
        assert_eq!(status(&response), format!("kettle; fwd={how}"));
    }
    cached.kettle.messages().wait_for("too many tags");
    let tags: String = (0..256).map(|number| format!("t{number} ")).collect();
    let fields = format!("{FRESH}X-Tags: {tags}\r\n");
    cached.keep("/app/y", &fields, "body");
    cached.purge(&["--tag", "t255"]);
    cached.fetch("/app/y", FRESH, "new");
    cached.backend.assert_unasked();
}

#[test]
fn each_outcome_is_counted_by_the_word_that_nginx_has_for_it() {
    let cached = Cached::start("");
    for error in ["", ", stale-if-error=100"] {
        let fields = format!("Cache-Control: max-age=0{error}\r\nETag: \"v1\"\r\n");
        cached.fetch("/app/x", &fields, "body");
    }
    let failure = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
    cached.get_through("/app/x", "", failure);
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=100\r\n";
    cached.get_through("/app/x", "", &format!("HTTP/1.1 304 X\r\n{fields}\r\n"));
    cached.get("/app/x");
    cached.backend.answer(&ok(FRESH, "new"));
    wait_until("the new one is kept", || cached.get("/app/x").body == b"new");
    let mut client = cached.kettle.ask(&request("DELETE", "/app/z", ""));
    cached.backend.answer(&ok("", ""));
    client.response();
    let metrics = cached.scrape();
    for word in ["miss", "expired", "stale", "revalidated", "updating", "hit", "bypass"] {
        let line = format!("kettle_cache_responses_total{{store=\"main\",status=\"{word}\"}} ");
        let count = metrics.lines().find_map(|it| it.strip_prefix(&line));
        let count = count.and_then(|count| count.trim().parse::<u64>().ok());
        assert!(count >= Some(1), "{word}: {count:?}");
    }
}

#[test]
fn what_a_backend_and_the_operator_vary_by_is_said_of_a_hit_too() {
    let cached =
        Cached::with_all("headers = { Vary = \"X-Site\" }", "vary = [\"accept-language\"]", "");
    let fields = format!("{FRESH}Vary: Accept-Language\r\n");
    cached.keep("/app/x", &fields, "body");
    let hit = cached.get("/app/x").head;
    assert!(hit.contains("vary: X-Site\r\n") && hit.contains("vary: Accept-Language\r\n"), "{hit}");
}

#[test]
fn only_what_asks_for_a_tunnel_goes_past_the_store() {
    let cached = Cached::of_route("websocket = true");
    cached.keep("/app/x", FRESH, "body");
    for fields in [
        "Upgrade: h2c\r\nConnection: Upgrade\r\n",
        "Upgrade: websocket, h2c\r\nConnection: Upgrade\r\n",
        "Upgrade: websocket\r\n",
    ] {
        let response = cached.ask("GET", "/app/x", fields);
        assert_hit(&response);
    }
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    let (response, head) = cached.get_through("/app/x", fields, &ok("", "own"));
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    assert_eq!((&*response.body, status(&response)), (&b"own"[..], "kettle; fwd=method"));
}

#[test]
fn errors_say_where_they_come_from_too() {
    let cached = Cached::start("");
    for (method, expected) in [("GET", "kettle; fwd=uri-miss"), ("POST", "kettle; fwd=method")] {
        let mut client = cached.kettle.ask(&request(method, "/app/x", ""));
        answer(&mut cached.backend.accept(), "no status line\r\n\r\n");
        let response = client.response();
        assert_eq!((response.status, status(&response)), (502, expected));
    }
}

#[test]
fn a_304_is_for_the_object_that_was_asked_about_and_for_none_that_came_since() {
    let cached = Cached::start("");
    let stale = "Connection: close\r\nCache-Control: max-age=0\r\nETag: \"v1\"\r\nX-App: old\r\n";
    cached.fetch("/app/x", stale, "old");
    // It is written behind its answer.
    cached.wait_for_objects(1);
    let asks = |coding: &str| {
        let fields = format!("Accept-Encoding: {coding}\r\n");
        let client = cached.kettle.ask(&request("GET", "/app/x", &fields));
        let mut server = cached.backend.accept();
        let head = read_head(&mut server);
        assert!(head.contains("if-none-match: \"v1\""), "{head}");
        (client, server)
    };
    // One object for both, which the backend is asked about twice.
    let ((mut first, mut slow), (mut second, mut quick)) = (asks("br"), asks("gzip"));
    let new = "Cache-Control: max-age=1000\r\nETag: \"v2\"\r\nX-App: new\r\n";
    quick.write_all(ok(new, "new").as_bytes()).unwrap();
    assert_eq!(second.response().body, b"new");
    cached.wait_until_kept("/app/x");
    let late = "HTTP/1.1 304 Not Modified\r\nX-App: older\r\nCache-Control: max-age=9\r\n\r\n";
    slow.write_all(late.as_bytes()).unwrap();
    for response in [first.response(), cached.get("/app/x")] {
        assert_eq!((&*response.body, response.header("x-app")), (&b"new"[..], Some("new")));
    }
}

/// The path is what is signed: each signature would be another object otherwise, and a purge would find none of them.
#[test]
fn a_signature_is_no_part_of_what_is_kept() {
    let setup = Setup::default().file("secret", SECRET);
    let cached = Cached::set_up(setup, "signed_urls = { secret = \"secret\" }", "", "");
    let signed = [
        format!("/app/a?expires=4102444800&signature={SIGNATURE}"),
        // The same by the second after.
        "/app/a?signature=0a70a672dc795e76986a45dfbfb3de3c5712d6714fd59dcbe5529deccf8d81a8&expires=4102444801".to_owned(),
    ];
    let (first, head) = cached.get_through(&signed[0], "", &ok(FRESH, "one"));
    assert_eq!((first.status, status(&first)), (200, "kettle; fwd=uri-miss; stored"));
    assert!(head.starts_with("GET /app/a HTTP/1.1\r\n"), "{head}");
    cached.wait_until_kept(&signed[0]);
    let other = cached.get(&signed[1]);
    assert_eq!((&*other.body, &status(&other)[..11]), (&b"one"[..], "kettle; hit"));
    assert_eq!(cached.ask("HEAD", &signed[1], "").status, 200);
    for unsigned in ["/app/a", "/app/a?expires=4102444802&signature=00"] {
        assert_eq!(cached.get(unsigned).status, 403, "{unsigned}");
    }
    let said = cached.kettle.ctl(&["cache", "purge", "https://localhost/app/a"]).succeed();
    assert!(said.contains('1'), "{said}");
    cached.fetch(&signed[1], FRESH, "two");
}

#[test]
fn a_304_says_by_which_tags_its_object_is_purged_from_then_on() {
    let cached = Cached::start("tags = \"X-Tags\"");
    let first = format!("{STALE}X-Tags: old\r\n");
    cached.fetch("/app/x", &first, "old");
    let same = format!("HTTP/1.1 304 X\r\n{FRESH}X-Tags: new, more\r\n\r\n");
    let (response, _) = cached.get_through("/app/x", "", &same);
    assert_eq!(response.header("x-tags"), None);
    cached.purge(&["--tag", "old"]);
    cached.wait_until_kept("/app/x");
    cached.purge(&["--tag", "more"]);
    cached.fetch("/app/x", FRESH, "new");
}

#[test]
fn a_304_may_vary_by_codings_that_its_backend_never_sees() {
    let cached = Cached::start("");
    let vary = "Vary: Accept-Encoding\r\n";
    cached.fetch("/app/x", &format!("{STALE}{vary}"), "body");
    let same = format!("HTTP/1.1 304 X\r\n{FRESH}{vary}\r\n");
    let (response, _) = cached.get_through("/app/x", "", &same);
    assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304");
    assert_eq!(response.body, b"body");
}

#[test]
fn what_has_two_lines_of_codings_is_for_those_who_take_them() {
    let cached = Cached::start("vary = [\"accept-encoding\"]");
    let coded = format!("{FRESH}Content-Encoding: gzip\r\nContent-Encoding: br\r\n");
    let takes = "Accept-Encoding: gzip, br\r\n";
    cached.get_through("/app/x", takes, &ok(&coded, "coded"));
    wait_until("it is kept", || status(&cached.ask("GET", "/app/x", takes)).contains("hit"));
    assert_eq!(cached.ask("GET", "/app/x", takes).body, b"coded");
    cached.fetch("/app/x", FRESH, "plain");
}

/// A file that was kept before the route denied it is not found either.
#[test]
fn a_denied_file_is_answered_from_no_store() {
    let cached = Cached::start("");
    cached.keep("/app/x.php", FRESH, "source");
    let denying = "backend = \"app\"\ndeny_files = [\"*.php\"]";
    cached.kettle.reload_with("backend = \"app\"", denying);
    for target in ["/app/x.php", "/app/%78.php", "/app//x.php", "/app/x.php;a"] {
        assert_eq!(cached.get(target).status, 403, "{target}");
    }
    cached.backend.assert_unasked();
}
