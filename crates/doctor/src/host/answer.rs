//! The parts of a server's answer that can be read without a key: the ServerHello, and what TLS 1.2 does not encrypt.

/// The parts read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// It asks for another ClientHello, which costs a round trip (RFC 8446 §4.1.4).
    pub(super) is_retry: bool,
    /// It showed an OCSP response (RFC 6066 §8; TLS 1.2).
    pub(super) is_stapled: bool,
    /// Its ticket's lifetime hint in seconds (RFC 5077 §3.3; TLS 1.2).
    pub(super) ticket_seconds: Option<u32>,
}

impl Answer {
    /// Reads the handshake messages in the front of what was received. The records behind a ChangeCipherSpec are encrypted.
    pub(super) fn read(received: &[u8]) -> Self {
        let messages = handshake_messages(received);
        let mut answer = Self::default();
        let mut rest = messages.as_slice();
        while let Some(([kind, high, middle, low], behind)) = rest.split_first_chunk() {
            let bytes = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            let Some(body) = behind.get(..bytes) else {
                break;
            };
            answer.take(*kind, body);
            rest = behind.get(bytes..).unwrap_or_default();
        }
        answer
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match kind {
            SERVER_HELLO => self.is_retry |= body.get(2..34) == Some(&RETRY_RANDOM),
            CERTIFICATE_STATUS => self.is_stapled = true,
            NEW_SESSION_TICKET => {
                self.ticket_seconds = body.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            }
            _ => {}
        }
    }
}

fn handshake_messages(mut received: &[u8]) -> Vec<u8> {
    let mut messages = Vec::new();
    while let Some(([content_type, _, _, high, low], behind)) = received.split_first_chunk() {
        let bytes = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        if *content_type != HANDSHAKE {
            break;
        }
        let (content, next) = behind.split_at(bytes);
        messages.extend_from_slice(content);
        received = next;
    }
    messages
}

/// RFC 8446 §5.1.
const HANDSHAKE: u8 = 22;
/// RFC 8446 §4, RFC 6066 §8.
const SERVER_HELLO: u8 = 2;
const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE_STATUS: u8 = 22;
/// The random by which a HelloRetryRequest is known (RFC 8446 §4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

#[cfg(test)]
mod tests;
