//! Pages of other origins.

use super::guard::{asks_for_a_password, credentials, route};
use super::stage::{Server, Stage};

fn server(settings: &str) -> Server {
    let cors = route(settings).cors;
    asks_for_a_password(Stage::new().file("a", "x")).route(|route| route.cors = cors).open()
}

const SOME: &str = "cors = { origins = [\"https://app.test\", \"http://b.test:81\"], credentials = true, \
                    methods = [\"GET\", \"PUT\"], headers = [\"authorization\"], expose = [\"etag\"] }";

#[tokio::test]
async fn a_preflight_is_answered_without_a_password_and_without_a_file() {
    let server = server(SOME);
    for target in ["/a", "/none"] {
        let asked = ["Origin: http://b.test:81", "Access-Control-Request-Method: PUT"];
        let reply = server.ask("OPTIONS", target, &asked).await;
        assert_eq!(reply.status, 204);
        for (name, value) in [
            ("access-control-allow-origin", Some("http://b.test:81")),
            ("access-control-allow-methods", Some("GET, PUT")),
            ("access-control-allow-headers", Some("authorization")),
            ("access-control-allow-credentials", Some("true")),
            ("access-control-max-age", Some("600")),
            ("vary", Some("origin")),
            ("allow", None),
        ] {
            assert_eq!(reply.header(name), value, "{name}");
        }
    }
    let asked = ["Origin: https://evil.test", "Access-Control-Request-Method: PUT"];
    let reply = server.ask("OPTIONS", "/a", &asked).await;
    assert_eq!((reply.status, reply.header("vary")), (204, Some("origin")));
    assert!(!reply.head.contains("access-control"), "{}", reply.head);
    let reply = server.ask("OPTIONS", "/a", &["Origin: https://app.test"]).await;
    assert_eq!(reply.status, 401, "no preflight");
}

#[tokio::test]
async fn every_response_says_who_may_read_it() {
    let server = server(SOME);
    let right = credentials("ann:secret");
    let etag = server.get("/a", &[&right]).await.header("etag").unwrap().to_owned();
    let condition = format!("If-None-Match: {etag}");
    let origin = "Origin: https://app.test";
    for (fields, status) in
        [(&[origin, &*right][..], 200), (&[origin, &*right, &*condition], 304), (&[origin], 401)]
    {
        let reply = server.get("/a", fields).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.test"));
        assert_eq!(reply.header("access-control-expose-headers"), Some("etag"));
        assert_eq!(reply.header("vary"), Some("origin"));
    }
    for other in ["null", "https://app.test.evil", "https://app.test/", "HTTPS://app.test", "*"] {
        let reply = server.get("/a", &[&format!("Origin: {other}"), &right]).await;
        assert_eq!((reply.status, reply.header("vary")), (200, Some("origin")), "{other}");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{other}");
    }
    let reply = server.get("/a", &[&right]).await;
    assert_eq!(
        (reply.header("vary"), reply.header("access-control-allow-origin")),
        (Some("origin"), None)
    );
}

#[tokio::test]
async fn every_origin_is_a_star_and_varies_by_nothing() {
    let cors = route("cors = { origins = [\"*\"] }").cors;
    let server = Stage::new().file("a", "x").route(|route| route.cors = cors).open();
    let reply = server.get("/a", &["Origin: https://any.test"]).await;
    assert_eq!(
        (reply.header("access-control-allow-origin"), reply.header("vary")),
        (Some("*"), None)
    );
    assert_eq!(reply.header("access-control-allow-credentials"), None);
}
