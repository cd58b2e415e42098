//! Reads a response's head, however its bytes arrive, and keeps what a client that measures must know of it.

use std::mem::MaybeUninit;

use super::failure::Failure;

/// A reader at the beginning of a response.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    /// The beginning of a head that came in pieces; most come whole, and then nothing is kept.
    partial: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The length of the body behind it.
    pub(super) body_bytes: u64,
    /// True if the server closes the connection behind this response.
    pub(super) is_last: bool,
}

impl HeadReader {
    /// Takes bytes from the front of `input`. Returns the head, once it is whole, with how many bytes of `input` were its. The
    /// right response has the status 200, or 101 where the connection is to change its protocol.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        changes: bool,
    ) -> Result<Option<(Head, usize)>, Failure> {
        if self.partial.is_empty() {
            let parsed = parse(input, changes)?;
            if parsed.is_none() {
                self.partial.extend_from_slice(input);
            }
            return Ok(parsed);
        }
        let earlier_bytes = self.partial.len();
        self.partial.extend_from_slice(input);
        let parsed = parse(&self.partial, changes)?;
        if parsed.is_some() {
            self.partial = Vec::new();
        }
        Ok(parsed.map(|(head, bytes)| (head, bytes - earlier_bytes)))
    }

    /// True if a head has begun that is not whole yet.
    pub(super) fn has_begun(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Forgets a head that never became whole.
    pub(super) fn clear(&mut self) {
        self.partial = Vec::new();
    }
}

/// The final response's head at the front of `input`; interim responses (RFC 9110 §15.2) before it are passed over.
fn parse(input: &[u8], changes: bool) -> Result<Option<(Head, usize)>, Failure> {
    let bounded = input.get(..HEAD_BYTES_MAX).unwrap_or(input);
    let mut passed_bytes = 0;
    loop {
        let rest = bounded.get(passed_bytes..).unwrap_or_default();
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut response, rest, &mut fields)
            .map_err(|_| Failure::BadHead)?;
        let httparse::Status::Complete(bytes) = parsed else {
            return if bounded.len() == HEAD_BYTES_MAX {
                Err(Failure::HeadTooLong)
            } else {
                Ok(None)
            };
        };
        passed_bytes += bytes;
        match response.code {
            Some(101) if changes => {
                return Ok(Some((Head { body_bytes: 0, is_last: false }, passed_bytes)));
            }
            Some(200) if !changes => return Ok(Some((head_of(&response)?, passed_bytes))),
            Some(100..=199) => {}
            status => return Err(Failure::WrongStatus(status.unwrap_or(0))),
        }
    }
}

fn head_of(response: &httparse::Response<'_, '_>) -> Result<Head, Failure> {
    let mut body_bytes = None;
    let mut is_last = response.version == Some(0);
    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            let length = length(field.value).ok_or(Failure::BadHead)?;
            if body_bytes.replace(length).is_some_and(|earlier| earlier != length) {
                return Err(Failure::BadHead);
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(Failure::Chunked);
        } else if field.name.eq_ignore_ascii_case("connection") {
            let mut options = field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            if options.any(|option| option.eq_ignore_ascii_case(b"close")) {
                is_last = true;
            }
        }
    }
    body_bytes.map(|body_bytes| Head { body_bytes, is_last }).ok_or(Failure::NoLength)
}

fn length(value: &[u8]) -> Option<u64> {
    // `parse` by itself would take a sign.
    let text = std::str::from_utf8(value).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// More than any server sends before a file.
const HEAD_BYTES_MAX: usize = 16 * 1_024;
const FIELDS_MAX: usize = 64;

#[cfg(test)]
mod tests;
