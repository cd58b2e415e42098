//! Takes a response as its bytes arrive and tells whether it is the right one. Bodies are looked at where they lie.

use std::time::Instant;

use sha2::{Digest, Sha256};

use super::failure::Failure;
use super::head::HeadReader;
use super::http2::Http2;
use super::websocket::Message;

pub(super) struct Response {
    state: State,
    head: HeadReader,
    expected: Expected,
    /// When its first byte was seen.
    pub(super) first_byte: Option<Instant>,
    /// The length of its body, once the head is there.
    pub(super) body_bytes: u64,
    /// True if the server closes the connection behind it.
    pub(super) is_last: bool,
    hash: Option<Box<Sha256>>,
    /// The frames of the connection, if it speaks HTTP/2.
    http2: Option<Box<Http2>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    /// Its length, if already known.
    pub(super) body_bytes: Option<u64>,
    /// Its SHA-256, if this one is to be hashed.
    pub(super) sha256: Option<[u8; 32]>,
    /// True if the body may be dropped before it is read.
    pub(super) may_discard: bool,
    /// True if there is none, since the connection changes its protocol.
    pub(super) changes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// In the body, this many bytes before its end.
    Body(u64),
    Complete,
}

impl Response {
    pub(super) fn new() -> Self {
        Self {
            state: State::Head,
            head: HeadReader::default(),
            expected: Expected::default(),
            first_byte: None,
            body_bytes: 0,
            is_last: false,
            hash: None,
            http2: None,
        }
    }

    pub(super) fn begin(&mut self, is_http2: bool) {
        self.http2 = is_http2.then(Box::default);
    }

    pub(super) fn http2(&mut self) -> Option<&mut Http2> {
        self.http2.as_deref_mut()
    }

    pub(super) fn expect(&mut self, expected: Expected) {
        self.state = State::Head;
        self.head.clear();
        self.first_byte = None;
        self.body_bytes = 0;
        self.is_last = false;
        self.hash = expected.sha256.map(|_| Box::default());
        self.expected = expected;
    }

    /// Begins with the frame in which a message comes back.
    pub(super) fn expect_message(&mut self, message: &Message) {
        self.expect(Expected { sha256: Some(message.frame_sha256), ..Expected::default() });
        self.body_bytes = message.bytes;
        self.state = State::Body(message.frame_bytes);
    }

    /// Takes what has arrived, all of it.
    pub(super) fn take(&mut self, mut input: &[u8]) -> Result<(), Failure> {
        if self.first_byte.is_none() && !input.is_empty() {
            self.first_byte = Some(Instant::now());
        }
        if let Some(mut http2) = self.http2.take() {
            let taken = self.take_frames(&mut http2, input);
            self.http2 = Some(http2);
            return taken;
        }
        if self.state == State::Head {
            let Some((head, bytes)) = self.head.take(input, self.expected.changes)? else {
                return Ok(());
            };
            if self.expected.body_bytes.is_some_and(|expected| expected != head.body_bytes) {
                return Err(Failure::WrongLength);
            }
            self.is_last = head.is_last;
            self.body_bytes = head.body_bytes;
            self.state = State::Body(head.body_bytes);
            input = input.get(bytes..).unwrap_or_default();
        }
        self.take_body(input)
    }

    fn take_frames(&mut self, http2: &mut Http2, input: &[u8]) -> Result<(), Failure> {
        let Self { hash, body_bytes, .. } = self;
        http2.take(input, &mut |data| {
            *body_bytes += data.len() as u64;
            if let Some(hash) = hash {
                hash.update(data);
            }
        })?;
        self.is_last = http2.is_leaving;
        if self.state == State::Complete || !http2.is_complete() {
            return Ok(());
        }
        let requests = u64::from(http2.asked);
        if self.expected.body_bytes.is_some_and(|expected| expected * requests != self.body_bytes) {
            return Err(Failure::WrongLength);
        }
        // Bodies that come at once are mixed.
        self.hash = self.hash.take().filter(|_| requests == 1);
        self.advance(0)
    }

    /// Takes what arrives between two transactions.
    pub(super) fn take_idle(&mut self, input: &[u8]) -> Result<(), Failure> {
        let Some(http2) = &mut self.http2 else { return Err(Failure::Excess) };
        http2.take(input, &mut |_| {})?;
        if http2.is_leaving { Err(Failure::ClosedIdle) } else { Ok(()) }
    }

    fn take_body(&mut self, input: &[u8]) -> Result<(), Failure> {
        let left_bytes = self.body_left();
        let taken_bytes = input.len() as u64;
        if taken_bytes > left_bytes {
            return Err(Failure::Excess);
        }
        if let Some(hash) = &mut self.hash {
            hash.update(input);
        }
        self.advance(left_bytes - taken_bytes)
    }

    /// Notes that so many bytes of the body were dropped unseen.
    pub(super) fn discarded(&mut self, bytes: u64) -> Result<(), Failure> {
        let left_bytes = self.body_left();
        if bytes > left_bytes { Err(Failure::Excess) } else { self.advance(left_bytes - bytes) }
    }

    fn advance(&mut self, left_bytes: u64) -> Result<(), Failure> {
        if left_bytes > 0 {
            self.state = State::Body(left_bytes);
            return Ok(());
        }
        self.state = State::Complete;
        let (Some(hash), Some(expected)) = (self.hash.take(), self.expected.sha256) else {
            return Ok(());
        };
        if hash.finalize().as_slice() == expected { Ok(()) } else { Err(Failure::WrongHash) }
    }

    /// Returns the name of an end of the connection at this point.
    pub(super) fn cut(&self) -> Failure {
        match self.state {
            State::Head if !self.head.has_begun() && self.body_bytes == 0 => Failure::Closed,
            _ => Failure::Truncated,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// The number of bytes of the body that have not arrived yet, once the head has.
    fn body_left(&self) -> u64 {
        match self.state {
            State::Body(left_bytes) => left_bytes,
            State::Head | State::Complete => 0,
        }
    }

    /// The number of bytes that may be dropped unseen now.
    pub(super) fn discardable_bytes(&self) -> u64 {
        if self.expected.may_discard { self.body_left() } else { 0 }
    }

    /// True if the server closes the connection behind it without waiting for us.
    pub(super) fn is_announced(&self) -> bool {
        self.is_last && self.http2.is_none()
    }
}

#[cfg(test)]
mod tests;
