//! HPACK (RFC 7541): field lines as HTTP/2 compresses them.
//!
//! The reading side keeps the dynamic table that a peer fills, within the bound it was told. The
//! writing side uses the static table only: it keeps nothing for a connection.

mod decode;
mod dynamic_table;
mod encode;
mod huffman;
mod static_table;

pub use decode::{Decoder, Malformed};
pub use encode::{encode_field, encode_status, encode_table_of_nothing};

#[cfg(test)]
mod tests;
