//! The `multipart/byteranges` body of a response with several ranges (RFC 9110 §14.6).

use crate::range::{ByteRange, write_content_range};

/// The text between the parts. It must not occur in the data, so its seed must be unpredictable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    text: [u8; BOUNDARY_BYTES],
}

impl Boundary {
    /// Spells out a random seed.
    #[must_use]
    pub fn new(seed: u128) -> Self {
        let mut text = [b'0'; BOUNDARY_BYTES];
        let mut rest = seed;
        for place in text.iter_mut().rev() {
            let digit = u32::try_from(rest & 15).ok().and_then(|digit| char::from_digit(digit, 16));
            *place = digit.map_or(b'0', |digit| digit as u8);
            rest >>= 4;
        }
        Boundary { text }
    }

    /// The value of the response's Content-Type.
    #[must_use]
    pub fn content_type(&self) -> Vec<u8> {
        [b"multipart/byteranges; boundary=".as_slice(), &self.text].concat()
    }

    /// Appends what comes before the data of a part: the delimiter and the part's own head.
    ///
    /// The data follows at once; the line break after it belongs to the next delimiter.
    pub fn write_part_head(
        &self,
        out: &mut Vec<u8>,
        content_type: Option<&[u8]>,
        span: ByteRange,
        length: u64,
    ) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.text);
        if let Some(content_type) = content_type {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(content_type);
        }
        out.extend_from_slice(b"\r\nContent-Range: ");
        write_content_range(out, span, length);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends what comes after the data of the last part.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.text);
        out.extend_from_slice(b"--\r\n");
    }
}

/// 128 bits in hexadecimal; RFC 2046 §5.1.1 allows up to 70 characters.
const BOUNDARY_BYTES: usize = 32;

#[cfg(test)]
mod tests;
