//! A root whose path comes to name another folder, or none.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::stage::{Server, Stage};

const PERIOD: Duration = Duration::from_secs(1);

/// A server whose root is a symlink to `releases/1`, beside which lies `releases/2`.
fn releases() -> Server {
    let mut stage = Stage::new();
    stage.config.limits.hot_file_bytes = 10;
    let path = |name: &str| stage.folder.path().join(name);
    fs::remove_dir(path("root")).unwrap();
    for release in ["1", "2"] {
        fs::create_dir_all(path("releases").join(release).join("sub")).unwrap();
        for name in ["page", "style", "sub/file", release] {
            let content = format!("{name} {release}");
            fs::write(path("releases").join(release).join(name), content).unwrap();
        }
        let large = format!("large in release {release}");
        fs::write(path("releases").join(release).join("large"), large).unwrap();
    }
    symlink("releases/1", path("root")).unwrap();
    stage.route(|route| route.listing = true).open()
}

/// Makes the root name another release, as careful programs do.
fn switch(server: &Server, release: &str) {
    let next = server.folder.path().join("next");
    let root = server.folder.path().join("root");
    symlink(format!("releases/{release}"), &next).unwrap();
    fs::rename(next, root).unwrap();
}

async fn text(server: &Server, target: &str) -> String {
    let reply = server.get(target, &[]).await;
    assert_eq!(reply.status, 200, "{target}");
    reply.text().to_owned()
}

#[tokio::test]
async fn a_changed_symlink_is_seen_after_the_period() {
    let server = releases();
    for (target, content) in [("/page", "page"), ("/large", "large in release")] {
        assert_eq!(text(&server, target).await, format!("{content} 1"));
        switch(&server, "2");
        assert_eq!(text(&server, target).await, format!("{content} 1"), "within the period");
        server.clock.pass(PERIOD);
        assert_eq!(text(&server, target).await, format!("{content} 2"));
        switch(&server, "1");
        server.clock.pass(PERIOD);
        assert_eq!(text(&server, target).await, format!("{content} 1"));
    }
}

#[tokio::test]
async fn the_old_release_can_be_removed_at_once() {
    let server = releases();
    assert_eq!(text(&server, "/page").await, "page 1");
    switch(&server, "2");
    fs::remove_dir_all(server.folder.path().join("releases/1")).unwrap();
    assert_eq!(text(&server, "/style").await, "style 2", "not looked for before");
    assert_eq!(server.get("/sub", &[]).await.status, 301);
    assert_eq!(server.get("/1", &[]).await.status, 404);
}

#[tokio::test]
async fn what_only_the_new_release_has_is_found_at_once_and_ends_the_old_one() {
    let server = releases();
    for target in ["/page", "/style"] {
        text(&server, target).await;
    }
    switch(&server, "2");
    assert_eq!(text(&server, "/2").await, "2 2");
    assert_eq!(text(&server, "/page").await, "page 2");
    assert_eq!(text(&server, "/style").await, "style 2");
}

#[tokio::test]
async fn files_remembered_at_different_times_are_looked_at_together() {
    let server = releases();
    text(&server, "/page").await;
    server.clock.pass(PERIOD / 2);
    text(&server, "/style").await;
    switch(&server, "2");
    server.clock.pass(PERIOD / 2);
    assert_eq!(text(&server, "/page").await, "page 2");
    assert_eq!(text(&server, "/style").await, "style 2");
}

#[tokio::test]
async fn a_listing_is_of_the_release_there_is_now() {
    let server = releases();
    assert!(text(&server, "/").await.contains("./1\""));
    switch(&server, "2");
    let page = text(&server, "/").await;
    assert!(page.contains("./2\"") && !page.contains("./1\""), "{page}");
}

#[tokio::test]
async fn a_listing_of_a_new_release_ends_the_old_one() {
    let server = releases();
    text(&server, "/page").await;
    switch(&server, "2");
    assert!(text(&server, "/").await.contains("./2\""));
    assert_eq!(text(&server, "/page").await, "page 2", "no client goes back to the old one");
}

#[tokio::test]
async fn a_folder_put_in_place_of_another_is_seen_after_the_period() {
    let server = Stage::new().file("a", "old").open();
    assert_eq!(text(&server, "/a").await, "old");
    let root = server.folder.path().join("root");
    fs::rename(&root, server.folder.path().join("away")).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "new").unwrap();
    assert_eq!(text(&server, "/a").await, "old");
    server.clock.pass(PERIOD);
    assert_eq!(text(&server, "/a").await, "new");
}

#[tokio::test]
async fn a_root_that_is_gone_for_a_while_is_served_again_when_it_is_back() {
    let server = Stage::new().file("a", "a").route(|route| route.listing = true).open();
    let root = server.folder.path().join("root");
    let away = server.folder.path().join("away");
    assert_eq!(text(&server, "/a").await, "a");
    for _ in 0..2 {
        fs::rename(&root, &away).unwrap();
        server.clock.pass(PERIOD);
        for target in ["/a", "/", "/none"] {
            assert_eq!(server.get(target, &[]).await.status, 404, "{target}");
        }
        fs::rename(&away, &root).unwrap();
        assert_eq!(text(&server, "/a").await, "a", "nobody waits for the period");
        text(&server, "/").await;
    }
    fs::remove_dir_all(&root).unwrap();
    fs::write(&root, "a file").unwrap();
    server.clock.pass(PERIOD);
    assert_eq!(server.get("/a", &[]).await.status, 404);
}

#[tokio::test]
async fn a_body_goes_on_from_the_release_it_began_with() {
    let server = releases();
    let before = server.get("/large", &[]).await;
    switch(&server, "2");
    fs::remove_dir_all(server.folder.path().join("releases/1")).unwrap();
    server.clock.pass(PERIOD);
    assert_eq!(text(&server, "/large").await, "large in release 2");
    let kettle_exchange::response::Body::File { file, .. } = &before.raw else {
        panic!("not from a file")
    };
    assert!(file.path().unwrap().ends_with("releases/1/large (deleted)"));
}
