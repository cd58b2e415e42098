//! TLS for kettle: rustls does the handshake, this crate protects records afterwards and hands
//! keys to the kernel. Every call to rustls, and every key byte in user space, stays in here.
#![forbid(unsafe_code)]

pub mod buffers;
pub mod client;
pub mod control;
pub mod error;
mod handshake;
pub mod hello;
pub mod identity;
mod observed;
pub mod policy;
pub mod records;
pub mod sample_keys;
mod secrets;
pub mod self_signed;
mod session;
pub mod stream;
pub mod tickets;
mod updater;

#[cfg(test)]
mod test_identity;

pub use handshake::{Acceptor, HandshakeError};
pub use kettle_kernel::ktls::{Cipher, Version};
pub use session::{Resumption, Session};
