//! Programs behind guards and in stores.

use super::*;

#[test]
fn no_path_info_leads_around_the_guard_of_a_program() {
    let application = Backend::listen();
    let more = "\n[[site.route]]\nexact = \"/admin.php\"\nroot = \"www\"\nbackend = \"php\"\nfastcgi = {}\n\
                basic_auth = { realm = \"a\", users = \"users\" }\n";
    let fastcgi = "path_info = true, index = \"/a.php\"";
    let setup = programs("deny_files = [\"secret.php\"]", fastcgi, "", &[application.address()]);
    // joe:pw
    let users = "joe:$2b$05$tTObyDAWwX5g0z/iOVu1pukQQsNxisgOdVgFdlQAmP0vA1/xDhMaK\n";
    let setup = setup.more(more).file("users", users);
    let setup = setup.file("www/admin.php", SOURCE).file("www/secret.php", SOURCE);
    let setup = setup.file("www/a.php", SOURCE);
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    for (target, status) in [("/admin.php", 401), ("/secret.php", 403), ("/secret.php/x", 403)] {
        assert_eq!(client.get(target).status, status, "{target}");
    }
    application.assert_unasked();
    client.send(&request("GET", "/admin.php/x", "")).unwrap();
    let asked = answer(&mut application.accept(), "Content-Length: 0\n\n");
    assert_eq!(asked.param("SCRIPT_NAME"), "/a.php", "as for what is not there");
    assert_eq!(client.response().status, 200);
    client.send(&request("GET", "/admin.php", "Authorization: Basic am9lOnB3\r\n")).unwrap();
    let asked = answer(&mut application.accept(), "Content-Length: 0\n\n");
    assert_eq!((asked.param("REMOTE_USER"), asked.param("AUTH_TYPE")), ("joe", "Basic"));
    assert_eq!(client.response().status, 200);
}

#[test]
fn answers_are_kept_and_told_of_nobody() {
    let application = Backend::listen();
    let route = "cache = { store = \"main\" }";
    let setup = programs(route, "index = \"/a.php\"", "", &[application.address()])
        .more("[[cache]]\nname = \"main\"\ndirectory = \"cache\"\nsize = \"16 MiB\"\n");
    let kettle = Kettle::start(setup.file("www/a.php", SOURCE));
    let mut client = asked_for(&kettle, "/page?x=1");
    let said = "Cache-Control: max-age=60\nContent-Length: 4\n\nkept";
    let asked = answer(&mut application.accept(), said);
    for (name, value) in [
        ("REMOTE_ADDR", ""),
        ("REMOTE_USER", ""),
        ("SCRIPT_NAME", "/a.php"),
        ("REQUEST_URI", "/page?x=1"),
        ("QUERY_STRING", "x=1"),
        ("HTTPS", "on"),
        ("REQUEST_METHOD", "GET"),
        ("HTTP_HOST", "localhost"),
    ] {
        assert_eq!(asked.params.get(name).map(String::as_str), Some(value), "{name}");
    }
    for name in ["REMOTE_PORT", "HTTP_X_REQUEST_ID"] {
        assert_eq!(asked.params.get(name), None, "{name}");
    }
    assert_eq!(client.response().body, b"kept");
    drop(client);
    kettle.wait_until_idle();
    let mut client = Dialer::default().connect(kettle.address());
    assert_eq!(client.get("/page?x=1").body, b"kept");
    application.assert_unasked();
}

/// A request that waits, and a connection that is kept, are of the protocol that the backend had.
#[test]
fn no_connection_outlives_a_change_of_protocol() {
    let application = Backend::listen();
    let more = "\n[[site.route]]\nprefix = \"/app\"\nbackend = \"php\"\n";
    let setup = kettle_tests::setup::Setup::default().more(more).more(&backend(
        "php",
        "protocol = \"fastcgi\"\nkeep_alive = 4",
        &[application.address()],
    ));
    let kettle = Kettle::start(setup);
    let mut client = kettle.ask(&request("GET", "/app", ""));
    let mut kept = application.accept();
    answer(&mut kept, "Content-Length: 0\n\n");
    assert_eq!(client.response().status, 200);
    kettle.folder.change_config("protocol = \"fastcgi\"", "protocol = \"http1\"");
    kettle.ctl(&["reload"]).run();
    let mut client = kettle.ask(&request("GET", "/app", ""));
    let head = kettle_tests::backend::answer(
        &mut application.accept(),
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(head.starts_with("GET /app HTTP/1.1\r\n"), "{head}");
    assert_eq!(client.response().status, 200);
    assert_eq!(std::io::Read::read(&mut kept, &mut [0]).unwrap(), 0, "the old one was closed");
}
