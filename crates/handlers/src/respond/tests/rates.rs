//! Clients that ask too much.

use super::guard::route;
use super::stage::Stage;

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
