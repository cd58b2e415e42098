//! Directives that decide who is served, and where clients are sent instead.

use super::shown::{beside_users, left, routes};
use super::*;

/// What keeps somebody out in nginx, and the routes that are left of `/` and `/open/`: open ones by their prefix, guarded ones
/// with a `?`, closed ones with a `!`, what they refuse behind a `-`. Below `/there` lies a file.
#[test]
fn nothing_becomes_looser() {
    left(&[
        ("", "/open/* /"),
        ("allow all;", "/open/* /"),
        ("deny all;", "/open/*:403 /:403"),
        ("allow 10.0.0.0/8; deny all;", "/open/*? /?"),
        ("allow all; deny 1.2.3.4;", "/open/* /"),
        ("deny 1.2.3.4;", "/open/*? /?"),
        ("deny host.example;", "/open/*! /!"),
        ("set_real_ip_from 10.0.0.1; deny 1.2.3.4;", "/open/*? /?"),
        ("set_real_ip_from 10.0.0.1; real_ip_header X-Forwarded-For; deny 1.2.3.4;", "/open/*! /!"),
        ("set_real_ip_from lb.example; deny 1.2.3.4;", "/open/*! /!"),
        ("listen 444 ssl proxy_protocol; deny 1.2.3.4;", "/open/*! /!"),
        ("set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; deny 1.2.3.4;", "/open/*? /?"),
        ("auth_basic x;", "/open/*! /!"),
        ("auth_basic x; auth_basic_user_file users;", "/open/*? /?"),
        ("auth_basic x; auth_basic_user_file weak;", "/open/*! /!"),
        ("auth_basic $x; auth_basic_user_file users;", "/open/*! /!"),
        ("auth_basic x; auth_basic_user_file /$host;", "/open/*! /!"),
        ("auth_basic off; auth_basic_user_file users;", "/open/* /"),
        (
            "auth_basic x; auth_basic_user_file users; deny 1.2.3.4; satisfy any;",
            "/open/*{2} /open/*? /{2} /?",
        ),
        ("auth_request /auth;", "/open/*! /!"),
        ("satisfy any;", "/open/* /"),
        ("access_by_lua_block { if x then { } end }", "/open/*! /!"),
        ("modsecurity on;", "/open/*! /!"),
        ("secure_link $arg_md5;", "/open/*! /!"),
        ("return 403;", "/:403"),
        ("return 301 $elsewhere;", "/!"),
        ("if ($bad) { return 444; }", "/!"),
        ("if ($request_method !~ ^GET$) { return 405; }", "|{1}:405 /open/* /"),
        ("rewrite ^/(a|b)$ /c;", "|(^/(a|b)$)-> /open/* /"),
        ("rewrite ^/open/(.*)$ /there/$1;", "|(^/open/(.*)$)-> /open/* /"),
        ("location /there/ { deny all; }", "/open/* /there/*:403 /"),
        ("location /there { internal; }", "/open/* @/there* /"),
        ("location /the { auth_basic x; }", "/open/* /the*! /"),
        ("location /nothing/ { deny all; }", "/open/* /nothing/*:403 /"),
        ("location /x/ { return 301 /x/y; }", "/open/* /x/*(^)->301 /"),
        ("location /x/ { return 301 /x$1; }", "/open/* /x/*! /"),
        ("location /x/ { rewrite ^/x/(\\d+) /x/y break; }", "/open/* /x/*(^/x/(\\d+))-> /"),
        ("location /x/ { rewrite ^/x/a /there/key break; alias /b; }", "/open/* /x/*! /"),
        ("location = /there/key { deny all; }", "/open/* =/there/key:403 /"),
        ("location = /there/key { internal; }", "/open/* @=/there/key /"),
        ("location = /there/key { deny 1.2.3.4; }", "/open/* =/there/key? /"),
        ("location = /there { deny all; }", "/open/* =/there:403 /"),
        ("location = /open { deny all; }", "/open/* =/open:403 /"),
        ("location = /there/ { deny all; }", "/open/* =/there/:403 /"),
        ("location = /other { return 404; }", "/open/* =/other:404 /"),
        ("location ~ \\.php$ { memcached_pass a; }", "/open/* ~\\.php$! /"),
        ("location ~ ^/x { auth_basic x; }", "/open/* ~^/x! /"),
        ("location ~ \\.x$ { deny 1.2.3.4; }", "/open/* ~\\.x$? /"),
        ("location ~ \\.x$ { auth_basic x; auth_basic_user_file users; }", "/open/* ~\\.x$? /"),
        ("location ~ \\.a$ { location ~ ^/x { deny all; } }", "/open/* ~\\.a$! /"),
        ("location /x/ { location ~ \\.a$ { deny all; } }", "/open/* /x/* /x/*~\\.a$:403 /"),
        ("location ^~ /x/ { } location ~ \\.a$ { deny all; }", "/open/* ^/x/* ~\\.a$:403 /"),
        ("location /x/ { location ~ \\.a$ { deny 1.2.3.4; } }", "/open/* /x/* /x/*~\\.a$? /"),
        ("location /x/ { root /pub; } location ~ \\.a$ { }", "/open/* /x/* ~\\.a$ /"),
        ("location /x/ { alias /pub/; } location ~ \\.a$ { expires 1h; }", "/open/* /x/* ~\\.a$ /"),
        (
            "location ^~ /x/ { alias /pub/; } location ~ \\.a$ { expires 1h; }",
            "/open/* ^/x/* ~\\.a$ /",
        ),
        ("location ~* \\.php$ { deny all; }", "/open/* ~(?i)\\.php$:403 /"),
        ("location ~ \\.css$ { expires 1h; }", "/open/* ~\\.css$ /"),
        ("location /there { } location /there/ { deny all; }", "/open/* /there* /there/*:403 /"),
        ("location /x/ { limit_except GET { deny all; } }", "/open/* /x/*{1} /x/*:403 /"),
        // The other methods are not asked for what stands beside it.
        ("location /x/ { limit_except GET { deny all; } return 200 a; }", "/open/* /x/*! /"),
        (
            "location /there/ { limit_except POST { deny all; } }",
            "/open/* /there/*{1} /there/*:403 /",
        ),
        ("location /there/ { root $document_root; }", "/open/* /there/*! /"),
    ]);
}

