//! The rest of a body that goes on to a server while the server's response goes to the client.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kettle_http::h1::framing::{BodyFraming, BodyReader, BodyWriter};
use kettle_http::h2::Incoming;
use kettle_http::trailers::TrailerFilter;
use kettle_tls::stream::{Filled, StreamError, TlsStream};

use super::{BodyError, BodySource, RequestBody};
use crate::http2::Stream;
use crate::spool::Spooled;

/// What is known of such a body between two looks at it.
pub(super) struct Passing {
    /// What the server has not taken yet of the last piece.
    unsent: Vec<u8>,
    /// Whether nothing of what it took waits to be sealed or sent.
    is_flushed: bool,
    /// Whether that is the last one.
    has_ended: bool,
    bytes_max: u64,
    /// Where the rest is, if all of it was stored before.
    stored: Option<Spooled>,
    /// What the server gets of its trailers.
    trailers: TrailerFilter,
    /// Whether the server's connection may be kept once it has all.
    may_keep: bool,
}

/// A body on its way beside a response, and where it comes from.
pub struct Beside<'b, S> {
    passing: &'b mut Option<Passing>,
    is_broken: &'b mut bool,
    writer: BodyWriter,
    /// What the client sent and the server took so far, both counted.
    pub moved_bytes: u64,
    source: S,
}

/// A body that comes over a connection of its client's own, in HTTP/1.1's framing.
pub type OfConnection<'b> = &'b mut BodyReader;

/// A body that is one stream of its connection's.
pub struct OfStream<'b> {
    stream: &'b Stream,
    total_bytes: &'b mut u64,
}

/// What became of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The server has all of it; its connection may be kept if so.
    Whole(bool),
    /// The server takes no more of it.
    Unwanted,
}

/// What of a body a server has not got when its response begins.
pub struct Rest {
    /// What it has not taken of the last piece.
    pub unsent: Vec<u8>,
    /// True if that is the end of the body.
    pub has_ended: bool,
    /// What comes behind it, if it does not come from the client.
    pub stored: Option<Spooled>,
}

impl RequestBody<'_> {
    /// From here on the body goes to a server beside its response.
    pub(crate) fn go_beside(
        &mut self,
        Rest { unsent, has_ended, stored }: Rest,
        bytes_max: u64,
        trailers: TrailerFilter,
        may_keep: bool,
    ) {
        match &mut self.source {
            BodySource::Nothing { .. } => return,
            BodySource::Tls(source) => {
                source.stream.consume(std::mem::take(&mut self.lent_bytes));
            }
            BodySource::Stream(source) => {
                // Whoever gets a response does not wait to be told to go on.
                (source.data, self.is_awaited) = (Bytes::new(), false);
            }
        }
        let is_flushed = false;
        self.passing =
            Some(Passing { unsent, is_flushed, has_ended, bytes_max, stored, trailers, may_keep });
    }

    /// Whether it goes on beside its response.
    pub(crate) fn is_beside(&self) -> bool {
        self.passing.is_some()
    }

    /// The connection that the request came over, for its response, and the rest of the body if that goes on beside it.
    /// Always there: over HTTP/1.1 the source is the connection.
    pub(crate) fn stream_and_rest(
        &mut self,
    ) -> Option<(&mut TlsStream, Option<Beside<'_, OfConnection<'_>>>)> {
        let BodySource::Tls(source) = &mut self.source else { return None };
        let writer = BodyWriter::new(self.framing == BodyFraming::Chunked);
        let (passing, is_broken) = (&mut self.passing, &mut self.is_broken);
        let beside = passing.is_some().then_some(Beside {
            passing,
            is_broken,
            writer,
            moved_bytes: 0,
            source: &mut self.reader,
        });
        Some((&mut *source.stream, beside))
    }

    /// The body of a stream, if it goes on beside its response.
    pub(crate) fn beside_stream(&mut self) -> Option<Beside<'_, OfStream<'_>>> {
        let BodySource::Stream(source) = &mut self.source else { return None };
        let writer = BodyWriter::new(self.framing == BodyFraming::Chunked);
        let (passing, is_broken) = (&mut self.passing, &mut self.is_broken);
        let source = OfStream { stream: source.stream, total_bytes: &mut source.total_bytes };
        let beside = Beside { passing, is_broken, writer, moved_bytes: 0, source };
        beside.passing.is_some().then_some(beside)
    }
}

