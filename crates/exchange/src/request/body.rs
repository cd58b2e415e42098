//! Reading the body of a request, and past it.

use std::task::{Context, Poll};

use kettle_http::h1::framing::BodyFraming;

use super::source::Source;
use super::{BodyError, ClientWatch, Reading, RequestBody};

impl<'c> RequestBody<'c> {
    /// The next data of a body of at most `bytes_max` bytes, without its transfer coding; `None`
    /// at its end. The first call tells a client that waits for it to go on (RFC 9110 §10.1.1).
    ///
    /// # Errors
    /// [`BodyError`], also if the body is announced to be too long.
    pub async fn chunk(&mut self, bytes_max: u64) -> Result<Option<&[u8]>, BodyError> {
        Ok(self.chunk_and_client(bytes_max).await?.map(|(data, _)| data))
    }

    /// As [`chunk`](Self::chunk), with the client to look at as long as the data is used.
    ///
    /// # Errors
    /// As `chunk`.
    pub async fn chunk_and_client(
        &mut self,
        bytes_max: u64,
    ) -> Result<Option<(&[u8], ClientWatch<'_>)>, BodyError> {
        let outcome = self.next(bytes_max).await;
        self.is_broken |= outcome.is_err();
        let Some(data_bytes) = outcome? else { return Ok(None) };
        self.lent_bytes = data_bytes;
        Ok(Some((self.source.data(data_bytes)?, self.source.client())))
    }

    async fn next(&mut self, bytes_max: u64) -> Result<Option<usize>, BodyError> {
        // It is not kept while the next one is waited for.
        self.source.release(std::mem::take(&mut self.lent_bytes));
        if matches!(self.framing, BodyFraming::Length(bytes) if bytes > bytes_max) {
            return Err(BodyError::TooLong);
        }
        self.go_on().await?;
        let (source, reading) = self.reading();
        source.next(reading, bytes_max).await
    }

    fn reading(&mut self) -> (&mut Source<'c>, Reading<'_>) {
        let Self { source, framing, reader, total_bytes, waited, .. } = self;
        (source, Reading { framing: *framing, reader, total_bytes, waited })
    }

    /// True while a note of what was [passed on](Self::note_passed_on) is of use.
    pub fn is_probing(&self) -> bool {
        self.source.stream().is_some_and(|stream| stream.is_probing())
    }

    /// Notes that all that was given out has been passed on: the client may be far away, and get a larger window.
    pub fn note_passed_on(&self) {
        self.source.stream().inspect(|stream| stream.note_passed_on());
    }

    /// The lines of its trailer section, as HTTP/1.1 has them: once its end was read.
    pub fn trailers(&self) -> &[u8] {
        self.source.trailers(&self.reader)
    }

    /// Returns the marking of its end.
    pub fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// Says that its end is marked in another way, for somebody who is to see nothing of it; how it was marked before.
    pub fn set_framing(&mut self, framing: BodyFraming) -> BodyFraming {
        std::mem::replace(&mut self.framing, framing)
    }

    /// True if the client waits to be told to go on before it sends the body. One that has begun does not (RFC 9110 §10.1.1).
    pub fn is_awaited(&self) -> bool {
        self.is_awaited && !self.source.has_begun()
    }

    /// Ready when the client has begun it, or will not.
    pub fn poll_begun(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.source.poll_begun(context).map(|begun| self.is_awaited &= begun.is_ok())
    }

    /// Tells a client that waits for it to go on. To be waited for to its end.
    ///
    /// # Errors
    /// [`BodyError`].
    pub async fn go_on(&mut self) -> Result<(), BodyError> {
        if std::mem::take(&mut self.is_awaited) && !self.source.has_begun() {
            self.source.send_interim(CONTINUE).await?;
        }
        Ok(())
    }

    /// Sends an interim response (RFC 9110 §15.2), its head written as for HTTP/1.1. To be waited for to its end.
    ///
    /// # Errors
    /// [`BodyError`].
    pub async fn send_interim(&mut self, head: &[u8]) -> Result<(), BodyError> {
        self.source.send_interim(head).await
    }

    /// True if nothing can follow this request on its connection, as far as its body goes.
    pub fn is_last(&self) -> bool {
        let Some(bytes_max) = self.source.discard_bytes_max() else { return true };
        let is_too_long = matches!(self.framing, BodyFraming::Length(bytes) if bytes > bytes_max);
        // With a final status in place of `100 Continue`, whether the body follows is open.
        self.is_awaited || self.is_broken || (is_too_long && !self.reader.is_done())
    }

    /// Reads past what nobody wanted, up to the limit, in the time that a client may be silent.
    ///
    /// # Errors
    /// [`BodyError`] if that is not the end of it.
    pub async fn discard(&mut self) -> Result<(), BodyError> {
        self.upload = None;
        self.source.release(std::mem::take(&mut self.lent_bytes));
        if self.is_broken {
            return Ok(());
        }
        let is_awaited = self.is_awaited;
        let (source, reading) = self.reading();
        source.discard(reading, is_awaited).await
    }
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
