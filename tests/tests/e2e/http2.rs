//! Requests over HTTP/2: answered as over HTTP/1.1, beside one another, and at no more cost than a client may cause.

mod backend;
mod beginning;
mod behind;
mod by_default;
mod connect;
mod early;
mod flood;
pub mod frames;
mod life;
mod pairing;
mod priority;
mod same;
mod slow_files;
mod spec;
mod windows;

use std::io::Write;
use std::net::TcpStream;

use frames::get;
use frames::*;
use kettle_tests::prelude::*;
use rustix::process::Signal;

fn over_http2() -> Setup {
    Setup::default().listener("http2 = true")
}

/// With a route that passes requests on to these servers as they come. `more` is said of it.
fn passing(setup: Setup, more: &str, servers: &Backend) -> Setup {
    let route =
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nrequest_buffering = \"off\"\n";
    setup.more(&format!("{route}{more}\n")).more(&backend("app", "", &[servers.address()]))
}

/// Servers behind such a route, and a client before it.
fn connected(setup: Setup) -> (Backend, Kettle, Frames) {
    let servers = Backend::listen();
    let kettle = Kettle::start(passing(setup, "", &servers));
    let frames = Frames::connect(&kettle, &[]);
    (servers, kettle, frames)
}
