//! RFC 9110 §13: what the client has already, and what it wants only if nothing changed.

use super::stage::{Server, Stage, set_modified};

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

async fn server() -> (Server, String) {
    let server = Stage::new().file("a.txt", "hello").open();
    set_modified(&server.path("a.txt"), 784_111_777);
    let etag = server.get("/a.txt", &[]).await.header("etag").unwrap().to_owned();
    (server, etag)
}

#[tokio::test]
async fn a_tag_the_client_has_gets_304_without_a_body() {
    let (server, etag) = server().await;
    for value in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
        let reply = server.get("/a.txt", &[&format!("If-None-Match: {value}")]).await;
        assert_eq!(reply.status, 304, "{value}");
        assert!(reply.body.is_empty());
        assert_eq!(reply.header("etag"), Some(etag.as_str()));
        assert_eq!(reply.header("content-length"), None);
        assert_eq!(reply.header("content-type"), None);
    }
}

#[tokio::test]
async fn another_tag_gets_the_file_even_if_the_date_fits() {
    let (server, _) = server().await;
    let since = format!("If-Modified-Since: {MODIFIED}");
    let reply = server.get("/a.txt", &["If-None-Match: \"other\"", &since]).await;
    assert_eq!((reply.status, reply.text()), (200, "hello"));
}

#[tokio::test]
async fn a_date_the_client_has_gets_304() {
    let (server, _) = server().await;
    let ask = |date| format!("If-Modified-Since: {date}");
    assert_eq!(server.get("/a.txt", &[&ask(MODIFIED)]).await.status, 304);
    assert_eq!(server.get("/a.txt", &[&ask(EARLIER)]).await.status, 200);
    assert_eq!(server.get("/a.txt", &[&ask("nonsense")]).await.status, 200);
}

#[tokio::test]
async fn a_condition_that_fails_gets_412() {
    let (server, etag) = server().await;
    for field in ["If-Match: \"other\"".to_owned(), format!("If-Unmodified-Since: {EARLIER}")] {
        let reply = server.get("/a.txt", &[&field]).await;
        assert_eq!(reply.status, 412, "{field}");
        assert_ne!(reply.text(), "hello");
    }
    for field in [format!("If-Match: {etag}"), format!("If-Unmodified-Since: {MODIFIED}")] {
        assert_eq!(server.get("/a.txt", &[&field]).await.status, 200, "{field}");
    }
}

#[tokio::test]
async fn head_gets_the_head_of_get_and_no_body() {
    let (server, etag) = server().await;
    let get = server.get("/a.txt", &[]).await;
    let head = server.ask("HEAD", "/a.txt", &[]).await;
    assert_eq!(head.head, get.head);
    assert!(head.body.is_empty());
    let unchanged = server.ask("HEAD", "/a.txt", &[&format!("If-None-Match: {etag}")]).await;
    assert_eq!(unchanged.status, 304);
}
