//! Responses that are kept, for which clients, and what those are told of it.

use super::*;

#[test]
fn a_kept_response_is_answered_without_the_backend() {
    let cached = Cached::start("");
    let fields = format!("{FRESH}ETag: \"v1\"\r\nContent-Type: text/x\r\nX-App: 1\r\nAge: 7\r\n");
    let (first, head) = cached.get_through("/app/x?y", "", &ok(&fields, "hello"));
    assert!(head.starts_with("GET /app/x?y HTTP/1.1\r\nhost: localhost"), "{head}");
    assert_eq!((first.status, &*first.body), (200, &b"hello"[..]));
    assert_eq!(status(&first), "kettle; fwd=uri-miss; stored");
    cached.wait_until_kept("/app/x?y");
    for _ in 0..3 {
        let hit = cached.get("/app/x?y");
        assert_eq!((hit.status, &*hit.body), (200, &b"hello"[..]));
        assert!(status(&hit).starts_with("kettle; hit; ttl="), "{}", status(&hit));
        assert_eq!((hit.header("x-app"), hit.header("content-type")), (Some("1"), Some("text/x")));
        assert!(hit.header("age").unwrap().parse::<u64>().unwrap() >= 7);
    }
    cached.backend.assert_unasked();
    let log = cached.kettle.entry("/app/x?y");
    assert_eq!(log.text("cache"), "miss");
}

