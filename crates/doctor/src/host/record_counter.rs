//! The number of bytes a handshake is, out of what goes over the wire.

use std::num::Saturating;

/// Counts the records of one direction.
#[derive(Default)]
pub(super) struct RecordCounter {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Of the record whose header was last.
    left_bytes: usize,
    handshake_bytes: Saturating<usize>,
}

impl RecordCounter {
    /// Takes what came next.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.left_bytes > 0 {
                let (inside, behind) = bytes.split_at(self.left_bytes.min(bytes.len()));
                self.left_bytes -= inside.len();
                bytes = behind;
                continue;
            }
            bytes = rest;
            if let Some(place) = self.header.get_mut(self.header_bytes) {
                *place = *first;
            }
            self.header_bytes += 1;
            if self.header_bytes == HEADER_BYTES {
                self.begin_record();
            }
        }
    }

    fn begin_record(&mut self) {
        let [content_type, _, _, high, low] = self.header;
        self.header_bytes = 0;
        self.left_bytes = usize::from(u16::from_be_bytes([high, low]));
        // In TLS 1.3 records look alike, and nothing but an alert is as short.
        let is_alert = content_type == ALERT
            || (content_type == APPLICATION_DATA && self.left_bytes == SEALED_ALERT_BYTES);
        if !is_alert {
            self.handshake_bytes += HEADER_BYTES + self.left_bytes;
        }
    }

    /// All records but alerts. Nothing but tickets follows the handshakes that are counted.
    pub(super) fn handshake_bytes(&self) -> usize {
        self.handshake_bytes.0
    }
}

const HEADER_BYTES: usize = 5;
/// RFC 8446 §5.1.
const ALERT: u8 = 21;
const APPLICATION_DATA: u8 = 23;
/// Level and description, the inner content type, the tag.
const SEALED_ALERT_BYTES: usize = 2 + 1 + 16;

#[cfg(test)]
mod tests;
