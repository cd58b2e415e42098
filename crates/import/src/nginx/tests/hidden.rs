//! Locations for names with a dot, and for what is closed already.

use super::guards::left;

/// Names with a dot are hidden below a route, and neither those of routes nor what is for the public by RFC 8615.
#[test]
fn no_hidden_name_becomes_looser() {
    left(&[
        ("location ~ /\\. { deny all; }", "/ /.well-known! /open"),
        ("location ~ /\\.(?!well-known) { deny all; }", "/ /open"),
        ("location ~ /\\.(git|svn) { deny all; }", "/ /open"),
        ("location ~ /\\.(git|well) { deny all; }", "/ /.well-known! /open"),
        ("location /.there/ { expires 1h; } location ~ /\\.h { deny all; }", "/ /.there! /open"),
        ("location ^~ /.there/ { expires 1h; } location ~ /\\.h { deny all; }", "/ /.there /open"),
        (
            "location /.well-known/a/ { expires 1h; } location ~ /\\. { deny all; }",
            "/ /.well-known! /open",
        ),
        ("location ^~ /.well-known/ { allow all; } location ~ /\\. { deny all; }", "/ /open"),
        (
            "location ^~ /.well-known/ { expires 1h; } location ~ /\\. { deny all; }",
            "/ /.well-known /open",
        ),
        (
            "location ^~ /.well-known/a/ { } location ~ /\\. { deny all; }",
            "/ /.well-known! /.well-known/a /open",
        ),
        ("location ~* /\\.W { deny all; }", "/ /.well-known! /open"),
        (
            "location ^~ /.well-known/a/ { expires 1h; } location ~ /\\. { deny all; }",
            "/ /.well-known! /.well-known/a /open",
        ),
    ]);
}

/// The same folder closed by two locations.
#[test]
fn what_is_closed_twice_stays_closed() {
    left(&[
        ("location /there { deny all; } location /there/ { deny all; }", "/ /open /there!"),
        ("location /there { internal; } location ^~ /there/ { return 403; }", "/ /open /there!"),
        ("location /there/ { deny all; } location = /there/ { deny all; }", "/ /open /there!"),
        (
            "location /.well-known/ { deny all; } location ~ /\\. { deny all; }",
            "/ /.well-known! /open",
        ),
    ]);
}
