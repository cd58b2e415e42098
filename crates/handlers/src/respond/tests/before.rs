//! Steps before routes, with ten thousand of them.

use super::routes::{answer, server};

/// There may be ten thousand, of which an index leaves out those that cannot be meant: the order of the file stays, and a path that a
/// rewrite made is held against what stands behind it alone.
#[tokio::test]
async fn ten_thousand_are_asked_before_routes_in_their_order() {
    let many: String = (0..10_000)
        .map(|number| {
            format!(
                "[[site.before]]\nexact = \"/many/{number}\"\nredirect = [{{ to = \"/at/{number}\" }}]\n"
            )
        })
        .collect();
    let first = r#"
        [[site.before]]
        exact = "/early"
        respond = { status = 410 }
        [[site.before]]
        prefix = "/to"
        rewrite = [{ from = "/to/*", to = "/{1}" }]
        "#;
    let last = r#"
        [[site.before]]
        prefix = "/many"
        respond = { status = 403 }
        [[site.before]]
        exact = "/again"
        rewrite = [{ to = "/late" }]
        [[site.before]]
        exact = "/late"
        respond = { body = "late" }
        [[site.route]]
        root = "root"
        "#;
    let server = server(&format!("{first}{many}{last}"));
    let redirect = server.get("/to/many", &[]).await;
    assert_eq!(redirect.status, 403);
    for number in [0, 5_000, 9_999] {
        let reply = server.get(&format!("/many/{number}"), &[]).await;
        assert_eq!(reply.header("location"), Some(&*format!("/at/{number}")));
    }
    for (target, expected) in [
        ("/early", (410, None)),
        ("/many/x", (403, None)),
        ("/to/again", (200, Some("late"))),
        ("/to/a.html", (200, Some("a"))),
        // It stands further to the front than the rewrite.
        ("/to/early", (404, None)),
    ] {
        let (status, text) = answer(&server, target).await;
        assert_eq!(status, expected.0, "{target}");
        assert!(expected.1.is_none_or(|body| body == text), "{target}: {text}");
    }
}

/// Each may say its path twice.
#[tokio::test]
async fn paths_that_rewrites_make_do_not_grow_without_end() {
    let doubles = "[[site.before]]\nrewrite = [{ to = \"/x{path}{path}\" }]\n".repeat(100);
    let server = server(&format!("{doubles}[[site.route]]\nroot = \"root\"\n"));
    assert_eq!(answer(&server, "/a.html").await.0, 414);
}
