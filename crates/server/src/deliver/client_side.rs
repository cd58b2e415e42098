//! The requests of a response to its client's side, whichever protocol that speaks. Each edge has one type for it, known when
//! the program is compiled. All send in portions alike where the response has a rate.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kettle_exchange::request::{ConcurrentUpload, PieceSource};
use kettle_exchange::response::SendRate;
use kettle_runtime::clock::Clock as _;
use kettle_runtime::deadlines::{Deadline, Pace};
use kettle_tls::stream::StreamError;
use kettle_upstream::{UpstreamBody, UpstreamError};

use super::{DeliveryError, FileBytes, Remaining, Throttle};
use crate::worker_state::WorkerState;

/// A part of a body: bytes in memory, or a range of a file.
#[derive(Clone, Copy)]
pub(crate) enum Piece<'b> {
    Memory(&'b [u8]),
    File(Remaining<'b>),
}

impl Piece<'_> {
    /// The number of bytes it has.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(left) => left.span.bytes,
        }
    }

    /// Returns its first bytes, and the piece that is left behind them.
    fn split(self, bytes: u64) -> (Self, Option<Self>) {
        if self.bytes() <= bytes {
            return (self, None);
        }
        match self {
            Self::Memory(all) => {
                let at = usize::try_from(bytes).unwrap_or(usize::MAX).min(all.len());
                let (now, rest) = all.split_at(at);
                (Self::Memory(now), Some(Self::Memory(rest)))
            }
            Self::File(mut rest) => {
                let now = rest.first(bytes);
                let rest = rest.sent(bytes).is_ok().then_some(Self::File(rest));
                (Self::File(now), rest)
            }
        }
    }
}

/// The outcome of a step.
pub(crate) type Sent = Result<(), DeliveryError>;

/// The needs of a response on its way whichever protocol its client speaks.
pub struct Sending<'u> {
    pub(crate) worker: &'u WorkerState,
    pub(crate) deadline: &'u Deadline,
    pub(crate) write_timeout: Duration,
    /// The least rate of the client, as long as it keeps a server busy.
    pub(crate) pace: Option<Pace>,
    /// The rate that it is held to, if there is one.
    pub(crate) throttle: Option<Box<Throttle>>,
    /// The rest of the request, if that goes on to a server beside the response.
    pub(crate) upload: Option<ConcurrentUpload<'u>>,
}

impl<'u> Sending<'u> {
    /// A response whose client may take nothing for `write_timeout`.
    pub(crate) fn new(
        worker: &'u WorkerState,
        deadline: &'u Deadline,
        write_timeout: Duration,
        rate: Option<SendRate>,
        upload: Option<ConcurrentUpload<'u>>,
    ) -> Self {
        let throttle = rate.map(|rate| Throttle::new(rate, worker.clock.monotonic()));
        Self { worker, deadline, write_timeout, pace: None, throttle, upload }
    }
}

