use std::path::Path;

use kettle_http::forwarded::Scheme;

use super::*;
use crate::words::WordSource;

/// The rules of a route with these settings.
fn rewrites(settings: &str) -> Rewrites {
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:1\"\nkind = \"https\"\n[[backend]]\nname = \"a\"\n\
         [[backend.server]]\naddress = \"127.0.0.1:2\"\n[[site]]\nnames = [\"_\"]\nself_signed = true\n\
         [[site.route]]\nbackend = \"a\"\n{settings}"
    );
    let config = kettle_config::parse(&text, Path::new("kettle.toml")).unwrap();
    Rewrites::of(&config.sites[0].routes[0]).unwrap()
}

fn words(source: &WordSource) -> Words<'_> {
    Words {
        head: None,
        host: Some("a.example:8443".into()),
        reference: "/".into(),
        path: None,
        scheme: Scheme::Https,
        client: None,
        certificate: None,
        answer: None,
        vouched: None,
        source,
    }
}

fn cookie(settings: &str, cookie: &str) -> String {
    let source = WordSource::default();
    let turned = rewrites(settings).cookie(cookie.as_bytes(), &words(&source));
    turned.map_or_else(|| cookie.to_owned(), |it| String::from_utf8(it).unwrap())
}

fn location(settings: &str, location: &str) -> String {
    let source = WordSource::default();
    let turned = rewrites(settings).location(location.as_bytes(), &words(&source));
    turned.map_or_else(|| location.to_owned(), |it| String::from_utf8(it).unwrap())
}

