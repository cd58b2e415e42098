//! The parts of the end-to-end tests: a kettle process in its own folder, clients, and what they saw on the wire.
//!
//! The tests themselves are in `tests/e2e`; docs/testing.md says how they are run.
#![forbid(unsafe_code)]
#![allow(clippy::missing_errors_doc, reason = "a test that meets an error fails with it")]
// A harness that cannot go on has nobody to hand an error to: it fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod application;
pub mod backend;
pub mod certificate;
pub mod client;
pub mod content;
pub mod control_group;
pub mod environment;
pub mod false_start;
pub mod front;
pub mod fuse;
pub mod http;
pub mod kernel_counts;
pub mod kettle;
mod key_schedule;
pub mod mounted;
pub mod pebble;
pub mod prelude;
pub mod raw_handshake;
pub mod raw_session;
pub mod raw_ticket;
pub mod record;
pub mod setup;
pub mod suite;
pub mod tool;
pub mod transcript;
pub mod websocket;
