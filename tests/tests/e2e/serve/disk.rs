//! The disks on which files lie: disks that never answer hold up their own requests only, and whatever says nothing about
//! what is in memory is read without a thread in between.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::Instant;

use kettle_tests::fuse::{Fuse, Silent};
use kettle_tests::mounted::Mounted;

use super::*;
use crate::http2::frames::{self, Frames};

const FILES: &[(&str, usize, Silent)] = &[
    ("answers", BODY_BYTES, Silent::Never),
    ("hangs", BODY_BYTES, Silent::ReadBeyond(0)),
    ("hangs-later", BODY_BYTES, Silent::ReadBeyond(512 * 1024)),
    ("small-hangs", 10_000, Silent::ReadBeyond(0)),
    ("cannot-be-opened", 10, Silent::Open),
    ("cannot-be-closed", BODY_BYTES, Silent::Close),
    ("unknown", 10, Silent::Lookup),
];
const BODY_BYTES: usize = 1 << 20;

/// More than the threads that may wait for one device.
const MANY: usize = 10;

fn hanging_disk(kettle: &Kettle) -> Option<Fuse> {
    Fuse::mount_or_skip(kettle.folder.path("www/mounted"), FILES)
}

/// Clients that all wait for this.
fn many_ask(kettle: &Kettle, path: &str) -> Vec<Client> {
    let ask = |_| {
        let mut client = kettle.connect(TLS13_AES_128);
        client.send(&get(path)).unwrap();
        client
    };
    (0..MANY).map(ask).collect()
}

fn impatient() -> Setup {
    impatient_by(paths_here())
}

fn impatient_by(paths: &[&str]) -> Setup {
    Setup::paths(paths)
        .sizes(&[BODY_BYTES])
        .set("limits", &format!("disk_timeout = {:?}", scaled("1s", "4s")))
}

