//! The stream against rustls as its peer: every suite, here and in the kernel, byte by byte.

mod harness;
mod kernel;
mod user;
