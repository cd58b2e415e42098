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
    let (first, last) = (
        r#"
        [[site.before]]
        exact = "/early"
        respond = { status = 410 }
        [[site.before]]
        prefix = "/to"
        rewrite = [{ from = "/to/*", to = "/{1}" }]
        "#,
        r#"
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
        "#,
    );
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

/// Another program may read `/admin;x` as `/admin`. The word on that holds, also where a rewrite follows that would take it further.
#[tokio::test]
async fn what_is_refused_before_routes_is_refused_with_parameters_too() {
    let server = server(
        r#"
        [[site.before]]
        exact = "/admin"
        respond = { status = 403 }
        [[site.before]]
        rewrite = [{ from = "/**", to = "/b/{1}" }]
        [[site.route]]
        root = "root"
        "#,
    );
    for (target, status) in [("/admin", 403), ("/admin;x", 400), ("/c/x", 200), ("/c/x;y", 404)] {
        assert_eq!(server.get(target, &[]).await.status, status, "{target}");
    }
}

/// The time a response may be kept says nothing of who may have it, and a page's time is not that of the error.
#[tokio::test]
async fn times_take_away_no_guard_and_are_not_those_of_errors() {
    let server = server(
        r#"
        error_pages = { 403 = { redirect = "/login" }, 404 = { route = "/404.html" } }
        [[site.route]]
        root = "root"
        expires = "1h"
        allow = ["0.0.0.0/0", "::/0"]
        [[site.route]]
        prefix = "/closed"
        root = "root"
        expires = "1h"
        deny = ["0.0.0.0/0", "::/0"]
        [[site.route]]
        exact = "/404.html"
        root = "root"
        headers = { "Cache-Control" = "max-age=600" }
        "#,
    );
    for (target, status, control) in [
        ("/a.html", 200, Some("max-age=3600, private")),
        ("/closed/x", 302, Some("no-store")),
        ("/none", 404, Some("private")),
    ] {
        let reply = server.get(target, &[]).await;
        assert_eq!((reply.status, reply.header("cache-control")), (status, control), "{target}");
    }
}
