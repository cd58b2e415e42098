//! One stream: what of it came, what of it may still be sent, who waits for it.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use super::frame::ErrorCode;
use super::priority::Priority;
use crate::error::RequestError;

/// A stream that somebody serves.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u32,
    state: State,
    /// Of the body, not yet asked for: pieces of [`PIECE_BYTES`], and what came behind them.
    pieces: VecDeque<Vec<u8>>,
    received: Vec<u8>,
    /// Of the body, given out last.
    pub(super) given_bytes: usize,
    /// True if there ever was something.
    pub(super) has_body: bool,
    /// The section behind the body.
    pub(super) trailers: Option<Result<Vec<u8>, RequestError>>,
    /// The bytes missing of the length that was said.
    pub(super) missing_bytes: Option<u64>,
    /// The window of the client, and the bytes besides of which it was not told.
    pub(super) receive_window: Window,
    /// Its size at first, and its size to come.
    first_bytes: i64,
    pub(super) target_bytes: i64,
    /// The bytes that the client lets us send; less than nothing after it took some back.
    pub(super) send_bytes: i64,
    /// The last priority from PRIORITY_UPDATE.
    pub(super) priority: Option<Priority>,
    /// The waker of the task that serves it.
    pub(super) waker: Option<Waker>,
}

/// The states of RFC 9113 §5.1 that a stream is in from its request on; the others are those of numbers that nobody serves.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Both sides may say more.
    Open,
    /// Half-closed (remote): the client has ended its side.
    Received,
    /// Half-closed (local): we have ended ours.
    Sent,
    /// Closed at its end.
    Over,
    /// Closed before its end.
    Reset {
        /// The reason, whoever gave it.
        code: ErrorCode,
        /// True if the client has reset it: it sends nothing more of it.
        is_taken_back: bool,
        /// True if the client had ended its side.
        is_received: bool,
    },
}

/// The next part of a request's body.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Data, never empty.
    Data(Vec<u8>),
    /// The end, with the lines of the trailer section.
    End(Result<Vec<u8>, RequestError>),
}

/// A window that the client has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) bytes: i64,
    unreleased_bytes: i64,
    /// The bytes that the client may send, with all that came and is not gone.
    pub(super) size: i64,
    /// The bound of that: where it is more, what is gone is not granted anew.
    pub(super) limit: i64,
}

impl Stream {
    pub(super) fn new(number: u32, window_bytes: u32, send_bytes: i64) -> Self {
        Self {
            number,
            state: State::Open,
            pieces: VecDeque::new(),
            received: Vec::new(),
            given_bytes: 0,
            has_body: false,
            trailers: None,
            missing_bytes: None,
            receive_window: Window::new(window_bytes),
            first_bytes: window_bytes.into(),
            target_bytes: window_bytes.into(),
            send_bytes,
            priority: None,
            waker: None,
        }
    }

