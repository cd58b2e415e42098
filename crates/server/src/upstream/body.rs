//! The body of a server's response, as it comes, and what becomes of its connection.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_http::h1::response::{ResponseError, ResponseFraming, ResponseHead, response_framing};
use tokio::time::timeout;

use super::UpstreamError;
use super::exchange::Exchange;

/// A server's response: its head as it came, fields for the next hop only among them, and its body.
#[derive(Debug)]
pub struct UpstreamResponse {
    /// Status and fields. What [`ResponseHead::is_hop_by_hop`] says is not to be passed on, nor are `content-length` and
    /// `transfer-encoding`: the body says what they mean.
    pub head: ResponseHead<Bytes>,
    /// The body.
    pub body: UpstreamBody,
}

/// The body of a server's response. Dropped before its end, it closes the connection.
pub struct UpstreamBody {
    /// Until the body has ended.
    exchange: Option<Exchange>,
    rest: Rest,
    length: Option<u64>,
    may_keep: bool,
    /// Whether the end will never come.
    is_cut: bool,
}

enum Rest {
    Marked(BodyReader),
    UntilClose,
}

impl Exchange {
    /// What `head` begins. The connection is kept for another request after the end of it if `may_keep`: the request went
    /// out whole, and was of the usual kind.
    ///
    /// # Errors
    /// [`UpstreamError::Malformed`] if its end is in doubt.
    pub fn answer(
        self,
        head: ResponseHead<Bytes>,
        is_head: bool,
        may_keep: bool,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let framing = response_framing(&head, is_head)?;
        let body = UpstreamBody::new(self, &head, framing, is_head, may_keep);
        Ok(UpstreamResponse { head, body })
    }
}

impl UpstreamBody {
    fn new(
        exchange: Exchange,
        head: &ResponseHead<Bytes>,
        framing: ResponseFraming,
        is_head: bool,
        may_keep: bool,
    ) -> Self {
        let (rest, length) = match framing {
            ResponseFraming::UntilClose => (Rest::UntilClose, None),
            ResponseFraming::Marked(framing) => {
                let length = match framing {
                    BodyFraming::None if is_head => head.announced_length(),
                    BodyFraming::None => Some(0),
                    BodyFraming::Length(bytes) => Some(bytes),
                    BodyFraming::Chunked => None,
                };
                (Rest::Marked(BodyReader::new(framing)), length)
            }
        };
        // A server that announces a body for a response that has none may well send it.
        let has_stray = head.status() == 204
            && (head.announced_length().is_some_and(|bytes| bytes > 0)
                || head.header_values("transfer-encoding").next().is_some());
        let may_keep = may_keep && head.persists() && !has_stray;
        let mut body = Self { exchange: Some(exchange), rest, length, may_keep, is_cut: false };
        if matches!(&body.rest, Rest::Marked(reader) if reader.is_done()) {
            body.finish();
        }
        body
    }

    /// How long it is, if that was said; of the answer to a HEAD, how long that to a GET would be.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// What came next; `None` at the end. Nothing piles up here: what is not asked for stays in the socket. An error means
    /// that the end did not come, and that what came before must not be taken for the whole.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        let limit = self.timeout();
        let next = timeout(limit, poll_fn(|context| self.poll_chunk(context))).await;
        next.unwrap_or_else(|_| {
            self.cut();
            Err(UpstreamError::TimedOut)
        })
    }

    /// How long the server may send nothing.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.exchange.as_ref().map_or(Duration::MAX, |exchange| exchange.timeout)
    }

    /// As [`chunk`](Self::chunk), without a limit of time.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        let next = ready!(self.try_poll_chunk(context));
        Poll::Ready(next.inspect_err(|_| self.cut()))
    }

    fn try_poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        if self.is_cut {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
        }
        loop {
            let Some(exchange) = &mut self.exchange else { return Poll::Ready(Ok(None)) };
            let (data_bytes, is_done) = match &mut self.rest {
                Rest::UntilClose => (exchange.received.len(), false),
                Rest::Marked(reader) => {
                    let piece =
                        reader.next_piece(&exchange.received).map_err(ResponseError::from)?;
                    exchange.received.advance(piece.coding_bytes);
                    (piece.data_bytes, reader.is_done())
                }
            };
            let data = exchange.received.split_to(data_bytes).freeze();
            if is_done {
                self.finish();
            }
            if data_bytes > 0 {
                return Poll::Ready(Ok(Some(data)));
            }
            let Some(exchange) = &mut self.exchange else { return Poll::Ready(Ok(None)) };
            if ready!(exchange.poll_receive(context))? == 0 {
                if matches!(self.rest, Rest::Marked(_)) {
                    return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
                }
                self.exchange = None;
            }
        }
    }

    /// Nothing more comes, and that was not all.
    pub(crate) fn cut(&mut self) {
        (self.exchange, self.is_cut) = (None, true);
    }

    /// The end was read: keeps the connection, or closes it.
    fn finish(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        // What came behind the response is no answer to anything.
        if self.may_keep && exchange.received.is_empty() {
            exchange.lease.keep(exchange.link);
        }
    }
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UpstreamBody").field("length", &self.length).finish_non_exhaustive()
    }
}