/// The same for names that begin alike, and for other files than those that lie there.
#[test]
fn no_neighbour_becomes_looser() {
    left(&[
        // A place within a location that is not for the outside is not, either.
        (
            "location /there/ { internal; location /there/a/ { expires 1h; } }",
            "/open/* @/there/* /there/a/*:404 /",
        ),
        // Beginnings of names, and whole ones.
        ("location /th { auth_basic x; auth_basic_user_file users; }", "/open/* /th*? /"),
        ("location /th { deny 1.2.3.4; }", "/open/* /th*? /"),
        ("location /th { return 301 /open/; }", "/open/* /th*->301 /"),
        ("location /th { rewrite ^/th(.*)$ /open/$1 last; }", "/open/* /th*(^/th(.*)$)-> /"),
        ("location /there { deny 1.2.3.4; }", "/open/* /there*? /"),
        (
            "location /there { expires 1h; } location /there/ { deny 1.2.3.4; }",
            "/open/* /there* /there/*? /",
        ),
        (
            "location /there { deny 1.2.3.4; } location /there/ { expires 1h; }",
            "/open/* /there*? /there/* /",
        ),
        (
            "location /there { expires 1h; } location /there/ { root /pub; }",
            "/open/* /there* /there/* /",
        ),
        // A folder that nobody could look at.
        (
            "location /a/ { root /srv/there/key; } location /a/b { deny 1.2.3.4; }",
            "/open/* /a/*:404 /a/b*? /",
        ),
        (
            "location /a/ { alias /srv/there/key; } location /a/b { deny 1.2.3.4; }",
            "/open/* /a/*! /a/b*? /",
        ),
        // Other files than those that lie there.
        ("location /there/ { try_files $uri.html =404; }", "/open/* /there/* /"),
        ("location /there/ { try_files /index.html =404; }", "/open/* /there/* /"),
        ("location /there/ { try_files $uri/ =404; }", "/open/* /there/* /"),
        ("location /there/ { try_files $uri/index.html $uri =404; }", "/open/* /there/* /"),
        ("location /there/ { try_files $uri =404; }", "/open/* /there/* /"),
        ("location = / { try_files /there/key =404; }", "/open/* =/ /"),
        ("location = /there/key { root /pub; }", "/open/* =/there/key /"),
        ("location = /there/key { root /pub; expires 1h; }", "/open/* =/there/key /"),
        ("location = /there/key { alias /pub/key; }", "/open/* =/there/key /"),
        ("location = /there/key { root /srv/; }", "/open/* =/there/key /"),
        ("location ~* \\.(js|json)$ { root /pub; }", "/open/* ~(?i)\\.(js|json)$ /"),
        ("location ~* \\.(js|json)$ { root /pub; expires 1h; }", "/open/* ~(?i)\\.(js|json)$ /"),
        ("location ~* \\.(js|json)$ { root /srv; expires 1h; }", "/open/* ~(?i)\\.(js|json)$ /"),
        ("location ~* \\.(js|json)$ { alias /srv; }", "/open/* ~(?i)\\.(js|json)$! /"),
        // The rights of browsers with files.
        ("location ~ ^/up/ { types { } }", "/open/* ~^/up/ /"),
        ("location ~ ^/up/ { default_type text/plain; }", "/open/* ~^/up/ /"),
        ("location ~ \\.svg$ { add_header Content-Security-Policy x; }", "/open/* ~\\.svg$ /"),
        (
            "add_header X-Frame-Options x; location ~ \\.a$ { add_header X-Frame-Options x; }",
            "/open/* ~\\.a$ /",
        ),
        ("location = /there/key { add_header X-Content-Type-Options x; }", "/open/* =/there/key /"),
        // A backend answers for what is not there.
        (
            "location /there/ { try_files $uri @a; } location @a { proxy_pass http://a; }",
            "/open/* /there/*{2}:405 /there/*> /",
        ),
        (
            "location /there/ { try_files $uri @a; } location @a { return 302 /x; }",
            "/open/* /there/*{1}->302 /there/* /",
        ),
        (
            "location /there/ { try_files $uri @a; } location @a { deny 1.2.3.4; proxy_pass http://a; }",
            "/open/* /there/*{1}>? /there/* /",
        ),
        (
            "location /there/ { try_files $uri @a; } location @a { if ($arg_x) { return 403; } proxy_pass http://a; }",
            "/open/* /there/*{3}:403 /there/*{1}> /there/* /",
        ),
        (
            "location /there/ { try_files $uri @a; } location @a { memcached_pass a; }",
            "/open/* /there/* / @=/.named/a!",
        ),
        ("location /there/ { try_files $uri /x.php?a=$uri; }", "/open/* /there/*{1}-> /there/* /"),
        (
            "location /there/ { try_files $uri /x.php?$args; } location ~ \\.php$ { memcached_pass a; }",
            "/open/* /there/* ~\\.php$! /",
        ),
        ("location /there/ { alias /a; try_files $uri /x?a=$uri; }", "/open/* /there/*! /"),
        (
            "location /there/ { error_page 404 = @a; } location @a { proxy_pass http://a; }",
            "/open/* /there/*{2}> /there/* /",
        ),
        (
            "location /there/ { error_page 404 403 = @a; } location @a { proxy_pass http://a; }",
            "/open/* /there/*! /",
        ),
        (
            "location /there/ { error_page 404 @a; } location @a { proxy_pass http://a; }",
            "/open/* /there/*! /",
        ),
        ("error_page 404 = @a; location @a { memcached_pass a; }", "/open/*! /!"),
        // Names with a dot are not all that is meant.
        ("location ~ /\\.git|/there/ { deny all; }", "/open/* ~/\\.git|/there/:403 /"),
        ("location ~ (/\\.|\\.bak$) { deny all; }", "/open/* ~(/\\.|\\.bak$):403 /"),
        // Certificates that other software looks closer at.
        ("ssl_verify_client on; ssl_client_certificate r; ssl_ocsp on;", "/!"),
        ("ssl_verify_client on; ssl_client_certificate r; ssl_ocsp off;", "/open/* /"),
        ("ssl_verify_client optional; ssl_client_certificate r; ssl_ocsp leaf;", "/open/* /"),
        ("ssl_verify_client on; ssl_client_certificate r; ssl_verify_depth 2;", "/open/* /"),
        ("ssl_verify_client on; ssl_client_certificate r; ssl_verify_depth 9;", "/open/* /"),
        ("ssl_verify_depth 2; ssl_ocsp on;", "/open/* /"),
    ]);
}

