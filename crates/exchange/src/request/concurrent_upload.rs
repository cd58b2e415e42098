//! The rest of a body that goes on to a server while the server's response goes to the client.

use std::task::{Context, Poll, ready};

use kettle_http::h1::framing::BodyReader;
use kettle_http::trailers::TrailerFilter;
use kettle_kernel::bug;
use kettle_runtime::spool::Spooled;
use kettle_tls::stream::StreamError;
use kettle_upstream::BodyCoding;

use super::{BodyError, RequestBody};

/// The state of such a body between two looks at it.
pub(super) struct UploadState {
    /// The part of the last piece that the server has not taken yet.
    unsent: Vec<u8>,
    /// True if nothing of what it took waits to be sealed or sent.
    is_flushed: bool,
    /// True if that is the last one.
    has_ended: bool,
    bytes_max: u64,
    /// The rest, if all of it was stored before.
    stored: Option<Spooled>,
    /// The coding in which the server gets it.
    coding: BodyCoding,
    /// Which of its trailers the server gets.
    trailers: TrailerFilter,
    /// True if the server's connection may be kept once it has all.
    may_keep: bool,
}

/// A body on its way beside a response.
pub struct ConcurrentUpload<'b> {
    state: &'b mut Option<Box<UploadState>>,
    is_broken: &'b mut bool,
    /// For bodies in the framing of HTTP/1.1.
    pub(super) reader: &'b mut BodyReader,
    total_bytes: &'b mut u64,
    /// The bytes that the client sent and the server took so far, both counted.
    pub moved_bytes: u64,
}

/// The end of such a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadEnd {
    /// The server has all of it; its connection may be kept if so.
    Whole {
        /// True if nothing else stands against that.
        may_keep: bool,
    },
    /// The server takes no more of it.
    Unwanted,
}

/// The part of a body that a server has not got when its response begins.
pub struct Rest {
    /// The bytes of the last piece that it has not taken.
    pub unsent: Vec<u8>,
    /// True if that is the end of the body.
    pub has_ended: bool,
    /// The part behind it, if it does not come from the client.
    pub stored: Option<Spooled>,
    /// The coding in which the server gets it.
    pub coding: BodyCoding,
}

/// The client's side of a connection or a stream, as bodies come from it.
pub trait PieceSource {
    /// Takes the next piece, or the end, into `upload`.
    fn poll_piece(
        &mut self,
        upload: &mut ConcurrentUpload<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>>;

    /// Ready when the client has gone, where its body does not tell.
    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<StreamError>;
}

impl RequestBody<'_> {
    /// From here on the body goes to a server beside its response.
    pub fn upload_concurrently(
        &mut self,
        Rest { unsent, has_ended, stored, coding }: Rest,
        bytes_max: u64,
        trailers: TrailerFilter,
        may_keep: bool,
    ) {
        self.source.release(std::mem::take(&mut self.lent_bytes));
        // The client of a stream that gets a response does not wait to be told to go on.
        self.is_awaited &= self.source.stream().is_none();
        let is_flushed = false;
        let state = UploadState {
            unsent,
            is_flushed,
            has_ended,
            bytes_max,
            stored,
            coding,
            trailers,
            may_keep,
        };
        self.upload = Some(Box::new(state));
    }

    /// Ends the upload: the rest of it goes to nobody, for its response is not sent.
    pub fn end_upload(&mut self) {
        self.upload = None;
    }

    /// True if it goes on beside its response.
    pub fn is_uploaded_concurrently(&self) -> bool {
        self.upload.is_some()
    }
}

impl<'b> ConcurrentUpload<'b> {
    pub(super) fn new(
        state: &'b mut Option<Box<UploadState>>,
        is_broken: &'b mut bool,
        reader: &'b mut BodyReader,
        total_bytes: &'b mut u64,
    ) -> Option<Self> {
        let is_there = state.is_some();
        let moved_bytes = 0;
        is_there.then_some(Self { state, is_broken, reader, total_bytes, moved_bytes })
    }

