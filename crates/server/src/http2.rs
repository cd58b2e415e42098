//! The edge of HTTP/2 (RFC 9113): a connection whose streams are served beside one another, and one stream as whoever serves it
//! sees it. What frames mean is `kettle_http`'s; what is done with a stream is the connection's.

mod head;
mod io;
mod send_queue;
mod stream;
mod tunnel_stream;
mod websocket;
mod written;

use kettle_http::h2;

pub(crate) use head::{HeadError, request_head};
pub(crate) use io::Http2Io;
pub(crate) use send_queue::QueuePlace;
#[cfg(test)]
pub(crate) use stream::tests as stage;
pub(crate) use stream::{Http2Stream, ReadMemory};
pub(crate) use tunnel_stream::TunnelStream;
pub(crate) use websocket::websocket_accept;
pub(crate) use written::StreamProgress;

/// Nobody listens any more: the client took its request back, or the connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamClosed;

impl From<h2::ErrorCode> for StreamClosed {
    fn from(_: h2::ErrorCode) -> Self {
        Self
    }
}

impl From<StreamClosed> for std::io::Error {
    fn from(_: StreamClosed) -> Self {
        std::io::ErrorKind::ConnectionReset.into()
    }
}

/// What a frame carries at most, so that it fills one record with its own head of 9 bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 16_375;

/// What is asked for and read at a time: two full frames, which seal well together.
pub(crate) const PIECE_BYTES: usize = 2 * FRAME_BYTES_MAX;
