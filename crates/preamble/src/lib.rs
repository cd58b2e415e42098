//! Dialogues on a connection before TLS begins, without I/O: bytes in, an answer out.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod proxy;
pub mod starttls;
