//! Directives that close more than the place where they stand: sockets that servers share, words that nobody knows; and how all
//! of it is ranked and summed up.

use super::*;

/// Servers of a stream, and the addresses that are left.
#[test]
fn what_guards_a_socket_of_a_stream_guards_all_of_it() {
    let tls = "ssl_certificate c; ssl_certificate_key k;";
    for (servers, expected) in [
        (["listen 1; deny all;", "listen 2;"], "0.0.0.0:2"),
        (["listen 1 ssl default_server; deny all;", "listen 1 ssl; server_name a.example;"], ""),
        (["listen 1 ssl; deny 10.0.0.0/8;", "listen 1 ssl; server_name a.example;"], ""),
        (["listen 1 ssl; server_name a.example;", "listen 1 ssl; deny all;"], ""),
        (["listen 1 ssl; ssl_reject_handshake on;", "listen 1 ssl; server_name a.example;"], ""),
        (["listen 1 ssl;", "listen 1 ssl; server_name a.example;"], ""),
        // Without the narrower one, its clients would come to the wider.
        (["listen 127.0.0.1:1; deny all;", "listen 1;"], ""),
        (["listen 127.0.0.1:1; deny all;", "listen 127.0.0.2:1;"], "127.0.0.2:1"),
        (["listen 1; ssl_reject_handshake on;", "listen 2;"], "0.0.0.0:2"),
        (["listen 1; ssl_reject_handshake off;", "listen 2;"], "0.0.0.0:1 0.0.0.0:2"),
    ] {
        let servers = servers.map(|it| format!("server {{ {it} {tls} proxy_pass 10.0.0.1:5; }}"));
        let made = imported(&format!("stream {{ {} }}", servers.concat()));
        let listeners = made.config().map(|it| it.listeners).unwrap_or_default();
        let found: Vec<String> = listeners.iter().map(|it| it.address.to_string()).collect();
        assert_eq!(found.join(" "), expected, "{servers:?}\n{}", made.toml);
        let is_lost = made.toml.contains("What answers 403 or is lost:");
        assert_eq!(is_lost, listeners.len() < 2, "{}", made.toml);
    }
}

/// Words of modules that kettle does not know, each where it stands for all, and whether what is served by it is.
#[test]
fn what_nobody_knows_closes_all_that_it_may_guard() {
    let stream = "stream { server { listen 9; proxy_pass 10.0.0.1:5; } }";
    for (words, is_served) in [
        ("app_protect_enable on;", false),
        ("wallarm_mode block;", false),
        ("waf on;", false),
        ("waf off;", true),
        ("security_rules { a b; }", false),
        ("lua_shared_dict a 1m;", true),
        ("js_import a.js;", true),
        ("modsecurity_rules_file a;", true),
        ("geoip2 a.mmdb { x y; }", true),
        ("vhost_traffic_status_zone;", true),
        ("status_zone a;", true),
        ("match ok { status 200; }", true),
    ] {
        let text = server("root /srv;") + stream;
        let of_http = imported(&text.replace("http {", &format!("http {{ {words}")));
        assert_eq!(of_http.toml.contains("root = "), is_served, "{words}\n{}", of_http.toml);
        assert!(of_http.toml.contains("0.0.0.0:9"), "{words}\n{}", of_http.toml);
        let of_stream = imported(&text.replace("stream {", &format!("stream {{ {words}")));
        assert_eq!(of_stream.toml.contains("0.0.0.0:9"), is_served, "{words}\n{}", of_stream.toml);
        assert!(of_stream.toml.contains("root = "), "{words}\n{}", of_stream.toml);
        for made in [of_http, of_stream] {
            let word = words.split([' ', ';']).next().unwrap();
            let told = format!("is closed because of `{word}");
            assert_eq!(made.toml.contains(&told), !is_served, "{words}\n{}", made.toml);
        }
        for outside in ["events {", ""] {
            let text = match outside {
                "" => format!("{words} {text}"),
                block => text.replace(block, &format!("{block} {words}")),
            };
            let made = imported(&text);
            assert!(made.toml.contains("root = "), "{}", made.toml);
        }
    }
}

/// A loss comes before what is only otherwise, whatever the order of the file.
#[test]
fn the_report_ranks_and_sums_up() {
    for (words, expected) in [
        ("etag off; location /a/ { internal; }", "2 of 2 places carried over."),
        ("location /a/ { deny all; } location /b/ { return 404; }", "3 of 3 places carried over."),
        ("etag off; location /a/ { stub_status; }", "1 of 2 places carried over, 1 answers 403."),
        (
            "location /a/ { auth_request /x; } location /b/ { } location /c/ { grpc_pass a; }",
            "2 of 4 places carried over, 2 answer 403.",
        ),
        ("", "1 of 1 place carried over."),
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        assert!(made.toml.contains(&format!("# {expected}\n")), "{words}\n{}", made.toml);
        let lost = made.toml.find("# What answers 403 or is lost:");
        assert_eq!(lost.is_some(), expected.contains("403"), "{}", made.toml);
        if let Some((lost, trifle)) = lost.zip(made.toml.find("etag off")) {
            assert!(lost < trifle, "{}", made.toml);
            assert!(made.toml.contains("# What else is not as it was:"), "{}", made.toml);
        }
    }
}
