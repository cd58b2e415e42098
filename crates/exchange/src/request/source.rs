//! The client's side of a request, whichever protocol that speaks: the only place that tells them apart; and the body of a request
//! that has its connection for itself (HTTP/1.1), which is read behind its head.

use std::future::{Future, pending, poll_fn};
use std::io::IoSlice;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use kettle_http::h1::framing::BodyReader;
use kettle_kernel::bug;
use kettle_runtime::deadlines::{Interrupt, Stage};
use kettle_tls::Session;
use kettle_tls::stream::{Filled, Stream, StreamError};
use tokio::sync::Semaphore;

use super::disconnect::{ClientWatch, disconnect};
use super::{
    BodyError, ConcurrentUpload, ConnectionSource, PieceSource, Presented, Reading, RequestStream,
    StreamSource, patience,
};

/// Where a request comes from.
pub(super) enum Source<'c> {
    /// Nowhere: a test asks.
    Nothing { server_name: Option<&'c str> },
    /// A connection of its own.
    Connection(ConnectionSource<'c>),
    /// One stream of many.
    Stream(StreamSource<'c>),
}

impl<'c> Source<'c> {
    /// Returns the certificate that its client presented when it connected.
    pub(super) fn presented(&self) -> Presented<'_> {
        match self {
            Self::Nothing { server_name } => {
                Presented { server_name: *server_name, is_verified: false }
            }
            Self::Connection(_) | Self::Stream(_) => self.session().into(),
        }
    }

    /// Returns the session of its connection; over a plain one there is none.
    pub(super) fn session(&self) -> Option<&Session> {
        match self {
            Self::Nothing { .. } => None,
            Self::Connection(source) => source.stream.session(),
            Self::Stream(source) => source.session,
        }
    }

    /// True if it is a connection without TLS, for one request at a time.
    pub(super) fn is_sent_from_page_cache(&self) -> bool {
        match self {
            Self::Nothing { .. } | Self::Stream(_) => false,
            Self::Connection(source) => source.stream.is_plain(),
        }
    }

    /// Where to take a permit before a body is made as a whole. `None` where responses are sent one after the other.
    pub(super) fn body_permits(&self) -> Option<&Arc<Semaphore>> {
        Some(self.stream()?.body_permits())
    }

    /// The connection, if it is for one request at a time.
    pub(super) fn connection(&mut self) -> Option<&mut Stream> {
        match self {
            Self::Nothing { .. } | Self::Stream(_) => None,
            Self::Connection(source) => Some(source.stream),
        }
    }

    /// The stream, if it is one of many.
    pub(super) fn stream(&self) -> Option<&'c dyn RequestStream> {
        match self {
            Self::Nothing { .. } | Self::Connection(_) => None,
            Self::Stream(source) => Some(source.stream),
        }
    }

    /// The longest body that is read so that another request can follow behind it. `None` where none follows behind.
    pub(super) fn discard_bytes_max(&self) -> Option<u64> {
        match self {
            Self::Nothing { .. } | Self::Stream(_) => None,
            Self::Connection(source) => Some(source.discard_bytes_max),
        }
    }

    /// True if some of the body ever came.
    pub(super) fn has_begun(&self) -> bool {
        match self {
            Self::Nothing { .. } => false,
            Self::Connection(source) => source.has_begun(),
            Self::Stream(source) => source.stream.has_body_begun(),
        }
    }

    /// Ready when the client has begun the body, or will not.
    ///
    /// # Errors
    /// [`BodyError`]: it is told nothing any more. The next read says why.
    pub(super) fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        match self {
            Self::Nothing { .. } => Poll::Pending,
            Self::Connection(source) => source.poll_begun(context),
            Self::Stream(source) if source.stream.has_body_begun() => Poll::Ready(Ok(())),
            // Whatever comes of the stream wakes the task that waits for its end.
            Self::Stream(source) => source.stream.poll_gone(context).map(Ok),
        }
    }

    /// Sends the head of an interim response, written as for HTTP/1.1.
    ///
    /// # Errors
    /// [`BodyError`].
    pub(super) async fn send_interim(&mut self, head: &[u8]) -> Result<(), BodyError> {
        match self {
            Self::Nothing { .. } => Ok(()),
            Self::Connection(source) => source.send(head).await,
            Self::Stream(source) => source.send_interim(head),
        }
    }

    /// Takes in the next data, and returns its length; `None` at the end.
    ///
    /// # Errors
    /// [`BodyError`].
    pub(super) async fn next(
        &mut self,
        reading: Reading<'_>,
        bytes_max: u64,
    ) -> Result<Option<usize>, BodyError> {
        match self {
            Self::Nothing { .. } => Ok(None),
            Self::Connection(source) => source.next(reading, bytes_max).await,
            Self::Stream(source) => source.next(reading, bytes_max, Stage::UnderWay).await,
        }
    }

    /// The data that was taken in last, of this length.
    ///
    /// # Errors
    /// [`BodyError`].
    pub(super) fn data(&self, data_bytes: usize) -> Result<&[u8], BodyError> {
        match self {
            Self::Nothing { .. } => Ok(&[]),
            Self::Connection(source) => source.data(data_bytes),
            Self::Stream(source) => Ok(&source.data),
        }
    }

    /// Lets go of that.
    pub(super) fn release(&mut self, data_bytes: usize) {
        match self {
            Self::Nothing { .. } => {}
            Self::Connection(source) => source.stream.consume(data_bytes),
            Self::Stream(source) => source.data = Bytes::new(),
        }
    }

    /// The lines of the trailer section of a body whose end was read.
    pub(super) fn trailers<'t>(&'t self, reader: &'t BodyReader) -> &'t [u8] {
        match self {
            Self::Nothing { .. } => &[],
            Self::Connection(_) => reader.trailers(),
            Self::Stream(source) => &source.trailers,
        }
    }

    /// Reads past the rest of a body, up to the limit, in the time that a client may be silent.
    ///
    /// # Errors
    /// [`BodyError`] if that is not the end of it.
    pub(super) async fn discard(
        &mut self,
        reading: Reading<'_>,
        is_awaited: bool,
    ) -> Result<(), BodyError> {
        match self {
            Self::Nothing { .. } => Ok(()),
            Self::Connection(source) => source.discard(reading, is_awaited).await,
            Self::Stream(source) => source.discard(reading, is_awaited).await,
        }
    }

    /// Waits until the client has gone.
    pub(super) async fn disconnected(&mut self) {
        match self {
            Self::Nothing { .. } => pending().await,
            Self::Connection(source) => drop(disconnect(source.stream).await),
            Self::Stream(source) => poll_fn(|context| source.stream.poll_left(context)).await,
        }
    }

    /// Waits until the client of a stream has gone. Of what has a connection of its own the data tells, once it was read.
    pub(super) fn taken_back(&self) -> impl Future<Output = ()> + use<'c> {
        let stream = self.stream();
        poll_fn(move |context| stream.map_or(Poll::Pending, |stream| stream.poll_left(context)))
    }

    /// The client, to look at while nothing is read of it.
    pub(super) fn client(&self) -> ClientWatch<'_> {
        match self {
            Self::Nothing { .. } => ClientWatch::Nobody,
            Self::Connection(source) => ClientWatch::Connection(source.stream),
            Self::Stream(source) => ClientWatch::Stream(source.stream),
        }
    }
}

