//! Several sites at one address: certificates by name, sites by Host, and what each site adds to its responses.

use super::*;

#[test]
fn the_name_asked_for_decides_the_certificate_and_the_site() {
    let kettle = start_with_three_sites();
    for (name, body) in [
        ("localhost", "the first"),
        ("second.test", "the second"),
        ("SECOND.test", "the second"),
        ("a.wild.test", "the third"),
        ("b.wild.test", "the third"),
    ] {
        let response = fetch(&kettle, name, name).unwrap();
        assert_eq!((response.status, response.body.as_slice()), (200, body.as_bytes()), "{name}");
    }
}

#[test]
fn a_name_that_no_site_has_is_refused_in_the_handshake() {
    let kettle = start_with_three_sites();
    for name in ["unknown.test", "wild.test", "a.b.wild.test"] {
        assert!(fetch(&kettle, name, name).is_none(), "{name}");
    }
    // A client may see the end before it is counted.
    let failed = || kettle.status("/total/handshakes_failed");
    wait_until("they are counted", || failed() != serde_json::json!({}));
}

#[test]
fn a_request_for_a_site_that_the_certificate_is_not_for_is_misdirected() {
    let kettle = start_with_three_sites();
    for (connected, asked, status) in [
        ("localhost", "second.test", 421),
        ("second.test", "localhost", 421),
        ("localhost", "unknown.test", 421),
        ("a.wild.test", "b.wild.test", 200),
        ("localhost", "localhost:8443", 200),
    ] {
        let response = fetch(&kettle, connected, asked).unwrap();
        assert_eq!(response.status, status, "{connected} {asked}");
    }
}

/// A monitor or a proxy may say the machine's name in the handshake, and two files may be copies of one.
#[test]
fn a_connection_is_one_of_the_site_whose_certificate_it_was_shown() {
    let issued = issue(&["localhost", "second.test"], Kind::Ecdsa);
    let setup = Setup::default().certificate(issued.clone()).issued("copy", &issued);
    let setup = setup.another_site(&["second.test"], "copy", "[[site.route]]\nroot = \"second\"");
    let setup = setup.file("www/index.html", "the first").file("second/index.html", "the second");
    let kettle = Kettle::start(setup);
    for (connected, asked, body) in
        [("localhost", "second.test", "the second"), ("second.test", "localhost", "the first")]
    {
        let response = fetch(&kettle, connected, asked).unwrap();
        assert_eq!((response.status, &*response.body), (200, body.as_bytes()), "{asked}");
    }
    let unknown = |host: &str| {
        kettle
            .openssl(&["-servername", "machine.internal"])
            .typed(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .text()
    };
    for (host, body) in [("localhost", "the first"), ("second.test", "the second")] {
        let said = unknown(host);
        assert!(said.contains("HTTP/1.1 200 ") && said.contains(body), "{said}");
    }
    for _ in 0..2 {
        let said = unknown("machine.internal");
        assert!(said.contains("HTTP/1.1 421 "), "{said}");
        assert!(said.contains("No site here has the name <b>machine.internal</b>."), "{said}");
    }
    kettle.messages().wait_for("no site has this name");
    let said = kettle.messages().text();
    assert!(said.contains("machine.internal") && said.contains("default = true"), "{said}");
    assert_eq!(said.matches("no site has this name").count(), 1, "once a minute: {said}");
}

#[test]
fn a_default_site_answers_for_every_name() {
    let certificate = issue(&["localhost", "other.test"], Kind::Ecdsa);
    let setup = Setup::default().certificate(certificate).site("default = true");
    let kettle = Kettle::start(setup.file("www/index.html", "the default"));
    let response = fetch(&kettle, "other.test", "other.test").unwrap();
    assert_eq!((response.status, response.body), (200, b"the default".to_vec()));
}

#[test]
fn a_site_adds_its_own_headers_to_every_response() {
    let setup = Setup::default()
        .file("www/a.css", "x")
        .site("hsts.max_age = \"365d\"")
        .site("hsts.include_subdomains = true")
        .site("headers.X-Frame-Options = \"DENY\"")
        .route("headers.X-Route = \"here\"")
        .route("cache_control.\"*.css\" = \"max-age=86400\"");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    for (target, status, cache_control) in
        [("/a.css", 200, Some("max-age=86400")), ("/missing", 404, None)]
    {
        let response = client.get(target);
        assert_eq!(response.status, status);
        let hsts = response.header("strict-transport-security");
        assert_eq!(hsts, Some("max-age=31536000; includeSubDomains"));
        assert_eq!(response.header("x-frame-options"), Some("DENY"));
        assert_eq!(response.header("x-route"), Some("here"));
        assert_eq!(response.header("cache-control"), cache_control);
    }
}

#[test]
fn an_error_page_of_the_site_takes_the_place_of_the_built_in_one() {
    let setup = Setup::default()
        .file("missing.html", "<p>our own words")
        .site("error_pages.404 = \"missing.html\"");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    let own = client.get("/missing");
    assert_eq!((own.status, own.body.as_slice()), (404, b"<p>our own words".as_slice()));
    let built_in = client.exchange(&kettle_tests::http::request("POST", "/missing", ""));
    assert_eq!(built_in.status, 405);
    // No version, and nothing else that helps to choose an attack.
    assert_eq!(built_in.header("server"), Some("kettle"));
}

#[test]
fn what_is_no_request_gets_the_sites_page_too() {
    let mut setup = Setup::default().site("headers.X-Site = \"ours\"");
    for status in [400, 404, 408, 414, 421, 431] {
        setup = setup
            .file(&format!("{status}.html"), format!("our {status}"))
            .site(&format!("error_pages.{status} = \"{status}.html\""));
    }
    let kettle = Kettle::start(setup.set("limits", "request_timeout = \"1s\""));
    let long = "x".repeat(20_000);
    for (sent, status) in [
        ("BREW\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n".to_owned(), 400),
        ("GET /%ff HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 404),
        ("GET / HTTP/1.1\r\n".to_owned(), 408),
        (format!("GET /{long} HTTP/1.1\r\n"), 414),
        ("GET / HTTP/1.1\r\nHost: unknown.test\r\n\r\n".to_owned(), 421),
        (format!("GET / HTTP/1.1\r\nX: {long}\r\n\r\n"), 431),
    ] {
        let mut client = kettle.connect(TLS13_AES_128);
        let response = client.exchange(sent.as_bytes());
        let page = format!("our {status}");
        assert_eq!(response.header("x-site"), Some("ours"), "{status}");
        assert_eq!((response.status, response.body), (status, page.into_bytes()), "{sent:.40}");
    }
}

fn start_with_three_sites() -> Kettle {
    let mut setup = Setup::default().file("www/index.html", "the first");
    for (name, names, page) in
        [("second", "second.test", "the second"), ("third", "*.wild.test", "the third")]
    {
        let issued = issue(&[names], Kind::Ecdsa);
        let root = format!("[[site.route]]\nroot = \"{name}\"");
        setup = setup.issued(name, &issued).file(&format!("{name}/index.html"), page);
        setup = setup.another_site(&[names], name, &root);
    }
    Kettle::start(setup)
}

/// Connects as to `server_name` and asks for the index of `host`; `None` if there is no handshake.
fn fetch(kettle: &Kettle, server_name: &str, host: &str) -> Option<Response> {
    let dialer = Dialer::suite(TLS13_AES_128).server_name(server_name);
    let mut client = dialer.try_connect(kettle.address()).ok()?;
    Some(client.exchange(&get_at(host, "/")))
}
