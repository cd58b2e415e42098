//! What is remembered, and when it is looked at again.

use std::fs;
use std::time::Duration;

use super::stage::Stage;
use crate::response::Body;

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
async fn a_change_is_seen_after_the_period() {
    let server = Stage::new().file("a.txt", "hello").open();
    let before = server.get("/a.txt", &[]).await;
    fs::write(server.path("a.txt"), "other").unwrap();
    server.clock.pass(PERIOD - Duration::from_millis(1));
    assert_eq!(server.get("/a.txt", &[]).await.text(), "hello");
    server.clock.pass(Duration::from_millis(1));
    let after = server.get("/a.txt", &[]).await;
    assert_eq!(after.text(), "other");
    assert_ne!(after.header("etag"), before.header("etag"));
}

#[tokio::test]
async fn a_removed_file_is_gone_after_the_period() {
    let server = Stage::new().file("a.txt", "hello").open();
    assert_eq!(server.get("/a.txt", &[]).await.status, 200);
    fs::remove_file(server.path("a.txt")).unwrap();
    server.clock.pass(PERIOD);
    assert_eq!(server.get("/a.txt", &[]).await.status, 404);
}

#[tokio::test]
async fn a_file_that_appears_is_seen_at_once() {
    let server = Stage::new().open();
    assert_eq!(server.get("/a.txt", &[]).await.status, 404);
    fs::write(server.path("a.txt"), "hello").unwrap();
    assert_eq!(server.get("/a.txt", &[]).await.status, 200);
}

#[tokio::test]
async fn a_file_replaced_by_rename_is_seen_after_the_period() {
    let mut stage = Stage::new().file("a.bin", [1; 100]).file("b.bin", [2; 100]);
    stage.config.limits.hot_file_bytes = 10;
    let server = stage.open();
    assert_eq!(server.get("/a.bin", &[]).await.body, [1; 100]);
    fs::rename(server.path("b.bin"), server.path("a.bin")).unwrap();
    assert_eq!(server.get("/a.bin", &[]).await.body, [1; 100], "the open file is still whole");
    server.clock.pass(PERIOD);
    assert_eq!(server.get("/a.bin", &[]).await.body, [2; 100]);
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

#[tokio::test]
async fn a_better_sibling_that_appears_is_seen_after_the_period() {
    let all = vec![kettle_config::Coding::Br, kettle_config::Coding::Gzip];
    let server = Stage::new()
        .file("a.css", "plain")
        .file("a.css.gz", "gz")
        .route(|route| route.precompressed = all)
        .open();
    let fields = &["Accept-Encoding: gzip, br"];
    assert_eq!(server.get("/a.css", fields).await.header("content-encoding"), Some("gzip"));
    fs::write(server.path("a.css.br"), "br").unwrap();
    server.clock.pass(PERIOD);
    let reply = server.get("/a.css", fields).await;
    assert_eq!((reply.header("content-encoding"), reply.text()), (Some("br"), "br"));
    assert_eq!(server.get("/a.css", &[]).await.text(), "plain");
    let lines = &["Accept-Encoding: identity;q=0.1", "Accept-Encoding: gzip;q=0.5, br"];
    assert_eq!(server.get("/a.css", lines).await.text(), "br", "all lines count");
    let gzip = server.get("/a.css", &["Accept-Encoding: br;q=0, gzip"]).await;
    assert_eq!((gzip.header("vary"), gzip.text()), (Some("accept-encoding"), "gz"));
}
