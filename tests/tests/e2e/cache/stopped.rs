//! A disk that has stopped: what needs none goes on, what waits for it is bounded and counted, and is written once the disk is back.

use super::*;

/// Each request comes on a connection of its own.
const FRESH: &str = "Connection: close\r\nCache-Control: max-age=1000\r\n";
/// The port is no part of the key, then.
const HTTP2: &[&str] = &["--http2", "--include", "--header", "Host: localhost"];
const LARGE_BYTES: usize = 60_000;

/// Ends before what it lies on.
struct Stopping {
    cached: Cached,
    mounted: Mounted,
    _folders: [TempDir; 3],
}

/// A server with a store on a disk that can be frozen, and one elsewhere.
fn start(drain_timeout: &str) -> Option<Stopping> {
    let [folder, image, nothing, elsewhere] = [(); 4].map(|()| TempDir::new().unwrap());
    let file = image.path().join("image");
    let mounted = Mounted::holding(folder.path().into(), "ext4", &file, nothing.path());
    let frozen = mounted.as_ref().map_err(Clone::clone).and_then(|it| it.freeze().map(drop));
    let Ok(mounted) = mounted.and_then(|it| frozen.map(|()| it)) else {
        skip("no ext4 can be mounted and frozen here");
        return None;
    };
    let other = "[[site.route]]\nprefix = \"/other\"\nbackend = \"app\"\n[site.route.cache]\nstore = \"other\"";
    let store = format!(
        "size = \"100 MiB\"\n[[cache]]\nname = \"other\"\ndirectory = \"{}\"",
        elsewhere.path().display()
    );
    let server = format!("workers = 1\ndrain_timeout = \"{drain_timeout}\"");
    let setup = Setup::default().listener("http2 = true").set("server", &server);
    // A request that waits for the disk where it must not, waits for longer than a test does.
    let setup = setup.set("limits", "revalidate = \"1h\"\ndisk_timeout = \"1h\"");
    let cached = Cached::in_folder(folder, setup, "", other, &store);
    let stopping = Stopping { cached, mounted, _folders: [image, nothing, elsewhere] };
    // Before the disk stops, the store is open, and all in it is counted.
    stopping.cached.keep("/app/hot", FRESH, "old");
    Some(stopping)
}

impl Stopping {
    fn wait_until_written(&self) {
        self.cached.wait_for_figure("unwritten_objects", 0);
    }
}

