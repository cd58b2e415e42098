//! A request's body on its way to a server, piece by piece: none is read from the client before the server has taken the one
//! before it. A response that comes in the middle ends it, unless it means to go on: servers that pass a body back as it
//! comes begin with a 200, and send the rest of it for the rest of the body only. Over HTTP/1.1 both then go on side by side.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_http::h1::response::{ResponseFraming, ResponseHead, response_framing};
use kettle_http::trailers::TrailerFilter;
use tokio::time::{sleep, timeout};

use crate::request::{BodyError, RequestBody, chunk, last_chunk};
use crate::upstream::{InFlight, UpstreamError};

/// How far a body got.
pub(super) enum Upload {
    /// The server has all of it.
    Complete,
    /// The server answered before its end.
    Answered {
        /// How.
        head: ResponseHead<Bytes>,
        /// Whether it got the rest all the same.
        is_complete: bool,
    },
    /// The server's response begins, and the body is to go on beside it.
    Beside {
        /// How.
        head: ResponseHead<Bytes>,
        /// What the server has not taken yet of the last piece.
        unsent: Vec<u8>,
        /// Whether that is the end of the body.
        has_ended: bool,
    },
}

/// Why a body did not get to the server.
pub(super) enum UploadError {
    /// The client's part in it.
    Client(BodyError),
    /// The server's.
    Upstream(UpstreamError),
}

impl From<UpstreamError> for UploadError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

/// A response that began before the body had ended.
struct Early {
    head: ResponseHead<Bytes>,
    /// Finds its end; none if that is the connection's.
    reader: Option<BodyReader>,
    /// How much of what came was looked at.
    seen_bytes: usize,
}

/// Whether a body goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UploadStep {
    GoesOn,
    IsAnswered,
}

/// A body on its way.
struct Sending<'e> {
    in_flight: &'e mut InFlight,
    is_head: bool,
    early: Option<Early>,
    /// Whether a response can go out while the body goes on.
    is_two_way: bool,
    /// What a response left of the piece that was being sent.
    unsent: Vec<u8>,
    /// Whether that was the last one.
    has_ended: bool,
}

/// Sends a body of at most `bytes_max` bytes. A client that waits to be told to go on is told when the server has said so, or
/// has said nothing for a moment (RFC 9110 §10.1.1).
pub(super) async fn upload(
    in_flight: &mut InFlight,
    is_head: bool,
    body: &mut RequestBody<'_>,
    bytes_max: u64,
    trailers: &TrailerFilter,
) -> Result<Upload, UploadError> {
    let is_two_way = body.stream().is_some();
    let (unsent, has_ended, mut early) = (Vec::new(), false, None);
    if body.is_awaited() {
        if let Some(head) = await_go_on(in_flight).await? {
            let mut answer = Early::new(head, is_head)?;
            if !is_success(&answer.head) || answer.is_whole(in_flight.received()) {
                return Ok(Upload::Answered { head: answer.head, is_complete: false });
            }
            early = Some(answer);
        }
        // Also behind the beginning of an answer: the rest of that may be made of the body.
        body.go_on().await.map_err(UploadError::Client)?;
    }
    let mut sending = Sending { in_flight, is_head, early, is_two_way, unsent, has_ended };
    let next = if is_two_way && sending.early.is_some() {
        UploadStep::IsAnswered
    } else {
        sending.pass(body, bytes_max, trailers).await?
    };
    let Sending { early, unsent, has_ended, .. } = sending;
    Ok(match early {
        Some(Early { head, .. })
            if is_two_way && is_success(&head) && next != UploadStep::GoesOn =>
        {
            Upload::Beside { head, unsent, has_ended }
        }
        Some(Early { head, .. }) => {
            Upload::Answered { head, is_complete: next == UploadStep::GoesOn }
        }
        None => Upload::Complete,
    })
}

/// Waits until the server wants the body; or for its answer, if it wants none.
async fn await_go_on(
    in_flight: &mut InFlight,
) -> Result<Option<ResponseHead<Bytes>>, UpstreamError> {
    let limit = GO_ON_TIME.min(in_flight.timeout() / 2);
    let heads = async {
        loop {
            let head = poll_fn(|context| in_flight.poll_head(context)).await?;
            match head.status() {
                100 => return Ok(None),
                102..=199 => {}
                _ => return Ok(Some(head)),
            }
        }
    };
    timeout(limit, heads).await.unwrap_or(Ok(None))
}

