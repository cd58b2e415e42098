//! The parts of a request that a server gets, and those of its response that a client gets.

use super::*;

#[test]
fn a_response_comes_back_and_the_log_says_from_where() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&get("/app/x?y=z"));
    let mut server = backend.accept();
    let response = "HTTP/1.1 201 Made\r\nContent-Length: 5\r\nX-App: 1\r\nServer: other\r\nDate: x\r\n\
        Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\r\nhello";
    let head = answer(&mut server, response);
    assert!(head.starts_with("GET /app/x?y=z HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
    let response = client.response();
    assert_eq!((response.status, &*response.body), (201, &b"hello"[..]));
    assert_eq!(response.header("x-app"), Some("1"));
    assert_eq!(response.header("server"), Some("kettle"));
    assert!(response.header("date").unwrap().ends_with("GMT"));
    for name in ["x-hop", "keep-alive", "connection"] {
        assert_eq!(response.header(name), None, "{name}");
    }
    let entry = kettle.entry("/app/x?y=z");
    assert_eq!((entry.text("backend"), entry.number("upstream_status")), ("app", 201));
    assert_eq!(entry.text("server"), backend.address().to_string());
    assert!(entry.is_complete() && entry.number("first_byte_us") > 0);
    assert_eq!(entry.path(), "user");
}

/// As nginx does: its targets may be refused there, and what comes with it is no answer.
#[test]
fn what_a_server_tells_a_program_in_front_of_it_reaches_no_client() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&get("/app/buffered"));
    let told = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX-Accel-Buffering: no\r\nX-Accel-Expires: 0\r\n\r\na";
    answer(&mut backend.accept(), told);
    let response = client.response();
    assert_eq!((response.status, &*response.body), (200, &b"a"[..]));
    assert!(!response.head.to_ascii_lowercase().contains("x-accel"), "{}", response.head);
    client.send(&get("/app/elsewhere")).unwrap();
    let led = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Accel-Redirect: /private/a\r\n\r\nsecret";
    let mut kept = None;
    answer(backend.asked(&mut kept), led);
    let response = client.response();
    assert_eq!(response.status, 502);
    let text = String::from_utf8_lossy(&response.body).into_owned() + &response.head;
    assert!(!text.contains("secret") && !text.contains("private"), "{text}");
    assert_eq!(kettle.entry("/app/elsewhere").text("upstream_failure"), "x_accel_redirect");
}

#[test]
fn an_encoded_slash_passes_where_the_route_takes_it_and_as_it_came() {
    let (backend, kettle) = started("encoded_slashes = true", "");
    let mut client = kettle.ask(&get("/app/@scope%2fname"));
    let head = answer(&mut backend.accept(), &ok("one"));
    assert!(head.starts_with("GET /app/@scope%2fname HTTP/1.1\r\n"), "{head}");
    assert_eq!(client.response().body, b"one");
    // Dot segments are resolved before anybody is asked. With its slash as one it is of this route, too.
    let mut kept = None;
    for (target, sent) in [("/app/x/../a%2fb", "/app/a%2fb"), ("/app/a%2fb/../c", "/app/c")] {
        client.send(&get(target)).unwrap();
        let head = serves(&mut client, backend.asked(&mut kept), "two");
        assert!(head.starts_with(&format!("GET {sent} HTTP/1.1\r\n")), "{head}");
    }
    // It could be resolved before it is decoded, or behind it.
    for target in ["/app/x%2f..%2fa", "/app/x%2f../a", "/app/.%2fa"] {
        client.send(&get(target)).unwrap();
        assert_eq!(client.response().status, 400, "{target}");
    }
    // The route of files takes none.
    for target in ["/app%2fa", "/a%2fb", "/app/../a%2fb"] {
        client.send(&get(target)).unwrap();
        assert_eq!(client.response().status, 404, "{target}");
    }
}

