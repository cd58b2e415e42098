//! A request's body on its way to a server, piece by piece: none is read from the client before the server has taken the one
//! before it. A response that comes in the middle ends it, unless it means to go on: servers that pass a body back as it
//! comes begin with a 200, and send the rest of it for the rest of the body only. Both then go on side by side.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use kettle_exchange::request::{BodyError, ClientWatch, RequestBody};
use kettle_http::h1::framing::{BodyFraming, BodyReader};
use kettle_http::h1::response::{ResponseFraming, ResponseHead, response_framing};
use kettle_http::trailers::TrailerFilter;
use kettle_runtime::spool::{SpoolError, Spooled};
use kettle_upstream::{BodyCoding, InFlight, UpstreamError};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// The progress of a body.
pub(super) enum Upload {
    /// The server has all of it.
    Complete,
    /// The server answered, and gets no more of it.
    Answered(ResponseHead<Bytes>),
    /// The server's response begins, and the body is to go on beside it.
    Concurrent {
        head: ResponseHead<Bytes>,
        /// The part of the last piece that the server has not taken yet.
        unsent: Vec<u8>,
        /// True if that is the end of the body.
        has_ended: bool,
    },
}

/// Why a body did not get to the server.
pub(super) enum UploadError {
    /// The client's part in it.
    Client(BodyError),
    /// The server's.
    Upstream(UpstreamError),
    /// The client has gone while the server took nothing.
    Disconnected,
    /// A stored body cannot be read.
    Spool(SpoolError),
}

impl From<UpstreamError> for UploadError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

/// A body on its way.
struct Sending<'e> {
    in_flight: &'e mut InFlight,
    /// The part of the piece being sent that a response left.
    unsent: Vec<u8>,
    /// True if that was the last one.
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
    if body.is_awaited() {
        let answer = await_go_on(in_flight, body).await?;
        if let Some(head) = &answer
            && (!is_success(head) || is_whole(head, is_head, in_flight.received())?)
        {
            return Ok(answer.map_or(Upload::Complete, Upload::Answered));
        }
        // Also behind the beginning of an answer: the rest of that may be made of the body.
        body.go_on().await.map_err(UploadError::Client)?;
        if let Some(head) = answer {
            return Ok(Upload::Concurrent { head, unsent: Vec::new(), has_ended: false });
        }
    }
    let mut sending = Sending { in_flight, unsent: Vec::new(), has_ended: false };
    let answer = sending.pass(body, bytes_max, trailers).await?;
    Ok(sending.concluded(answer))
}

/// Sends a body that was stored.
pub(super) async fn upload_stored(
    in_flight: &mut InFlight,
    stored: &mut Spooled,
) -> Result<Upload, UploadError> {
    let coding = in_flight.body_coding(BodyFraming::Length(stored.bytes()));
    let mut sending = Sending { in_flight, unsent: Vec::new(), has_ended: false };
    let mut answer = None;
    while answer.is_none() && !stored.is_at_end() {
        let piece = stored.next().await.map_err(UploadError::Spool)?;
        sending.has_ended = stored.is_at_end();
        let piece = coding.of_stored(piece, sending.has_ended);
        answer = sending.send_piece(&piece).await?;
    }
    Ok(sending.concluded(answer))
}

