//! The file that answers where there is none.

use std::fs;
use std::time::Duration;

use kettle_config::Coding;

use super::stage::Stage;

fn application() -> Stage {
    Stage::new()
        .file("index.html", "shell")
        .file("app.js", "code")
        .file("docs/index.html", "docs")
        .file("bare/file", "x")
        .route(|route| route.fallback = Some("/index.html".to_owned()))
}

#[tokio::test]
async fn the_fallback_is_a_file_like_any_other() {
    let server = application().open();
    let reply = server.get("/users/7", &[]).await;
    let etag = reply.header("etag").unwrap().to_owned();
    assert_eq!(server.get("/index.html", &[]).await.header("etag"), Some(&*etag));
    let known = format!("If-None-Match: {etag}");
    assert_eq!(server.get("/users/8", &[&known]).await.status, 304);
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
