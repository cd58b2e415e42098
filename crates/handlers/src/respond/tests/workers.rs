//! Two workers with one route: what one finds out, the other answers by.

use std::fs;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kettle_runtime::encoder::EncoderPermits;
use kettle_runtime::metrics::WorkerMetrics;

use super::stage::{Server, Stage, set_modified};
use crate::files::handler::Files;
use crate::guard::Guards;
use crate::respond::Responder;

/// A server, and a second worker of it.
struct Two {
    server: Server,
    other: Responder,
}

impl Two {
    fn open(stage: Stage) -> Self {
        let limits = stage.config.limits.clone();
        let server = stage.open();
        let metrics = Arc::new(WorkerMetrics::default());
        let clock = server.clock.clone();
        let encoders = EncoderPermits::new(1, 4 << 20);
        let files = Files::with_clock(&limits, metrics, encoders, Box::new(clock));
        let spool = Arc::clone(&server.responder.spool);
        let other = Responder { files, guards: Guards::default(), pool: Rc::default(), spool };
        Self { server, other }
    }

    /// The answer of the first, or of the second.
    async fn get(&mut self, by_second: bool, target: &str) -> (u16, String) {
        if by_second {
            std::mem::swap(&mut self.server.responder, &mut self.other);
        }
        let reply = self.server.get(target, &[]).await;
        if by_second {
            std::mem::swap(&mut self.server.responder, &mut self.other);
        }
        (reply.status, String::from_utf8(reply.body).unwrap())
    }

    /// Both remember these, and only the first looks again.
    async fn remember(&mut self, targets: &[&str]) {
        for by_second in [false, true] {
            for target in targets {
                self.get(by_second, target).await;
            }
            // The second's are fresh for half of the time when the first's are over.
            self.server.clock.pass(Duration::from_millis(500));
        }
    }
}

fn stage() -> Stage {
    Stage::new().file("a", "old").file("b", "old").file("c", "same").file("docs/index.html", "docs")
}

fn ok(text: &str) -> (u16, String) {
    (200, text.to_owned())
}

#[tokio::test]
async fn what_one_worker_has_seen_no_other_answers_without() {
    let mut two = Two::open(stage());
    two.remember(&["/a", "/b", "/docs/"]).await;
    for name in ["a", "b"] {
        fs::write(two.server.path(name), "new").unwrap();
        set_modified(&two.server.path(name), 784_111_777);
    }
    fs::remove_file(two.server.path("docs/index.html")).unwrap();
    assert_eq!(two.get(true, "/a").await, ok("old"), "nobody has looked");
    assert_eq!(two.get(false, "/a").await, ok("new"));
    assert_eq!(two.get(true, "/a").await, ok("new"));
    assert_eq!(two.get(true, "/b").await, ok("new"), "of the same release");
    assert_eq!(two.get(true, "/docs/").await.0, 403);
}

#[tokio::test]
async fn what_is_gone_is_gone_for_all() {
    let mut two = Two::open(stage());
    two.remember(&["/a", "/docs/", "/docs"]).await;
    fs::remove_file(two.server.path("a")).unwrap();
    assert_eq!(two.get(false, "/a").await.0, 404);
    assert_eq!(two.get(true, "/a").await.0, 404);
    // It comes and goes once more.
    fs::write(two.server.path("a"), "again").unwrap();
    two.remember(&["/a"]).await;
    fs::remove_file(two.server.path("a")).unwrap();
    assert_eq!(two.get(false, "/a").await.0, 404);
    assert_eq!(two.get(true, "/a").await.0, 404);
    fs::remove_file(two.server.path("docs/index.html")).unwrap();
    assert_eq!(two.get(false, "/docs/").await.0, 403);
    assert_eq!(two.get(true, "/docs/").await.0, 403);
}

#[tokio::test]
async fn who_sees_a_file_for_the_first_time_tells_those_who_remember_another() {
    let mut two = Two::open(stage());
    for target in ["/a", "/b", "/c"] {
        two.get(true, target).await;
    }
    fs::write(two.server.path("a"), "new").unwrap();
    assert_eq!(two.get(true, "/a").await, ok("old"), "nobody has looked");
    assert_eq!(two.get(false, "/a").await, ok("new"));
    assert_eq!(two.get(true, "/a").await, ok("new"));
    two.get(true, "/b").await;
    two.get(true, "/c").await;
    fs::remove_file(two.server.path("b")).unwrap();
    let server = &two.server;
    fs::write(server.path("c"), "other").unwrap();
    assert_eq!(two.get(false, "/missing").await.0, 404);
    assert_eq!(two.get(true, "/c").await, ok("same"), "that something never was there is no news");
    assert_eq!(two.get(false, "/b").await.0, 404);
    assert_eq!(two.get(true, "/b").await.0, 404);
}

#[tokio::test]
async fn another_release_is_seen_by_all_at_once() {
    let mut two = Two::open(stage());
    two.remember(&["/a", "/b"]).await;
    let root = two.server.folder.path().join("root");
    fs::rename(&root, root.with_extension("old")).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "new").unwrap();
    assert_eq!(two.get(true, "/b").await, ok("old"));
    assert_eq!(two.get(false, "/a").await, ok("new"));
    assert_eq!(two.get(true, "/b").await.0, 404);
    assert_eq!(two.get(true, "/a").await, ok("new"));
}

#[tokio::test]
async fn a_discovery_is_told_once_and_the_rest_is_remembered_again() {
    let mut two = Two::open(stage());
    set_modified(&two.server.path("c"), 784_111_777);
    two.remember(&["/a", "/c"]).await;
    fs::write(two.server.path("a"), "new").unwrap();
    set_modified(&two.server.path("a"), 784_111_777);
    for _ in 0..2 {
        for by_second in [false, true] {
            assert_eq!(two.get(by_second, "/a").await, ok("new"));
            assert_eq!(two.get(by_second, "/c").await, ok("same"));
        }
    }
    // By what is remembered: nobody sees this within the time.
    fs::write(two.server.path("c"), "other").unwrap();
    for by_second in [false, true] {
        assert_eq!(two.get(by_second, "/c").await, ok("same"));
    }
}
