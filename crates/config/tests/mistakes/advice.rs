//! Advice on routes whose patterns are read by what they may fit; `cases` has all other advice.

use std::path::Path;

/// Returns the number of pieces of advice on a text without mistakes.
fn advised(text: &str) -> Option<usize> {
    let parsed = kettle_config::parse(text, Path::new("kettle.toml"));
    Some(kettle_config::advice(&parsed.ok()?).len())
}

#[test]
fn patterns_fit_paths_of_their_route() {
    let with = |from: &str| {
        format!(
            "[[listener]]\naddress = \"0.0.0.0:1\"\n[[site]]\nnames = [\"_\"]\nself_signed = true\n\
             [[site.route]]\nprefix = \"/app/\"\nroot = \"/srv\"\nredirect = [{{ from = \"{from}\", to = \"/b\" }}]\n\
             [[site.route.rewrite]]\nfrom = \"{from}\"\nto = \"/app/c\"\n"
        )
    };
    for from in ["/app", "/app/x", "/app/*", "/**.php", "/ap?/x", "/app*", "/a**", "/*/x"] {
        assert_eq!(advised(&with(from)), Some(0), "{from}");
    }
    for from in ["/ap", "/apple", "/ap/**", "/b**", "/application/?"] {
        assert_eq!(advised(&with(from)), Some(2), "{from}");
    }
}

#[test]
fn what_takes_paths_from_a_guarded_route_is_named() {
    let with = |first: &str, taker: &str| {
        format!(
            "[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
             [[site.route]]\nprefix = \"/in\"\nroot = \"/srv\"\nallow = [\"10.0.0.0/8\"]\n{first}\n[[site.route]]\nroot = \"/srv\"\n{taker}\n"
        )
    };
    for (first, taker, count) in [
        ("first = true", "regex = 'php$'", 0),
        ("", "regex = '^/other'", 0),
        ("", "regex = '^/in/x'", 1),
        ("", "regex = '^/i.*'", 1),
        ("", "regex = '^/inn?'", 1),
        ("", "regex = '^/other|x'", 1),
        ("", "regex = 'php$'\nallow = [\"10.0.0.0/8\"]", 0),
        ("", "regex = 'php$'\ndeny = [\"0.0.0.0/0\", \"::/0\"]", 0),
        ("first = true", "prefix = \"/in\"\nregex = 'php$'", 1),
        ("", "exact = \"/in/x\"", 1),
        ("", "exact = \"/inn\"", 0),
        ("", "text_prefix = \"/in/x\"", 1),
        // Whole segments say what is meant.
        ("", "prefix = \"/in/x\"", 0),
    ] {
        assert_eq!(advised(&with(first, taker)), Some(count), "{first} {taker}");
    }
}
