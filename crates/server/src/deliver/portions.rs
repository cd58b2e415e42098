//! Sending what a response with a rate may send, over whichever protocol, and waiting in between.

use std::time::Duration;

use bytes::Bytes;
use kettle_runtime::clock::Clock as _;

use super::{ClientSide, DeliveryError, Piece, Sending, Throttle};

/// Waits until a side may send, and says how many bytes. It looks after a client that leaves if somebody is kept busy for it.
pub(super) async fn allowed<'u, S: ClientSide<'u>>(
    side: &mut S,
    is_watched: bool,
) -> Result<u64, DeliveryError> {
    loop {
        match allowance(side) {
            Ok(bytes) => return Ok(bytes),
            // Boxed: most responses have no rate.
            Err(wait) => Box::pin(side.pause(wait, is_watched)).await?,
        }
    }
}

/// The number of bytes a side may send now.
///
/// # Errors
/// How long it may send none.
pub(super) fn allowance<'u, S: ClientSide<'u>>(side: &mut S) -> Result<u64, Duration> {
    let Sending { throttle, worker, .. } = side.sending();
    let allowance = |throttle: &Throttle| throttle.allowance(worker.clock.monotonic());
    throttle.as_deref().map_or(Ok(u64::MAX), allowance)
}

/// Notes that so many bytes went.
pub(super) fn took<'u, S: ClientSide<'u>>(side: &mut S, bytes: u64) {
    let Sending { throttle, worker, .. } = side.sending_mut();
    if let Some(throttle) = throttle {
        throttle.took(bytes, worker.clock.monotonic());
    }
}

/// Sends a piece, in portions where the response has a rate. Those who send one piece of most responses ask that first.
pub(super) async fn send_piece<'u, S: ClientSide<'u>>(
    side: &mut S,
    mut piece: Piece<'_>,
    is_end: bool,
) -> Result<(), DeliveryError> {
    loop {
        let allowed_bytes = allowed(side, false).await?;
        let (now, rest) = split(piece, allowed_bytes);
        side.send_piece(now, is_end && rest.is_none()).await?;
        took(side, now.bytes());
        match rest {
            Some(rest) => piece = rest,
            None => return Ok(()),
        }
    }
}

/// Passes on a piece that was made as it goes, in portions where the response has a rate.
pub(super) async fn pass<'u, S: ClientSide<'u>>(
    side: &mut S,
    mut piece: Bytes,
    mut trailers: Option<Vec<u8>>,
) -> Result<(), DeliveryError> {
    loop {
        let allowed_bytes = match piece.is_empty() {
            // The end needs no allowance.
            true => 0,
            false => allowed(side, true).await?,
        };
        let now =
            piece.split_to(usize::try_from(allowed_bytes).unwrap_or(usize::MAX).min(piece.len()));
        let bytes = now.len() as u64;
        let is_last = piece.is_empty();
        side.pass(now, if is_last { trailers.take() } else { None }).await?;
        took(side, bytes);
        if is_last {
            return Ok(());
        }
    }
}

/// The first bytes of a piece, and what is left behind them.
fn split(piece: Piece<'_>, bytes: u64) -> (Piece<'_>, Option<Piece<'_>>) {
    if piece.bytes() <= bytes {
        return (piece, None);
    }
    match piece {
        Piece::Memory(all) => {
            let at = usize::try_from(bytes).unwrap_or(usize::MAX).min(all.len());
            let (now, rest) = all.split_at(at);
            (Piece::Memory(now), Some(Piece::Memory(rest)))
        }
        Piece::File(mut rest) => {
            let now = rest.first(bytes);
            let rest = rest.sent(bytes).is_ok().then_some(Piece::File(rest));
            (Piece::File(now), rest)
        }
    }
}
