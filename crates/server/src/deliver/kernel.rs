//! Responses whose records the kernel encrypts.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use kettle_http::range::Span;
use kettle_kernel::transfer::{self, Residency, Wait};
use kettle_tls::buffers::{self, RECORDS_PER_WRITE};
use kettle_tls::records::PLAINTEXT_BYTES_MAX;
use kettle_tls::stream::TlsStream;
use tokio::task::yield_now;

use super::{Delivery, DeliveryError, Sender, cold, cut_short};
use crate::clock::Clock;
use crate::open_file::OpenFile;

impl Sender<'_> {
    /// Head and body from memory in one call, so that they share the first record.
    pub(super) async fn kernel_memory(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        body: &[u8],
        delivery: &mut Delivery,
    ) -> Result<(), DeliveryError> {
        let (mut head, mut body) = (head, body);
        while !head.is_empty() || !body.is_empty() {
            let sent_bytes = self.kernel_write(stream, head, body, false).await?;
            let of_head = sent_bytes.min(head.len());
            let of_body = sent_bytes - of_head;
            head = head.get(of_head..).unwrap_or_default();
            body = body.get(of_body..).unwrap_or_default();
            delivery.body_bytes += of_body as u64;
        }
        Ok(())
    }

    /// Head by `MSG_MORE`, so that the body's first bytes fill up its record; body by sendfile.
    pub(super) async fn kernel_sendfile(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        file: &Arc<OpenFile>,
        span: Span,
        delivery: &mut Delivery,
    ) -> Result<(), DeliveryError> {
        let mut head_left = head;
        while !head_left.is_empty() {
            let sent_bytes = self.kernel_write(stream, head_left, &[], span.bytes > 0).await?;
            head_left = head_left.get(sent_bytes..).unwrap_or_default();
        }
        let mut offset = span.start;
        let end = span.start + span.bytes;
        let mut call_end = end.min(offset + first_call_bytes(head.len(), span));
        let mut resident_until = offset;
        let mut turn_bytes = 0;
        while offset < end {
            if offset >= resident_until {
                let ahead_bytes = CALL_BYTES.min(end - offset);
                self.make_resident(file, offset, ahead_bytes).await?;
                resident_until = offset + ahead_bytes;
            }
            let fd = file.file();
            let count = usize::try_from(call_end - offset).unwrap_or(usize::MAX);
            let sent_bytes = self
                .watch
                .within(self.write_timeout, |context| {
                    stream.poll_kernel_sendfile(context, fd, &mut offset, count)
                })
                .await??;
            if sent_bytes == 0 {
                return Err(cut_short());
            }
            delivery.body_bytes += sent_bytes as u64;
            turn_bytes += sent_bytes as u64;
            if offset >= call_end {
                call_end = end.min(call_end + CALL_BYTES);
            }
            if turn_bytes >= CALL_BYTES {
                turn_bytes = 0;
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Body read into memory and written: what `kernel-write` means for a file.
    pub(super) async fn kernel_file(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        file: &Arc<OpenFile>,
        span: Span,
        delivery: &mut Delivery,
    ) -> Result<(), DeliveryError> {
        if span.bytes == 0 {
            return self.kernel_memory(stream, head, &[], delivery).await;
        }
        let mut head = head;
        let mut offset = span.start;
        let end = span.start + span.bytes;
        while offset < end {
            let room = WRITE_BYTES - head.len() % PLAINTEXT_BYTES_MAX;
            let wanted = usize::try_from(end - offset).unwrap_or(usize::MAX).min(room);
            let mut buffer = buffers::take(WRITE_BYTES);
            let read = self.read(file, offset, buffer.get_mut(..wanted).unwrap_or_default()).await;
            let outcome = match read {
                Ok(0) => Err(cut_short()),
                Ok(bytes) => {
                    let body = buffer.get(..bytes).unwrap_or_default();
                    offset += bytes as u64;
                    self.kernel_memory(stream, head, body, delivery).await
                }
                Err(error) => Err(error),
            };
            buffers::give(buffer);
            outcome?;
            head = &[];
            yield_now().await;
        }
        Ok(())
    }

    async fn kernel_write(
        &self,
        stream: &mut TlsStream,
        head: &[u8],
        body: &[u8],
        more: bool,
    ) -> Result<usize, DeliveryError> {
        let sent_bytes = self.watch.within(self.write_timeout, |context| {
            let pieces = [IoSlice::new(head), IoSlice::new(body)];
            stream.poll_kernel_write(context, &pieces, more)
        });
        Ok(sent_bytes.await??)
    }

    async fn read(
        &self,
        file: &Arc<OpenFile>,
        offset: u64,
        room: &mut [u8],
    ) -> Result<usize, DeliveryError> {
        self.make_resident(file, offset, room.len() as u64).await?;
        transfer::read_at(file.file(), &mut [IoSliceMut::new(room)], offset, Wait::Allowed)
            .map_err(DeliveryError::BodyCutShort)
    }

    /// Makes sure that sending this piece waits for no disk.
    async fn make_resident(
        &self,
        file: &Arc<OpenFile>,
        offset: u64,
        bytes: u64,
    ) -> Result<(), DeliveryError> {
        let now = self.worker.clock.monotonic();
        if file.resident_until() > now {
            return Ok(());
        }
        match transfer::residency(file.file(), offset, bytes) {
            Residency::Resident if bytes >= file.bytes() => {
                file.set_resident_until(now + RESIDENCE_TRUSTED);
                Ok(())
            }
            Residency::Resident | Residency::Unknown | Residency::BeyondEnd => Ok(()),
            Residency::Cold => cold::warm(Arc::clone(file), offset, bytes)
                .await
                .map_err(DeliveryError::BodyCutShort),
        }
    }
}

/// How much of a file goes with the head by the first sendfile call. Each call ends a record, and this one ends it with a page of
/// the file: where records begin within pages, the kernel's GCM copies a block aside at every border of pages, a tenth of all
/// its work.
fn first_call_bytes(head_bytes: usize, span: Span) -> u64 {
    let room_bytes = (PLAINTEXT_BYTES_MAX - head_bytes % PLAINTEXT_BYTES_MAX) as u64;
    if span.bytes <= room_bytes {
        return span.bytes;
    }
    let page_end = (span.start + room_bytes) / PAGE_BYTES * PAGE_BYTES;
    if page_end > span.start { page_end - span.start } else { room_bytes }
}

/// A sendfile call after the first, a whole number of records; what one connection sends before it lets the others have a turn.
const CALL_BYTES: u64 = 64 * PLAINTEXT_BYTES_MAX as u64;

/// The page size of x86-64, and of most other machines.
const PAGE_BYTES: u64 = 4_096;

/// The most plaintext of one `kernel-write` of a file.
const WRITE_BYTES: usize = RECORDS_PER_WRITE * PLAINTEXT_BYTES_MAX;

/// How long a file that was wholly in the page cache is taken to be there still.
const RESIDENCE_TRUSTED: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(test)]
mod tests;