/// The answers of nginx 1.30 for each.
#[test]
fn cookies_get_other_paths() {
    for (settings, sent, expected) in [
        (r#"{ from = "/", to = "/a/" }"#, "s=1; Path=/; HttpOnly", "s=1; Path=/a/; HttpOnly"),
        (r#"{ from = "/", to = "/a/" }"#, "s=1;path=/deep;Domain=x", "s=1; path=/a/deep; Domain=x"),
        (r#"{ from = "/b", to = "/a" }"#, "s=1;  Path=/", "s=1;  Path=/"),
        (r#"{ from = "/", to = "/a/" }"#, "path=/; Path", "path=/; Path"),
        (r#"{ from = "/x", to = "/a" }, { to = "/c" }"#, "s=1; Path=/y", "s=1; Path=/c"),
        (
            r#"{ regex = "(?i)^/([a-z]+)", to = "/x/{1}" }"#,
            "s=1; Path=/DEEP/more",
            "s=1; Path=/x/DEEP",
        ),
        (r#"{ regex = "/(?<host>b)", to = "/{host}{{" }"#, "s; Path=/b", "s; Path=/b{"),
        (r#"{ from = "/", to = "/; Secure" }"#, "s=1; Path=/", "s=1; Path=/; Secure"),
        (r#"{ from = "/", to = "/a/" }"#, "s=\"a=b\"; Path = / ", "s=\"a=b\"; Path=/a/"),
    ] {
        assert_eq!(cookie(&format!("cookie_path = [{settings}]"), sent), expected, "{settings}");
    }
}

#[test]
fn cookies_get_other_domains() {
    for (settings, sent, expected) in [
        (
            r#"{ from = "internal.local", to = "{host}" }"#,
            "s=1; Domain=.INTERNAL.local",
            "s=1; Domain=a.example",
        ),
        (r#"{ from = ".a", to = "b" }"#, "s=1; domain=a", "s=1; domain=b"),
        // A domain is meant as a whole.
        (r#"{ from = "a", to = "b" }"#, "s=1; domain=a.a", "s=1; domain=a.a"),
        (
            r#"{ regex = "^(.*)[.]a$", to = "{1}.{host}" }"#,
            "s; Domain=x.a",
            "s; Domain=x.a.example",
        ),
    ] {
        assert_eq!(cookie(&format!("cookie_domain = [{settings}]"), sent), expected, "{settings}");
    }
}

#[test]
fn cookies_get_flags_and_lose_them() {
    for (settings, sent, expected) in [
        (
            r#"{ flags = ["secure", "samesite=lax"] }"#,
            "s=1; samesite=Strict; Path=/",
            "s=1; SameSite=Lax; Path=/; Secure",
        ),
        (r#"{ flags = ["secure", "httponly"] }"#, "s; SECURE", "s; SECURE; HttpOnly"),
        (r#"{ name = "S", flags = ["httponly"] }, { flags = ["secure"] }"#, "s=1", "s=1; HttpOnly"),
        (r#"{ name = "x", flags = ["httponly"] }, { flags = ["secure"] }"#, "s=1", "s=1; Secure"),
        (r#"{ regex = "^s", flags = ["samesite=none"] }"#, "as=1", "as=1"),
        (
            r#"{ flags = ["nosecure", "nohttponly", "nosamesite"] }"#,
            "secure=1; Secure; Path=/; httponly; SameSite=Lax; secure",
            "secure=1; Path=/",
        ),
    ] {
        assert_eq!(cookie(&format!("cookie_flags = [{settings}]"), sent), expected, "{settings}");
    }
}

#[test]
fn redirects_lead_where_the_first_entry_says() {
    for (settings, sent, expected) in [
        (r#"{ from = "http://in/", to = "/c/" }"#, "http://in/next?a=1", "/c/next?a=1"),
        (r#"{ from = "http://in/", to = "/c/" }"#, "https://in/next", "https://in/next"),
        (
            r#"{ regex = "^http://o:([0-9]+)/(.*)$", to = "{scheme}://{host}:{port}/p{1}/{2}" }"#,
            "http://o:84/x",
            "https://a.example:8443/p84/x",
        ),
        (
            r#"{ from = "http://{host}/", to = "https://{host}/" }"#,
            "http://a.example/x",
            "https://a.example/x",
        ),
        // Two slashes would name a host.
        (r#"{ from = "http://in/", to = "/" }"#, "http://in//evil.example", "/evil.example"),
        (r#"{ regex = "^/(.*)$", to = "/{1}" }"#, "///evil.example", "/evil.example"),
        ("", "http://in/x", "http://in/x"),
    ] {
        let settings = format!("backend_redirect = [{settings}]");
        assert_eq!(location(&settings, sent), expected, "{settings}");
    }
}

/// As the URL standard (WHATWG) has browsers read it, none of these names another host than ours.
#[test]
fn no_redirect_leads_to_another_host_by_how_its_path_is_spelled() {
    let settings = r#"backend_redirect = [{ from = "http://in/", to = "/" }, { regex = "^(.*)$", to = "{1}" }]"#;
    for (sent, expected) in [
        ("/", "/"),
        ("/\\evil.example", "/evil.example"),
        ("/\\/evil.example", "/evil.example"),
        ("/\t/evil.example", "/evil.example"),
        ("http://in/\r\n\\evil.example", "/evil.example"),
        ("\\\\evil.example", "/evil.example"),
        ("\t//evil.example", "/evil.example"),
        (" \u{1}/\t\\\tevil.example", "/evil.example"),
        ("http://in/\\evil.example", "/evil.example"),
        ("http://in/\t/evil.example", "/evil.example"),
        // A name that does not stand at the beginning names no host, and a host that is named stays.
        ("/a\\b//c\td", "/a\\b//c\td"),
        ("/ /a", "/ /a"),
        ("https://other.example/x", "https://other.example/x"),
        ("a//b", "a//b"),
        ("", ""),
    ] {
        assert_eq!(location(settings, sent), expected, "{sent:?}");
    }
}

#[test]
fn the_url_of_a_refresh_is_found() {
    for (value, at) in [("5; url=http://a", Some(7)), ("0;URL=/", Some(6)), ("5", None)] {
        assert_eq!(url_of_refresh(value.as_bytes()), at, "{value}");
    }
}