/// The client's side of an exchange while its response is sent.
pub(crate) trait ClientSide<'u> {
    /// Where the rest of the request's body comes from.
    type Source: PieceSource;

    /// True if a server's piece waits until it is known whether the one behind it is there: head, piece and end may share a record.
    const LOOKS_AHEAD: bool;

    /// True if [`send_direct`](Self::send_direct) moves bytes from a server's socket without a stop in memory of ours.
    const IS_DIRECT: bool;

    /// Returns the part that it has as each other has.
    fn sending(&self) -> &Sending<'u>;

    /// The same, to change it.
    fn sending_mut(&mut self) -> &mut Sending<'u>;

    fn worker(&self) -> &'u WorkerState {
        self.sending().worker
    }

    /// Where the rest of the request's body comes from.
    fn source(&mut self) -> &mut Self::Source;

    /// Waits until the client has gone, and reads nothing of it meanwhile but what tells that.
    fn disconnected(&mut self) -> impl Future<Output = StreamError>;

    /// Waits so long for what the response is made from, but not for the sake of a client that has gone.
    fn unless_gone<T>(
        &mut self,
        limit: Duration,
        poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, UpstreamError>>,
    ) -> impl Future<Output = Result<T, DeliveryError>>;

    /// Sends nothing for so long. Where it `is_watched`, a client that has gone ends that.
    fn pause(&mut self, time: Duration, is_watched: bool) -> impl Future<Output = Sent>;

    /// The number of ticks that have passed on its worker.
    fn ticks(&self) -> u32 {
        self.sending().deadline.ticks()
    }

    /// True if the client could send its body all the time since these ticks.
    fn could_send(&self, since: u32) -> bool;

    /// Lets others send.
    fn end_turn(&self) -> impl Future<Output = ()>;

    /// Prepares for a body of this length that is there.
    fn begin_whole(&mut self, bytes: u64, is_file: bool) -> impl Future<Output = Sent>;

    /// Ends one whose length was announced.
    fn end_whole(&mut self, bytes: u64) -> Sent;

    /// Prepares for a body of about this length that comes in a file.
    fn begin_growing(&mut self, bytes: u64) -> impl Future<Output = Sent>;

    /// Prepares for a body of a server's.
    fn begin_upstream(&mut self, body: &UpstreamBody) -> impl Future<Output = Sent>;

    /// Reads some of a piece of a file, without holding up others.
    fn read_piece(
        &mut self,
        piece: Remaining<'_>,
    ) -> impl Future<Output = Result<FileBytes, DeliveryError>>;

    /// Sends a piece as it is, behind what waits to be sent.
    fn send_piece(&mut self, piece: Piece<'_>, is_end: bool) -> impl Future<Output = Sent>;

    /// Sends a piece with what tells its length, if the head did not tell it.
    fn send_chunk(&mut self, piece: Piece<'_>, is_end: bool) -> impl Future<Output = Sent>;

    /// Sends what waits for a piece.
    fn send_waiting(&mut self) -> impl Future<Output = Sent>;

    /// Sends a piece of a server's body, and behind the last one its trailers.
    fn pass(&mut self, piece: Bytes, trailers: Option<Vec<u8>>) -> impl Future<Output = Sent>;

    /// Sends the rest of a server's body straight from its socket, as long as that is possible.
    fn send_direct(&mut self, body: &mut UpstreamBody) -> impl Future<Output = Sent>;

    /// Sends a piece of a server's body behind what waits to be sent. A client that first sends all of its request and then reads
    /// holds nothing up: the upload goes on meanwhile.
    fn send_meanwhile(
        &mut self,
        piece: Bytes,
        body: &mut UpstreamBody,
        upload: &mut ConcurrentUpload<'_>,
    ) -> impl Future<Output = Sent>;

    /// Ends a body that came piece by piece.
    fn end(&mut self, trailers: &[u8]) -> impl Future<Output = Sent>;

    /// The number of bytes it may send now.
    ///
    /// # Errors
    /// The time for which it may send none.
    fn allowance(&self) -> Result<u64, Duration> {
        let Sending { throttle, worker, .. } = self.sending();
        let allowance = |throttle: &Throttle| throttle.allowance(worker.clock.monotonic());
        throttle.as_deref().map_or(Ok(u64::MAX), allowance)
    }

    /// Waits until it may send, and says how many bytes. It looks after a client that leaves if somebody is kept busy for it.
    async fn allowed(&mut self, is_watched: bool) -> Result<u64, DeliveryError> {
        loop {
            match self.allowance() {
                Ok(bytes) => return Ok(bytes),
                // Boxed: most responses have no rate.
                Err(wait) => Box::pin(self.pause(wait, is_watched)).await?,
            }
        }
    }

    /// Notes that so many bytes went.
    fn took(&mut self, bytes: u64) {
        let Sending { throttle, worker, .. } = self.sending_mut();
        if let Some(throttle) = throttle {
            throttle.took(bytes, worker.clock.monotonic());
        }
    }

    /// Sends a piece, in portions where the response has a rate. Those who send one piece of most responses ask that first.
    async fn send_portions(&mut self, mut piece: Piece<'_>, is_end: bool) -> Sent {
        loop {
            let allowed_bytes = self.allowed(false).await?;
            let (now, rest) = piece.split(allowed_bytes);
            self.send_piece(now, is_end && rest.is_none()).await?;
            self.took(now.bytes());
            match rest {
                Some(rest) => piece = rest,
                None => return Ok(()),
            }
        }
    }

    /// Passes on a piece that was made as it goes, in portions where the response has a rate.
    async fn pass_portions(&mut self, mut piece: Bytes, mut trailers: Option<Vec<u8>>) -> Sent {
        loop {
            let allowed_bytes = match piece.is_empty() {
                // The end needs no allowance.
                true => 0,
                false => self.allowed(true).await?,
            };
            let most = usize::try_from(allowed_bytes).unwrap_or(usize::MAX);
            let now = piece.split_to(most.min(piece.len()));
            let bytes = now.len() as u64;
            let is_last = piece.is_empty();
            self.pass(now, if is_last { trailers.take() } else { None }).await?;
            self.took(bytes);
            if is_last {
                return Ok(());
            }
        }
    }
}
