//! HTTP/2 as a server speaks it, without I/O (RFC 9113): frames, fields and their compression (RFC 7541), streams and windows,
//! and what a client may not do.

mod block;
mod connection;
mod data;
mod fields;
mod flood;
mod frame;
mod growth;
pub mod hpack;
mod priority;
mod priority_update;
mod probe;
mod receive;
mod send;
mod serve;
mod stream;

pub use connection::{Connection, ConnectionEnd, NewRequest, Settings};
pub use fields::{FieldsError, RequestText};
pub use frame::{ErrorCode, PREFACE};
pub use growth::WindowBudget;
pub use priority::Priority;
pub use send::Room;
pub use stream::Incoming;

#[cfg(test)]
mod tests;
