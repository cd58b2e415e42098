//! The chunked transfer coding (RFC 9112 §7.1), read only to find where it ends.
//!
//! Data and extensions are passed over, trailers are kept. Only CRLF ends a line, and every number and
//! length is bounded.

use crate::error::RequestError;
use crate::field;

/// A reader of one chunked body; its input may be cut anywhere.
#[derive(Clone, Debug)]
pub struct ChunkedReader {
    state: State,
    /// Bytes of the current chunk line.
    line_bytes: usize,
    trailer_bytes: usize,
    /// The lines of the trailer section so far.
    trailers: Vec<u8>,
    data_bytes: u64,
    /// True if white space may end a chunk line.
    is_lenient: bool,
}

/// The first piece of a body's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the transfer coding: chunk lines, trailers.
    pub coding_bytes: usize,
    /// Bytes of the body itself, behind those.
    pub data_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the size; `None` before its first digit.
    Size(Option<u64>),
    Extension(u64, Extension),
    /// After the CR of a chunk line.
    SizeEnd(u64),
    /// In the data, this many bytes before its end.
    Data(u64),
    DataEndCr,
    DataEndLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    /// After the CR of a trailer line.
    TrailerEnd,
    /// After the CR of the last line.
    LastEnd,
    Done,
}

/// The state in `*( BWS ";" BWS name [ BWS "=" BWS value ] )` (RFC 9112 §7.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// In white space that only a semicolon can follow.
    SpaceBefore,
    /// After the semicolon.
    Start,
    Name,
    SpaceAfterName,
    /// After the equals sign.
    ValueStart,
    Token,
    Quoted,
    /// After a backslash in a quoted string.
    QuotedPair,
    /// After the closing quotation mark.
    QuoteEnd,
}

impl Extension {
    /// Returns the state after a byte; `None` if it must not stand there.
    fn step(self, byte: u8) -> Option<Self> {
        use Extension::{
            Name, QuoteEnd, Quoted, QuotedPair, SpaceAfterName, SpaceBefore, Start, Token,
            ValueStart,
        };
        match (self, byte) {
            (Start | SpaceAfterName | ValueStart | SpaceBefore, b' ' | b'\t') => Some(self),
            (Start | Name, _) if field::is_token_byte(byte) => Some(Name),
            (Name, b' ' | b'\t') => Some(SpaceAfterName),
            (Name | SpaceAfterName, b'=') => Some(ValueStart),
            (ValueStart | Token, _) if field::is_token_byte(byte) => Some(Token),
            (ValueStart, b'"') => Some(Quoted),
            (Quoted, b'"') => Some(QuoteEnd),
            (Quoted, b'\\') => Some(QuotedPair),
            (Quoted | QuotedPair, _) if field::is_value_byte(byte) => Some(Quoted),
            (Token | QuoteEnd, b' ' | b'\t') => Some(SpaceBefore),
            (SpaceBefore | Name | SpaceAfterName | Token | QuoteEnd, b';') => Some(Start),
            _ => None,
        }
    }

    /// True if the line may end here; behind white space only if `is_lenient`.
    fn is_whole(self, is_lenient: bool) -> bool {
        match self {
            Extension::Name | Extension::Token | Extension::QuoteEnd => true,
            Extension::SpaceBefore | Extension::SpaceAfterName => is_lenient,
            _ => false,
        }
    }
}

impl ChunkedReader {
    /// A reader at the first chunk size.
    #[must_use]
    pub fn new() -> Self {
        ChunkedReader {
            state: State::Size(None),
            line_bytes: 0,
            trailer_bytes: 0,
            trailers: Vec::new(),
            data_bytes: 0,
            is_lenient: false,
        }
    }

    /// One that takes white space at the end of a chunk line: some servers fill the size up to a fixed width. Their chunks are
    /// written anew for whoever comes next, so nobody else has to agree on where they end.
    #[must_use]
    pub fn of_response() -> Self {
        Self { is_lenient: true, ..Self::new() }
    }

    /// True if the last chunk and the trailers have been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Bytes of data so far, without the coding around them.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// The lines of the trailer section, each with its CRLF; whole once the body [is done](Self::is_done).
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Takes from `input` what belongs to the body and says how much that was.
    ///
    /// # Errors
    /// On the first byte that RFC 9112 §7.1 does not allow, or that exceeds a bound.
    pub fn consume(&mut self, input: &[u8]) -> Result<usize, RequestError> {
        let mut rest = input;
        loop {
            let Piece { coding_bytes, data_bytes } = self.next_piece(rest)?;
            match coding_bytes + data_bytes {
                0 => return Ok(input.len() - rest.len()),
                taken => rest = rest.get(taken..).unwrap_or_default(),
            }
        }
    }

