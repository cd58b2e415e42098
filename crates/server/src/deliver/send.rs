//! A response's body on its way to the client, whichever protocol that speaks: the only place that tells bodies apart.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use kettle_exchange::response::{Body, Growing, GrowingNext, Part};
use kettle_kernel::bug;
use kettle_runtime::spool::FlowNext;
use kettle_upstream::{UpstreamBody, UpstreamError};

use super::concurrent_upload::send_concurrently;
use super::encoded::{send_encoded, wait_for_more};
use super::{ClientSide, DeliveryError, Piece, Remaining, cut_short};
use crate::worker_state::WorkerState;

/// Sends a body to its end.
///
/// # Errors
/// [`DeliveryError`].
pub(crate) async fn send<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut Body,
) -> Result<(), DeliveryError> {
    match body {
        Body::Growing(body) => send_growing(side, body).await,
        Body::Upstream(body) => send_upstream(side, body).await,
        Body::Encoded(body) => send_encoded(side, body).await,
        body => send_whole(side, body).await,
    }
}

/// Sends what is there as a whole; nothing of one that still comes.
///
/// # Errors
/// [`DeliveryError`].
pub(super) async fn send_whole<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &Body,
) -> Result<(), DeliveryError> {
    let bytes = body.length().ok_or_else(|| bug!("what is there has a length"))?;
    let is_file = matches!(body, Body::File { .. } | Body::Parts(_));
    side.begin_whole(bytes, is_file).await?;
    let piece = match body {
        Body::Growing(_) | Body::Upstream(_) | Body::Encoded(_) => {
            return Err(bug!("what comes is not there as a whole").into());
        }
        Body::Empty => Piece::Memory(&[]),
        Body::Memory(bytes) => Piece::Memory(bytes),
        Body::File { file, span } => Piece::File(Remaining { file, span: *span }),
        Body::Parts(parts) => {
            Box::pin(send_parts(side, parts)).await?;
            return side.end_whole(bytes);
        }
    };
    match side.sending().throttle {
        Some(_) if bytes > 0 => Box::pin(side.send_portions(piece, true)).await?,
        _ => side.send_piece(piece, true).await?,
    }
    side.end_whole(bytes)
}

/// Sends parts, each by the same path; the head goes with the first.
async fn send_parts<'u, S: ClientSide<'u>>(
    side: &mut S,
    parts: &[Part],
) -> Result<(), DeliveryError> {
    for part in parts {
        let piece = match part {
            Part::Memory(bytes) => Piece::Memory(bytes),
            Part::File { file, span } => Piece::File(Remaining { file, span: *span }),
        };
        side.send_portions(piece, false).await?;
    }
    Ok(())
}

/// Sends what is in a file that grows as from any file, then whatever comes.
async fn send_growing<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut Growing,
) -> Result<(), DeliveryError> {
    side.begin_growing(body.bytes.unwrap_or_else(|| body.filled_bytes())).await?;
    let mut sent = 0;
    loop {
        match body.next(sent).map_err(cut_short)? {
            GrowingNext::Bytes(span) => {
                let allowed_bytes = side.allowed(true).await?;
                let left = Remaining { file: &body.file, span };
                let piece = Piece::File(left.first(PIECE_BYTES.min(allowed_bytes)));
                let bytes = piece.bytes();
                sent += bytes;
                side.send_chunk(piece, body.bytes == Some(sent)).await?;
                side.took(bytes);
                side.end_turn().await;
            }
            GrowingNext::Later { filled } => {
                side.send_waiting().await?;
                wait_for_more(side, body, filled).await?;
            }
            GrowingNext::End => return side.end(&[]).await,
        }
    }
}

