//! Which route answers, what is asked before, and rewrites that lead from one to another.

use kettle_config::{Located, parse};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::stage::{Reply, Server, Stage};

/// A server whose site has these settings. Folders are those of the stage: `root` and `root/b`.
pub(super) fn server(settings: &str) -> Server {
    let stage = Stage::new()
        .file("a.html", "a")
        .file("b/index.html", "b")
        .file("b/x.php", "php")
        .file("b/c/x", "c")
        .file("404.html", "own page");
    let folder = stage.folder.path().join("root");
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"localhost\"]\n\
         self_signed = true\n{settings}\n"
    );
    let mut site = parse(&text, "kettle.toml".as_ref()).unwrap().sites.remove(0);
    for route in &mut site.routes {
        let root = route.root.take().map(|root| folder.join(root.value.file_name().unwrap()));
        let root = root.map(|root| if root.ends_with("root") { folder.clone() } else { root });
        route.root = root.map(Located::not_written);
    }
    stage.site(|own| *own = site).open()
}

pub(super) async fn answer(server: &Server, target: &str) -> (u16, String) {
    let reply = server.get(target, &[]).await;
    (reply.status, reply.text().to_owned())
}

#[tokio::test]
async fn each_kind_of_place_finds_its_files() {
    let server = server(
        r#"
        [[site.route]]
        root = "root"
        [[site.route]]
        prefix = "/whole"
        root = "b"
        [[site.route]]
        text_prefix = "/b/c"
        respond = { body = "text" }
        [[site.route]]
        exact = "/b/c/x"
        root = "root"
        [[site.route]]
        regex = '\.php$'
        respond = { status = 403 }
        [[site.route]]
        regex = '^/b/(x|y)'
        root = "root"
        "#,
    );
    for (target, status, body) in [
        ("/a.html", 200, "a"),
        ("/whole/index.html", 200, "b"),
        // Of expressions the first in the file answers, whatever `root` stands there.
        ("/b/x.php", 403, ""),
        ("/whole/x.php", 403, ""),
        ("/b/cd", 200, "text"),
        ("/b/c/x", 200, "c"),
        ("/b/c/x/y", 200, "text"),
        ("/b/", 200, "b"),
    ] {
        let (found, text) = answer(&server, target).await;
        assert_eq!(found, status, "{target}");
        assert!(text.contains(body), "{target}: {text}");
    }
}

#[tokio::test]
async fn an_answer_that_stands_in_the_file_is_for_every_method() {
    let server = server(
        r#"
        [[site.route]]
        respond = { status = 202, body = "<ok>", type = "text/html" }
        headers = { X-A = "1" }
        [[site.route]]
        prefix = "/gone"
        respond = { status = 410 }
        [[site.route]]
        prefix = "/empty"
        respond = { status = 204 }
        "#,
    );
    for method in ["GET", "POST", "OPTIONS", "BREW"] {
        let reply = server.ask(method, "/", &[]).await;
        assert_eq!((reply.status, reply.text()), (202, "<ok>"), "{method}");
        let fields = (reply.header("content-type"), reply.header("x-a"));
        assert_eq!(fields, (Some("text/html"), Some("1")));
    }
    assert!(server.get("/gone", &[]).await.text().contains("410"));
    assert_eq!(answer(&server, "/empty").await, (204, String::new()));
}

#[tokio::test]
async fn a_condition_chooses_and_its_guard_stays() {
    let server = server(
        r#"
        [[site.route]]
        root = "root"
        [[site.route]]
        prefix = "/b"
        when = [{ header = "x-canary", text = "1" }]
        respond = { body = "canary" }
        [[site.route]]
        prefix = "/b"
        root = "b"
        [[site.route]]
        prefix = "/closed"
        when = [{ method = ["GET"] }]
        allow = ["0.0.0.0/0"]
        respond = { body = "open" }
        [[site.route]]
        prefix = "/closed"
        deny = ["0.0.0.0/0", "::/0"]
        "#,
    );
    assert_eq!(answer(&server, "/b/").await, (200, "b".to_owned()));
    assert_eq!(server.get("/b/", &["x-canary: 1"]).await.text(), "canary");
    // The compared path is read as a server would, with the same conditions.
    assert_eq!(server.get("/b/;x", &["x-canary: 1"]).await.text(), "canary");
    assert_eq!(server.get("/closed", &[]).await.text(), "open");
    assert_eq!(server.ask("POST", "/closed", &[]).await.status, 403);
}

