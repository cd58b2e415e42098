//! A request's body on its way to a server, piece by piece: none is read from the client before the server has taken the one
//! before it. A response that comes in the middle ends it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use kettle_http::h1::framing::BodyFraming;
use kettle_http::h1::response::ResponseHead;
use tokio::time::timeout;

use crate::request::{BodyError, RequestBody};
use crate::upstream::{Exchange, UpstreamError};

/// How far a body got.
pub(super) enum Upload {
    /// The server has all of it.
    Complete,
    /// The server answers before its end.
    Answered(ResponseHead<Bytes>),
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

/// Sends a body of at most `bytes_max` bytes. A client that waits to be told to go on is told when the server has said so, or
/// has said nothing for a moment (RFC 9110 §10.1.1).
pub(super) async fn upload(
    exchange: &mut Exchange,
    body: &mut RequestBody<'_>,
    bytes_max: u64,
) -> Result<Upload, UploadError> {
    if body.is_awaited() {
        if let Some(head) = await_go_on(exchange).await? {
            return Ok(Upload::Answered(head));
        }
        body.go_on().await.map_err(UploadError::Client)?;
    }
    let is_chunked = body.framing() == BodyFraming::Chunked;
    loop {
        let data = {
            let mut next = pin!(body.chunk(bytes_max));
            let either = poll_fn(|context| {
                if let Poll::Ready(head) = poll_answer(exchange, context) {
                    return Poll::Ready(Err(head));
                }
                next.as_mut().poll(context).map(Ok)
            });
            match either.await {
                Ok(data) => data.map_err(UploadError::Client)?,
                Err(head) => return Ok(Upload::Answered(head?)),
            }
        };
        let Some(data) = data else { break };
        let answered = if is_chunked {
            let size = format!("{:x}\r\n", data.len());
            send(exchange, &[size.as_bytes(), data, b"\r\n"].concat()).await?
        } else {
            send(exchange, data).await?
        };
        if let Some(head) = answered {
            return Ok(Upload::Answered(head));
        }
    }
    if is_chunked && let Some(head) = send(exchange, b"0\r\n\r\n").await? {
        return Ok(Upload::Answered(head));
    }
    Ok(Upload::Complete)
}

/// Waits until the server wants the body; or for its answer, if it wants none.
async fn await_go_on(
    exchange: &mut Exchange,
) -> Result<Option<ResponseHead<Bytes>>, UpstreamError> {
    let heads = async {
        loop {
            let head = exchange.next_head().await?;
            match head.status() {
                100 => return Ok(None),
                102..=199 => {}
                _ => return Ok(Some(head)),
            }
        }
    };
    timeout(GO_ON_TIME, heads).await.unwrap_or(Ok(None))
}

/// Sends a piece; or returns the answer that came in the middle of it, also if the server takes no more after it.
async fn send(
    exchange: &mut Exchange,
    piece: &[u8],
) -> Result<Option<ResponseHead<Bytes>>, UpstreamError> {
    let mut left = piece;
    let limit = exchange.timeout();
    let sending = poll_fn(|context| {
        if let Poll::Ready(head) = poll_answer(exchange, context) {
            return Poll::Ready(head.map(Some));
        }
        exchange.poll_send(context, &mut left).map(|sent| sent.map(|()| None))
    });
    match timeout(limit, sending).await {
        Ok(Err(UpstreamError::Ended(error))) => {
            // It may have said why before it closed.
            match exchange.next_head().await {
                Ok(head) if head.status() >= 200 => Ok(Some(head)),
                _ => Err(error.into()),
            }
        }
        Ok(outcome) => outcome,
        Err(_) => Err(UpstreamError::TimedOut),
    }
}

/// A final answer; interim ones are of no use to a client that is sending.
fn poll_answer(
    exchange: &mut Exchange,
    context: &mut std::task::Context<'_>,
) -> Poll<Result<ResponseHead<Bytes>, UpstreamError>> {
    loop {
        match exchange.poll_head(context) {
            Poll::Ready(Ok(head)) if matches!(head.status(), 100 | 102..=199) => {}
            other => return other,
        }
    }
}

/// How long a client that asks first is kept waiting for a server that does not answer that.
const GO_ON_TIME: Duration = Duration::from_secs(1);
