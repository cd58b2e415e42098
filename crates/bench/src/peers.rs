//! The servers a scenario compares: which there are on this machine, how each is configured, started and stopped.

mod capability;
pub mod config;
mod exit;
mod find;
pub mod identity;
mod openssl;
mod release;
mod start;
pub mod subject;

pub use capability::unavailable;
pub use find::{Found, Missing, find};
pub use start::{PeerError, Running, start};