/// Waits until the server wants the body, or the client begins it unasked; or for the server's answer, if it wants none.
async fn await_go_on(
    in_flight: &mut InFlight,
    body: &mut RequestBody<'_>,
) -> Result<Option<ResponseHead<Bytes>>, UpstreamError> {
    if !in_flight.says_go_on() {
        return Ok(None);
    }
    let limit = GO_ON_TIME.min(in_flight.timeout() / 2);
    let heads = async {
        loop {
            let head = poll_fn(|context| match in_flight.poll_head(context) {
                Poll::Pending if body.poll_begun(context).is_ready() => Poll::Ready(Ok(None)),
                head => head.map_ok(Some),
            });
            let Some(head) = head.await? else { return Ok(None) };
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
    /// Returns the progress of the body.
    fn concluded(self, answer: Option<ResponseHead<Bytes>>) -> Upload {
        let Self { unsent, has_ended, .. } = self;
        match answer {
            None => Upload::Complete,
            Some(head) if is_success(&head) => Upload::Concurrent { head, unsent, has_ended },
            Some(head) => Upload::Answered(head),
        }
    }

    /// All of a body, or the head of an answer that comes before its end.
    async fn pass(
        &mut self,
        body: &mut RequestBody<'_>,
        bytes_max: u64,
        trailers: &TrailerFilter,
    ) -> Result<Option<ResponseHead<Bytes>>, UploadError> {
        let coding = self.in_flight.body_coding(body.framing());
        let mut was_drained = false;
        loop {
            if was_drained {
                body.note_passed_on();
            }
            let is_probing = body.is_probing();
            let data = {
                let mut next = pin!(body.chunk_and_client(bytes_max));
                let either = poll_fn(|context| {
                    if let Poll::Ready(answer) = self.poll_answer(context) {
                        return Poll::Ready(Err(answer));
                    }
                    next.as_mut().poll(context).map(Ok)
                });
                match either.await {
                    Ok(data) => data.map_err(UploadError::Client)?,
                    Err(answer) => return Ok(Some(answer?)),
                }
            };
            // Before more is sent: what was sent before had time to be taken.
            was_drained = is_probing && self.in_flight.is_drained();
            let Some((data, client)) = data else { break };
            let answer = if coding == BodyCoding::AsItIs {
                self.send(data, client).await?
            } else {
                let mut piece = Vec::with_capacity(data.len() + CODING_BYTES_USUAL);
                coding.write(&mut piece, data);
                self.send(&piece, client).await?
            };
            if answer.is_some() {
                return Ok(answer);
            }
        }
        self.has_ended = true;
        if coding == BodyCoding::AsItIs {
            return Ok(None);
        }
        let mut end = Vec::new();
        coding.end(&mut end, &trailers.passed_on(body.trailers()));
        self.send(&end, body.client()).await
    }

    /// Sends a piece, unless the client goes meanwhile, or an answer comes in the middle of it, also if the server takes no more
    /// after it.
    async fn send(
        &mut self,
        piece: &[u8],
        client: ClientWatch<'_>,
    ) -> Result<Option<ResponseHead<Bytes>>, UploadError> {
        tokio::select! {
            biased;
            sent = self.send_piece(piece) => Ok(sent?),
            () = client.gone() => Err(UploadError::Disconnected),
        }
    }

    async fn send_piece(
        &mut self,
        piece: &[u8],
    ) -> Result<Option<ResponseHead<Bytes>>, UpstreamError> {
        let mut left = piece;
        let limit = self.in_flight.timeout();
        let sending = while_taken(limit, &mut left, |context, left| {
            if let Poll::Ready(answer) = self.poll_answer(context) {
                return Poll::Ready(answer.map(Some));
            }
            self.in_flight.poll_send(context, left).map_ok(|()| None)
        });
        let outcome = sending.await;
        self.unsent = left.to_vec();
        match outcome {
            Ok(Err(UpstreamError::Ended(error))) => {
                // It may have said why before it closed.
                match timeout(limit, poll_fn(|context| self.poll_answer(context))).await {
                    Ok(Ok(head)) if head.status() >= 200 => Ok(Some(head)),
                    _ => Err(error.into()),
                }
            }
            Ok(outcome) => outcome,
            Err(_) => Err(UpstreamError::TimedOut),
        }
    }

    /// Ready when an answer begins. Interim ones are of no use to a client that is sending.
    fn poll_answer(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead<Bytes>, UpstreamError>> {
        loop {
            let head = ready!(self.in_flight.poll_head(context))?;
            if !matches!(head.status(), 100 | 102..=199) {
                return Poll::Ready(Ok(head));
            }
        }
    }
}

/// Waits for `send`, as long as the server takes some of `left` within `limit`, again and again.
async fn while_taken<T>(
    limit: Duration,
    left: &mut &[u8],
    mut send: impl FnMut(&mut Context<'_>, &mut &[u8]) -> Poll<T>,
) -> Result<T, Elapsed> {
    loop {
        let left_bytes = left.len();
        let sent = poll_fn(|context| match send(context, left) {
            Poll::Ready(sent) => Poll::Ready(Some(sent)),
            // It takes: its time begins again.
            Poll::Pending if left.len() < left_bytes => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        if let Some(sent) = timeout(limit, sent).await? {
            return Ok(sent);
        }
    }
}

/// Tells whether all of a response is here. A broken response is of no use to anybody's waiting either.
fn is_whole(
    head: &ResponseHead<Bytes>,
    is_head: bool,
    received: &[u8],
) -> Result<bool, UpstreamError> {
    Ok(match response_framing(head, is_head)? {
        ResponseFraming::Marked(framing) => {
            let consumed = BodyReader::of_response(framing).consume(received);
            consumed.map_or(true, |consumed| consumed.done)
        }
        ResponseFraming::UntilClose => false,
    })
}

fn is_success(head: &ResponseHead<Bytes>) -> bool {
    (200..=299).contains(&head.status())
}

/// Room for what stands around the data of a piece.
const CODING_BYTES_USUAL: usize = 20;

/// The time a client that asks first is kept waiting for a server that does not answer that.
const GO_ON_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tokio::time::interval;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_has_its_time_for_each_part_of_a_piece_that_it_takes() {
        let second = Duration::from_secs(1);
        for (pause, is_patient) in [(second * 9 / 10, true), (second * 2, false)] {
            let mut part = interval(pause);
            let mut left = &b"a piece of ten parts"[..];
            let sent = while_taken(second, &mut left, |context, left| {
                while !left.is_empty() {
                    ready!(part.poll_tick(context));
                    *left = &left[2..];
                }
                Poll::Ready(())
            });
            assert_eq!(sent.await.is_ok(), is_patient);
            assert_eq!(left.is_empty(), is_patient, "what is not sent is known");
        }
    }
}
