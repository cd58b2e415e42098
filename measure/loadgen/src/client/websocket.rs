//! WebSocket as this client speaks it (RFC 6455): a connection changes its protocol once, and a transaction is then one short message
//! to the server and the same back, each in a frame of its own.

use sha2::{Digest, Sha256};

use crate::load::{BodyUse, Load};

/// The bytes that a transaction sends, and what must come back.
pub(super) struct Message {
    pub(super) sent: Vec<u8>,
    /// The length of the frame that comes back, which is not masked, and its SHA-256.
    pub(super) frame_bytes: u64,
    pub(super) frame_sha256: [u8; 32],
    pub(super) bytes: u64,
}

impl Message {
    /// The message of a load; `None` if its transactions are requests.
    pub(super) fn of(load: &Load) -> Result<Option<Self>, &'static str> {
        if load.body != BodyUse::Message {
            return Ok(None);
        }
        let length = load.expect.body_bytes.and_then(|bytes| u8::try_from(bytes).ok());
        let length = length.filter(|bytes| *bytes <= SHORT_BYTES_MAX).ok_or(LONG)?;
        if load.tls.is_some_and(|offer| offer.http2.is_some()) {
            return Err("a WebSocket over HTTP/2");
        }
        let text: Vec<u8> = (b'a'..=b'z').cycle().take(length.into()).collect();
        let masked = text.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        let mut sent = vec![WHOLE_BINARY, length | IS_MASKED];
        sent.extend(MASK.iter().copied().chain(masked));
        let returned = [&[WHOLE_BINARY, length], text.as_slice()].concat();
        Ok(Some(Self {
            sent,
            frame_bytes: returned.len() as u64,
            frame_sha256: Sha256::digest(&returned).into(),
            bytes: length.into(),
        }))
    }
}

/// The fields that a request that changes the protocol has beside the usual fields; the key is that of RFC 6455 §1.3.
pub(super) const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const LONG: &str = "a message longer than 125 bytes, or of no length";
/// The longest message whose length stands in the second byte of its frame.
const SHORT_BYTES_MAX: u8 = 125;
/// A whole message of bytes in one frame.
const WHOLE_BINARY: u8 = 0x82;
const IS_MASKED: u8 = 0x80;
/// The same for all: nothing between here and the server guesses at it.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
