//! Routes that ask a service whether a request may go on: what it is asked, what its answers lead to, and that nothing but a yes lets
//! anybody in.

mod elsewhere;
mod leaving;
mod spoofed;

use std::io::Write;
use std::net::TcpStream;

use kettle_tests::backend::{answer, read_head};
use kettle_tests::prelude::*;

const YES: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A server whose route `/app` asks `auth` before `app`, with more settings of the table and of the route.
fn guarded(auth: &Backend, app: &Backend, table: &str, route: &str) -> Setup {
    let route = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nrequest_buffering = \"off\"\n{route}\n\
         forward_auth = {{ backend = \"auth\", path = \"/check?a=b\"{table} }}\n"
    );
    let backends = [("auth", auth), ("app", app)];
    let backends = backends.map(|(name, it)| backend(name, "", &[it.address()]));
    Setup::default().more(&route).more(&backends.concat())
}

struct Running {
    kettle: Kettle,
    auth: Backend,
    app: Backend,
}

impl Running {
    fn with(table: &str, route: &str) -> Self {
        let auth = Backend::listen();
        let app = Backend::listen();
        let kettle = Kettle::start(guarded(&auth, &app, table, route));
        Self { kettle, auth, app }
    }

    fn client(&self) -> Client {
        Dialer::default().connect(self.kettle.address())
    }

    /// Asks for a path, which the service says this of.
    fn refused_by(&self, said: &str, path: &str) -> Response {
        let mut client = self.client();
        client.send(&get(path)).unwrap();
        let mut service = self.auth.accept();
        read_head(&mut service);
        service.write_all(said.as_bytes()).unwrap();
        drop(service);
        client.response()
    }
}

