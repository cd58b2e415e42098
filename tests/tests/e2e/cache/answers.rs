//! The backend's answers of now, beside those of before that are still kept; and requests for the same in other words.

use super::*;

/// Stale at once, and good for more than that.
const AGING: &str = "Cache-Control: max-age=0, stale-if-error=1000\r\nETag: \"a\"\r\n";
const AHEAD: &str = "Cache-Control: max-age=0, stale-while-revalidate=1000\r\nETag: \"a\"\r\n";

#[test]
fn another_answer_that_is_not_kept_takes_the_place_of_what_was() {
    for (line, fields) in [
        ("404 Not Found", ""),
        ("410 Gone", "Cache-Control: no-store\r\n"),
        ("200 OK", "Cache-Control: private\r\n"),
        ("301 Moved Permanently", "Location: /b\r\nCache-Control: no-store\r\n"),
    ] {
        let newer = format!("HTTP/1.1 {line}\r\n{fields}Content-Length: 3\r\n\r\nnew");
        let cached = Cached::start("");
        cached.fetch("/app/x", AGING, "old");
        cached.wait_for_objects(1);
        let (response, head) = cached.get_through("/app/x", "", &newer);
        assert!(head.contains("if-none-match"), "{head}");
        assert_eq!(response.body, b"new");
        cached.wait_for_objects(0);
        // The same where nobody waits for it.
        cached.fetch("/app/y", AHEAD, "old");
        wait_until("it is stale", || {
            status(&cached.get("/app/y")).contains("stale-while-revalidate")
        });
        cached.backend.answer(&newer);
        cached.wait_for_objects(0);
    }
}

/// A kept error has the operator's page in its place as a fresh one has: for the first client and for all others.
#[test]
fn an_error_that_is_kept_has_the_page_of_its_route() {
    let route = "intercept_errors = true\nerror_pages = { 404 = { redirect = \"/start\" } }";
    let cached = Cached::set_up(Setup::default(), route, "", "");
    let gone = format!("HTTP/1.1 404 Not Found\r\n{FRESH}Content-Length: 5\r\n\r\ntrace");
    let (response, _) = cached.get_through("/app/x", "", &gone);
    assert_eq!(response.status, 302);
    cached.wait_for_objects(1);
    for _ in 0..2 {
        assert_eq!(cached.get("/app/x").status, 302);
    }
}

#[test]
fn an_error_takes_the_place_of_nothing() {
    let cached = Cached::start("");
    cached.fetch("/app/x", AGING, "old");
    cached.wait_for_objects(1);
    for _ in 0..2 {
        let error = "HTTP/1.1 503 No\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n";
        let (response, _) = cached.get_through("/app/x", "", error);
        assert_eq!(status(&response), "kettle; hit; detail=stale-if-error");
    }
    // One without leave to be used instead stays to be asked about.
    let plain = "Cache-Control: max-age=0\r\nETag: \"a\"\r\n";
    cached.fetch("/app/y", plain, "old");
    cached.wait_for_objects(2);
    let error = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(cached.get_through("/app/y", "", error).0.status, 500);
    cached.wait_for_objects(2);
}

#[test]
fn a_variant_that_is_not_kept_leaves_others_to_be_kept() {
    let cached = Cached::start("vary = [\"X-V\"]");
    let unkept = ok("Cache-Control: no-store\r\n", "odd");
    for expected in ["kettle; fwd=uri-miss", "kettle; fwd=bypass; detail=not-kept"] {
        let (response, _) = cached.get_through("/app/x", "X-V: odd\r\n", &unkept);
        assert_eq!(status(&response), expected);
    }
    let response = cached.fetch("/app/x", FRESH, "even");
    assert_eq!(status(&response), "kettle; fwd=uri-miss; stored");
}

#[test]
fn a_head_longer_than_records_goes_before_a_file() {
    let cached = Cached::start("");
    let fields = format!("{FRESH}X-Long: {:x<60000}\r\n", "");
    let body = "y".repeat(200_000);
    let response = cached.keep("/app/x", &fields, &body);
    for response in [response, cached.get("/app/x")] {
        assert_eq!(response.header("x-long").map(str::len), Some(60_000));
        assert!(response.body == body.as_bytes(), "{}", status(&response));
    }
}

#[test]
fn a_get_with_an_empty_body_or_an_upgrade_that_nobody_takes_is_a_get() {
    let cached = Cached::start("");
    cached.keep("/app/x", FRESH, "kept");
    for headers in ["Content-Length: 0\r\n", "Connection: upgrade\r\nUpgrade: websocket\r\n"] {
        let hit = cached.ask("GET", "/app/x", headers);
        assert_hit(&hit);
    }
    // Its head does not say whether anything comes, so the store is not asked.
    let mut client = cached.kettle.ask(&request("GET", "/app/x", "Transfer-Encoding: chunked\r\n"));
    client.send(b"0\r\n\r\n").unwrap();
    cached.backend.answer(&ok(FRESH, "passed"));
    assert_eq!(status(&client.response()), "kettle; fwd=method");
}

#[test]
fn a_range_that_a_whole_response_speaks_of_is_not_kept() {
    let cached = Cached::start("");
    let fields = format!("{FRESH}Content-Range: bytes 0-3/10\r\n");
    cached.keep("/app/x", &fields, "1234");
    let part = cached.ask("GET", "/app/x", "Range: bytes=1-1\r\n");
    assert_eq!((part.status, part.header("content-range")), (206, Some("bytes 1-1/4")));
}

