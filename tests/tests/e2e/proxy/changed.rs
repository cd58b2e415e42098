//! The rewrites of a server's answer for clients: where its redirects lead, its cookies, its errors. And what it is asked for by a
//! rewrite.

use super::*;

/// Returns what curl gets by each protocol, in small letters.
fn by_both(kettle: &Kettle, words: &[&str], target: &str) -> [String; 2] {
    ["--http1.1", "--http2"].map(|protocol| {
        let words = [&[protocol, "--include"], words].concat();
        kettle.curl(&words, target).succeed().to_ascii_lowercase()
    })
}

fn served(route: &str, response: &str) -> (Kettle, Backend) {
    let backend = Backend::listen();
    backend.answer_all(response);
    let setup = before(route, "", &[backend.address()]);
    (Kettle::start(setup.listener("http2 = true")), backend)
}

#[test]
fn redirects_and_cookies_are_those_of_this_site_by_both_protocols() {
    let response = "HTTP/1.1 302 Found\r\nLocation: http://in.local:81/next?a=1\r\n\
        Refresh: 5; url=http://in.local:81/later\r\n\
        Set-Cookie: sess=1; Path=/; Domain=in.local\r\nSet-Cookie: theme=dark; path=/deep; HttpOnly\r\n\
        Content-Length: 0\r\n\r\n";
    let (kettle, _backend) = served(
        r#"
        backend_redirect = [{ from = "http://in.local:81/", to = "{scheme}://{host}/app/" }]
        cookie_path = [{ from = "/", to = "/app/" }]
        cookie_domain = [{ from = "in.local", to = "{host}" }]
        cookie_flags = [{ name = "sess", flags = ["secure", "samesite=lax"] }, { flags = ["nohttponly"] }]
        "#,
        response,
    );
    for got in by_both(&kettle, &[], "/app/x") {
        for line in [
            "location: https://localhost/app/next?a=1\r\n",
            "refresh: 5; url=https://localhost/app/later\r\n",
            "set-cookie: sess=1; path=/app/; domain=localhost; secure; samesite=lax\r\n",
            "set-cookie: theme=dark; path=/app/deep\r\n",
        ] {
            assert!(got.contains(line), "{line}: {got}");
        }
    }
    let (kettle, _backend) = served("backend_host = \"in.local:81\"", response);
    for got in by_both(&kettle, &[], "/app/x") {
        assert!(got.contains("\nlocation: /next?a=1\r\n"), "{got}");
        assert!(got.contains("\nrefresh: 5; url=/later\r\n"), "{got}");
    }
    let (kettle, _backend) =
        served("backend_host = \"in.local:81\"\nbackend_redirect = []", response);
    for got in by_both(&kettle, &[], "/app/x") {
        assert!(got.contains("\nlocation: http://in.local:81/next?a=1\r\n"), "{got}");
    }
}

#[test]
fn a_servers_error_keeps_its_challenge_behind_a_page_for_every_method() {
    let response = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\n\
        WWW-Authenticate: Bearer\r\nX-App: 1\r\nContent-Length: 4\r\n\r\nneed";
    let backend = Backend::listen();
    backend.answer_all(response);
    let route = "intercept_errors = true\nerror_pages = { 401 = { route = \"/login.html\" } }";
    let setup = before(route, "", &[backend.address()]).listener("http2 = true");
    let setup = setup.file("www/login.html", "please log in");
    let kettle = Kettle::start(setup);
    for words in [&["-X", "GET"][..], &["-X", "DELETE"], &["--data", "a=1"], &["-T", "/dev/null"]] {
        for got in by_both(&kettle, words, "/app/x?y=1") {
            assert!(got.contains(" 401 ") || got.contains(" 401\r\n"), "{got}");
            assert!(got.contains("\nwww-authenticate: basic realm=\"a\"\r\n"), "{got}");
            assert!(got.contains("\nwww-authenticate: bearer\r\n"), "{got}");
            assert!(got.ends_with("please log in"), "{words:?}: {got}");
            assert!(!got.contains("last-modified") && !got.contains("x-app"), "{got}");
        }
    }
}

#[test]
fn a_page_of_a_server_is_asked_for_by_get_and_without_the_body() {
    let servers = Backend::listen();
    let page = "\n[[site.route]]\nexact = \"/down\"\nbackend = \"app\"\ninternal = true\n";
    let route = "error_pages = { 413 = { route = \"/down\" } }\nrequest_body = 9";
    let setup = before(route, "", &[servers.address()]).more(page);
    let kettle = Kettle::start(setup.listener("http2 = true"));
    let mut client = Dialer::default().connect(kettle.address());
    let mut kept = None;
    for _ in 0..2 {
        client.send(b"POST /app/x?y=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nIf-Match: *\r\n\r\n0123456789").unwrap();
        let head = answer(servers.asked(&mut kept), &ok("too much"));
        assert!(head.starts_with("GET /down HTTP/1.1\r\n"), "{head}");
        assert!(!head.contains("content-length") && !head.contains("if-match"), "{head}");
        let response = client.response();
        assert_eq!((response.status, &*response.body), (413, &b"too much"[..]));
        assert_eq!(kettle.entry("/app/x?y=1").text("method"), "POST");
    }
    // The connection goes on behind the body, which nobody wanted.
    client.send(&get("/none")).unwrap();
    assert_eq!(client.response().status, 404);
}

