//! Objects that arrive when something ends: a purge, the last reader, the server.

use std::net::Shutdown;

use super::*;
use crate::http2::frames::{self, Frames};
use crate::proxy::chunked_response;

/// Whatever comes behind it has a connection of its own.
const STALE: &str = "Connection: close\r\nCache-Control: max-age=0\r\nETag: \"a\"\r\n";

#[test]
fn who_asks_after_a_purge_gets_nothing_that_was_asked_for_before_it() {
    for is_growing in [false, true] {
        let cached = Cached::start("");
        let mut first = cached.kettle.ask(&get("/app/x"));
        let mut old = cached.backend.accept_request();
        if is_growing {
            old.write_all(ok_head(FRESH, 6).as_bytes()).unwrap();
            old.write_all(b"old").unwrap();
            first.response_head();
        }
        cached.purge(&["https://localhost/app/x"]);
        let mut second = cached.kettle.ask(&get("/app/x"));
        let mut new = cached.backend.accept();
        answer(&mut new, &ok(FRESH, "new"));
        assert_eq!(second.response().body, b"new");
        // Those who had asked before have what they asked for, and it does not come back.
        if is_growing {
            old.write_all(b"old").unwrap();
            assert_eq!(first.receive_exactly(6), b"oldold");
        } else {
            old.write_all(ok(FRESH, "old").as_bytes()).unwrap();
            assert_eq!(first.response().body, b"old");
        }
        cached.wait_until_kept("/app/x");
        assert_eq!(cached.get("/app/x").body, b"new");
    }
}

#[test]
fn a_purge_of_another_tag_leaves_what_arrives_to_all() {
    let cached = Cached::start("tags = \"X-Tags\"");
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    server.write_all(ok_head(&format!("{FRESH}X-Tags: a\r\n"), 3).as_bytes()).unwrap();
    first.response_head();
    cached.purge(&["--tag", "b"]);
    let mut second = cached.kettle.ask(&get("/app/x"));
    second.response_head();
    cached.purge(&["--tag", "a"]);
    let mut third = cached.kettle.ask(&get("/app/x"));
    answer(&mut cached.backend.accept(), &ok(FRESH, "new"));
    assert_eq!(third.response().body, b"new");
    server.write_all(b"old").unwrap();
    assert_eq!(second.receive_exactly(3), b"old");
}

#[test]
fn what_nobody_reads_any_more_stops_where_most_of_it_is_missing() {
    let cached = Cached::start("");
    let mut client = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    server.write_all(ok_head(FRESH, 100 << 20).as_bytes()).unwrap();
    server.write_all(b"x").unwrap();
    client.response_head();
    assert_eq!(client.receive_exactly(1), b"x");
    drop(client);
    // Until the patience of a test is over.
    let end = server.read(&mut [0]);
    assert!(
        matches!(&end, Ok(0))
            || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    );
}

#[test]
fn who_goes_while_it_waits_takes_along_what_it_asked_behind() {
    let cached = Cached::start("");
    let mut stays = cached.kettle.ask(&get("/app/joined"));
    let mut server = cached.backend.next_request();
    let behind = request("POST", "/app/behind", "Content-Length: 0\r\n");
    let old = "GET /app/led HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
    let mut led = None;
    for (target, first, cache) in [
        ("/app/led", get("/app/led"), "miss"),
        ("/app/led", old.into(), "collapsed"),
        ("/app/joined", get("/app/joined"), "collapsed"),
        ("/app/joined", request("HEAD", "/app/joined", ""), "collapsed"),
    ] {
        let goes = cached.kettle.ask(&[first, behind.clone()].concat());
        led.get_or_insert_with(|| cached.backend.accept());
        // Without a goodbye.
        goes.wire.socket.shutdown(Shutdown::Write).unwrap();
        let entry = cached.kettle.entry(target);
        let words = ["upstream_failure", "cache", "backend"].map(|word| entry.text(word));
        assert_eq!((entry.number("status"), words), (499, ["client_gone", cache, "app"]));
    }
    // A client that waits for the same has it, and the next that is asked is another's.
    server.write_all(ok(FRESH, "here").as_bytes()).unwrap();
    assert_eq!(stays.response().body, b"here");
    let (_, head) = cached.get_through("/app/next", "", &ok(FRESH, "next"));
    assert!(head.starts_with("GET /app/next "), "{head}");
}