/// The path of another route is looked for below this one's folder, and what asks this one is asked.
#[tokio::test]
async fn a_rewrite_may_stay_in_its_route() {
    let server = server(
        r#"
        [[site.route]]
        regex = '^/j/(.*)$'
        root = "root"
        rewrite = [{ to = "/b/{1}", stay = true }]
        deny_files = ["*.php"]
        [[site.route]]
        prefix = "/b"
        deny = ["0.0.0.0/0"]
        [[site.route]]
        prefix = "/fixed"
        root = "b"
        rewrite = [{ to = "/fixed/x.php", stay = true }]
        "#,
    );
    for (target, status, body) in [
        ("/b/x.php", 403, ""),
        ("/j/c/x", 200, "c"),
        ("/j/x.php", 403, ""),
        ("/j/none", 404, ""),
        ("/j/..%2fa.html", 404, ""),
        ("/j/c/x;/../../a", 404, ""),
        ("/fixed/any", 200, "php"),
    ] {
        let (found, text) = answer(&server, target).await;
        assert_eq!((found, text.contains(body)), (status, true), "{target}: {text}");
    }
}

#[tokio::test]
async fn a_rewrite_leads_to_another_route_which_asks_what_it_asks() {
    let server = server(
        r#"
        [[site.route]]
        root = "root"
        rewrite = [{ regex = '^/article/(?<name>\w+)$', to = "/b/{name}" }, { from = "/in", to = "/closed/x" }]
        [[site.route]]
        prefix = "/b"
        root = "b"
        [[site.route]]
        prefix = "/closed"
        root = "b"
        deny = ["0.0.0.0/0"]
        [[site.route]]
        prefix = "/once"
        rewrite = [{ to = "/twice{rest}" }]
        [[site.route]]
        prefix = "/twice"
        rewrite = [{ to = "/once{rest}" }]
        [[site.route]]
        prefix = "/1"
        rewrite = [{ to = "/2" }]
        [[site.route]]
        prefix = "/2"
        redirect = [{ to = "/there" }]
        "#,
    );
    let reply = server.get("/article/c", &[]).await;
    assert_eq!((reply.status, reply.header("location")), (301, Some("/b/c/")));
    assert_eq!(answer(&server, "/article/index").await.0, 404);
    assert_eq!(answer(&server, "/in").await.0, 403);
    let reply = server.get("/once/x", &[]).await;
    assert_eq!((reply.status, reply.notes.refusal), (500, Some("rewrite_loop")));
    let reply = server.get("/1", &[]).await;
    assert_eq!((reply.status, reply.header("location")), (302, Some("/there")));
}

#[tokio::test]
async fn ten_steps_are_taken_and_no_more() {
    for (steps, status) in [(10, 200), (11, 500)] {
        let step = |it: usize| {
            format!("[[site.route]]\nexact = \"/{it}\"\nrewrite = [{{ to = \"/{}\" }}]\n", it + 1)
        };
        let settings: String = (0..steps).map(step).collect();
        let last =
            format!("[[site.route]]\nexact = \"/{steps}\"\nrespond = {{ body = \"end\" }}\n");
        assert_eq!(answer(&server(&(settings + &last)), "/0").await.0, status, "{steps}");
    }
}

#[tokio::test]
async fn what_is_said_before_routes_comes_first() {
    let server = server(
        r#"
        [[site.before]]
        when = [{ header = "user-agent", regex = "(?i)bot" }]
        respond = { status = 403 }
        [[site.before]]
        regex = '^/page/(\d+)$'
        redirect = [{ to = "/p/{1}", status = 301 }]
        [[site.before]]
        prefix = "/old"
        rewrite = [{ to = "/b{rest}" }]
        [[site.before]]
        exact = "/b/teapot"
        respond = { status = 418, body = "short and stout" }
        [[site.before]]
        exact = "/drop"
        respond = { close = true }
        [[site.route]]
        root = "root"
        [[site.route]]
        prefix = "/b"
        root = "b"
        "#,
    );
    assert_eq!(server.get("/a.html", &["user-agent: GoodBot"]).await.status, 403);
    assert_eq!(answer(&server, "/a.html").await, (200, "a".to_owned()));
    let reply = server.get("/page/12", &[]).await;
    assert_eq!((reply.status, reply.header("location")), (301, Some("/p/12")));
    assert_eq!(answer(&server, "/old/").await, (200, "b".to_owned()));
    // A path that a rewrite made is held against the rest.
    assert_eq!(answer(&server, "/old/teapot").await, (418, "short and stout".to_owned()));
    assert!(server.closes("/drop").await);
    assert!(!server.closes("/b/").await);
}

