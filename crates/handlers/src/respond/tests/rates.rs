//! Clients that ask too much.

use std::time::Duration;

use super::guard::{asks_for_a_password, credentials, route};
use super::stage::Stage;

#[tokio::test]
async fn who_asks_too_much_gets_429_until_time_has_passed() {
    let limit = route("rate_limit = { requests = 6, period = \"1m\", burst = 2 }").rate_limit;
    let server = Stage::new().file("a", "x").route(|route| route.rate_limit = limit).open();
    for (method, target, status) in
        [("GET", "/a", 200), ("OPTIONS", "/none", 204), ("HEAD", "/a", 429)]
    {
        assert_eq!(server.ask(method, target, &[]).await.status, status, "{method}");
    }
    let reply = server.get("/a", &[]).await;
    assert_eq!((reply.header("retry-after"), reply.notes.refusal), (Some("10"), Some("rate")));
    server.clock.pass(Duration::from_secs(10));
    assert_eq!(server.get("/a", &[]).await.status, 200);
    assert_eq!(server.get("/a", &[]).await.status, 429);
    let text = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let reply = server.send_from([192, 0, 2, 1].into(), text, None, false).await;
    assert_eq!(reply.status, 200, "another client");
}

#[tokio::test]
async fn passwords_are_not_checked_beyond_the_limit() {
    let limit = route("rate_limit = { requests = 1, period = \"1h\", burst = 1 }").rate_limit;
    let stage = asks_for_a_password(Stage::new().file("a", "x"));
    let server = stage.route(|route| route.rate_limit = limit).open();
    assert_eq!(server.get("/a", &[&credentials("ann:wrong")]).await.status, 401);
    assert_eq!(server.get("/a", &[&credentials("ann:secret")]).await.status, 429);
}

#[tokio::test]
async fn a_response_holds_its_place_until_it_is_sent() {
    let settings = "rate_limit = { requests = 100, burst = 100, concurrent = 1 }";
    let limit = route(settings).rate_limit;
    let server = Stage::new().file("a", "x").route(|route| route.rate_limit = limit).open();
    let first = server.get("/a", &[]).await;
    assert_eq!((first.status, server.get("/a", &[]).await.status), (200, 429));
    drop(first);
    assert_eq!(server.get("/a", &[]).await.status, 200);
}

/// A rewrite leads from one limited route to another: the request is among those of both until it is sent.
#[tokio::test]
async fn a_response_holds_its_place_in_each_route_that_led_to_it() {
    let one = "rate_limit = { requests = 100, burst = 100, concurrent = 1 }";
    let stage = Stage::new().file("x", "x").site(|site| {
        let root = site.routes[0].root.clone();
        let from = |text: &str| kettle_config::Route { root: root.clone(), ..route(text) };
        let rewrite = "rewrite = [{ from = \"/a/*\", to = \"/b/{1}\" }]";
        let first = from(&format!("prefix = \"/a\"\n{rewrite}\n{one}"));
        site.routes = vec![first, from(&format!("prefix = \"/b\"\n{one}")), from("prefix = \"/\"")];
    });
    let server = stage.open();
    let through_both = server.get("/a/x", &[]).await;
    assert_eq!(through_both.status, 200);
    for target in ["/a/none", "/b/x"] {
        assert_eq!(server.get(target, &[]).await.status, 429, "{target}");
    }
    drop(through_both);
    for target in ["/a/x", "/b/x"] {
        assert_eq!(server.get(target, &[]).await.status, 200, "{target}");
    }
}

/// One request is one request to each limit, however often it comes by: as with nginx, the page of its error is none.
#[tokio::test]
async fn a_request_is_counted_once_with_the_page_of_its_error() {
    let limit = "rate_limit = { requests = 1, period = \"1h\", burst = 1, concurrent = 1 }\n\
                 [site.route.error_pages]\n404 = { route = \"/404.html\" }\n429 = { route = \"/429.html\" }";
    let stage = Stage::new().file("404.html", "not there").file("429.html", "too much");
    let stage = stage.route(|own| {
        let limited = route(limit);
        (own.rate_limit, own.error_pages) = (limited.rate_limit, limited.error_pages);
    });
    let server = stage.open();
    for (status, page) in [(404, "not there"), (429, "too much"), (429, "too much")] {
        let reply = server.get("/none", &[]).await;
        assert_eq!((reply.status, reply.text()), (status, page));
    }
}