impl ConnectionSource<'_> {
    /// The next data, still at the front of what was received; `None` at the end.
    async fn next(
        &mut self,
        reading: Reading<'_>,
        bytes_max: u64,
    ) -> Result<Option<usize>, BodyError> {
        let Reading { reader, waited, .. } = reading;
        loop {
            let received = self.stream.received().bytes();
            let piece = reader.next_piece(received).map_err(BodyError::Malformed)?;
            self.stream.consume(piece.coding_bytes);
            if reader.is_longer_than(bytes_max) {
                return Err(BodyError::TooLong);
            }
            if piece.data_bytes > 0 {
                return Ok(Some(piece.data_bytes));
            }
            if reader.is_done() {
                return Ok(None);
            }
            let patience = patience(self.timeout, *waited, reader.total_bytes());
            self.deadline.extend(patience.ok_or(BodyError::TimedOut)?);
            let began = Instant::now();
            self.fill(Stage::UnderWay).await?;
            *waited += began.elapsed();
        }
    }

    /// Data of so many bytes that was taken in, and not let go of.
    fn data(&self, data_bytes: usize) -> Result<&[u8], BodyError> {
        let data = self.stream.received().bytes().get(..data_bytes);
        let lost = || bug!("what was taken in stays until it is let go of");
        data.ok_or_else(|| BodyError::Stream(lost().into()))
    }

    /// True if anything of the body is here.
    fn has_begun(&self) -> bool {
        !self.stream.received().bytes().is_empty()
    }

    fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        while !self.has_begun() {
            match ready!(self.stream.poll_fill(context)).map_err(BodyError::Stream)? {
                Filled::Data => {}
                Filled::Closed | Filled::Truncated => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads past the rest, for the sake of the next request.
    async fn discard(
        &mut self,
        Reading { reader, .. }: Reading<'_>,
        is_awaited: bool,
    ) -> Result<(), BodyError> {
        // With a final answer in place of `100 Continue` nothing need follow.
        if reader.is_done() || (is_awaited && !self.has_begun()) {
            return Ok(());
        }
        let bytes_max = reader.total_bytes().saturating_add(self.discard_bytes_max);
        self.deadline.extend(self.timeout);
        loop {
            let received = self.stream.received().bytes();
            let consumed = reader.consume(received).map_err(BodyError::Malformed)?;
            self.stream.consume(consumed.bytes);
            if consumed.done {
                return Ok(());
            }
            if reader.total_bytes() > bytes_max {
                return Err(BodyError::TooLong);
            }
            // Its response is sent: for the body alone a server that stops does not stay.
            self.fill(Stage::Idle).await?;
        }
    }

    async fn fill(&mut self, stage: Stage) -> Result<(), BodyError> {
        match self.deadline.wait(stage, |context| self.stream.poll_fill(context)).await {
            Ok(Ok(Filled::Data)) => Ok(()),
            Ok(Ok(Filled::Closed | Filled::Truncated)) => Err(BodyError::Ended),
            Ok(Err(error)) => Err(BodyError::Stream(error)),
            Err(Interrupt::Expired | Interrupt::Draining) => Err(BodyError::TimedOut),
        }
    }

    async fn send(&mut self, head: &[u8]) -> Result<(), BodyError> {
        let stream = &mut *self.stream;
        let sent = if stream.takes_plaintext() {
            let mut left = head;
            self.deadline
                .within(self.timeout, |context| {
                    while !left.is_empty() {
                        let pieces = [IoSlice::new(left), IoSlice::new(&[])];
                        let bytes = ready!(stream.poll_kernel_write(context, &pieces, false))?;
                        let rest = left.get(bytes..);
                        left = rest.ok_or_else(|| bug!("no more is sent than there is"))?;
                    }
                    Poll::Ready(Ok(()))
                })
                .await
        } else {
            stream.seal(&[head]).map_err(BodyError::Stream)?;
            self.deadline.within(self.timeout, |context| stream.poll_flush(context)).await
        };
        sent.map_err(|_| BodyError::TimedOut)?.map_err(BodyError::Stream)
    }
}

impl PieceSource for Stream {
    fn poll_piece(
        &mut self,
        upload: &mut ConcurrentUpload<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        loop {
            let received = self.received().bytes();
            let piece = upload.reader.next_piece(received).map_err(BodyError::Malformed)?;
            let data = received.get(piece.coding_bytes..).and_then(|it| it.get(..piece.data_bytes));
            let data = data.ok_or_else(|| {
                BodyError::Stream(bug!("a piece lies in what was received").into())
            })?;
            if upload.reader.is_longer_than(upload.bytes_max()) {
                return Poll::Ready(Err(BodyError::TooLong));
            }
            let is_data = !data.is_empty();
            if is_data {
                upload.take(data);
            }
            self.consume(piece.coding_bytes + piece.data_bytes);
            if is_data {
                return Poll::Ready(Ok(()));
            }
            if upload.reader.is_done() {
                let trailers = upload.reader.trailers().to_vec();
                upload.end(&trailers);
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_fill(context)).map_err(BodyError::Stream)? {
                Filled::Data => {}
                Filled::Closed | Filled::Truncated => return Poll::Ready(Err(BodyError::Ended)),
            }
        }
    }

    /// The end of what it sends tells.
    fn poll_left(&mut self, _context: &mut Context<'_>) -> Poll<StreamError> {
        Poll::Pending
    }
}
