//! Answers that name a file of an internal route in place of themselves (`X-Accel-Redirect`, `X-Sendfile`).

use kettle_tests::application;
use kettle_tests::http::get;

use super::*;
use crate::http2::frames::{self, *};

struct Running {
    kettle: Kettle,
    app: Backend,
    client: Client,
}

/// A server whose backend may name what is below `private`, with more settings of both routes and more routes.
fn setup(app: &Backend, internal: &str, route: &str, more: &str) -> Setup {
    let routes = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nrequest_buffering = \"off\"\n{route}\n\
         [[site.route]]\nprefix = \"/files\"\nroot = \"private\"\ninternal = true\n{internal}\n{more}\n"
    );
    let setup =
        Setup::default().file("private/a.txt", "0123456789").file("private/\u{e4} b.txt", "name");
    let setup = setup.file("www/public.txt", "public").file("secret.txt", "secret");
    setup.more(&routes).more(&backend("app", "", &[app.address()]))
}

impl Running {
    fn with(internal: &str, route: &str, more: &str) -> Self {
        let app = Backend::listen();
        let kettle = Kettle::start(setup(&app, internal, route, more));
        let client = Dialer::default().connect(kettle.address());
        Self { kettle, app, client }
    }

    /// Sends a request, which the backend answers so over a connection of its own.
    fn asked(&mut self, request: &[u8], said: &str) -> Response {
        self.client.send(request).unwrap();
        let mut server = self.app.accept();
        read_head(&mut server);
        server.write_all(said.as_bytes()).unwrap();
        drop(server);
        let response = self.client.response_head();
        let has_none = request.starts_with(b"HEAD") || response.status == 304;
        let bytes = if has_none { 0 } else { response.announced_bytes() };
        Response { body: self.client.receive_exactly(bytes), ..response }
    }
}

/// An answer with these fields, after which the connection is closed.
fn handing(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Connection: close\r\nContent-Length: 0\r\n\r\n")
}

