//! Small texts that are compressed while they are asked for.

use std::fs;
use std::io::Read as _;
use std::time::Duration;

use flate2::read::GzDecoder;
use kettle_config::Coding;
use kettle_exchange::response::Body;

use super::guard::{asks_for_a_password, credentials};
use super::stage::{Reply, Stage, set_modified};

const GZIP: &str = "Accept-Encoding: gzip, br;q=0.5";

fn text() -> String {
    "a line of text\n".repeat(200)
}

fn compressing() -> Stage {
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    })
    .take(600)
    .collect();
    let stage = Stage::new()
        .file("a.txt", text())
        .file("a.png", text())
        .file("tiny.txt", "x".repeat(255))
        .file("noise.txt", noise);
    stage.route(|route| route.compress = vec![Coding::Zstd, Coding::Br, Coding::Gzip])
}

fn unpacked(reply: &Reply) -> String {
    let mut text = String::new();
    let body = &*reply.body;
    match reply.header("content-encoding") {
        Some("gzip") => GzDecoder::new(body).read_to_string(&mut text),
        Some("br") => brotli::Decompressor::new(body, body.len()).read_to_string(&mut text),
        Some("zstd") => zstd::Decoder::new(body).unwrap().read_to_string(&mut text),
        other => panic!("{other:?}"),
    }
    .unwrap();
    text
}

#[tokio::test]
async fn a_text_is_compressed_once_for_who_takes_it() {
    let server = compressing().open();
    let plain = server.get("/a.txt", &[]).await;
    assert_eq!((plain.text(), plain.header("content-encoding")), (&*text(), None));
    let first = server.get("/a.txt", &[GZIP]).await;
    assert_eq!((unpacked(&first), first.header("content-encoding")), (text(), Some("gzip")));
    assert_ne!(first.header("etag"), plain.header("etag"));
    for reply in [&plain, &first] {
        assert_eq!(reply.header("vary"), Some("accept-encoding"));
        assert_eq!(reply.header("content-length"), Some(&*reply.body.len().to_string()));
    }
    let second = server.get("/a.txt", &[GZIP]).await;
    let (Body::Memory(first), Body::Memory(second)) = (&first.raw, &second.raw) else { panic!() };
    assert_eq!(first.as_ptr(), second.as_ptr(), "remembered");
    for target in ["/a.png", "/tiny.txt", "/noise.txt"] {
        let reply = server.get(target, &[GZIP]).await;
        assert_eq!((reply.status, reply.header("content-encoding")), (200, None), "{target}");
    }
    let refused = server.get("/a.txt", &["Accept-Encoding: gzip;q=0"]).await;
    assert_eq!(refused.header("content-encoding"), None);
}

#[tokio::test]
async fn each_client_gets_the_form_it_ranks_highest() {
    let server = compressing().open();
    let mut tags = Vec::new();
    for (taken, given) in [
        ("gzip", "gzip"),
        ("br, gzip", "br"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0.1, br;q=0.2", "br"),
        ("zstd;q=0, *", "br"),
    ] {
        let reply = server.get("/a.txt", &[&format!("Accept-Encoding: {taken}")]).await;
        assert_eq!(reply.header("content-encoding"), Some(given), "{taken}");
        assert_eq!(unpacked(&reply), text(), "{taken}");
        tags.push(reply.header("etag").unwrap().to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
}

#[tokio::test]
async fn ranges_are_of_the_file_and_conditions_of_what_was_sent() {
    let server = compressing().open();
    let plain = server.get("/a.txt", &[]).await.header("etag").unwrap().to_owned();
    let packed = server.get("/a.txt", &[GZIP]).await.header("etag").unwrap().to_owned();
    let known = format!("If-None-Match: {packed}");
    assert_eq!(server.get("/a.txt", &[GZIP, &known]).await.status, 304);
    assert_eq!(server.get("/a.txt", &[&known]).await.status, 200);
    let part = server.get("/a.txt", &[GZIP, "Range: bytes=2-5"]).await;
    assert_eq!((part.status, part.text(), part.header("etag")), (206, "line", Some(&*plain)));
    assert_eq!(part.header("content-encoding"), None);
    let resumed = format!("If-Range: {packed}");
    let whole = server.get("/a.txt", &[GZIP, "Range: bytes=2-5", &resumed]).await;
    assert_eq!((whole.status, whole.text()), (200, &*text()));
    for fields in [&[GZIP][..], &[GZIP, "Range: bytes=2-5"]] {
        let head = server.ask("HEAD", "/a.txt", fields).await;
        assert_eq!(head.header("content-encoding"), Some("gzip"), "{fields:?}");
    }
}

#[tokio::test]
async fn no_range_is_of_what_was_compressed_here_where_siblings_are_looked_for_too() {
    let stage = compressing().file("b.txt", text()).file("b.txt.gz", "made before");
    let server = stage.route(|route| route.precompressed = vec![Coding::Gzip]).open();
    for known in [false, true] {
        let part = server.get("/a.txt", &[GZIP, "Range: bytes=2-5"]).await;
        assert_eq!((part.status, part.text()), (206, "line"), "{known}");
        let whole = server.get("/a.txt", &[GZIP]).await;
        assert_eq!(whole.header("content-encoding"), Some("gzip"), "{known}");
        let part = server.get("/b.txt", &[GZIP, "Range: bytes=0-3"]).await;
        assert_eq!((part.status, part.text()), (206, "made"), "{known}");
    }
}

#[tokio::test]
async fn a_date_that_two_forms_share_tells_nobody_which_one_he_has() {
    let stage = Stage::new().file("a.txt", text()).file("a.txt.gz", "made before");
    let server = stage.route(|route| route.precompressed = vec![Coding::Gzip]).open();
    for name in ["a.txt", "a.txt.gz"] {
        set_modified(&server.path(name), 784_111_777);
    }
    let packed = server.get("/a.txt", &[GZIP]).await;
    let resumed = format!("If-Range: {}", packed.header("last-modified").unwrap());
    assert_eq!(server.get("/a.txt", &["Range: bytes=2-5", &resumed]).await.status, 200);
}

#[tokio::test]
async fn a_sibling_on_disk_comes_first_and_a_change_is_seen() {
    let stage = compressing().file("a.txt.gz", "made before").file("b.html", text());
    let server = stage.route(|route| route.precompressed = vec![Coding::Br, Coding::Gzip]).open();
    assert_eq!(server.get("/a.txt", &[GZIP]).await.text(), "made before");
    assert_eq!(unpacked(&server.get("/b.html", &[GZIP]).await), text());
    fs::write(server.path("b.html"), text().to_uppercase()).unwrap();
    set_modified(&server.path("b.html"), 5);
    server.clock.pass(Duration::from_secs(60));
    assert_eq!(unpacked(&server.get("/b.html", &[GZIP]).await), text().to_uppercase());
    fs::remove_file(server.path("a.txt.gz")).unwrap();
    server.clock.pass(Duration::from_secs(60));
    assert_eq!(unpacked(&server.get("/a.txt", &[GZIP]).await), text());
}

#[tokio::test]
async fn nothing_compressed_is_shown_without_a_password() {
    let server = asks_for_a_password(compressing()).open();
    let right = credentials("ann:secret");
    assert_eq!(unpacked(&server.get("/a.txt", &[GZIP, &right]).await), text());
    assert_eq!(server.get("/a.txt", &[GZIP]).await.status, 401);
}
