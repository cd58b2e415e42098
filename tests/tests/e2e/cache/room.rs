//! Too little room: on the disk, in the store, or in the one that a reload leaves while objects arrive.

use std::fs;

use super::*;

#[test]
fn a_full_disk_leaves_an_announced_body_whole_to_its_client() {
    let Some((folder, _mounted)) = tmpfs("size=1m") else { return };
    let filler = folder.path().join("filler");
    let cached = Cached::in_folder(folder, Setup::default(), "", "", "");
    let body = content(600_000);
    let mut client = cached.kettle.ask(&get("/app/x"));
    let mut server = cached.backend.next_request();
    server.write_all(ok_head(FRESH, body.len() as u64).as_bytes()).unwrap();
    server.write_all(&body[..300_000]).unwrap();
    client.response_head();
    assert_same(&client.receive_exactly(300_000), &body[..300_000], "before");
    // Somebody else takes all that is left; what was announced has its room.
    assert!(fs::write(&filler, vec![0; 1 << 20]).is_err());
    server.write_all(&body[300_000..]).unwrap();
    assert_same(&client.receive_exactly(300_000), &body[300_000..], "after");
    cached.wait_until_kept("/app/x");
    assert_eq!(cached.figure("store_errors_total"), 0);
    // The next one has none though all else goes: it is passed on whole, each time, and counted.
    let body = content(1_100_000);
    for count in [1, 2] {
        let mut client = cached.kettle.ask(&get("/app/y"));
        let mut socket = cached.backend.next();
        answer(&mut socket, &ok_head(FRESH, body.len() as u64));
        thread::scope(|scope| {
            scope.spawn(|| socket.write_all(&body).unwrap());
            let response = client.response();
            assert_eq!(status(&response), "kettle; fwd=uri-miss");
            assert_same(&response.body, &body, "passed on");
        });
        assert_eq!(["store_errors_total", "objects"].map(|it| cached.figure(it)), [count, 1]);
    }
}

