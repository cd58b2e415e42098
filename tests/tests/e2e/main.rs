//! Kettle as a user meets it: real processes, real sockets, real kernels.
//!
//! `serve` is about HTTP and files, `kernel` about kernel TLS and what may go wrong with it, `wire` about the records that
//! can be seen on the way, `reload` about running a server.
// What cannot be done fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kernel;
mod reload;
mod serve;
mod wire;
