//! The service beside other work of a route, where it does more than pass requests on: files, stores, tunnels, other guards, pages
//! and rewrites.

use kettle_tests::http::get;
use kettle_tests::websocket::agreement;

use super::*;
use crate::http2::frames::*;

const NO: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
const AUTH: &str = "forward_auth = { backend = \"auth\", path = \"/\" }";

/// A server with these routes, and the service.
fn with_routes(routes: &str) -> (Kettle, Backend) {
    let auth = Backend::listen();
    let setup = Setup::default().sizes(&[10]).more(routes);
    (Kettle::start(setup.more(&backend("auth", "", &[auth.address()]))), auth)
}

#[test]
fn a_file_is_sent_only_after_the_service_said_yes() {
    let auth = Backend::listen();
    let setup = Setup::default().route(AUTH).file("www/a.txt", "content");
    let kettle = Kettle::start(setup.more(&backend("auth", "", &[auth.address()])));
    let mut client = Dialer::default().connect(kettle.address());
    let mut kept = None;
    // It lies in memory from the second time on.
    for (said, status) in [(YES, 200), (YES, 200), (NO, 403), (YES, 200)] {
        client.send(&get("/a.txt")).unwrap();
        let head = answer(auth.asked(&mut kept), said);
        assert!(head.contains("x-forwarded-uri: /a.txt\r\n"), "{head}");
        assert_eq!(client.response().status, status);
    }
    client.send(&request("GET", "/a.txt", "Range: bytes=0-2\r\n")).unwrap();
    answer(auth.asked(&mut kept), YES);
    let response = client.response();
    assert_eq!((response.status, &*response.body), (206, &b"con"[..]));
    assert_eq!(response.header("cache-control"), Some("private"));
}

