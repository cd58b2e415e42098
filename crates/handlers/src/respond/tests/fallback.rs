//! The file that answers where there is none.

use std::fs;
use std::time::Duration;

use kettle_config::Coding;

use super::stage::{Server, Stage};

fn application() -> Stage {
    Stage::new()
        .file("index.html", "shell")
        .file("app.js", "code")
        .file("docs/index.html", "docs")
        .file("bare/file", "x")
        .route(|route| route.fallback = Some("/index.html".to_owned()))
}

#[tokio::test]
async fn what_is_not_there_gets_the_fallback_and_what_is_there_does_not() {
    let server = application().open();
    for (target, text) in [
        ("/", "shell"),
        ("/users/7", "shell"),
        ("/missing.js?v=1", "shell"),
        ("/app.js/below", "shell"),
        ("/bare/", "shell"),
        ("/.hidden", "shell"),
        ("/app.js", "code"),
        ("/docs/", "docs"),
    ] {
        let reply = server.get(target, &[]).await;
        assert_eq!((reply.status, reply.text()), (200, text), "{target}");
    }
    assert_eq!(server.get("/docs", &[]).await.status, 301);
    assert_eq!(server.get("/%2e%2e/x", &[]).await.status, 400);
    assert_eq!(server.ask("POST", "/users/7", &[]).await.status, 405);
}

#[tokio::test]
async fn the_fallback_is_a_file_like_any_other() {
    let server = application().open();
    let reply = server.get("/users/7", &[]).await;
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    let etag = reply.header("etag").unwrap().to_owned();
    assert_eq!(server.get("/index.html", &[]).await.header("etag"), Some(&*etag));
    let known = format!("If-None-Match: {etag}");
    assert_eq!(server.get("/users/8", &[&known]).await.status, 304);
    let part = server.get("/users/9", &["Range: bytes=1-2"]).await;
    assert_eq!((part.status, part.text()), (206, "he"));
    assert_eq!(server.get("/users/9", &["Range: bytes=9-"]).await.status, 416);
    let head = server.ask("HEAD", "/users/7", &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("5")));
    assert!(head.body.is_empty());
}

#[tokio::test]
async fn a_compressed_fallback_is_sent_to_who_takes_it() {
    let stage = application().file("index.html.gz", "packed");
    let server = stage.route(|route| route.precompressed = vec![Coding::Gzip]).open();
    let reply = server.get("/users/7", &["Accept-Encoding: gzip"]).await;
    assert_eq!((reply.text(), reply.header("content-encoding")), ("packed", Some("gzip")));
    assert_eq!(server.get("/users/7", &[]).await.text(), "shell");
}

#[tokio::test]
async fn a_missing_fallback_is_404_and_a_new_one_is_seen() {
    let server = application().open();
    let path = server.path("index.html");
    fs::remove_file(&path).unwrap();
    assert_eq!(server.get("/users/7", &[]).await.status, 404);
    assert_eq!(server.get("/index.html", &[]).await.status, 404);
    fs::create_dir(&path).unwrap();
    assert_eq!(server.get("/users/7", &[]).await.status, 404);
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "new shell").unwrap();
    assert_eq!(server.get("/users/7", &[]).await.text(), "new shell");
    fs::write(&path, "newer").unwrap();
    server.clock.pass(Duration::from_secs(60));
    assert_eq!(server.get("/users/7", &[]).await.text(), "newer");
}

#[tokio::test]
async fn a_listed_folder_is_listed_and_the_fallback_lies_below_the_root() {
    let stage = application().route(|route| {
        route.listing = true;
        route.prefix = Some("/app".to_owned());
    });
    let server: Server = stage.open();
    assert!(server.get("/app/bare/", &[]).await.text().contains("file"));
    assert_eq!(server.get("/app/none", &[]).await.text(), "shell");
    assert_eq!(server.get("/none", &[]).await.status, 404, "no route");
}
