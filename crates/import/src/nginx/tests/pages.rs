//! Pages for errors.

use super::*;

/// The text of a server on pages for errors, and what they are. The route of a page asks what it asks of every request.
#[test]
fn a_page_for_errors_is_what_its_place_answers() {
    for (words, expected) in [
        ("error_page 404 /e.html;", "{ \"404\" = { route = \"/e.html\" } }"),
        ("error_page 404 403 /e.html;", "{ \"404\" = { route = \"/e.html\" }, \"403\" = { route"),
        ("error_page 404 =200 /e.html;", "{ \"404\" = { route = \"/e.html\", status = 200 } }"),
        (
            "error_page 401 =307 https://b.example/in;",
            "{ \"401\" = { redirect = \"https://b.example/in\", status = 307 } }",
        ),
        (
            "error_page 404 @e; location @e { return 404 no; }",
            "{ \"404\" = { route = \"/.named/e\", status = 404 } }",
        ),
        (
            "error_page 404 @e; location @e { return 410 no; }",
            "exact = \"/.named/e\"\nrespond = { status = 200, body = \"no\", type = \"text/plain\" }\ninternal = true\n",
        ),
        (
            "location /b/ { error_page 404 /e.html; proxy_intercept_errors on; proxy_pass http://a; }",
            "error_pages = { \"404\" = { route = \"/e.html\" } }\nintercept_errors = true\n",
        ),
        (
            "error_page 404 /e.html; location /b/ { error_page 404 /f.html; }",
            "{ route = \"/f.html\" }",
        ),
        // The first of two is what nginx takes.
        (
            "error_page 404 /e.html; error_page 404 /f.html;",
            "{ \"404\" = { route = \"/e.html\" } }",
        ),
        ("error_page 404 /$host.html;", "`error_page 404 /$host.html` is not carried over"),
        (
            "error_page 401 = @in; location @in { return 302 /in; }",
            "{ \"401\" = { redirect = \"/in\", status = 302 } }",
        ),
        (
            "error_page 403 =303 @in; location @in { return 302 https://b.example/; }",
            "{ \"403\" = { redirect = \"https://b.example/\", status = 303 } }",
        ),
        // A browser would not follow a 401.
        (
            "error_page 401 @in; location @in { return 302 /in; }",
            "`error_page 401 @in` is not carried over",
        ),
        ("error_page 302 /e.html;", "{ \"302\" = { route = \"/e.html\" } }"),
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        assert!(made.toml.contains(expected), "{words}\n{}", made.toml);
        made.config().unwrap();
    }
}
