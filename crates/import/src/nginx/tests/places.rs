//! Locations and the places that they become: what is at each, and in which order they are asked.

use super::shown::{beside_users, left, routes};
use super::*;

/// The text of a location for one path beside `root /srv`, and that of its route then.
#[test]
fn a_location_for_one_path_is_for_nothing_else() {
    let closed = "deny = [\"0.0.0.0/0\", \"::/0\"]\naccess_log = \"off\"";
    for (words, expected) in [
        ("access_log off;", "root = \"/srv\"\n"),
        ("root /pub;", "root = \"/pub\"\n"),
        ("alias /pub/a/b;", "root = \"/pub\"\n"),
        ("alias /pub/c;", "root = \"/pub\"\n"),
        ("alias /pub/c;", "try = [\"/c\"]\n"),
        ("alias /pub/c/;", "deny = [\"0.0.0.0/0\", \"::/0\"]\n"),
        ("deny 10.0.0.1;", "deny = [\"10.0.0.1/32\"]\n"),
        ("proxy_pass http://c;", "backend = \"c\"\n"),
        ("access_log off; proxy_pass http://c/a/b;", "access_log = \"off\""),
        (
            "access_log off; return 301 /d;",
            "redirect = [{ to = \"/d\", status = 301, keep_query = false }]\naccess_log = \"off\"",
        ),
        (
            "return 200 'ok\\n';",
            "respond = { status = 200, body = \"ok\\u000A\", type = \"text/plain\" }\n",
        ),
        ("default_type text/x; return 200 ok;", "type = \"text/x\" }\n"),
        ("return 204;", "respond = { status = 204 }\n"),
        ("return 444;", "respond = { close = true }\n"),
        (
            "return 200 'a {$uri $status';",
            "respond = { status = 200, text = \"a {{{path} 200\", type = \"text/plain\" }\n",
        ),
        ("default_type text/html; return 200 $uri;", "deny = [\"0.0.0.0/0\", \"::/0\"]\n"),
        (
            "default_type text/html; return 200 $scheme;",
            "text = \"{scheme}\", type = \"text/html\" }",
        ),
        ("return 418;", "respond = { status = 418, body = \"\" }\n"),
        ("access_log off; stub_status;", closed),
        ("access_log off; memcached_pass e;", closed),
    ] {
        let made = imported(&server(&format!("root /srv; location = /a/b {{ {words} }}")));
        let routes = made.toml.split("[[site.route]]\n");
        let route = routes.into_iter().find(|route| route.starts_with("exact = \"/a/b\"\n"));
        let route = route.unwrap_or_else(|| panic!("{words}\n{}", made.toml));
        assert!(route.contains(expected), "{words}\n{}", made.toml);
        assert_eq!(route.contains("access_log"), words.contains("access_log"), "{}", made.toml);
        made.config().unwrap();
    }
}

/// nginx compares such a prefix as a text.
#[test]
fn a_prefix_with_letters_of_patterns_means_them() {
    for (words, expected) in [
        ("location /a(b)*c { deny all; }", "text_prefix = \"/a(b)*c\""),
        ("location /a(b)*c { alias /x; }", "prefix = \"/a%28b%29%2Ac\""),
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        assert!(made.toml.contains(expected), "{}", made.toml);
        let config = made.config().unwrap();
        let places = config.sites[0].routes.iter().filter_map(kettle_config::Route::place);
        assert!(places.into_iter().any(|it| it.text() == "/a(b)*c"), "{}", made.toml);
    }
}

/// nginx looks into a folder of its own there.
#[test]
fn what_has_no_root_is_not_passed_on() {
    let text = "location / { proxy_pass http://c; } location = /b { access_log off; }";
    let config = config(&server(text));
    assert_eq!(routes(&config), "/> =/b:404");
}

/// Beside `satisfy any` and a password: what else is said of who may ask, and whether a password is asked for, or nobody let in.
#[test]
fn a_network_that_is_enough_needs_no_password() {
    for (words, expected) in [
        ("allow all;", "/a/*"),
        ("", "/a/*?"),
        ("allow 10.0.0.0/8;", "/a/*?"),
        ("allow 10.0.0.0/8; deny all;", "/a/*{1} /a/*?"),
        ("allow 10.0.0.0/8; allow all;", "/a/*?"),
        ("deny all;", "/a/*?"),
        ("deny 1.2.3.4; allow 10.0.0.0/8; deny all;", "/a/*{2} /a/*?"),
    ] {
        let guards = format!("satisfy any; {words} auth_basic x; auth_basic_user_file users;");
        let made = beside_users(&server(&format!("root /srv; location /a/ {{ {guards} }}")));
        assert_eq!(routes(&made.config().unwrap()), format!("{expected} /"), "{words}");
    }
}

