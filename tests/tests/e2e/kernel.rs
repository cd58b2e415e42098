//! Connections whose records the kernel encrypts, proven by its own counts.

mod changing_file;
mod crowd;
mod every_suite;
pub(crate) mod failure;
mod http2;
mod key_update;
mod peer;
mod switch;
mod violation;
