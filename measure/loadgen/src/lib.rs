//! A client that measures: makes loads on a server, over TLS or without, and reads from the kernel what they cost.
//!
//! [`load`] and [`offer`] say what is asked for, [`client`] carries it out, [`measure`] reads the cost. Which servers are compared, and what
//! becomes of the figures, is the crate `bench`.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "for one program; names say what items are")]

pub mod client;
pub mod load;
pub mod measure;
pub mod offer;
