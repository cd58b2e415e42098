//! Responses whose records are sealed in this process.

use std::io;

use kettle_http::range::ByteRange;
use kettle_kernel::transfer::Wait;
use kettle_runtime::disk::ReadMode;
use kettle_tls::buffers::WRITE_BYTES;
use kettle_tls::stream::{FileRecords, Stream};

use super::cold::held_up_by;
use super::{Delivery, DeliveryError, Remaining, cut_short};
use std::task::Context;

impl Delivery<'_> {
    /// Head and body from memory; a small response is one record and one write.
    pub(super) async fn user_memory(
        &mut self,
        head: &[u8],
        body: &[u8],
        is_last: bool,
    ) -> Result<(), DeliveryError> {
        let mut head = head;
        let mut body = body;
        loop {
            let room = WRITE_BYTES.saturating_sub(head.len()).min(body.len());
            let (now, later) = body.split_at(room);
            self.stream.seal(&[head, now])?;
            if later.is_empty() && is_last {
                self.stream.queue_close_notify();
            }
            self.flush(!later.is_empty()).await?;
            self.delivered.body_bytes += now.len() as u64;
            if later.is_empty() {
                return Ok(());
            }
            (head, body) = (&[], later);
            self.sending.worker.send_turns.end().await;
        }
    }

    /// Head from memory, body from a file, read straight into the records.
    pub(super) async fn user_file(
        &mut self,
        mut head: &[u8],
        mut left: Remaining<'_>,
        is_last: bool,
    ) -> Result<(), DeliveryError> {
        if left.is_over() {
            return self.user_memory(head, &[], is_last).await;
        }
        while !left.is_over() {
            let read_bytes = match self.seal_from(head, left)? {
                Some(0) => return Err(cut_short(io::ErrorKind::UnexpectedEof)),
                Some(read_bytes) => {
                    left.sent(read_bytes as u64)?;
                    if left.is_over() && is_last {
                        self.stream.queue_close_notify();
                    }
                    self.flush(!left.is_over()).await?;
                    self.delivered.body_bytes += read_bytes as u64;
                    read_bytes
                }
                None => {
                    let read = self.read_ahead(left).await?;
                    left.sent(read.bytes().len() as u64)?;
                    self.user_memory(head, read.bytes(), left.is_over() && is_last).await?;
                    read.bytes().len()
                }
            };
            head = &[];
            if self.ends_turn(read_bytes as u64, TURN_BYTES) {
                self.sending.worker.send_turns.end().await;
            }
        }
        Ok(())
    }

    /// Reads and seals what may be read by the worker, and says how much; `None` if a thread has to.
    fn seal_from(
        &mut self,
        head: &[u8],
        Remaining { file, span: ByteRange { start, bytes } }: Remaining<'_>,
    ) -> Result<Option<usize>, DeliveryError> {
        if self.reading(file) == ReadMode::IfResident {
            match self.stream.seal_file(head, file.file(), start, bytes, Wait::Never)? {
                FileRecords::Sealed(read_bytes) => return Ok(Some(read_bytes)),
                FileRecords::Cold => return Ok(None),
                FileRecords::Untold => file.device().refused_to_say(),
                FileRecords::Failed(error) => return Err(DeliveryError::BodyCutShort(error)),
            }
        }
        if self.reading(file) != ReadMode::AtOnce {
            return Ok(None);
        }
        let seal = || self.stream.seal_file(head, file.file(), start, bytes, Wait::Allowed);
        match held_up_by(self.sending.worker.clock, file, seal)? {
            FileRecords::Sealed(read_bytes) => Ok(Some(read_bytes)),
            FileRecords::Cold | FileRecords::Untold => Ok(None),
            FileRecords::Failed(error) => Err(DeliveryError::BodyCutShort(error)),
        }
    }

    /// Sends what is sealed.
    pub(super) async fn flush(&mut self, more: bool) -> Result<(), DeliveryError> {
        let flush = |stream: &mut Stream, context: &mut Context<'_>| {
            stream.poll_flush_before(context, more)
        };
        self.client_takes(flush).await??;
        self.has_begun = true;
        Ok(())
    }
}

/// The bytes that one connection sends before it lets the others have a turn.
const TURN_BYTES: u64 = 4 * WRITE_BYTES as u64;