/// Takes a file out of the page cache, so that the next reader needs a disk thread.
fn forget_content(kettle: &Kettle, path: &str) {
    let file = File::open(kettle.folder.path(path)).unwrap();
    // A file system that can only be read has nothing to write, and says so.
    let _ = file.sync_all();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

#[test]
fn reads_that_hang_are_cut_off_and_hold_up_no_other_disk() {
    for path in paths_here() {
        // A server for each: what hangs keeps its threads.
        let kettle = Kettle::start(impatient_by(&[path]));
        let Some(fuse) = hanging_disk(&kettle) else { return };
        let mut waiting: Vec<_> = (0..MANY)
            .map(|_| {
                let mut client = kettle.connect_by(path, TLS13_AES_128);
                client.send(&request("GET", "/mounted/hangs", "Connection: close\r\n")).unwrap();
                client
            })
            .collect();
        fuse.wait_for_unanswered(1);
        forget_content(&kettle, &format!("www/{BODY_BYTES}"));
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        let response = client.get(&format!("/{BODY_BYTES}"));
        assert_same(&response.body, &content(BODY_BYTES), path);
        for client in &mut waiting {
            let entry = kettle.entry("/mounted/hangs");
            assert!(entry.number("status") == 503 || !entry.is_complete(), "{path}: {entry:?}");
            match client.end() {
                End::Cut => {}
                // A client that waited for the look-up, behind reads that hung, could still be told.
                End::Orderly => assert!(client.beyond().starts_with(b"HTTP/1.1 503 "), "{path}"),
                other => panic!("{path}: {other:?}"),
            }
        }
        drop((client, waiting));
        kettle.wait_until_idle();
    }
}

#[test]
fn a_read_that_hangs_in_the_middle_of_a_body_cuts_it_off() {
    for path in paths_here() {
        let kettle = Kettle::start(impatient_by(&[path]));
        let Some(_fuse) = hanging_disk(&kettle) else { return };
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        client.send(&get("/mounted/hangs-later")).unwrap();
        assert_eq!(client.response_head().announced_bytes(), BODY_BYTES, "{path}");
        assert_eq!(client.end(), End::Cut, "{path}");
        let entry = kettle.entry("/mounted/hangs-later");
        assert!(!entry.is_complete() && entry.number("body_bytes") > 0, "{path}: {entry:?}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_in_time_gets_503_and_others_are_served_meanwhile() {
    let kettle = Kettle::start(impatient());
    let Some(fuse) = hanging_disk(&kettle) else { return };
    // The kernel remembers the name: from then on only the opening itself asks the file system.
    fs::metadata(kettle.folder.path("www/mounted/cannot-be-opened")).unwrap();
    let mut waiting = many_ask(&kettle, "/mounted/cannot-be-opened");
    fuse.wait_for_unanswered(1);
    assert_eq!(kettle.connect(TLS13_AES_128).get(&format!("/{BODY_BYTES}")).status, 200);
    for client in &mut waiting {
        let response = client.response();
        assert_eq!(response.status, 503);
        assert_eq!(response.header("retry-after"), Some("1"));
    }
}

#[test]
fn look_ups_that_hang_behind_a_mount_leave_threads_to_what_it_is_mounted_on() {
    let setup = impatient().route("listing = true").file("www/near/a", "content");
    let kettle = Kettle::start(setup);
    let Some(fuse) = hanging_disk(&kettle) else { return };
    fs::metadata(kettle.folder.path("www/mounted/cannot-be-opened")).unwrap();
    let mut waiting = many_ask(&kettle, "/mounted/cannot-be-opened");
    fuse.wait_for_unanswered(4);
    let mut client = kettle.connect(TLS13_AES_128);
    // Names that nobody has asked for take a thread, and so does every listing.
    for number in 0..MANY {
        assert_eq!(client.get(&format!("/missing-{number}")).status, 404);
    }
    let listing = client.get("/");
    assert_eq!(listing.status, 200);
    let text = String::from_utf8(listing.body).unwrap();
    assert!(text.contains("href=\"./mounted/\"") && text.contains("href=\"./near/\""), "{text}");
    for client in &mut waiting {
        assert_eq!(client.response().status, 503);
    }
}

#[test]
fn a_file_whose_beginning_hangs_gets_503_however_large_it_is() {
    let kettle = Kettle::start(impatient());
    let Some(_fuse) = hanging_disk(&kettle) else { return };
    for target in ["/mounted/small-hangs", "/mounted/hangs"] {
        assert_eq!(kettle.connect(TLS13_AES_128).get(target).status, 503, "{target}");
    }
}

/// Files that may be mounted in the place of a folder with an error page.
const PAGES: &[(&str, usize, Silent)] = &[("404.html", 10, Silent::Open)];

fn hanging_pages(kettle: &Kettle) -> Option<Fuse> {
    Fuse::mount_or_skip(kettle.folder.path("pages"), PAGES)
}

fn with_pages() -> Setup {
    Setup::default()
        .set("server", "workers = 1")
        .set("limits", "revalidate = \"0s\"")
        .file("pages/404.html", "not there")
        .site("error_pages.404 = \"pages/404.html\"")
}

#[test]
fn an_error_page_that_hangs_holds_up_no_page_that_was_read_elsewhere() {
    let setup = with_pages().set("limits", "disk_timeout = \"1h\"");
    let setup =
        setup.file("others/405.html", "first").site("error_pages.405 = \"others/405.html\"");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    assert_eq!(client.exchange(&request("POST", "/", "")).body, b"first");
    let Some(fuse) = hanging_pages(&kettle) else { return };
    let _waiting = many_ask(&kettle, "/missing");
    fuse.wait_for_unanswered(4);
    kettle.folder.replace("others/405.html", "second");
    assert_eq!(client.exchange(&request("POST", "/", "")).body, b"second");
}

#[test]
fn an_error_page_whose_disk_does_not_answer_any_more_is_sent_as_it_was() {
    let setup = with_pages().set("limits", "disk_timeout = \"1s\"");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    assert_eq!(client.get("/missing").body, b"not there");
    let Some(fuse) = hanging_pages(&kettle) else { return };
    let response = client.get("/missing");
    assert_eq!((response.status, &*response.body), (404, &b"not there"[..]));
    fuse.wait_for_unanswered(1);
}

#[test]
fn a_stream_whose_file_hangs_gets_503_and_the_others_of_its_connection_are_answered_meanwhile() {
    for path in paths_here() {
        let kettle = Kettle::start(
            Setup::default()
                .listener(&format!("http2 = true\npath = {path:?}"))
                .file("www/a", "content")
                .set("limits", &format!("disk_timeout = {:?}", scaled("3s", "10s"))),
        );
        let Some(fuse) = hanging_disk(&kettle) else { return };
        let mut client = Frames::connect(&kettle, &[]);
        client.send(&frames::get(1, "/mounted/hangs"));
        fuse.wait_for_unanswered(1);
        for stream in [3, 5] {
            client.send(&frames::get(stream, "/a"));
            // Nothing of the first one comes before.
            assert_eq!(client.next_of(frames::HEADERS).stream, stream, "{path}");
            assert_eq!(client.body(stream), b"content", "{path}");
        }
        assert_eq!(client.next_of(frames::HEADERS).stream, 1, "{path}");
        assert_eq!(kettle.entry("/mounted/hangs").number("status"), 503, "{path}");
        client.ping();
    }
}

#[test]
fn a_request_that_waits_for_a_disk_when_the_drain_is_over_is_told_and_logged() {
    let setup = Setup::default().listener("http2 = true").set("server", "drain_timeout = \"1s\"");
    let mut kettle = Kettle::start(setup);
    let Some(fuse) = hanging_disk(&kettle) else { return };
    fs::metadata(kettle.folder.path("www/mounted/cannot-be-opened")).unwrap();
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&get("/mounted/cannot-be-opened")).unwrap();
    let mut streams = Frames::connect(&kettle, &[]);
    streams.send(&frames::get(1, "/mounted/cannot-be-opened"));
    fuse.wait_for_unanswered(2);
    kettle.signal(Signal::TERM);
    for _ in 0..2 {
        assert_eq!(kettle.entry("/mounted/cannot-be-opened").number("status"), 503);
    }
    assert_eq!(client.response().status, 503);
    assert_eq!(streams.next_of(frames::HEADERS).stream, 1);
    // A thread that asks FUSE does not end before it is answered, and no process before its threads.
    drop(fuse);
    let _ = kettle.ended();
}

#[test]
fn a_file_that_cannot_be_closed_is_served_and_holds_up_nobody() {
    let setup = impatient().without_memory().set("limits", "open_files = 0");
    let kettle = Kettle::start(setup);
    let Some(fuse) = hanging_disk(&kettle) else { return };
    for round in 1..=2 {
        let mut client = kettle.connect(TLS13_AES_128);
        let body = client.get("/mounted/cannot-be-closed").body;
        assert_same(&body, &content(BODY_BYTES), "a file that cannot be closed");
        fuse.wait_for_unanswered(round);
        assert_eq!(kettle.connect(TLS13_AES_128).get(&format!("/{BODY_BYTES}")).status, 200);
    }
}

#[test]
fn what_a_remote_file_system_holds_goes_through_memory_and_says_so() {
    let kettle = Kettle::start(impatient().without_memory());
    let Some(_fuse) = hanging_disk(&kettle) else { return };
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        assert_same(&client.get("/mounted/answers").body, &content(BODY_BYTES), path);
        let expected = match *path {
            "user" => "user",
            "kernel-write" => "kernel-write",
            _ => "kernel-write (slow_disk)",
        };
        assert_eq!(kettle.entry("/mounted/answers").path(), expected, "{path}");
    }
    let slow = paths_here().iter().filter(|path| !matches!(**path, "user" | "kernel-write"));
    let counted = kettle.status("/total/not_preferred/slow_disk");
    assert_eq!(counted.as_u64().unwrap_or(0), slow.count() as u64);
}

#[test]
fn files_on_an_overlay_are_read_without_a_thread_in_between() {
    if is_guest() {
        return skip("counts on reads that take less than a millisecond");
    }
    let kettle = Kettle::start(Setup::paths(paths_here()).without_memory());
    kettle.folder.write("lower/large", content(BODY_BYTES));
    let lower = kettle.folder.path("lower");
    let beside = kettle.folder.path("beside");
    let beside_on = Mounted::at(beside.clone(), "tmpfs", "mode=755", Stdio::null());
    let mounted = Mounted::overlay(kettle.folder.path("www/overlay"), &lower, &beside);
    let (Ok(_beside), Ok(_mounted)) = (beside_on, mounted) else {
        return skip("no overlay can be mounted here");
    };
    threads_stop_reading(&kettle, "/overlay/large");
}

#[test]
fn what_common_file_systems_hold_is_served_from_memory_and_from_the_disk() {
    if is_guest() {
        return skip("counts on reads that take less than a millisecond");
    }
    for kind in ["ext4", "xfs", "btrfs", "squashfs", "tmpfs"] {
        let kettle = Kettle::start(Setup::paths(paths_here()).without_memory());
        kettle.folder.write("content/large", content(BODY_BYTES));
        let image = kettle.folder.path("image");
        let files = kettle.folder.path("content");
        let mounted = Mounted::holding(kettle.folder.path("www/mounted"), kind, &image, &files);
        let Ok(_mounted) = mounted.inspect_err(|why| skip(&format!("{kind}: {why}"))) else {
            continue;
        };
        for path in paths_here() {
            forget_content(&kettle, "www/mounted/large");
            let mut client = kettle.connect_by(path, TLS13_AES_128);
            for _ in 0..2 {
                let body = client.get("/mounted/large").body;
                assert_same(&body, &content(BODY_BYTES), &format!("{kind}, {path}"));
            }
        }
        threads_stop_reading(&kettle, "/mounted/large");
    }
}

/// Waits until a file in memory is read on the worker, on every path.
fn threads_stop_reading(kettle: &Kettle, target: &str) {
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        let deadline = Instant::now() + patience();
        // A machine with too much to do may make a read look slow once.
        while requests_read_on_the_worker(kettle, &mut client, target) < REQUESTS {
            assert!(Instant::now() < deadline, "{target}, {path}: threads go on reading");
        }
    }
}