    /// Takes the next data from `input`, and the coding before it. Nothing of both: there is no more.
    ///
    /// # Errors
    /// As [`consume`](Self::consume).
    pub fn next_piece(&mut self, input: &[u8]) -> Result<Piece, RequestError> {
        let mut rest = input;
        loop {
            let coding_bytes = input.len() - rest.len();
            if let State::Data(remaining) = self.state {
                let taken = usize::try_from(remaining).unwrap_or(usize::MAX).min(rest.len());
                // The announced size was added to the total without overflow.
                self.data_bytes += taken as u64;
                let remaining = remaining - taken as u64;
                self.state = if remaining == 0 { State::DataEndCr } else { State::Data(remaining) };
                return Ok(Piece { coding_bytes, data_bytes: taken });
            }
            match rest {
                [byte, after @ ..] if !self.is_done() => {
                    self.state = self.step(*byte)?;
                    rest = after;
                }
                _ => return Ok(Piece { coding_bytes, data_bytes: 0 }),
            }
        }
    }

    fn step(&mut self, byte: u8) -> Result<State, RequestError> {
        match self.state {
            State::Size(_) | State::Extension(..) | State::SizeEnd(_) => {
                self.line_bytes += 1;
                if self.line_bytes > CHUNK_LINE_BYTES_MAX {
                    return Err(RequestError::ChunkLineTooLong);
                }
                self.step_in_chunk_line(byte)
            }
            State::DataEndCr if byte == b'\r' => Ok(State::DataEndLf),
            State::DataEndLf if byte == b'\n' => {
                self.line_bytes = 0;
                Ok(State::Size(None))
            }
            State::DataEndCr | State::DataEndLf | State::Data(_) => Err(RequestError::ChunkEnd),
            State::TrailerStart
            | State::TrailerName
            | State::TrailerValue
            | State::TrailerEnd
            | State::LastEnd => {
                self.trailer_bytes += 1;
                if self.trailer_bytes > TRAILER_BYTES_MAX {
                    return Err(RequestError::TrailersTooLarge);
                }
                let next = self.step_in_trailers(byte)?;
                if !matches!(next, State::LastEnd | State::Done) {
                    self.trailers.push(byte);
                }
                Ok(next)
            }
            State::Done => Ok(State::Done),
        }
    }

    fn step_in_chunk_line(&mut self, byte: u8) -> Result<State, RequestError> {
        match (self.state, byte) {
            (State::Size(size), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).ok_or(RequestError::ChunkSize)?;
                let size = size.unwrap_or(0).checked_mul(16).ok_or(RequestError::ChunkSize)?;
                Ok(State::Size(Some(size + u64::from(digit))))
            }
            (State::Size(Some(size)), b' ' | b'\t') => {
                Ok(State::Extension(size, Extension::SpaceBefore))
            }
            (State::Size(Some(size)), b';') => Ok(State::Extension(size, Extension::Start)),
            (State::Size(Some(size)), b'\r') => Ok(State::SizeEnd(size)),
            (State::Extension(size, extension), b'\r') if extension.is_whole(self.is_lenient) => {
                Ok(State::SizeEnd(size))
            }
            (State::Extension(size, extension), _) => {
                let next = extension.step(byte).ok_or(RequestError::ChunkExtension)?;
                Ok(State::Extension(size, next))
            }
            (State::SizeEnd(0), b'\n') => Ok(State::TrailerStart),
            (State::SizeEnd(size), b'\n') => {
                let total = self.data_bytes.checked_add(size);
                total.map(|_| State::Data(size)).ok_or(RequestError::ChunkSize)
            }
            (State::Size(_), _) => Err(RequestError::ChunkSize),
            _ => Err(RequestError::ChunkExtension),
        }
    }

    fn step_in_trailers(&self, byte: u8) -> Result<State, RequestError> {
        match (self.state, byte) {
            (State::TrailerStart, b'\r') => Ok(State::LastEnd),
            (State::LastEnd, b'\n') => Ok(State::Done),
            (State::TrailerStart | State::TrailerName, _) if field::is_token_byte(byte) => {
                Ok(State::TrailerName)
            }
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerValue, b'\r') => Ok(State::TrailerEnd),
            (State::TrailerValue, _) if field::is_value_byte(byte) => Ok(State::TrailerValue),
            (State::TrailerEnd, b'\n') => Ok(State::TrailerStart),
            _ => Err(RequestError::Trailer),
        }
    }
}

impl Default for ChunkedReader {
    fn default() -> Self {
        ChunkedReader::new()
    }
}

/// Bytes of a chunk size with its extensions and CRLF. No extension is in use anywhere.
pub const CHUNK_LINE_BYTES_MAX: usize = 256;

/// Bytes of the whole trailer section.
pub const TRAILER_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests;