/// Answers a connection's next request, and returns its head.
fn ok(server: &mut TcpStream, body: &str) -> String {
    let length = body.len();
    answer(server, &format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"))
}

#[test]
fn the_service_is_told_what_is_asked_for_and_no_more_of_the_client_than_is_named() {
    let it = Running::with("", "");
    let mut client = it.client();
    let fields = "Cookie: a=b\r\nAuthorization: Basic eA==\r\nAccept: text/html\r\nUser-Agent: x\r\nX-Other: 1\r\n\
        Content-Length: 4\r\n";
    client.send(&request("POST", "/app//x?q=1", fields)).unwrap();
    let head = answer(&mut it.auth.accept(), YES);
    assert!(head.starts_with("GET /check?a=b HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
    for line in [
        "cookie: a=b",
        "authorization: Basic eA==",
        "accept: text/html",
        "x-forwarded-method: POST",
        "x-forwarded-uri: /app/x?q=1",
        "x-forwarded-host: localhost",
        "x-forwarded-proto: https",
        "x-forwarded-for: 127.0.0.1",
    ] {
        assert!(
            head.to_ascii_lowercase().contains(&format!("\r\n{}\r\n", line.to_ascii_lowercase())),
            "{line}\n{head}"
        );
    }
    for name in ["user-agent", "x-other", "content-length", "transfer-encoding", "x-request-id"] {
        assert!(!head.to_ascii_lowercase().contains(&format!("\r\n{name}:")), "{head}");
    }
    // The body goes to the backend alone.
    client.send(b"body").unwrap();
    let mut server = it.app.accept();
    let head = read_head(&mut server);
    assert!(head.starts_with("POST /app//x?q=1 HTTP/1.1\r\n"), "{head}");
    assert_eq!(kettle_tests::backend::read_exactly(&mut server, 4), b"body");
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nin").unwrap();
    let response = client.response();
    assert_eq!((response.status, &*response.body), (200, &b"in"[..]));
    assert_eq!(response.header("cache-control"), Some("private"));
}

#[test]
fn all_of_a_client_s_fields_but_conditions_are_told_where_that_is_said() {
    let table = ", request_headers = [\"*\"], backend_host = \"sso.example\", headers = { X-Original-URL = \"{scheme}://{host}{uri}\" }";
    let it = Running::with(table, "");
    let mut client = it.client();
    let fields = "User-Agent: x\r\nRange: bytes=0-1\r\nIf-None-Match: \"a\"\r\nTE: trailers\r\nConnection: X-Hop, TE\r\nX-Hop: 1\r\n";
    client.send(&request("GET", "/app/x?q=1", fields)).unwrap();
    let head = answer(&mut it.auth.accept(), YES).to_ascii_lowercase();
    assert!(head.contains("\r\nhost: sso.example\r\n"), "{head}");
    assert!(head.contains("\r\nuser-agent: x\r\n"), "{head}");
    assert!(head.contains("\r\nx-original-url: https://localhost/app/x?q=1\r\n"), "{head}");
    for name in ["range", "if-none-match", "te", "connection", "x-hop"] {
        assert!(!head.contains(&format!("\r\n{name}:")), "{head}");
    }
    ok(&mut it.app.accept(), "in");
    assert_eq!(client.response().body, b"in");
}

#[test]
fn a_refusal_is_the_client_s_answer_with_what_it_needs() {
    let it = Running::with("", "");
    let said = "HTTP/1.1 302 Found\r\nLocation: https://sso.example/?rd=a\r\nSet-Cookie: state=1\r\nSet-Cookie: b=2\r\n\
        X-Internal: secret\r\nCache-Control: public, max-age=60\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nlogin";
    let response = it.refused_by(said, "/app/one");
    assert_eq!((response.status, &*response.body), (302, &b"login"[..]));
    assert_eq!(response.header("location"), Some("https://sso.example/?rd=a"));
    assert_eq!(response.header("content-type"), Some("text/html"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("x-internal"), None);
    assert_eq!(response.head.matches("set-cookie: ").count(), 2, "{}", response.head);
    assert_eq!(it.kettle.entry("/app/one").text("refused"), "auth");
    let said =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 2\r\n\r\nno";
    let response = it.refused_by(said, "/app/two");
    assert_eq!((response.status, &*response.body), (401, &b"no"[..]));
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    let response = it.refused_by("HTTP/1.1 403 Forbidden\r\n\r\nby its close", "/app/three");
    assert_eq!((response.status, &*response.body), (403, &b"by its close"[..]));
    it.app.assert_unasked();
}

#[test]
fn a_refusal_whose_body_is_too_long_has_none_of_it() {
    let it = Running::with("", "");
    let long = "x".repeat(64 * 1024 + 1);
    let said = format!(
        "HTTP/1.1 403 Forbidden\r\nSet-Cookie: a=b\r\nContent-Length: {}\r\n\r\n{long}",
        long.len()
    );
    let mut client = it.client();
    client.send(&get("/app/long")).unwrap();
    let mut service = it.auth.accept();
    read_head(&mut service);
    // It may be left before it has said all.
    let _ = service.write_all(said.as_bytes());
    let response = client.response();
    assert_eq!((response.status, response.header("set-cookie")), (403, Some("a=b")));
    assert!(!response.body.starts_with(b"xx"));
    let most = "x".repeat(64 * 1024);
    let length = most.len();
    let said = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {length}\r\n\r\n{most}");
    assert_eq!(it.refused_by(&said, "/app/most").body, most.as_bytes());
    it.app.assert_unasked();
}

/// The class of faults that matters most: what is no yes lets nobody in.
#[test]
fn whatever_is_no_answer_lets_nobody_in() {
    let it = Running::with("", "");
    for (number, said) in [
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nno",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nno",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /a\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-",
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nno",
        "nonsense\r\n\r\n",
        "",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/app/{number}");
        let response = it.refused_by(said, &path);
        assert_eq!(response.status, 503, "{said}");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{said}");
        assert_eq!(it.kettle.entry(&path).text("refused"), "auth-unreachable", "{said}");
    }
    it.app.assert_unasked();
}

#[test]
fn a_service_that_is_late_full_or_gone_lets_nobody_in() {
    let it = Running::with(", timeout = \"50ms\"", "");
    let mut client = it.client();
    client.send(&get("/app/late")).unwrap();
    let mut late = it.auth.accept();
    read_head(&mut late);
    assert_eq!(client.response().status, 503);
    assert_eq!(it.kettle.entry("/app/late").text("refused"), "auth-unreachable");
    // A byte now and then does not make it longer.
    client.send(&get("/app/slow")).unwrap();
    let mut slow = it.auth.accept();
    read_head(&mut slow);
    slow.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1").unwrap();
    assert_eq!(client.response().status, 503);
    it.app.assert_unasked();
    let app = Backend::listen();
    let nobody = unused_address();
    let gone = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nforward_auth = {{ backend = \"auth\", path = \"/\" }}\n{}{}",
        backend("app", "", &[app.address()]),
        backend("auth", "", &[nobody])
    );
    let kettle = Kettle::start(Setup::default().more(&gone));
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/app/gone").status, 503);
    assert_eq!(kettle.entry("/app/gone").text("refused"), "auth-unreachable");
    app.assert_unasked();
}

#[test]
fn who_finds_no_place_in_the_service_s_queue_is_not_let_in() {
    let auth = Backend::listen();
    let app = Backend::listen();
    let text = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nforward_auth = {{ backend = \"auth\", path = \"/\" }}\n{}{}",
        backend("app", "", &[app.address()]),
        backend("auth", "queue = 0", &[auth.address()])
    );
    let kettle = Kettle::start(Setup::default().more(&text).more("connections = 1\n"));
    let mut first = kettle.ask(&get("/app/first"));
    let mut service = auth.accept();
    read_head(&mut service);
    let mut second = Dialer::default().connect(kettle.address());
    assert_eq!(second.get("/app/second").status, 503);
    assert_eq!(kettle.entry("/app/second").text("refused"), "auth-unreachable");
    service.write_all(YES.as_bytes()).unwrap();
    ok(&mut app.accept(), "in");
    assert_eq!(first.response().body, b"in");
}

#[test]
fn cookies_of_a_yes_are_added_to_the_answer_which_no_cache_may_give_to_others() {
    let public = "Cache-Control: public, S-MaxAge=60, max-age=5";
    let cases = [
        ("", "X: 1", "private"),
        ("", public, "private, max-age=5"),
        ("", "Cache-Control: no-store", "no-store"),
        ("", "Cache-Control: public, no-cache=\"set-cookie, x\", must-revalidate", "private"),
        ("mark_private = false\nexpires = \"1h\"", "X: 1", "private, max-age=3600"),
        ("headers = { cache-control = [\"public, max-age=9\"] }", "X: 1", "private, max-age=9"),
        (
            "mark_private = false\nheaders = { cache-control = [\"public, x={host}\"] }",
            public,
            "private, x=localhost",
        ),
        ("headers = { cache-control = [\"public, x={host}\"] }", public, "private, x=localhost"),
    ];
    for (route, field, told) in cases {
        let it = Running::with("", route);
        let mut client = it.client();
        client.send(&get("/app/x")).unwrap();
        let said = "HTTP/1.1 200 OK\r\nSet-Cookie: session=new\r\nContent-Length: 3\r\n\r\nyes";
        answer(&mut it.auth.accept(), said);
        let fields = format!(
            "{field}\r\nCDN-Cache-Control: max-age=9\r\nSurrogate-Control: max-age=9\r\nSet-Cookie: own=1"
        );
        let answered = format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: 2\r\n\r\nin");
        answer(&mut it.app.accept(), &answered);
        let response = client.response();
        for line in ["set-cookie: own=1\r\n", "set-cookie: session=new\r\n"] {
            assert!(response.head.contains(line), "{line}{}", response.head);
        }
        assert_eq!(response.header("cache-control"), Some(told), "{route} {field}");
        assert_eq!(response.head.matches("-control: ").count(), 1, "{}", response.head);
        assert_eq!(response.body, b"in");
    }
}

#[test]
fn it_is_counted_and_timed_what_is_asked() {
    let auth = Backend::listen();
    let app = Backend::listen();
    let metrics = unused_address();
    let kettle = Kettle::start(guarded(&auth, &app, "", "").metrics(metrics));
    let mut client = kettle.ask(&get("/app/x"));
    answer(&mut auth.accept(), "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response().status, 403);
    let _ = kettle.entry("/app/x");
    let text = scrape(metrics);
    for line in
        ["kettle_requests_refused_total{reason=\"auth\"} 1", "kettle_auth_duration_seconds_count 1"]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
