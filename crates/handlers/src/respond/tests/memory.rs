//! Entries that are remembered, and when they are looked at again.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use kettle_config::Symlinks;
use kettle_exchange::response::Body;

use super::stage::{Server, Stage};

const PERIOD: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_small_file_is_answered_from_memory() {
    let server = Stage::new().file("a.txt", "hello").open();
    let first = server.get("/a.txt", &[]).await;
    assert!(matches!(first.raw, Body::Memory(_)));
    fs::remove_file(server.path("a.txt")).unwrap();
    let second = server.get("/a.txt", &[]).await;
    assert_eq!((second.status, second.text()), (200, "hello"), "within the period nobody looks");
    assert_eq!(first.head, second.head);
}

#[tokio::test]
async fn a_truncated_file_keeps_its_length_until_it_is_looked_at() {
    let mut stage = Stage::new().file("a.bin", [1; 100]);
    stage.config.limits.hot_file_bytes = 10;
    let server = stage.open();
    server.get("/a.bin", &[]).await;
    fs::write(server.path("a.bin"), [1; 50]).unwrap();
    let head = server.ask("HEAD", "/a.bin", &[]).await;
    assert_eq!(head.header("content-length"), Some("100"), "whoever delivers finds out");
    server.clock.pass(PERIOD);
    let after = server.get("/a.bin", &[]).await;
    assert_eq!(after.header("content-length"), Some("50"));
    assert_eq!(after.body, [1; 50]);
}

#[tokio::test]
async fn a_file_nobody_asks_for_is_closed_after_a_minute() {
    let mut stage = Stage::new().file("a.bin", [1; 100]).file("b.bin", [2; 100]);
    stage.config.limits.hot_file_bytes = 10;
    let server = stage.open();
    let files = &server.responder.files;
    for target in ["/a.bin", "/b.bin"] {
        assert_eq!(server.get(target, &[]).await.status, 200);
    }
    fs::remove_file(server.path("a.bin")).unwrap();
    let mut open = Vec::new();
    for _ in 0..7 {
        server.clock.pass(Duration::from_secs(10));
        assert_eq!(server.get("/b.bin", &[]).await.status, 200);
        files.release();
        open.push(files.disks().open_files());
    }
    assert_eq!(open, [2, 2, 2, 2, 2, 1, 1]);
}

#[tokio::test]
async fn an_unchanged_file_is_not_read_again() {
    let server = Stage::new().file("a.txt", "hello").open();
    let Body::Memory(first) = server.get("/a.txt", &[]).await.raw else { panic!() };
    server.clock.pass(PERIOD);
    let Body::Memory(second) = server.get("/a.txt", &[]).await.raw else { panic!() };
    assert_eq!(first.as_ptr(), second.as_ptr(), "the same bytes in the same place");
}

#[tokio::test]
async fn only_files_up_to_the_bound_are_kept_in_memory() {
    let mut stage = Stage::new().file("fits", [0; 1000]).file("not", [0; 1001]);
    stage.config.limits.hot_file_bytes = 1000;
    let server = stage.open();
    assert!(matches!(server.get("/fits", &[]).await.raw, Body::Memory(_)));
    assert!(matches!(server.get("/not", &[]).await.raw, Body::File { .. }));
}

#[tokio::test]
async fn nothing_is_kept_in_memory_where_there_is_none() {
    let mut stage = Stage::new().file("a", "x").file("empty", "");
    stage.config.limits.hot_memory_bytes = 0;
    let server = stage.open();
    assert!(matches!(server.get("/a", &[]).await.raw, Body::File { .. }));
    let empty = server.get("/empty", &[]).await;
    assert!(matches!(empty.raw, Body::Empty));
    assert_eq!(empty.header("content-length"), Some("0"));
}

#[tokio::test]
async fn the_date_moves_while_the_rest_stays() {
    let server = Stage::new().file("a.txt", "hello").open();
    let first = server.get("/a.txt", &[]).await;
    server.clock.pass(Duration::from_secs(2));
    let second = server.get("/a.txt", &[]).await;
    assert_ne!(first.header("date"), second.header("date"));
    assert_eq!(first.header("etag"), second.header("etag"));
}

#[tokio::test]
async fn forgetting_looks_again_at_once() {
    let server = Stage::new().file("a.txt", "hello").open();
    server.get("/a.txt", &[]).await;
    fs::write(server.path("a.txt"), "other").unwrap();
    server.responder.files.forget();
    assert_eq!(server.get("/a.txt", &[]).await.text(), "other");
}

