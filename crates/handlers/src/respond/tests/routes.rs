//! Which route answers, what is asked before, and rewrites that lead from one to another.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::stage::{Server, Stage};

/// The usual files of a site.
pub(super) fn stage() -> Stage {
    Stage::new()
        .file("a.html", "a")
        .file("b/index.html", "b")
        .file("b/x.php", "php")
        .file("b/c/x", "c")
        .file("404.html", "own page")
}

/// A server whose site has these settings. Folders are those of the stage: `root` and `root/b`.
pub(super) fn server(settings: &str) -> Server {
    stage().settings(settings).open()
}

pub(super) async fn answer(server: &Server, target: &str) -> (u16, String) {
    let reply = server.get(target, &[]).await;
    (reply.status, reply.text().to_owned())
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
