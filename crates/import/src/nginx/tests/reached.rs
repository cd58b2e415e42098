//! Which requests come to a place: conditions, and locations within others.

use super::guards::left;
use super::*;

/// Conditions that keep nobody out are those of methods that kettle does not take, and of a client's way here.
#[test]
fn no_condition_becomes_looser() {
    left(&[
        ("if ($slow) { rewrite ^ /x; }", ""),
        ("if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }", "/ /open"),
        ("if ($request_method = POST) { return 405; }", "/ /open"),
        ("if ($request_method = TRACE) { return 405; }", "/ /open"),
        ("if ($request_method ~ ^(PUT|DELETE)$) { return 405; }", "/ /open"),
        ("if ($request_method != GET) { return 405; }", "/ /open"),
        ("if ($request_method = GET) { return 403; }", ""),
        ("if ($request_method != POST) { return 405; }", ""),
        ("if ($request_method !~ ^POST$) { return 405; }", ""),
        ("if ($request_method !~ ^(GE|POST)$) { return 405; }", ""),
        ("if ($request_method ~* get) { return 403; }", ""),
        ("if ($request_method ~ ^(G.T|POST)$) { return 403; }", ""),
        ("if ($request_method_is_bad) { return 403; }", ""),
        ("if ($request_methods = POST) { return 403; }", ""),
        ("if ($cookie_session = \"\") { return 302 /login; }", ""),
        ("if ($ssl_client_verify != SUCCESS) { return 302 https://a.example/; }", ""),
        ("if ($bad) { rewrite ^ /denied last; }", ""),
        ("if (!-e $request_filename) { rewrite ^ /index.php last; }", "/ /open"),
        ("if ($cookie_key = \"\") { root /pub; }", ""),
        ("if (-f /srv/maintenance) { return 503; }", ""),
        ("if ($host = a.example) { return 301 https://b.example/; }", "/ /open"),
        ("if ($scheme = http) { rewrite ^ https://$host$request_uri permanent; }", "/ /open"),
        ("if ($host = a.example) { return 403; }", ""),
        ("if ($host = a.example) { rewrite ^/(.*)$ /a/$1 break; }", ""),
        ("if ($http_host !~ ^www) { rewrite ^ /denied last; }", ""),
        ("if ($scheme = http) { rewrite ^ /denied; }", ""),
        ("if ($host = a.example) { rewrite ^/(.*)$ /a/$1 redirect; }", "/ /open"),
        ("if ($host = a.example) { rewrite ^ $scheme://b.example/ last; }", "/ /open"),
    ]);
}

/// nginx looks for inner locations in the one of the longest prefix only.
#[test]
fn a_location_within_another_takes_nothing_from_those_beside_that() {
    let denied = "location /there/ { deny all; }";
    let asked = "location /there/ { auth_basic x; auth_basic_user_file users; }";
    for (words, beside, expected) in [
        ("location / { location /there/a/ { expires 1h; } }", denied, "/ /open /there!"),
        ("location / { location ^~ /there/ { expires 1h; } }", denied, "/ /open /there!"),
        ("location / { location = /there/key { } }", denied, "/ /open /there!"),
        ("location / { location = /there/key { root /pub; } }", denied, "/ /open /there!"),
        ("location /the { location /there/a/ { expires 1h; } }", denied, "/ /open /there!"),
        (
            "location / { location /th { location /there/a/ { root /b; } } }",
            denied,
            "/ /open /there!",
        ),
        ("location / { location /there/a/ { expires 1h; } }", asked, "/ /open /there?"),
        (
            "location / { proxy_pass http://a; location /x/y/ { proxy_pass http://a; } }",
            "location /x/ { deny all; proxy_pass http://a; }",
            "/> /open /x!",
        ),
        // Expressions come before prefixes, but for `^~`.
        (
            "location ~ /x { location /x/a/ { expires 1h; } }",
            "location ^~ /x/ { deny all; }",
            "/ /open /x!",
        ),
        (
            "location ~ /x { location /x/a/ { deny all; } }",
            "location /x/ { expires 1h; }",
            "/ /open /x /x/a!",
        ),
        // These have requests.
        (
            "location / { location /x/ { deny all; } }",
            "location /x/y/ { expires 1h; }",
            "/ /open /x! /x/y",
        ),
        ("location /there/ { location = /there/key { deny all; } }", "", "/ /open /there/key!"),
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
        // What an expression within says of all that begins so.
        ("location /th { location ~ \\.a$ { deny all; } }", "/-/th** /open /th-*.a"),
        ("location /th { location ~ \\.a$ { deny 1.2.3.4; } }", "/-/th**-*.a /open /th-*.a"),
        ("location /th { location ~ \\.a$ { rewrite ^ /there/key break; } }", "/ /open"),
        ("location /th { location ~ \\.a$ { expires 1h; } }", "/ /open /th"),
        ("location /th/ { location ~ \\.a$ { deny all; } }", "/ /open /th-*.a"),
        // Another file answers where nginx does not come to the rewrite.
        ("location ~ ^/(u|x) { } location /x/ { rewrite ^ /there/key break; }", "/-/x/** /open"),
        ("location ~ ^/u { } location /x/ { rewrite ^ /there/key break; }", "/ /open"),
        ("location ^~ /x/ { rewrite ^ /there/key break; } location ~ x { }", "/ /open"),
        (
            "location ~ \\.a$ { } location /x/ { rewrite ^/x/(.*)$ /x/b/$1 break; }",
            "/ /open /x-*.a",
        ),
        ("location ~ \\.a$ { } location ~ ^/x { rewrite ^ /there/key break; }", "/-/x**.a /open"),
        ("location ~ ^/x { rewrite ^ /there/key break; } location ~ \\.a$ { }", "/ /open"),
        ("location ~ \\.a$ { } location ~ \\.b$ { return 301 /there/key; }", "/ /open"),
        // A rewrite leads to a file that another route has.
        ("location / { rewrite ^ /there/key break; } location = /there/key { deny all; }", ""),
        // What `^~` says is not for a location within.
        (
            "location ^~ /x/ { } location /x/y/ { } location ~ \\.a$ { deny all; }",
            "/-*.a /open-*.a /x /x/y-*.a",
        ),
        (
            "location ^~ /x/ { } location /x/y/ { } location ~ \\.a$ { return 302 /b; }",
            "/ /open /x /x/y",
        ),
        (
            "location ^~ /x/ { } location /x/y/ { } location ~ \\.a$ { deny 1.2.3.4; }",
            "/-*.a /open-*.a",
        ),
        ("location ^~ /x/ { } location /x/y/ { }", "/ /open"),
        // Or which files there are.
        ("location ~ \\.a$ { disable_symlinks on; }", "/-*.a /open-*.a"),
        ("location ~ \\.a$ { disable_symlinks off; }", "/ /open"),
        // Other pages of folders.
        ("location ~ ^/x/ { index a.txt; }", "/-/x/**/-/x/ /open-/x/**/-/x/"),
        ("location ~ ^/x/ { index index.html; }", "/ /open"),
        ("location ~ \\.a$ { index a.txt; }", "/ /open"),
        ("index a.txt; location ~ ^/x/ { }", "/ /open"),
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
