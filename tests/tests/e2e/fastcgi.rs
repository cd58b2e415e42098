//! Programs behind FastCGI: what they are told, what is never sent, and applications that break off or lie.

mod broken;
mod guarded;
mod programs;
mod real;
mod told;
mod uwsgi;

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use kettle_tests::application::{Asked, answer};
use kettle_tests::prelude::*;
use kettle_tests::tool::wait_until_listening;
use tempfile::TempDir;

/// A text that stands in each program's file and may reach no client.
const SOURCE: &str = "<?php /* the source */";

/// A site whose only route has files and programs, with more settings of the route, of its programs and of the backend.
fn programs(route: &str, fastcgi: &str, settings: &str, servers: &[SocketAddr]) -> Setup {
    let settings = format!("protocol = \"fastcgi\"\n{settings}");
    Setup::default()
        .route(&format!("backend = \"php\"\n{route}\nfastcgi = {{ {fastcgi} }}"))
        .more(&backend("php", &settings, servers))
}

/// A site with one program, and the application that runs it.
fn one_program(route: &str, fastcgi: &str, settings: &str) -> (Kettle, Backend) {
    let application = Backend::listen();
    let setup = programs(route, fastcgi, settings, &[application.address()]);
    (Kettle::start(setup.file("www/a.php", SOURCE)), application)
}

/// Asks for the program, for which the client waits.
fn asked_for(kettle: &Kettle, target: &str) -> Client {
    kettle.ask(&request("GET", target, ""))
}

#[test]
fn a_program_answers_and_the_log_says_from_where() {
    let (kettle, application) = one_program("", "", "");
    let mut client = asked_for(&kettle, "/a.php?b=c");
    let said = "Status: 201 Made\nContent-Type: a/b\nX-App: 1\nConnection: close\nX-Accel-Expires: 0\n\nhello";
    let asked = answer(&mut application.accept(), said);
    assert!(!asked.keeps_connection);
    assert!(asked.body.is_empty());
    let response = crate::proxy::chunked_response(&mut client);
    assert_eq!((response.status, &*response.body), (201, &b"hello"[..]));
    assert_eq!(response.header("content-type"), Some("a/b"));
    assert_eq!(response.header("x-app"), Some("1"));
    assert_eq!(response.header("server"), Some("kettle"));
    for name in ["status", "connection", "x-accel-expires"] {
        assert_eq!(response.header(name), None, "{name}");
    }
    let entry = kettle.entry("/a.php?b=c");
    assert_eq!((entry.text("backend"), entry.number("upstream_status")), ("php", 201));
    assert!(entry.is_complete() && entry.number("first_byte_us") > 0);
}

#[test]
fn a_connection_is_kept_where_that_is_said_and_the_request_is_over() {
    let (kettle, application) = one_program("", "", "keep_alive = 1");
    let mut client = Dialer::default().connect(kettle.address());
    let mut socket = None;
    for _ in 0..3 {
        client.send(&request("GET", "/a.php", "")).unwrap();
        let socket = application.asked(&mut socket);
        assert!(answer(socket, "Content-Length: 2\r\n\r\nok").keeps_connection);
        assert_eq!(client.response().body, b"ok");
    }
    let mut answers = socket.unwrap();
    client.send(&request("HEAD", "/a.php", "")).unwrap();
    assert_eq!(answer(&mut answers, "Content-Length: 7\n\n").param("REQUEST_METHOD"), "HEAD");
    assert_eq!(client.response_head().header("content-length"), Some("7"));
    client.send(&request("GET", "/a.php", "")).unwrap();
    assert_eq!(answer(&mut answers, "Status: 204\n\n").param("REQUEST_METHOD"), "GET");
    assert_eq!(client.response_head().status, 204);
}
