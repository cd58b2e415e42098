//! The content in place of an error, the headers of responses that came by several routes, and queries of a rewrite.

use kettle_exchange::request::Request;
use kettle_http::h1::framing::BodyFraming;

use super::routes::server;
use super::stage::head;
use crate::respond::respond;

const PAGES: &str = r#"
    error_pages = { 404 = { route = "/404.html" }, 401 = { route = "/404.html" }, 405 = { route = "/404.html" } }
    [[site.route]]
    root = "root"
    headers = { X-Own = "1" }
    [[site.route]]
    exact = "/404.html"
    root = "root"
    internal = true
    headers = { X-Page = "1", X-Always = "2" }
    always = ["x-always"]
    [[site.route]]
    prefix = "/well"
    respond = { status = 404 }
    error_pages = { 404 = { route = "/b/", status = 200 } }
"#;

#[tokio::test]
async fn a_page_is_sent_whole_for_every_method() {
    let server = server(PAGES);
    let etag = server.get("/a.html", &[]).await.header("etag").unwrap().to_owned();
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PURGE"] {
        for field in ["x: 1", "range: bytes=0-1", "if-none-match: *", &format!("if-match: {etag}")]
        {
            let reply = server.ask(method, "/well/x?y=1", &[field]).await;
            let has_date = reply.header("last-modified").is_some();
            assert_eq!((reply.status, has_date), (200, true), "{method} {field}");
        }
    }
    for (method, status) in [("GET", 404), ("HEAD", 404), ("POST", 405), ("DELETE", 405)] {
        let reply = server.ask(method, "/none", &["range: bytes=0-1"]).await;
        assert_eq!(reply.status, status, "{method}");
        assert_eq!(reply.text(), if method == "HEAD" { "" } else { "own page" }, "{method}");
        let allow = (status == 405).then_some("GET, HEAD, OPTIONS");
        assert_eq!(reply.header("allow"), allow, "{method}");
        // The content of the page, and its route's words on errors.
        for (name, value) in [
            ("last-modified", None),
            ("accept-ranges", None),
            ("x-page", None),
            ("x-own", None),
            ("x-always", Some("2")),
            ("server", Some("kettle")),
        ] {
            assert_eq!(reply.header(name), value, "{method} {name}");
        }
        assert!(reply.header("etag").is_some());
    }
}

#[tokio::test]
async fn a_request_is_what_it_was_behind_its_page() {
    let server = server(PAGES);
    let text = "POST /none?y=1 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1\r\n\r\n";
    let mut request = Request::without_body(head(text), None);
    request.body.set_framing(BodyFraming::Length(9));
    let mut answer = respond(&server.responder, &server.router, &mut request).await;
    assert_eq!(answer.response_mut().unwrap().status, 405);
    assert_eq!(request.head.method().as_str(), "POST");
    assert_eq!(request.head.target().unwrap().query, Some("y=1"));
    assert!(request.head.header("range").is_some());
    assert_eq!(request.body.framing(), BodyFraming::Length(9));
}

#[tokio::test]
async fn what_keeps_clients_out_on_the_way_is_said_to_caches() {
    let server = server(
        r#"
        error_pages = { 404 = { route = "/shown/404.html" } }
        [[site.route]]
        prefix = "/in"
        deny = ["10.0.0.0/8"]
        rewrite = [{ to = "/out{rest}" }]
        cors = { origins = ["*"] }
        [[site.route]]
        prefix = "/unmarked"
        deny = ["10.0.0.0/8"]
        rewrite = [{ to = "/out{rest}" }]
        mark_private = false
        [[site.route]]
        prefix = "/worded"
        root = "root"
        deny = ["10.0.0.0/8"]
        headers = { Cache-Control = "{query:c}" }
        [[site.route]]
        prefix = "/out"
        root = "root"
        [[site.route]]
        prefix = "/read"
        rewrite = [{ to = "/open{rest}" }]
        [[site.route]]
        prefix = "/open"
        root = "root"
        cors = { origins = ["*"] }
        [[site.route]]
        prefix = "/shown"
        root = "root"
        allow = ["127.0.0.0/8"]
        [[site.route]]
        prefix = "/refused"
        deny = ["127.0.0.0/8"]
        mark_private = false
        "#,
    );
    for (target, status, control, origin) in [
        ("/in/a.html", 200, Some("private"), None),
        ("/unmarked/a.html", 200, None, None),
        // The operator's headers with words of the request hold, too, where they say anything.
        ("/worded/a.html?c=max-age=9", 200, Some("max-age=9"), None),
        ("/worded/a.html", 200, Some("private"), None),
        ("/worded/none", 404, Some("private"), None),
        ("/out/a.html", 200, None, None),
        // The route that has the file says who may read it.
        ("/read/a.html", 200, None, Some("*")),
        // The guard of the page's route, and the origins of the one that failed.
        ("/out/none", 404, Some("private"), None),
        ("/open/none", 404, Some("private"), Some("*")),
        ("/refused/", 403, None, None),
    ] {
        let reply = server.get(target, &["origin: https://a.test"]).await;
        assert_eq!((reply.status, reply.header("cache-control")), (status, control), "{target}");
        assert_eq!(reply.header("access-control-allow-origin"), origin, "{target}");
    }
}