/// Expressions within a place are asked there alone, and those around a location within another besides.
#[test]
fn an_expression_is_for_the_place_where_it_stands() {
    let css = "location ~ \\.css$ { expires 1y; }";
    for (words, expected) in [
        (css.to_owned(), "/open/* ~\\.css$ /"),
        (format!("location /a/ {{ {css} }}"), "/open/* /a/* /a/*~\\.css$ /"),
        (
            format!("location /a/ {{ {css} location /a/b/ {{ }} }}"),
            "/open/* /a/* /a/*~\\.css$ /a/b/* /a/b/*~\\.css$ /",
        ),
        // An expression of its own comes first, and the second of one expression never.
        (
            format!(
                "location /a/ {{ {css} location /a/b/ {{ location ~ x {{ deny all; }} {css} }} }}"
            ),
            "/open/* /a/* /a/*~\\.css$ /a/b/* /a/b/*~x:403 /a/b/*~\\.css$ /",
        ),
        (
            format!("location /a/ {{ {css} location ^~ /a/b/ {{ }} }}"),
            "/open/* /a/* /a/*~\\.css$ /a/b/* /",
        ),
        // The `^~` of the outer one holds for the expressions of the server.
        (
            format!("location ^~ /a/ {{ location /a/b/ {{ }} }} {css}"),
            "/open/* ^/a/* ^/a/b/* ~\\.css$ /",
        ),
        (
            format!("location /a/ {{ location ^~ /a/b/ {{ }} }} {css}"),
            "/open/* /a/* /a/b/* ~\\.css$ /",
        ),
        (format!("location ~ ^/x {{ {css} }}"), "/open/* ~^/x! /"),
        ("location /a/ { location = /a/b { } }".to_owned(), "/open/* /a/* =/a/b /"),
    ] {
        left(&[(&words, expected)]);
    }
}

/// A place with letters that none of kettle has, and an expression that may mean any path, close what nginx finds by them at most.
#[test]
fn a_place_that_none_is_like_closes_alone() {
    left(&[
        ("location /a?b { }", "/~^/a\\x{3f}b! /open/* /"),
        ("location = /a#b { }", "/~^/a\\x{23}b$! /open/* /"),
        ("location ^~ /a { location /a?b { } }", "/a*~^/a\\x{3f}b! /open/* ^/a* /"),
        ("location ~ /(?R)b { }", "/open/*! ~^! /!"),
        ("location ~ a { } location ~ (?R) { } location ~ b { }", "/open/*! ~a ~^! ~b! /!"),
        ("location = /a { } location ~ (?R) { }", "/open/*! =/a ~^! /!"),
        ("location ^~ /a { } location ~ (?R) { }", "/open/*! ^/a* ~^! /!"),
        ("location /a { location ~ (?R) { } } location ~ b { }", "/open/* /a*! /a*~^! ~b /"),
    ]);
    let text = server("root /srv; location /a?b { } location ~ (?R) { } location = /c { }");
    assert!(imported(&text).toml.contains("# 1 of 4 places carried over, 3 answer 403.\n"));
}

/// Servers on one socket, and whether paths with slashes in a row are refused by each that has several places.
#[test]
fn slashes_that_nginx_keeps_are_refused_on_all_of_the_socket() {
    let off = "merge_slashes off;";
    for (first, second, expected) in [
        ("", "location /a/ { deny all; }", [false, false]),
        (off, "", [false, false]),
        (off, "location / { expires 1h; }", [false, false]),
        (off, "location /a/ { deny all; }", [false, true]),
        (off, "location ~ a { deny all; }", [false, true]),
        (off, "location = /a { deny all; }", [false, true]),
        (off, "location / { location /a { expires 1h; } }", [false, true]),
        (off, "location / { rewrite ^/a/(.*) /b/$1 last; }", [false, true]),
        (off, "if ($uri ~ \"^/a\") { return 403; }", [false, true]),
        (off, "rewrite ^/a/(.*)$ /b/$1 last;", [false, true]),
        ("location /a/ { deny all; }", off, [false, false]),
        ("", "merge_slashes off; location /a/ { deny all; }", [false, false]),
        ("", "listen 443 ssl; merge_slashes off; location /a/ { deny all; }", [false, true]),
        (
            "listen 443 ssl; location /a/ { deny all; }",
            "listen 443 ssl; merge_slashes off;",
            [true, false],
        ),
        ("merge_slashes on; location /a/ { deny all; }", "", [false, false]),
    ] {
        let (first, second) =
            (format!("server {{ {first} root /srv;"), format!("{second} root /srv;"));
        let text = format!(
            "http {{ ssl_certificate c; ssl_certificate_key k; {first} listen 80; server_name a.example; }} server {{ {second} listen 80; server_name b.example; }} \
             server {{ listen 81; root /srv; location /a/ {{ deny all; }} }} }}"
        );
        let made = imported(&text);
        let config = made.config().unwrap();
        let found: Vec<bool> = config.sites.iter().map(|it| it.refuse_double_slashes).collect();
        assert_eq!(found, [&expected[..], &[false]].concat(), "{text}\n{}", made.toml);
        let is_told =
            made.toml.contains("paths with `//` answer 400 because of `merge_slashes off`");
        assert_eq!(is_told, expected.contains(&true), "{}", made.toml);
        assert!(made.toml.contains("places carried over.\n"), "{}", made.toml);
    }
}