#[tokio::test]
async fn errors_of_answers_have_the_page_of_the_site() {
    let stage = Stage::new().file("page", "own page");
    let page = stage.folder.path().join("root/page");
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"localhost\"]\nself_signed = true\n\
         error_pages = {{ 403 = \"{}\" }}\n[[site.before]]\nprefix = \"/x\"\nrespond = {{ status = 403 }}\n\
         [[site.route]]\nrespond = {{ status = 403 }}\n",
        page.display()
    );
    let site = parse(&text, "kettle.toml".as_ref()).unwrap().sites.remove(0);
    let server = stage.site(|own| *own = site).open();
    for target in ["/", "/x"] {
        assert_eq!(server.get(target, &[]).await.text(), "own page", "{target}");
    }
}

#[tokio::test]
async fn paths_are_tried_in_order() {
    let server = server(
        r#"
        [[site.route]]
        root = "root"
        try = ["{path}", "{path}.html", "{path}/"]
        [[site.route]]
        regex = '^/user/(\w+)/(?<last>.*)$'
        root = "root"
        try = ["/{1}/{last}"]
        [[site.route]]
        prefix = "/app"
        root = "root"
        try = ["{path}"]
        fallback = "/a.html"
        [[site.route]]
        prefix = "/front"
        root = "root"
        try = ["{path}"]
        fallback = "/index.php"
        [[site.route]]
        exact = "/front/index.php"
        respond = { body = "front controller" }
        [[site.route]]
        text_prefix = "/alias/"
        root = "b"
        strip_prefix = true
        [[site.route]]
        exact = "/b/index.html"
        respond = { body = "the index is routed again" }
        "#,
    );
    for (target, status, body) in [
        ("/a.html", 200, "a"),
        ("/a", 200, "a"),
        // A folder gets its slash, and its index file is another route's.
        ("/b", 301, ""),
        ("/b/", 200, "the index is routed again"),
        ("/b/c", 301, ""),
        ("/b/c/", 403, ""),
        ("/none", 404, ""),
        ("/user/b/c/x", 200, "c"),
        ("/user/b/none", 404, ""),
        // A path that was tried is not the one that was asked for.
        ("/b/c/x", 200, "c"),
        ("/app/c", 200, "a"),
        ("/front/any/thing", 200, "front controller"),
        ("/alias/c/x", 200, "c"),
        ("/alias/", 200, "b"),
        ("/aliasc/x", 404, ""),
    ] {
        for _ in 0..2 {
            let (found, text) = answer(&server, target).await;
            assert_eq!(found, status, "{target}");
            assert!(text.contains(body), "{target}: {text}");
        }
    }
}

#[tokio::test]
async fn errors_lead_to_routes_and_elsewhere() {
    let server = server(
        r#"
        error_pages = { 404 = { route = "/404.html" }, 405 = { redirect = "/allowed{path}", status = 303 }, 410 = { route = "/none" } }
        [[site.route]]
        root = "root"
        [[site.route]]
        exact = "/404.html"
        root = "root"
        internal = true
        [[site.route]]
        prefix = "/own"
        root = "b"
        error_pages = { 404 = { route = "/b/", status = 200 } }
        [[site.route]]
        prefix = "/gone"
        respond = { status = 410 }
        [[site.route]]
        prefix = "/to"
        rewrite = [{ to = "/404.html" }]
        "#,
    );
    for (target, status, body) in [
        ("/nothing", 404, "own page"),
        // It is there for errors only.
        ("/404.html", 404, "own page"),
        ("/own/nothing", 200, "b"),
        // An error page that fails is the built-in one.
        ("/gone", 410, "410"),
        ("/to", 200, "own page"),
    ] {
        let (found, text) = answer(&server, target).await;
        assert_eq!((found, text.contains(body)), (status, true), "{target}: {text}");
    }
    // The page is sent whole: a range was meant for what is not there.
    let reply = server.get("/nothing", &["range: bytes=0-1"]).await;
    assert_eq!((reply.status, reply.text()), (404, "own page"));
    let reply = server.ask("DELETE", "/a.html", &[]).await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/allowed/a.html")));
    assert!(reply.header("allow").is_none());
}

