//! HTTP messages without I/O and without a clock: what a request says, whether it may be
//! answered, and how the head of the answer is written.
//!
//! Everything here reads or fills byte buffers that the caller owns. Nothing panics on peer
//! input, and nothing allocates while an ordinary request is parsed or a head is written.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::string_slice)]

pub mod caching;
pub mod cgi;
pub mod conditional;
pub mod date;
pub mod error;
pub mod fcgi;
pub mod field;
mod fields;
pub mod forwarded;
pub mod h1;
pub mod h2;
pub mod host;
pub mod html;
pub mod message;
pub mod method;
pub mod multipart;
pub mod negotiate;
pub mod range;
#[cfg(test)]
mod sample;
pub mod target;
pub mod trailers;
pub mod uri;
pub mod uwsgi;

pub use error::RequestError;
pub use message::{HEAD_BYTES_MAX, HEADERS_MAX, HeadLimits, RequestHead};
pub use method::{HttpVersion, Method};