#[test]
fn a_body_of_unknown_length_comes_in_chunks_and_to_old_clients_up_to_the_end() {
    let (backend, kettle) = started("", "");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        5;a=b\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\nX-Trailer: 1\r\n\r\n";
    let mut client = kettle.ask(&get("/app/new"));
    let mut server = backend.accept();
    answer(&mut server, chunked);
    assert_eq!(chunked_response(&mut client).body, b"hello world");
    // The same connection, and the server's too.
    passes(&mut client, &mut server, "/app/again", "again");
    client
        .send(b"GET /app/old HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        .unwrap();
    answer(&mut server, chunked);
    let response = client.response_head();
    assert_eq!(response.header("transfer-encoding"), None);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(client.end(), kettle_tests::client::End::Orderly);
    assert_eq!(client.beyond(), b"hello world");
}

#[test]
fn a_body_up_to_the_end_of_its_connection_is_whole_only_then() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&get("/app"));
    let mut server = backend.accept();
    answer(&mut server, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall");
    server.write_all(b" of it").unwrap();
    drop(server);
    assert_eq!(chunked_response(&mut client).body, b"all of it");
}

#[test]
fn the_answers_to_head_and_those_without_a_body_leave_the_connection_good() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&request("HEAD", "/app", ""));
    let mut server = backend.accept();
    answer(&mut server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let response = client.response_head();
    assert_eq!((response.status, response.header("content-length")), (200, Some("5")));
    for status in [204, 304] {
        client.send(&get("/app")).unwrap();
        answer(&mut server, &format!("HTTP/1.1 {status} X\r\nETag: \"a\"\r\n\r\n"));
        let response = client.response_head();
        assert_eq!((response.status, response.header("content-length")), (status, None));
        assert_eq!(response.header("etag"), Some("\"a\""));
    }
    passes(&mut client, &mut server, "/app", "last");
}

