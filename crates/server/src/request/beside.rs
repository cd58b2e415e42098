//! The rest of a body that goes on to a server while the server's response goes to the client.

use std::task::{Context, Poll, ready};

use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_http::trailers::TrailerFilter;
use kettle_tls::stream::{Fill, TlsStream};

use super::{BodyError, BodySource, RequestBody};

/// What is known of such a body between two looks at it.
pub(super) struct Passing {
    /// What the server has not taken yet of the last piece.
    unsent: Vec<u8>,
    /// Whether that is the last one.
    has_ended: bool,
    bytes_max: u64,
    /// What the server gets of its trailers.
    trailers: TrailerFilter,
    /// Whether the server's connection may be kept once it has all.
    may_keep: bool,
}

/// A body on its way beside a response.
pub struct Beside<'b> {
    passing: &'b mut Option<Passing>,
    reader: &'b mut BodyReader,
    is_broken: &'b mut bool,
    is_chunked: bool,
    /// What the client sent and the server took so far, both counted.
    pub moved_bytes: u64,
}

/// What became of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The server has all of it; its connection may be kept if so.
    Whole(bool),
    /// The server takes no more of it.
    Unwanted,
}

impl RequestBody<'_> {
    /// From here on the body goes to a server beside its response. `unsent` is what the server has not taken of the last
    /// piece, which is the end of the body if `has_ended`.
    pub(crate) fn go_beside(
        &mut self,
        unsent: Vec<u8>,
        has_ended: bool,
        bytes_max: u64,
        trailers: TrailerFilter,
        may_keep: bool,
    ) {
        if let BodySource::Tls(source) = &mut self.source {
            source.stream.consume(std::mem::take(&mut self.lent_bytes));
            self.passing = Some(Passing { unsent, has_ended, bytes_max, trailers, may_keep });
        }
    }

    /// Whether it goes on beside its response.
    pub(crate) fn is_beside(&self) -> bool {
        self.passing.is_some()
    }

    /// The connection that the request came over, for its response, and the body if it goes on beside that.
    pub(crate) fn beside_response(&mut self) -> Option<(&mut TlsStream, Option<Beside<'_>>)> {
        let BodySource::Tls(source) = &mut self.source else { return None };
        let is_chunked = self.framing == BodyFraming::Chunked;
        let (passing, reader, is_broken) =
            (&mut self.passing, &mut self.reader, &mut self.is_broken);
        let beside = passing.is_some().then_some(Beside {
            passing,
            reader,
            is_broken,
            is_chunked,
            moved_bytes: 0,
        });
        Some((&mut *source.stream, beside))
    }
}

impl Beside<'_> {
    /// Whether it is the client that has to send.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.passing.as_ref().is_some_and(|passing| passing.unsent.is_empty())
    }

    /// Passes on what has come, by `send`, and says what became of the body when that is over.
    ///
    /// # Errors
    /// [`BodyError`]: its end will never come.
    pub(crate) fn poll<E>(
        &mut self,
        stream: &mut TlsStream,
        context: &mut Context<'_>,
        mut send: impl FnMut(&mut Context<'_>, &mut &[u8]) -> Poll<Result<(), E>>,
    ) -> Poll<Result<Passed, BodyError>> {
        loop {
            let Some(passing) = &mut *self.passing else {
                return Poll::Ready(Ok(Passed::Unwanted));
            };
            let mut left = passing.unsent.as_slice();
            let sent = if left.is_empty() { Poll::Ready(Ok(())) } else { send(context, &mut left) };
            let sent_bytes = passing.unsent.len() - left.len();
            passing.unsent.drain(..sent_bytes);
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
            if let Err(error) = ready!(self.poll_piece(stream, context)) {
                (*self.passing, *self.is_broken) = (None, true);
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Takes the next piece from the client, in the framing that the server gets it in.
    fn poll_piece(
        &mut self,
        stream: &mut TlsStream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        let Some(passing) = &mut *self.passing else { return Poll::Ready(Ok(())) };
        loop {
            let received = stream.received().bytes();
            let piece = self.reader.next_piece(received).map_err(BodyError::Malformed)?;
            let data = received.get(piece.coding_bytes..).and_then(|it| it.get(..piece.data_bytes));
            let data = data.unwrap_or_default();
            if self.reader.total_bytes() > passing.bytes_max {
                return Poll::Ready(Err(BodyError::TooLong));
            }
            let is_data = !data.is_empty();
            if is_data {
                chunk(&mut passing.unsent, data, self.is_chunked);
            }
            stream.consume(piece.coding_bytes + piece.data_bytes);
            if is_data {
                self.moved_bytes += piece.data_bytes as u64;
                return Poll::Ready(Ok(()));
            }
            if self.reader.is_done() {
                passing.has_ended = true;
                if self.is_chunked {
                    let trailers = passing.trailers.passed_on(self.reader.trailers());
                    passing.unsent.extend(last_chunk(&trailers));
                }
                return Poll::Ready(Ok(()));
            }
            match ready!(stream.poll_fill(context)).map_err(BodyError::Stream)? {
                Fill::Data => {}
                Fill::Closed | Fill::Truncated => return Poll::Ready(Err(BodyError::Ended)),
            }
        }
    }
}

/// Appends a piece of a body as a server gets it.
pub(crate) fn chunk(out: &mut Vec<u8>, data: &[u8], is_chunked: bool) {
    if !is_chunked {
        return out.extend_from_slice(data);
    }
    out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// What ends a body in chunks, with the lines of its trailer section.
pub(crate) fn last_chunk(trailers: &[u8]) -> Vec<u8> {
    [b"0\r\n", trailers, b"\r\n"].concat()
}