/// Asks for these, some at a time; which of them are said to be stored.
fn fill(address: SocketAddr, numbers: std::ops::Range<usize>) -> Vec<usize> {
    let ask = move |first: usize, end: usize| {
        let mut client = Dialer::default().connect(address);
        let stored = (first..end).step_by(CLIENTS).filter(|number| {
            client.send(&get(&format!("/app/{number}"))).unwrap();
            let response = client.response();
            assert_eq!((response.status, response.body.len()), (200, LARGE_BYTES));
            status(&response).ends_with("stored")
        });
        stored.collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let begin = |at| scope.spawn(move || ask(numbers.start + at, numbers.end));
        let clients: Vec<_> = (0..CLIENTS).map(begin).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

const CLIENTS: usize = 16;
/// More than may wait to be written.
const OBJECTS: usize = 620;

#[test]
fn a_disk_that_stops_holds_up_the_beginnings_of_fetches_alone() {
    let Some(stopping) = start("30s") else { return };
    let Stopping { cached, mounted, .. } = &stopping;
    let stale = "Connection: close\r\nCache-Control: max-age=0, stale-while-revalidate=1000\r\n";
    for target in ["/app/stale", "/app/stale2"] {
        cached.fetch(target, stale, "old");
    }
    cached.wait_for_objects(3);
    cached.backend.answer_all(&ok(FRESH, &"x".repeat(LARGE_BYTES)));
    let frozen = mounted.freeze().unwrap();
    let address = cached.kettle.address();
    let stored = fill(address, 0..OBJECTS);
    assert!(!stored.is_empty() && stored.len() < OBJECTS, "{} are stored", stored.len());
    assert_eq!(cached.figure("unwritten_objects"), stored.len());
    assert_eq!(cached.figure("store_errors_total"), OBJECTS - stored.len());
    thread::scope(|scope| {
        // These wait for room, and have none.
        let waiting = scope.spawn(move || fill(address, OBJECTS..OBJECTS + 2 * CLIENTS));
        // An object that comes in the place of a stale one has no room either.
        for target in ["/app/hot", "/app/stale"] {
            let response = cached.get(target);
            assert_eq!(response.body, b"old");
            assert_hit(&response);
        }
        for target in ["/app/hot", "/app/stale2"] {
            let said = cached.kettle.curl(HTTP2, target).succeed();
            assert!(said.contains("cache-status: kettle; hit") && said.ends_with("old"), "{said}");
        }
        let response = cached.get("/other/x");
        assert_eq!(status(&response), "kettle; fwd=uri-miss; stored");
        cached.wait_until_kept("/other/x");
        let said = cached.kettle.curl(HTTP2, "/app/late").succeed();
        assert!(said.contains("cache-status: kettle; fwd=uri-miss\r\n"), "{said:.400}");
        assert!(waiting.join().unwrap().is_empty());
    });
    assert_eq!(cached.figure("unwritten_objects"), stored.len());
    drop(frozen);
    stopping.wait_until_written();
    let mut client = cached.client();
    for number in stored {
        client.send(&get(&format!("/app/{number}"))).unwrap();
        let response = client.response();
        assert_hit(&response);
    }
}

#[test]
fn what_waits_for_the_disk_is_there_after_a_reload_and_a_stop() {
    let Some(mut stopping) = start("30s") else { return };
    stopping.cached.backend.answer_all(&ok(FRESH, &"x".repeat(LARGE_BYTES)));
    let frozen = stopping.mounted.freeze().unwrap();
    let kettle = &mut stopping.cached.kettle;
    assert_eq!(fill(kettle.address(), 0..2 * CLIENTS).len(), 2 * CLIENTS);
    kettle.reload_with("size = \"100 MiB\"", "size = \"99 MiB\"");
    kettle.signal(Signal::TERM);
    kettle.messages().wait_for("finishing requests in flight");
    drop(frozen);
    let ended = kettle.ended();
    assert!(ended.status.success() && !ended.stderr.contains("is lost"), "{}", ended.stderr);
    kettle.start_again();
    // Nothing is asked of the backend, or it would be stored.
    assert!(fill(kettle.address(), 0..2 * CLIENTS).is_empty());
}

#[test]
fn what_no_time_is_left_for_at_a_stop_is_said_to_be_lost() {
    // The time that is given, or a second signal.
    for drain_timeout in ["1s", "1h"] {
        let Some(mut stopping) = start(drain_timeout) else { return };
        stopping.cached.backend.answer_all(&ok(FRESH, &"x".repeat(LARGE_BYTES)));
        let frozen = stopping.mounted.freeze().unwrap();
        let kettle = &mut stopping.cached.kettle;
        assert_eq!(fill(kettle.address(), 0..CLIENTS).len(), CLIENTS);
        kettle.signal(Signal::TERM);
        wait_until("it is said", || {
            if drain_timeout == "1h" {
                kettle.signal(Signal::TERM);
            }
            kettle.messages().text().contains("is lost")
        });
        assert!(kettle.messages().text().contains(&format!("objects={CLIENTS}")));
        drop(frozen);
        assert_eq!(kettle.ended().status.success(), drain_timeout == "1s");
    }
}

#[test]
fn what_is_removed_while_it_waits_for_the_disk_does_not_come_back() {
    let Some(stopping) = start("30s") else { return };
    let Stopping { cached, mounted, .. } = &stopping;
    let frozen = mounted.freeze().unwrap();
    for target in ["/app/purged", "/app/written", "/app/same"] {
        let response = cached.fetch(target, FRESH, "old");
        assert_eq!(status(&response), "kettle; fwd=uri-miss; stored");
        // Until it is written, it is answered from memory.
        assert_eq!(cached.get(target).body, b"old");
    }
    let mut purge = cached.kettle.ctl(&["cache", "purge", "https://localhost/app/purged"]).start();
    let mut client = cached.kettle.ask(&request("POST", "/app/written", "Content-Length: 0\r\n"));
    answer(&mut cached.backend.accept(), &ok("Connection: close\r\n", "done"));
    // The write's answer waits for its file to go, which takes a disk.
    drop(frozen);
    assert_eq!(client.response().body, b"done");
    assert!(purge.ended().status.success());
    stopping.wait_until_written();
    for target in ["/app/purged", "/app/written"] {
        cached.keep(target, FRESH, "new");
        assert_eq!(cached.get(target).body, b"new");
    }
    assert_eq!(cached.get("/app/same").body, b"old");
}

#[test]
fn what_waits_for_the_disk_keeps_to_a_size_that_has_become_smaller() {
    let Some(stopping) = start("30s") else { return };
    let Stopping { cached, mounted, .. } = &stopping;
    cached.backend.answer_all(&ok(FRESH, &"x".repeat(LARGE_BYTES)));
    let frozen = mounted.freeze().unwrap();
    let stored = fill(cached.kettle.address(), 0..2 * CLIENTS).len();
    cached.kettle.reload_with("size = \"100 MiB\"", "size = \"1 MiB\"");
    drop(frozen);
    stopping.wait_until_written();
    assert_eq!(stored, 2 * CLIENTS);
    // Each takes 16 blocks of 4 KiB.
    assert_eq!(cached.figure("objects"), 16);
}