#[test]
fn a_file_is_sent_in_place_of_the_answer_with_what_that_says_of_it() {
    let mut it = Running::with("", "", "");
    let said = "X-Accel-Redirect: /files/a.txt\r\nContent-Type: application/x-own\r\nContent-Disposition: attachment; filename=\"x\"\r\n\
        Set-Cookie: a=b\r\nCache-Control: private, max-age=5\r\nETag: \"theirs\"\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
        X-Own: 1\r\nX-Accel-Buffering: no\r\nX-Accel-Expires: 60\r\n";
    let response = it.asked(&get("/app/x?y=z"), &handing(said));
    assert_eq!((response.status, &*response.body), (200, &b"0123456789"[..]));
    for (name, value) in [
        ("content-type", "application/x-own"),
        ("content-disposition", "attachment; filename=\"x\""),
        ("set-cookie", "a=b"),
        ("cache-control", "private, max-age=5"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(response.header(name), Some(value), "{}", response.head);
    }
    assert_ne!(response.header("etag"), Some("\"theirs\""));
    assert!(
        !response.head.contains("1970") && !response.head.contains("x-own:"),
        "{}",
        response.head
    );
    assert!(
        !response.head.contains("x-accel") && !response.head.contains("/files"),
        "{}",
        response.head
    );
    let entry = it.kettle.entry("/app/x?y=z");
    assert_eq!((entry.text("method"), entry.text("backend")), ("GET", "app"));
    assert!(!entry.has("upstream_failure"), "{entry:?}");
}

#[test]
fn ranges_and_conditions_are_those_of_the_file() {
    let mut it = Running::with("", "", "");
    let said = handing("X-Accel-Redirect: /files/a.txt\r\nContent-Type: a/b\r\n");
    let response = it.asked(&request("GET", "/app/x", "Range: bytes=2-4\r\n"), &said);
    assert_eq!((response.status, &*response.body), (206, &b"234"[..]));
    assert_eq!(response.header("content-range"), Some("bytes 2-4/10"));
    assert_eq!(response.header("content-type"), Some("a/b"));
    let etag = response.header("etag").unwrap().to_owned();
    let response =
        it.asked(&request("GET", "/app/x", &format!("If-None-Match: {etag}\r\n")), &said);
    assert_eq!((response.status, response.header("etag")), (304, Some(&*etag)));
    let response = it.asked(&request("GET", "/app/x", "Range: bytes=20-\r\n"), &said);
    assert_eq!(response.status, 416);
    let response = it.asked(&request("HEAD", "/app/x", ""), &said);
    assert_eq!((response.status, response.header("content-length")), (200, Some("10")));
}

#[test]
fn the_answer_to_a_post_is_the_file_as_to_a_get() {
    let mut it = Running::with("", "", "");
    it.client
        .send(&[request("POST", "/app/x", "Content-Length: 4\r\n"), b"body".to_vec()].concat())
        .unwrap();
    let mut server = it.app.accept();
    read_head(&mut server);
    assert_eq!(read_exactly(&mut server, 4), b"body");
    let said =
        "HTTP/1.1 201 Created\r\nX-Accel-Redirect: /files/a.txt\r\nContent-Length: 2\r\n\r\nok";
    server.write_all(said.as_bytes()).unwrap();
    let response = it.client.response();
    assert_eq!((response.status, &*response.body), (200, &b"0123456789"[..]));
    assert_eq!(it.kettle.entry("/app/x").text("method"), "POST");
    // Its short body was read past, and both connections go on.
    passes(&mut it.client, &mut server, "/app/next", "next");
}

/// An answer may come before the request's body is over.
#[test]
fn a_body_that_is_still_sent_is_left_behind() {
    let mut it = Running::with("", "", "");
    it.client.send(&request("POST", "/app/x", "Content-Length: 4\r\n")).unwrap();
    let mut server = it.app.accept();
    read_head(&mut server);
    server.write_all(handing("X-Accel-Redirect: /files/a.txt\r\n").as_bytes()).unwrap();
    let response = it.client.response();
    assert_eq!((response.status, &*response.body), (200, &b"0123456789"[..]));
    drop(server);
    it.client.send(b"body").unwrap();
    let response = it.asked(&get("/app/y"), &handing("X-Accel-Redirect: /files/a.txt\r\n"));
    assert_eq!(response.body, b"0123456789");
}

#[test]
fn names_are_decoded_once_and_climb_nowhere() {
    let mut it = Running::with("", "", "");
    for name in ["/files/%C3%A4%20b.txt", "//files///\u{e4} b.txt", "/files%2f%c3%a4 b.txt?x=y"] {
        let response = it.asked(&get("/app/x"), &handing(&format!("X-Accel-Redirect: {name}\r\n")));
        assert_eq!((response.status, &*response.body), (200, &b"name"[..]), "{name}");
    }
    for name in [
        "/files/../secret.txt",
        "/files/%2e%2e/secret.txt",
        "/files/%2E./secret.txt",
        "/files/..%2fsecret.txt",
        "/files/%2e%2e%2fsecret.txt",
        "/files/..\\secret.txt",
        "/files/a.txt%00",
        "/files/a%ff.txt",
        "/files/a.txt%",
        "files/a.txt",
        "@named",
        "https://localhost/files/a.txt",
        "//localhost/files/a.txt",
        "",
    ] {
        let response = it.asked(&get("/app/x"), &handing(&format!("X-Accel-Redirect: {name}\r\n")));
        assert_eq!(response.status, 502, "{name}");
        let text = String::from_utf8_lossy(&response.body).into_owned() + &response.head;
        assert!(!text.contains("secret") && !text.contains("files"), "{name}: {text}");
    }
    for name in ["/files/%252e%252e/secret.txt", "/files/absent.txt", "/files/.hidden"] {
        let response = it.asked(&get("/app/x"), &handing(&format!("X-Accel-Redirect: {name}\r\n")));
        assert_eq!(response.status, 404, "{name}");
    }
}

#[test]
fn only_an_internal_route_is_led_to_and_no_client_gets_there_itself() {
    let mut it = Running::with("", "", "");
    for name in ["/public.txt", "/app/x", "/filesa.txt", "/"] {
        let response = it.asked(&get("/app/x"), &handing(&format!("X-Accel-Redirect: {name}\r\n")));
        assert_eq!(response.status, 502, "{name}");
        assert_eq!(it.kettle.entry("/app/x").text("upstream_failure"), "x_accel_redirect");
    }
    assert_eq!(it.client.get("/files/a.txt").status, 404);
    let two = handing("X-Accel-Redirect: /files/a.txt\r\nX-Accel-Redirect: /files/a.txt\r\n");
    assert_eq!(it.asked(&get("/app/x"), &two).status, 502);
}

#[test]
fn a_server_that_may_leads_to_any_route_of_the_site_and_is_asked_who_may_go_there() {
    let closed =
        "[[site.route]]\nprefix = \"/closed\"\nroot = \"private\"\ndeny = [\"0.0.0.0/0\"]\n";
    let mut it = Running::with("", "accel_redirect = \"any\"", closed);
    for (name, status, body) in
        [("/public.txt", 200, &b"public"[..]), ("/files/a.txt", 200, b"0123456789")]
    {
        let response = it.asked(&get("/app/x"), &handing(&format!("X-Accel-Redirect: {name}\r\n")));
        assert_eq!((response.status, &*response.body), (status, body), "{name}");
    }
    for (field, status) in [
        ("X-Accel-Redirect: /closed/a.txt", 403),
        ("X-Accel-Redirect: /../secret.txt", 502),
        ("X-Sendfile: /etc/passwd", 502),
    ] {
        let response = it.asked(&get("/app/x"), &handing(&format!("{field}\r\n")));
        assert_eq!(response.status, status, "{field}");
    }
}

/// As nginx does with `proxy_ignore_headers`.
#[test]
fn a_server_that_may_not_lead_anywhere_has_its_answer_sent() {
    let mut it = Running::with("", "accel_redirect = \"ignore\"", "");
    for field in ["X-Accel-Redirect: /files/a.txt", "X-Sendfile: /etc/passwd"] {
        let said = format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 3\r\n\r\nown");
        let response = it.asked(&get("/app/x"), &said);
        assert_eq!((response.status, &*response.body), (200, &b"own"[..]), "{field}");
        assert!(!response.head.contains("files") && !response.head.contains("passwd"));
    }
}

#[test]
fn a_sendfile_is_one_below_the_root_of_an_internal_route() {
    let mut it = Running::with("deny_files = [\"*.bak\"]", "", "");
    let root = it.kettle.folder.path("private");
    let root = root.display();
    let said = handing(&format!("X-Sendfile: {root}/a.txt\r\nContent-Type: a/b\r\n"));
    let response = it.asked(&get("/app/x"), &said);
    assert_eq!((response.status, &*response.body), (200, &b"0123456789"[..]));
    assert_eq!(response.header("content-type"), Some("a/b"));
    assert!(!response.head.contains("sendfile"), "{}", response.head);
    let www = it.kettle.folder.path("www/public.txt");
    for (file, status) in [
        (format!("{root}/../secret.txt"), 502),
        (format!("{root}/%2e%2e/secret.txt"), 502),
        (format!("{root}"), 502),
        (format!("{root}x/a.txt"), 502),
        ("/etc/passwd".to_owned(), 502),
        ("a.txt".to_owned(), 502),
        (www.display().to_string(), 502),
        (format!("{root}/absent.txt"), 404),
        (format!("{root}/a.bak"), 403),
    ] {
        let response = it.asked(&get("/app/x"), &handing(&format!("X-Sendfile: {file}\r\n")));
        assert_eq!(response.status, status, "{file}");
    }
    let both = handing(&format!("X-Sendfile: {root}/a.txt\r\nX-Accel-Redirect: /files/a.txt\r\n"));
    assert_eq!(it.asked(&get("/app/x"), &both).status, 502);
}

/// A client could choose a file by what programs call such answers (CVE-2025-61780).
#[test]
fn no_client_says_how_servers_name_files() {
    let mut it = Running::with("", "", "");
    let fields = "X-Sendfile-Type: X-Accel-Redirect\r\nX-Accel-Mapping: /=/files/\r\nX_Accel_Mapping: /=/\r\nX-Accel-Redirect: /files/a.txt\r\n";
    it.client.send(&request("GET", "/app/x", fields)).unwrap();
    let mut server = it.app.accept();
    let head = answer(&mut server, &ok("plain")).to_ascii_lowercase();
    assert!(!head.contains("accel") && !head.contains("sendfile"), "{head}");
    assert_eq!(it.client.response().body, b"plain");
}

#[test]
fn the_guard_of_what_is_led_to_is_asked() {
    let mut it = Running::with("deny = [\"0.0.0.0/0\"]", "", "");
    let response =
        it.asked(&get("/app/x"), &handing("X-Accel-Redirect: /files/a.txt\r\nSet-Cookie: a=b\r\n"));
    assert_eq!((response.status, response.header("set-cookie")), (403, Some("a=b")));
    assert_eq!(it.kettle.entry("/app/x").text("refused"), "network");
}

#[test]
fn servers_that_name_one_another_end_at_a_bound() {
    let more = "[[site.route]]\nprefix = \"/round\"\nbackend = \"app\"\ninternal = true\n";
    let app = Backend::listen();
    let kettle = Kettle::start(setup(&app, "", "", more));
    let mut client = kettle.ask(&get("/app/x"));
    let mut kept = None;
    let on = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /round/on?a=b\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n";
    for number in 0..11 {
        let head = answer(app.asked(&mut kept), on);
        let expected = if number == 0 { "GET /app/x " } else { "GET /round/on?a=b " };
        assert!(head.starts_with(expected), "{number}: {head}");
    }
    assert_eq!(client.response().status, 500);
    assert_eq!(kettle.entry("/app/x").text("refused"), "rewrite_loop");
    app.assert_unasked();
    // One may name a file in the end.
    client.send(&get("/app/y")).unwrap();
    answer(app.asked(&mut kept), on);
    let last = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /files/a.txt\r\nContent-Length: 0\r\n\r\n";
    answer(app.asked(&mut kept), last);
    let response = client.response();
    assert_eq!((&*response.body, response.header("set-cookie")), (&b"0123456789"[..], Some("a=b")));
}

#[test]
fn a_charset_and_a_rate_are_taken_and_taken_away() {
    let mut it = Running::with("", "", "");
    let said = "X-Accel-Redirect: /files/a.txt\r\nContent-Type: text/plain; charset=x\r\nX-Accel-Charset: koi8-r\r\nX-Accel-Limit-Rate: 100000\r\n";
    let response = it.asked(&get("/app/x"), &handing(said));
    assert_eq!(response.header("content-type"), Some("text/plain; charset=koi8-r"));
    assert!(!response.head.contains("x-accel"), "{}", response.head);
    assert_eq!(response.body, b"0123456789");
}

#[test]
fn an_answer_that_names_a_file_is_not_stored() {
    let cached = "[[site.route]]\nprefix = \"/kept\"\nbackend = \"app\"\ncache = { store = \"main\", default = \"1h\" }\n\
        [[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let app = Backend::listen();
    let kettle = Kettle::start(setup(&app, "", "", cached).file("kept/.keep", ""));
    let mut kept = None;
    let mut client = kettle.ask(&get("/kept/x"));
    let said = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /files/a.txt\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n";
    // The fetch for all has no use for it: who asks gets it for itself.
    for _ in 0..2 {
        answer(app.asked(&mut kept), said);
    }
    assert_eq!(client.response().body, b"0123456789");
    client.send(&get("/kept/x")).unwrap();
    answer(app.asked(&mut kept), said);
    assert_eq!(client.response().body, b"0123456789");
    assert!(kettle.ctl(&["cache", "status"]).succeed().contains("main: 0 objects"));
}

/// A write whose answer names a file is one all the same.
#[test]
fn a_write_that_is_answered_by_a_file_leaves_nothing_stored_of_its_url() {
    let cached = "[[site.route]]\nprefix = \"/kept\"\nbackend = \"app\"\ncache = { store = \"main\" }\n\
        [[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    let app = Backend::listen();
    let kettle = Kettle::start(setup(&app, "", "", cached).file("kept/.keep", ""));
    let mut kept = None;
    let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\n";
    let mut client = kettle.ask(&get("/kept/x"));
    answer(app.asked(&mut kept), &format!("{fresh}one"));
    assert_eq!(client.response().body, b"one");
    assert_eq!(client.get("/kept/x").body, b"one");
    client.send(&request("POST", "/kept/x", "Content-Length: 0\r\n")).unwrap();
    let said = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /files/a.txt\r\nContent-Length: 0\r\n\r\n";
    answer(app.asked(&mut kept), said);
    assert_eq!(client.response().body, b"0123456789");
    client.send(&get("/kept/x")).unwrap();
    answer(app.asked(&mut kept), &format!("{fresh}two"));
    assert_eq!(client.response().body, b"two");
}

#[test]
fn a_program_names_a_file_too() {
    let app = Backend::listen();
    let text = format!(
        "[[site.route]]\nprefix = \"/run\"\nbackend = \"php\"\n[site.route.fastcgi]\nscript = \"/app.php\"\n\
         [[site.route]]\nprefix = \"/files\"\nroot = \"private\"\ninternal = true\n{}",
        backend("php", "protocol = \"fastcgi\"", &[app.address()])
    );
    let kettle = Kettle::start(Setup::default().file("private/a.txt", "0123456789").more(&text));
    let mut client = kettle.ask(&request("GET", "/run/x", "Range: bytes=0-3\r\n"));
    let said = "X-Accel-Redirect: /files/a.txt\nContent-type: text/html; charset=UTF-8\n\n";
    application::answer(&mut app.accept(), said);
    let response = client.response();
    assert_eq!((response.status, &*response.body), (206, &b"0123"[..]));
    assert_eq!(response.header("content-type"), Some("text/html; charset=UTF-8"));
}

#[test]
fn a_stream_of_http2_gets_the_file() {
    let app = Backend::listen();
    let kettle = Kettle::start(setup(&app, "", "", "").listener("http2 = true"));
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&frames::get(1, "/app/x"));
    answer(&mut app.accept(), &handing("X-Accel-Redirect: /files/a.txt\r\n"));
    assert_eq!(frames.body(1), b"0123456789");
}