const REQUESTS: u64 = 8;

/// Of [`REQUESTS`] requests for the file, all that no disk thread read for.
fn requests_read_on_the_worker(kettle: &Kettle, client: &mut impl Connection, target: &str) -> u64 {
    let mut without = 0;
    for _ in 0..REQUESTS {
        let before = waits_of_disk_threads(kettle);
        assert_eq!(client.get(target).body.len(), BODY_BYTES);
        // Looking at the file again, once a second, is one hand-over.
        without += u64::from(waits_of_disk_threads(kettle) <= before + 2);
    }
    without
}

/// Returns how often the server's disk threads went to sleep so far.
fn waits_of_disk_threads(kettle: &Kettle) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", kettle.process())).unwrap();
    threads
        .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).ok())
        .filter(|status| status.starts_with("Name:\tkettle-disk"))
        .filter_map(|status| {
            let count = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
            count?.trim().parse::<u64>().ok()
        })
        .sum()
}

/// A disk that does not say whether something is there has not said that it is not: no other route answers, whatever is tried first.
#[test]
fn conditions_and_tries_that_a_disk_does_not_answer_are_never_not_there() {
    let rule = |place: &str, settings: &str| {
        format!("\n[[site.route]]\nprefix = \"/{place}\"\nroot = \"www/mounted\"\n{settings}\n")
    };
    let open = |place: &str| {
        format!("\n[[site.route]]\nprefix = \"/{place}\"\nrespond = {{ body = \"open\" }}\n")
    };
    let twice =
        "{ file = \"file\", not = true }, { file = \"file\", not = true, file_path = \"{path}\" }";
    let setup = impatient()
        .more(&rule("when", "when = [{ file = \"file\" }]\ndeny = [\"0.0.0.0/0\", \"::/0\"]"))
        .more(&open("when"))
        .more(&rule("twice", &format!("when = [{twice}]")))
        .more(&open("twice"))
        .more(&rule("try", "try = [\"/unknown\", \"{path}\"]"));
    let kettle = Kettle::start(setup.file("www/mounted/.keep", ""));
    let Some(fuse) = hanging_disk(&kettle) else { return };
    let mut client = kettle.connect(TLS13_AES_128);
    for (target, status) in [
        ("/when/answers", 403),
        ("/when/none", 200),
        ("/when/unknown", 503),
        ("/twice/unknown", 503),
        ("/try/answers", 503),
    ] {
        assert_eq!(client.get(target).status, status, "{target}");
    }
    drop(fuse);
}
