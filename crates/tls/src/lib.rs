//! TLS for kettle: rustls does the handshake, this crate protects records afterwards and hands
//! keys to the kernel. Every call to rustls, and every key byte in user space, stays in here.
#![forbid(unsafe_code)]

mod buffers;
mod control;
mod handshake;
mod observed;
pub mod records;
mod session;
pub mod stream;

pub use buffers::RECORDS_PER_WRITE;
pub use handshake::{Acceptor, HandshakeError};
pub use kettle_kernel::ktls::{Cipher, Version};
pub use session::{Resumption, Session};
