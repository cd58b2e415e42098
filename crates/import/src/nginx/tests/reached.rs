//! Which requests come to a place: conditions, and locations within others.

use super::shown::left;
use super::*;

/// nginx looks for inner locations in the one of the longest prefix only.
#[test]
fn a_location_within_another_takes_nothing_from_those_beside_that() {
    let denied = "location /there/ { deny all; }";
    let asked = "location /there/ { auth_basic x; auth_basic_user_file users; }";
    for (words, beside, expected) in [
        ("location / { location /there/a/ { expires 1h; } }", denied, "/open/* / /there/*:403"),
        ("location / { location ^~ /there/ { expires 1h; } }", denied, "/open/* / /there/*:403"),
        ("location / { location = /there/key { } }", denied, "/open/* / /there/*:403"),
        ("location / { location = /there/key { root /pub; } }", denied, "/open/* / /there/*:403"),
        (
            "location /the { location /there/a/ { expires 1h; } }",
            denied,
            "/open/* /the* /there/*:403 /",
        ),
        (
            "location / { location /th { location /there/a/ { root /b; } } }",
            denied,
            "/open/* / /th* /there/*:403",
        ),
        ("location / { location /there/a/ { expires 1h; } }", asked, "/open/* / /there/*?"),
        (
            "location / { proxy_pass http://a; location /x/y/ { proxy_pass http://a; } }",
            "location /x/ { deny all; proxy_pass http://a; }",
            "/open/* /> /x/*:403 =/x->301",
        ),
        // Expressions come before prefixes, but for `^~`.
        (
            "location ~ /x { location /x/a/ { expires 1h; } }",
            "location ^~ /x/ { deny all; }",
            "/open/* ^/x/*:403 ~/x! /",
        ),
        (
            "location ~ /x { location /x/a/ { deny all; } }",
            "location /x/ { expires 1h; }",
            "/open/* /x/* ~/x! /",
        ),
        // These have requests.
        (
            "location / { location /x/ { deny all; } }",
            "location /x/y/ { expires 1h; }",
            "/open/* / /x/*:403 /x/y/*",
        ),
        (
            "location /there/ { location = /there/key { deny all; } }",
            "",
            "/open/* /there/* =/there/key:403 /",
        ),
    ] {
        left(&[(&format!("{words} {beside}"), expected)]);
    }
    let inner = "location / { location /there/a/ { expires 1h; } }";
    let made = imported(&server(&format!("root /srv; {inner} {denied}")));
    let told = "`location /there/a/` is left out; its requests come to `location /there/`";
    assert!(made.toml.contains(told), "{}", made.toml);
}

/// Sockets are shared by all servers on an address, and so is what is said of them.
#[test]
fn a_client_that_another_server_finds_by_a_proxy_is_not_known() {
    let text = server("root /srv; deny 1.2.3.4;");
    assert!(!config(&text).sites[0].routes[0].deny.is_empty());
    for port in [443, 444] {
        let other = format!(
            "server {{ listen {port} ssl proxy_protocol; ssl_certificate c; ssl_certificate_key k; \
             set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; server_name b.example; }}"
        );
        let made = imported(&text.replace("http {", &format!("http {{ {other}")));
        let sites = made.config().map(|config| config.sites).unwrap_or_default();
        let mut routes = sites.iter().flat_map(|it| &it.routes);
        assert!(routes.all(|it| it.root.is_none()), "{port}\n{}", made.toml);
    }
}
