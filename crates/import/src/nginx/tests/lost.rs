//! Directives that are carried over elsewhere and lost where they stand: none of them goes without a word.

use super::*;

/// The text of a server, and the words of it that the comments name.
#[test]
fn what_is_lost_is_told() {
    for (words, expected) in [
        ("location ~ \\.css$ { expires 1h; limit_req zone=a; }", "limit_req zone=a"),
        ("real_ip_header X-Forwarded-For;", "real_ip_header X-Forwarded-For"),
        (
            "location /x/ { proxy_set_header Keep-Alive x; proxy_pass http://a; }",
            "proxy_set_header Keep-Alive x",
        ),
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        let expected = format!("`{expected}` is not carried over");
        assert!(made.toml.contains(&expected), "{words}\n{}", made.toml);
        made.config().unwrap();
    }
}

#[test]
fn a_star_of_a_stream_is_for_all_depths_where_the_map_has_hostnames() {
    for (entries, expected) in [
        ("hostnames; a.example 10.0.0.1:5;", "[\"a.example\"]"),
        ("hostnames; *.a.example 10.0.0.1:5;", "[\"**.a.example\"]"),
        ("hostnames; .a.example 10.0.0.1:5;", "[\"a.example\", \"**.a.example\"]"),
        ("*.a.example 10.0.0.1:5;", "the server is left out"),
    ] {
        let made = imported(&format!(
            "stream {{ map $ssl_preread_server_name $to {{ {entries} }}
             server {{ listen 443; ssl_preread on; proxy_pass $to; }} }}"
        ));
        assert!(made.toml.contains(expected), "{entries}\n{}", made.toml);
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

/// The text of nginx.conf for WebSocket and for streams, and what of kettle does it.
#[test]
fn what_kettle_does_anyway_is_told_with_its_name() {
    let map = "map $http_upgrade $connection_upgrade { default upgrade; '' close; }";
    let pass = "location / { proxy_pass http://10.0.0.1; proxy_buffering off; \
                proxy_set_header Upgrade $http_upgrade; \
                proxy_set_header Connection $connection_upgrade; }";
    let made = imported(&server(pass).replace("http {", &format!("http {{ {map}")));
    for told in ["`websocket = true` of a route says it", "websocket = true\n"] {
        assert!(made.toml.contains(told), "{told}\n{}", made.toml);
    }
    assert!(!made.toml.contains("proxy_buffering") && !made.toml.contains("response_buffering"));
}

#[test]
fn what_holds_all_the_same_is_not() {
    for words in [
        "add_header X-A b; location ~ \\.css$ { expires 1h; add_header X-A b; }",
        "error_page 404 /e.html; location /x/ { error_page 404 /e.html; expires 1h; }",
        "location /x/ { expires off; proxy_pass http://a.example; }",
        "location /x/ { expires -1; proxy_pass http://a.example; }",
        "expires 1h; location /x/ { proxy_pass http://a.example; }",
        "real_ip_header proxy_protocol;",
        "location /x/ { proxy_set_header Proxy ''; proxy_set_header TE \"\"; proxy_pass http://a.example; }",
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        assert!(!made.toml.contains("is not carried over"), "{words}\n{}", made.toml);
        made.config().unwrap();
    }
}

/// A field that kettle does not take is a mistake of its own line.
#[test]
fn a_mistake_in_a_field_stands_where_it_is_written() {
    let words = "location / {\nproxy_pass http://a.example;\nproxy_set_header X@A b;\n}";
    let found = imported(&server(words)).config().unwrap_err();
    assert_eq!(found.iter().map(|it| it.line).collect::<Vec<_>>(), [3], "{}", shown(&found));
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