impl<S> Beside<'_, S> {
    /// Whether it is the client that has to send.
    pub(crate) fn waits_for_client(&self) -> bool {
        let is_owed = |it: &Passing| it.unsent.is_empty() && it.is_flushed && it.stored.is_none();
        self.passing.as_ref().is_some_and(is_owed)
    }

    /// Passes on what `next` takes in, by `send`, and says what became of the body when that is over.
    fn poll_with<E>(
        &mut self,
        context: &mut Context<'_>,
        mut send: impl FnMut(&mut Context<'_>, &mut &[u8]) -> Poll<Result<(), E>>,
        mut next: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<Result<(), BodyError>>,
    ) -> Poll<Result<Passed, BodyError>> {
        loop {
            let Some(passing) = &mut *self.passing else {
                return Poll::Ready(Ok(Passed::Unwanted));
            };
            let mut left = passing.unsent.as_slice();
            let is_due = !left.is_empty() || !passing.is_flushed;
            let sent = if is_due { send(context, &mut left) } else { Poll::Ready(Ok(())) };
            passing.is_flushed = sent.is_ready();
            let sent_bytes = passing.unsent.len() - left.len();
            passing.unsent.drain(..sent_bytes);
            // Who waits holds no more than a little.
            if passing.unsent.is_empty() && passing.unsent.capacity() > UNSENT_BYTES_USUAL {
                passing.unsent = Vec::new();
            }
            self.moved_bytes += sent_bytes as u64;
            let (has_ended, may_keep) = (passing.has_ended, passing.may_keep);
            if ready!(sent).is_err() {
                *self.passing = None;
                return Poll::Ready(Ok(Passed::Unwanted));
            }
            if has_ended {
                *self.passing = None;
                return Poll::Ready(Ok(Passed::Whole(may_keep)));
            }
            let next = match self.poll_stored(context) {
                Some(next) => next,
                None => next(self, context),
            };
            if let Err(error) = ready!(next) {
                (*self.passing, *self.is_broken) = (None, true);
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Takes the next piece of a body that was stored. Its length was announced, so it needs no framing.
    fn poll_stored(&mut self, context: &mut Context<'_>) -> Option<Poll<Result<(), BodyError>>> {
        let passing = self.passing.as_mut()?;
        let stored = passing.stored.as_mut()?;
        Some(stored.poll_next(context).map(|piece| {
            let piece = piece.map_err(|error| {
                stored.spool().failed(&error);
                BodyError::Ended
            })?;
            passing.has_ended = stored.is_at_end();
            self.moved_bytes += piece.len() as u64;
            passing.unsent = piece;
            Ok(())
        }))
    }

    /// Takes in data as the server gets it.
    fn take(&mut self, data: &[u8]) {
        if let Some(passing) = &mut *self.passing {
            self.writer.write_piece(&mut passing.unsent, data);
        }
        self.moved_bytes += data.len() as u64;
    }

    /// Takes in the end of the body, with the lines of its trailer section.
    fn end(&mut self, trailers: &[u8]) {
        if let Some(passing) = &mut *self.passing {
            passing.has_ended = true;
            self.writer.end(&mut passing.unsent, &passing.trailers.passed_on(trailers));
        }
    }

    fn bytes_max(&self) -> u64 {
        self.passing.as_ref().map_or(0, |passing| passing.bytes_max)
    }
}

impl Beside<'_, OfConnection<'_>> {
    /// Passes on what has come, by `send`, and says what became of the body when that is over. Without `stream` nothing is read.
    ///
    /// # Errors
    /// [`BodyError`]: its end will never come.
    pub(crate) fn poll<E>(
        &mut self,
        mut stream: Option<&mut TlsStream>,
        context: &mut Context<'_>,
        send: impl FnMut(&mut Context<'_>, &mut &[u8]) -> Poll<Result<(), E>>,
    ) -> Poll<Result<Passed, BodyError>> {
        self.poll_with(context, send, |beside, context| match &mut stream {
            Some(stream) => beside.poll_piece(stream, context),
            None => Poll::Pending,
        })
    }

    /// Takes the next piece from the client, in the framing that the server gets it in.
    fn poll_piece(
        &mut self,
        stream: &mut TlsStream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        loop {
            let received = stream.received().bytes();
            let piece = self.source.next_piece(received).map_err(BodyError::Malformed)?;
            let data = received.get(piece.coding_bytes..).and_then(|it| it.get(..piece.data_bytes));
            let data = data.unwrap_or_default();
            if self.source.is_longer_than(self.bytes_max()) {
                return Poll::Ready(Err(BodyError::TooLong));
            }
            let is_data = !data.is_empty();
            if is_data {
                self.take(data);
            }
            stream.consume(piece.coding_bytes + piece.data_bytes);
            if is_data {
                return Poll::Ready(Ok(()));
            }
            if self.source.is_done() {
                let trailers = self.source.trailers().to_vec();
                self.end(&trailers);
                return Poll::Ready(Ok(()));
            }
            match ready!(stream.poll_fill(context)).map_err(BodyError::Stream)? {
                Filled::Data => {}
                Filled::Closed | Filled::Truncated => return Poll::Ready(Err(BodyError::Ended)),
            }
        }
    }
}

impl Beside<'_, OfStream<'_>> {
    /// As [`poll`](Beside::poll) of a connection; that the client took its request back is an error of the stream.
    ///
    /// # Errors
    /// [`BodyError`]: its end will never come.
    pub(crate) fn poll_stream<E>(
        &mut self,
        context: &mut Context<'_>,
        send: impl FnMut(&mut Context<'_>, &mut &[u8]) -> Poll<Result<(), E>>,
    ) -> Poll<Result<Passed, BodyError>> {
        self.poll_with(context, send, |beside, context| {
            let incoming = ready!(beside.source.stream.poll_incoming(context));
            match incoming.map_err(|gone| BodyError::Stream(StreamError::Io(gone.into())))? {
                Incoming::Data(data) => {
                    *beside.source.total_bytes += data.len() as u64;
                    if *beside.source.total_bytes > beside.bytes_max() {
                        return Poll::Ready(Err(BodyError::TooLong));
                    }
                    beside.take(&data);
                }
                Incoming::End(trailers) => beside.end(&trailers.map_err(BodyError::Malformed)?),
            }
            Poll::Ready(Ok(()))
        })
    }
}

/// What is kept allocated for pieces to come.
const UNSENT_BYTES_USUAL: usize = 16 * 1_024;
