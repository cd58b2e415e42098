use kettle_http::HeadLimits;
use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_tls::stream::Received;

use super::*;

fn listener(header: Option<&str>) -> Listener {
    let header = header.map(|it| format!("client_ip_header = \"{it}\"\n")).unwrap_or_default();
    listener_of(&format!(
        "address = \"127.0.0.1:443\"\ntrusted_proxies = [\"10.0.0.0/8\", \"fd00::/8\"]\n{header}"
    ))
}

/// A listener with these settings.
fn listener_of(settings: &str) -> Listener {
    let text = format!(
        "[[listener]]\n{settings}\n[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n"
    );
    let config = kettle_config::parse(&text, std::path::Path::new("kettle.toml")).unwrap();
    config.listeners[0].clone()
}

/// `unix:` is one without an address.
fn address(peer: &str) -> ClientAddress {
    peer.parse().map_or(ClientAddress::Unix, ClientAddress::Ip)
}

/// The client of a request with these field lines.
fn client(header: Option<&str>, peer: &str, lines: &[&str]) -> Client {
    Client::of(&head(lines), address(peer), Some(&listener(header)))
}

fn head(lines: &[&str]) -> Head {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes();
    let limits =
        HeadLimits { head_bytes_max: 64 * 1024, headers_max: 128, ..HeadLimits::default() };
    let Ok(ParseRequest::Complete { head, .. }) = parse_request(&bytes, &limits) else {
        panic!("no request: {lines}")
    };
    head.moved_to(()).moved_to(Received::from(bytes.clone()))
}

/// Says which client it is, and over which proxies.
fn told(client: &Client) -> String {
    let proxies: Vec<_> = client.proxies.iter().map(ToString::to_string).collect();
    format!("{} {}", client.address, proxies.join(","))
}

#[test]
fn the_last_address_that_is_not_trusted_is_the_client() {
    let peer = "10.0.0.1:5000";
    for (lines, expected) in [
        (&[][..], "10.0.0.1:5000 "),
        (&["X-Forwarded-For: 192.0.2.1"], "192.0.2.1:0 10.0.0.1"),
        (&["X-Forwarded-For: 6.6.6.6, 192.0.2.1:567"], "192.0.2.1:567 10.0.0.1"),
        (&["x-forwarded-for: 6.6.6.6, 192.0.2.1, 10.0.0.9"], "192.0.2.1:0 10.0.0.9,10.0.0.1"),
        (
            &[
                "X-Forwarded-For: 6.6.6.6, 192.0.2.1",
                "X-Forwarded-For: fd00::1",
                "X-Forwarded-For: 10.1.1.1",
            ],
            "192.0.2.1:0 fd00::1,10.1.1.1,10.0.0.1",
        ),
        // All are trusted: the first is as far as is told.
        (&["X-Forwarded-For: 10.0.0.3, 10.0.0.2"], "10.0.0.3:0 10.0.0.2,10.0.0.1"),
        // A word that is no address ends it.
        (&["X-Forwarded-For: 192.0.2.1, unknown"], "10.0.0.1:5000 "),
        (&["X-Forwarded-For: 192.0.2.1, unknown, 10.0.0.2"], "10.0.0.2:0 10.0.0.1"),
        (&["X-Forwarded-For: ::ffff:10.0.0.2, ::ffff:192.0.2.1"], "192.0.2.1:0 10.0.0.1"),
        (&["X-Forwarded-For: 192.0.2.1, [::ffff:10.0.0.2]:9"], "192.0.2.1:0 10.0.0.2,10.0.0.1"),
        // Other fields of the kind are nobody's word.
        (&["X-Real-IP: 192.0.2.1", "Forwarded: for=192.0.2.1"], "10.0.0.1:5000 "),
    ] {
        let client = client(None, peer, lines);
        assert_eq!(told(&client), expected, "{lines:?}");
        assert!(client.is_vouched_for);
    }
}

#[test]
fn strangers_are_not_believed() {
    let lines =
        ["X-Forwarded-For: 10.0.0.7", "X-Forwarded-Proto: http", "CF-Connecting-IP: 10.0.0.7"];
    for header in [None, Some("CF-Connecting-IP"), Some("Forwarded")] {
        let client = client(header, "192.0.2.9:5000", &lines);
        assert_eq!(told(&client), "192.0.2.9:5000 ");
        assert_eq!((client.scheme, client.is_vouched_for), (Scheme::Https, false));
        assert_eq!(client.naming_field(), None);
        assert_eq!(client.is_named_by(b"cf_connecting.ip"), header == Some("CF-Connecting-IP"));
    }
}

#[test]
fn an_ipv4_peer_may_come_over_ipv6() {
    let client = client(None, "[::ffff:10.0.0.1]:5000", &["X-Forwarded-For: 192.0.2.1"]);
    assert_eq!(told(&client), "192.0.2.1:0 10.0.0.1");
}

