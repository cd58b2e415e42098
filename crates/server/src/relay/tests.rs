//! Tunnels over loopback, with both ends in the hand of the test.

mod bytes;
mod ends;
mod kernel;
mod keys;
pub(crate) mod stage;
