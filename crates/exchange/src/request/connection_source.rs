//! The body of a request that has its connection for itself (HTTP/1.1): what is read behind its head.

use std::io::IoSlice;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use kettle_kernel::bug;
use kettle_runtime::deadlines::{Deadline, Interrupt, Stage};
use kettle_tls::stream::{Filled, Stream, StreamError};

use super::{BodyError, ConcurrentUpload, PieceSource, Reading, patience};

/// The source of the body of a connection's request.
pub struct ConnectionSource<'c> {
    /// The connection.
    pub stream: &'c mut Stream,
    /// Its deadline.
    pub deadline: &'c Deadline,
    /// The time the client may send nothing.
    pub timeout: Duration,
    /// The longest body that is read only to be thrown away, in bytes.
    pub discard_bytes_max: u64,
}

impl ConnectionSource<'_> {
    /// The next data, still at the front of what was received; `None` at the end.
    pub(super) async fn next(
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
    pub(super) fn data(&self, data_bytes: usize) -> Result<&[u8], BodyError> {
        let data = self.stream.received().bytes().get(..data_bytes);
        let lost = || bug!("what was taken in stays until it is let go of");
        data.ok_or_else(|| BodyError::Stream(lost().into()))
    }

    /// True if anything of the body is here.
    pub(super) fn has_begun(&self) -> bool {
        !self.stream.received().bytes().is_empty()
    }

    pub(super) fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        while !self.has_begun() {
            match ready!(self.stream.poll_fill(context)).map_err(BodyError::Stream)? {
                Filled::Data => {}
                Filled::Closed | Filled::Truncated => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads past the rest, for the sake of the next request.
    pub(super) async fn discard(
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

    pub(super) async fn send(&mut self, head: &[u8]) -> Result<(), BodyError> {
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
