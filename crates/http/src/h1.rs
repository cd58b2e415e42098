//! HTTP/1.1 on the wire (RFC 9112): reading heads, framing bodies, writing heads.

pub mod chunked;
pub mod framing;
pub mod parse;
pub mod response;
pub mod write;