#[test]
fn a_hit_of_the_store_is_asked_about_each_time() {
    let auth = Backend::listen();
    let app = Backend::listen();
    let text = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\ncache = {{ store = \"main\" }}\n{AUTH}\n\
         [[cache]]\nname = \"main\"\ndirectory = \"kept\"\n{}{}",
        backend("app", "", &[app.address()]),
        backend("auth", "", &[auth.address()])
    );
    let kettle = Kettle::start(Setup::default().more(&text).file("kept/.keep", ""));
    let mut kept = None;
    let mut client = kettle.ask(&get("/app/x"));
    answer(auth.asked(&mut kept), YES);
    let told = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nkept";
    answer(&mut app.accept(), told);
    assert_eq!(client.response().body, b"kept");
    wait_until("it is kept", || {
        kettle.ctl(&["cache", "status"]).succeed().contains("main: 1 object")
    });
    for (said, status) in [(YES, 200), (NO, 403), (YES, 200)] {
        client.send(&get("/app/x")).unwrap();
        answer(auth.asked(&mut kept), said);
        let response = client.response();
        assert_eq!(response.status, status);
        assert_eq!(response.header("cache-status").is_some(), status == 200, "{}", response.head);
    }
    app.assert_unasked();
}

#[test]
fn a_websocket_is_asked_about_before_anybody_changes_the_protocol() {
    let it = Running::with(", copy = [\"remote-user\"]", "websocket = true");
    let asking = "Connection: upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: x\r\n";
    let mut client = it.client();
    client.send(&request("GET", "/app/ws", asking)).unwrap();
    let mut kept = None;
    answer(it.auth.asked(&mut kept), NO);
    assert_eq!(client.response().status, 403);
    it.app.assert_unasked();
    client.send(&request("GET", "/app/ws", asking)).unwrap();
    let said =
        "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n";
    let head = answer(it.auth.asked(&mut kept), said);
    assert!(!head.to_ascii_lowercase().contains("upgrade"), "{head}");
    let mut server = it.app.accept();
    let head = read_head(&mut server);
    assert!(head.contains("remote-user: ann\r\n"), "{head}");
    server.write_all(agreement(&head).as_bytes()).unwrap();
    let response = client.response_head();
    assert_eq!((response.status, response.header("set-cookie")), (101, Some("a=b")));
    client.send(b"ping").unwrap();
    assert_eq!(read_exactly(&mut server, 4), b"ping");
}

#[test]
fn an_extended_connect_is_asked_about_before_the_stream_becomes_a_tunnel() {
    let auth = Backend::listen();
    let app = Backend::listen();
    let setup = super::guarded(&auth, &app, "", "websocket = true").listener("http2 = true");
    let kettle = Kettle::start(setup);
    let mut frames = Frames::connect(&kettle, &[]);
    let block = fields("CONNECT", "/app/ws", &[(":protocol", "websocket")]);
    frames.send(&frame(HEADERS, END_HEADERS, 1, &block));
    let mut kept = None;
    let head = answer(auth.asked(&mut kept), NO);
    assert!(head.contains("x-forwarded-method: GET\r\n"), "{head}");
    assert_eq!(frames.body(1), b"no");
    app.assert_unasked();
    frames.send(&frame(HEADERS, END_HEADERS, 3, &block));
    answer(auth.asked(&mut kept), YES);
    let mut server = app.accept();
    let head = read_head(&mut server);
    server.write_all(agreement(&head).as_bytes()).unwrap();
    let head = frames.next_of(HEADERS);
    assert_eq!((head.stream, head.flags & END_STREAM), (3, 0));
}

#[test]
fn whom_another_guard_keeps_out_the_service_is_not_asked_about() {
    let auth = Backend::listen();
    let app = Backend::listen();
    let rules =
        "deny_files = [\"*.bak\"]\nrate_limit = { requests = 1, period = \"1h\", burst = 2 }";
    let kettle = Kettle::start(super::guarded(&auth, &app, "", rules));
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/app/a.bak").status, 403);
    assert_eq!(client.get("/app/b.bak").status, 403);
    assert_eq!(client.get("/app/x").status, 429);
    auth.assert_unasked();
}

#[test]
fn a_page_in_place_of_a_refusal_keeps_what_lets_clients_in() {
    let routes = format!(
        "[[site.route]]\nprefix = \"/app\"\nrespond = {{ status = 200, body = \"in\" }}\n{AUTH}\n\
         error_pages = {{ 401 = {{ route = \"/login\" }}, 403 = {{ redirect = \"/login\" }} }}\n\
         [[site.route]]\nexact = \"/login\"\nrespond = {{ status = 200, body = \"who?\" }}\n"
    );
    let (kettle, auth) = with_routes(&routes);
    let mut client = kettle.ask(&get("/app/x"));
    let mut kept = None;
    let said = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nno";
    answer(auth.asked(&mut kept), said);
    let response = client.response();
    assert_eq!((response.status, &*response.body), (401, &b"who?"[..]));
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    assert_eq!(response.header("set-cookie"), Some("a=b"));
    assert_eq!(kettle.entry("/app/x").text("refused"), "auth");
    client.send(&get("/app/x")).unwrap();
    answer(auth.asked(&mut kept), NO);
    let response = client.response();
    assert_eq!((response.status, response.header("location")), (302, Some("/login")));
}

/// One question a request, whichever routes it comes by, if they ask the same.
#[test]
fn a_rewrite_leads_neither_around_the_question_nor_to_a_second_one() {
    let routes = format!(
        "[[site.route]]\nprefix = \"/a\"\nrewrite = [{{ from = \"/a/**\", to = \"/b/{{1}}?from=a\" }}]\n{AUTH}\n\
         [[site.route]]\nprefix = \"/open\"\nrewrite = [{{ from = \"/open/**\", to = \"/b/{{1}}\" }}]\n\
         [[site.route]]\nprefix = \"/b\"\nrespond = {{ status = 200, body = \"in\" }}\n{AUTH}\n\
         error_pages = {{ 403 = {{ route = \"/b/page\" }} }}\n"
    );
    let (kettle, auth) = with_routes(&routes);
    let mut client = Dialer::default().connect(kettle.address());
    let mut kept = None;
    for path in ["/a/x", "/open/x?y=z", "/b/x"] {
        client.send(&get(path)).unwrap();
        let head = answer(auth.asked(&mut kept), YES);
        assert!(head.contains(&format!("x-forwarded-uri: {path}\r\n")), "{head}");
        assert_eq!(client.response().body, b"in", "{path}");
    }
    // The page is behind the same question, whose answer is known.
    client.send(&get("/open/x")).unwrap();
    answer(auth.asked(&mut kept), NO);
    let response = client.response();
    assert_eq!(response.status, 403);
    assert_ne!(response.body, b"in");
    // The next one on the connection is the next request's.
    client.send(&get("/b/y")).unwrap();
    let head = answer(auth.asked(&mut kept), YES);
    assert!(head.contains("x-forwarded-uri: /b/y\r\n"), "{head}");
    assert_eq!(client.response().body, b"in");
}

#[test]
fn a_yes_is_remembered_for_the_same_question_and_no_other() {
    let it = Running::with(", cache = \"1m\", copy = [\"remote-user\"]", "");
    let mut client = it.client();
    let mut service = None;
    let mut server = None;
    let mut ask = |cookie: &str, path: &str, said: Option<&str>| {
        client.send(&request("GET", path, &format!("Cookie: {cookie}\r\n"))).unwrap();
        if let Some(said) = said {
            answer(it.auth.asked(&mut service), said);
            if !said.starts_with("HTTP/1.1 2") {
                return client.response().status.to_string();
            }
        }
        let head = ok(it.app.asked(&mut server), "in");
        assert_eq!(client.response().body, b"in");
        head
    };
    let ann = "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nContent-Length: 0\r\n\r\n";
    let with_cookie = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n";
    assert!(ask("ann", "/app/x", Some(ann)).contains("remote-user: ann"));
    assert!(ask("ann", "/app/x", None).contains("remote-user: ann"));
    // Another cookie, and another path.
    assert_eq!(ask("bob", "/app/x", Some(NO)), "403");
    assert!(ask("ann", "/app/y", Some(with_cookie)).starts_with("GET /app/y"));
    // Neither a no nor what came with a cookie is remembered.
    assert!(ask("bob", "/app/x", Some(ann)).contains("remote-user: ann"));
    assert!(ask("ann", "/app/y", Some(with_cookie)).starts_with("GET /app/y"));
    it.auth.assert_unasked();
}
