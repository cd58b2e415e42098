//! The edge of HTTP/2 (RFC 9113): requests made of fields, fields made of responses, and the connection as the library and
//! its owner see it. Frames and header compression are the library's; what is done with a stream is the connection's.

mod flood;
mod frame_heads;
mod head;
mod outbound;
mod wire;

pub(crate) use flood::Flood;
pub(crate) use head::{Refusal, interim_head, request_head, response_head};
pub(crate) use outbound::{Outbound, OutboundStream};
pub(crate) use wire::{Channel, Wire};

/// What a frame carries at most, so that it fills one record with its own head of 9 bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 16_375;
