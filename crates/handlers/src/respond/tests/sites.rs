//! Names, connections, and the way from HTTP to HTTPS.

use std::path::Path;

use kettle_config::Reach;
use kettle_exchange::error_page;
use kettle_exchange::request::Presented;
use kettle_exchange::response::{Body, Edge};
use kettle_runtime::access_log::RequestId;
use kettle_runtime::clock::DateLine;

use super::stage::{Reply, Stage, head};
use crate::redirect::Redirect;
use crate::route::{KnownNames, Router};

fn redirect(text: &str, https_port: u16, status: u16) -> Reply {
    let head = head(text);
    let response =
        Redirect { https_port, status: Some(status) }.respond(&head, &RequestId::default());
    let response =
        response.unwrap_or_else(|error| error_page::plain(&error, &RequestId::default()));
    let date_line = DateLine::new().at(std::time::SystemTime::now());
    let version = Some(head.version());
    Reply::new(
        response,
        &Edge {
            date_line,
            version,
            is_head: false,
            is_tls: false,
            closes: true,
            begins_tunnel: false,
        },
    )
}

#[tokio::test]
async fn the_connection_line_says_what_happens_to_the_connection() {
    let server = Stage::new().file("a", "x").open();
    let http11 = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let http10 = "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    for (text, closes, expected) in [
        (http11, false, None),
        (http11, true, Some("close")),
        (http10, false, Some("keep-alive")),
        (http10, true, Some("close")),
    ] {
        let reply = server.send(text, Some("localhost"), closes).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("connection"), expected, "{text}");
    }
}

#[test]
fn plain_http_is_sent_to_the_same_address_over_https() {
    for (line, host, port, location) in [
        ("GET /", "example.org", 443, "https://example.org/"),
        ("GET /a%20b/c?d=%0d%0a", "example.org:80", 443, "https://example.org/a%20b/c?d=%0d%0a"),
        ("GET //evil.example/x", "example.org", 8443, "https://example.org:8443//evil.example/x"),
        ("GET /x", "[2001:db8::1]:8080", 8443, "https://[2001:db8::1]:8443/x"),
        ("GET /a;b=c/@d:e,f+g?h=/", "example.org", 443, "https://example.org/a;b=c/@d:e,f+g?h=/"),
        ("GET /a%3bb/c%2Fd", "example.org", 443, "https://example.org/a%3bb/c%2Fd"),
        ("POST /form", "example.org", 443, "https://example.org/form"),
        ("GET http://example.org/x;y?z", "example.org", 443, "https://example.org/x;y?z"),
        ("OPTIONS *", "example.org", 443, "https://example.org/"),
    ] {
        let text = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let reply = redirect(&text, port, 308);
        assert_eq!((reply.status, reply.header("location")), (308, Some(location)), "{line}");
        assert_eq!(reply.header("strict-transport-security"), None, "RFC 6797 §7.2");
    }
}

#[test]
fn plain_http_without_a_host_or_with_a_bad_path_is_refused() {
    assert_eq!(redirect("GET / HTTP/1.0\r\n\r\n", 443, 301).status, 400);
    let text = "GET /%00 HTTP/1.1\r\nHost: example.org\r\n\r\n";
    assert_eq!(redirect(text, 443, 301).status, 400);
}