    /// True if it counts among those that a client may have at a time.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Received | State::Sent)
    }

    /// True if the client may still send something of it.
    pub(super) fn is_receiving(&self) -> bool {
        matches!(self.state, State::Open | State::Sent)
    }

    /// True if the client has ended its side.
    pub(super) fn is_received(&self) -> bool {
        match self.state {
            State::Received | State::Over => true,
            State::Reset { is_received, .. } => is_received,
            State::Open | State::Sent => false,
        }
    }

    /// True if the client has reset it.
    pub(super) fn is_taken_back(&self) -> bool {
        matches!(self.state, State::Reset { is_taken_back: true, .. })
    }

    /// The reason why it ended before its end, if it did.
    pub(super) fn code_of_reset(&self) -> Option<ErrorCode> {
        match self.state {
            State::Reset { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Says that something more is sent of it, and whether that is the end.
    ///
    /// # Errors
    /// It was reset, or has ended.
    pub(super) fn send(&mut self, is_end: bool) -> Result<(), ErrorCode> {
        self.state = match (self.state, is_end) {
            (State::Reset { .. }, _) => return Err(ErrorCode::CANCEL),
            (State::Sent | State::Over, _) => return Err(ErrorCode::INTERNAL_ERROR),
            (State::Open, true) => State::Sent,
            (State::Received, true) => State::Over,
            (state, false) => state,
        };
        Ok(())
    }

    /// Returns the code with which it is reset with before its end: no error where its response is whole, and only the rest of
    /// its request is of no interest (RFC 9113 §8.1).
    pub(super) fn code_of_release(&self) -> ErrorCode {
        match self.state {
            State::Sent | State::Over => ErrorCode::NO_ERROR,
            _ => ErrorCode::CANCEL,
        }
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Ends it, for the client if it `is_taken_back`. Returns how much of its body was held.
    pub(super) fn reset(&mut self, code: ErrorCode, is_taken_back: bool) -> usize {
        let is_received = self.is_received();
        let is_taken_back = is_taken_back || self.is_taken_back();
        self.state = State::Reset { code, is_taken_back, is_received };
        self.wake();
        let held_bytes = self.held_bytes();
        (self.pieces, self.received, self.given_bytes) = (VecDeque::new(), Vec::new(), 0);
        held_bytes
    }

    /// True if its request is over and had nothing but a head.
    pub(super) fn is_head_only(&self) -> bool {
        let is_whole = matches!(self.state, State::Received | State::Over);
        is_whole && !self.has_body && self.trailers.is_none()
    }

    /// Returns how much of its body is held, here or by the task that serves it.
    pub(super) fn held_bytes(&self) -> usize {
        self.pieces.len() * PIECE_BYTES + self.received.len() + self.given_bytes
    }

    /// The largest window that is of use for what is still to come.
    pub(super) fn wanted_bytes(&self) -> i64 {
        let missing = self.missing_bytes.map(|missing| missing + self.held_bytes() as u64);
        missing.map_or(i64::MAX, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX))
    }

    /// Returns the size that the window is to have now.
    fn limit_bytes(&self) -> i64 {
        self.target_bytes.min(self.wanted_bytes()).max(self.first_bytes)
    }

    /// By how much that is more than at first; nothing once the client has ended.
    pub(super) fn excess_bytes(&self) -> i64 {
        if self.is_receiving() { self.limit_bytes() - self.first_bytes } else { 0 }
    }

    /// Some of the body is gone. Returns by how much the window opens.
    pub(super) fn release_window(&mut self, bytes: usize) -> Option<u32> {
        self.receive_window.limit = self.limit_bytes();
        self.receive_window.release(bytes)
    }

    fn is_holding(&self) -> bool {
        !self.pieces.is_empty() || !self.received.is_empty()
    }

    /// Gives out what came of the body, a piece at a time.
    pub(super) fn poll_incoming(&mut self, context: &Context<'_>) -> Poll<Incoming> {
        if self.is_holding() {
            let next = self.pieces.pop_front();
            let data = next.unwrap_or_else(|| std::mem::take(&mut self.received));
            self.given_bytes = data.len();
            return Poll::Ready(Incoming::Data(data));
        }
        if self.is_received() {
            let trailers = self.trailers.take().unwrap_or_else(|| Ok(Vec::new()));
            return Poll::Ready(Incoming::End(trailers));
        }
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Takes in some of the body.
    ///
    /// # Errors
    /// It is longer than was said.
    pub(super) fn take(&mut self, data: &[u8]) -> Result<(), ErrorCode> {
        if let Some(missing) = &mut self.missing_bytes {
            let left = missing.checked_sub(data.len() as u64);
            *missing = left.ok_or(ErrorCode::PROTOCOL_ERROR)?;
        }
        self.has_body |= !data.is_empty();
        let mut data = data;
        while !data.is_empty() {
            let room_bytes = PIECE_BYTES - self.received.len();
            let (piece, rest) = data.split_at(data.len().min(room_bytes));
            self.received.extend_from_slice(piece);
            if self.received.len() == PIECE_BYTES {
                self.pieces.push_back(std::mem::take(&mut self.received));
            }
            data = rest;
        }
        self.wake();
        Ok(())
    }

    /// The client has said all.
    ///
    /// # Errors
    /// It is shorter than was said.
    pub(super) fn end(&mut self) -> Result<(), ErrorCode> {
        if self.missing_bytes.is_some_and(|missing| missing > 0) {
            return Err(ErrorCode::PROTOCOL_ERROR);
        }
        self.state = match self.state {
            State::Open => State::Received,
            State::Sent => State::Over,
            state => state,
        };
        self.wake();
        Ok(())
    }
}

impl Window {
    pub(super) fn new(bytes: u32) -> Self {
        let bytes = bytes.into();
        Self { bytes, unreleased_bytes: 0, size: bytes, limit: bytes }
    }

    /// Grows by so much. Returns by how much it opens: by what is gone and was not told yet, too, for which the client would wait at the
    /// end of a body.
    pub(super) fn grow(&mut self, bytes: i64) -> Option<u32> {
        let opened = bytes + std::mem::take(&mut self.unreleased_bytes);
        self.bytes += opened;
        self.size += bytes;
        self.limit = self.size;
        u32::try_from(opened).ok()
    }

    /// Something came; `false` if there was no room for it.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if bytes > self.bytes {
            return false;
        }
        self.bytes -= bytes;
        true
    }

    /// Notes that bytes are gone. Returns by how much the window opens, if it is time to say so: not for every byte.
    pub(super) fn release(&mut self, bytes: usize) -> Option<u32> {
        self.unreleased_bytes += i64::try_from(bytes).unwrap_or(i64::MAX);
        let withheld = (self.size - self.limit).clamp(0, self.unreleased_bytes);
        self.unreleased_bytes -= withheld;
        self.size -= withheld;
        if self.unreleased_bytes == 0 || self.unreleased_bytes * 2 < self.bytes {
            return None;
        }
        let opened = std::mem::take(&mut self.unreleased_bytes);
        self.bytes += opened;
        u32::try_from(opened).ok()
    }
}

/// The most of a body that is given out at once: how much whoever serves it has in its hands does not grow with the window.
const PIECE_BYTES: usize = 256 << 10;