/// Passes on what a server sends, each piece before the next but one is taken in. The head waits for nothing, but takes along what is
/// there.
async fn send_upstream<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut UpstreamBody,
) -> Result<(), DeliveryError> {
    side.begin_upstream(body).await?;
    if let Some(mut upload) = side.sending_mut().upload.take() {
        if send_concurrently(side, body, &mut upload).await? {
            return side.end(&body.take_trailers()).await;
        }
        keep_pace(side, body);
    }
    let mut next = look_ahead::<S>(body).await;
    if next.is_none() {
        side.send_waiting().await?;
    }
    loop {
        let piece = match next.take() {
            Some(piece) => piece.map_err(cut_short)?,
            None => {
                let piece = side.unless_gone(body.timeout(), |cx| body.poll_chunk(cx)).await;
                // It is not kept busy while the client takes what came.
                piece.inspect_err(|_| body.cut())?
            }
        };
        let is_direct = S::IS_DIRECT && piece.is_some() && body.direct().is_some();
        if piece.is_some() && !is_direct && !body.is_stored() {
            next = look_ahead::<S>(body).await;
        }
        let is_end = piece.is_none() || matches!(next, Some(Ok(None)));
        keep_pace(side, body);
        let trailers = is_end.then(|| body.take_trailers());
        let worker = side.worker();
        let piece = piece.unwrap_or_default();
        taken(pin!(side.pass_portions(piece, trailers)), body, worker).await?;
        if is_direct {
            side.send_direct(body).await?;
        }
        if body.is_stored() && next.is_none() && !is_end {
            // Boxed: most clients keep nobody waiting.
            return Box::pin(send_stored(side, body)).await;
        }
        if is_end || (is_direct && body.is_over()) {
            return Ok(());
        }
        side.end_turn().await;
    }
}

/// Waits for a client to take something. The bytes behind that are stored meanwhile, if they are to be.
pub(super) async fn taken<T>(
    mut taking: Pin<&mut impl Future<Output = T>>,
    body: &mut UpstreamBody,
    worker: &WorkerState,
) -> T {
    poll_fn(|context| {
        let taken = taking.as_mut().poll(context);
        if taken.is_pending() {
            body.client_waits(&worker.responder.spool, worker.responder.files.disks());
        }
        taken
    })
    .await
}

/// Sends what is stored, and what is stored meanwhile. Only a body for which there is no room keeps its server waiting.
async fn send_stored<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut UpstreamBody,
) -> Result<(), DeliveryError> {
    let mut owed = side.sending_mut().pace.take();
    loop {
        let next = side.unless_gone(Duration::MAX, |context| body.poll_stored(context)).await?;
        side.sending_mut().pace = owed.filter(|_| body.is_held_up());
        match next {
            FlowNext::Memory(bytes) => side.pass_portions(bytes.into(), None).await?,
            FlowNext::File(file, span) => {
                let allowed_bytes = side.allowed(false).await?;
                let left = Remaining { file: &file, span };
                let piece = Piece::File(left.first(PIECE_BYTES.min(allowed_bytes)));
                let bytes = piece.bytes();
                side.send_chunk(piece, false).await?;
                side.took(bytes);
                body.sent_stored(bytes);
            }
            FlowNext::End => return side.end(&body.take_trailers()).await,
        }
        owed = side.sending_mut().pace.take().or(owed);
        side.end_turn().await;
    }
}

/// Returns the bytes there, without waiting for more. Nothing where the side takes one piece at a time.
async fn look_ahead<'u, S: ClientSide<'u>>(
    body: &mut UpstreamBody,
) -> Option<Result<Option<Bytes>, UpstreamError>> {
    if !S::LOOKS_AHEAD {
        return None;
    }
    poll_fn(|context| match body.poll_chunk(context) {
        Poll::Ready(next) => Poll::Ready(Some(next)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Ends the least rate at which the client has to take its response, once that keeps no server busy.
pub(super) fn keep_pace<'u, S: ClientSide<'u>>(side: &mut S, body: &UpstreamBody) {
    if body.is_over() {
        side.sending_mut().pace = None;
    }
}

/// The bytes of a file that grows which are sent before others have a turn.
const PIECE_BYTES: u64 = 1024 * 1024;
