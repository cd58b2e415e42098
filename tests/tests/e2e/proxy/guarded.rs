//! Rules of routes that no request gets around on its way to a backend.

use super::*;

pub const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// HMAC-SHA-256 by it of `4102444800`, a line feed and `/app/a`.
pub const SIGNATURE: &str = "63e471dc6cee1211168e1c756bf0f20ce57ab604341063c0eaed32a1f2da2efd";
/// The same for `/app/x%2Fsecret`.
const SIGNATURE_OF_SLASH: &str = "5c4e83217a8c4cb0f34e03b6123fd82b74e00e611e290c09f2e511f35d751899";

#[test]
fn a_parameter_in_a_path_leads_around_no_rule() {
    let rules =
        "[[site.route]]\nprefix = \"/app/admin\"\nbackend = \"app\"\ndeny = [\"0.0.0.0/0\"]";
    let (backend, kettle) = started(rules, "");
    let mut client = Dialer::default().connect(kettle.address());
    for (path, status) in [
        ("/app/admin", 403),
        ("/app/admin/;a", 403),
        ("/app/admin;/users", 400),
        ("/app/admin;a=b", 400),
        ("/app/admin%3B/users", 400),
        ("/app/public/..;/admin/users", 400),
        ("/app/.;/admin", 400),
        ("/app/;/admin", 400),
        ("/app;a/admin", 404),
    ] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
    client.send(&get("/app/cars;color=red/list;page=2")).unwrap();
    let head = answer(&mut backend.accept(), &ok("parameters"));
    assert!(head.starts_with("GET /app/cars;color=red/list;page=2 HTTP/1.1\r\n"), "{head}");
    assert_eq!(client.response().body, b"parameters");
}

/// A server that compares paths as they are, or takes `//a/b` for a host and a path, finds what the guard was asked about.
#[test]
fn slashes_in_a_row_lead_around_no_rule() {
    let rules = "deny = [\"0.0.0.0/0\"]\n[[site.route]]\nprefix = \"/app/open\"\nbackend = \"app\"\n\
                 [[site.route]]\nprefix = \"/elsewhere\"\nbackend = \"app\"";
    let (backend, kettle) = started(rules, "");
    let mut client = Dialer::default().connect(kettle.address());
    for path in ["//app//a", "/app//", "/app//a//open", "/x/..//app/a"] {
        assert_eq!(client.get(path).status, 403, "{path}");
    }
    let mut kept = None;
    for (path, expected) in [
        ("/app//open/a", "/app/open/a"),
        ("//app/open/a", "/app/open/a"),
        ("//elsewhere/app/a", "/elsewhere/app/a"),
        ("/app/open//a//", "/app/open//a//"),
    ] {
        client.send(&get(path)).unwrap();
        let head = serves(&mut client, backend.asked(&mut kept), "open");
        assert!(head.starts_with(&format!("GET {expected} HTTP/1.1\r\n")), "{path}: {head}");
    }
}

