//! The end of a body (RFC 9112 §6), reading past a body nobody wants, and writing one.

use std::io::Write;

use crate::error::RequestError;
use crate::field;
use crate::h1::chunked::{ChunkedReader, Piece};
use crate::message::RequestHead;
use crate::method::HttpVersion;

/// The marking of a body's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body.
    None,
    /// The body has this many bytes.
    Length(u64),
    /// The body comes in chunks.
    Chunked,
}

impl BodyFraming {
    /// True if it is known that no byte comes: there is no body, or one of length zero.
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!(self, BodyFraming::None | BodyFraming::Length(0))
    }
}

/// Decides the framing of the body that follows `head`.
///
/// # Errors
/// Whenever another recipient might find another end (RFC 9112 §6.3 and §11.2).
pub fn body_framing(head: &RequestHead<impl AsRef<[u8]>>) -> Result<BodyFraming, RequestError> {
    let mut lengths = head.header_values("content-length");
    let mut codings = head.header_values("transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(BodyFraming::None),
        (Some(_), Some(_)) => Err(RequestError::TransferEncodingWithContentLength),
        (Some(_), None) if lengths.next().is_some() => Err(RequestError::ContentLengthRepeated),
        (Some(value), None) => content_length(value).map(BodyFraming::Length),
        (None, Some(_)) if head.version == HttpVersion::Http10 => {
            Err(RequestError::TransferEncodingInHttp10)
        }
        (None, Some(first)) => transfer_coding(std::iter::once(first).chain(codings)),
    }
}

/// One decimal number. A list of identical ones is allowed by RFC 9110 §8.6 but never sent in
/// good faith.
pub(crate) fn content_length(value: &[u8]) -> Result<u64, RequestError> {
    if value.is_empty() {
        return Err(RequestError::ContentLengthInvalid);
    }
    value.iter().try_fold(0_u64, |length, digit| {
        if !digit.is_ascii_digit() {
            return Err(RequestError::ContentLengthInvalid);
        }
        length
            .checked_mul(10)
            .and_then(|length| length.checked_add(u64::from(digit - b'0')))
            .ok_or(RequestError::ContentLengthInvalid)
    })
}

/// Exactly `chunked`. Other codings before it are valid but not implemented; without it at the
/// end, or with it twice, the end of the body is unknown (RFC 9112 §6.1, §6.3).
pub(crate) fn transfer_coding<'b>(
    values: impl Iterator<Item = &'b [u8]>,
) -> Result<BodyFraming, RequestError> {
    let mut others = false;
    let mut chunked_seen = 0_u32;
    let mut is_chunked_last = false;
    for member in values.flat_map(field::members) {
        is_chunked_last = member.eq_ignore_ascii_case(b"chunked");
        if is_chunked_last {
            chunked_seen += 1;
        } else {
            others = true;
        }
    }
    match (chunked_seen, is_chunked_last, others) {
        (1, true, false) => Ok(BodyFraming::Chunked),
        (1, true, true) => Err(RequestError::TransferCodingUnsupported),
        _ => Err(RequestError::TransferEncodingInvalid),
    }
}

/// Reads past a body, however its bytes arrive.
#[derive(Clone, Debug)]
pub struct BodyReader {
    rest: Rest,
    wire_bytes: u64,
    /// That were given out as pieces, without their coding.
    data_bytes: u64,
}

#[derive(Clone, Debug)]
enum Rest {
    Bytes(u64),
    Chunks(ChunkedReader),
}

/// The outcome of [`BodyReader::consume`] for its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    /// The number of bytes of the input that belong to the body. Less than all only if `done`.
    pub bytes: usize,
    /// True if the body has ended.
    pub done: bool,
}

impl BodyReader {
    /// A reader at the first byte of a body.
    #[must_use]
    pub fn new(framing: BodyFraming) -> Self {
        let rest = match framing {
            BodyFraming::None => Rest::Bytes(0),
            BodyFraming::Length(length) => Rest::Bytes(length),
            BodyFraming::Chunked => Rest::Chunks(ChunkedReader::new()),
        };
        BodyReader { rest, wire_bytes: 0, data_bytes: 0 }
    }

    /// As [`new`](Self::new), for what a server sends: as lenient as [`ChunkedReader::of_response`].
    #[must_use]
    pub fn of_response(framing: BodyFraming) -> Self {
        let strict = Self::new(framing);
        match strict.rest {
            Rest::Chunks(_) => Self { rest: Rest::Chunks(ChunkedReader::of_response()), ..strict },
            Rest::Bytes(_) => strict,
        }
    }

