//! Applications behind uwsgi and SCGI: uWSGI itself speaks both, and by hand what it would not say.

use std::net::TcpStream;

use super::real::{asked, assert_says, program};
use super::*;

/// An application that says what it was told, and answers with the status that its query says.
const SAYS: &str = r#"
import json
def application(environ, start_response):
    body = environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
    status = environ['QUERY_STRING'] if environ['QUERY_STRING'].isdigit() else '200'
    start_response(status + ' Said', [('Content-Type', 'application/json'), ('X-App', '1')])
    names = ['SCRIPT_NAME', 'PATH_INFO', 'REQUEST_URI', 'QUERY_STRING', 'REQUEST_METHOD', 'HTTPS', 'SERVER_NAME', 'HTTP_X_A',
        'SCRIPT_FILENAME', 'APP', 'HTTP_PROXY']
    told = {name: environ[name] for name in names if name in environ}
    if environ['PATH_INFO'] == '/w/large':
        return [b'x' * 2000000]
    return [json.dumps({**told, 'bytes': len(body)}, separators=(',', ':')).encode()]
"#;

#[test]
fn an_application_in_python_answers_as_it_does_behind_nginx() {
    let Some(program) = program("uwsgi-core") else { return };
    if !fs::exists("/usr/lib/uwsgi/plugins/python3_plugin.so").unwrap() {
        return skip("uWSGI has no Python here");
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("says.py");
    fs::write(&file, SAYS).unwrap();
    let uwsgi = unused_address();
    let scgi = unused_address();
    let sockets = [("--socket", uwsgi), ("--scgi-socket", scgi)];
    let sockets = sockets.map(|(option, address)| [option.to_owned(), address.to_string()]);
    let options = ["--plugin", "python3", "--master", "--die-on-term", "--processes", "2"];
    let tool = Tool::new(program).args(options).args(sockets.as_flattened()).args(["--wsgi-file"]);
    let _running = tool.args([&file]).start();
    [uwsgi, scgi].into_iter().for_each(wait_until_listening);
    for (protocol, address) in [("uwsgi", uwsgi), ("scgi", scgi)] {
        let settings = format!(
            "protocol = \"{protocol}\"\ncheck = {{ kind = \"http\", path = \"/ping?204\", interval = \"50ms\" }}"
        );
        let more = "[[site.route]]\nprefix = \"/app\"\nbackend = \"a\"\nfastcgi = { path_info = true, params = { APP = \"{host}\" } }\n";
        let setup = Setup::default()
            .more("[[site.route]]\nprefix = \"/w\"\nbackend = \"a\"\n")
            .more(&format!("{more}{}", backend("a", &settings, &[address])));
        let kettle = Kettle::start(setup);
        let get =
            |target: &str| asked(kettle.address(), "GET", target, "X-A: b\r\nProxy: c\r\n", b"");
        let said = get("/w/a%20b/?x=1");
        assert_says(
            &said,
            &[
                "\"PATH_INFO\":\"/w/a b/\"",
                "\"REQUEST_URI\":\"/w/a%20b/?x=1\"",
                "\"QUERY_STRING\":\"x=1\"",
                "\"HTTPS\":\"on\"",
                "\"HTTP_X_A\":\"b\"",
            ],
        );
        let body = String::from_utf8_lossy(&said.body);
        assert!(!body.contains("SCRIPT_FILENAME") && !body.contains("HTTP_PROXY"), "{body}");
        assert_says(
            &get("/app/c"),
            &["\"SCRIPT_NAME\":\"/app\"", "\"PATH_INFO\":\"/c\"", "\"APP\":"],
        );
        let missing = get("/w/?404");
        assert_eq!((missing.status, missing.header("x-app")), (404, Some("1")));
        let sent = vec![b'y'; 300_000];
        let length = format!("Content-Length: {}\r\n", sent.len());
        let said = asked(kettle.address(), "POST", "/w", &length, &sent);
        assert_says(&said, &["\"bytes\":300000", "\"REQUEST_METHOD\":\"POST\""]);
        assert_eq!(get("/w/large").body.len(), 2_000_000);
        assert_eq!(asked(kettle.address(), "HEAD", "/w", "", b"").status, 200);
        kettle.wait_for_status("/backends/0/servers/0/health", "up");
    }
}

fn application(protocol: &str) -> (Kettle, Backend) {
    let application = Backend::listen();
    let settings = format!("protocol = \"{protocol}\"");
    let setup = Setup::default()
        .more("[[site.route]]\nprefix = \"/w\"\nbackend = \"a\"\n")
        .more(&backend("a", &settings, &[application.address()]));
    (Kettle::start(setup), application)
}

fn taken(socket: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut taken = vec![0; bytes];
    socket.read_exact(&mut taken).unwrap();
    taken
}

#[test]
fn a_request_is_one_block_and_a_connection() {
    let (kettle, application) = application("uwsgi");
    let mut client = Dialer::default().connect(kettle.address());
    for round in 0..2 {
        client
            .send(&[&request("POST", "/w/a", "Content-Length: 2\r\n")[..], b"hi"].concat())
            .unwrap();
        let mut socket = application.accept();
        let head = taken(&mut socket, 4);
        assert_eq!((head[0], head[3]), (0, 0), "both modifiers");
        let block = taken(&mut socket, usize::from(u16::from_le_bytes([head[1], head[2]])));
        let told = b"\x0e\0CONTENT_LENGTH\x01\x002";
        assert!(block.windows(told.len()).any(|it| it == told), "{block:?}");
        assert_eq!(taken(&mut socket, 2), b"hi");
        // Its connection is left open, and no other request comes over it.
        socket.write_all(b"HTTP/1.1 201 Made\r\nContent-Length: 3\r\n\r\nyes").unwrap();
        let response = client.response();
        assert_eq!((response.status, &*response.body), (201, &b"yes"[..]), "{round}");
        assert_eq!(socket.read(&mut [0]).unwrap(), 0, "it is closed behind the response");
    }
}

#[test]
fn what_scgi_is_told_begins_with_the_length() {
    let (kettle, application) = application("scgi");
    let mut client = kettle.ask(&request("GET", "/w/a", ""));
    let mut socket = application.accept();
    let mut digits = String::new();
    loop {
        match taken(&mut socket, 1)[0] {
            b':' => break,
            digit => digits.push(digit.into()),
        }
    }
    let block = taken(&mut socket, digits.parse::<usize>().unwrap() + 1);
    assert!(block.starts_with(b"CONTENT_LENGTH\x000\0SCGI\x001\0"), "{block:?}");
    assert!(block.ends_with(b"\0,"), "{block:?}");
    socket.write_all(b"Status: 404 None\nX-App: 1\n\nnone").unwrap();
    drop(socket);
    let response = crate::proxy::any_response(&mut client);
    assert_eq!((response.status, &*response.body), (404, &b"none"[..]));
}

#[test]
fn what_is_no_answer_is_502() {
    for (sent, word) in [
        (&b""[..], "closed_early"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n", "closed_early"),
        (b"HTTP/1.1 101 Changed\r\n\r\n", "status"),
        (b"nothing at all\r\n\r\n", "field_name"),
        (b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /secret\r\n\r\n", "x_accel_redirect"),
    ] {
        let (kettle, application) = application("uwsgi");
        let mut client = kettle.ask(&request("GET", "/w/a", ""));
        let mut socket = application.accept();
        let head = taken(&mut socket, 4);
        taken(&mut socket, usize::from(u16::from_le_bytes([head[1], head[2]])));
        socket.write_all(sent).unwrap();
        drop(socket);
        assert_eq!(client.response().status, 502, "{word}");
        assert_eq!(kettle.entry("/w/a").text("upstream_failure"), word);
    }
}
