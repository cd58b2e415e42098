//! Locations for one path, and the routes that they become.

use super::guards::left;
use super::*;

/// What a location says beside `root /srv`, and what its route says then.
#[test]
fn a_location_for_one_path_becomes_a_route_that_looks_for_nothing_else() {
    let closed = "deny = [\"0.0.0.0/0\", \"::/0\"]\naccess_log = \"off\"";
    for (words, expected) in [
        (
            "access_log off;",
            "root = \"/srv\"\ndeny_files = [\"/a/b/a/b-\"]\nrewrite = [{ from = \"/a/b\", to = \"/a/b/a/b\" }, { to = \"/a/b/a/b-\" }]",
        ),
        (
            "root /pub;",
            "root = \"/pub\"\ndeny_files = [\"/a/b/a/b-\"]\nrewrite = [{ from = \"/a/b\", to = \"/a/b/a/b\" }, { to = \"/a/b/a/b-\" }]",
        ),
        (
            "alias /pub/c;",
            "root = \"/pub\"\ndeny_files = [\"/a/b/c-\"]\nrewrite = [{ from = \"/a/b\", to = \"/a/b/c\" }, { to = \"/a/b/c-\" }]",
        ),
        (
            "deny 10.0.0.1;",
            "deny = [\"10.0.0.1/32\"]\ndeny_files = [\"/a/b/a/b-\"]\nrewrite = [{ from = \"/a/b\", to = \"/a/b/a/b\" }, { to = \"/a/b/a/b-\" }]",
        ),
        (
            "proxy_pass http://c;",
            "backend = \"c\"\ndeny_files = [\"/a/b/**\"]\nrewrite = [{ to = \"/a/b\" }]",
        ),
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

/// nginx compares such a prefix as a text, and a kettle.toml would take it for a pattern.
#[test]
fn a_prefix_with_letters_of_patterns_means_them() {
    let made = imported(&server("root /srv; location /a(b)*c { deny all; }"));
    assert!(made.toml.contains("prefix = \"/a%28b%29%2Ac\""), "{}", made.toml);
    let config = made.config().unwrap();
    assert!(
        config.sites[0].routes.iter().any(|route| route.prefix.as_deref() == Some("/a(b)*c")),
        "{}",
        made.toml
    );
    // The names that begin so.
    assert!(made.toml.contains("deny_files = [\"/a(b)?c**\"]"), "{}", made.toml);
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
        let prefixes: Vec<&str> = config.sites[0]
            .routes
            .iter()
            .map(|route| route.prefix.as_deref().unwrap_or("/"))
            .collect();
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
    assert_eq!((one.prefix.as_deref().unwrap_or("/"), one.deny.len()), ("/b", 2));
    assert_eq!(one.access_log, Some(LogTarget::Off));
}

/// A location for a prefix that is the name of a file, and what its route says.
#[test]
fn a_prefix_that_names_a_file_looks_for_that_file() {
    for (words, expected) in [
        (
            "location /b.html { deny 10.0.0.1; }",
            "root = \"/srv\"\nallow = [\"0.0.0.0/0\", \"::/0\"]\ndeny = [\"10.0.0.1/32\"]\ndeny_files = [\"/b.html/b.html-\"]\nrewrite = [{ from = \"/b.html\", to = \"/b.html/b.html\" }, { to = \"/b.html/b.html-\" }]",
        ),
        (
            "location /x { alias /srv/b.html; access_log off; }",
            "root = \"/srv\"\ndeny_files = [\"/x/b.html-\"]\nrewrite = [{ from = \"/x\", to = \"/x/b.html\" }, { to = \"/x/b.html-\" }]",
        ),
    ] {
        let mut machine = Files::with("/srv/b.html", "");
        machine.0.insert("/etc/nginx/nginx.conf".into(), server(&format!("root /srv; {words}")));
        let made = import_file(Path::new("/etc/nginx/nginx.conf"), &machine).unwrap();
        assert!(made.toml.contains(expected), "{words}\n{}", made.toml);
        made.config().unwrap();
    }
}

/// Beside `satisfy any` and a password: what else is said of who may ask, and whether a password is asked for, or nobody let in.
#[test]
fn a_network_that_is_enough_needs_no_password() {
    for (words, [asks, is_closed]) in [
        ("allow all;", [false, false]),
        ("", [true, false]),
        ("allow 10.0.0.0/8;", [false, true]),
        ("allow 10.0.0.0/8; deny all;", [false, true]),
        ("allow 10.0.0.0/8; allow all;", [false, true]),
    ] {
        let guards = format!("satisfy any; {words} auth_basic x; auth_basic_user_file users;");
        let config = config(&server(&format!("root /srv; location /a/ {{ {guards} }}")));
        let route = config.sites[0].routes.iter().find(|it| it.prefix.as_deref() == Some("/a"));
        let found = [
            route.is_some_and(|it| it.basic_auth.is_some()),
            route.is_some_and(|it| !it.deny.is_empty()),
        ];
        assert_eq!(found, [asks, is_closed], "{words}");
    }
}

/// A route is for all that lies below its path, so that one path of it cannot be closed; but a folder's is a redirect.
#[test]
fn one_path_is_not_answered_as_what_lies_below_it() {
    let below = "location /b/ { proxy_pass http://a; }";
    let all = "location / { proxy_pass http://a; }";
    let file = "location /there/key { expires 1h; }";
    for (around, words, expected) in [
        ("location /b { proxy_pass http://a; }", "= /b { deny all; }", "/-/b** /b>-/b /open"),
        (below, "= /b { deny all; }", "/ /b>-/b /open"),
        (below, "= /b { deny 1.2.3.4; }", "/ /b>-/b /open"),
        (below, "= /b { return 200 ok; }", "/ /b>-/b /open"),
        (below, "= /b/ { deny all; }", "/ /b>-/b/ /open"),
        (below, "= /b { deny 1.2.3.4; proxy_pass http://a; }", "/ /b>-/b /open"),
        (below, "= /b { deny host.example; proxy_pass http://a; }", "/ /b>-/b /open"),
        (below, "= /b { limit_except GET { deny all; } proxy_pass http://a; }", "/ /b>-/b /open"),
        (below, "= /b { access_log off; proxy_pass http://a; }", "/ /b> /open"),
        ("location /b/ { return 301 /c; }", "= /b { deny all; }", "/ /b-/b /open"),
        ("location /there/ { deny 1.2.3.4; }", "= /there { deny all; }", "/ /open /there?"),
        ("location /b/ { deny all; }", "= /b { deny all; }", "/ /b! /open"),
        (file, "= /there/key { deny all; }", "/ /open /there/key!"),
        (file, "= /there/key { deny 1.2.3.4; }", "/ /open /there/key!"),
        (file, "= /there/key { root /pub; }", "/ /open /there/key!"),
        (file, "= /there/key { }", "/ /open /there/key-/there/key/there/key-"),
        (all, "= / { return 200 ok; }", "/>-/ /open"),
        (all, "= / { deny 1.2.3.4; }", "/>-/ /open"),
        (all, "= /x { deny all; }", "/> /open /x!"),
        (all, "= /x/ { deny all; }", "/> /open /x!"),
    ] {
        left(&[(&format!("{around} location {words}"), expected)]);
    }
    for (words, told) in [
        ("= / { return 200 ok; }", "`location = /` is left out because of `return 200 ok`"),
        ("= /x/ { deny all; }", "`location = /x/` is for what lies below /x/, too"),
    ] {
        let made = imported(&server(&format!("root /srv; {all} location {words}")));
        assert!(made.toml.contains(told), "{words}\n{}", made.toml);
    }
}
