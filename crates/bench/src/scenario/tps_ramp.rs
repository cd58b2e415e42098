//! How many transactions a second a server holds, and within which latency: connect, TLS, one small answer, close.

pub mod cells;
pub mod costs;
pub mod planner;
pub mod points;
pub mod reading;
pub mod step;
pub mod summary;
