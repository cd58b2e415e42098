//! The server: workers that accept connections, answer requests from files, and send each
//! response by the cheapest path its connection can take.
#![forbid(unsafe_code)]

mod connection;
mod deliver;
pub mod error_page;
pub mod files;
mod fixed;
pub mod forward_auth;
pub mod guard;
pub mod http2;
pub mod open_tunnels;
pub mod proxy;
pub mod proxy_cache;
pub mod redirect;
mod relay;
pub mod request;
pub mod respond;
pub mod response;
pub mod response_head;
pub mod route;
pub mod setup;
pub mod site_names;
pub mod stores;
pub mod tunnel;
pub mod tunnel_routes;
pub mod words;
pub mod worker;
mod worker_state;

/// Tests ask how often a request allocates.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: kettle_kernel::allocations::CountingAllocator =
    kettle_kernel::allocations::CountingAllocator;
