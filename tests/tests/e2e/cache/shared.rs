//! Clients that share at the same time: ranges of what arrives, variants beside each other, an old object beside its successor.

use super::*;

#[test]
fn any_range_of_what_arrives_is_what_it_is_of_a_file() {
    let cached = Cached::start("");
    let body = content(300_000);
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    server.write_all(ok_head(&format!("{FRESH}ETag: \"v1\"\r\n"), 300_000).as_bytes()).unwrap();
    server.write_all(&body[..100_000]).unwrap();
    first.response_head();
    first.receive_exactly(100_000);
    let ask = |fields: &str| cached.kettle.ask(&request("GET", "/app/x", fields));
    let answered: Vec<(Client, _, usize)> = [
        ("Range: bytes=-5\r\n", Some("bytes 299995-299999/300000"), 299_995),
        ("Range: bytes=-300001\r\n", Some("bytes 0-299999/300000"), 0),
        ("Range: bytes=99999-\r\n", Some("bytes 99999-299999/300000"), 99_999),
        ("Range: bytes=250000-999999\r\n", Some("bytes 250000-299999/300000"), 250_000),
        ("Range: bytes=9-\r\nIf-Range: \"v1\"\r\n", Some("bytes 9-299999/300000"), 9),
        ("Range: bytes=9-\r\nIf-Range: \"v2\"\r\n", None, 0),
        ("Range: bytes=50-20\r\n", None, 0),
        ("Range: bytes=0-0,5-5\r\n", None, 0),
    ]
    .into_iter()
    .map(|(fields, range, start)| {
        let mut client = ask(fields);
        let head = client.response_head();
        assert_eq!(head.status, if range.is_some() { 206 } else { 200 }, "{fields}");
        assert_eq!(head.header("content-range"), range, "{fields}");
        (client, fields, start)
    })
    .collect();
    let beyond = ask("Range: bytes=300000-\r\n").response();
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */300000")));
    let same = ask("Range: bytes=0-0\r\nIf-None-Match: \"v1\"\r\n").response();
    assert_eq!(same.status, 304);
    // Before the end has come, and without another question to the backend.
    assert_unasked(&server);
    server.write_all(&body[100_000..]).unwrap();
    for (mut client, fields, start) in answered {
        assert_same(&client.receive_exactly(300_000 - start), &body[start..], fields);
    }
}

#[test]
fn what_has_no_coding_is_one_for_all_as_soon_as_its_head_is_there() {
    let cached = Cached::start("");
    let mut first = cached.kettle.ask(&request("GET", "/app/x", "Accept-Encoding: gzip\r\n"));
    let mut server = cached.backend.accept();
    answer(&mut server, &format!("{}abc", ok_head(FRESH, 6)));
    first.response_head();
    let mut others = ["Accept-Encoding: br\r\n", ""].map(|fields| {
        let mut client = cached.kettle.ask(&request("GET", "/app/x", fields));
        let head = client.response_head();
        assert_eq!(status(&head), "kettle; fwd=uri-miss; stored; collapsed", "{fields}");
        client
    });
    assert_unasked(&server);
    server.write_all(b"def").unwrap();
    for client in others.iter_mut().chain([&mut first]) {
        assert_eq!(client.receive_exactly(6), b"abcdef");
    }
}

#[test]
fn a_range_far_behind_what_is_there_comes_from_a_backend_that_has_ranges() {
    const FAR: u64 = 16 << 20;
    let cached = Cached::start("");
    for (target, says, is_passed) in
        [("/app/x", "Accept-Ranges: bytes\r\n", true), ("/app/y", "Accept-Ranges: none\r\n", false)]
    {
        let mut first = cached.kettle.ask(&request("GET", target, "Range: bytes=90000000-\r\n"));
        let mut filling = cached.backend.accept();
        answer(&mut filling, &ok_head(&format!("{FRESH}{says}ETag: \"v1\"\r\n"), 100_000_000));
        filling.write_all(&[b'a'; 100_000]).unwrap();
        // The one that lets it arrive waits, wherever its range is.
        assert_eq!(status(&first.response_head()), "kettle; fwd=uri-miss; stored");
        let ask = |range: String, more: &str| {
            let fields = format!("Range: bytes={range}\r\n{more}");
            cached.kettle.ask(&request("GET", target, &fields))
        };
        let far = format!("{}-", FAR + 200_000);
        for (range, more) in
            [("0-".into(), ""), (format!("{FAR}-"), ""), (far.clone(), "If-Range: \"v0\"\r\n")]
        {
            let head = ask(range, more).response_head();
            assert_eq!(status(&head), "kettle; fwd=uri-miss; stored; collapsed");
        }
        let mut client = ask(far.clone(), "If-Range: \"v1\"\r\n");
        if !is_passed {
            let head = client.response_head();
            assert_eq!(status(&head), "kettle; fwd=uri-miss; stored; collapsed");
            continue;
        }
        let range = format!("bytes {far}99999999/100000000");
        let part = "HTTP/1.1 206 X\r\nConnection: close\r\nContent-Length: 4\r\nContent-Range: ";
        let head = answer(&mut cached.backend.accept(), &format!("{part}{range}\r\n\r\npart"));
        assert!(head.contains(&format!("Range: bytes={far}\r\nIf-Range: \"v1\"\r\n")), "{head}");
        let response = client.response();
        assert_eq!((response.status, &*response.body), (206, &b"part"[..]));
        assert_eq!(status(&response), "kettle; fwd=bypass; detail=range");
        assert_unasked(&filling);
    }
}

