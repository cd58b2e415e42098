//! The issuer: asks authorities for certificates (RFC 8555), renews them, and puts them in the folder that the server reads.
//!
//! It is a process of its own, and the only one that reads the keys of accounts. The server answers the challenges, and is told of each
//! certificate. `plan` says what to do when; all else carries it out.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

mod account;
mod client;
mod issuer;
mod job;
mod order;
mod persist;
pub mod plan;
pub mod programs;
pub mod protocol;
mod server;
pub mod state;
pub mod wishes;

pub use issuer::{Ended, run};
