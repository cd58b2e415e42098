//! Locations for names with a dot, for what is closed already, and for files that lie elsewhere; how nginx reads a location's
//! sign.

use super::shown::left;
use super::*;

/// Names with a dot are hidden below a route, and neither those of routes nor what is for the public by RFC 8615.
#[test]
fn no_hidden_name_becomes_looser() {
    left(&[
        ("location ~ /\\. { deny all; }", "/open/* ~/\\.:403 /"),
        (
            "location ~ /\\.(?!well-known) { deny all; }",
            "/open/* ~/\\.(?:$|[^w]|w(?:$|[^e]|e(?:$|[^l]|l(?:$|[^l]|l(?:$|[^\\-]|\\-(?:$|[^k]|k(?:$|[^n]|n(?:$|[^o]|o(?:$|[^w]|w(?:$|[^n])))))))))):403 /",
        ),
        ("location ~ /\\.(git|svn) { deny all; }", "/open/* ~/\\.(git|svn):403 /"),
        ("location ~ /\\.(git|well) { deny all; }", "/open/* ~/\\.(git|well):403 /"),
        (
            "location /.there/ { expires 1h; } location ~ /\\.h { deny all; }",
            "/open/* /.there/* ~/\\.h:403 /",
        ),
        (
            "location ^~ /.there/ { expires 1h; } location ~ /\\.h { deny all; }",
            "/open/* ^/.there/* ~/\\.h:403 /",
        ),
        (
            "location /.well-known/a/ { expires 1h; } location ~ /\\. { deny all; }",
            "/open/* /.well-known/a/* ~/\\.:403 /",
        ),
        (
            "location ^~ /.well-known/ { allow all; } location ~ /\\. { deny all; }",
            "/open/* ^/.well-known/* ~/\\.:403 /",
        ),
        (
            "location ^~ /.well-known/ { expires 1h; } location ~ /\\. { deny all; }",
            "/open/* ^/.well-known/* ~/\\.:403 /",
        ),
        (
            "location ^~ /.well-known/a/ { } location ~ /\\. { deny all; }",
            "/open/* ^/.well-known/a/* ~/\\.:403 /",
        ),
        ("location ~* /\\.W { deny all; }", "/open/* ~(?i)/\\.W:403 /"),
        (
            "location ^~ /.well-known/a/ { expires 1h; } location ~ /\\. { deny all; }",
            "/open/* ^/.well-known/a/* ~/\\.:403 /",
        ),
    ]);
}

/// nginx takes the first expression that fits.
#[test]
fn what_an_expression_opens_before_names_with_a_dot_are_hidden_stays_open() {
    let all = "location ~ /\\. { deny all; }";
    for (before, behind, expected) in [
        ("location ~ /.well-known { allow all; }", "", "~/.well-known ~/\\.:403"),
        (
            "location ~* ^/\\.well-known/.*$ { allow all; }",
            "",
            "~(?i)^/\\.well-known/.*$ ~/\\.:403",
        ),
        ("location ~ /.well-known { deny 1.2.3.4; }", "", "~/.well-known? ~/\\.:403"),
        ("location ~ /.well-known { root /pub; }", "", "~/.well-known ~/\\.:403"),
        ("location /a/ { location ~ /.well-known { } }", "", "/a/* /a/*~/.well-known ~/\\.:403"),
        ("", "location ~ /.well-known { allow all; }", "~/\\.:403 ~/.well-known"),
        ("location ~ /.well-known { deny all; }", "", "~/.well-known:403 ~/\\.:403"),
    ] {
        left(&[(&format!("{before} {all} {behind}"), &format!("/open/* {expected} /"))]);
    }
}

/// A space behind the sign changes nothing, and no other sign is one.
#[test]
fn a_sign_without_a_space_is_one_all_the_same() {
    left(&[
        ("location ~^/(there|x)/ { deny all; }", "/open/* ~^/(there|x)/:403 /"),
        ("location ~*^/uploads/.*\\.php$ { deny all; }", "/open/* ~(?i)^/uploads/.*\\.php$:403 /"),
        ("location ~^/api(.*) { proxy_pass http://a; }", "/open/* ~^/api(.*)> /"),
        ("location ~/\\. { deny all; }", "/open/* ~/\\.:403 /"),
        ("location ^~/there/ { deny all; }", "/open/* ^/there/*:403 /"),
        ("location =/there/key { deny all; }", "/open/* =/there/key:403 /"),
        (
            "location ^~/there/ { location ~^/there/k { deny all; } }",
            "/open/* ^/there/* /there/*~^/there/k:403 /",
        ),
        ("location ~/x { alias /x/; location /x/b/ { expires 1h; } }", "/open/* ~/x! /"),
    ]);
}

/// The same folder closed by two locations.
#[test]
fn what_is_closed_twice_stays_closed() {
    left(&[
        (
            "location /there { deny all; } location /there/ { deny all; }",
            "/open/* /there*:403 /there/*:403 /",
        ),
        (
            "location /there { internal; } location ^~ /there/ { return 403; }",
            "/open/* @/there* ^/there/*:403 /",
        ),
        (
            "location /there/ { deny all; } location = /there/ { deny all; }",
            "/open/* /there/*:403 =/there/:403 /",
        ),
        (
            "location /.well-known/ { deny all; } location ~ /\\. { deny all; }",
            "/open/* /.well-known/*:403 ~/\\.:403 /",
        ),
    ]);
}

/// A location for names that begin so takes their files from elsewhere; a route would leave them where they are.
#[test]
fn no_neighbour_gets_files_that_nginx_does_not_look_at() {
    left(&[
        ("location /th { root /pub; }", "/open/* /th* /"),
        ("location /th { alias /pub/; }", "/open/* /th*! /th/ /"),
        ("location /th { alias /pub/th; }", "/open/* /th* /"),
        ("location /th { alias /srv/th; }", "/open/* /th* /"),
        ("location /th { root /srv; }", "/open/* /th* /"),
        ("location /there { root /pub; }", "/open/* /there* /"),
        ("location /there/ { root /pub; }", "/open/* /there/* /"),
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
        ("autoindex on; location = /there/ { autoindex off; }", "/open/* =/there/ /"),
        ("autoindex on; location = /there/ { autoindex on; }", "/open/* =/there/ /"),
        ("location = /there/ { autoindex off; }", "/open/* =/there/ /"),
    ]);
}
