//! Responses whose records are sealed in this process.

use kettle_http::range::Span;
use kettle_kernel::transfer::Wait;
use kettle_tls::buffers::{RECORDS_PER_READ, RECORDS_PER_WRITE};
use kettle_tls::records::PLAINTEXT_BYTES_MAX;
use kettle_tls::stream::{FileRecords, TlsStream};
use tokio::task::yield_now;

use super::{Delivery, DeliveryError, Sender, cold, cut_short};
use crate::open_file::OpenFile;
use std::sync::Arc;

impl Sender<'_> {
    /// Head and body from memory; a small response is one record and one write.
    pub(super) async fn user_memory(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        body: &[u8],
        closes: bool,
        delivery: &mut Delivery,
    ) -> Result<(), DeliveryError> {
        let mut head = head;
        let mut body = body;
        loop {
            let room = WRITE_BYTES.saturating_sub(head.len()).min(body.len());
            let (now, later) = body.split_at(room);
            stream.seal(&[head, now])?;
            if later.is_empty() && closes {
                stream.queue_close_notify();
            }
            self.flush(stream, !later.is_empty()).await?;
            delivery.body_bytes += now.len() as u64;
            if later.is_empty() {
                return Ok(());
            }
            (head, body) = (&[], later);
            yield_now().await;
        }
    }

    /// Head from memory, body from a file, read straight into the records.
    pub(super) async fn user_file(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        file: &Arc<OpenFile>,
        span: Span,
        closes: bool,
        delivery: &mut Delivery,
    ) -> Result<(), DeliveryError> {
        if span.bytes == 0 {
            return self.user_memory(stream, head, &[], closes, delivery).await;
        }
        let mut head = head;
        let mut sent_bytes = 0;
        let mut turn_bytes = 0;
        while sent_bytes < span.bytes {
            let (offset, left_bytes) = (span.start + sent_bytes, span.bytes - sent_bytes);
            let fd = file.file();
            let mut sealed = stream.seal_file(head, fd, offset, left_bytes, Wait::Never)?;
            if sealed == FileRecords::Cold {
                let chunk_bytes = left_bytes.min(READ_BYTES as u64);
                cold::warm(Arc::clone(file), offset, chunk_bytes)
                    .await
                    .map_err(DeliveryError::BodyCutShort)?;
                sealed = stream.seal_file(head, fd, offset, left_bytes, Wait::Allowed)?;
            }
            let FileRecords::Sealed(read_bytes @ 1..) = sealed else {
                return Err(cut_short());
            };
            sent_bytes += read_bytes as u64;
            let is_last = sent_bytes >= span.bytes;
            if is_last && closes {
                stream.queue_close_notify();
            }
            self.flush(stream, !is_last).await?;
            delivery.body_bytes += read_bytes as u64;
            head = &[];
            turn_bytes += read_bytes;
            if turn_bytes >= TURN_BYTES {
                turn_bytes = 0;
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Sends what is sealed, with the deadline starting again at each bit of progress.
    async fn flush(&self, stream: &mut TlsStream, more: bool) -> Result<(), DeliveryError> {
        let mut queued_bytes = stream.queued_bytes();
        let flushed = self.watch.within(self.write_timeout, |context| {
            let outcome = stream.poll_flush_before(context, more);
            if outcome.is_pending() && stream.queued_bytes() < queued_bytes {
                queued_bytes = stream.queued_bytes();
                self.watch.extend(self.write_timeout);
            }
            outcome
        });
        Ok(flushed.await??)
    }
}

/// The most plaintext that is read from a file in one go.
const READ_BYTES: usize = RECORDS_PER_READ * PLAINTEXT_BYTES_MAX;

/// The most plaintext of one write from memory.
const WRITE_BYTES: usize = RECORDS_PER_WRITE * PLAINTEXT_BYTES_MAX;

/// How much one connection sends before it lets the others have a turn.
const TURN_BYTES: usize = 4 * WRITE_BYTES;
