//! Kettle as a user meets it: real processes, real sockets, real kernels.
//!
//! `acme` is about certificates that are fetched, `bench` about measuring, `serve` about HTTP and files, `http2` about the same over HTTP/2, `kernel` about kernel TLS and what may go wrong with it, `wire`
//! about the records that can be seen on the way, `routes` about the settings of routes, `proxy` about those that pass requests to a backend, `reload` about running a server, `hitch` about doing so under another
//! name.
// A step that cannot be done fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acme;
mod bench;
mod cache;
mod fastcgi;
mod hitch;
mod http2;
mod import;
mod kernel;
mod packaging;
mod plain;
mod proxy;
mod reload;
mod routes;
mod serve;
mod sign_on;
mod tunnel;
mod wire;
