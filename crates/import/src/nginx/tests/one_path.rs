//! Locations for one path, and the routes that they become.

use super::*;

/// What a location says beside `root /srv`, and what its route says then.
#[test]
fn a_location_for_one_path_becomes_a_route_that_looks_for_nothing_else() {
    let closed = "deny = [\"0.0.0.0/0\", \"::/0\"]\naccess_log = \"off\"";
    for (words, expected) in [
        ("access_log off;", "root = \"/srv\"\nrewrite = [{ to = \"/a/b/a/b\" }]"),
        ("root /pub;", "root = \"/pub\"\nrewrite = [{ to = \"/a/b/a/b\" }]"),
        ("alias /pub/c;", "root = \"/pub\"\nrewrite = [{ to = \"/a/b/c\" }]"),
        ("deny 10.0.0.1;", "deny = [\"10.0.0.1/32\"]\nrewrite = [{ to = \"/a/b/a/b\" }]"),
        ("proxy_pass http://c;", "backend = \"c\"\nrewrite = [{ to = \"/a/b\" }]"),
        ("access_log off; proxy_pass http://c/a/b;", "access_log = \"off\""),
        (
            "access_log off; return 301 /d;",
            "redirect = [{ from = \"/a/b\", to = \"/d\", status = 301, keep_query = false }]",
        ),
        ("access_log off; return 200 ok;", closed),
        ("access_log off; stub_status;", closed),
        ("access_log off; fastcgi_pass e;", closed),
    ] {
        let made = imported(&server(&format!("root /srv; location = /a/b {{ {words} }}")));
        let routes = made.toml.split("[[site.route]]\n");
        let route = routes.into_iter().find(|route| route.starts_with("prefix = \"/a/b\"\n"));
        let route = route.unwrap_or_else(|| panic!("{words}\n{}", made.toml));
        assert!(route.contains(expected), "{words}\n{}", made.toml);
        assert_eq!(route.contains("access_log"), words.contains("access_log"), "{}", made.toml);
        made.config().unwrap();
    }
}

/// What a server says, where nobody could tell the path's own route from the one around it, or the file would be another's.
#[test]
fn other_locations_for_one_path_stay_with_the_route_around_them() {
    for words in [
        "root /srv; location = /b { }",
        "root /srv; access_log off; location = /b { access_log off; }",
        "root /srv; location = /b/ { access_log off; }",
        "root /srv; location / { try_files $uri /b; } location = /b { access_log off; }",
        "root /srv; rewrite ^/(.*)\\.x$ /$1.y last; location = /b { access_log off; }",
        "root /srv; error_page 404 /b; location = /b { access_log off; }",
    ] {
        let config = config(&server(words));
        let prefixes: Vec<&str> =
            config.sites[0].routes.iter().map(|route| route.prefix.as_str()).collect();
        assert_eq!(prefixes, ["/"], "{words}");
    }
    let made = imported(&server(
        "root /srv; location / { try_files $uri /b; } location = /b { access_log off; }",
    ));
    assert!(made.toml.contains("fallback = \"/b\""), "{}", made.toml);
}

/// nginx looks into a folder of its own there.
#[test]
fn what_has_no_root_is_not_passed_on() {
    let text = "location / { proxy_pass http://c; } location = /b { access_log off; }";
    let config = config(&server(text));
    let [whole, one] = &config.sites[0].routes[..] else { panic!("{config:?}") };
    assert!(whole.backend.is_some());
    assert_eq!((one.prefix.as_str(), one.deny.len()), ("/b", 2));
    assert_eq!(one.access_log, Some(LogTarget::Off));
}
