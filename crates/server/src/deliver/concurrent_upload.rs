//! Responses that begin before their request has ended, over whichever protocol: the rest of the request goes to the server while
//! the response goes to the client, until one of them is over. Nothing is spliced meanwhile.

use std::future::{pending, poll_fn};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kettle_exchange::request::{BodyError, ConcurrentUpload, PieceSource, UploadEnd};
use kettle_runtime::deadlines::Pace;
use kettle_upstream::{UpstreamBody, UpstreamError};
use tokio::time::{Instant, timeout};

use super::{ClientSide, DeliveryError, cut_short};

/// The first event.
enum Next {
    /// The server sent this; nothing is the end of its response.
    Piece(Option<Bytes>),
    /// Something of the request moved on.
    Moved,
    /// Nothing did, in the time that the client had in hand; it could not send for so long.
    Waited,
    /// The request is over.
    Passed,
}

/// Sends a body until it or the request is over. Returns true if it is the body.
pub(crate) async fn send_concurrently<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut UpstreamBody,
    upload: &mut ConcurrentUpload<'_>,
) -> Result<bool, DeliveryError> {
    let mut is_request_first = false;
    let mut silent_since = Instant::now();
    side.send_meanwhile(Bytes::new(), body, upload).await?;
    loop {
        let limit = body.timeout().saturating_sub(silent_since.elapsed());
        let next = next(side, body, upload, is_request_first, limit).await?;
        if !matches!(next, Next::Waited) {
            silent_since = Instant::now();
        }
        // Neither waits until the other one has nothing more.
        is_request_first = matches!(next, Next::Piece(_));
        match next {
            Next::Moved | Next::Waited => {}
            Next::Passed => return Ok(false),
            Next::Piece(None) => return Ok(true),
            Next::Piece(Some(bytes)) if side.sending().throttle.is_some() => {
                Box::pin(send_in_portions(side, bytes, body, upload)).await?;
            }
            Next::Piece(Some(bytes)) => side.send_meanwhile(bytes, body, upload).await?,
        }
    }
}

/// Sends a piece no faster than the response may go. The upload goes on meanwhile.
async fn send_in_portions<'u, S: ClientSide<'u>>(
    side: &mut S,
    mut piece: Bytes,
    body: &mut UpstreamBody,
    upload: &mut ConcurrentUpload<'_>,
) -> Result<(), DeliveryError> {
    while !piece.is_empty() {
        let allowed_bytes = match side.allowance() {
            Ok(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX).min(piece.len()),
            Err(wait) => {
                let moved = poll_fn(|context| poll_meanwhile(side.source(), body, upload, context));
                // Nothing has moved, or something has: it is time, or not.
                timeout(wait, moved).await.unwrap_or(Ok(()))?;
                continue;
            }
        };
        side.send_meanwhile(piece.split_to(allowed_bytes), body, upload).await?;
        side.took(allowed_bytes as u64);
    }
    Ok(())
}

/// Waits for either side, for the server at most `limit`. Where only the client keeps the server waiting, it has to send at the
/// least rate, unless it cannot.
async fn next<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut UpstreamBody,
    upload: &mut ConcurrentUpload<'_>,
    mut is_request_first: bool,
    limit: Duration,
) -> Result<Next, DeliveryError> {
    let moved_bytes = upload.moved_bytes;
    let ticks = side.ticks();
    let is_owed = upload.waits_for_client();
    let owed =
        side.sending_mut().pace.as_ref().filter(|_| is_owed).map_or(limit, Pace::left).min(limit);
    // While it is the server that has to take something, nothing is read of the client but whether it has gone.
    let (mut read, watched) = match is_owed {
        true => (Some(side.source()), None),
        false => (None, Some(&mut *side)),
    };
    let next = poll_fn(|context| {
        let read = &mut read;
        if std::mem::take(&mut is_request_first)
            && let Poll::Ready(passed) = poll_upload(read.as_deref_mut(), body, upload, context)
        {
            return Poll::Ready(passed.map(|()| Next::Passed));
        }
        if let Poll::Ready(piece) = body.poll_chunk(context) {
            return Poll::Ready(piece.map(Next::Piece).map_err(cut_short));
        }
        match poll_upload(read.as_deref_mut(), body, upload, context) {
            Poll::Ready(passed) => Poll::Ready(passed.map(|()| Next::Passed)),
            // Also where nothing moved but what the server had taken is flushed: it is the client's turn from here on.
            Poll::Pending
                if upload.moved_bytes > moved_bytes || upload.waits_for_client() != is_owed =>
            {
                Poll::Ready(Ok(Next::Moved))
            }
            Poll::Pending => match read {
                Some(source) => source.poll_left(context).map(|error| Err(error.into())),
                None => Poll::Pending,
            },
        }
    });
    let gone = async {
        match watched {
            Some(side) => side.disconnected().await,
            None => pending().await,
        }
    };
    let next = async {
        tokio::select! {
            biased;
            next = next => next,
            error = gone => Err(error.into()),
        }
    };
    let next = timeout(owed, next).await;
    let now = side.ticks();
    let could_send = side.could_send(ticks);
    if let Some(pace) = &mut side.sending_mut().pace {
        if is_owed && could_send {
            pace.waited(now.saturating_sub(ticks));
        }
        pace.took(upload.moved_bytes - moved_bytes);
        // The bytes that the server sent are not lost by that.
        if pace.left().is_zero() && matches!(next, Ok(Ok(Next::Moved)) | Err(_)) {
            return Err(DeliveryError::Stalled);
        }
    }
    match next {
        Ok(next) => next,
        Err(_) if owed < limit => Ok(Next::Waited),
        Err(_) => {
            body.cut();
            Err(cut_short(UpstreamError::TimedOut))
        }
    }
}

/// Passes on what the client sends, or without it what was read of that. Ready when that is over.
///
/// # Errors
/// [`DeliveryError`]: there is no end of the response.
pub(super) fn poll_upload<S: PieceSource>(
    source: Option<&mut S>,
    body: &mut UpstreamBody,
    upload: &mut ConcurrentUpload<'_>,
    context: &mut Context<'_>,
) -> Poll<Result<(), DeliveryError>> {
    let send = |context: &mut Context<'_>, left: &mut &[u8]| body.poll_send(context, left);
    upload.poll(source, context, send).map(|passed| match passed {
        Ok(UploadEnd::Whole { may_keep }) => {
            body.request_is_whole(may_keep);
            Ok(())
        }
        Ok(UploadEnd::Unwanted) => Ok(()),
        Err(BodyError::Stream(error)) => Err(error.into()),
        // The server must not take what it has for the whole, nor the client what comes of that.
        Err(error) => {
            body.cut();
            let kind = io::ErrorKind::InvalidData;
            let text = format!("its request: {error:?}");
            Err(DeliveryError::BodyCutShort(io::Error::new(kind, text)))
        }
    })
}

/// Looks after the upload while the client takes nothing. Ready once that moved on, or failed: the client sends, and its time
/// begins again.
///
/// # Errors
/// As [`poll_upload`].
pub(crate) fn poll_meanwhile<S: PieceSource>(
    source: &mut S,
    body: &mut UpstreamBody,
    upload: &mut ConcurrentUpload<'_>,
    context: &mut Context<'_>,
) -> Poll<Result<(), DeliveryError>> {
    let moved_bytes = upload.moved_bytes;
    match poll_upload(Some(source), body, upload, context) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        _ if upload.moved_bytes > moved_bytes => Poll::Ready(Ok(())),
        _ => Poll::Pending,
    }
}