#[test]
fn a_signature_is_for_reading_its_path_and_for_nothing_else() {
    let backend = Backend::listen();
    let setup = before("signed_urls = { secret = \"secret\" }", "", &[backend.address()]);
    let kettle = Kettle::start(setup.file("secret", SECRET));
    let target = format!("/app/a?expires=4102444800&signature={SIGNATURE}");
    let mut client = Dialer::default().connect(kettle.address());
    for method in ["POST", "DELETE", "PUT", "OPTIONS"] {
        client.send(&request(method, &target, "")).unwrap();
        assert_eq!(client.response().status, 403, "{method}");
    }
    for more in ["&delete=1", "&", "&expires2=1"] {
        assert_eq!(client.get(&format!("{target}{more}")).status, 403, "{more}");
    }
    assert_eq!(kettle.entry(&format!("{target}&delete=1")).text("refused"), "not-signed");
    client.send(&get(&target)).unwrap();
    let mut server = backend.accept();
    answer(&mut server, &ok("signed"));
    assert_eq!(client.response().body, b"signed");
    client.send(&request("HEAD", &target, "")).unwrap();
    answer(&mut server, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(client.response_head().status, 204);
}

/// Decoded once, `%252F` is the text that an encoded slash stays.
#[test]
fn a_signature_for_an_encoded_slash_is_for_no_other_path() {
    let backend = Backend::listen();
    let rules = "encoded_slashes = true\nsigned_urls = { secret = \"secret\" }";
    let kettle = Kettle::start(before(rules, "", &[backend.address()]).file("secret", SECRET));
    let mut client = Dialer::default().connect(kettle.address());
    let query = format!("expires=4102444800&signature={SIGNATURE_OF_SLASH}");
    for path in ["/app/x%252Fsecret", "/app/x%25%32%46secret"] {
        assert_eq!(client.get(&format!("{path}?{query}")).status, 403, "{path}");
        assert_eq!(kettle.entry(&format!("{path}?{query}")).text("refused"), "not-signed");
    }
    client.send(&get(&format!("/app/x%2Fsecret?{query}"))).unwrap();
    let head = serves(&mut client, &mut backend.accept(), "signed");
    assert!(head.starts_with("GET /app/x%2Fsecret?"), "{head}");
}

#[test]
fn a_slash_that_stays_encoded_stays_so_in_a_redirect() {
    let rules = "encoded_slashes = true\nredirect = [{ from = \"/app/old/**\", to = \"/app/new/{1}\" }, \
                 { from = \"/app/gone/**\", to = \"/app/here\" }]";
    let (_backend, kettle) = started(rules, "");
    let mut client = Dialer::default().connect(kettle.address());
    for (path, location) in [
        ("/app/old/@a%2Fb", Some("/app/new/@a%2Fb")),
        ("/app/old/@a%252Fb", Some("/app/new/@a%252Fb")),
        ("/app/old/@a%2Fb%252Fc", None),
        ("/app/gone/a%2Fb", Some("/app/here")),
    ] {
        let response = client.get(path);
        let status = if location.is_some() { 302 } else { 400 };
        assert_eq!((response.status, response.header("location")), (status, location), "{path}");
    }
}

#[test]
fn an_encoded_slash_leads_around_no_other_route() {
    let backend = Backend::listen();
    let guarded = "[[site.route]]\nprefix = \"/app/adm\"\nbackend = \"app\"\nencoded_slashes = true\ndeny = [\"0.0.0.0/0\"]\n";
    let kettle =
        Kettle::start(before("encoded_slashes = true", "", &[backend.address()]).more(guarded));
    let mut client = Dialer::default().connect(kettle.address());
    for (path, status) in [
        ("/app/adm/x", 403),
        ("/app/adm%2Fx", 400),
        ("/app/%2fadm/x", 400),
        ("/app/x%2F..%2Fadm/x", 400),
        ("/app/..%2F..%2Fadm", 400),
        ("/app/adm;x%2F..%2Fpub/users", 400),
        ("/app/adm%2F..%2Fx", 400),
    ] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
    client.send(&get("/app/@scope%2Fadm")).unwrap();
    let mut server = backend.accept();
    assert!(answer(&mut server, &ok("passed")).starts_with("GET /app/@scope%2Fadm "));
    assert_eq!(client.response().body, b"passed");
}

#[test]
fn for_a_denied_file_no_backend_is_asked() {
    const ASKING: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let backend = Backend::listen();
    let rules = "websocket = true\nencoded_slashes = true\ndeny_files = [\".*\", \"*.php\"]";
    let page = "error_pages = { 403 = \"403.html\" }";
    let setup = before(rules, "", &[backend.address()]).site(page).file("403.html", "no way");
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    for path in [
        "/app/.git/config",
        "/app/%2egit/config",
        "/app//.git",
        "/app/./.git/",
        "/app/.git;a/config",
        "/app/a%2F.git%2Fconfig",
        "/app/x.php",
        "/app/x.PHP/",
        "/app/x.php;a",
        "/app/x.php/more",
        "/app/x.php%2Fmore",
    ] {
        for (method, fields) in [("GET", ""), ("POST", "Content-Length: 0\r\n"), ("GET", ASKING)] {
            client.send(&request(method, path, fields)).unwrap();
            let response = client.response();
            assert_eq!((response.status, &*response.body), (403, &b"no way"[..]), "{path}");
        }
        assert_eq!(kettle.entry(path).text("refused"), "file");
    }
    client.send(&get("/app/git.phps")).unwrap();
    let head = serves(&mut client, &mut backend.accept(), "passed");
    assert!(head.starts_with("GET /app/git.phps "), "the first that is asked: {head}");
}

#[test]
fn for_a_client_that_is_gone_nothing_else_is_asked_that_it_had_asked_for() {
    let (backend, kettle) = started("", "");
    let mut client = kettle.ask(&get("/app/first").repeat(20));
    let mut server = backend.accept();
    assert!(read_head(&mut server).starts_with("GET /app/first "));
    client.wire.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.end(), End::Orderly);
    assert_eq!(client.beyond(), b"", "there was nobody to be told");
    let entry = kettle.entry("/app/first");
    assert_eq!((entry.number("status"), entry.is_complete()), (499, false));
    kettle.wait_until_idle();
    assert_eq!(kettle.status("/total/responses/user"), 1);
}

#[test]
fn a_server_may_say_499_to_a_client_that_is_there() {
    let (backend, kettle) = started("", "");
    let mut client = Dialer::default().connect(kettle.address());
    let mut server = None;
    for _ in 0..2 {
        client.send(&get("/app")).unwrap();
        let said = "HTTP/1.1 499 Token Required\r\nContent-Length: 5\r\n\r\ntoken";
        answer(backend.asked(&mut server), said);
        let response = client.response();
        assert_eq!((response.status, &*response.body), (499, &b"token"[..]));
    }
}

#[test]
fn a_tunnel_is_a_request_of_its_client_until_it_ends() {
    const ASKING: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let rules = "websocket = true\nrate_limit = { requests = 100, period = \"1s\", burst = 100, concurrent = 1 }";
    let (backend, kettle) = started(rules, "");
    let mut client = kettle.ask(&request("GET", "/app", ASKING));
    let mut server = backend.accept();
    answer(
        &mut server,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.response_head().status, 101);
    let mut other = Dialer::default().connect(kettle.address());
    assert_eq!(other.get("/app").status, 429);
    client.send(b"ping").unwrap();
    assert_eq!(kettle_tests::backend::read_exactly(&mut server, 4), b"ping");
    drop((client, server));
    let _ended = kettle.tunnel();
    other.send(&get("/app")).unwrap();
    let mut server = backend.accept();
    server.write_all(ok("free again").as_bytes()).unwrap();
    assert_eq!(other.response().body, b"free again");
}