#[test]
fn a_client_that_leaves_has_its_place_until_the_backend_has_answered() {
    let limit = "requests = 1000, period = \"1s\", burst = 1000, concurrent = 1";
    let cached = Cached::of_route(&format!("rate_limit = {{ {limit} }}"));
    let client = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.accept_request();
    client.wire.reset();
    assert_eq!(cached.kettle.entry("/app/x").number("status"), 499);
    assert_eq!(cached.get("/app/y").status, 429);
    // The body goes on for others.
    server.write_all(format!("{}begun", ok_head(FRESH, 200_000)).as_bytes()).unwrap();
    wait_until("its place is free", || cached.ask("HEAD", "/app/x", "").status == 200);
}

#[test]
fn a_stop_does_not_wait_for_who_has_gone() {
    let mut cached = Cached::start("");
    let client = cached.kettle.ask(&get("/app/x"));
    let _server = cached.backend.accept_request();
    client.wire.reset();
    assert_eq!(cached.kettle.entry("/app/x").number("status"), 499);
    cached.kettle.signal(Signal::TERM);
    assert!(cached.kettle.ended().status.success());
}

#[test]
fn a_stop_lets_what_another_worker_fetches_arrive() {
    // Which worker a connection gets is the kernel's choice.
    for _ in 0..3 {
        let mut cached = Cached::set_up(Setup::default().set("server", "workers = 4"), "", "", "");
        let mut first = cached.kettle.ask(&get("/app/x"));
        let mut server = cached.backend.accept_request();
        server.write_all(ok_head(FRESH, 6).as_bytes()).unwrap();
        server.write_all(b"abc").unwrap();
        first.response_head();
        let mut second = cached.kettle.ask(&get("/app/x"));
        second.response_head();
        assert_eq!(second.receive_exactly(3), b"abc");
        drop(first);
        cached.kettle.signal(Signal::TERM);
        cached.kettle.messages().wait_for("finishing requests in flight");
        server.write_all(b"def").unwrap();
        assert_eq!(second.receive_exactly(3), b"def");
        drop(second);
        assert!(cached.kettle.ended().status.success());
    }
}

#[test]
fn what_was_answered_before_a_stop_is_kept() {
    let mut cached = Cached::start("");
    for number in 0..20 {
        let target = format!("/app/{number}");
        let first = cached.fetch(&target, FRESH, "whole");
        assert_eq!(status(&first), "kettle; fwd=uri-miss; stored");
    }
    // It is written behind its answer.
    cached.kettle.restart();
    for number in 0..20 {
        assert_eq!(cached.get(&format!("/app/{number}")).body, b"whole");
    }
}

#[test]
fn a_small_body_without_its_end_is_no_response() {
    let cached = Cached::start("stale_if_error = \"1h\"");
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nCache-Control: max-age=9\r\n\r\nshort";
    let answered = |what: &str| {
        let mut client = cached.kettle.ask(&get("/app/x"));
        let mut server = cached.backend.accept();
        // The end goes out with the rest, however busy the machine is.
        rustix::net::sockopt::set_tcp_cork(&server, true).unwrap();
        answer(&mut server, what);
        drop(server);
        client.response()
    };
    assert_eq!(answered(short).status, 502);
    assert_eq!(answered(&ok("Cache-Control: max-age=0\r\nETag: \"a\"\r\n", "old")).body, b"old");
    assert_eq!(status(&answered(short)), "kettle; hit; detail=stale-if-error");
}

#[test]
fn a_body_that_never_begins_is_no_response_where_what_is_stale_may_do() {
    let setup = Setup::default().set("limits", "revalidate = \"0s\"").listener("http2 = true");
    let settings = "stale_if_error = \"1h\"\ntags = \"X-Tags\"";
    let cached = Cached::set_up(setup, "timeout = \"1s\"", settings, "max_object = \"1 MiB\"");
    cached.fetch("/app/x", STALE, "old");
    let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n");
    // Neither of the last two would be kept.
    let too_many_tags = format!("{FRESH}X-Tags: {}\r\n", "a ".repeat(257));
    for (head, ends) in [
        (ok_head(FRESH, 200_000), &[true, false][..]),
        (chunked, &[true, false]),
        (ok_head(FRESH, 2 << 20), &[true]),
        (ok_head(&too_many_tags, 200_000), &[true]),
    ] {
        for &dies in ends {
            let fails = || {
                let mut server = cached.backend.accept();
                answer(&mut server, &head);
                // One that keeps silent is given up after its time.
                (!dies).then_some(server)
            };
            let mut client = cached.kettle.ask(&get("/app/x"));
            let silent = fails();
            let response = client.response();
            let said = (status(&response), &*response.body);
            assert_eq!(said, ("kettle; hit; detail=stale-if-error", &b"old"[..]), "{head}");
            let mut frames = Frames::connect(&cached.kettle, &[]);
            frames.send(&frames::get(1, "/app/x"));
            let also_silent = fails();
            assert_eq!(frames.body(1), b"old");
            drop((silent, also_silent));
        }
    }
}