    /// Takes from `input` what belongs to the body.
    ///
    /// # Errors
    /// If the chunked coding is broken; the connection cannot be used any more.
    pub fn consume(&mut self, input: &[u8]) -> Result<Consumed, RequestError> {
        let bytes = match &mut self.rest {
            Rest::Bytes(remaining) => take(remaining, input),
            Rest::Chunks(chunks) => chunks.consume(input)?,
        };
        self.wire_bytes = self.wire_bytes.saturating_add(bytes as u64);
        Ok(Consumed { bytes, done: self.is_done() })
    }

    /// Takes from `input` the next data of the body, and the coding before it.
    ///
    /// # Errors
    /// As [`consume`](Self::consume).
    pub fn next_piece(&mut self, input: &[u8]) -> Result<Piece, RequestError> {
        let piece = match &mut self.rest {
            Rest::Bytes(remaining) => Piece { coding_bytes: 0, data_bytes: take(remaining, input) },
            Rest::Chunks(chunks) => chunks.next_piece(input)?,
        };
        let bytes = piece.coding_bytes.saturating_add(piece.data_bytes);
        self.wire_bytes = self.wire_bytes.saturating_add(bytes as u64);
        self.data_bytes = self.data_bytes.saturating_add(piece.data_bytes as u64);
        Ok(piece)
    }

    /// True if the pieces so far are more than this, or have more coding around them than any sender needs: six bytes for a chunk of one.
    #[must_use]
    pub fn is_longer_than(&self, bytes_max: u64) -> bool {
        let wire_bytes_max =
            bytes_max.saturating_mul(CODING_FACTOR_MAX).saturating_add(CODING_BYTES_MAX);
        self.data_bytes > bytes_max || self.wire_bytes > wire_bytes_max
    }

    /// True if the body has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.rest {
            Rest::Bytes(remaining) => *remaining == 0,
            Rest::Chunks(chunks) => chunks.is_done(),
        }
    }

    /// The lines of the trailer section, once the body has ended.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        match &self.rest {
            Rest::Bytes(_) => &[],
            Rest::Chunks(chunks) => chunks.trailers(),
        }
    }

    /// Bytes taken so far, chunk lines and trailers included: what a limit should count, since
    /// chunk lines can be longer than the data they announce.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.wire_bytes
    }
}

/// Writes what stands around the pieces of a body (RFC 9112 §7.1): nothing, unless it is in chunks.
///
/// The pieces themselves may go another way than through memory, and what ends one may go with the next.
#[derive(Clone, Copy, Debug)]
pub struct BodyWriter {
    is_chunked: bool,
    /// True if a chunk has begun whose end is not written yet.
    is_in_chunk: bool,
}

impl BodyWriter {
    /// A writer before the first piece.
    #[must_use]
    pub fn new(is_chunked: bool) -> Self {
        Self { is_chunked, is_in_chunk: false }
    }

    /// True if the body is in chunks.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.is_chunked
    }

    /// Appends what stands before a piece: the end of the one before, and its size. Nothing before none: that would be the end.
    pub fn begin_piece(&mut self, out: &mut Vec<u8>, data_bytes: usize) {
        if self.is_chunked && data_bytes > 0 {
            self.end_piece(out);
            self.is_in_chunk = true;
            // A vector takes whatever is written.
            let _ = write!(out, "{data_bytes:x}\r\n");
        }
    }

    /// Appends what stands behind the last piece, if that is not written yet.
    pub fn end_piece(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_in_chunk) {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends a piece with all that stands around it.
    pub fn write_piece(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        self.begin_piece(out, data.len());
        out.extend_from_slice(data);
        self.end_piece(out);
    }

    /// Appends what ends the body, with the lines of its trailer section.
    pub fn end(&mut self, out: &mut Vec<u8>, trailers: &[u8]) {
        self.end_piece(out);
        if self.is_chunked {
            out.extend_from_slice(b"0\r\n");
            out.extend_from_slice(trailers);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The bytes that chunk lines and trailers may take beyond so many times the data.
const CODING_FACTOR_MAX: u64 = 8;
const CODING_BYTES_MAX: u64 = 64 * 1024;

fn take(remaining: &mut u64, input: &[u8]) -> usize {
    let bytes = usize::try_from(*remaining).unwrap_or(usize::MAX).min(input.len());
    *remaining -= bytes as u64;
    bytes
}

#[cfg(test)]
mod tests;
