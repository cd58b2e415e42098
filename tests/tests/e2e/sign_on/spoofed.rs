//! The words of a client in place of the service, in every spelling that a server behind may take for the service's word.

use super::*;
use crate::http2::frames::*;

const COPY: &str = ", copy = [\"remote-user\", \"x-auth-request-groups>remote-groups\"]";

/// Returns what the backend gets of a request with these fields, of which the service says this.
fn passed_on(it: &Running, fields: &str, said: &str) -> String {
    let mut client = it.client();
    client.send(&request("GET", "/app/x", fields)).unwrap();
    answer(&mut it.auth.accept(), said);
    let head = ok(&mut it.app.accept(), "in");
    assert_eq!(client.response().body, b"in");
    head.to_ascii_lowercase()
}

#[test]
fn what_the_service_says_reaches_the_backend_by_the_names_that_it_has_there() {
    let it = Running::with(COPY, "");
    let said = "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nX-Auth-Request-Groups: a\r\nX-Auth-Request-Groups: b\r\n\
        Remote-Email: x\r\nContent-Length: 0\r\n\r\n";
    let head = passed_on(&it, "", said);
    assert!(head.contains("\r\nremote-user: ann\r\n"), "{head}");
    assert!(head.contains("\r\nremote-groups: a, b\r\n"), "{head}");
    assert!(!head.contains("remote-email") && !head.contains("x-auth-request"), "{head}");
}

#[test]
fn no_spelling_of_a_copied_field_reaches_the_backend() {
    let it = Running::with(COPY, "");
    for fields in [
        "Remote-User: root\r\n",
        "REMOTE-USER: root\r\n",
        "Remote_User: root\r\n",
        "remote.user: root\r\n",
        "Remote-User: root\r\nremote-user: root\r\n",
        "Remote-User:root\r\nRemote_User:root\r\nRemote-Groups: root\r\n",
        "Connection: remote-user\r\nRemote-User: root\r\n",
    ] {
        let head = passed_on(&it, fields, YES);
        assert!(!head.contains("root"), "{fields}{head}");
        // One that a client names as meant for one hop gets through all the same.
        let said = "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nContent-Length: 0\r\n\r\n";
        let head = passed_on(&it, fields, said);
        assert!(
            head.contains("\r\nremote-user: ann\r\n") && !head.contains("root"),
            "{fields}{head}"
        );
    }
}

#[test]
fn no_spelling_of_a_copied_field_comes_behind_the_body() {
    let it = Running::with(COPY, "");
    let mut client = it.client();
    client
        .send(&request("POST", "/app/x", "Transfer-Encoding: chunked\r\nTE: trailers\r\n"))
        .unwrap();
    answer(&mut it.auth.accept(), YES);
    let mut server = it.app.accept();
    let _ = super::read_head(&mut server);
    client
        .send(b"1\r\na\r\n0\r\nRemote-User: root\r\nremote_user: root\r\nX-Ours: ok\r\n\r\n")
        .unwrap();
    let body = kettle_tests::backend::read_until(&mut server, b"\r\n\r\n");
    let body = String::from_utf8(body).unwrap().to_ascii_lowercase();
    assert!(body.contains("x-ours: ok") && !body.contains("root"), "{body}");
}

/// A service may take such a field for the word of a proxy.
#[test]
fn no_client_tells_the_service_what_that_is_to_say() {
    let table = ", request_headers = [\"*\"], copy = [\"remote-user\", \"authorization\", \"x-mail>x-own\"]";
    let it = Running::with(table, "");
    let mut client = it.client();
    let fields = "Remote-User: root\r\nX-Mail: root\r\nX-Own: root\r\nAuthorization: Bearer client\r\nX-Other: 1\r\n";
    client.send(&request("GET", "/app/x", fields)).unwrap();
    let said = "HTTP/1.1 200 OK\r\nAuthorization: Bearer service\r\nContent-Length: 0\r\n\r\n";
    let asked = answer(&mut it.auth.accept(), said);
    assert!(!asked.contains("root"), "{asked}");
    assert!(asked.contains("Bearer client") && asked.contains("X-Other: 1"), "{asked}");
    let passed = ok(&mut it.app.accept(), "in");
    // By its other name it is the client's, and nobody's word for it.
    assert_eq!(passed.matches("root").count(), 1, "{passed}");
    assert!(passed.contains("X-Mail: root") && !passed.contains("client"), "{passed}");
    assert!(passed.contains("authorization: Bearer service\r\n"), "{passed}");
    assert_eq!(client.response().body, b"in");
}

