//! A client that measures: makes loads on a server, over TLS or without, and reads from the kernel what they cost.
//!
//! [`load`] and [`offer`] say what is asked for, [`client`] carries it out, [`measure`] reads the cost. Which servers are compared, and what
//! becomes of the figures, is the crate `bench`.
#![forbid(unsafe_code)]
#![allow(clippy::missing_errors_doc, reason = "its callers tell their user what it says")]

pub mod client;
pub mod load;
pub mod measure;
pub mod offer;
