//! Responses of backends that are kept: what clients get of them, and what the backend is asked.

mod answers;
mod arrivals;
mod at_once;
mod behind;
mod bodies;
mod ends;
mod fills;
mod folder;
mod forms;
mod hot;
mod keeps;
mod kernel;
mod killed;
mod late;
mod mirror;
mod poison;
mod reloads;
mod room;
mod rules;
mod shared;
mod slow;
mod stopped;
mod validations;
mod writes;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::thread;

use kettle_tests::backend::{answer, read_head};
use kettle_tests::mounted::Mounted;
use kettle_tests::prelude::*;
use rustix::process::Signal;
use tempfile::TempDir;

/// A server whose site keeps the responses of a backend that a test answers by hand.
struct Cached {
    kettle: Kettle,
    metrics: SocketAddr,
    backend: Backend,
    folder: TempDir,
}

impl Cached {
    fn start(settings: &str) -> Self {
        Self::with_store(settings, "")
    }

    /// With more settings of the route's cache, and of the store.
    fn with_store(settings: &str, store: &str) -> Self {
        Self::with_all("", settings, store)
    }

    /// With more settings of the route itself.
    fn of_route(route: &str) -> Self {
        Self::with_all(route, "", "")
    }

    fn with_all(route: &str, settings: &str, store: &str) -> Self {
        // Each hit is found on the disk. The memory of workers is the matter of `hot`.
        let setup = Setup::default().set("limits", "revalidate = \"0s\"");
        Self::set_up(setup, route, settings, store)
    }

    fn set_up(setup: Setup, route: &str, settings: &str, store: &str) -> Self {
        Self::in_folder(TempDir::new().unwrap(), setup, route, settings, store)
    }

    fn in_folder(folder: TempDir, setup: Setup, route: &str, settings: &str, store: &str) -> Self {
        let backend = Backend::listen();
        let route = format!(
            "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n{route}\n[site.route.cache]\nstore = \"main\"\n"
        );
        let cache = format!(
            "[[cache]]\nname = \"main\"\ndirectory = \"{}\"\n{store}\n",
            folder.path().display()
        );
        let metrics = unused_address();
        let setup = setup
            .metrics(metrics)
            .more(&format!("{route}{settings}\n"))
            // However long a test takes: a connection that ends is no request.
            .more(&self::backend("app", "keep_alive_timeout = \"1h\"", &[backend.address()]))
            .more(&cache);
        Self { kettle: Kettle::start(setup), metrics, backend, folder }
    }

    fn client(&self) -> Client {
        Dialer::default().connect(self.kettle.address())
    }

    /// Asks on a connection of its own, and reads the answer.
    fn ask(&self, method: &str, target: &str, headers: &str) -> Response {
        let mut client = self.kettle.ask(&request(method, target, headers));
        if method == "HEAD" { client.response_head() } else { client.response() }
    }

    fn get(&self, target: &str) -> Response {
        self.ask("GET", target, "")
    }

    /// Asks for what the store has.
    #[track_caller]
    fn hit(&self, target: &str) -> Response {
        let hit = self.get(target);
        assert_hit(&hit);
        hit
    }

    /// Waits until the store has an object, which gets its name after its last byte was sent.
    #[track_caller]
    fn wait_until_kept(&self, target: &str) {
        wait_until(target, || is_hit(&self.get(target)));
    }

    /// A small response is written behind its answer.
    #[track_caller]
    fn wait_for_objects(&self, count: usize) {
        let expected = format!("main: {count} object");
        let status = || self.kettle.ctl(&["cache", "status"]).succeed();
        wait_until(&expected, || status().contains(&expected));
    }

    fn scrape(&self) -> String {
        scrape(self.metrics)
    }

    /// A figure of the store.
    fn figure(&self, name: &str) -> usize {
        figure(&self.scrape(), name)
    }

    /// Waits until it is this.
    #[track_caller]
    fn wait_for_figure(&self, name: &str, value: usize) {
        wait_until(&format!("{name} is {value}"), || self.figure(name) == value);
    }

    /// Waits until so many wait for what others have asked for.
    #[track_caller]
    fn wait_for_waiters(&self, count: usize) {
        self.wait_for_figure("waiters", count);
    }

    /// Asks, lets the backend answer, and reads what comes of it.
    fn get_through(&self, target: &str, headers: &str, response: &str) -> (Response, String) {
        let mut client = self.kettle.ask(&request("GET", target, headers));
        let head = self.backend.answer(response);
        (client.response(), head)
    }

    /// Gets what the backend has: these fields and this body.
    #[track_caller]
    fn fetch(&self, target: &str, fields: &str, body: &str) -> Response {
        let (response, _) = self.get_through(target, "", &ok(fields, body));
        let is_same = response.body == body.as_bytes();
        assert!(is_same, "{target}: {}{:.99}", response.head, response.body.escape_ascii());
        response
    }

    /// The same, and waits until the store has it.
    #[track_caller]
    fn keep(&self, target: &str, fields: &str, body: &str) -> Response {
        let response = self.fetch(target, fields, body);
        self.wait_until_kept(target);
        response
    }

    /// Writes to a target.
    #[track_caller]
    fn write(&self, target: &str) {
        let mut client = self.kettle.ask(&request("POST", target, "Content-Length: 0\r\n"));
        self.backend.answer(&ok("", "done"));
        assert_eq!(client.response().body, b"done", "{target}");
    }

    /// Has the program forget what these words name, and returns what it says of that.
    fn purge(&self, words: &[&str]) -> String {
        self.kettle.ctl(&[&["cache", "purge"], words].concat()).succeed()
    }
}

/// A figure of the store among the metrics.
fn figure(metrics: &str, name: &str) -> usize {
    let name = format!("kettle_cache_{name}{{store=\"main\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}\n{metrics}"))
}

/// A folder on a disk of its own, or a note that the test is skipped.
fn tmpfs(options: &str) -> Option<(TempDir, Mounted)> {
    let folder = TempDir::new().unwrap();
    let mounted = Mounted::at(folder.path().into(), "tmpfs", options, Stdio::null());
    if mounted.is_err() {
        skip("no tmpfs can be mounted here");
    }
    Some((folder, mounted.ok()?))
}

/// Fresh for longer than a test takes.
const FRESH: &str = "Cache-Control: max-age=100\r\n";

fn is_hit(response: &Response) -> bool {
    status(response).starts_with("kettle; hit")
}

#[track_caller]
fn assert_hit(response: &Response) {
    assert!(is_hit(response), "{}", response.head);
}

/// That the backend was asked nothing more on this connection.
fn assert_unasked(socket: &TcpStream) {
    socket.set_nonblocking(true).unwrap();
    let received = (&*socket).read(&mut [0]);
    assert_eq!(received.unwrap_err().kind(), ErrorKind::WouldBlock);
    socket.set_nonblocking(false).unwrap();
}

fn ok(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len())
}

/// The head of a response whose body a test sends by itself.
fn ok_head(fields: &str, bytes: u64) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n{fields}\r\n")
}

fn status(response: &Response) -> &str {
    response.header("cache-status").unwrap_or_default()
}