#[test]
fn a_body_that_never_begins_lets_its_head_through_where_nothing_is_stale() {
    let cached = Cached::start("stale_if_error = \"1h\"");
    cached.fetch("/app/private", STALE, "for all");
    // An object that is private by now is not for all any more, whatever becomes of its body.
    for (target, fields) in [("/app/x", FRESH), ("/app/private", "Cache-Control: private\r\n")] {
        let mut client = cached.kettle.ask(&get(target));
        let mut server = cached.backend.accept();
        answer(&mut server, &ok_head(fields, 200_000));
        // Without the first byte of the body.
        assert_eq!(client.response_head().status, 200);
        drop(server);
        assert_eq!(client.end(), End::Cut);
    }
}

#[test]
fn who_waits_beside_what_is_stale_gets_it_when_the_server_stops() {
    for head in [None, Some(ok_head(FRESH, 200_000))] {
        let mut cached = Cached::start("stale_if_error = \"1h\"");
        cached.fetch("/app/x", STALE, "old");
        assert_eq!(cached.kettle.entry("/app/x").text("cache"), "miss");
        let [mut first, mut joined] = [cached.client(), cached.client()];
        first.send(&get("/app/x")).unwrap();
        let mut server = cached.backend.accept_request();
        joined.send(&get("/app/x")).unwrap();
        cached.wait_for_waiters(1);
        server.write_all(head.unwrap_or_default().as_bytes()).unwrap();
        cached.kettle.signal(Signal::TERM);
        for mut client in [first, joined] {
            let response = client.response();
            let said = (status(&response), &*response.body);
            assert_eq!(said, ("kettle; hit; detail=stale-if-error", &b"old"[..]));
        }
        let mut failures =
            [(); 2].map(|()| cached.kettle.entry("/app/x").text("upstream_failure").to_owned());
        failures.sort_unstable();
        assert_eq!(failures, ["", "stopping"]);
        assert!(cached.kettle.ended().status.success());
    }
}

#[test]
fn a_body_that_falls_silent_is_given_up_and_asked_for_again() {
    // Longer than what it takes to look whether anybody reads.
    let cached = Cached::with_all("timeout = \"2s\"", "", "");
    let mut first = cached.kettle.ask(&get("/app/x"));
    let mut silent = cached.backend.accept();
    answer(&mut silent, &format!("{}begun", ok_head(FRESH, 200_000)));
    first.response_head();
    let mut second = cached.kettle.ask(&get("/app/x"));
    for client in [&mut first, &mut second] {
        assert_eq!(client.end(), End::Cut);
    }
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0, "nobody holds its connection any more");
    cached.fetch("/app/x", FRESH, "whole");
}

