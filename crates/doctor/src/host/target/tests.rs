//! The names of a server.

use super::*;

#[test]
fn a_server_is_named_in_several_ways() {
    for (text, host, port) in [
        ("https://example.com", "example.com", 443),
        ("HTTPS://example.com:8443/a/b?c#d", "example.com", 8443),
        ("example.com:8443", "example.com", 8443),
        ("example.com", "example.com", 443),
        ("example.com/", "example.com", 443),
        ("192.0.2.1:1", "192.0.2.1", 1),
        ("[2001:db8::1]:8443", "2001:db8::1", 8443),
        ("https://[::1]", "::1", 443),
        ("::1", "::1", 443),
    ] {
        let target: Target = text.parse().unwrap();
        assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
    }
    let shown = |text: &str| text.parse::<Target>().unwrap().to_string();
    assert_eq!(shown("[::1]:1"), "[::1]:1");
    assert_eq!(shown("a.example"), "a.example:443");
}

#[test]
fn other_things_name_none() {
    for text in [
        "",
        "https://",
        ":443",
        "a:0",
        "a:65536",
        "a:b",
        "a b",
        "user@a",
        "[::1",
        "[a]:1",
        "a\u{202e}b",
        "fe80::1%eth0",
        "a:1:2",
    ] {
        assert!(matches!(text.parse::<Target>(), Err(BadTarget::Form(_))), "{text:?}");
    }
    let refused = "http://a".parse::<Target>();
    assert_eq!(refused, Err(BadTarget::Scheme("http".to_owned())));
}