#[test]
fn hits_have_ranges_conditions_and_heads_as_files_have() {
    let cached = Cached::start("");
    let fields =
        format!("{FRESH}ETag: W/\"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    cached.keep("/app/x", &fields, "0123456789");
    let part = cached.ask("GET", "/app/x", "Range: bytes=2-4\r\n");
    assert_eq!((part.status, &*part.body), (206, &b"234"[..]));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    let beyond = cached.ask("GET", "/app/x", "Range: bytes=10-\r\n");
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */10")));
    assert!(status(&beyond).starts_with("kettle; hit; ttl="), "{}", beyond.head);
    for condition in [
        "If-None-Match: W/\"v1\"\r\n",
        "If-None-Match: \"v0\", \"v1\"\r\n",
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    ] {
        let same = cached.ask("GET", "/app/x", condition);
        assert_eq!((same.status, same.body.len()), (304, 0), "{condition}");
        assert_eq!(same.header("etag"), Some("W/\"v1\""));
    }
    let head = cached.ask("HEAD", "/app/x", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
    cached.backend.assert_unasked();
}

#[test]
fn what_is_not_for_everybody_is_passed_on_each_time() {
    let cached = Cached::start("default = \"1h\"");
    for (number, fields) in [
        "Cache-Control: no-store\r\n",
        "Cache-Control: private, max-age=9\r\n",
        "Cache-Control: max-age=9\r\nSet-Cookie: a=b\r\n",
        "Cache-Control: max-age=9\r\nVary: *\r\n",
        "Cache-Control: max-age=9, extension=\"a, private\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/app/{number}");
        // Known for what it is, it goes past the store with all that the client said.
        for why in ["fwd=uri-miss", "fwd=bypass; detail=not-kept", "fwd=bypass; detail=not-kept"] {
            let agent = "User-Agent: a\r\n";
            let (response, head) = cached.get_through(&target, agent, &ok(fields, why));
            assert_eq!(response.body, why.as_bytes(), "{fields}");
            assert_eq!(status(&response), format!("kettle; {why}"));
            assert_eq!(head.contains("User-Agent: a\r\n"), why != "fwd=uri-miss", "{head}");
        }
    }
    // A response that says nothing is kept for as long as the operator says.
    cached.fetch("/app/x", "", "three");
    assert_eq!(cached.get("/app/x").body, b"three");
}

#[test]
fn who_shows_credentials_gets_what_is_for_everybody_and_nothing_else() {
    let cached = Cached::start("");
    cached.fetch("/app/own", FRESH, "anonymous");
    let anonymous = "Cache-Control: max-age=100, must-revalidate\r\n";
    cached.fetch("/app/must", anonymous, "anonymous");
    let all = ["public, max-age=100", "s-maxage=100"];
    for control in all {
        let target = format!("/app/{}", &control[..6]);
        let fields = format!("Cache-Control: {control}\r\n");
        cached.keep(&target, &fields, "all");
    }
    for credentials in ["Cookie: a=b\r\n", "Authorization: Basic YTpi\r\n"] {
        let (own, head) = cached.get_through("/app/own", credentials, &ok(FRESH, "own"));
        assert_eq!(
            (own.body.as_slice(), head.contains(credentials)),
            (&b"own"[..], true),
            "{head}"
        );
        assert_eq!(cached.get("/app/own").body, b"anonymous");
        // RFC 9111 §3.5 would let a cache keep and give that, too.
        let (own, _) = cached.get_through("/app/must", credentials, &ok(FRESH, "own"));
        assert_eq!(own.body, b"own");
        for control in all {
            assert_eq!(
                cached.ask("GET", &format!("/app/{}", &control[..6]), credentials).body,
                b"all"
            );
        }
    }
}

#[test]
fn nothing_of_a_clients_but_what_is_named_reaches_a_backend_whose_response_is_kept() {
    let cached = Cached::start("");
    let poison = "X-Forwarded-Host: evil\r\nX-Original-URL: /admin\r\n\
        X-Rewrite-URL: /admin\r\nX-HTTP-Method-Override: DELETE\r\nX-Forwarded-Scheme: http\r\nX-Host: evil\r\n\
        User-Agent: a\r\nForwarded: host=evil\r\n\
        Accept: x/y\r\nRange: bytes=0-0\r\nIf-None-Match: \"a\"\r\nAccept-Encoding: gzip;q=1, foo, br\r\n";
    let (_, head) = cached.get_through("/app/x", poison, &ok(FRESH, "body"));
    let mut lines: Vec<&str> = head.lines().skip(1).filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    let port = cached.kettle.address().port();
    let host = lines.iter().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    assert!(host == "localhost" || host == format!("localhost:{port}"), "{host}");
    let forwarded = format!("x-forwarded-host: {host}");
    let expected = [
        "accept-encoding: br, gzip",
        &format!("host: {host}"),
        &forwarded,
        "x-forwarded-proto: https",
    ];
    assert_eq!(lines, expected);
}

const DATED: &str = "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n";
const PART_OF_DATE: &str = "Range: bytes=1-\r\nIf-Range: Mon, 01 Jan 2024 00:00:00 GMT\r\n";

#[test]
fn variants_are_told_apart_by_what_the_backend_names() {
    let cached = Cached::start("vary = [\"accept-language\"]");
    let fields = format!("{FRESH}{DATED}Vary: Accept-Language\r\n");
    for language in ["de", "fr"] {
        let header = format!("Accept-Language: {language}\r\n");
        let (response, head) = cached.get_through("/app/x", &header, &ok(&fields, language));
        assert_eq!(response.body, language.as_bytes());
        assert!(head.contains(&format!("accept-language: {language}")), "{head}");
    }
    for language in ["de", "fr"] {
        let header = format!("Accept-Language: {language}\r\n");
        assert_eq!(cached.ask("GET", "/app/x", &header).body, language.as_bytes());
        // Both have one date, so that joins no parts.
        let part = cached.ask("GET", "/app/x", &format!("{header}{PART_OF_DATE}"));
        assert_eq!((part.status, &*part.body), (200, language.as_bytes()));
    }
    // A field that no backend sees: those who send it are passed on.
    let fields = format!("{FRESH}Vary: Origin\r\n");
    cached.fetch("/app/y", &fields, "without");
    let origin = "Origin: https://a.example\r\n";
    let (own, head) = cached.get_through("/app/y", origin, &ok(&fields, "with"));
    assert_eq!((&*own.body, status(&own)), (&b"with"[..], "kettle; fwd=vary-miss"));
    assert!(head.contains("https://a.example"), "{head}");
    assert_eq!(cached.get("/app/y").body, b"without");
    // A client does not choose these fields of a server's request, so they are the same for all.
    let fields = format!("{FRESH}Vary: Host, X-Forwarded-Proto\r\n");
    cached.keep("/app/z", &fields, "for all");
    for header in ["", "X-Forwarded-Proto: http\r\n"] {
        let response = cached.ask("GET", "/app/z", header);
        assert_eq!(response.body, b"for all");
        assert_hit(&response);
    }
}

#[test]
fn a_date_joins_parts_where_there_are_no_variants() {
    let cached = Cached::start("");
    cached.fetch("/app/x", &format!("{FRESH}{DATED}"), "all");
    let part = cached.ask("GET", "/app/x", PART_OF_DATE);
    assert_eq!((part.status, &*part.body), (206, &b"ll"[..]));
}

#[test]
fn a_stale_response_is_validated_and_its_time_begins_anew() {
    let cached = Cached::start("");
    let stale = "Cache-Control: max-age=0\r\nETag: \"v1\"\r\nX-Old: 1\r\nX-App: 1\r\n";
    cached.fetch("/app/x", stale, "body");
    let validated = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=100\r\nX-App: 2\r\n\r\n";
    let (response, head) = cached.get_through("/app/x", "", validated);
    assert!(head.contains("\r\nif-none-match: \"v1\"\r\n"), "{head}");
    assert_eq!((response.status, &*response.body), (200, &b"body"[..]));
    assert_eq!(status(&response), "kettle; fwd=stale; fwd-status=304");
    assert_eq!((response.header("x-app"), response.header("x-old")), (Some("2"), Some("1")));
    cached.hit("/app/x");
    cached.backend.assert_unasked();
}

#[test]
fn a_path_leads_around_no_rule_and_is_kept_as_it_is_written() {
    let rules =
        "[[site.route]]\nprefix = \"/app/admin\"\nbackend = \"app\"\ndeny = [\"0.0.0.0/0\"]";
    let cached = Cached::start(rules);
    for (path, status) in [
        ("/app/admin", 403),
        ("/app/admin;/users", 400),
        ("/app/public/..;/admin/users", 400),
        ("/app/a%2fb", 400),
    ] {
        assert_eq!(cached.get(path).status, status, "{path}");
    }
    let cached = Cached::of_route("encoded_slashes = true");
    for (path, body) in [("/app/a%2Fb", "slash"), ("/app/a%252Fb", "percent"), ("/app/a/b", "two")]
    {
        let (_, head) = cached.get_through(path, "", &ok(FRESH, body));
        assert!(head.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{head}");
        cached.wait_until_kept(path);
        assert_eq!(cached.get(path).body, body.as_bytes(), "{path}");
    }
}

#[test]
fn what_a_304_keeps_from_others_comes_anew() {
    let cached = Cached::start("");
    let stale = "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n";
    let lines = ["Set-Cookie: sid=1", "Vary: *", "Vary: accept, *", "Vary: a", "ETag: \"v2\""];
    for (number, line) in lines.iter().enumerate() {
        let target = format!("/app/{number}");
        cached.fetch(&target, stale, "old");
        let mut client = cached.kettle.ask(&request("GET", &target, ""));
        let same =
            format!("HTTP/1.1 304 Not Modified\r\n{line}\r\nCache-Control: max-age=9\r\n\r\n");
        let head = cached.backend.answer(&same);
        assert!(head.contains("if-none-match"), "{head}");
        // The object that it would have freshened is gone.
        let head = cached.backend.answer(&ok(FRESH, "new"));
        assert!(!head.contains("if-none-match"), "{line}: {head}");
        let response = client.response();
        assert_eq!((response.header("set-cookie"), &*response.body), (None, &b"new"[..]));
        assert_eq!(cached.get(&target).header("set-cookie"), None);
    }
}

#[test]
fn what_turned_out_too_long_goes_past_the_store_from_then_on() {
    let cached = Cached::with_store("", "max_object = 4");
    let chunked =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n5\r\nlong!\r\n");
    for expected in ["fwd=uri-miss; stored", "fwd=bypass; detail=too-large"] {
        let mut client = cached.kettle.ask(&request("GET", "/app/x", ""));
        let mut server = cached.backend.next();
        answer(&mut server, &chunked);
        let head = client.response_head();
        assert_eq!(status(&head), format!("kettle; {expected}"));
        // Of what is whole by then the head says the length.
        server.write_all(b"0\r\n\r\n").unwrap();
        assert!(String::from_utf8_lossy(&client.receive_exactly(10)).contains("long!"));
        assert_eq!(client.receive_exactly(5), b"0\r\n\r\n");
    }
}

#[test]
fn no_cache_is_validated_each_time() {
    let cached = Cached::start("");
    // A cache that understands the status may keep the other, and is told so each time.
    for control in ["no-cache", "max-age=0, must-understand, no-store"] {
        let fields = format!("Cache-Control: {control}\r\nETag: \"v1\"\r\n");
        cached.fetch("/app/x", &fields, "body");
        for _ in 0..2 {
            let same = format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n");
            let (response, _) = cached.get_through("/app/x", "", &same);
            assert_eq!(response.body, b"body");
        }
        cached.fetch("/app/x", &fields, "new");
    }
}

#[test]
fn when_the_backend_fails_what_is_stale_may_do() {
    let cached = Cached::start("stale_if_error = \"1h\"");
    cached.fetch("/app/x", "Cache-Control: public, max-age=0\r\nETag: \"a\"\r\n", "old");
    let failure = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
    // Those that go past the store, too.
    for fields in ["", "Authorization: Basic YTpi\r\n", "Cookie: a=b\r\n"] {
        let (stale, _) = cached.get_through("/app/x", fields, failure);
        assert_eq!((stale.status, &*stale.body), (200, &b"old"[..]), "{fields}");
        assert_eq!(status(&stale), "kettle; hit; detail=stale-if-error");
    }
    let mut client = cached.kettle.ask(&request("HEAD", "/app/x", ""));
    cached.backend.answer(failure);
    let stale = client.response_head();
    assert_eq!((stale.status, status(&stale)), (200, "kettle; hit; detail=stale-if-error"));
}

#[test]
fn stale_while_revalidate_answers_at_once_and_asks_behind() {
    let cached = Cached::start("");
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=100\r\nETag: \"a\"\r\n";
    cached.fetch("/app/x", fields, "old");
    let stale = cached.get("/app/x");
    assert_eq!(
        (&*stale.body, status(&stale)),
        (&b"old"[..], "kettle; hit; detail=stale-while-revalidate")
    );
    cached.backend.answer(&ok(FRESH, "new"));
    // The next ones may still get the old one; the backend is not asked again.
    wait_until("the new one is kept", || cached.get("/app/x").body == b"new");
    cached.backend.assert_unasked();
}

#[test]
fn a_write_that_succeeds_removes_what_is_kept() {
    let cached = Cached::start("");
    cached.fetch("/app/x", FRESH, "old");
    let mut client = cached.kettle.ask(&request("POST", "/app/x", "Content-Length: 0\r\n"));
    cached.backend.answer(&ok("", "done"));
    let posted = client.response();
    assert_eq!((&*posted.body, status(&posted)), (&b"done"[..], "kettle; fwd=method"));
    cached.fetch("/app/x", FRESH, "new");
}

#[test]
fn a_restart_and_reloads_keep_what_is_there() {
    let mut cached = Cached::start("");
    cached.keep("/app/x", FRESH, "kept");
    let _ = cached.kettle.ctl(&["reload"]).succeed();
    assert_eq!(cached.get("/app/x").body, b"kept");
    cached.kettle.restart();
    assert_eq!(cached.get("/app/x").body, b"kept");
}

#[test]
fn fields_that_the_operator_sets_since_are_the_operators_on_what_was_kept_before() {
    let mut cached = Cached::of_route("headers = { X-Then = \"1\" }\n");
    let fields = format!("{FRESH}X-Frame-Options: ALLOWALL\r\nX-Other: theirs\r\n");
    cached.keep("/app/x", &fields, "kept");
    cached.kettle.folder.change_config("X-Then = \"1\"", "X-Frame-Options = \"DENY\"");
    for is_restarted in [false, true] {
        if is_restarted {
            cached.kettle.restart();
        } else {
            let _ = cached.kettle.ctl(&["reload"]).succeed();
        }
        // Found on the disk, and then in memory.
        for _ in 0..2 {
            let hit = cached.get("/app/x");
            let frames = hit.header("x-frame-options");
            let other = hit.header("x-other");
            assert_eq!((frames, other), (Some("DENY"), Some("theirs")));
            assert_eq!(hit.header("x-then"), None);
        }
    }
}

#[test]
fn without_its_directory_responses_are_passed_on() {
    let cached = Cached::start("");
    let store = cached.folder.path();
    cached.keep("/app/x", FRESH, "one");
    std::fs::remove_dir_all(store).unwrap();
    for body in ["two", "three"] {
        // A second request may join what nobody could write yet.
        let target = format!("/app/{body}");
        cached.fetch(&target, FRESH, body);
    }
}

#[test]
fn head_and_longer_than_may_be_are_passed_on() {
    let cached = Cached::with_store("", "max_object = 4");
    // Once its length is known, requests go with all fields, as past the store.
    for (how, is_asked) in [("uri-miss", false), ("bypass; detail=too-large", true)] {
        let long = ok(FRESH, "12345");
        let (response, head) = cached.get_through("/app/x", "Range: bytes=0-9\r\n", &long);
        assert_eq!((&*response.body, head.contains("Range:")), (&b"12345"[..], is_asked), "{head}");
        assert_eq!(status(&response), format!("kettle; fwd={how}"));
    }
    cached.fetch("/app/y", FRESH, "1234");
    assert_eq!(cached.get("/app/y").body, b"1234");
    let _client = cached.kettle.ask(&request("HEAD", "/app/z", ""));
    assert!(read_head(&mut cached.backend.next()).starts_with("HEAD "));
}

#[test]
fn purges_forget_by_url_prefix_and_tag_at_once_and_for_good() {
    let mut cached = Cached::start("tags = \"X-Tags\"");
    let fields = format!("{FRESH}X-Tags: a news\r\n");
    let targets = ["/app/one", "/app/dir/two", "/app/three", "/app/four"];
    let tags = [FRESH, FRESH, &fields, FRESH];
    for (target, fields) in targets.into_iter().zip(tags) {
        let response = cached.fetch(target, fields, "old");
        assert_eq!(response.header("x-tags"), None);
        cached.wait_until_kept(target);
    }
    let status = cached.kettle.ctl(&["cache", "status"]).succeed();
    assert!(status.contains("main: 4 objects"), "{status}");
    let host = "https://localhost";
    cached.purge(&[&format!("{host}/app/one")]);
    let prefix = format!("{host}/app/dir/");
    cached.purge(&["--prefix", &prefix]);
    cached.purge(&["--tag", "news"]);
    cached.kettle.restart();
    for target in &targets[..3] {
        cached.fetch(target, FRESH, "new");
    }
    assert_eq!(cached.get("/app/four").body, b"old");
}

#[test]
fn nobody_sees_the_tags_of_what_is_not_kept_either() {
    let cached = Cached::start("tags = \"X-Tags\"");
    let unkept = "Cache-Control: no-store\r\nX-Tags: a\r\n";
    for target in ["/app/x", "/app/x"] {
        let response = cached.fetch(target, unkept, "b");
        assert_eq!((response.status, response.header("x-tags")), (200, None));
    }
    let mut client = cached.kettle.ask(&request("POST", "/app/y", "Content-Length: 0\r\n"));
    cached.backend.answer(&ok(unkept, "b"));
    assert_eq!(client.response().header("x-tags"), None);
}

#[test]
fn a_purge_forgets_in_every_store_that_is_there() {
    let gone = TempDir::new().unwrap();
    let setup = Setup::default()
        .set("limits", "revalidate = \"0s\"")
        .more(&format!("[[cache]]\nname = \"gone\"\ndirectory = \"{}\"\n", gone.path().display()));
    let cached = Cached::set_up(setup, "", "", "");
    drop(gone);
    cached.keep("/app/x", FRESH, "old");
    let refused = cached.kettle.ctl(&["cache", "purge", "https://localhost/app/x"]).output();
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("the cache gone cannot be opened"), "{}", refused.stderr);
    cached.fetch("/app/x", FRESH, "new");
}
