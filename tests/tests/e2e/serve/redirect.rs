//! The plain listener that only says where to find the same thing over HTTPS.

use super::*;

#[test]
fn plain_http_is_sent_to_https() {
    let kettle =
        Kettle::start(Setup::default().listener("kind = \"redirect\"\nredirect_port = 8443"));
    for (request, location) in [
        (get("/a%20b?c=d"), "https://localhost:8443/a%20b?c=d"),
        (get("//evil.test/"), "https://localhost:8443//evil.test/"),
        (
            b"GET http://other.test/x HTTP/1.1\r\nHost: other.test\r\n\r\n".to_vec(),
            "https://other.test:8443/x",
        ),
        (request("POST", "/form", "Content-Length: 0\r\n"), "https://localhost:8443/form"),
    ] {
        let mut client = Wire::connect(kettle.address());
        let response = client.exchange(&request);
        assert_eq!((response.status, response.header("location")), (308, Some(location)));
        assert_eq!(response.header("connection"), Some("close"));
        client.read_to_end();
    }
}

#[test]
fn what_is_answered_to_plain_http_is_logged_and_counted() {
    let setup = Setup::default().listener("kind = \"redirect\"").listener("").file("www/a", "x");
    let kettle = Kettle::start(setup);
    for (address, status) in [(kettle.addresses[0], 308), (kettle.addresses[1], 400)] {
        let mut client = Wire::connect(address);
        let response =
            client.exchange(&request("GET", "/a?b", "User-Agent: a test\r\nReferer: /x\r\n"));
        assert_eq!(response.status, status);
        let entry = kettle.entry("/a?b");
        assert_eq!(entry.number("status"), u64::from(status));
        for (name, said) in [
            ("method", "GET"),
            ("version", "HTTP/1.1"),
            ("host", "localhost"),
            ("user_agent", "a test"),
            ("referer", "/x"),
            ("path", "plain"),
        ] {
            assert_eq!(entry.text(name), said, "{name}");
        }
        assert!(!entry.has("tls_version") && !entry.has("server_name"), "{entry:?}");
        assert_eq!(entry.number("body_bytes"), response.body.len() as u64);
        assert_eq!(response.body.is_empty(), status == 308);
        let bytes = (response.head.len() + response.body.len()) as u64;
        assert_eq!((entry.number("bytes_sent"), entry.number("request")), (bytes, 1));
        assert!(entry.is_complete());
    }
    let _ = Wire::answer(kettle.address(), b"BREW\r\n\r\n");
    assert_eq!(kettle.entry("").number("status"), 400, "no request");
    assert_eq!(kettle.status("/total/responses/plain"), 3);
    assert_eq!(kettle.status("/total/statuses"), serde_json::json!({ "308": 1, "400": 2 }));
}

#[test]
fn the_default_port_and_another_status_are_understood() {
    let kettle =
        Kettle::start(Setup::default().listener("kind = \"redirect\"\nredirect_status = 301"));
    let mut client = Wire::connect(kettle.address());
    let response = client.exchange(&get_at("localhost:8080", "/"));
    assert_eq!((response.status, response.header("location")), (301, Some("https://localhost/")));
}

#[test]
fn plain_http_on_the_https_port_is_told_where_to_go() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let port = kettle.address().port();
    let link = format!("<a href=\"https://localhost:{port}/a?b=1&amp;c\">");
    for pieces in [1, 3] {
        let mut client = Wire::connect(kettle.address());
        let request = format!("GET /a?b=1&c HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n");
        for piece in request.as_bytes().chunks(request.len().div_ceil(pieces)) {
            client.send(piece).unwrap();
        }
        let response = client.response();
        assert_eq!((response.status, response.header("connection")), (400, Some("close")));
        let body = String::from_utf8(response.body).unwrap();
        assert!(body.contains("HTTPS") && body.contains(&link), "{body}");
        client.read_to_end();
    }
    for sent in
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), b"GET /\r\n\r\n", b"BREW / \r\n\r\n"]
    {
        let mut client = Wire::connect(kettle.address());
        assert!((400..600).contains(&client.exchange(sent).status), "{sent:?}");
        client.read_to_end();
    }
    let mut head = Wire::connect(kettle.address());
    head.send(&request("HEAD", "/", "")).unwrap();
    assert_eq!(head.response_head().status, 400);
    let mut malformed = Wire::connect(kettle.address());
    malformed.send(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(malformed.response_head().status, 400);
    let mut body = Vec::new();
    Read::read_to_end(&mut malformed, &mut body).unwrap();
    assert_eq!(body, b"", "a HEAD has none");
    drop(malformed);
    kettle.wait_for_status("/total/connections_open", 1);
    assert_eq!(kettle.status("/total/connections_open"), 1, "its end is waited for");
    drop(head);
    kettle.wait_until_idle();
}

#[test]
fn plain_http_on_the_https_port_can_be_redirected() {
    let kettle = Kettle::start(Setup::default().listener("plain_http = \"redirect\""));
    let port = kettle.address().port();
    for (host, location) in [
        ("localhost:81".to_owned(), "https://localhost:81/a".to_owned()),
        ("localhost".to_owned(), format!("https://localhost:{port}/a")),
    ] {
        let mut client = Wire::connect(kettle.address());
        let response = client.exchange(&get_at(&host, "/a"));
        assert_eq!(response.status, 307);
        assert_eq!(response.header("location"), Some(location.as_str()));
    }
}
