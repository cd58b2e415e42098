//! Which requests come to a place: conditions, and locations within others.

use super::shown::left;
use super::*;

/// Conditions that keep nobody out are those of methods that kettle does not take, and of a client's way here.
#[test]
fn no_condition_becomes_looser() {
    left(&[
        ("if ($slow) { rewrite ^ /x; }", "/!"),
        ("if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method = POST) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method = TRACE) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method ~ ^(PUT|DELETE)$) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method != GET) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method = GET) { return 403; }", "|{1}:403 /open/* /"),
        ("if ($request_method != POST) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method !~ ^POST$) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method !~ ^(GE|POST)$) { return 405; }", "|{1}:405 /open/* /"),
        ("if ($request_method ~* get) { return 403; }", "|{1}:403 /open/* /"),
        ("if ($request_method ~ ^(G.T|POST)$) { return 403; }", "|{1}:403 /open/* /"),
        ("if ($request_method_is_bad) { return 403; }", "/!"),
        ("if ($request_methods = POST) { return 403; }", "/!"),
        ("if ($cookie_session = \"\") { return 302 /login; }", "|{1}->302 /open/* /"),
        (
            "if ($ssl_client_verify != SUCCESS) { return 302 https://a.example/; }",
            "|{1}->302 /open/* /",
        ),
        ("if ($bad) { rewrite ^ /denied last; }", "/!"),
        ("if (!-e $request_filename) { rewrite ^ /index.php last; }", "|{1}-> /open/* /"),
        ("if (-f /other/maintenance) { return 503; }", "/!"),
        ("if (-x $request_filename) { return 503; }", "/!"),
        ("if ($cookie_key = \"\") { root /pub; }", "/!"),
        ("if (-f /srv/maintenance) { return 503; }", "|{1}:503 /open/* /"),
        ("if ($host = a.example) { return 301 https://b.example/; }", "|{1}->301 /open/* /"),
        (
            "if ($scheme = http) { rewrite ^ https://$host$request_uri permanent; }",
            "|{1}->301 /open/* /",
        ),
        ("if ($host = a.example) { return 403; }", "|{1}:403 /open/* /"),
        ("if ($host = a.example) { rewrite ^/(.*)$ /a/$1 break; }", "|{1}(^/(.*)$)-> /open/* /"),
        ("if ($http_host !~ ^www) { rewrite ^ /denied last; }", "|{1}-> /open/* /"),
        ("if ($scheme = http) { rewrite ^ /denied; }", "|{1}-> /open/* /"),
        (
            "if ($host = a.example) { rewrite ^/(.*)$ /a/$1 redirect; }",
            "|{1}(^/(.*)$)->302 /open/* /",
        ),
        ("if ($host = a.example) { rewrite ^ $scheme://b.example/ last; }", "|{1}->302 /open/* /"),
    ]);
}

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

#[test]
fn no_expression_that_nginx_meets_first_is_forgotten() {
    left(&[
        // The word of an expression within on all that begins so.
        ("location /th { location ~ \\.a$ { deny all; } }", "/open/* /th* /th*~\\.a$:403 /"),
        ("location /th { location ~ \\.a$ { deny 1.2.3.4; } }", "/open/* /th* /th*~\\.a$? /"),
        (
            "location /th { location ~ \\.a$ { rewrite ^ /there/key break; } }",
            "/open/* /th* /th*~\\.a$=> /",
        ),
        ("location /th { location ~ \\.a$ { expires 1h; } }", "/open/* /th* /th*~\\.a$ /"),
        ("location /th/ { location ~ \\.a$ { deny all; } }", "/open/* /th/* /th/*~\\.a$:403 /"),
        // Another file answers where nginx does not come to the rewrite.
        (
            "location ~ ^/(u|x) { } location /x/ { rewrite ^ /there/key break; }",
            "/open/* /x/*=> ~^/(u|x) /",
        ),
        (
            "location ~ ^/u { } location /x/ { rewrite ^ /there/key break; }",
            "/open/* /x/*=> ~^/u /",
        ),
        (
            "location ^~ /x/ { rewrite ^ /there/key break; } location ~ x { }",
            "/open/* ^/x/*=> ~x /",
        ),
        (
            "location ~ \\.a$ { } location /x/ { rewrite ^/x/(.*)$ /x/b/$1 break; }",
            "/open/* /x/*:404 ~\\.a$ /",
        ),
        (
            "location ~ \\.a$ { } location ~ ^/x { rewrite ^ /there/key break; }",
            "/open/* ~\\.a$ ~^/x=> /",
        ),
        (
            "location ~ ^/x { rewrite ^ /there/key break; } location ~ \\.a$ { }",
            "/open/* ~^/x=> ~\\.a$ /",
        ),
        (
            "location ~ \\.a$ { } location ~ \\.b$ { return 301 /there/key; }",
            "/open/* ~\\.a$ ~\\.b$->301 /",
        ),
        // A rewrite leads to a file that another route has.
        (
            "location / { rewrite ^ /there/key break; } location = /there/key { deny all; }",
            "/open/* /=> =/there/key:403",
        ),
        // The `^~` is not for a location within.
        (
            "location ^~ /x/ { } location /x/y/ { } location ~ \\.a$ { deny all; }",
            "/open/* ^/x/* /x/y/* ~\\.a$:403 /",
        ),
        (
            "location ^~ /x/ { } location /x/y/ { } location ~ \\.a$ { return 302 /b; }",
            "/open/* ^/x/* /x/y/* ~\\.a$->302 /",
        ),
        (
            "location ^~ /x/ { } location /x/y/ { } location ~ \\.a$ { deny 1.2.3.4; }",
            "/open/* ^/x/* /x/y/* ~\\.a$? /",
        ),
        ("location ^~ /x/ { } location /x/y/ { }", "/open/* ^/x/* /x/y/* /"),
        // Or which files there are.
        ("location ~ \\.a$ { disable_symlinks on; }", "/open/* ~\\.a$ /"),
        ("location ~ \\.a$ { disable_symlinks off; }", "/open/* ~\\.a$ /"),
        // Other pages of folders.
        ("location ~ ^/x/ { index a.txt; }", "/open/* ~^/x/ /"),
        ("location ~ ^/x/ { index index.html; }", "/open/* ~^/x/ /"),
        ("location ~ \\.a$ { index a.txt; }", "/open/* ~\\.a$ /"),
        ("index a.txt; location ~ ^/x/ { }", "/open/* ~^/x/ /"),
    ]);
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
