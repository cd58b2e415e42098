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

/// nginx adds the slash where a backend answers below, and nothing else is at the name without it.
#[test]
fn a_folder_of_a_backend_gets_its_slash() {
    left(&[
        ("location /b/ { proxy_pass http://a; }", "/open/* /b/*> / =/b->301"),
        ("location = /b/ { proxy_pass http://a; }", "/open/* =/b/> / =/b->301"),
        ("location /b/ { proxy_pass http://a; } location /b { }", "/open/* /b/*> /b* /"),
        (
            "location /b/ { proxy_pass http://a; } location = /b { deny all; }",
            "/open/* /b/*> =/b:403 /",
        ),
        ("location /b/ { expires 1h; }", "/open/* /b/* /"),
        // These letters are none of a URL.
        ("location '/b c/' { proxy_pass http://a; }", "/open/* /b c/*> / =/b c!"),
    ]);
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

/// The conditions asked one after the other, and the routes of one place for it.
#[test]
fn conditions_become_routes_of_one_place() {
    left(&[
        ("location /a/ { if ($arg_x) { return 403; } }", "/open/* /a/*{2}:403 /a/* /"),
        ("location /a/ { if ($arg_x = 1) { add_header A b; } }", "/open/* /a/*{1} /a/* /"),
        (
            "location /a/ { if ($arg_x = 1) { add_header A b; } if ($arg_y = 2) { return 403; } }",
            "/open/* /a/*{2}:403 /a/*{1} /a/*{1}:403 /a/* /",
        ),
        // `set` is followed as far as it can be.
        ("location /a/ { set $b 1; if ($b) { return 403; } }", "/open/* /a/*:403 /"),
        ("location /a/ { set $b 0; if ($b) { return 403; } }", "/open/* /a/* /"),
        (
            "location /a/ { set $b 0; if ($arg_x = 1) { set $b 1; } if ($b) { return 403; } }",
            "/open/* /a/*{1}:403 /a/* /",
        ),
        ("location /a/ { if ($unknown) { return 403; } }", "/open/* /a/*! /"),
        ("location /a/ { if ($arg_x ~ (?=a)) { return 403; } }", "/open/* /a/*! /"),
        (
            "location /a/ { valid_referers none blocked server_names *.b.example; if ($invalid_referer) { return 403; } }",
            "/open/* /a/*{3}:403 /a/* /",
        ),
        (
            "location /a/ { valid_referers b.example; if ($invalid_referer) { return 403; } }",
            "/open/* /a/*{1}:403 /a/* /",
        ),
        (
            "location /a/ { valid_referers ~a|b; if ($invalid_referer) { return 403; } }",
            "/open/* /a/*! /",
        ),
        ("location /a/ { if ($invalid_referer) { return 403; } }", "/open/* /a/*! /"),
        // Its groups are not those of the path.
        (
            "location ~ ^/a/(.*)$ { if ($arg_x ~ (.)) { return 302 /b/$1; } }",
            "/open/* ~^/a/(.*)${1}->302 ~^/a/(.*)$ /",
        ),
        ("location ~ ^/a/(.*)$ { return 302 /b/$1; }", "/open/* ~^/a/(.*)$->302 /"),
        ("location ~ ^/a/(?<b>.*)$ { return 302 /b/$b; }", "/open/* ~^/a/(?<b>.*)$->302 /"),
        // A place that is refused is not kept from whom nobody lets in.
        (
            "location /a/ { deny 1.2.3.4; if ($arg_x = 1) { return 404; } }",
            "/open/* /a/*{1}:404 /a/*? /",
        ),
        (
            "location /a/ { deny 1.2.3.4; if ($arg_x = 1) { add_header A b; } }",
            "/open/* /a/*{1}? /a/*? /",
        ),
        (
            "location /a/ { limit_except GET POST { deny all; } proxy_pass http://a; }",
            "/open/* /a/*{1}> /a/*:403 / =/a->301",
        ),
        (
            "location /a/ { limit_except GET { auth_basic x; auth_basic_user_file users; } proxy_pass http://a; }",
            "/open/* /a/*{1}> /a/*>? / =/a->301",
        ),
        // A page of an error that leads to a location is that location.
        (
            "location /a/ { error_page 418 = @b; return 418; } location @b { proxy_pass http://a; }",
            "/open/* /a/*> /",
        ),
        ("location /a/ { rewrite ^/a/(.*)$ /open/$1 last; deny all; }", "/open/* /a/*:403 /"),
        ("location /a/ { rewrite ^ /open/x last; deny all; }", "/open/* /a/*-> /"),
        (
            "location /a/ { rewrite ^/a/b$ /c permanent; rewrite ^/a/c$ /d; }",
            "/open/* /a/*(^/a/b$)->301(^/a/c$)-> /",
        ),
        ("location /a/ { rewrite ^/a/b$ /c; rewrite ^/a/c$ /d permanent; }", "/open/* /a/*! /"),
    ]);
}

/// The questions of a server before any location, in its order.
#[test]
fn what_a_server_asks_comes_before_its_routes() {
    left(&[
        ("if ($http_user_agent ~* bad) { return 403; }", "|{1}:403 /open/* /"),
        (
            "if ($arg_a = 1) { return 403; } rewrite ^/b$ /c permanent;",
            "|{1}:403 |(^/b$)->301 /open/* /",
        ),
        ("if ($arg_a = 1) { return 403; } return 404;", "|{1}:403 /:404"),
        (
            "rewrite ^/a/(.*)$ /b/$1 last; rewrite ^/c/(.*)$ /d/$1 last;",
            "|(^/a/(.*)$)->(^/c/(.*)$)-> /open/* /",
        ),
        // The rest is not asked of a path that was found.
        (
            "rewrite ^/a/(.*)$ /b/$1 last; if ($arg_a = 1) { return 403; }",
            "|(^/a/(.*)$)-> |{2}:403 /open/* /",
        ),
        (
            "if ($arg_a = 1) { set $b 1; } rewrite ^/a/(.*)$ /b/$1 last; if ($b) { return 403; }",
            "/!",
        ),
        (
            "if ($arg_a = 1) { set $b 1; } location /x/ { if ($b) { return 403; } }",
            "/open/* /x/*! /",
        ),
        ("if ($arg_a = 1) { set $b 1; } if ($b) { return 403; }", "|{1}:403 |{1}:403 /open/* /"),
        ("if ($arg_a = 1) { root /pub; }", "/!"),
        // The client that is meant is refused, and nobody else.
        ("if ($args ~ ^p=(.*)$) { return 301 /post/$1; }", "|{1}:403 /open/* /"),
        (
            "if ($arg_a = 1) { rewrite ^/a$ /b last; } if ($arg_c) { return 404; }",
            "|~(?i)^/a${1}:403 |{2}:404 /open/* /",
        ),
    ]);
}

/// A question of a server that kettle cannot say closes the requests about which it may decide, and no others.
#[test]
fn what_no_condition_asks_closes_what_it_may_decide() {
    left(&[
        // It may be for all.
        ("if ($slow) { return 403; }", "/!"),
        ("if ($slow) { break; } rewrite ^/b$ /c permanent;", "/!"),
        ("if ($slow) { break; }", "/open/* /"),
        ("if ($http_a !~ (?<!b)c) { return 403; }", "/!"),
        ("if ($http_a ~ (?R)) { return 403; }", "/!"),
        ("if ($http_a ~ (?<!b)c) { return 403; }", "|{1}:403 /open/* /"),
        ("if ($request_method ~ (?<!b)c) { return 403; }", "|{1}:403 /open/* /"),
        ("if ($slow) { rewrite ^/a/ /b; }", "|~(?i)^/a/:403 /open/* /"),
        ("if ($http_a ~ (?<!b)c) { rewrite ^/a/ /b; }", "|~(?i)^/a/{1}:403 /open/* /"),
        // Nothing is known of what it sets.
        ("if ($slow) { set $a 1; } location /x/ { if ($a) { return 403; } }", "/open/* /x/*! /"),
        ("if ($slow) { set $a 1; } if ($a) { return 403; }", "/!"),
        ("rewrite ^/a/(.*)$ /b/$slow last;", "|~(?i)^/a/(.*)$:403 /open/* /"),
        ("rewrite ^/a(?<!b) /b; return 404;", "|~(?i)^/a(?:):403 /:404"),
        ("rewrite ^ /$slow last;", "/!"),
        // Each of them is asked of what came before it led nowhere else.
        (
            "rewrite ^/a$ /b last; rewrite ^/c(?<!d) /d last; rewrite ^/e$ /f last;",
            "|(^/a$)-> |~(?i)^/c(?:){1}:403 |{1}(^/e$)-> /open/* /",
        ),
        // One of two ways.
        (
            "if ($arg_a) { set $b 1; } if ($b) { return 200 $slow; } location /x { expires $b; }",
            "|{2}:403 |{1}:403 |{2}:403 /open/* /x* /",
        ),
        (
            "if ($arg_a) { set $b 1; } rewrite ^/c$ /d last; location /x { if ($b) { return 403; } }",
            "|{2}(^/c$)-> |{1}(^/c$)-> |{2}(^/c$)-> /open/* /x*! /",
        ),
        // A variable set behind them is not set there.
        (
            "set $b 1; rewrite ^/a$ /x last; set $b 0; location /x { if ($b) { return 403; } }",
            "|~(?i)^/a$:403 /open/* /x* /",
        ),
        (
            "set $b 1; if ($args) { break; } set $b 0; location /x { if ($b) { return 403; } }",
            "|{2}:403 /open/* /x* /",
        ),
        (
            "set $b 1; if ($args) { rewrite ^/a$ /x last; } set $b 0; location /x { if ($b) { return 403; } }",
            "|~(?i)^/a${2}:403 /open/* /x* /",
        ),
        ("set $b 1; if ($slow) { break; } set $b 0; location /x { expires $b; }", "/!"),
        ("rewrite ^/a$ /x last; set $unused 0;", "|(^/a$)-> /open/* /"),
        // Ways are told by what the rewrite changes.
        (
            "set $b 0; if ($uri ~ ^/c) { set $b 1; } rewrite ^/c$ /d; location /x { if ($b) { return 403; } }",
            "|~(?i)^/c${1}:403 |~(?i)^/c${1}:403 /open/* /x*{1}:403 /x* /",
        ),
        (
            "if ($arg_a = 1) { set $b 1; } rewrite ^/c$ /d?a=2 last; location /x { expires $b; }",
            "|~(?i)^/c${1}:403 |~(?i)^/c${1}:403 /open/* /x*{1} /x* /",
        ),
    ]);
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
