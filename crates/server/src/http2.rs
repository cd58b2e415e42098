//! The edge of HTTP/2 (RFC 9113): requests made of fields, fields made of responses, and the connection as the library and
//! its owner see it. Frames and header compression are the library's; what is done with a stream is the connection's.

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

mod flood;
mod frame_heads;
mod head;
mod outbound;
mod tunnel_stream;
mod websocket;
mod wire;

pub(crate) use flood::{Flood, RESETS_MAX};
pub(crate) use head::{HeadError, interim_head, request_head, response_head, trailer_fields};
pub(crate) use outbound::{Outbound, OutboundEnd, OutboundStream};
pub(crate) use tunnel_stream::TunnelStream;
pub(crate) use websocket::websocket_accept;
pub(crate) use wire::{Channel, Wire};

/// What a frame carries at most, so that it fills one record with its own head of 9 bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 16_375;

/// What is asked for and read at a time: two full frames, which seal well together.
pub(crate) const PIECE_BYTES: usize = 2 * FRAME_BYTES_MAX;

/// Bytes that count for their connection until they are sealed, or thrown away with their stream.
pub(crate) struct Held<B> {
    pub(crate) bytes: B,
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held<Bytes> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