    /// True if it is the client that has to send.
    pub fn waits_for_client(&self) -> bool {
        let is_owed =
            |it: &UploadState| it.unsent.is_empty() && it.is_flushed && it.stored.is_none();
        self.state.as_deref().is_some_and(is_owed)
    }

    /// Passes on what has come, by `send`, and says what became of the body when that is over. Without `source` nothing is read.
    ///
    /// # Errors
    /// [`BodyError`]: its end will never come.
    pub fn poll<E>(
        &mut self,
        mut source: Option<&mut impl PieceSource>,
        context: &mut Context<'_>,
        mut send: impl FnMut(&mut Context<'_>, &mut &[u8]) -> Poll<Result<(), E>>,
    ) -> Poll<Result<UploadEnd, BodyError>> {
        loop {
            let Some(state) = self.state.as_deref_mut() else {
                return Poll::Ready(Ok(UploadEnd::Unwanted));
            };
            let mut left = state.unsent.as_slice();
            let is_due = !left.is_empty() || !state.is_flushed;
            let sent = if is_due { send(context, &mut left) } else { Poll::Ready(Ok(())) };
            state.is_flushed = sent.is_ready();
            let sent_bytes = state.unsent.len() - left.len();
            state.unsent.drain(..sent_bytes);
            // Free a large buffer while waiting.
            if state.unsent.is_empty() && state.unsent.capacity() > UNSENT_BYTES_USUAL {
                state.unsent = Vec::new();
            }
            self.moved_bytes += sent_bytes as u64;
            let has_ended = state.has_ended;
            let may_keep = state.may_keep;
            if ready!(sent).is_err() {
                *self.state = None;
                return Poll::Ready(Ok(UploadEnd::Unwanted));
            }
            if has_ended {
                *self.state = None;
                return Poll::Ready(Ok(UploadEnd::Whole { may_keep }));
            }
            let next = match (self.poll_stored(context), &mut source) {
                (Some(next), _) => next,
                (None, Some(source)) => source.poll_piece(self, context),
                (None, None) => Poll::Pending,
            };
            if let Err(error) = ready!(next) {
                (*self.state, *self.is_broken) = (None, true);
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Takes the next piece of a body that was stored.
    fn poll_stored(&mut self, context: &mut Context<'_>) -> Option<Poll<Result<(), BodyError>>> {
        let state = self.state.as_deref_mut()?;
        let stored = state.stored.as_mut()?;
        Some(stored.poll_next(context).map(|piece| {
            let piece = piece.map_err(|error| {
                stored.spool().failed(&error);
                BodyError::Ended
            })?;
            state.has_ended = stored.is_at_end();
            self.moved_bytes += piece.len() as u64;
            state.unsent = state.coding.of_stored(piece, state.has_ended);
            Ok(())
        }))
    }

    /// Takes in data, in the framing that the server gets it in.
    pub fn take(&mut self, data: &[u8]) {
        match self.state.as_deref_mut() {
            Some(state) => state.coding.write(&mut state.unsent, data),
            None => _ = bug!("pieces are taken in for an upload"),
        }
        self.moved_bytes += data.len() as u64;
    }

    /// Takes in the end of the body, with the lines of its trailer section.
    pub fn end(&mut self, trailers: &[u8]) {
        if let Some(state) = self.state.as_deref_mut() {
            state.has_ended = true;
            state.coding.end(&mut state.unsent, &state.trailers.passed_on(trailers));
        }
    }

    /// Counts what comes without framing of its own.
    ///
    /// # Errors
    /// [`BodyError::TooLong`].
    pub fn count(&mut self, bytes: usize) -> Result<(), BodyError> {
        *self.total_bytes += bytes as u64;
        if *self.total_bytes > self.bytes_max() { Err(BodyError::TooLong) } else { Ok(()) }
    }

    /// The longest body that its route takes.
    pub fn bytes_max(&self) -> u64 {
        self.state.as_deref().map_or(0, |state| state.bytes_max)
    }
}

/// The memory that stays allocated for pieces to come.
const UNSENT_BYTES_USUAL: usize = 16 * 1_024;
