//! The body of a server's response, as it comes, and what becomes of its connection.

mod buffered;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_http::h1::response::{ResponseError, ResponseFraming, ResponseHead, response_framing};
use kettle_http::trailers::TrailerFilter;
use kettle_kernel::bug;
use kettle_runtime::encoder::{Encoder, Encoding, OF_BYTES};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::in_flight::InFlight;
use super::{Link, UpstreamError, binds_connection};
use crate::backend::Socket;

use buffered::Buffering;

/// A server's response: its head as it came, fields for the next hop only among them, and its body.
#[derive(Debug)]
pub struct UpstreamResponse {
    /// Status and fields. The fields of [`ResponseHead::hop_by_hop`] are not to be passed on, nor are `content-length` and
    /// `transfer-encoding`: the body says what they mean.
    pub head: ResponseHead<Bytes>,
    /// The body. Boxed: it goes through many hands.
    pub body: Box<UpstreamBody>,
}

/// The body of a server's response. Dropped before its end, it closes the connection.
pub struct UpstreamBody {
    /// Until the body has ended.
    in_flight: Option<InFlight>,
    /// The bytes that were taken in already, and are taken next.
    ahead: VecDeque<Bytes>,
    rest: Rest,
    length: Option<u64>,
    /// True if the request went out whole, and was of the usual kind.
    may_keep: bool,
    /// True if the connection may be kept as far as the response goes.
    persists: bool,
    /// True if the end will never come.
    is_cut: bool,
    /// The trailers that are kept, if any are.
    filter: Option<Box<TrailerFilter>>,
    trailers: Vec<u8>,
    /// The encoding by which it is compressed on its way, if it is.
    encoding: Option<Box<Encoding>>,
    buffering: Buffering,
}

enum Rest {
    /// This many bytes.
    Length(u64),
    /// None, or what its coding says.
    Coded(BodyReader),
    UntilClose,
    /// The bytes until the server says that the request is over, of which this many were announced.
    UntilEnd(Option<u64>),
}

impl InFlight {
    /// Returns the answer that `head` begins. The connection is kept for another request after the end of it if `may_keep`: the
    /// request went out whole, and was of the usual kind.
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
        let body = Box::new(UpstreamBody::new(self, &head, framing, is_head, may_keep));
        Ok(UpstreamResponse { head, body })
    }
}

impl UpstreamBody {
    fn new(
        in_flight: InFlight,
        head: &ResponseHead<Bytes>,
        framing: ResponseFraming,
        is_head: bool,
        may_keep: bool,
    ) -> Self {
        let (rest, length) = match framing {
            ResponseFraming::UntilClose if in_flight.origin.says_end() => {
                (Rest::UntilEnd(None), None)
            }
            ResponseFraming::Marked(BodyFraming::Length(bytes)) if in_flight.origin.says_end() => {
                (Rest::UntilEnd(Some(bytes)), Some(bytes))
            }
            ResponseFraming::UntilClose => (Rest::UntilClose, None),
            ResponseFraming::Marked(BodyFraming::Length(bytes)) => {
                (Rest::Length(bytes), Some(bytes))
            }
            ResponseFraming::Marked(framing) => {
                let length = match framing {
                    BodyFraming::None if is_head => head.announced_length(),
                    BodyFraming::None => Some(0),
                    _ => None,
                };
                (Rest::Coded(BodyReader::of_response(framing)), length)
            }
        };
        // A server that announces a body for a response that has none may well send it. That of a 304 has the length of what is
        // not sent (RFC 9110 §8.6).
        let has_length = || head.announced_length().is_some_and(|bytes| bytes > 0);
        let has_coding = || head.header_values("transfer-encoding").next().is_some();
        let has_stray = match head.status() {
            204 => has_length() || has_coding(),
            304 => has_coding(),
            _ => false,
        };
        // The client has shown its identity, and the server may take the next request for the same client's.
        let is_bound = head.header_values("www-authenticate").any(binds_connection);
        let ends_by_close = matches!(rest, Rest::UntilClose);
        let persists = head.persists() && !has_stray && !is_bound && !ends_by_close;
        let in_flight = Some(in_flight);
        let ahead = VecDeque::new();
        let mut body = Self {
            in_flight,
            ahead,
            rest,
            length,
            may_keep,
            persists,
            is_cut: false,
            filter: None,
            trailers: Vec::new(),
            encoding: None,
            buffering: Buffering::Off,
        };
        if body.has_all() {
            body.finish();
        }
        body
    }

    /// Has it compressed on its way from here on: its length is not known any more, and what its trailers say of its bytes does not hold.
    pub fn encode(&mut self, encoder: Encoder) {
        self.length = None;
        self.encoding = Some(Box::new(Encoding::new(encoder)));
        if let Some(filter) = &mut self.filter {
            filter.drop_also(OF_BYTES);
            filter.drop_also(["etag"]);
        }
    }