#[tokio::test]
async fn responses_say_until_when_and_errors_have_the_headers_that_are_meant_for_them() {
    let server = server(
        r#"
        headers = { X-Site = "1" }
        [[site.route]]
        root = "root"
        expires = "1h"
        headers = { X-Good = "1", X-All = "1", Cache-Control = "private" }
        always = ["x-all"]
        [[site.route]]
        prefix = "/b"
        root = "b"
        expires = "epoch"
        headers = { X-Good = "1" }
        "#,
    );
    let good = server.get("/a.html", &[]).await;
    let lines = |reply: &Reply, name: &str| {
        let name = format!("{name}: ");
        reply.head.lines().filter_map(|it| it.strip_prefix(&*name)).map(str::to_owned).collect()
    };
    let controls: Vec<String> = lines(&good, "cache-control");
    assert_eq!(controls, ["max-age=3600", "private"]);
    assert!(good.header("expires").unwrap().ends_with("GMT"));
    assert_eq!((good.header("x-good"), good.header("x-site")), (Some("1"), Some("1")));
    let bad = server.get("/none", &[]).await;
    let sent = ["x-good", "x-site", "x-all"].map(|name| bad.header(name));
    assert_eq!((bad.status, sent), (404, [None, None, Some("1")]));
    assert_eq!(bad.header("expires"), None);
    // A route without the list has all of them on its errors.
    let bad = server.get("/b/none", &[]).await;
    assert_eq!((bad.status, bad.header("x-good")), (404, Some("1")));
    let over = server.get("/b/", &[]).await;
    assert_eq!(over.header("expires"), Some("Thu, 01 Jan 1970 00:00:01 GMT"));
    assert_eq!(over.header("cache-control"), Some("no-cache"));
    // A copy that a client has still is asked about again.
    let tag = format!("if-none-match: {}", over.header("etag").unwrap());
    assert_eq!(server.get("/b/", &[&tag]).await.status, 304);
}

/// Of two routes of a place, the one that is asked is left by an index file that is another route's, whatever the other one says.
#[tokio::test]
async fn an_index_file_is_not_kept_by_a_route_whose_conditions_do_not_hold() {
    let server = server(
        r#"
        [[site.route]]
        prefix = "/b"
        first = true
        when = [{ header = "x-a" }]
        root = "b"
        [[site.route]]
        prefix = "/b"
        root = "b"
        [[site.route]]
        regex = 'html$'
        respond = { status = 403 }
        "#,
    );
    assert_eq!(server.get("/b/", &[]).await.status, 403);
    assert_eq!(server.get("/b/", &["x-a: 1"]).await.status, 200);
}

#[tokio::test]
async fn nothing_goes_on_with_the_host_of_a_redirect() {
    let server = server(
        r#"
        [[site.route]]
        text_prefix = "/old"
        redirect = [{ to = "https://example.org{rest}" }]
        "#,
    );
    assert_eq!(server.get("/old.evil.test/", &[]).await.status, 400);
    let reply = server.get("/old/x", &[]).await;
    assert_eq!(reply.header("location"), Some("https://example.org/x"));
}

/// Where slashes in a row are refused nothing else is, and what they would lead to is not asked.
#[test]
fn double_slashes_are_refused_and_all_else_is_as_without() {
    let routes = r#"
        [[site.before]]
        rewrite = [{ regex = "^/old(.*)$", to = "/b/{1}" }]
        [[site.before]]
        when = [{ of = "{path}", regex = "^/a" }]
        respond = { status = 403 }
        [[site.route]]
        prefix = "/"
        root = "root"
        [[site.route]]
        prefix = "/b"
        respond = { status = 200, body = "b" }
    "#;
    let strict = server(&format!("refuse_double_slashes = true\n{routes}"));
    let merging = server(routes);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ask = |server: &Server, target: &str| runtime.block_on(answer(server, target)).0;
    for target in
        ["//b", "/b//x", "/.//b", "/x/..//b", "/old//x", "https://localhost//b", "//", "/b//"]
    {
        assert_eq!(ask(&strict, target), 400, "{target}");
        assert_ne!(ask(&merging, target), 400, "{target}");
    }
    for target in ["/b/%2F/x", "/b%2F%2Fx"] {
        assert_eq!(ask(&strict, target), 400, "{target}");
    }
    for (target, status) in [("/b?//", 200), ("/old/x", 404), ("/oldx", 200), ("/a.html", 403)] {
        assert_eq!(ask(&strict, target), status, "{target}");
    }
    let pieces = ["/", "//", ".", "..", "%2F", "%2f", "%252F", "b", "a.html", "old", "?", ";"];
    let targets = prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..10);
    let outcome = TestRunner::new(Config::with_cases(2000)).run(&targets, |pieces| {
        let target = format!("/{}", pieces.concat());
        let path = target.split('?').next().unwrap_or_default();
        let has_run = path.replace("%2F", "/").replace("%2f", "/").contains("//");
        let expected = if has_run { 400 } else { ask(&merging, &target) };
        prop_assert_eq!(ask(&strict, &target), expected, "{}", target);
        Ok(())
    });
    outcome.unwrap();
}
