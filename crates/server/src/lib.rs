//! Placeholder module documentation.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod admin;
pub mod kill_switch;
pub mod metrics;
pub mod path;
