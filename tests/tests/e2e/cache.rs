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

use std::io::{ErrorKind, Read};
use std::net::TcpStream;

use kettle_tests::backend::{Backend, answer, backend, read_head};
use kettle_tests::client::{Client, Dialer};
use kettle_tests::environment::wait_until;
use kettle_tests::http::{Connection, Response, request};
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use tempfile::TempDir;

/// A server whose site keeps the responses of a backend that a test answers by hand.
struct Cached {
    kettle: Kettle,
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
        // Each hit is found on the disk. What workers remember is the matter of `hot`.
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
        let setup = setup
            .more(&format!("{route}{settings}\n"))
            // However long a test takes: a connection that ends is no request.
            .more(&self::backend("app", "keep_alive_timeout = \"1h\"", &[backend.address()]))
            .more(&cache);
        Self { kettle: Kettle::start(setup), backend, folder }
    }

    fn client(&self) -> Client {
        Dialer::default().connect(self.kettle.address())
    }

    /// Asks on a connection of its own, and reads the answer.
    fn ask(&self, method: &str, target: &str, headers: &str) -> Response {
        let mut client = self.client();
        client.send(&request(method, target, headers)).unwrap();
        if method == "HEAD" { client.response_head() } else { client.response() }
    }

    fn get(&self, target: &str) -> Response {
        self.ask("GET", target, "")
    }

    /// An object gets its name after its last byte was sent.
    fn wait_until_kept(&self, target: &str) {
        wait_until(target, || status(&self.get(target)).starts_with("kettle; hit"));
    }

    /// A small response is written behind its answer.
    fn wait_for_objects(&self, count: usize) {
        let expected = format!("main: {count} object");
        let status = || self.kettle.ctl(&["cache", "status"]).succeed();
        wait_until(&expected, || status().contains(&expected));
    }

    /// Asks, lets the backend answer on this connection or a new one, and reads what comes of it.
    fn get_through(
        &self,
        server: &mut Option<TcpStream>,
        target: &str,
        headers: &str,
        response: &str,
    ) -> (Response, String) {
        let mut client = self.client();
        client.send(&request("GET", target, headers)).unwrap();
        let server = self.backend.asked(server);
        let head = answer(server, response);
        (client.response(), head)
    }
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
