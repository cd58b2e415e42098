//! What many clients that each fetch an object every few seconds cost, at the same throughput for every server and path.

pub mod memory_traffic;
pub mod rates;