#[test]
fn what_is_fetched_ahead_and_falls_silent_is_given_up() {
    let cached = Cached::with_all("timeout = \"2s\"", "", "");
    let stale = "Cache-Control: max-age=0, stale-while-revalidate=1000\r\nETag: \"a\"\r\n";
    cached.fetch("/app/x", stale, "old");
    wait_until("it is stale", || status(&cached.get("/app/x")).contains("stale-while-revalidate"));
    let mut server = cached.backend.next();
    answer(&mut server, &format!("{}begun", ok_head(FRESH, 200_000)));
    assert_eq!(server.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(cached.get("/app/x").body, b"old");
}

#[test]
fn what_is_fetched_ahead_and_is_longer_than_may_be_kept_is_given_up() {
    let cached = Cached::with_all("timeout = \"1h\"", "", "max_object = 4");
    let stale = "Cache-Control: max-age=0, stale-while-revalidate=1000\r\nETag: \"a\"\r\n";
    cached.fetch("/app/x", stale, "old");
    wait_until("it is stale", || status(&cached.get("/app/x")).contains("stale-while-revalidate"));
    let coding = "Transfer-Encoding: chunked\r\n";
    let mut server = cached.backend.next();
    answer(&mut server, &format!("HTTP/1.1 200 OK\r\n{coding}{FRESH}\r\n5\r\nlong!\r\n"));
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    let response = cached.fetch("/app/x", FRESH, "new");
    assert_eq!(status(&response), "kettle; fwd=bypass; detail=too-large");
}

#[test]
fn a_full_disk_cuts_one_body_without_a_length_and_the_next_are_passed_on() {
    let Some((folder, _mounted)) = tmpfs("size=192k") else { return };
    let cached = Cached::in_folder(folder, Setup::default(), "", "", "");
    let body = "x".repeat(600_000);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let answered = |target: &str| {
        let client = cached.kettle.ask(&get(target));
        let mut server = cached.backend.accept_request();
        let sent = chunked.clone();
        // An answer that is cut is not taken to its end.
        let sending = thread::spawn(move || _ = server.write_all(sent.as_bytes()));
        (client, sending)
    };
    let (mut client, sending) = answered("/app/cut");
    assert_eq!(client.end(), End::Cut);
    sending.join().unwrap();
    let entry = cached.kettle.entry("/app/cut");
    assert_eq!((entry.is_complete(), entry.text("upstream_failure")), (false, ""));
    for target in ["/app/cut", "/app/other"] {
        let (mut client, sending) = answered(target);
        assert_eq!(chunked_response(&mut client).body, body.as_bytes());
        sending.join().unwrap();
    }
}

#[test]
fn a_disk_that_may_only_be_read_answers_with_what_is_there_and_the_rest_is_passed_on() {
    let Some((folder, mounted)) = tmpfs("size=4m") else { return };
    let setup = Setup::default().set("limits", "revalidate = \"0s\"");
    let cached = Cached::in_folder(folder, setup, "", "", "");
    for target in ["/app/kept", "/app/written"] {
        cached.keep(target, FRESH, "kept");
    }
    mounted.make_read_only().unwrap();
    // A second request may join what nobody could write yet.
    for target in ["/app/one", "/app/two"] {
        cached.fetch(target, FRESH, target);
    }
    cached.hit("/app/kept");
    assert!(cached.figure("store_errors_total") > 0);
    // A file that was written to is not what is there, though nothing can be taken away.
    cached.write("/app/written");
    cached.fetch("/app/written", FRESH, "new");
    // After a restart it would be there again, which whoever purges has to know.
    let purged = cached.kettle.ctl(&["cache", "purge", "https://localhost/app/kept"]).output();
    let said = &purged.stderr;
    assert!(!purged.status.success() && said.contains("cannot remove an object"), "{said}");
    cached.fetch("/app/kept", FRESH, "new");
}

#[test]
fn an_answer_that_a_disk_does_not_take_has_the_place_of_what_was_there_all_the_same() {
    let Some((folder, mounted)) = tmpfs("size=4m") else { return };
    let setup = Setup::default().set("limits", "revalidate = \"0s\"");
    let cached = Cached::in_folder(folder, setup, "", "stale_if_error = \"1h\"", "");
    cached.fetch("/app/x", STALE, "old");
    cached.wait_for_objects(1);
    mounted.make_read_only().unwrap();
    cached.fetch("/app/x", STALE, "new");
    wait_until("the disk has refused it", || cached.figure("store_errors_total") > 0);
    let failure = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n";
    let (response, _) = cached.get_through("/app/x", "", failure);
    assert_eq!((response.status, status(&response)), (503, "kettle; fwd=uri-miss"));
}

#[test]
fn what_has_no_room_beside_others_that_arrive_is_cut_once_and_then_passed_on() {
    let cached = Cached::with_store("", "size = \"1 MiB\"\nmax_object = \"1 MiB\"");
    let body = "x".repeat(600_000);
    let begun = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{FRESH}\r\n{:x}\r\n{body}\r\n",
        body.len()
    );
    let asked = |target: &str, answer: String| {
        let client = cached.kettle.ask(&get(target));
        let mut server = cached.backend.accept_request();
        // An answer that is cut is not taken to its end.
        let sending = thread::spawn(move || {
            let _ = server.write_all(answer.as_bytes());
            server
        });
        (client, sending)
    };
    let (mut first, first_server) = asked("/app/first", begun.clone());
    first.receive_exactly(body.len());
    let (mut second, sending) = asked("/app/second", begun.clone());
    assert_eq!(second.end(), End::Cut);
    sending.join().unwrap();
    // It is not too large, and there is nobody who would have to be cut.
    let (mut second, sending) = asked("/app/second", format!("{begun}0\r\n\r\n"));
    let response = chunked_response(&mut second);
    assert_eq!((status(&response), response.body.len()), ("kettle; fwd=uri-miss", body.len()));
    drop((first_server.join().unwrap(), sending.join().unwrap()));
}
