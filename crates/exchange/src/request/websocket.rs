//! The handshake of WebSocket (RFC 6455 §4), which a server of HTTP/1.1 is asked for on behalf of a client of HTTP/2 that needs
//! none (RFC 8441 §5).

use base64::prelude::{BASE64_STANDARD, Engine};
use kettle_tls::mac::{random, sha1};

/// A key that no server can have known.
pub fn websocket_key() -> String {
    BASE64_STANDARD.encode(random::<16>())
}

/// Returns the answer to this key of a server that speaks WebSocket, and did not just repeat what it was told.
pub fn websocket_accept(key: &[u8]) -> String {
    BASE64_STANDARD.encode(sha1(&[key, GUID]))
}

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_that_of_the_rfc() {
        let accept = websocket_accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(websocket_key().len(), 24);
        assert_ne!(websocket_key(), websocket_key());
    }
}
