//! Settings of a route that contradict each other, and too many of them.

use crate::assert_found;

#[test]
fn pages_of_other_origins_are_told_one_thing() {
    assert_found(&[(
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { Access-Control-Max-Age = "1" }
[[site.route]]
root = "/srv"
cors = { origins = ["*"], credentials = true }"#,
        r#"kettle.toml:7:8: Access-Control-Max-Age is among the headers as well
 7 | cors = { origins = ["*"], credentials = true }
   |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: remove it from the headers
kettle.toml:7:41: every origin with credentials: any page could read what its visitor may see
 7 | cors = { origins = ["*"], credentials = true }
   |                                         ^^^^
help: write the origins that are meant, or credentials = false"#,
    )]);
}

#[test]
fn a_fallback_is_a_file_of_its_own_route() {
    assert_found(&[(
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
fallback = "/in/index.html"
[[site.route]]
prefix = "/in"
root = "/in"
fallback = "/in/index.html""#,
        r#"kettle.toml:6:12: /in/index.html belongs to the route of /in
 6 | fallback = "/in/index.html"
   |            ^^^^^^^^^^^^^^^^
help: write a file of this route"#,
    )]);
}

#[test]
fn a_rewrite_looks_for_a_path_of_its_own_route() {
    assert_found(&[(
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
rewrite = [{ from = "/x", to = "/in/x" }, { from = "/y", to = "/inner" }, { from = "/**", to = "/in/{1}" }]
[[site.route]]
prefix = "/in/"
root = "/in"
rewrite = [{ from = "/in/x", to = "/in/y" }]"#,
        r#"kettle.toml:6:32: /in/x belongs to the route of /in/
 6 | rewrite = [{ from = "/x", to = "/in/x" }, { from = "/y", to = "/inner" }, { from = "/**", to = "/in/{1}" }]
   |                                ^^^^^^^
help: write a path of this route"#,
    )]);
}

#[test]
fn patterns_that_each_request_is_held_against_are_few() {
    let many = |stars: &str| {
        let rules =
            (0..101).map(|number| format!("{{ from = \"/{number}{stars}\", to = \"/x\" }}"));
        format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nredirect = [{}]",
            rules.collect::<Vec<_>>().join(", ")
        )
    };
    let found = crate::shown(&many("*"));
    assert!(found.contains("101 patterns with stars are too many for each request"), "{found}");
    assert_eq!(crate::shown(&many("")), "nothing");
    let denied = |stars: &str| {
        let patterns = (0..101).map(|number| format!("\"{number}{stars}\""));
        let patterns = patterns.collect::<Vec<_>>().join(", ");
        crate::shown(&format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\ndeny_files = [{patterns}]"
        ))
    };
    assert!(denied("*").contains("101 patterns with stars are too many for each request"));
    assert_eq!(denied(""), "nothing");
}

fn with_rewrites(rewrites: &str) -> String {
    crate::shown(&format!(
        "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nprefix = \"/a\"\nroot = \"/srv\"\n{rewrites}"
    ))
}

#[test]
fn a_rewrite_stays_below_its_prefix() {
    for (to, is_refused) in [("/a", false), ("/a/b", false), ("/ab", true), ("/b", true)] {
        let shown =
            with_rewrites(&format!("[[site.route.rewrite]]\nfrom = \"/a/*\"\nto = \"{to}\"\n"));
        assert_eq!(shown.contains("only what lies below the prefix"), is_refused, "{to}: {shown}");
    }
}

#[test]
fn patterns_with_stars_are_counted() {
    for (count, is_refused) in [(100, false), (101, true)] {
        let rewrite =
            |number| format!("[[site.route.rewrite]]\nfrom = \"/a/{number}/*\"\nto = \"/a\"\n");
        let shown = with_rewrites(&(0..count).map(rewrite).collect::<String>());
        assert_eq!(shown.contains("patterns with stars are too many"), is_refused, "{shown}");
    }
}
