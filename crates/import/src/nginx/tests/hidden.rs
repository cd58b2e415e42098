//! Locations for names with a dot, for what is closed already, and for files that lie elsewhere; how nginx reads a location's
//! sign.

use super::shown::left;
use super::*;

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