#[test]
fn a_star_over_https_does_not_stand_for_a_name_that_is_served_in_plain_alone() {
    let listener = |port: u16, sites: &str| {
        format!(
            "[[listener]]\naddress = \"127.0.0.1:{port}\"\nkind = \"http\"\nsites = [\"{sites}\"]\n"
        )
    };
    let site = |name: &str, more: &str| {
        format!(
            "[[site]]\nnames = [\"{name}\"]\n{more}\n[[site.route]]\nredirect = [{{ to = \"https://x.example/\" }}]\n"
        )
    };
    let text = [
        "[[listener]]\naddress = \"127.0.0.1:1\"\n".to_owned(),
        listener(2, "a.example"),
        listener(3, "plain.star.example"),
        site("a.example", "self_signed = true"),
        site("*.star.example", "self_signed = true"),
        site("plain.star.example", ""),
    ];
    let config = kettle_config::parse(&text.concat(), Path::new("kettle.toml")).unwrap();
    let reach = Reach::of(&config);
    let known = KnownNames::of(&config, &reach);
    let router = Router::build(&config, &Default::default(), &Default::default(), None).unwrap();
    let plain = router.of_listener(&config.listeners[1], &reach, &known, None).unwrap();
    for (name, is_sent) in [("b.star.example", true), ("plain.star.example", false)] {
        let head = head(&format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n"));
        let host = head.host_bytes();
        assert!(plain.site(host, Presented::default()).is_none(), "{name}");
        assert_eq!(plain.https_for(&head).is_some(), is_sent, "{name}");
        assert_eq!(router.site(host, Presented::default()).is_some(), is_sent, "as over HTTPS");
    }
}

#[test]
fn authorities_are_answered_over_plain_http_whatever_the_name_is() {
    let text = "[[listener]]\naddress = \"127.0.0.1:1\"\n[[listener]]\naddress = \"127.0.0.1:2\"\nkind = \"http\"\n\
                sites = [\"a.example\"]\n[[site]]\nnames = [\"a.example\"]\nself_signed = true\n[[site.route]]\n\
                redirect = [{ to = \"https://x.example/\" }]\n";
    let config = kettle_config::parse(text, Path::new("kettle.toml")).unwrap();
    let reach = Reach::of(&config);
    let challenges = kettle_tls::Challenges::default();
    let router = Router::build(&config, &Default::default(), &Default::default(), None).unwrap();
    let plain =
        router.of_listener(&config.listeners[1], &reach, &KnownNames::of(&config, &reach), None);
    let plain = plain.unwrap().answering(Some(&challenges));
    let ask = |router: &Router, begin: &str| {
        let head = head(&format!("{begin} HTTP/1.1\r\nHost: nobody.example\r\n\r\n"));
        router.challenge(&head)
    };
    let path = "/.well-known/acme-challenge/token";
    assert!(ask(&plain, &format!("GET {path}")).is_none(), "unknown");
    challenges.present_http("token", "token.thumb").unwrap();
    for method in ["GET", "HEAD"] {
        let response = ask(&plain, &format!("{method} {path}")).unwrap();
        let lines = String::from_utf8(response.fields.lines().concat()).unwrap();
        assert_eq!(response.status, 200);
        assert!(lines.contains("nosniff") && lines.contains("no-store"), "{lines}");
        assert!(matches!(&response.body, Body::Memory(body) if body == "token.thumb"));
    }
    for begin in ["POST", "PUT"].map(|method| format!("{method} {path}")) {
        assert!(ask(&plain, &begin).is_none(), "{begin}");
    }
    for other in ["/tokens", "", "/../token", "x/token", "/token/"] {
        let begin = format!("GET /.well-known/acme-challenge{other}");
        assert!(ask(&plain, &begin).is_none(), "{begin}");
    }
    assert!(ask(&router, &format!("GET {path}")).is_none(), "over HTTPS");
    challenges.withdraw_http("token");
    assert!(ask(&plain, &format!("GET {path}")).is_none(), "withdrawn");
}

/// The demands of a site on its clients are not got around by a listener that has only a name which says less.
#[test]
fn a_name_counts_only_where_no_site_elsewhere_has_it_more_exactly() {
    let site = |name: &str, port: u16| {
        format!(
            "[[listener]]\naddress = \"127.0.0.1:{port}\"\nsites = ['{name}']\n\
             [[site]]\nnames = ['{name}']\nself_signed = true\n[[site.route]]\nredirect = [{{ to = \"https://x.example/\" }}]\n"
        )
    };
    // From the least exact to the most.
    let names = [
        r"~^a\.(?<rest>.+)$",
        "a.*",
        "a.b.*",
        "**.c",
        "**.b.c",
        "*.b.c",
        "a.b.c",
        r"~\.d$",
        r"~^b\.",
    ];
    let text: String = names.iter().zip(2..).map(|(name, port)| site(name, port)).collect();
    let config = kettle_config::parse(&text, Path::new("kettle.toml")).unwrap();
    let reach = Reach::of(&config);
    let known = KnownNames::of(&config, &reach);
    let router = Router::build(&config, &Default::default(), &Default::default(), None).unwrap();
    let own = |listener| router.of_listener(listener, &reach, &known, None).unwrap();
    let routers: Vec<_> = config.listeners.iter().map(own).collect();
    let reached_at = |name: &str| -> Vec<usize> {
        let is_reached = |number: &usize| {
            routers[*number].site(Some(name.as_bytes()), Presented::default()).is_some()
        };
        (0..routers.len()).filter(is_reached).collect()
    };
    for (name, expected) in [
        ("a.b.c", vec![6]),
        ("x.b.c", vec![5]),
        ("x.y.b.c", vec![4]),
        ("x.y.c", vec![3]),
        ("a.b.x", vec![2]),
        ("a.x", vec![1]),
        // Of one kind none is more exact, and each listener has its own.
        ("b.d", vec![7, 8]),
        ("c.e", vec![]),
    ] {
        assert_eq!(reached_at(name), expected, "{name}");
    }
}
