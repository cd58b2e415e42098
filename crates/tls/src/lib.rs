//! TLS for kettle: rustls does the handshake, this crate protects records afterwards and hands
//! keys to the kernel. Every call to rustls, and every key byte in user space, stays in here.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod acceptors;
pub mod buffers;
pub mod challenge;
mod client_auth;
mod compressed_chain;
pub mod connector;
pub mod control;
pub mod error;
mod handshake;
pub mod hello;
pub mod identity;
pub mod issue;
pub mod mac;
pub mod names;
mod peer_certificate;
mod peer_identity;
mod pin;
pub mod policy;
pub mod records;
mod refusal;
mod rustls_callbacks;
pub mod sample_keys;
mod secrets;
pub mod self_signed;
mod session;
pub mod stream;
mod ticket_reader;
pub mod tickets;
pub mod trust;

#[cfg(test)]
mod test_identity;

pub use acceptors::{Acceptor, Acceptors};
pub use challenge::Challenges;
pub use client_auth::{ClientAuth, ClientAuthMode};
pub use handshake::HandshakeError;
pub use kettle_kernel::ktls::{Cipher, Version};
pub use peer_certificate::PeerCertificate;
pub use peer_identity::{AlternativeName, PeerIdentity};
pub use policy::SiteGroup;
pub use rustls_callbacks::TicketEpoch;
pub use session::{Alpn, Resumption, Session};
