//! The understanding that other servers have of requests that could be read in several ways.

use kettle_tests::environment::go_program_or_skip;
use kettle_tests::tool::wait_until_listening;

use super::*;
use crate::tunnel::peers::Peer;

/// Requests as a client may write them, with method, target and length of the body that they have for everybody.
const REQUESTS: [(&str, &str, &str, usize); 10] = [
    (
        "POST /app/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "POST",
        "/app/1",
        5,
    ),
    (
        "PUT /app/2 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: Chunked\r\nTrailer: Content-Length\r\n\r\n\
         3;a=\"b\"\r\nhel\r\n2\r\nlo\r\n0\r\nContent-Length: 9\r\n\r\n",
        "PUT",
        "/app/2",
        5,
    ),
    ("GET https://localhost/app/3?a=b HTTP/1.1\r\nHost: elsewhere\r\n\r\n", "GET", "/app/3?a=b", 0),
    (
        "POST /app/4 HTTP/1.0\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
        "POST",
        "/app/4",
        5,
    ),
    (
        "POST /app/5 HTTP/1.1\r\nHost: localhost\r\nConnection: Content-Length, Host\r\nContent-Length: 5\r\n\r\nhello",
        "POST",
        "/app/5",
        5,
    ),
    (
        // CVE-2026-2833: an upgrade that nobody agreed to, and what stands behind it.
        "GET /app/6 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\
         GET /app/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET",
        "/app/6",
        0,
    ),
    (
        "POST /app/7 HTTP/1.1\r\nHost: localhost\r\nContent_Length: 0\r\nTransfer_Encoding: chunked\r\n\
         X-Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
        "POST",
        "/app/7",
        5,
    ),
    (
        "DELETE /app//x/../8 HTTP/1.1\r\nHost: LOCALHOST\r\nTE: chunked\r\n\r\n",
        "DELETE",
        "/app/8",
        0,
    ),
    (
        "POST /app/9 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\nX-Sum: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 40\r\nHost: elsewhere\r\n\r\n",
        "POST",
        "/app/9",
        5,
    ),
    (
        "PUT /app/10 HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\nX-Sum:\t 1, 2 \r\nX-Sum:\r\nContent_Length: 9\r\n\r\n",
        "PUT",
        "/app/10",
        0,
    ),
];

/// Asks a server for each, and holds what it says to what was meant. It says `method target host length`.
fn hold_to(peer: SocketAddr) {
    let kettle = Kettle::start(before("", "", &[peer]));
    for (number, (raw, method, target, bytes)) in REQUESTS.iter().enumerate() {
        let mut client = kettle.ask(raw.as_bytes());
        let response = client.response();
        let said = String::from_utf8(response.body).unwrap();
        assert_eq!(said, format!("{method} {target} localhost {bytes}"), "{raw:?}");
        let asked = raw.split(' ').nth(1).unwrap();
        let entry = kettle.entry(asked);
        assert_eq!((entry.text("method"), entry.number("status")), (*method, 200), "{raw:?}");
        // Both sides agree on where the one before ended.
        assert_eq!(entry.is_true("upstream_reused"), number > 0, "{raw:?}");
        if raw.contains("hidden") {
            let hidden = String::from_utf8(client.response().body).unwrap();
            assert_eq!(hidden, "GET /app/hidden localhost 0", "a request of its own");
        }
    }
}

#[test]
fn node_understands_what_we_do() {
    const PROGRAM: &str = "
require('http').createServer((request, response) => {
  let bytes = 0;
  request.on('data', data => bytes += data.length);
  request.on('end', () => response.end(
    [request.method, request.url, request.headers.host, bytes].join(' ')));
}).listen(PORT, 'HOST');
";
    let host = unused_address().ip().to_string();
    if let Some(node) = Peer::start("node", &[], &PROGRAM.replace("HOST", &host), &[]) {
        hold_to(node.address);
    }
}

#[test]
fn nginx_understands_what_we_do() {
    // It passes bodies on to itself, and says how long they were when all was read.
    const SERVERS: &str = "
  map $content_length $bytes { '' 0; default $content_length; }
  server {
    listen ADDRESS;
    location / { proxy_pass http://unix:FOLDER/said:; proxy_set_header X-Host $http_host; }
  }
  server {
    listen unix:FOLDER/said;
    location / { return 200 \"$request_method $request_uri $http_x_host $bytes\"; }
  }
";
    if let Some(nginx) = Peer::nginx(SERVERS, &[]) {
        hold_to(nginx.address);
    }
}

#[test]
fn go_understands_what_we_do() {
    let Some(program) = go_program_or_skip("server") else { return };
    let address = unused_address();
    let _server = Tool::new(program).args([address.to_string()]).start();
    wait_until_listening(address);
    hold_to(address);
}

#[test]
fn gunicorn_understands_what_we_do() {
    const CONFIG: &str = "
bind = 'ADDRESS'
chdir = 'FOLDER'
wsgi_app = 'said:said'
worker_class = 'gthread'
keepalive = 60
";
    const PROGRAM: &str = "
def said(environ, start_response):
    body = environ['wsgi.input'].read()
    text = ' '.join([environ['REQUEST_METHOD'], environ['RAW_URI'], environ['HTTP_HOST'], str(len(body))])
    start_response('200 OK', [('Content-Length', str(len(text)))])
    return [text.encode()]
";
    let files = [("said.py", PROGRAM.to_owned())];
    if let Some(gunicorn) = Peer::start("gunicorn", &["-c"], CONFIG, &files) {
        hold_to(gunicorn.address);
    }
}

#[test]
fn apache_understands_what_we_do() {
    const PROGRAM: &str = "#!/bin/sh
text=\"$REQUEST_METHOD $REQUEST_URI $HTTP_HOST $(wc -c)\"
printf 'Content-Length: %s\\r\\nContent-Type: text/plain\\r\\n\\r\\n%s' ${#text} \"$text\"
";
    let files = [("said", PROGRAM.to_owned())];
    // The length is the program's own: clients of HTTP/1.0 get a body of none up to the end of their connection.
    let settings = "ScriptAliasMatch ^ FOLDER/said\nSetEnv ap_trust_cgilike_cl 1\n";
    if let Some(apache) = Peer::apache(&["alias", "cgi", "env"], settings, &files) {
        hold_to(apache.address);
    }
}
