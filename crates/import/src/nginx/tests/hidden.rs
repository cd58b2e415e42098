//! Locations for names with a dot, for what is closed already, and for files that lie elsewhere; how nginx reads a location's
//! sign.

use super::guards::left;
use super::*;

/// Names with a dot are hidden below a route, and neither those of routes nor what is for the public by RFC 8615.
#[test]
fn no_hidden_name_becomes_looser() {
    left(&[
        ("location ~ /\\. { deny all; }", "/-.* /open-.*"),
        (
            "location ~ /\\.(?!well-known) { deny all; }",
            "/-.* /.well-known-/.well-known/.**-/.well-known/**/.** /open-.*",
        ),
        ("location ~ /\\.(git|svn) { deny all; }", "/-.git*-.svn* /open-.git*-.svn*"),
        ("location ~ /\\.(git|well) { deny all; }", "/-.git*-.well* /open-.git*-.well*"),
        (
            "location /.there/ { expires 1h; } location ~ /\\.h { deny all; }",
            "/-.h* /.there-.h* /open-.h*",
        ),
        (
            "location ^~ /.there/ { expires 1h; } location ~ /\\.h { deny all; }",
            "/-.h* /.there /open-.h*",
        ),
        (
            "location /.well-known/a/ { expires 1h; } location ~ /\\. { deny all; }",
            "/-.* /.well-known/a-.* /open-.*",
        ),
        (
            "location ^~ /.well-known/ { allow all; } location ~ /\\. { deny all; }",
            "/-.* /.well-known /open-.*",
        ),
        (
            "location ^~ /.well-known/ { expires 1h; } location ~ /\\. { deny all; }",
            "/-.* /.well-known /open-.*",
        ),
        (
            "location ^~ /.well-known/a/ { } location ~ /\\. { deny all; }",
            "/-.* /.well-known/a /open-.*",
        ),
        ("location ~* /\\.W { deny all; }", "/-.w* /open-.w*"),
        (
            "location ^~ /.well-known/a/ { expires 1h; } location ~ /\\. { deny all; }",
            "/-.* /.well-known/a /open-.*",
        ),
    ]);
}

/// nginx takes the first expression that fits.
#[test]
fn what_an_expression_opens_before_names_with_a_dot_are_hidden_stays_open() {
    let all = "location ~ /\\. { deny all; }";
    for (before, behind, expected) in [
        ("location ~ /.well-known { allow all; }", "", "/-.* /.well-known /open-.*"),
        ("location ~* ^/\\.well-known/.*$ { allow all; }", "", "/-.* /.well-known /open-.*"),
        ("location ~ /.well-known { deny 1.2.3.4; }", "", "/-.* /.well-known? /open-.*"),
        ("location ~ /.well-known { root /pub; }", "", "/-.* /.well-known /open-.*"),
        (
            "location ~ ^/\\.well-known/acme-challenge/ { allow all; }",
            "",
            "/-.* /.well-known/acme-challenge /open-.*",
        ),
        ("location ~ /.well-known/\\w+ { allow all; }", "", "/-.* /open-.*"),
        ("location /a/ { location ~ /.well-known { } }", "", "/-.* /open-.*"),
        ("", "location ~ /.well-known { allow all; }", "/-.* /open-.*"),
        ("location ~ /.well-known { deny all; }", "", "/-?well-known*-.* /open-?well-known*-.*"),
    ] {
        left(&[(&format!("{before} {all} {behind}"), expected)]);
    }
    let made = imported(&server(&format!("root /srv; {all}")));
    assert!(made.toml.contains("deny_files = [\".*\"]"), "{}", made.toml);
}

/// A space behind the sign changes nothing, and no other sign is one.
#[test]
fn a_sign_without_a_space_is_one_all_the_same() {
    left(&[
        ("location ~^/(there|x)/ { deny all; }", "/-/there/**-/x/** /open-/there/**-/x/**"),
        ("location ~*^/uploads/.*\\.php$ { deny all; }", "/-/uploads/**.php /open-/uploads/**.php"),
        ("location ~^/api(.*) { proxy_pass http://a; }", "/-/api** /open-/api**"),
        ("location ~/\\. { deny all; }", "/-.* /open-.*"),
        ("location ^~/there/ { deny all; }", "/ /open /there!"),
        ("location =/there/key { deny all; }", "/ /open /there/key!"),
        ("location ^~/there/ { location ~^/there/k { deny all; } }", "/ /open /there-/there/k**"),
        ("location ~/x { alias /x/; location /x/b/ { expires 1h; } }", ""),
    ]);
}

/// The same folder closed by two locations.
#[test]
fn what_is_closed_twice_stays_closed() {
    left(&[
        (
            "location /there { deny all; } location /there/ { deny all; }",
            "/-/there** /open /there!",
        ),
        (
            "location /there { internal; } location ^~ /there/ { return 403; }",
            "/-/there** /open /there!",
        ),
        ("location /there/ { deny all; } location = /there/ { deny all; }", "/ /open /there!"),
        (
            "location /.well-known/ { deny all; } location ~ /\\. { deny all; }",
            "/-.* /.well-known! /open-.*",
        ),
    ]);
}

/// A location for names that begin so takes their files from elsewhere; a route would leave them where they are.
#[test]
fn no_neighbour_gets_files_that_nginx_does_not_look_at() {
    left(&[
        ("location /th { root /pub; }", "/-/th** /open /th"),
        ("location /th { alias /pub/; }", "/-/th** /open /th"),
        ("location /th { alias /pub/th; }", "/-/th** /open /th"),
        ("location /th { alias /srv/th; }", "/ /open"),
        ("location /th { root /srv; }", "/ /open"),
        ("location /there { root /pub; }", "/-/there** /open /there"),
        ("location /there/ { root /pub; }", "/ /open /there"),
    ]);
}

/// A server that lists, what else it says, and whether its first route does.
#[test]
fn no_list_is_shown_that_nginx_does_not_show() {
    for (words, is_listed) in [
        ("", true),
        ("try_files $uri $uri/ =404;", true),
        ("try_files $uri =404;", false),
        ("location / { try_files $uri /index.html; }", false),
    ] {
        let config = config(&server(&format!("root /srv; autoindex on; {words}")));
        assert_eq!(config.sites[0].routes[0].listing, is_listed, "{words}");
    }
    left(&[
        ("autoindex on; location = /there/ { autoindex off; }", "/-/there/ /open"),
        ("autoindex on; location = /there/ { autoindex on; }", "/ /open"),
        ("location = /there/ { autoindex off; }", "/ /open"),
    ]);
}
