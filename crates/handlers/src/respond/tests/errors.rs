//! Refusals: their pages, their headers, and the methods they name.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use kettle_config::{Certificate, ClientAuth, ErrorPage, Located, Site};

use super::guard::route;
use super::stage::{Reply, Stage};

/// As long as what was looked at is believed.
const PERIOD: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_sites_own_page_is_looked_at_again_after_a_while() {
    let stage = Stage::new();
    let path = stage.folder.path().join("404.html");
    fs::write(&path, "first").unwrap();
    let pages = BTreeMap::from([(404, ErrorPage::File(Located::not_written(path.clone())))]);
    let server = stage.site(|site| site.error_pages = pages).open();
    assert_eq!(server.get("/none", &[]).await.text(), "first");
    fs::write(&path, "second").unwrap();
    assert_eq!(server.get("/none", &[]).await.text(), "first");
    server.clock.pass(PERIOD);
    let reply = server.get("/none", &[]).await;
    assert_eq!((reply.status, reply.text()), (404, "second"));
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    fs::remove_file(&path).unwrap();
    server.clock.pass(PERIOD);
    let reply = server.get("/none", &[]).await;
    assert!(reply.text().contains("Not Found"), "{}", reply.text());
    assert_eq!(server.ask("POST", "/none", &[]).await.status, 405, "has no page of its own");
}

#[tokio::test]
async fn what_an_error_needs_is_said_once() {
    let pair = |name: &str, value: &str| (name.to_owned(), vec![value.into()]);
    let fields = ["Allow", "Location", "Retry-After"].map(|name| pair(name, "theirs"));
    let limit = route("rate_limit = { requests = 1, period = \"1h\", burst = 3 }").rate_limit;
    let server = Stage::new()
        .file("in/index.html", "x")
        .route(|route| (route.headers, route.rate_limit) = (fields.to_vec(), limit))
        .open();
    for (method, status, name, said) in [
        ("PUT", 405, "allow", "GET, HEAD, OPTIONS"),
        ("OPTIONS", 204, "allow", "GET, HEAD, OPTIONS"),
        ("GET", 301, "location", "/in/"),
        ("GET", 429, "retry-after", "3600"),
    ] {
        let reply = server.ask(method, "/in", &[]).await;
        assert_eq!((reply.status, reply.header(name)), (status, Some(said)), "{method}");
    }
}

#[tokio::test]
async fn the_buffer_of_an_earlier_response_leaves_no_trace() {
    let server = Stage::new().file("a", "x").open();
    let text = "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let reply: Reply = server.send(text, None, false).await;
    assert!(!reply.head.contains("left over"), "{}", reply.head);
}

#[tokio::test]
async fn what_no_site_answers_gets_the_page_of_the_connections_site() {
    let mut stage = Stage::new();
    stage.config.sites[0].headers = vec![("X-Site".to_owned(), vec!["first".into()])];
    stage.config.sites.push(Site {
        names: vec![Located::not_written("other.example".to_owned())],
        certificates: vec![Certificate::default()],
        headers: vec![("X-Site".to_owned(), vec!["other".into()])],
        ..Site::default()
    });
    for (site, word) in stage.config.sites.iter_mut().zip(["first", "other"]) {
        let pages = [400, 404, 421].map(|status| {
            let path = stage.folder.path().join(format!("{word}{status}.html"));
            fs::write(&path, format!("{word} {status}")).unwrap();
            (status, ErrorPage::File(Located::not_written(path)))
        });
        site.error_pages = pages.into();
    }
    let server = Stage { folder: stage.folder, config: stage.config.clone() }.open();
    for (target, host, server_name, word, status) in [
        ("/%ff", "localhost", Some("localhost"), "first", 404),
        ("/..", "localhost", None, "first", 400),
        ("/%ff", "other.example", Some("other.example"), "other", 404),
        ("/..", "other.example", None, "other", 400),
        ("/", "other.example", Some("localhost"), "first", 421),
        ("/", "localhost", Some("other.example"), "other", 421),
        ("/%ff", "localhost", Some("other.example"), "other", 404),
    ] {
        let case = format!("{target} {host} {server_name:?}");
        let text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let reply = server.send(&text, server_name, false).await;
        assert_eq!((reply.status, reply.text()), (status, &*format!("{word} {status}")), "{case}");
        assert_eq!(reply.header("x-site"), Some(word), "{case}");
    }
    // A client that has shown no certificate learns nothing of a site that demands one.
    stage.config.sites[1].client_auth = Some(ClientAuth::default());
    let server = Stage { folder: server.folder, config: stage.config }.open();
    for target in ["/", "/%ff"] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: other.example\r\n\r\n");
        let reply = server.send(&text, Some("other.example"), false).await;
        assert!(!reply.text().contains("other") && reply.header("x-site").is_none());
    }
}
