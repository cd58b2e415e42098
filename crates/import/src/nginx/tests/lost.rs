//! What is carried over elsewhere and lost where it stands: nothing of that goes without a word.

use super::*;

/// What a server says, and what of it the comments name.
#[test]
fn what_is_lost_is_told() {
    for (words, expected) in [
        ("location ~ \\.css$ { expires 1h; add_header X-A b; }", "add_header X-A b"),
        ("location ~ \\.css$ { expires 1h; limit_req zone=a; }", "limit_req zone=a"),
        ("location = /x { expires 1h; add_header X-A b; }", "add_header X-A b"),
        ("types { } location = /x { expires 1h; types { } }", "types"),
        ("location ~ ^/u/(.*)$ { add_header X-A b; return 302 /v/$1; }", "add_header X-A b"),
        ("location = /x { add_header X-A b; return 302 /v; }", "add_header X-A b"),
        ("location /x/ { error_page 404 /e.html; expires 1h; }", "error_page 404 /e.html"),
        ("location /x/ { error_page 502 /e; proxy_pass http://a; }", "error_page 502 /e"),
        ("location /x/ { expires -1; proxy_pass http://a; }", "expires -1"),
        ("expires 1h; location /x/ { proxy_pass http://a; }", "expires 1h"),
        (
            "location /x/ { add_header Cache-Control no-store; proxy_pass http://a; }",
            "add_header Cache-Control no-store",
        ),
        ("real_ip_header X-Forwarded-For;", "real_ip_header X-Forwarded-For"),
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        let expected = format!("`{expected}` is not carried over");
        assert!(made.toml.contains(&expected), "{words}\n{}", made.toml);
        made.config().unwrap();
    }
}

#[test]
fn what_holds_all_the_same_is_not() {
    for words in [
        "add_header X-A b; location ~ \\.css$ { expires 1h; add_header X-A b; }",
        "error_page 404 /e.html; location /x/ { error_page 404 /e.html; expires 1h; }",
        "location /x/ { expires off; proxy_pass http://a.example; }",
        "real_ip_header proxy_protocol;",
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        assert!(!made.toml.contains("is not carried over"), "{words}\n{}", made.toml);
    }
}

/// What a server without TLS says, and whether its place for authorities is told of.
#[test]
fn places_beside_a_redirect_are_told() {
    let acme = "location /.well-known/acme-challenge/ { root /acme; }";
    let redirect = "return 301 https://$host$request_uri;";
    for (words, is_told) in [
        (format!("{acme} location / {{ {redirect} }}"), true),
        // Whoever is sent away first gets to no location.
        (format!("{acme} {redirect}"), false),
        (format!("location /a/ {{ {redirect} }} location / {{ {redirect} }}"), false),
    ] {
        let plain = format!("http {{ server {{ listen 80; {words} }}");
        let made = imported(&server("root /srv;").replace("http {", &plain));
        let is_named = made.toml.contains("is not carried over");
        assert_eq!(is_named, is_told, "{words}\n{}", made.toml);
        assert!(made.toml.contains("kind = \"redirect\""), "{}", made.toml);
    }
}