#[test]
fn a_copied_field_over_http2_is_the_service_s() {
    let auth = kettle_tests::backend::Backend::listen();
    let app = kettle_tests::backend::Backend::listen();
    let setup = super::guarded(&auth, &app, COPY, "").listener("http2 = true");
    let kettle = kettle_tests::kettle::Kettle::start(setup);
    let mut frames = Frames::connect(&kettle, &[]);
    let block = fields("GET", "/app/x", &[("remote-user", "root"), ("remote_user", "root")]);
    frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block));
    answer(&mut auth.accept(), "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nContent-Length: 0\r\n\r\n");
    let head = ok(&mut app.accept(), "in").to_ascii_lowercase();
    assert!(head.contains("\r\nremote-user: ann\r\n") && !head.contains("root"), "{head}");
    assert_eq!(frames.body(1), b"in");
}

/// Asks with a field, and returns what the service and the backend saw of it.
fn seen_of(fields: &str) -> [String; 2] {
    let it = Running::with(", request_headers = [\"*\"]", "");
    let mut client = it.client();
    client.send(&request("GET", "/app/x", fields)).unwrap();
    let asked = answer(&mut it.auth.accept(), YES);
    let passed = ok(&mut it.app.accept(), "in");
    assert_eq!(client.response().body, b"in");
    [asked, passed].map(|head| head.to_ascii_lowercase())
}

#[test]
fn traefik_cve_2026_35051_x_forwarded_prefix_of_a_client_reaches_nobody() {
    for fields in ["X-Forwarded-Prefix: /admin\r\n", "X_Forwarded_Prefix: /admin\r\n"] {
        for head in seen_of(fields) {
            assert!(!head.contains("admin"), "{head}");
        }
    }
}

#[test]
fn traefik_cve_2026_54764_x_forwarded_port_of_a_client_reaches_nobody() {
    for head in seen_of("X-Forwarded-Port: 8443\r\nX-Forwarded_Port: 8443\r\n") {
        assert!(!head.contains("8443"), "{head}");
    }
}

#[test]
fn traefik_12657_forwarded_of_a_client_reaches_nobody() {
    for head in seen_of("Forwarded: for=10.6.6.6;host=evil.example\r\n") {
        assert!(!head.contains("10.6.6.6") && !head.contains("evil"), "{head}");
        assert!(head.contains("forwarded: for=127.0.0.1;proto=https"), "{head}");
    }
}

/// The service decides by these: they are ours.
#[test]
fn what_the_service_decides_by_is_not_the_client_s_to_say() {
    let fields = "X-Forwarded-Method: HEAD\r\nX-Forwarded-Uri: /public\r\nX-Forwarded-Host: evil.example\r\n\
        X-Forwarded-Proto: http\r\nX-Forwarded-For: 10.6.6.6\r\nX-Real-IP: 10.6.6.6\r\n";
    let [asked, passed] = seen_of(fields);
    for (name, value) in [
        ("method", "get"),
        ("uri", "/app/x"),
        ("host", "localhost"),
        ("proto", "https"),
        ("for", "127.0.0.1"),
    ] {
        assert!(asked.contains(&format!("\r\nx-forwarded-{name}: {value}\r\n")), "{asked}");
        assert_eq!(asked.matches(&format!("x-forwarded-{name}")).count(), 1, "{asked}");
    }
    assert!(!asked.contains("10.6.6.6") && !passed.contains("10.6.6.6"), "{asked}{passed}");
    assert!(!passed.contains("public") && !passed.contains("evil"), "{passed}");
}
