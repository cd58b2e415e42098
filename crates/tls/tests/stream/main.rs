//! The stream against rustls as its peer: every suite, here and in the kernel, byte by byte.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod challenge;
mod client;
mod discard;
mod duplex;
mod harness;
mod kernel;
mod received;
mod tickets;
mod traits;
mod user;