/// Its files are of this time, long settled.
fn age(server: &Server, name: &str) {
    let file = fs::File::options().write(true).open(server.path(name)).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
}

#[tokio::test]
async fn what_is_asked_for_once_takes_the_place_of_nothing_in_memory() {
    let mut stage = Stage::new();
    for number in 0..20 {
        stage = stage.file(&number.to_string(), [7; 4000]);
    }
    // Room for two of them.
    stage.config.limits.hot_memory_bytes = 11_000;
    let server = stage.open();
    for number in 0..20 {
        assert_eq!(server.get(&format!("/{number}"), &[]).await.body, [7; 4000]);
    }
    for (number, status) in [(0, 200), (1, 200), (2, 404), (19, 404)] {
        fs::remove_file(server.path(&number.to_string())).unwrap();
        assert_eq!(server.get(&format!("/{number}"), &[]).await.status, status, "{number}");
    }
    // The second time it is worth it.
    assert_eq!(server.get("/18", &[]).await.status, 200);
    fs::remove_file(server.path("18")).unwrap();
    assert_eq!(server.get("/18", &[]).await.status, 200);
}

#[tokio::test]
async fn a_file_has_one_tag_whether_it_is_remembered_or_met_again() {
    let mut stage = Stage::new();
    for number in 0..100 {
        stage = stage.file(&number.to_string(), [number; 20_000]);
    }
    // Room for a fifth of them.
    stage.config.limits.hot_memory_bytes = 400_000;
    let server = stage.open();
    (0..100).for_each(|number| age(&server, &number.to_string()));
    let mut tags = Vec::new();
    let mut from_files = Vec::new();
    for _ in 0..2 {
        for number in 0..100 {
            let reply = server.get(&format!("/{number}"), &[]).await;
            assert_eq!(reply.body, [number; 20_000]);
            tags.push(reply.header("etag").unwrap().to_owned());
            from_files.push(matches!(reply.raw, Body::File { .. }));
        }
    }
    assert_eq!(tags[..100], tags[100..]);
    // A file that is not worth memory goes from where it is, by the mark that is known.
    assert_eq!(
        [from_files[0], from_files[90], from_files[100], from_files[190]],
        [false, false, false, true]
    );
    let again = server.get("/90", &[&format!("If-None-Match: {}", tags[90])]).await;
    assert_eq!(again.status, 304);
    fs::write(server.path("91"), [1; 20_000]).unwrap();
    let changed = server.get("/91", &[]).await;
    assert_eq!(changed.body, [1; 20_000]);
    assert_ne!(changed.header("etag"), Some(&*tags[91]));
}

/// A file that is looked at again is not opened for that; what came in its place is.
#[tokio::test]
async fn whatever_takes_the_place_of_a_remembered_file_is_seen_after_the_period() {
    let stage = Stage::new().file("a.txt", "hello").file("b.txt", "other").file("d/x", "x");
    let server = stage.route(|route| route.symlinks = Symlinks::Never).open();
    let outside = server.folder.path().join("outside");
    fs::write(&outside, "hello").unwrap();
    ["a.txt", "b.txt"].iter().for_each(|name| age(&server, name));
    let first = server.get("/a.txt", &[]).await;
    server.clock.pass(PERIOD);
    let Body::Memory(second) = server.get("/a.txt", &[]).await.raw else { panic!() };
    assert!(matches!(&first.raw, Body::Memory(first) if first.as_ptr() == second.as_ptr()));
    fs::rename(server.path("b.txt"), server.path("a.txt")).unwrap();
    server.clock.pass(PERIOD);
    assert_eq!(server.get("/a.txt", &[]).await.text(), "other");
    server.clock.pass(PERIOD);
    fs::rename(server.path("a.txt"), server.path("c.txt")).unwrap();
    std::os::unix::fs::symlink("c.txt", server.path("a.txt")).unwrap();
    assert_eq!(server.get("/a.txt", &[]).await.status, 403, "a symlink, though to the same file");
    fs::remove_file(server.path("a.txt")).unwrap();
    fs::rename(server.path("c.txt"), server.path("a.txt")).unwrap();
    assert_eq!(server.get("/a.txt", &[]).await.text(), "other");
    server.clock.pass(PERIOD);
    fs::remove_file(server.path("a.txt")).unwrap();
    fs::rename(server.path("d"), server.path("a.txt")).unwrap();
    assert_eq!(server.get("/a.txt", &[]).await.status, 301);
}