#[test]
fn a_path_with_an_encoded_slash_is_no_matter_of_the_file() {
    let mut it = Running::with("", "encoded_slashes = true", "");
    let response = it.asked(&get("/app/a%2Fb"), &handing("X-Accel-Redirect: /files/a.txt\r\n"));
    assert_eq!((response.status, &*response.body), (200, &b"0123456789"[..]));
}

#[test]
fn an_early_answer_leads_to_the_file_and_the_rest_of_the_upload_to_nothing() {
    let mut it = Running::with("", "", "");
    let handing = "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /files/a.txt\r\nContent-Length: 0\r\n\r\n";
    // The rest of the body looks like a request for another file.
    let rest = get("/public.txt");
    for framing in
        [format!("Content-Length: {}", 5 + rest.len()), "Transfer-Encoding: chunked".to_owned()]
    {
        let is_chunked = framing.starts_with('T');
        it.client = Dialer::default().connect(it.kettle.address());
        let first = if is_chunked { "5\r\nfirst\r\n" } else { "first" };
        let head = request("POST", "/app/x", &format!("{framing}\r\n"));
        it.client.send(&[&head[..], first.as_bytes()].concat()).unwrap();
        let mut server = it.app.accept();
        read_head(&mut server);
        assert_eq!(read_exactly(&mut server, first.len()), first.as_bytes());
        server.write_all(handing.as_bytes()).unwrap();
        let response = it.client.response();
        assert_eq!((response.status, &*response.body), (200, &b"0123456789"[..]), "{framing}");
        // The server is told no end of what it did not get.
        assert_eq!(kettle_tests::backend::read_to_end(&mut server).0, b"");
        let rest = match is_chunked {
            true => format!("{:x}\r\n{}\r\n0\r\n\r\n", rest.len(), String::from_utf8_lossy(&rest)),
            false => String::from_utf8_lossy(&rest).into_owned(),
        };
        it.client.send(rest.as_bytes()).unwrap();
        it.client.send(&get("/app/next")).unwrap();
        serves(&mut it.client, &mut it.app.accept(), "next");
    }
}

#[test]
fn an_early_answer_to_a_stream_of_http2_leads_to_the_file() {
    let app = Backend::listen();
    let kettle = Kettle::start(setup(&app, "", "", "").listener("http2 = true"));
    let mut frames = Frames::connect(&kettle, &[]);
    let head =
        frame(HEADERS, END_HEADERS, 1, &fields("POST", "/app/x", &[("content-length", "9")]));
    frames.send(&[head, frame(DATA, 0, 1, b"first")].concat());
    let mut server = app.accept();
    read_head(&mut server);
    assert_eq!(read_exactly(&mut server, 5), b"first");
    server.write_all(handing("X-Accel-Redirect: /files/a.txt\r\n").as_bytes()).unwrap();
    assert_eq!(frames.body(1), b"0123456789");
    // Data that was on its way is no mistake, and the connection goes on.
    frames.send(&[frame(DATA, END_STREAM, 1, b"rest"), frames::get(3, "/app/next")].concat());
    answer(&mut app.accept(), &ok("next"));
    assert_eq!(frames.body(3), b"next");
}