#[test]
fn interim_responses_reach_clients_that_know_them() {
    let (backend, kettle) = started("early_hints = \"all\"", "");
    let hints =
        "HTTP/1.1 103 X\r\nLink: </a.css>\r\nContent-Length: 5\r\nServer: x\r\nDate: x\r\n\r\n";
    let mut client = kettle.ask(&get("/app"));
    let mut server = backend.accept();
    answer(&mut server, hints);
    let early = client.response_head();
    assert_eq!(early.head, "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n");
    server.write_all(ok("then").as_bytes()).unwrap();
    assert_eq!(client.response().body, b"then");
    client.send(b"GET /app HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    answer(&mut server, &format!("{hints}{}", ok("old")));
    assert_eq!(client.response().body, b"old");
}

/// Clients of HTTP/1.1 may take one for the answer (RFC 8297 §3), as Python's http.client does.
#[test]
fn interim_responses_go_to_the_clients_that_the_route_names() {
    let backend = Backend::listen();
    let mut setup = before("", "", &[backend.address()]).listener("http2 = true");
    let both = ["1.1", "2"].as_slice();
    let newer = ["2"].as_slice();
    let none = [].as_slice();
    let routes = [
        ("default", "", newer),
        ("newer", "early_hints = \"http2\"", newer),
        ("all", "early_hints = \"all\"", both),
        ("off", "early_hints = \"off\"", none),
    ];
    for (name, setting, _) in routes {
        for (prefix, cache) in [("app", ""), ("kept", "[site.route.cache]\nstore = \"main\"\n")] {
            setup = setup.more(&format!(
                "[[site.route]]\nprefix = \"/{prefix}-{name}\"\nbackend = \"app\"\n{setting}\n{cache}"
            ));
        }
    }
    let cache = "[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let kettle = Kettle::start(setup.file("kept/.keep", "").more(cache));
    std::thread::spawn(move || {
        loop {
            let interim = "HTTP/1.1 102 X\r\n\r\nHTTP/1.1 103 X\r\nLink: </a.css>\r\n\r\n";
            let last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nthen";
            answer(&mut backend.accept(), &[interim, last].concat());
        }
    });
    for (name, _, versions) in routes {
        for (prefix, version) in ["app", "kept"].into_iter().flat_map(|it| [(it, "1.1"), (it, "2")])
        {
            let words = [&format!("--http{version}"), "--include"];
            let said = kettle.curl(&words, &format!("/{prefix}-{name}/{version}")).succeed();
            let is_told = versions.contains(&version);
            for interim in [" 102", " 103"] {
                let found =
                    said.lines().any(|line| line.starts_with("HTTP/") && line.contains(interim));
                assert_eq!(found, is_told, "{prefix}-{name} HTTP/{version}: {said}");
            }
            assert!(said.ends_with("\r\n\r\nthen"), "{said}");
        }
    }
}

#[test]
fn guards_redirects_and_the_operators_headers_stand_before_a_backend() {
    let backend = Backend::listen();
    let route = "headers = { X-Site = \"own\" }\nrequest_headers = { X-Team = \"blue\" }\n\
        [[site.route.redirect]]\nfrom = \"/app/old\"\nto = \"/app/new\"\n\
        [[site.route.rewrite]]\nfrom = \"/app/short/*\"\nto = \"/app/long/{1}\"";
    let setup = before(route, "", &[backend.address()])
        .set("server", "workers = 1")
        .site("hsts = { max_age = \"1d\" }");
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    let redirect = client.get("/app/old");
    assert_eq!((redirect.status, redirect.header("location")), (302, Some("/app/new")));
    client.send(&get("/app/short/a%20b?c")).unwrap();
    let mut server = backend.accept();
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Site: theirs\r\n\
        Strict-Transport-Security: max-age=1\r\n\r\n";
    let head = answer(&mut server, response);
    assert!(head.starts_with("GET /app/long/a%20b?c HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("X-Team: blue\r\n"), "{head}");
    let response = client.response();
    assert_eq!(response.header("x-site"), Some("own"));
    assert_eq!(response.header("strict-transport-security"), Some("max-age=86400"));
}

#[test]
fn of_what_both_say_to_caches_the_stricter_holds() {
    let route = "headers = { Vary = \"X-Site\", Cache-Control = \"private, max-age=60\" }";
    let (backend, kettle) = started(route, "");
    let mut client = kettle.ask(&get("/app"));
    let mut server = backend.accept();
    let fields = "Content-Length: 0\r\nVary: Accept-Language\r\nCache-Control: no-store\r\n\r\n";
    answer(&mut server, &format!("HTTP/1.1 200 OK\r\n{fields}"));
    let response = client.response();
    let said = |response: &Response, name: &str| {
        let lines = response.head.lines().filter_map(|line| line.split_once(": "));
        let values = lines.filter(|line| line.0 == name).map(|line| line.1.to_owned());
        values.collect::<Vec<_>>()
    };
    assert_eq!(said(&response, "vary"), ["X-Site", "Accept-Language"]);
    assert_eq!(said(&response, "cache-control"), ["private, max-age=60"], "the operator's");
    client.send(&get("/app")).unwrap();
    answer(&mut server, &format!("HTTP/1.1 404 Not Found\r\n{fields}"));
    let response = client.response();
    assert_eq!(response.status, 404);
    assert_eq!(said(&response, "vary"), ["X-Site", "Accept-Language"]);
    assert_eq!(said(&response, "cache-control"), ["private", "no-store"]);
}

#[test]
fn a_request_that_waits_is_carried_to_the_servers_of_a_reload() {
    let full = Backend::listen();
    let free = Backend::listen();
    let app = "queue_timeout = \"1m\"\nqueue = 10";
    let setup = before("", app, &[full.address()]).more("connections = 1\n");
    let kettle = Kettle::start(setup);
    let asking = || kettle.ask(&get("/app"));
    let mut first = asking();
    let mut server = full.accept_request();
    let mut waiting = [asking(), asking()];
    kettle.wait_for_status("/backends/0/waiting", 2);
    // It stays where it is as long as its servers do.
    for (old, new) in [
        ("queue = 10".to_owned(), "queue = 11".to_owned()),
        (full.address().to_string(), free.address().to_string()),
    ] {
        kettle.reload_with(&old, &new);
    }
    let mut carried = free.accept();
    for client in &mut waiting {
        answer(&mut carried, &ok("carried"));
        assert_eq!(client.response().body, b"carried");
    }
    server.write_all(ok("first").as_bytes()).unwrap();
    assert_eq!(first.response().body, b"first");
}

#[test]
fn a_reload_that_leaves_the_listener_as_it_is_ends_no_connection() {
    let (backend, kettle) = started("", "");
    let mut client = Dialer::default().connect(kettle.address());
    let mut server = None;
    for number in 0..3 {
        client.send(&get("/app")).unwrap();
        let server = backend.asked(&mut server);
        read_head(server);
        if number == 1 {
            kettle.folder.change_config("name = \"app\"", "name = \"app\"\nqueue = 11");
        }
        let _ = kettle.ctl(&["reload"]).succeed();
        server.write_all(ok("there").as_bytes()).unwrap();
        let response = client.response();
        assert_eq!((&*response.body, response.header("connection")), (&b"there"[..], None));
    }
}
