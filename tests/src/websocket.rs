//! The words of a server of WebSocket (RFC 6455 §4.2.2).

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::prelude::{BASE64_STANDARD, Engine};

/// The head that agrees to the request with this head.
pub fn agreement(request: &str) -> String {
    let key = request.lines().find_map(|line| line.strip_prefix("sec-websocket-key: "));
    let text = format!("{}258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key.expect("there is a key"));
    let accept = BASE64_STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}
