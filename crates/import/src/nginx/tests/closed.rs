//! Directives that close more than the place where they stand: sockets that servers share, words that nobody knows; and how all
//! of it is told, ranked and summed up.

use super::*;

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

#[test]
fn a_stream_is_passed_on_by_name_where_nginx_reads_names_and_once() {
    let map = "map $ssl_preread_server_name $to { a.example 10.0.0.1:5; }";
    let server = |port, words| format!("server {{ listen {port}; {words} proxy_pass $to; }}");
    for (servers, left_out) in [
        (server(443, "ssl_preread on;"), 0),
        (server(443, ""), 1),
        (server(443, "ssl_preread off;"), 1),
        (server(443, "ssl_preread on;") + &server(444, "ssl_preread on;"), 1),
    ] {
        let made = imported(&format!("stream {{ {map} {servers} }}"));
        let told = made.toml.matches("the server is left out because of `proxy_pass $to`").count();
        assert_eq!(told, left_out, "{servers}\n{}", made.toml);
    }
}

/// The text of `--summary`: each remark once, in two parts, and the sum.
#[test]
fn a_summary_says_the_same_once_and_the_sum_at_its_end() {
    let closed = "location /a/ { memcached_pass 10.0.0.1:9000; }";
    let trifles = "location /b/ { msie_padding on; } location /c/ { msie_padding on; }";
    for (words, sum) in [
        (format!("{closed} {trifles}"), "3 of 4 places carried over, 1 answers 403."),
        (trifles.to_owned(), "3 of 3 places carried over."),
    ] {
        let summary = imported(&server(&format!("root /srv; {words}"))).summary();
        let lost = summary.matches("What answers 403 or is lost:\n").count();
        assert_eq!(lost, usize::from(words.contains(closed)), "{summary}");
        assert_eq!(summary.matches("`msie_padding on`").count(), 1, "{summary}");
        assert!(summary.contains(" (and 1 more)\n"), "{summary}");
        let (_, end) = summary.split_once(sum).unwrap_or_else(|| panic!("{summary}"));
        assert!(end.ends_with(" directives differ, as they say above.\n"), "{summary}");
    }
    assert!(imported(&server("root /srv;")).summary().contains("1 of 1 place carried over.\n"));
}
