//! FastCGI records as a client of an application reads and writes them: the role of a responder, one request on a connection at a
//! time, always by the same number.
//!
//! The parameters of a request and its body are streams that are cut into records; what comes back is taken apart piece by piece, so
//! that nothing is stored here. The response of an application is the matter of [`cgi`](crate::cgi).

use std::fmt;

use crate::cgi::is_parameter;

/// Appends the beginning of a request. The application keeps the connection behind its end if `keeps_connection`.
pub fn begin(out: &mut Vec<u8>, keeps_connection: bool) {
    out.extend_from_slice(&header(BEGIN_REQUEST, BODY_BYTES));
    out.extend_from_slice(&beginning(keeps_connection));
}

fn beginning(keeps_connection: bool) -> [u8; HEADER_BYTES] {
    [0, RESPONDER, u8::from(keeps_connection), 0, 0, 0, 0, 0]
}

/// A whole request without a body, behind which the connection ends, of parameters that [`pair`] wrote.
#[must_use]
pub fn request(pairs: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pairs.len() + 4 * HEADER_BYTES);
    begin(&mut out, false);
    parameters(&mut out, pairs);
    end_input(&mut out);
    out
}

/// Makes the beginning of a request where its parameters are, which [`pair`] wrote behind [`ROOM_BYTES`]; with the end of its body, if it
/// has none. Returns how many bytes follow the parameters then; `None`, and changes nothing, if they are more than one record has.
pub fn enclose(out: &mut Vec<u8>, keeps_connection: bool, has_body: bool) -> Option<u8> {
    let pairs = out
        .len()
        .checked_sub(ROOM_BYTES)
        .filter(|bytes| (1..=CONTENT_BYTES_MAX).contains(bytes))?;
    let before = [
        header(BEGIN_REQUEST, BODY_BYTES),
        beginning(keeps_connection),
        header(PARAMETERS, pairs as u16),
    ];
    out.get_mut(..ROOM_BYTES)?.copy_from_slice(before.as_flattened());
    let ends = [header(PARAMETERS, 0), header(INPUT, 0)];
    let ends = if has_body { ends.get(..1)? } else { &ends };
    out.extend_from_slice(ends.as_flattened());
    Some(ends.as_flattened().len() as u8)
}

/// Appends all parameters of a request, which [`pair`] wrote, with their end. PHP reads each record by itself, so none ends within a
/// parameter.
pub fn parameters(out: &mut Vec<u8>, mut pairs: &[u8]) {
    while !pairs.is_empty() {
        let mut bytes = 0;
        let mut rest = pairs;
        while let Some(next) = pair_bytes(rest)
            && bytes + next <= CONTENT_BYTES_MAX
        {
            bytes += next;
            rest = rest.get(next..).unwrap_or_default();
        }
        // No parameter is longer than a record.
        let record = take(&mut pairs, if bytes == 0 { CONTENT_BYTES_MAX } else { bytes });
        stream(out, PARAMETERS, record);
    }
    out.extend_from_slice(&header(PARAMETERS, 0));
}

/// The length of the parameter that these bytes begin with.
fn pair_bytes(pairs: &[u8]) -> Option<usize> {
    let mut rest = pairs;
    let mut length = || {
        let [first, behind @ ..] = rest else { return None };
        if *first < LONG {
            rest = behind;
            return Some(usize::from(*first));
        }
        let [second, third, fourth, behind @ ..] = behind else { return None };
        rest = behind;
        let length = u32::from_be_bytes([*first & !LONG, *second, *third, *fourth]);
        usize::try_from(length).ok()
    };
    let name = length()?;
    let value = length()?;
    Some(pairs.len() - rest.len() + name + value)
}

/// Appends a piece of a request's body. None is written for no bytes: that would be the end.
pub fn input(out: &mut Vec<u8>, data: &[u8]) {
    stream(out, INPUT, data);
}

/// Appends the end of a request's body.
pub fn end_input(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(INPUT, 0));
}

fn stream(out: &mut Vec<u8>, kind: u8, data: &[u8]) {
    for part in data.chunks(CONTENT_BYTES_MAX) {
        out.extend_from_slice(&header(kind, part.len() as u16));
        out.extend_from_slice(part);
    }
}

fn header(kind: u8, content_bytes: u16) -> [u8; HEADER_BYTES] {
    let [high, low] = content_bytes.to_be_bytes();
    [VERSION, kind, 0, REQUEST, high, low, 0, 0]
}

/// Appends a parameter. Returns false, and appends nothing, if [`is_parameter`] does or if it is longer than a record.
#[must_use]
pub fn pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let is_sound =
        is_parameter(name, value) && 2 * LONG_BYTES + name.len() + value.len() <= CONTENT_BYTES_MAX;
    if is_sound {
        length(out, name.len());
        length(out, value.len());
        out.extend_from_slice(name);
        out.extend_from_slice(value);
    }
    is_sound
}

/// Lengths below 128 take one byte.
fn length(out: &mut Vec<u8>, bytes: usize) {
    match u8::try_from(bytes) {
        Ok(short) if short < LONG => out.push(short),
        // Less than a record.
        _ => out.extend_from_slice(&(bytes as u32 | u32::from(LONG) << 24).to_be_bytes()),
    }
}

/// A piece of what an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPiece<'b> {
    /// A part of its response.
    Output(&'b [u8]),
    /// A part of what it says for the log.
    Errors(&'b [u8]),
    /// The end of the request.
    End(RequestEnd),
}

/// The way an application ended a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// All of the response was sent.
    Complete,
    /// It has answered nothing: it has no more connections or processes for it, or takes one request at a time.
    Overloaded,
    /// It has answered nothing: it is no responder.
    UnknownRole,
}

