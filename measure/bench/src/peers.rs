//! The servers a scenario compares: which there are on this machine, how each is configured, started and stopped.

pub mod backend;
mod capability;
pub mod config;
mod error;
mod exit;
mod find;
mod first_answer;
pub mod identity;
mod launch;
pub mod memory_limit;
mod nginx_stream;
pub mod openssl;
pub mod own_config;
mod release;
pub mod site;
mod start;
pub mod subject;
mod varnish;

pub use capability::{kernel_lacks, kernel_obstacle, unavailable};
pub use error::PeerError;
pub use find::{Found, at, find};
pub(crate) use launch::on_cpus;
pub use start::{Running, start};
