//! Responses that are sent from a file while it grows: what is there as from any file, then whatever comes.

use kettle_http::h1::framing::BodyWriter;
use kettle_http::range::ByteRange;

use super::placement::{Demand, PathPreference};
use super::{Delivery, DeliveryError, Piece, cut_short};
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
            let next = body.next(sent).map_err(cut_short)?;
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
                    let patience = body.patience;
                    self.unless_gone(patience, |context| body.poll_more(context, filled).map(Ok))
                        .await?;
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
}

/// What is sent before others have a turn.
const PIECE_BYTES: u64 = 1024 * 1024;