#[tokio::test]
async fn a_rewrite_says_a_query() {
    let server = server(
        r#"
        [[site.before]]
        regex = '^/before/(.*)$'
        rewrite = [{ to = "/went?page={1}" }]
        [[site.route]]
        text_prefix = "/went"
        when = [{ query = "page", text = "a/b%26c%3D" }]
        respond = { body = "encoded" }
        [[site.route]]
        text_prefix = "/went"
        when = [{ of = "{query}", text = "page=1&y=%20" }]
        respond = { body = "both" }
        [[site.route]]
        text_prefix = "/went"
        when = [{ of = "{query}", text = "page=1" }]
        respond = { body = "own" }
        [[site.route]]
        text_prefix = "/went"
        when = [{ query = "page", regex = "." }]
        respond = { body = "other" }
        [[site.route]]
        text_prefix = "/went"
        respond = { body = "none" }
        [[site.route]]
        prefix = "/kept"
        rewrite = [{ from = "/kept/*", to = "/went?page={1}" }]
        [[site.route]]
        prefix = "/dropped"
        rewrite = [{ from = "/dropped/*", to = "/went?page={1}?" }]
        [[site.route]]
        prefix = "/bare"
        rewrite = [{ to = "/went?" }]
        [[site.route]]
        prefix = "/words"
        rewrite = [{ to = "/went?page={query:p}&{query}?" }]
        [[site.route]]
        prefix = "/plain"
        rewrite = [{ to = "/went" }]
        "#,
    );
    for (target, body) in [
        ("/before/a%26c=", "other"),
        ("/before/1", "own"),
        ("/before/1?y=%20", "both"),
        ("/before/a/b%26c%3D", "encoded"),
        ("/kept/1?y=%20", "both"),
        ("/kept/1?", "own"),
        ("/dropped/1?y=%20", "own"),
        ("/bare?page=1", "none"),
        ("/words?y=%20&p=1", "other"),
        ("/words?p=a/b%26c%3D&x", "encoded"),
        ("/plain?page=1", "own"),
        ("/went?page=1&y=%20", "both"),
    ] {
        let reply = server.get(target, &[]).await;
        assert_eq!((reply.status, reply.text()), (200, body), "{target}");
    }
}

/// As nginx's `$uri` and `$1` do, but for what a query is made of.
#[tokio::test]
async fn a_redirect_encodes_what_a_path_cannot_hold() {
    let server = server(
        r#"
        [[site.route]]
        prefix = "/p"
        redirect = [{ to = "https://a.test{rest}" }]
        [[site.route]]
        prefix = "/q"
        redirect = [{ to = "https://a.test/?p={rest}", keep_query = false }]
        "#,
    );
    for (target, location) in [
        ("/p/@me:a;b=c&d,e+f!$'()*?x=@", "https://a.test/@me:a%3Bb=c%26d,e%2Bf!$'()*?x=@"),
        (
            "/p/%20%22%3C%3E%23%25%3F%5B%5D%7B%7C%7D%C3%A9",
            "https://a.test/%20%22%3C%3E%23%25%3F%5B%5D%7B%7C%7D%C3%A9",
        ),
        ("/q/@a&b=c+d", "https://a.test/?p=/%40a%26b%3Dc%2Bd"),
    ] {
        let reply = server.get(target, &[]).await;
        assert_eq!(reply.header("location"), Some(location), "{target}");
    }
}