/// Why bytes are no records of an application's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordError {
    /// Another version of the protocol, or another protocol.
    Version,
    /// A request that nobody made.
    Request,
    /// A kind of record that applications do not send, or not without being asked.
    Kind,
    /// The end of a request that is longer or shorter than ends are.
    Length,
    /// A status that the end of a request cannot have.
    Status,
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Version => "a record that is none of FastCGI 1",
            Self::Request => "a record for a request that was not made",
            Self::Kind => "a kind of record that applications do not send",
            Self::Length => "an end of the request that is too long or too short",
            Self::Status => "an end of the request with an unknown status",
        })
    }
}

impl std::error::Error for RecordError {}

/// Takes records apart, however their bytes arrive.
#[derive(Clone, Debug, Default)]
pub struct RecordDecoder {
    /// The header of the next record, or the content of one that ends a request, as far as it is here.
    part: [u8; HEADER_BYTES],
    part_bytes: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Header,
    /// In what is passed on: what is left of the content, and the padding behind it.
    Stream { is_output: bool, left: u16, padding: u8 },
    /// In the end of a request, with the padding behind it.
    End { padding: u8 },
    /// In padding, with the end that stands before it.
    Padding { left: u8, end: Option<RequestEnd> },
}

impl RecordDecoder {
    /// The next piece of `input`, which then begins behind it; `None` where more bytes are needed, all of `input` being used.
    ///
    /// # Errors
    /// [`RecordError`]. More bytes cannot mend it.
    pub fn next<'b>(
        &mut self,
        input: &mut &'b [u8],
    ) -> Result<Option<RecordPiece<'b>>, RecordError> {
        loop {
            match self.state {
                State::Header => {
                    let Some(header) = self.fill(input) else { return Ok(None) };
                    self.state = Self::begun(header)?;
                }
                State::Stream { left: 0, padding, .. } => {
                    self.state = State::Padding { left: padding, end: None };
                }
                State::Stream { is_output, left, padding } => {
                    let data = take(input, usize::from(left));
                    if data.is_empty() {
                        return Ok(None);
                    }
                    // At most `left`.
                    let left = left - data.len() as u16;
                    self.state = State::Stream { is_output, left, padding };
                    let piece = if is_output {
                        RecordPiece::Output(data)
                    } else {
                        RecordPiece::Errors(data)
                    };
                    return Ok(Some(piece));
                }
                State::End { padding } => {
                    let Some([_, _, _, _, status, _, _, _]) = self.fill(input) else {
                        return Ok(None);
                    };
                    let end = match status {
                        0 => RequestEnd::Complete,
                        1 | 2 => RequestEnd::Overloaded,
                        3 => RequestEnd::UnknownRole,
                        _ => return Err(RecordError::Status),
                    };
                    self.state = State::Padding { left: padding, end: Some(end) };
                }
                State::Padding { left, end } => {
                    let skipped = take(input, usize::from(left)).len();
                    // At most `left`.
                    let left = left - skipped as u8;
                    if left > 0 {
                        self.state = State::Padding { left, end };
                        return Ok(None);
                    }
                    self.state = State::Header;
                    if let Some(end) = end {
                        return Ok(Some(RecordPiece::End(end)));
                    }
                }
            }
        }
    }

    /// Eight bytes, once they are here.
    fn fill(&mut self, input: &mut &[u8]) -> Option<[u8; HEADER_BYTES]> {
        let room = self.part.get_mut(self.part_bytes..).unwrap_or_default();
        let taken = take(input, room.len());
        for (place, byte) in room.iter_mut().zip(taken) {
            *place = *byte;
        }
        self.part_bytes += taken.len();
        let is_full = self.part_bytes == HEADER_BYTES;
        is_full.then(|| {
            self.part_bytes = 0;
            self.part
        })
    }

    fn begun(header: [u8; HEADER_BYTES]) -> Result<State, RecordError> {
        let [version, kind, request @ .., high, low, padding, _] = header;
        let content_bytes = u16::from_be_bytes([high, low]);
        match (version, kind) {
            (VERSION, _) if request != [0, REQUEST] => Err(RecordError::Request),
            (VERSION, OUTPUT | ERRORS) => {
                Ok(State::Stream { is_output: kind == OUTPUT, left: content_bytes, padding })
            }
            (VERSION, END_REQUEST) if content_bytes != BODY_BYTES => Err(RecordError::Length),
            (VERSION, END_REQUEST) => Ok(State::End { padding }),
            (VERSION, _) => Err(RecordError::Kind),
            _ => Err(RecordError::Version),
        }
    }
}

/// At most this many bytes from the beginning of `input`, which then begins behind them.
fn take<'b>(input: &mut &'b [u8], bytes_max: usize) -> &'b [u8] {
    let (taken, rest) = input.split_at_checked(bytes_max).unwrap_or((*input, &[]));
    *input = rest;
    taken
}

const VERSION: u8 = 1;
/// The number of the request: a connection carries one at a time.
const REQUEST: u8 = 1;
const RESPONDER: u8 = 1;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMETERS: u8 = 4;
const INPUT: u8 = 5;
const OUTPUT: u8 = 6;
const ERRORS: u8 = 7;

const HEADER_BYTES: usize = 8;
/// The bytes that [`enclose`] writes in front of parameters: the record that begins a request, and the header of theirs.
pub const ROOM_BYTES: usize = 3 * HEADER_BYTES;
/// The content of the records that begin and end a request.
const BODY_BYTES: u16 = 8;
/// The longest content of a record that keeps records aligned, as the specification advises.
const CONTENT_BYTES_MAX: usize = 0xfff8;
/// The bit that marks a length of four bytes.
const LONG: u8 = 0x80;
const LONG_BYTES: usize = 4;

#[cfg(test)]
mod tests;
