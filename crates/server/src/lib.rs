//! The server: workers that accept connections, answer requests from files, and send each
//! response by the cheapest path its connection can take.
#![forbid(unsafe_code)]

mod connection;
mod deliver;
pub mod http2;
pub mod open_tunnels;
mod relay;
pub mod setup;
pub mod tunnel;
pub mod tunnel_routes;
pub mod worker;
mod worker_state;

/// Tests ask how often a request allocates.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: kettle_kernel::allocations::CountingAllocator =
    kettle_kernel::allocations::CountingAllocator;
