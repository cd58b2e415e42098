//! Requests passed to a backend, and what comes back.

mod agree;
mod bit_by_bit;
mod body;
mod buffering;
mod changed;
mod clients;
mod compression;
mod early;
mod examples;
mod failure;
pub mod guarded;
mod handed;
mod kernel;
mod leaves;
mod lenient;
mod lost;
mod memory;
mod next_server;
mod pass;
mod responses;
mod reuse;
mod servers;
mod smuggling;
mod sticky;
mod trailers;
mod violation;
mod websocket;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use kettle_tests::backend::{answer, in_tls, read_head};
use kettle_tests::prelude::*;
use kettle_tests::setup::unused_ip;
use rustix::process::Signal;
use tempfile::TempDir;

/// A server whose route `/app` asks these servers, with more settings of the route and of the backend. Bodies are passed on as they
/// come.
fn before(route: &str, settings: &str, servers: &[SocketAddr]) -> Setup {
    before_with("off", route, settings, servers)
}

/// The same, with bodies stored as `request_buffering` says.
fn before_with(buffering: &str, route: &str, settings: &str, servers: &[SocketAddr]) -> Setup {
    let route = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nrequest_buffering = \"{buffering}\"\n{route}\n"
    );
    Setup::default().more(&route).more(&backend("app", settings, servers))
}

/// One such server, which does what its test says, and kettle before it.
fn started(route: &str, settings: &str) -> (Backend, Kettle) {
    let backend = Backend::listen();
    let kettle = Kettle::start(before(route, settings, &[backend.address()]));
    (backend, kettle)
}

/// Asks for a target, which this connection of the server answers with a body that the client gets. Returns the head of the
/// request.
#[track_caller]
fn passes(client: &mut Client, server: &mut TcpStream, target: &str, body: &str) -> String {
    client.send(&get(target)).unwrap();
    serves(client, server, body)
}

/// The server's answer to the next request on this connection is this body, which the client gets. Returns the head of the request.
#[track_caller]
fn serves(client: &mut Client, server: &mut TcpStream, body: &str) -> String {
    let head = answer(server, &ok(body));
    assert_eq!(client.response().body, body.as_bytes(), "{head}");
    head
}

/// Reads a response whose body comes in chunks, up to its end.
pub fn chunked_response(client: &mut Client) -> Response {
    let response = client.response_head();
    assert_eq!(response.header("transfer-encoding"), Some("chunked"), "{}", response.head);
    with_chunks(client, response)
}

/// Reads a response whose body has a length or comes in chunks.
pub fn any_response(client: &mut Client) -> Response {
    let mut response = client.response_head();
    if response.header("transfer-encoding").is_some() {
        return with_chunks(client, response);
    }
    response.body = client.receive_exactly(response.announced_bytes());
    response
}

fn with_chunks(client: &mut Client, mut response: Response) -> Response {
    loop {
        let size = line(client);
        let bytes = usize::from_str_radix(&size, 16).unwrap();
        response.body.extend(client.receive_exactly(bytes));
        assert_eq!(line(client), "", "after a chunk");
        if bytes == 0 {
            return response;
        }
    }
}

fn line(client: &mut Client) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(client.receive_exactly(1));
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

/// A response with a body of known length.
fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
