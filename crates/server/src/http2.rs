//! The edge of HTTP/2 (RFC 9113): a connection whose streams are served beside one another, and one stream as whoever serves it
//! sees it. The meaning of frames is `kettle_http`'s; the connection decides what is done with a stream.

mod io;
mod stream;
mod tunnel_stream;

pub(crate) use io::{Http2Io, QueuePlace, StreamProgress};
#[cfg(test)]
pub(crate) use stream::tests as stage;
pub(crate) use stream::{HeadError, Http2Stream, ReadMemory, request_head};
pub(crate) use tunnel_stream::Http2Tunnel;

/// The bytes of a frame at most, so that it fills one record with its own head of 9 bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 16_375;

/// The bytes that are asked for and read at a time: two full frames, which seal well together.
pub(crate) const PIECE_BYTES: usize = 2 * FRAME_BYTES_MAX;