/// A body that was under way to a server whose response is not sent goes nowhere: least of all to the server of the page.
#[test]
fn the_rest_of_a_body_does_not_follow_the_request_for_a_page() {
    let bad = "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\n";
    let failed = "HTTP/1.1 500 Failed\r\nContent-Length: 100\r\n\r\nbeginning";
    for (response, status) in [(bad, 502), (failed, 500)] {
        let failing = Backend::listen();
        let paged = Backend::listen();
        let page = format!(
            "\n[[site.route]]\nexact = \"/page\"\nbackend = \"page\"\ninternal = true\n{}",
            backend("page", "", &[paged.address()])
        );
        let pages = "{ 500 = { route = \"/page\" }, 502 = { route = \"/page\" } }";
        let route = format!("intercept_errors = true\nerror_pages = {pages}");
        let kettle = Kettle::start(before(&route, "", &[failing.address()]).more(&page));
        let head = "POST /app/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
        let mut client = kettle.ask([head, "beginning"].concat().as_bytes());
        let mut server = failing.accept_request();
        server.write_all(response.as_bytes()).unwrap();
        let mut server = paged.accept();
        let asked = read_head(&mut server);
        assert!(asked.starts_with("GET /page HTTP/1.1\r\n"), "{asked}");
        client.send(b"GET /smuggled HTTP/1.1\r\n\r\n").unwrap();
        server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n").unwrap();
        assert_eq!(client.response_head().status, status);
        server.write_all(b"half").unwrap();
        assert_eq!(client.receive_exactly(4), b"half");
        server.write_all(b" way").unwrap();
        assert_eq!(client.receive_exactly(4), b" way");
        // Nothing but the request was sent to it.
        assert_eq!(kettle.entry("/app/x").number("status"), u64::from(status));
        drop(client);
        drop(kettle);
        assert_eq!(read_to_end(&mut server).0, b"");
    }
}

#[test]
fn a_server_is_asked_for_the_query_that_a_rewrite_says() {
    let servers = Backend::listen();
    let route = r#"rewrite = [{ from = "/app/x/**", to = "/app/index.php?page={1}" }]
        request_headers = { X-Query = "{query}", X-Uri = "{uri}" }"#;
    let setup = before(route, "", &[servers.address()]).listener("http2 = true");
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    let mut kept = None;
    for (target, asked) in [
        ("/app/x/a%26b/%40?c=%20", "/app/index.php?page=a%26b/@&c=%20"),
        ("/app/x/", "/app/index.php?page="),
        ("/app/y?c", "/app/y?c"),
    ] {
        client.send(&get(target)).unwrap();
        let head = answer(servers.asked(&mut kept), &ok("x")).replace("X-", "x-");
        let query = asked.split_once('?').unwrap().1;
        assert!(head.starts_with(&format!("GET {asked} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains(&format!("x-Query: {query}\r\nx-Uri: {asked}\r\n")), "{head}");
        assert_eq!(client.response().body, b"x");
        // The log has what was sent.
        assert_eq!(kettle.entry(target).number("status"), 200);
    }
}

/// A server whose own redirects name it, and a store that knows the URLs of clients.
#[test]
fn a_write_takes_from_the_store_what_its_redirect_leads_to_for_clients() {
    let servers = Backend::listen();
    let folder = tempfile::tempdir().unwrap();
    let route = "strip_prefix = true\nbackend_redirect = [{ from = \"http://in.local/\", to = \"/app/\" }]\n\
        cache = { store = \"main\" }\n";
    let store =
        format!("[[cache]]\nname = \"main\"\ndirectory = \"{}\"\n", folder.path().display());
    let setup = before(route, "keep_alive_timeout = \"1h\"", &[servers.address()]).more(&store);
    let kettle = Kettle::start(setup.set("limits", "revalidate = \"0s\""));
    let mut client = Dialer::default().connect(kettle.address());
    let mut kept = None;
    let fresh = |body: &str| {
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 3\r\n\r\n{body}")
    };
    client.send(&get("/app/list")).unwrap();
    answer(servers.asked(&mut kept), &fresh("old"));
    assert_eq!(client.response().body, b"old");
    client.send(&get("/app/list")).unwrap();
    assert_eq!(client.response().body, b"old");
    client.send(b"POST /app/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").unwrap();
    let made =
        "HTTP/1.1 303 See Other\r\nLocation: http://in.local/list\r\nContent-Length: 0\r\n\r\n";
    answer(servers.asked(&mut kept), made);
    assert_eq!(client.response().header("location"), Some("/app/list"));
    client.send(&get("/app/list")).unwrap();
    answer(servers.asked(&mut kept), &fresh("new"));
    assert_eq!(client.response().body, b"new");
}
