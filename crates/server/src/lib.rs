//! Placeholder module documentation.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod admin;
pub mod answer;
pub mod answerer;
pub mod clock;
pub mod error_page;
pub mod files;
pub mod head;
pub mod kill_switch;
pub mod metrics;
pub mod open_file;
pub mod path;
pub mod route;
