//! The parameters that programs are told.

use std::collections::BTreeMap;

use super::*;

/// Returns what the application is told of a request with these fields and this body.
fn told(
    kettle: &Kettle,
    application: &Backend,
    method: &str,
    target: &str,
    headers: &str,
    body: &[u8],
) -> Asked {
    let mut client = kettle.ask(&[&request(method, target, headers), body].concat());
    let asked = answer(&mut application.accept(), "Content-Length: 0\n\n");
    assert_eq!(client.response_head().status, 200, "{method} {target}");
    asked
}

/// Those of nginx's `fastcgi_params` and `fastcgi.conf`, with its values.
#[test]
fn parameters_are_those_of_nginx() {
    let (kettle, application) = one_program("", "", "");
    let asked = told(
        &kettle,
        &application,
        "POST",
        "/a.php?q=%20a&b",
        "Content-Type: text/plain\r\nContent-Length: 3\r\nCookie: a=1\r\nCookie: b=2\r\nX-A: 1\r\nX-A: 2\r\n\
         User-Agent: me\r\nAuthorization: Basic eDp5\r\n",
        b"abc",
    );
    let root = kettle.folder.path("www").display().to_string();
    let mut params: BTreeMap<&str, &str> =
        asked.params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let port = params.remove("REMOTE_PORT").unwrap();
    assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{port}");
    assert!(params.remove("HTTP_X_REQUEST_ID").is_some_and(|id| !id.is_empty()));
    let script = format!("{root}/a.php");
    let expected = BTreeMap::from([
        ("CONTENT_LENGTH", "3"),
        ("CONTENT_TYPE", "text/plain"),
        ("DOCUMENT_ROOT", root.as_str()),
        ("DOCUMENT_URI", "/a.php"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("HTTPS", "on"),
        ("HTTP_AUTHORIZATION", "Basic eDp5"),
        ("HTTP_CONTENT_LENGTH", "3"),
        ("HTTP_CONTENT_TYPE", "text/plain"),
        ("HTTP_COOKIE", "a=1; b=2"),
        ("HTTP_HOST", "localhost"),
        ("HTTP_USER_AGENT", "me"),
        ("HTTP_X_A", "1, 2"),
        ("QUERY_STRING", "q=%20a&b"),
        ("REDIRECT_STATUS", "200"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("REMOTE_USER", ""),
        ("REQUEST_METHOD", "POST"),
        ("REQUEST_SCHEME", "https"),
        ("REQUEST_URI", "/a.php?q=%20a&b"),
        ("SCRIPT_FILENAME", script.as_str()),
        ("SCRIPT_NAME", "/a.php"),
        ("SERVER_NAME", "localhost"),
        ("SERVER_PORT", "443"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SERVER_SOFTWARE", "kettle"),
    ]);
    assert_eq!(params, expected);
    assert_eq!(asked.body, b"abc");
}

#[test]
fn nothing_that_a_client_says_becomes_a_setting_of_a_program() {
    let (kettle, application) = one_program("", "", "");
    let headers = "Proxy: http://evil\r\nX_Under: 1\r\nX.Dot: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: http\r\n\
                   Forwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nTE: trailers\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\
                   Upgrade: websocket\r\nRemote-User: admin\r\n";
    let asked = told(&kettle, &application, "GET", "/a.php", headers, b"");
    for name in [
        "HTTP_PROXY",
        "HTTP_X_UNDER",
        "HTTP_X_DOT",
        "HTTP_X_FORWARDED_FOR",
        "HTTP_X_FORWARDED_PROTO",
        "HTTP_FORWARDED",
        "HTTP_X_REAL_IP",
        "HTTP_TE",
        "HTTP_CONNECTION",
        "HTTP_X_HOP",
        "HTTP_UPGRADE",
        "HTTP_TRANSFER_ENCODING",
        "AUTH_TYPE",
        "PATH_INFO",
        "PATH_TRANSLATED",
    ] {
        assert_eq!(asked.params.get(name), None, "{name}");
    }
    assert_eq!(asked.params.get("REMOTE_USER").map(String::as_str), Some(""));
    assert_eq!(asked.param("HTTP_REMOTE_USER"), "admin", "a field of that name is none of ours");
    assert_eq!(asked.params.get("CONTENT_LENGTH").map(String::as_str), Some(""));
}

#[test]
fn a_body_has_a_length_whatever_way_it_came() {
    for buffering in ["unknown-length", "all", "off"] {
        let (kettle, application) =
            one_program(&format!("request_buffering = \"{buffering}\""), "", "");
        let chunks = b"3\r\nabc\r\n40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n0\r\n\r\n";
        let chunked = "Transfer-Encoding: chunked\r\n";
        let asked = told(&kettle, &application, "PUT", "/a.php", chunked, chunks);
        assert_eq!((asked.param("CONTENT_LENGTH"), asked.body.len()), ("67", 67), "{buffering}");
        assert_eq!(asked.param("HTTP_TRANSFER_ENCODING"), "chunked", "as nginx says it");
        let asked = told(&kettle, &application, "POST", "/a.php", chunked, b"0\r\n\r\n");
        assert_eq!((asked.param("CONTENT_LENGTH"), asked.body.len()), ("0", 0), "{buffering}");
        let large = vec![b'x'; 300_000];
        let length =
            format!("Content-Type: application/grpc\r\nContent-Length: {}\r\n", large.len());
        let asked = told(&kettle, &application, "POST", "/a.php", &length, &large);
        assert_eq!(asked.param("CONTENT_LENGTH"), "300000");
        assert!(asked.body == large, "{buffering}");
    }
}

#[test]
fn a_program_may_have_paths_behind_it_where_that_is_said() {
    let (kettle, application) = one_program("", "path_info = true", "");
    let root = kettle.folder.path("www").display().to_string();
    for (target, script, path_info) in [
        ("/a.php", "/a.php", ""),
        ("/a.php/", "/a.php", "/"),
        ("/a.php/b/c%20d", "/a.php", "/b/c d"),
        ("/a.php/.hidden", "/a.php", "/.hidden"),
        ("/a.php/b.php/c", "/a.php", "/b.php/c"),
    ] {
        let asked = told(&kettle, &application, "GET", target, "", b"");
        assert_eq!(asked.param("SCRIPT_FILENAME"), format!("{root}/a.php"), "{target}");
        assert_eq!(asked.param("SCRIPT_NAME"), script, "{target}");
        assert_eq!(asked.params.get("PATH_INFO").map(String::as_str), Some(path_info), "{target}");
        assert_eq!(asked.param("DOCUMENT_URI"), format!("{script}{path_info}"), "{target}");
        assert_eq!(asked.param("REQUEST_URI"), target);
        let translated =
            if path_info.is_empty() { String::new() } else { format!("{root}{path_info}") };
        assert_eq!(asked.param("PATH_TRANSLATED"), translated, "{target}");
    }
    let mut client = Dialer::default().connect(kettle.address());
    for target in ["/none.php/a.php", "/none/a.php/b", "/a.phpx/b"] {
        assert_eq!(client.get(target).status, 404, "{target}");
    }
}

#[test]
fn the_operator_says_what_else_a_program_is_told() {
    let application = Backend::listen();
    let fastcgi = "root = \"/app\", params = { APP_ENV = \"prod\", EMPTY = \"{query:none}\", HTTPS = [], \
                   HTTP_HOST = \"of the operator\", REMOTE_ADDR = \"{client_ip}x\", PHP_VALUE = \"a=b\" }";
    let route = "request_headers = { X-Mine = [\"1\", \"2\"], X-Gone = [] }";
    let setup = programs(route, fastcgi, "", &[application.address()]);
    let kettle = Kettle::start(setup.file("www/a.php", SOURCE));
    let headers = "X_Mine: evil\r\nX-Mine: evil\r\nX-Gone: evil\r\n";
    let asked = told(&kettle, &application, "GET", "/a.php", headers, b"");
    for (name, value) in [
        ("APP_ENV", Some("prod")),
        ("EMPTY", Some("")),
        ("HTTPS", None),
        ("HTTP_HOST", Some("of the operator")),
        ("REMOTE_ADDR", Some("127.0.0.1x")),
        ("PHP_VALUE", Some("a=b")),
        ("HTTP_X_MINE", Some("1, 2")),
        ("HTTP_X_GONE", None),
        ("SCRIPT_FILENAME", Some("/app/a.php")),
        ("DOCUMENT_ROOT", Some("/app")),
    ] {
        assert_eq!(asked.params.get(name).map(String::as_str), value, "{name}");
    }
}

#[test]
fn what_cannot_be_told_whole_is_told_to_no_program() {
    let application = Backend::listen();
    let setup = programs("", "", "", &[application.address()])
        .set("limits", "head = \"64 KiB\"")
        .set("limits", "headers = 100");
    let kettle = Kettle::start(setup.file("www/a.php", SOURCE));
    let fields: String =
        (0..60).map(|number| format!("X-{number}: {}\r\n", "v".repeat(1_000))).collect();
    let asked = told(&kettle, &application, "GET", "/a.php", &fields, b"");
    assert_eq!(asked.param("HTTP_X_59").len(), 1_000, "over several records");
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_by_kettle() {
    for buffering in ["all", "off"] {
        let route = format!("request_buffering = \"{buffering}\"\nrequest_body = \"1 KiB\"");
        let (kettle, application) = one_program(&route, "", "");
        let head = request("POST", "/a.php", "Expect: 100-continue\r\nContent-Length: 3\r\n");
        let mut client = kettle.ask(&head);
        assert_eq!(client.response_head().status, 100, "{buffering}");
        client.send(b"abc").unwrap();
        let asked = answer(&mut application.accept(), "Content-Length: 0\n\n");
        assert_eq!((asked.param("CONTENT_LENGTH"), &*asked.body), ("3", &b"abc"[..]));
        assert_eq!(asked.params.get("HTTP_EXPECT"), None);
        assert_eq!(client.response().status, 200);
        client.send(&request("POST", "/a.php", "Content-Length: 1025\r\n")).unwrap();
        assert_eq!(client.response().status, 413, "{buffering}");
        application.assert_unasked();
    }
    let (kettle, application) = one_program("request_buffering = \"refuse\"", "", "");
    let mut client = kettle.ask(&request("POST", "/a.php", "Transfer-Encoding: chunked\r\n"));
    assert_eq!(client.response().status, 411);
    application.assert_unasked();
}