#[test]
fn other_headers_have_one_address() {
    let peer = "10.0.0.1:5000";
    let header = Some("CF-Connecting-IP");
    for (lines, expected) in [
        (&["CF-Connecting-IP: 192.0.2.1"][..], "192.0.2.1:0 10.0.0.1"),
        (&["cf-connecting-ip: 10.0.0.5"], "10.0.0.5:0 10.0.0.1"),
        (&["CF-Connecting-IP: 192.0.2.1, 192.0.2.2"], "10.0.0.1:5000 "),
        (&["CF-Connecting-IP: 192.0.2.1", "CF-Connecting-IP: 192.0.2.1"], "10.0.0.1:5000 "),
        (&["CF-Connecting-IP: x"], "10.0.0.1:5000 "),
        (&["X-Forwarded-For: 192.0.2.1"], "10.0.0.1:5000 "),
    ] {
        let client = client(header, peer, lines);
        assert_eq!(told(&client), expected, "{lines:?}");
        let is_named = !client.proxies.is_empty();
        assert_eq!(client.naming_field().is_some(), is_named, "{lines:?}");
    }
}

#[test]
fn the_scheme_is_said_by_trusted_proxies() {
    let peer = "10.0.0.1:5000";
    for (header, lines, expected) in [
        (None, &["X-Forwarded-Proto: http"][..], Scheme::Http),
        (None, &["X-Forwarded-Proto: HTTPS"], Scheme::Https),
        (None, &["X-Forwarded-Proto: ws"], Scheme::Http),
        (None, &["X-Forwarded-Proto: http, https"], Scheme::Https),
        (None, &["X-Forwarded-Proto: http", "X-Forwarded-Proto: http"], Scheme::Https),
        (None, &["Forwarded: for=192.0.2.1;proto=http"], Scheme::Https),
        (
            Some("Forwarded"),
            &["Forwarded: for=192.0.2.1;proto=http, for=10.0.0.2;proto=https"],
            Scheme::Http,
        ),
        (
            Some("Forwarded"),
            &["Forwarded: for=192.0.2.1;proto=https", "X-Forwarded-Proto: http"],
            Scheme::Https,
        ),
        (Some("Forwarded"), &["Forwarded: for=192.0.2.1", "X-Forwarded-Proto: http"], Scheme::Http),
    ] {
        assert_eq!(client(header, peer, lines).scheme, expected, "{lines:?}");
    }
}

#[test]
fn lists_without_end_are_followed_for_some_proxies() {
    let list = vec!["10.0.0.2"; 6_000].join(",");
    let long = client(None, "10.0.0.1:5000", &[&format!("X-Forwarded-For: {list}")]);
    assert_eq!(
        (long.proxies.len(), long.host()),
        (PROXIES_MAX, ClientHost::Ip([10, 0, 0, 2].into()))
    );
    let lines = vec!["X-Forwarded-For: 192.0.2.1"; 120];
    assert_eq!(told(&client(None, "10.0.0.1:5000", &lines)), "192.0.2.1:0 10.0.0.1");
    let empty = format!("X-Forwarded-For: 192.0.2.1{}", ",".repeat(60_000));
    assert_eq!(told(&client(None, "10.0.0.1:5000", &[&empty])), "192.0.2.1:0 10.0.0.1");
    let garbage = format!("X-Forwarded-For: {}", "1".repeat(60_000));
    assert_eq!(told(&client(None, "10.0.0.1:5000", &[&garbage])), "10.0.0.1:5000 ");
}

#[test]
fn only_trusted_proxies_name_requests() {
    let head = head(&["X-Request-Id: theirs"]);
    let listener = listener(None);
    let name = |peer: &str| {
        let client = Client::of(&head, address(peer), Some(&listener));
        client.named(Some(&head), 3, 4).request_id
    };
    assert_eq!(name("10.0.0.1:5000"), RequestId::Said("theirs".into()));
    assert_eq!(name("192.0.2.1:5000"), RequestId::Own { connection: 3, number: 4 });
}

#[test]
fn those_behind_a_unix_socket_are_believed_together_or_not_at_all() {
    let head = head(&["X-Forwarded-For: 192.0.2.1, 10.0.0.9"]);
    let told_on = |trusted: &str| {
        let listener = listener_of(&format!("address = \"unix:/run/a\"\n{trusted}"));
        told(&Client::of(&head, ClientAddress::Unix, Some(&listener)))
    };
    for (trusted, expected) in [
        ("", "unix: "),
        ("trusted_proxies = [\"10.0.0.0/8\", \"0.0.0.0/0\", \"::/0\"]", "unix: "),
        ("trusted_proxies = [\"unix:\"]", "10.0.0.9:0 unix:"),
        ("trusted_proxies = [\"unix:\", \"10.0.0.0/8\"]", "192.0.2.1:0 10.0.0.9,unix:"),
    ] {
        assert_eq!(told_on(trusted), expected, "{trusted}");
    }
}
