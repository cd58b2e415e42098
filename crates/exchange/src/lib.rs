//! The language of handlers and edges: a request with its client and its body, and the response or the tunnel that becomes of
//! it, whatever protocol that is.
//!
//! Nothing here answers a request, and nothing here knows a worker.
#![forbid(unsafe_code)]

pub mod error_page;
pub mod request;
pub mod response;
