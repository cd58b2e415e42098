//! The head of a CGI program's response (RFC 3875 §6) as one of HTTP/1.1, and what its parameters are called.
//!
//! It is read by the parser of HTTP/1.1 and has its limits. A field that only a server says to its next hop is none of a
//! program's matters: such fields are left out.

use std::iter;

use memchr::{memchr, memchr_iter};

use crate::error::RequestError;
use crate::field;
use crate::h1::parse::HeadProgress;
use crate::h1::response::{ParseResponse, ResponseError, ResponseHead, parse_response};
use crate::h1::write::{is_value, write_status_line};
use crate::message::HEAD_BYTES_MAX;

/// A head that has ended.
#[derive(Debug)]
pub struct CgiHead {
    /// The same as HTTP/1.1 has it.
    pub head: ResponseHead<Vec<u8>>,
    /// Its length in what the program sent, with the empty line.
    pub bytes: usize,
}

/// Spares a slow program's head from being read again at every byte, as [`HeadProgress`] does.
#[derive(Clone, Copy, Debug, Default)]
pub struct CgiProgress {
    progress: HeadProgress,
    may_have_status_line: bool,
}

impl CgiProgress {
    /// That of a head which may begin with a status line, as those of uwsgi do.
    #[must_use]
    pub fn with_status_line() -> Self {
        Self { may_have_status_line: true, ..Self::default() }
    }

    /// Reads `buffer`, which begins with the bytes of the previous call; `None` while the head has not ended.
    ///
    /// # Errors
    /// As [`parse_head`]; an error may be found a few calls later than there.
    pub fn parse(&mut self, buffer: &[u8]) -> Result<Option<CgiHead>, ResponseError> {
        if !self.progress.is_worthwhile(buffer, HEAD_BYTES_MAX) {
            return Ok(None);
        }
        let head = parse_head(buffer, self.may_have_status_line)?;
        if head.is_some() {
            self.progress = HeadProgress::default();
        }
        Ok(head)
    }
}

/// Reads the head at the beginning of `buffer`: at most [`HEAD_BYTES_MAX`] bytes, of lines that end with LF or CRLF. Its status is
/// that of `Status`, or else 302 where it has a `Location`, or else 200. A line as those of HTTP/1.1 begin with may say it instead, if it
/// `may_have_status_line`.
///
/// # Errors
/// The first rule or limit that the head breaks. More bytes cannot mend it.
pub fn parse_head(
    buffer: &[u8],
    may_have_status_line: bool,
) -> Result<Option<CgiHead>, ResponseError> {
    // Bytes beyond the limit must not change the outcome, or it would depend on how many of them arrived together.
    let visible = buffer.get(..HEAD_BYTES_MAX).unwrap_or(buffer);
    let Some(bytes) = end_of_head(visible) else {
        let is_full = visible.len() == HEAD_BYTES_MAX;
        return if is_full { Err(RequestError::HeadTooLarge.into()) } else { Ok(None) };
    };
    let first =
        lines(visible).next().filter(|it| may_have_status_line && it.starts_with(b"HTTP/1."));
    let lines = || lines(visible).skip(first.iter().len()).take_while(|line| !line.is_empty());
    let is_named = |line: &[u8], known: &[u8]| name_of(line).eq_ignore_ascii_case(known);
    let said = lines().filter(|line| is_named(line, b"status"));
    let mut said = said.map(|line| behind(line, b':')).chain(first.map(|line| behind(line, b' ')));
    let status = match (said.next(), said.next()) {
        (Some(value), None) => status_of(value)?,
        (Some(_), Some(_)) => return Err(ResponseError::Status),
        (None, _) if lines().any(|line| is_named(line, b"location")) => FOUND,
        (None, _) => OK,
    };
    if lines().next().is_none() && first.is_none() {
        return Err(RequestError::FieldName.into());
    }
    let mut head = Vec::with_capacity(bytes + STATUS_LINE_BYTES_USUAL);
    write_status_line(&mut head, status);
    for line in lines() {
        let name = name_of(line);
        let is_left_out = is_named(line, b"status") || field::is_known_hop_by_hop(name);
        if !is_left_out {
            head.extend_from_slice(line);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    match parse_response(&head)? {
        ParseResponse::Complete { head: parsed, bytes: parsed_bytes }
            if parsed_bytes == head.len() =>
        {
            let parsed = parsed.moved_to(());
            Ok(Some(CgiHead { head: parsed.moved_to(head), bytes }))
        }
        // A line that ends the head is none of its own.
        _ => Err(RequestError::LineEnding.into()),
    }
}

/// Its length with the empty line, once that is here.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut begin = 0;
    memchr_iter(b'\n', bytes).find_map(|end| {
        let line = bytes.get(begin..end)?;
        begin = end + 1;
        matches!(line, b"" | b"\r").then_some(begin)
    })
}

/// Lines without their ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    iter::from_fn(move || {
        let here = rest?;
        let end = memchr(b'\n', here);
        let line = here.get(..end.unwrap_or(here.len()))?;
        rest = end.and_then(|end| here.get(end + 1..));
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

fn name_of(line: &[u8]) -> &[u8] {
    memchr(b':', line).and_then(|colon| line.get(..colon)).unwrap_or(line)
}

/// Returns the part of a line behind the first of these bytes.
fn behind(line: &[u8], byte: u8) -> &[u8] {
    memchr(byte, line).and_then(|at| line.get(at + 1..)).unwrap_or_default()
}

/// `404 Not Found`. A program has one answer, and none before it.
fn status_of(value: &[u8]) -> Result<u16, ResponseError> {
    match field::trim(value) {
        [hundreds @ b'2'..=b'9', tens, ones, rest @ ..]
            if tens.is_ascii_digit()
                && ones.is_ascii_digit()
                && matches!(rest, [] | [b' ' | b'\t', ..]) =>
        {
            let digit = |byte: &u8| u16::from(byte - b'0');
            Ok(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
        }
        _ => Err(ResponseError::Status),
    }
}

/// Gives on the name of the parameter that a field of a request is for a program (RFC 3875 §4.1.18).
pub fn with_parameter_name<T>(field: &[u8], give: impl FnOnce(&[u8]) -> T) -> T {
    let mut usual = [0; NAME_BYTES_USUAL];
    let mut long = Vec::new();
    let bytes = PREFIX.len() + field.len();
    let name = usual.get_mut(..bytes).unwrap_or_else(|| {
        long.resize(bytes, 0);
        &mut long
    });
    let upper = |byte: &u8| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() };
    let parts = PREFIX.iter().copied().chain(field.iter().map(upper));
    name.iter_mut().zip(parts).for_each(|(to, byte)| *to = byte);
    give(name)
}

/// True if a program can be told this: the value has no control character other than a tab, which might mean something else to the
/// application than to us.
#[must_use]
pub fn is_parameter(name: &[u8], value: &[u8]) -> bool {
    // Without an end at the first byte that is none, so that many are looked at at once: all are good, most often.
    let is_name = name.iter().fold(true, |so_far, byte| so_far & byte.is_ascii_graphic());
    !name.is_empty() && is_name && is_value(value)
}

const PREFIX: &[u8] = b"HTTP_";
/// Room that most names find enough.
const NAME_BYTES_USUAL: usize = 64;
const OK: u16 = 200;
/// The status of a redirect that says none.
const FOUND: u16 = 302;
const STATUS_LINE_BYTES_USUAL: usize = 40;

#[cfg(test)]
mod tests;
