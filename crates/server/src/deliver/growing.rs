//! Responses that are sent from a file while it grows: what is there as from any file, then whatever comes.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use kettle_http::h1::framing::BodyWriter;
use kettle_http::range::ByteRange;
use tokio::time::timeout;

use super::placement::{Demand, PathPreference};
use super::{Delivery, DeliveryError, Piece};
use crate::request::poll_client;
use crate::response::{Growing, GrowingNext};

impl Delivery<'_> {
    /// Head and body, in chunks if `is_chunked` and the length is not known.
    pub(super) async fn send_growing(
        &mut self,
        head: &[u8],
        body: &mut Growing,
        is_chunked: bool,
        preference: PathPreference,
    ) -> Result<(), DeliveryError> {
        let bytes = body.bytes.unwrap_or_else(|| body.filled_bytes());
        let demand = Demand { bytes, is_file: true, is_last: self.is_last };
        self.choose_tx_path(demand, preference).await?;
        // The head has said which.
        let mut writer = BodyWriter::new(is_chunked && body.bytes.is_none());
        let (mut prefix, mut sent) = (head.to_vec(), 0);
        loop {
            let next = body.next(sent).map_err(|why| DeliveryError::BodyCutShort(why.into()))?;
            match next {
                GrowingNext::Bytes(ByteRange { start, bytes }) => {
                    let bytes = bytes.min(PIECE_BYTES);
                    writer.begin_piece(&mut prefix, usize::try_from(bytes).unwrap_or(usize::MAX));
                    sent += bytes;
                    let is_last = self.is_last && body.bytes == Some(sent);
                    let piece = Piece::File(&body.file, ByteRange { start, bytes });
                    self.send_piece(&prefix, piece, is_last).await?;
                    prefix.clear();
                    self.worker.send_turns.end().await;
                }
                GrowingNext::Later { filled } => {
                    if !prefix.is_empty() {
                        self.send_piece(&prefix, Piece::Memory(&[]), false).await?;
                        prefix.clear();
                    }
                    self.more(body, filled).await?;
                }
                GrowingNext::End => {
                    let is_announced = body.bytes.is_some();
                    if !is_announced {
                        writer.end(&mut prefix, &[]);
                    }
                    if !prefix.is_empty() || (self.is_last && !is_announced) {
                        self.send_piece(&prefix, Piece::Memory(&[]), self.is_last).await?;
                    }
                    self.delivered.completed = true;
                    return Ok(());
                }
            }
        }
    }

    /// Waits until more is there, but not for the sake of a client that has gone.
    async fn more(&mut self, body: &mut Growing, seen: u64) -> Result<(), DeliveryError> {
        let patience = body.patience;
        let more = poll_fn(|context| {
            if body.poll_more(context, seen).is_ready() {
                return Poll::Ready(Ok(()));
            }
            match poll_client(self.stream, context) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
                _ => Poll::Pending,
            }
        });
        let late = || DeliveryError::BodyCutShort(io::ErrorKind::TimedOut.into());
        timeout(patience, more).await.unwrap_or_else(|_| Err(late()))
    }
}

/// What is sent before others have a turn.
const PIECE_BYTES: u64 = 1024 * 1024;
