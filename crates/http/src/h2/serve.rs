//! The calls of a stream's server: what came of its body, whether anybody still listens, its end.

use std::task::{Context, Poll};

use super::connection::Connection;
use super::frame::{ErrorCode, RST_STREAM};
use super::stream::{Incoming, Stream};

impl Connection {
    /// Returns the next part of a request's body. The client gets room for as much when the next is asked for: what whoever
    /// serves it holds counts as what is held here.
    ///
    /// # Errors
    /// Its stream ended before its end.
    pub fn poll_incoming(
        &mut self,
        number: u32,
        context: &mut Context<'_>,
    ) -> Poll<Result<Incoming, ErrorCode>> {
        let is_closed = self.is_closed;
        let Some(stream) = self.stream(number).filter(|_| !is_closed) else {
            return Poll::Ready(Err(ErrorCode::CANCEL));
        };
        if let Some(code) = stream.code_of_reset() {
            return Poll::Ready(Err(code));
        }
        let given_bytes = std::mem::take(&mut stream.given_bytes);
        let is_told = given_bytes > 0 && !stream.is_received();
        let opened = if is_told { stream.release_window(given_bytes) } else { None };
        let incoming = stream.poll_incoming(context);
        self.write_window_update(number, opened);
        self.release_window(given_bytes);
        if given_bytes > 0 {
            self.probe_if_due(number);
        }
        incoming.map(Ok)
    }

    /// True if some of a request's body ever came, or its end.
    #[must_use]
    pub fn has_body_begun(&self, number: u32) -> bool {
        self.find(number)
            .ok()
            .and_then(|place| self.streams.get(place))
            .is_some_and(|it| it.has_body || it.is_received())
    }

    /// Ready when the stream was reset, or the connection is over.
    pub fn poll_reset(&mut self, number: u32, context: &mut Context<'_>) -> Poll<()> {
        let is_closed = self.is_closed;
        match self.stream(number) {
            Some(stream) if stream.code_of_reset().is_none() && !is_closed => {
                stream.waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Wakes whoever serves a stream.
    pub fn wake(&mut self, number: u32) {
        if let Some(stream) = self.stream(number) {
            stream.wake();
        }
    }

    /// Wakes all of them.
    pub fn wake_all(&mut self) {
        self.streams.iter_mut().for_each(Stream::wake);
    }

    /// The client says nothing more: what has not come of a request never comes.
    pub fn end_input(&mut self) {
        let unended = self.streams.iter().filter(|it| it.is_receiving());
        let unended: Vec<_> = unended.map(|it| (it.number, it.code_of_release())).collect();
        for (number, code) in unended {
            self.reset(number, code);
        }
        self.wake_all();
    }

    /// Ends a stream before its end. Nothing that is due of it is taken back.
    pub fn reset(&mut self, number: u32, code: ErrorCode) {
        let mut unread_bytes = 0;
        let mut is_known = false;
        if let Some(stream) = self.stream(number) {
            // A client that took it back and goes on is told of that.
            let is_told = stream.is_taken_back() && code == ErrorCode::STREAM_CLOSED;
            if stream.code_of_reset().is_some() && !is_told {
                return;
            }
            is_known = stream.is_received() || stream.is_taken_back();
            unread_bytes = stream.reset(code, false);
        }
        // Of a stream that was never begun nothing is on its way.
        let is_idle = number > self.last_stream;
        if !is_known && !is_idle && !self.left_behind.contains(&number) {
            if self.left_behind.len() == LEFT_BEHIND_MAX {
                self.left_behind.pop_front();
            }
            self.left_behind.push_back(number);
        }
        if FAULTS.contains(&code) {
            self.flood.count_fault();
            self.end_if_flooded();
        }
        self.write(RST_STREAM, number, &code.0.to_be_bytes());
        self.release_window(unread_bytes);
    }

    /// Nobody serves the stream any more. One that has not ended is reset.
    pub fn release(&mut self, number: u32) {
        let Ok(place) = self.find(number) else { return };
        if let Some(stream) = self.streams.get(place)
            && stream.is_open()
        {
            self.reset(number, stream.code_of_release());
        }
        let stream = self.streams.remove(place);
        self.release_window(stream.held_bytes());
        if self.streams.is_empty() && self.streams.capacity() > STREAMS_USUAL {
            self.streams = Vec::new();
        }
    }
}

/// The faults of a client in a stream.
const FAULTS: [ErrorCode; 5] = [
    ErrorCode::PROTOCOL_ERROR,
    ErrorCode::FLOW_CONTROL_ERROR,
    ErrorCode::STREAM_CLOSED,
    ErrorCode::FRAME_SIZE_ERROR,
    ErrorCode::REFUSED_STREAM,
];

/// Streams for which room is kept.
const STREAMS_USUAL: usize = 4;

/// Streams that were reset, of which late frames are expected.
const LEFT_BEHIND_MAX: usize = 256;
