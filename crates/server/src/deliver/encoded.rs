//! Stored bodies that are compressed on their way to the client: read, coded and sent piece by piece.

use bytes::Bytes;
use kettle_exchange::response::{Body, Encoded, Growing, GrowingNext};
use kettle_http::range::ByteRange;
use kettle_kernel::bug;
use kettle_runtime::encoder::STEP_BYTES;
use tokio::task::yield_now;

use super::{ClientSide, DeliveryError, Remaining, cut_short};

/// The next part of a plain body.
enum NextPlain {
    Coded(Bytes),
    Later { filled: u64 },
    End,
}

/// Sends a body to its end. One that ends early has no coded end either.
pub(super) async fn send_encoded<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut Encoded,
) -> Result<(), DeliveryError> {
    side.begin_growing(0).await?;
    let mut done = 0;
    loop {
        match next(side, body, &mut done).await? {
            NextPlain::Coded(coded) => {
                if !coded.is_empty() {
                    side.pass_portions(coded, None).await?;
                }
                // Coding takes longer than sending: others have a turn whether or not something is sent.
                yield_now().await;
            }
            NextPlain::Later { filled } => {
                let coded = body.encoder.flush().map_err(cut_short)?;
                if !coded.is_empty() {
                    side.pass_portions(coded, None).await?;
                }
                side.send_waiting().await?;
                if let Body::Growing(growing) = &mut body.plain {
                    wait_for_more(side, growing, filled).await?;
                }
            }
            NextPlain::End => {
                let coded = body.encoder.finish().map_err(cut_short)?;
                return side.pass_portions(coded, Some(Vec::new())).await;
            }
        }
    }
}

/// Waits until more than so many bytes of a file are there.
pub(super) async fn wait_for_more<'u, S: ClientSide<'u>>(
    side: &mut S,
    body: &mut Growing,
    filled: u64,
) -> Result<(), DeliveryError> {
    let patience = body.patience;
    side.unless_gone(patience, |context| body.poll_more(context, filled).map(Ok)).await
}

/// Codes what comes behind the `done` bytes of a body.
async fn next<'u, S: ClientSide<'u>>(
    side: &mut S,
    Encoded { plain, encoder }: &mut Encoded,
    done: &mut u64,
) -> Result<NextPlain, DeliveryError> {
    let step_bytes = STEP_BYTES as u64;
    let (file, span) = match plain {
        Body::Empty => return Ok(NextPlain::End),
        Body::Memory(bytes) => {
            let piece = bytes.split_to(bytes.len().min(STEP_BYTES));
            if piece.is_empty() {
                return Ok(NextPlain::End);
            }
            return Ok(NextPlain::Coded(encoder.encode(&piece).map_err(cut_short)?));
        }
        Body::File { file, span } => {
            (&*file, ByteRange { start: span.start + *done, bytes: span.bytes - *done })
        }
        Body::Growing(growing) => match growing.next(*done).map_err(cut_short)? {
            GrowingNext::Bytes(span) => (&growing.file, span),
            GrowingNext::Later { filled } => return Ok(NextPlain::Later { filled }),
            GrowingNext::End => return Ok(NextPlain::End),
        },
        Body::Parts(_) | Body::Upstream(_) | Body::Encoded(_) => {
            return Err(bug!("what is compressed so is one body that is stored").into());
        }
    };
    if span.bytes == 0 {
        return Ok(NextPlain::End);
    }
    let read = side.read_piece(Remaining { file, span }.first(step_bytes)).await?;
    *done += read.bytes().len() as u64;
    Ok(NextPlain::Coded(encoder.encode(read.bytes()).map_err(cut_short)?))
}