#[test]
fn two_variants_arrive_beside_each_other_and_are_shared_each_by_its_own() {
    let cached = Cached::start("vary = [\"accept-language\"]");
    let fields = format!("{FRESH}Vary: Accept-Language\r\n");
    let ask = |language: &str| {
        let header = format!("Accept-Language: {language}\r\n");
        cached.kettle.ask(&request("GET", "/app/x", &header))
    };
    let mut arriving = ["de", "fr"].map(|language| {
        let client = ask(language);
        let mut server = cached.backend.accept();
        answer(&mut server, &ok_head(&fields, 200_000));
        (language, vec![client], server)
    });
    for half in 0..2 {
        for (language, clients, server) in &mut arriving {
            let byte = language.as_bytes()[half];
            server.write_all(&[byte; 100_000]).unwrap();
            if half == 0 {
                clients.push(ask(language));
                clients.iter_mut().for_each(|client| _ = client.response_head());
            }
            for client in clients {
                assert_eq!(client.receive_exactly(100_000), [byte; 100_000], "{language}");
            }
        }
    }
    for (language, _, server) in arriving {
        let header = format!("Accept-Language: {language}\r\n");
        wait_until("it is kept", || {
            status(&cached.ask("GET", "/app/x", &header)).starts_with("kettle; hit")
        });
        let hit = cached.ask("GET", "/app/x", &header).body;
        assert_eq!([hit[0], hit[199_999]], language.as_bytes());
        assert_unasked(&server);
    }
}

#[test]
fn readers_of_an_object_get_that_one_whatever_takes_its_place_meanwhile() {
    const STALE: &str = "Connection: close\r\nCache-Control: max-age=0\r\nETag: \"v1\"\r\n";
    let cached = Cached::start("");
    let old = content(8 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = cached.backend.accept();
            answer(&mut server, &ok_head(STALE, old.len() as u64));
            server.write_all(&old).unwrap();
        });
        assert_same(&cached.get("/app/x").body, &old, "first");
    });
    cached.wait_for_objects(1);
    let same = |more: &str| format!("HTTP/1.1 304 X\r\n{STALE}X-More: {more}\r\n\r\n");
    let mut slow = Dialer::default().reading_slowly().connect(cached.kettle.address());
    slow.send(&get("/app/x")).unwrap();
    answer(&mut cached.backend.accept(), &same("one"));
    assert_eq!(slow.response_head().header("x-more"), Some("one"));
    // Its head is written anew, with the body behind it being read; then another takes its name.
    let (response, head) = cached.get_through("/app/x", "", &same(&"x".repeat(900)));
    assert!(head.contains("if-none-match: \"v1\""), "{head}");
    assert_same(&response.body, &old, "validated");
    let new = ok(FRESH, "new");
    assert_eq!(cached.get_through("/app/x", "", &new).0.body, b"new");
    cached.wait_until_kept("/app/x");
    assert_eq!(cached.get("/app/x").body, b"new");
    cached.purge(&["--prefix", "https://localhost/"]);
    assert_same(&slow.receive_exactly(old.len()), &old, "slow");
}

#[test]
fn fifty_clients_of_a_stale_object_cost_one_request() {
    let cached = Cached::start("");
    let fields = "Cache-Control: max-age=0, stale-while-revalidate=100\r\nETag: \"a\"\r\n";
    cached.fetch("/app/x", fields, "old");
    cached.wait_for_objects(1);
    let mut clients: Vec<_> = (0..50).map(|_| cached.client()).collect();
    for client in &mut clients {
        client.send(&get("/app/x")).unwrap();
    }
    // Nobody waits for the backend, which has not answered.
    for client in &mut clients {
        let stale = client.response();
        assert_eq!(status(&stale), "kettle; hit; detail=stale-while-revalidate");
        assert_eq!(stale.body, b"old");
    }
    cached.backend.answer(&ok(FRESH, "new"));
    wait_until("it is kept", || cached.get("/app/x").body == b"new");
    cached.backend.assert_unasked();
}

#[test]
fn a_backend_that_says_nothing_is_a_failure_that_what_is_stale_is_better_than() {
    let cached = Cached::with_all("timeout = \"1s\"", "stale_if_error = \"1h\"", "");
    let fields = "Connection: close\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\n";
    cached.fetch("/app/x", fields, "old");
    cached.wait_for_objects(1);
    let mut clients = [cached.client(), cached.client()];
    for client in &mut clients {
        client.send(&get("/app/x")).unwrap();
    }
    let _silent = cached.backend.accept_request();
    for client in &mut clients {
        let response = client.response();
        assert_eq!((response.status, &*response.body), (200, &b"old"[..]));
        assert_eq!(status(&response), "kettle; hit; detail=stale-if-error");
    }
    assert_eq!(cached.kettle.entry("/app/x").text("cache"), "miss");
    assert_eq!(cached.kettle.entry("/app/x").text("cache"), "stale");
}
