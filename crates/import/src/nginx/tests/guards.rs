//! Directives that decide who is served, and where clients are sent instead.

use super::shown::{beside_users, routes};
use super::*;

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