/// `size` is more than the disk has: what is needed least goes all the same.
#[test]
fn a_disk_that_is_full_before_the_store_keeps_what_is_new() {
    let Some((folder, _mounted)) = tmpfs("size=1m") else { return };
    let cached = Cached::in_folder(folder, Setup::default(), "", "", "");
    // A file that has no name any more has its room until it is closed.
    let is_left_open = || {
        let open = fs::read_dir(format!("/proc/{}/fd", cached.kettle.process())).unwrap();
        let mut open = open.filter_map(|it| fs::read_link(it.unwrap().path()).ok());
        open.any(|it| it.to_string_lossy().ends_with(" (deleted)"))
    };
    for number in 0..30 {
        wait_until("nothing removed is open", || !is_left_open());
        let body = "x".repeat(if number % 3 == 0 { 20_000 } else { 150_000 });
        let response = if number % 3 == 1 {
            let coding = "Transfer-Encoding: chunked\r\n";
            format!("HTTP/1.1 200 OK\r\n{coding}{FRESH}\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
        } else {
            ok(FRESH, &body)
        };
        let target = format!("/app/{number}");
        let (response, _) = cached.get_through(&target, "", &response);
        assert_eq!(status(&response), "kettle; fwd=uri-miss; stored", "{number}");
        cached.wait_for_figure("fill_seconds_count", number + 1);
    }
    let last = cached.hit("/app/29");
    assert_eq!(last.body.len(), 150_000);
    assert_eq!(cached.figure("store_errors_total"), 0);
    assert!(cached.figure("full_disks_total") > 0);
    let said = cached.kettle.messages().text();
    assert_eq!(
        said.matches("the disk is full before the cache has its `size`").count(),
        1,
        "{said}"
    );
}

/// A client that asks for something long and leaves costs others little of what is kept for them.
#[test]
fn what_is_announced_and_does_not_come_lets_little_go_of_a_full_disk() {
    let Some((folder, _mounted)) = tmpfs("size=48m") else { return };
    let cached = Cached::in_folder(folder, Setup::default(), "", "", "");
    let body = "x".repeat(1 << 20);
    for number in 0..40 {
        cached.fetch(&format!("/app/{number}"), FRESH, &body);
    }
    cached.wait_for_objects(40);
    let mut client = cached.kettle.ask(&get("/app/long"));
    let mut server = cached.backend.next();
    answer(&mut server, &format!("{}x", ok_head(FRESH, 45 << 20)));
    assert_eq!(status(&client.response_head()), "kettle; fwd=uri-miss; stored");
    drop(client);
    assert_eq!(server.read(&mut [0]).unwrap_or(0), 0);
    let text = cached.kettle.ctl(&["cache", "status"]).succeed();
    let count = text.split_once("main: ").and_then(|(_, rest)| rest.split(' ').next());
    let count: u64 = count.unwrap().parse().unwrap();
    assert!((20..40).contains(&count), "{text}");
}

#[test]
fn a_full_disk_keeps_no_purge_from_being_made_and_no_store_from_opening() {
    let Some((folder, _mounted)) = tmpfs("size=1m") else { return };
    let mut cached = Cached::in_folder(folder, Setup::default(), "", "", "");
    let is_filled = |cached: &Cached, name: &str| {
        fs::write(cached.folder.path().join(name), vec![0; 1 << 20]).is_err()
    };
    let body = "x".repeat(40_000);
    for number in 0..10 {
        let target = format!("/app/{number}");
        cached.keep(&target, FRESH, &body);
    }
    assert!(is_filled(&cached, "filler"));
    // The record of the second begins another block.
    for prefix in ["app/8".to_owned(), "x".repeat(5_000)] {
        let url = format!("https://localhost/{prefix}");
        cached.purge(&["--prefix", &url]);
    }
    assert!(is_filled(&cached, "more"));
    let _ = cached.kettle.ctl(&["reload"]).succeed();
    cached.wait_until_kept("/app/9");
    cached.kettle.restart();
    cached.wait_until_kept("/app/9");
    let is_counted = |cached: &Cached| {
        let said = cached.kettle.ctl(&["cache", "status"]).succeed();
        !said.contains("still being counted")
    };
    wait_until("all is counted", || is_counted(&cached));
    let response = cached.fetch("/app/8", FRESH, &body);
    assert_eq!(status(&response), "kettle; fwd=uri-miss; stored");
    cached.wait_until_kept("/app/8");
}

#[test]
fn a_folder_that_may_only_be_read_at_the_start_is_used_once_it_may_be_written() {
    let Some((folder, mounted)) = tmpfs("ro") else { return };
    let cached = Cached::in_folder(folder, Setup::default(), "", "", "");
    for body in ["one", "two"] {
        let response = cached.fetch("/app/x", FRESH, body);
        assert_eq!(status(&response), "kettle; fwd=bypass; detail=store");
        assert_eq!(response.body, body.as_bytes());
    }
    let said = cached.kettle.ctl(&["cache", "status"]).succeed();
    assert!(said.contains("not opened yet"), "{said}");
    mounted.make_writable().unwrap();
    // Without the minute between two tries.
    let _ = cached.kettle.ctl(&["reload"]).succeed();
    cached.keep("/app/x", FRESH, "three");
    assert_eq!(cached.get("/app/x").body, b"three");
}

#[test]
fn what_goes_to_make_room_is_counted() {
    let cached = Cached::with_store("", "size = \"1 MiB\"");
    for number in 0..10 {
        let body = "x".repeat(200_000);
        let target = format!("/app/{number}");
        let response = cached.fetch(&target, FRESH, &body);
        assert_eq!(status(&response), "kettle; fwd=uri-miss; stored");
    }
    wait_until("all ten are counted", || {
        let text = cached.scrape();
        let [objects, gone] = ["objects", "evictions_total"].map(|name| figure(&text, name));
        let is_counted = objects + gone == 10;
        if is_counted {
            assert!((1..=5).contains(&objects), "{objects} have room");
            assert!(figure(&text, "bytes") <= 1 << 20);
        }
        is_counted
    });
}

#[test]
fn a_store_that_becomes_smaller_than_what_arrives_gives_it_whole_and_keeps_nothing_of_it() {
    let cached = Cached::with_store("", "size = \"10 MiB\"");
    let body = content(3 << 20);
    let [mut first, mut late] = [cached.client(), cached.client()];
    first.send(&get("/app/x")).unwrap();
    let mut server = cached.backend.next_request();
    server.write_all(ok_head(FRESH, body.len() as u64).as_bytes()).unwrap();
    server.write_all(&body[..1 << 20]).unwrap();
    first.response_head();
    assert_same(&first.receive_exactly(1 << 20), &body[..1 << 20], "before the reload");
    cached.kettle.reload_with("size = \"10 MiB\"", "size = \"1 MiB\"");
    late.send(&get("/app/x")).unwrap();
    assert_eq!(status(&late.response_head()), "kettle; fwd=uri-miss; stored; collapsed");
    thread::scope(|scope| {
        scope.spawn(|| server.write_all(&body[1 << 20..]).unwrap());
        assert_same(&first.receive_exactly(2 << 20), &body[1 << 20..], "behind it");
        assert_same(&late.receive_exactly(3 << 20), &body, "late");
    });
    let is_empty = || {
        let status = cached.kettle.ctl(&["cache", "status"]).succeed();
        status.contains("main: 0 objects, 0 B")
    };
    wait_until("nothing is kept", is_empty);
    // An object that has room is kept as before.
    cached.keep("/app/y", FRESH, "small");
}

#[test]
fn a_store_that_is_taken_out_gives_what_arrives_whole_to_all_who_read_it() {
    let cached = Cached::start("");
    let body = content(400_000);
    let mut clients = [cached.client(), cached.client()];
    clients[0].send(&get("/app/x")).unwrap();
    let mut server = cached.backend.accept_request();
    server.write_all(ok_head(FRESH, body.len() as u64).as_bytes()).unwrap();
    server.write_all(&body[..200_000]).unwrap();
    clients[1].send(&get("/app/x")).unwrap();
    for client in &mut clients {
        client.response_head();
        assert_same(&client.receive_exactly(200_000), &body[..200_000], "before the reload");
    }
    let store =
        format!("[[cache]]\nname = \"main\"\ndirectory = \"{}\"\n", cached.folder.path().display());
    cached.kettle.folder.change_config(&store, "");
    cached.kettle.reload_with("[site.route.cache]\nstore = \"main\"\n", "");
    // From now on all requests are passed on, and those that came before lose nothing.
    let passed = cached.fetch("/app/x", FRESH, "passed");
    assert_eq!((&*passed.body, passed.header("cache-status")), (&b"passed"[..], None));
    server.write_all(&body[200_000..]).unwrap();
    for client in &mut clients {
        assert_same(&client.receive_exactly(200_000), &body[200_000..], "behind it");
    }
    assert!(cached.kettle.ctl(&["cache", "status"]).succeed().contains("there are no caches"));
}