#[test]
fn nothing_that_is_passed_on_becomes_looser() {
    left(&[
        (
            "location /b/ { proxy_hide_header X-A; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        (
            "proxy_cookie_flags ~ secure; location /b/ { proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        (
            "proxy_cookie_flags $name secure; location /b/ { proxy_pass http://a; }",
            "/open/* /b/*! / =/b->301",
        ),
        (
            "proxy_cookie_path / $uri; location /b/ { proxy_pass http://a; }",
            "/open/* /b/*! / =/b->301",
        ),
        (
            "proxy_cookie_domain ~(?<!a)b c; location /b/ { proxy_pass http://a; }",
            "/open/* /b/*! / =/b->301",
        ),
        (
            "location /b/ { proxy_cookie_path off; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        ("location /b/ { proxy_method GET; proxy_pass http://a; }", "/open/* /b/*> / =/b->301"),
        ("location /b/ { proxy_method HEAD; proxy_pass http://a; }", "/open/* /b/*! / =/b->301"),
        ("location /b/ { proxy_set_body x; proxy_pass http://a; }", "/open/* /b/*> / =/b->301"),
        ("location /b/ { proxy_set_body $x; proxy_pass http://a; }", "/open/* /b/*! / =/b->301"),
        (
            "location /b/ { proxy_pass_request_body off; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        (
            "location /b/ { proxy_pass_request_body on; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        (
            "location /b/ { proxy_pass_request_headers off; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        ("location /nothing/ { proxy_pass http://a; }", "/open/* /nothing/*> / =/nothing->301"),
        ("location /b/ { deny 1.2.3.4; proxy_pass http://a; }", "/open/* /b/*>? / =/b->301"),
        ("location /b/ { deny all; proxy_pass http://a; }", "/open/* /b/*:403 / =/b->301"),
        ("location /b/ { internal; proxy_pass http://a; }", "/open/* @/b/*> / @=/b->301"),
        ("location /b/ { proxy_pass http://$a; }", "/open/* /b/*! / =/b->301"),
        ("location /b/ { set $a http://a; proxy_pass $a; }", "/open/* /b/*> / =/b->301"),
        ("location /b/ { set $a http://a; proxy_pass $a/fixed; }", "/open/* /b/*=>> / =/b->301"),
        ("set $a http://a; location /b/ { proxy_pass $a/fixed; }", "/open/* /b/*=>> / =/b->301"),
        ("location /b/ { proxy_pass http://a/; }", "/open/* /b/*> / =/b->301"),
        ("location /b/ { proxy_pass http://a/b/; }", "/open/* /b/*> / =/b->301"),
        (
            "location /b/ { rewrite ^/b/(.*)$ /c/$1 break; proxy_pass http://a; }",
            "/open/* /b/*> / =/b->301",
        ),
        (
            "location /b/ { limit_except GET { deny all; } proxy_pass http://a; }",
            "/open/* /b/*{1}> /b/*:403 / =/b->301",
        ),
        (
            "if ($request_method = POST) { return 405; } location /b/ { proxy_pass http://a; }",
            "|{1}:405 /open/* /b/*> / =/b->301",
        ),
        (
            "location /b/ { if ( $request_method !~ ^(GET|HEAD)$ ) { return 405; } proxy_pass http://a; }",
            "/open/* /b/*{1}:405 /b/*> / =/b->301",
        ),
        (
            "location /b/ { if (!-e $request_filename) { return 404; } proxy_pass http://a; }",
            "/open/* /b/*{1}:404 /b/*> / =/b->301",
        ),
        (
            "location /b/ { if ($http_x) { set $a 1; } proxy_pass http://a; }",
            "/open/* /b/*{2}> /b/*> / =/b->301",
        ),
        ("location = /b { proxy_pass http://a; }", "/open/* =/b> /"),
        ("location = /b { proxy_pass http://a/b; }", "/open/* =/b> /"),
        ("location = /b { proxy_pass http://a/c; }", "/open/* =/b> /"),
        ("location /b { proxy_pass http://a/c%2fd; }", "/open/* /b*! /"),
        ("location ~ ^/b/(.*)$ { proxy_pass http://a/$1; }", "/open/* ~^/b/(.*)$=>> /"),
        ("location = /b/ { proxy_pass http://a; }", "/open/* =/b/> / =/b->301"),
        ("location = /b { internal; proxy_pass http://a; }", "/open/* @=/b> /"),
        (
            "location /b/ { proxy_pass http://a; } location = /b { proxy_pass http://c; }",
            "/open/* /b/*> =/b> /",
        ),
        ("location ~ ^/b { proxy_pass http://a; }", "/open/* ~^/b> /"),
        (
            "location /b/ { proxy_pass http://a; } location /b/c/ { deny all; }",
            "/open/* /b/*> /b/c/*:403 / =/b->301",
        ),
        (
            "location /b/ { proxy_pass http://a; } location /b/c { deny all; }",
            "/open/* /b/*> /b/c*:403 / =/b->301",
        ),
        (
            "location /b { deny all; } location /b/ { proxy_pass http://a; }",
            "/open/* /b*:403 /b/*> /",
        ),
        (
            "location /b/ { internal; location /b/c/ { proxy_pass http://a; } }",
            "/open/* @/b/* /b/c/*:404 / =/b/c->301",
        ),
        ("location /b { proxy_pass http://a; }", "/open/* /b*> /"),
        ("location /th { proxy_pass http://a; }", "/open/* /th*> /"),
        (
            "location /b { expires 1h; } location /b/ { proxy_pass http://a; }",
            "/open/* /b* /b/*> /",
        ),
        (
            "location /b/ { proxy_pass http://a; location /b/c { proxy_pass http://b; } }",
            "/open/* /b/*> /b/c*> / =/b->301",
        ),
        (
            "location /b/ { proxy_pass http://a; location /b/c { deny 1.2.3.4; proxy_pass http://b; } }",
            "/open/* /b/*> /b/c*>? / =/b->301",
        ),
        ("location /b/ { try_files $uri =404; proxy_pass http://a; }", "/open/* /b/*! / =/b->301"),
    ]);
}

/// The text of a server without `root`, and the routes that are left of it.
#[test]
fn a_location_without_files_does_not_get_those_of_another() {
    for (words, expected) in [
        ("location /private/ { auth_basic x; auth_basic_user_file users; }", "/ /private/*?:404"),
        ("location /private/ { expires 1h; }", "/ /private/*:404"),
        ("location /private/ { root /b; }", "/ /private/*"),
        ("location /th { expires 1h; }", "/ /th*:404"),
        ("location = /there/key { expires 1h; }", "/ =/there/key:404"),
        ("location /a/ { alias /x/; location = /a/b { expires 1h; } }", "/ /a/* =/a/b!"),
        ("location /a/ { alias /x/; location /a/b/ { expires 1h; } }", "/ /a/* /a/b/*"),
        ("location ~ ^/a { alias /x/; location /a/b/ { expires 1h; } }", "/ ~^/a!"),
    ] {
        let made = beside_users(&server(&format!("location / {{ root /srv; }} {words}")));
        let found = made.config().map(|config| routes(&config)).unwrap_or_default();
        assert_eq!(found, expected, "{words}\n{}", made.toml);
    }
}

/// The answer that the route around a place would answer otherwise than the place does, in the same words.
#[test]
fn no_place_is_answered_by_a_laxer_route() {
    left(&[
        ("location /x { } location /x/ { proxy_pass http://a; }", "/open/* /x* /x/*> /"),
        ("location /x { proxy_pass http://a; } location /x/ { }", "/open/* /x*> /x/* /"),
        ("location /x { autoindex on; } location /x/ { }", "/open/* /x* /x/* /"),
        ("location /x { expires 1h; } location /x/ { expires 2h; }", "/open/* /x* /x/* /"),
        ("location /x { autoindex on; } location /x/ { autoindex on; }", "/open/* /x* /x/* /"),
        ("location /x/ { return 301 /y; } location /x { }", "/open/* /x/*->301 /x* /"),
        (
            "types { text/plain txt; } location / { types { text/html txt; } } location ~ ^/x { }",
            "/open/* / ~^/x",
        ),
        (
            "types { text/plain txt; } location / { types { text/html txt; } } location = /x { }",
            "/open/* / =/x",
        ),
        (
            "disable_symlinks on; location / { disable_symlinks off; } location ~ ^/x { }",
            "/open/* / ~^/x",
        ),
        ("location = / { index a; }", "/open/* =/ /"),
        ("index a; location = / { index a; }", "/open/* =/ /"),
        ("location / { rewrite ^ /a break; } location ~ ^/x { }", "/open/* /-> ~^/x"),
        ("location / { rewrite ^ /a break; } location = /x { }", "/open/* /-> =/x"),
        ("location ~ ^/x/ { try_files $uri/index.html $uri =404; }", "/open/* ~^/x/ /"),
        ("index a b; location ~ ^/x/ { try_files $uri/a $uri =404; }", "/open/* ~^/x/ /"),
        ("location / { proxy_pass http://a; } location /x { }", "/open/* /> /x*"),
        ("location / { proxy_pass http://a; } location /x/ { }", "/open/* /> /x/*"),
        ("location ~ ^/x { disable_symlinks on; }", "/open/* ~^/x /"),
        ("location ~ ^/x/ { try_files $uri =404; }", "/open/* ~^/x/ /"),
        ("location ~ \\.x$ { try_files $uri =404; }", "/open/* ~\\.x$ /"),
        ("location ~ ^/x/ { try_files $uri $uri/ =404; }", "/open/* ~^/x/ /"),
        ("location ~ ^/x/ { autoindex off; }", "/open/* ~^/x/ /"),
        ("autoindex on; location ~ ^/x/ { autoindex off; }", "/open/* ~^/x/ /"),
    ]);
}

/// The networks that two servers on one socket trust, and whether lists of addresses hold there.
#[test]
fn nobody_chooses_the_address_that_is_looked_at() {
    let trusting = "set_real_ip_from 10.0.0.0/8; real_ip_header proxy_protocol;";
    let more =
        "set_real_ip_from 10.0.0.0/8; set_real_ip_from 192.0.2.1; real_ip_header proxy_protocol;";
    for (first, second, expected) in [
        (trusting, trusting, "/ /?"),
        ("", trusting, "/ /!"),
        (trusting, "", "/ /!"),
        (trusting, more, "/ /!"),
        (more, trusting, "/ /!"),
        ("", "", "/ /!"),
    ] {
        let certificate =
            "listen 443 ssl proxy_protocol; ssl_certificate c; ssl_certificate_key k; root /r;";
        let text = format!(
            "http {{ server {{ server_name a; {certificate} {first} }} \
             server {{ server_name b; {certificate} {second} deny 1.2.3.4; }} }}"
        );
        let made = beside_users(&text);
        assert_eq!(routes(&made.config().unwrap()), expected, "{first} {second}\n{}", made.toml);
    }
}

/// The text of two servers, that of the first listener then, and whether a list of addresses of the second one holds.
#[test]
fn a_header_names_clients_where_all_servers_find_them_by_it() {
    let real = "set_real_ip_from 10.1.2.3/8; set_real_ip_from 2001:db8::/32;";
    let cloud = format!("{real} real_ip_header CF-Connecting-IP;");
    let listed = format!("{real} real_ip_header X-Forwarded-For; real_ip_recursive on;");
    let direct = format!("{real} real_ip_header X-Forwarded-For;");
    let trusted = |header: &str| {
        format!(
            "trusted_proxies = [\"10.0.0.0/8\", \"2001:db8::/32\"]\nclient_ip_header = \"{header}\"\n"
        )
    };
    let nobody = || "http2 = false\n\n".to_owned();
    for (first, second, expected, sites) in [
        (real, real, trusted("x-real-ip"), "/ /?"),
        (&cloud, &cloud, trusted("cf-connecting-ip"), "/ /?"),
        (&listed, &listed, trusted("x-forwarded-for"), "/ /?"),
        // Of two trusted proxies nginx takes the first one for the client then.
        (&direct, &direct, nobody(), "/ /!"),
        (&listed, &cloud, nobody(), "/ /!"),
        (&listed, "", nobody(), "/ /?"),
        ("", &listed, nobody(), "/ /!"),
        (&format!("{listed} listen 444 ssl proxy_protocol;"), &listed, nobody(), "/ /!"),
        (
            &listed,
            &format!("{listed} location /x {{ real_ip_recursive off; deny 1.2.3.4; }}"),
            trusted("x-forwarded-for"),
            "/ /x*! /?",
        ),
        ("set_real_ip_from unix:;", "set_real_ip_from unix:;", nobody(), "/ /!"),
        (
            &format!("{real} real_ip_header Host;"),
            &format!("{real} real_ip_header Host;"),
            nobody(),
            "/ /!",
        ),
        (
            &format!("{real} real_ip_header X_R;"),
            &format!("{real} real_ip_header X_R;"),
            nobody(),
            "/ /!",
        ),
    ] {
        let certificate = "listen 443 ssl; ssl_certificate c; ssl_certificate_key k; root /r;";
        let text = format!(
            "http {{ server {{ server_name a; {certificate} {first} }} \
             server {{ server_name b; {certificate} {second} deny 1.2.3.4; }} }}"
        );
        let made = beside_users(&text);
        assert!(made.toml.contains(&expected), "{first} {second}\n{}", made.toml);
        assert_eq!(routes(&made.config().unwrap()), sites, "{first} {second}\n{}", made.toml);
        let is_told = made.toml.contains("`set_real_ip_from");
        let has_any = !(first.is_empty() && second.is_empty());
        assert_eq!(is_told, has_any && expected == nobody(), "{first} {second}\n{}", made.toml);
    }
}

#[test]
fn a_name_is_not_free_when_its_first_server_is_closed() {
    let certificate = "listen 443 ssl; ssl_certificate c; ssl_certificate_key k; root /r;";
    let text = format!(
        "http {{ server {{ server_name a b; {certificate} auth_request /x; }} \
         server {{ server_name a c; {certificate} }} }}"
    );
    let config = config(&text);
    let names: Vec<Vec<&str>> = config
        .sites
        .iter()
        .map(|site| site.names.iter().map(|it| it.value.as_str()).collect())
        .collect();
    assert_eq!(names, [vec!["a", "b"], vec!["c"]]);
    assert_eq!(routes(&config), "/! /");
}

/// Of modules that kettle does not know: what guards for the whole of `http`, and what only speaks there.
#[test]
fn scripts_that_decide_for_all_servers_close_them() {
    for (words, is_served) in [
        ("access_by_lua_file a.lua;", false),
        ("rewrite_by_lua_block { ngx.exit(403) }", false),
        ("auth_ldap x;", false),
        ("auth_ldap off;", true),
        ("modsecurity on;", false),
        ("modsecurity off;", true),
        ("init_by_lua_file a.lua;", true),
        ("lua_shared_dict a 1m;", true),
    ] {
        let text = server("root /srv;").replace("http {", &format!("http {{ {words}"));
        let made = beside_users(&text);
        assert_eq!(made.toml.contains("root = "), is_served, "{words}\n{}", made.toml);
    }
}