#[test]
fn a_url_may_be_purged_in_any_spelling() {
    let cached = Cached::start("");
    for url in ["HTTPS://LOCALHOST:443/app/x", "https://localhost./app/y/../x#z"] {
        cached.keep("/app/x", FRESH, "kept");
        let said = cached.kettle.ctl(&["cache", "purge", url]).succeed();
        assert!(said.contains("forgotten"), "{said}");
        cached.wait_for_objects(0);
    }
    let nothing = cached.kettle.ctl(&["cache", "purge", "https://localhost/app/z"]).succeed();
    assert!(nothing.contains("nothing was kept"), "{nothing}");
    let refused = cached.kettle.ctl(&["cache", "purge", "localhost/app/x"]).output();
    assert!(
        !refused.status.success() && refused.stderr.contains("is no URL"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_is_purged_while_the_backend_fails_is_no_better_than_its_failure() {
    let fields = "Cache-Control: public, max-age=0\r\nETag: \"a\"\r\nX-Tags: t\r\n";
    let failure = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    for way in ["https://localhost/app/x", "--tag t", "--prefix https://localhost/app/", ""] {
        // Those that go past the store, too.
        for credentials in ["", "Authorization: Basic YTpi\r\n"] {
            let cached = Cached::start("tags = \"X-Tags\"\nstale_if_error = \"1h\"");
            cached.fetch("/app/x", fields, "old");
            cached.wait_for_objects(1);
            let mut client = cached.kettle.ask(&request("GET", "/app/x", credentials));
            let mut server = cached.backend.next();
            read_head(&mut server);
            if way.is_empty() {
                cached.write("/app/x");
            } else {
                let words: Vec<_> = ["cache", "purge"].into_iter().chain(way.split(' ')).collect();
                let _ = cached.kettle.ctl(&words).succeed();
            }
            server.write_all(failure.as_bytes()).unwrap();
            let response = client.response();
            assert_eq!(response.status, 503, "{way} {credentials} {}", status(&response));
        }
    }
}

#[test]
fn what_the_backend_calls_public_is_for_all_whatever_clients_are_told() {
    let cached = Cached::of_route("headers = { cache-control = \"no-store\" }");
    let cookie = "Cookie: a=b\r\n";
    let is_hit = |target| status(&cached.ask("GET", target, cookie)).starts_with("kettle; hit");
    for (target, fields) in [
        ("/app/x", "Cache-Control: public, max-age=100\r\n"),
        ("/app/y", "Cache-Control: s-maxage=100\r\nConnection: cache-control\r\n"),
    ] {
        cached.keep(target, fields, "body");
        assert!(is_hit(target), "{target}");
    }
    // A 304 takes it back where it says otherwise, and leaves it where it says nothing.
    for (target, fields, is_for_all) in
        [("/app/silent", "", true), ("/app/other", "Cache-Control: max-age=100\r\n", false)]
    {
        let aged = "Cache-Control: public, max-age=600\r\nAge: 600\r\nETag: \"v1\"\r\n";
        cached.fetch(target, aged, "body");
        let same = format!("HTTP/1.1 304 X\r\n{fields}\r\n");
        cached.get_through(target, "", &same);
        if is_for_all {
            assert!(is_hit(target), "{target}");
            continue;
        }
        let (response, _) = cached.get_through(target, cookie, &ok("", "own"));
        assert_eq!(status(&response), "kettle; fwd=request; detail=credentials");
    }
}

/// Returns the answer to a client that asks when the time for what is stale is over, and joins what is fetched ahead.
fn joined_ahead(meanwhile: impl FnOnce(&Cached)) -> (Cached, Response) {
    let cached = Cached::start("");
    let ahead = "Cache-Control: max-age=0, stale-while-revalidate=3\r\nETag: \"a\"\r\n";
    cached.fetch("/app/x", ahead, "old");
    let address = cached.kettle.address();
    let joined = thread::spawn(move || {
        let ask = || Dialer::default().connect(address).get("/app/x");
        std::iter::repeat_with(ask).find(|response| response.body != b"old").unwrap()
    });
    cached.wait_for_waiters(1);
    meanwhile(&cached);
    (cached, joined.join().unwrap())
}

#[test]
fn who_joins_what_is_fetched_ahead_gets_the_error_of_the_backend_itself() {
    let (_, response) = joined_ahead(|cached| {
        let failure = "HTTP/1.1 503 X\r\nContent-Length: 3\r\n\r\nown";
        for _ in 0..2 {
            cached.backend.answer(failure);
        }
    });
    assert_eq!((response.status, &*response.body), (503, &b"own"[..]));
}

#[test]
fn who_joins_what_is_fetched_ahead_is_waited_for_at_a_stop() {
    let (mut cached, response) = joined_ahead(|cached| {
        let mut half = cached.kettle.ask(b"GET /app/half HTTP/1.1\r\n");
        cached.kettle.signal(Signal::TERM);
        // It has more than a second, in which what nobody needs is given up.
        half.end();
        cached.backend.answer(&ok(FRESH, "new"));
    });
    assert_eq!((response.status, &*response.body), (200, &b"new"[..]));
    assert!(cached.kettle.ended().status.success());
}