    /// Its length, if that was said; of the answer to a HEAD, how long that to a GET would be.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Keeps what this leaves of the trailers; else they are read past.
    pub fn keep_trailers(&mut self, filter: TrailerFilter) {
        self.filter = Some(Box::new(filter));
    }

    /// The lines of the trailer section that were kept, after the end.
    pub fn take_trailers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.trailers)
    }

    /// Returns the next piece; `None` at the end. Nothing piles up here: what is not asked for stays in the socket. An error
    /// means that the end did not come, and that what came before must not be taken for the whole.
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

    /// The time the server may send nothing.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.in_flight.as_ref().map_or(Duration::MAX, |in_flight| in_flight.timeout)
    }

    /// As [`chunk`](Self::chunk), without a limit of time.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        let Some(mut encoding) = self.encoding.take() else { return self.poll_plain(context) };
        let next = encoding.poll_next(context, |context| self.poll_plain(context));
        match &next {
            // Nothing that follows would be what is decoded.
            Poll::Ready(Err(_)) => self.cut(),
            _ => self.encoding = Some(encoding),
        }
        next
    }

    fn poll_plain(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        match self.ahead.pop_front() {
            Some(bytes) => Poll::Ready(Ok(Some(bytes))),
            None => self.poll_receive(context),
        }
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        let next = ready!(self.try_poll_chunk(context));
        Poll::Ready(next.inspect_err(|_| self.cut()))
    }

    /// Takes in what comes until all of it is here, if it is at most `bytes_max` long, and says whether it is. The next piece
    /// afterwards begins with the first byte.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn poll_whole(
        &mut self,
        context: &mut Context<'_>,
        bytes_max: u64,
    ) -> Poll<Result<bool, UpstreamError>> {
        let mut here: u64 = self.ahead.iter().map(|bytes| bytes.len() as u64).sum();
        loop {
            if self.length.unwrap_or(here).max(here) > bytes_max {
                return Poll::Ready(Ok(false));
            }
            match ready!(self.poll_receive(context))? {
                Some(bytes) => {
                    here += bytes.len() as u64;
                    self.ahead.push_back(bytes);
                }
                None => return Poll::Ready(Ok(true)),
            }
        }
    }

    /// Reads past what is left, as long as that is short and comes soon, so that its connection can be kept.
    pub fn read_past(mut self) {
        if self.is_over() {
            return;
        }
        spawn_local(async move {
            let rest = poll_fn(|context| self.poll_whole(context, UNWANTED_BYTES_MAX));
            let _ = timeout(UNWANTED_TIME_MAX, rest).await;
        });
    }

    /// Takes in what comes first, if anything does before the end. The next piece afterwards begins with it.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        if self.ahead.is_empty() {
            let first = ready!(self.poll_receive(context))?;
            self.ahead.extend(first);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes the bytes that were taken in ahead, in memory of its own.
    pub fn take_ahead(&mut self) -> Bytes {
        let pieces: Vec<_> = std::mem::take(&mut self.ahead).into();
        pieces.concat().into()
    }

    fn try_poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, UpstreamError>> {
        if self.is_cut {
            return Poll::Ready(Err(ended_early()));
        }
        loop {
            let Some(in_flight) = &mut self.in_flight else { return Poll::Ready(Ok(None)) };
            let received = &in_flight.received;
            let (coding_bytes, data_bytes) = self.rest.next_piece(received)?;
            in_flight.received.advance(coding_bytes);
            let data = in_flight.received.split_to(data_bytes).freeze();
            if self.has_all() {
                self.finish();
            }
            if data_bytes > 0 {
                return Poll::Ready(Ok(Some(data)));
            }
            let Some(in_flight) = &mut self.in_flight else { return Poll::Ready(Ok(None)) };
            if ready!(in_flight.poll_receive(context))? == 0 {
                let is_end = match self.rest {
                    Rest::UntilClose => !in_flight.is_cut,
                    Rest::UntilEnd(None) => true,
                    _ => false,
                };
                if !is_end {
                    return Poll::Ready(Err(ended_early()));
                }
                self.finish();
            }
        }
    }

    /// Sends what is left of `left` of the request, while the response comes. After the end of the response the server
    /// takes no more.
    ///
    /// # Errors
    /// [`UpstreamError::Ended`]: the server takes no more.
    pub fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        left: &mut &[u8],
    ) -> Poll<Result<(), UpstreamError>> {
        match &mut self.in_flight {
            Some(in_flight) => in_flight.poll_send(context, left),
            None => Poll::Ready(Err(io::Error::from(io::ErrorKind::NotConnected).into())),
        }
    }

    /// The server has all of the request: after this response its connection may be kept, if `may_keep`.
    pub fn request_is_whole(&mut self, may_keep: bool) {
        self.may_keep = may_keep;
    }

    /// True if all of it was taken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.in_flight.is_none() && self.ahead.is_empty() && !self.is_cut && !self.is_stored()
    }

    /// True if the caller may receive the rest from the socket itself: its length is known, and it comes without TLS.
    pub fn is_spliceable(&self) -> bool {
        let link = self.in_flight.as_ref().map(|in_flight| &in_flight.link);
        self.encoding.is_none()
            && matches!((&self.rest, link), (Rest::Length(_), Some(Link::Plain(_))))
    }

    /// The socket and how many bytes of the body come from there, for a caller that receives them itself and reports it
    /// by [`took`](Self::took). `None` until what was received already is taken.
    pub fn direct(&self) -> Option<(&Socket, u64)> {
        let is_next = self.encoding.is_none() && self.ahead.is_empty();
        let in_flight = self.in_flight.as_ref().filter(|it| is_next && it.received.is_empty())?;
        match (&self.rest, &in_flight.link) {
            (Rest::Length(bytes), Link::Plain(socket)) => Some((socket, *bytes)),
            _ => None,
        }
    }

    /// `bytes` were received directly; 0 is the end of the connection.
    ///
    /// # Errors
    /// [`UpstreamError::Ended`] if that is not the end of the body.
    pub fn took(&mut self, bytes: usize) -> Result<(), UpstreamError> {
        if bytes == 0 {
            self.cut();
            return Err(ended_early());
        }
        if let Rest::Length(left_bytes) = &mut self.rest {
            let left = left_bytes.checked_sub(bytes as u64);
            *left_bytes = left.ok_or_else(|| bug!("no more is taken of a body than is left"))?;
        }
        if self.has_all() {
            self.finish();
        }
        Ok(())
    }

    /// Waits until something can be received directly.
    ///
    /// # Errors
    /// [`UpstreamError::Ended`].
    pub fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        match self.direct() {
            Some((socket, _)) => Poll::Ready(Ok(ready!(socket.poll_readable(context))?)),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Nothing more comes, and that was not all.
    pub fn cut(&mut self) {
        (self.in_flight, self.is_cut) = (None, true);
    }

    /// True if nothing of the response is still to come.
    fn has_all(&self) -> bool {
        match (&self.rest, &self.in_flight) {
            (Rest::UntilClose, _) => false,
            (Rest::Length(left_bytes), _) => *left_bytes == 0,
            (Rest::Coded(reader), _) => reader.is_done(),
            // The client has all of it. That the program goes on is no matter of the client's.
            (Rest::UntilEnd(Some(left_bytes)), _) => *left_bytes == 0,
            (Rest::UntilEnd(None), Some(it)) => it.origin.has_ended() && it.received.is_empty(),
            (Rest::UntilEnd(None), None) => true,
        }
    }

    /// The end was read: keeps the connection, or closes it. A server that has not got the whole request is told no end of it.
    fn finish(&mut self) {
        let Some(mut in_flight) = self.in_flight.take() else { return };
        if let (Some(filter), Rest::Coded(reader)) = (&self.filter, &self.rest) {
            self.trailers = filter.passed_on(reader.trailers());
        }
        if !in_flight.origin.is_over() {
            let may_keep = self.may_keep && self.persists && in_flight.received.is_empty();
            return in_flight.see_end(may_keep);
        }
        // Bytes that came behind the response are no answer to anything.
        let persists = self.persists && in_flight.received.is_empty() && in_flight.origin.is_over();
        match self.may_keep && !in_flight.is_cut {
            true if persists && !in_flight.link.must_close() => {
                in_flight.lease.pool.give_spare(in_flight.received);
                in_flight.lease.keep(in_flight.link);
            }
            true => in_flight.link.say_goodbye(),
            false => {}
        }
    }
}

impl Rest {
    /// Takes the body that comes, for another to take; nothing comes any more.
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Length(0))
    }

    /// Returns how much of what came is coding, and how much behind that is data.
    fn next_piece(&mut self, received: &[u8]) -> Result<(usize, usize), UpstreamError> {
        match self {
            Self::UntilClose | Self::UntilEnd(None) => Ok((0, received.len())),
            Self::Length(left_bytes) | Self::UntilEnd(Some(left_bytes)) => {
                let bytes = usize::try_from(*left_bytes).unwrap_or(usize::MAX).min(received.len());
                *left_bytes -= bytes as u64;
                Ok((0, bytes))
            }
            Self::Coded(reader) => {
                let piece = reader.next_piece(received).map_err(ResponseError::from)?;
                Ok((piece.coding_bytes, piece.data_bytes))
            }
        }
    }
}

/// The bytes that are read past of a body that nobody wants, and for how long.
const UNWANTED_BYTES_MAX: u64 = 64 * 1_024;
const UNWANTED_TIME_MAX: Duration = Duration::from_secs(1);

fn ended_early() -> UpstreamError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}

impl fmt::Debug for UpstreamBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UpstreamBody").field("length", &self.length).finish_non_exhaustive()
    }
}
