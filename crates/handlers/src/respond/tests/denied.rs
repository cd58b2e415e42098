//! Files that a route denies: by each spelling of their path, and in place of another path.

use std::fs;

use kettle_config::{Coding, Route};

use super::guard::route;
use super::stage::{Server, Stage};

fn stage(patterns: &str) -> Stage {
    let Route { deny_files, .. } = route(&format!("deny_files = [{patterns}]\n"));
    let stage = Stage::new()
        .file("a.txt", "x")
        .file(".git/config", "secret")
        .file("docs/a.bak", "secret")
        .file("docs/page.html", "page")
        .file("index.html", "shell");
    stage.route(|route| {
        (route.deny_files, route.dotfiles) = (deny_files, true);
        route.fallback = Some("/index.html".to_owned());
    })
}

async fn statuses(server: &Server, targets: &[&str]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for target in targets {
        statuses.push(server.get(target, &[]).await.status);
    }
    statuses
}

#[tokio::test]
async fn a_denied_file_gets_403_by_each_spelling_there_or_not() {
    let server = stage("\".*\", \"*.bak\"").open();
    for target in [
        "/.git/config",
        "/%2egit/config",
        "/%2Egit/none",
        "//.git//config",
        "/./.git/./config",
        "/docs/../.git/config",
        "/.git;x/config",
        "/a;x/.git/config;y",
        "/.git/",
        "/.GIT/config",
        "/docs/a.bak",
        "/docs/a.BAK",
        "/docs/a.bak/",
        "/docs/a.bak;x",
        "/docs/a.bak?x",
        "/docs/a.bak/below",
        "/none.b%61k",
        "/.well-known/x",
    ] {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let reply = server.ask(method, target, &[]).await;
            let refused = (reply.status, reply.notes.refusal);
            assert_eq!(refused, (403, Some("file")), "{method} {target}");
            assert_eq!(reply.header("etag"), None, "{target}");
            assert_eq!(reply.header("cache-control"), Some("no-store"), "{target}");
        }
    }
    for target in ["/a.txt", "/a.bakery", "/docs/page.html", "/none", "/a.txt/x.y"] {
        let reply = server.get(target, &[]).await;
        assert_eq!((reply.status, reply.header("cache-control")), (200, None), "{target}");
    }
}

#[tokio::test]
async fn a_pattern_with_a_slash_goes_by_the_whole_path() {
    let server = stage("\"/**.bak\", \"/docs/**\", \"**/.**\", \"/exact\"").open();
    let denied = ["/docs/a.bak", "/x.bak", "/x.bak/", "/docs/page.html", "/docs/", "/exact/"];
    assert_eq!(statuses(&server, &denied).await, [403; 6]);
    assert_eq!(statuses(&server, &["/.git/config", "/x/.y", "/.z/"]).await, [403; 3]);
    assert_eq!(statuses(&server, &["/x.bak/below", "/exact/x", "/a.txt"]).await, [200; 3]);
    assert_eq!(statuses(&server, &["/docs"]).await, [301]);
}

#[tokio::test]
async fn a_denied_file_answers_for_no_other_path() {
    let server = stage("\"index.html\"").open();
    // The folder's index, and the fallback.
    assert_eq!(statuses(&server, &["/", "/none", "/a.txt"]).await, [403, 403, 200]);
    fs::remove_file(server.path("index.html")).unwrap();
    assert_eq!(statuses(&server, &["/", "/none"]).await, [403, 403]);

    let Route { rewrites, .. } = route("rewrite = [{ from = \"/new/*\", to = \"/docs/{1}\" }]");
    let server = stage("\"*.bak\"").route(|route| route.rewrites = rewrites).open();
    let reply = server.get("/new/a.bak", &[]).await;
    assert_eq!((reply.status, reply.notes.refusal), (403, Some("file")));
    assert_eq!(server.get("/new/page.html", &[]).await.text(), "page");
    let Route { rewrites, .. } = route("rewrite = [{ from = \"/b/*\", to = \"/docs/{1}.bak\" }]");
    let server = stage("\"*.bak\"").route(|route| route.rewrites = rewrites).open();
    let reply = server.get("/b/a", &[]).await;
    assert_eq!((reply.status, reply.notes.refusal), (403, Some("file")));
}

#[tokio::test]
async fn compressed_forms_go_with_their_file() {
    let packed = |patterns| {
        let stage = stage(patterns).file("a.txt.gz", "packed").file("docs/a.bak.gz", "secret");
        stage.route(|route| route.precompressed = vec![Coding::Gzip]).open()
    };
    let server = packed("\"*.bak\"");
    assert_eq!(statuses(&server, &["/docs/a.bak.gz", "/docs/a.bak.gz/"]).await, [403; 2]);
    let encoding = ["Accept-Encoding: gzip"];
    assert_eq!(server.get("/docs/a.bak", &encoding).await.status, 403);
    assert_eq!(server.get("/a.txt", &encoding).await.text(), "packed");
    let server = packed("\"*.gz\"");
    assert_eq!(server.get("/a.txt", &encoding).await.text(), "x");
    assert_eq!(statuses(&server, &["/a.txt.gz"]).await, [403]);
}

#[tokio::test]
async fn a_listing_leaves_denied_files_out() {
    let server = stage("\"*.bak\"").route(|route| route.listing = true).open();
    let reply = server.get("/docs/", &["Accept: application/json"]).await;
    assert!(reply.text().contains("page.html"), "{}", reply.text());
    assert!(!reply.text().contains("a.bak"), "{}", reply.text());
}