impl Sending<'_> {
    /// All of a body, if no answer ends it.
    async fn pass(
        &mut self,
        body: &mut RequestBody<'_>,
        bytes_max: u64,
        trailers: &TrailerFilter,
    ) -> Result<UploadStep, UploadError> {
        let is_chunked = body.framing() == BodyFraming::Chunked;
        loop {
            let data = {
                let mut next = pin!(body.chunk(bytes_max));
                let either = poll_fn(|context| {
                    if let Poll::Ready(answered) = self.poll_answer(context) {
                        return Poll::Ready(Err(answered));
                    }
                    next.as_mut().poll(context).map(Ok)
                });
                match either.await {
                    Ok(data) => data.map_err(UploadError::Client)?,
                    Err(answered) => return Ok(answered.map(|()| UploadStep::IsAnswered)?),
                }
            };
            let Some(data) = data else { break };
            let next = if is_chunked {
                let mut piece = Vec::with_capacity(data.len() + CHUNK_BYTES_MORE);
                chunk(&mut piece, data, true);
                self.send(&piece).await?
            } else {
                self.send(data).await?
            };
            if next == UploadStep::IsAnswered {
                return Ok(next);
            }
        }
        self.has_ended = true;
        if !is_chunked {
            return Ok(UploadStep::GoesOn);
        }
        let trailers = trailers.passed_on(body.trailers());
        Ok(self.send(&last_chunk(&trailers)).await?)
    }

    /// Sends a piece, unless an answer comes in the middle of it, also if the server takes no more after it.
    async fn send(&mut self, piece: &[u8]) -> Result<UploadStep, UpstreamError> {
        let mut left = piece;
        let limit = self.in_flight.timeout();
        let mut stuck = pin!(sleep(STUCK_TIME));
        let sending = poll_fn(|context| {
            if let Poll::Ready(answered) = self.poll_answer(context) {
                return Poll::Ready(answered.map(|()| UploadStep::IsAnswered));
            }
            if let Poll::Ready(sent) = self.in_flight.poll_send(context, &mut left) {
                return Poll::Ready(sent.map(|()| UploadStep::GoesOn));
            }
            // Perhaps it waits for us to take its answer.
            if self.early.is_none() || self.in_flight.received().len() < EARLY_BYTES_MAX {
                return Poll::Pending;
            }
            stuck.as_mut().poll(context).map(|()| Ok(UploadStep::IsAnswered))
        });
        let outcome = timeout(limit, sending).await;
        self.unsent = left.to_vec();
        match outcome {
            Ok(Err(UpstreamError::Ended(_))) if self.early.is_some() => Ok(UploadStep::IsAnswered),
            Ok(Err(UpstreamError::Ended(error))) => {
                // It may have said why before it closed.
                match self.in_flight.next_head().await {
                    Ok(head) if head.status() >= 200 => {
                        self.early = Some(Early { head, reader: None, seen_bytes: 0 });
                        Ok(UploadStep::IsAnswered)
                    }
                    _ => Err(error.into()),
                }
            }
            Ok(outcome) => outcome,
            Err(_) => Err(UpstreamError::TimedOut),
        }
    }

    /// Ready when an answer ends the body: it is none of success, or it is here as a whole. Interim ones are of no use to a
    /// client that is sending.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        loop {
            let Some(early) = &mut self.early else {
                let head = ready!(self.in_flight.poll_head(context))?;
                if matches!(head.status(), 100 | 102..=199) {
                    continue;
                }
                let waits = is_success(&head) && !self.is_two_way;
                let early = Early::new(head, self.is_head)?;
                self.early = Some(early);
                if waits {
                    continue;
                }
                return Poll::Ready(Ok(()));
            };
            let received = self.in_flight.received();
            if early.is_whole(received) {
                return Poll::Ready(Ok(()));
            }
            if received.len() >= EARLY_BYTES_MAX {
                return Poll::Pending;
            }
            if ready!(self.in_flight.poll_receive(context))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl Early {
    fn new(head: ResponseHead<Bytes>, is_head: bool) -> Result<Self, UpstreamError> {
        let reader = match response_framing(&head, is_head)? {
            ResponseFraming::Marked(framing) => Some(BodyReader::new(framing)),
            ResponseFraming::UntilClose => None,
        };
        Ok(Self { head, reader, seen_bytes: 0 })
    }

    /// Whether all of it is here. What is broken is of no use to anybody's waiting either.
    fn is_whole(&mut self, received: &[u8]) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let fresh = received.get(self.seen_bytes..).unwrap_or_default();
        self.seen_bytes = received.len();
        reader.consume(fresh).map_or(true, |consumed| consumed.done)
    }
}

fn is_success(head: &ResponseHead<Bytes>) -> bool {
    (200..=299).contains(&head.status())
}

/// Room for what stands around the data of a chunk.
const CHUNK_BYTES_MORE: usize = 20;

/// How long a client that asks first is kept waiting for a server that does not answer that.
const GO_ON_TIME: Duration = Duration::from_secs(1);

/// How much of an answer is taken in while the body goes on.
const EARLY_BYTES_MAX: usize = 64 * 1_024;

/// How long a server that has answered so much may take nothing.
const STUCK_TIME: Duration = Duration::from_secs(1);
