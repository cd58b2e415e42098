//! The load generator against a server whose faults are known: every figure has to show them as they are.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod bodies;
mod failures;
mod handshakes;
mod latency;
mod server;
mod setup;
