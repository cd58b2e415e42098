//! The server: workers that accept connections, answer requests from files, and send each
//! response by the cheapest path its connection can take.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod admin;
pub mod answer;
pub mod answerer;
pub mod clock;
mod connection;
mod deliver;
pub mod disk;
pub mod error_page;
pub mod files;
pub mod head;
pub mod kill_switch;
pub mod limits;
pub mod metrics;
pub mod open_file;
pub mod path;
pub mod route;
pub mod setup;
pub mod supervisor;
pub mod worker;
mod worker_state;
