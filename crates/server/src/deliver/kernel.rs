//! Responses whose records the kernel encrypts.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::Context;

use kettle_http::range::ByteRange;
use kettle_tls::buffers::WRITE_BYTES;
use kettle_tls::records::PLAINTEXT_BYTES_MAX;
use kettle_tls::stream::TlsStream;

use super::{Delivery, DeliveryError, cut_short};
use crate::open_file::OpenFile;
use crate::tx_path::{Reason, TxPath};

impl Delivery<'_> {
    /// Head and body from memory in one call, so that they share the first record.
    pub(super) async fn kernel_memory(
        &mut self,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), DeliveryError> {
        let (mut head, mut body) = (head, body);
        while !head.is_empty() || !body.is_empty() {
            let sent_bytes = self.kernel_write(head, body, false).await?;
            let of_head = sent_bytes.min(head.len());
            let of_body = sent_bytes - of_head;
            head = head.get(of_head..).unwrap_or_default();
            body = body.get(of_body..).unwrap_or_default();
            self.delivered.body_bytes += of_body as u64;
        }
        Ok(())
    }

    /// Head by `MSG_MORE`, so that the body's first bytes fill up its record; body by sendfile.
    pub(super) async fn kernel_sendfile(
        &mut self,
        head: &[u8],
        file: &Arc<OpenFile>,
        span: ByteRange,
    ) -> Result<(), DeliveryError> {
        if span.bytes == 0 {
            return self.kernel_memory(head, &[]).await;
        }
        let mut offset = span.start;
        let end = span.start + span.bytes;
        let mut call_end = end.min(offset + first_call_bytes(head.len(), span));
        let mut head = head;
        let mut resident_until = offset;
        let mut turn_bytes = 0;
        while offset < end {
            // What a call reads is made sure of before it: after the first, a whole call at a time.
            if resident_until < call_end {
                let ahead_bytes = warm_end(call_end, offset == span.start).min(end) - offset;
                if !self.warm(file, offset, ahead_bytes).await? {
                    let read = self.read_ahead(file, offset, ahead_bytes).await?;
                    (self.delivered.path, self.delivered.reason) =
                        (TxPath::KernelWrite, Some(Reason::SlowDisk));
                    self.kernel_memory(std::mem::take(&mut head), read.bytes()).await?;
                    offset += read.bytes().len() as u64;
                    call_end = end.min(offset + CALL_BYTES);
                    continue;
                }
                resident_until = offset + ahead_bytes;
            }
            while !head.is_empty() {
                let sent_bytes = self.kernel_write(head, &[], true).await?;
                head = head.get(sent_bytes..).unwrap_or_default();
            }
            let fd = file.file();
            let count = usize::try_from(call_end - offset).unwrap_or(usize::MAX);
            let sent_bytes = self
                .deadline
                .within(self.write_timeout, |context| {
                    self.stream.poll_kernel_sendfile(context, fd, &mut offset, count)
                })
                .await??;
            if sent_bytes == 0 {
                // What the head's record waited for does not come.
                self.client_takes(TlsStream::poll_kernel_push).await??;
                return Err(cut_short(io::ErrorKind::UnexpectedEof));
            }
            self.delivered.body_bytes += sent_bytes as u64;
            turn_bytes += sent_bytes as u64;
            if offset >= call_end {
                call_end = end.min(call_end + CALL_BYTES);
            }
            if turn_bytes >= CALL_BYTES {
                turn_bytes = 0;
                self.worker.send_turns.end().await;
            }
        }
        Ok(())
    }

    /// Body read into memory and written: what `kernel-write` means for a file.
    pub(super) async fn kernel_file(
        &mut self,
        head: &[u8],
        file: &Arc<OpenFile>,
        span: ByteRange,
    ) -> Result<(), DeliveryError> {
        if span.bytes == 0 {
            return self.kernel_memory(head, &[]).await;
        }
        let mut head = head;
        let mut offset = span.start;
        let end = span.start + span.bytes;
        while offset < end {
            // The head's bytes come out of the last record, so that none is nearly empty.
            let room_bytes = (WRITE_BYTES - head.len() % PLAINTEXT_BYTES_MAX) as u64;
            let read = self.read(file, offset, room_bytes.min(end - offset)).await?;
            self.kernel_memory(head, read.bytes()).await?;
            offset += read.bytes().len() as u64;
            head = &[];
            self.worker.send_turns.end().await;
        }
        Ok(())
    }

    async fn kernel_write(
        &mut self,
        head: &[u8],
        body: &[u8],
        more: bool,
    ) -> Result<usize, DeliveryError> {
        let write = |stream: &mut TlsStream, context: &mut Context<'_>| {
            let pieces = [IoSlice::new(head), IoSlice::new(body)];
            stream.poll_kernel_write(context, &pieces, more)
        };
        let sent_bytes = self.client_takes(write).await??;
        self.note_taken(sent_bytes);
        self.has_begun |= sent_bytes > 0;
        Ok(sent_bytes)
    }
}

/// How much of a file goes with the head by the first sendfile call. Each call ends a record, and this one ends it with a page of
/// the file: where records begin within pages, the kernel's GCM copies a block aside at every border of pages, a tenth of all
/// its work.
fn first_call_bytes(head_bytes: usize, span: ByteRange) -> u64 {
    let room_bytes = (PLAINTEXT_BYTES_MAX - head_bytes % PLAINTEXT_BYTES_MAX) as u64;
    if span.bytes <= room_bytes {
        return span.bytes;
    }
    let page_end = (span.start + room_bytes) / PAGE_BYTES * PAGE_BYTES;
    if page_end > span.start { page_end - span.start } else { room_bytes }
}

/// Up to where a file is made sure of to be in memory before a sendfile call that ends here. The first, which is short, takes
/// the second along.
fn warm_end(call_end: u64, is_first: bool) -> u64 {
    if is_first { call_end + CALL_BYTES } else { call_end }
}

/// A sendfile call after the first, a whole number of records; what one connection sends before it lets the others have a turn.
const CALL_BYTES: u64 = 64 * PLAINTEXT_BYTES_MAX as u64;

/// The page size of x86-64, and of most other machines.
const PAGE_BYTES: u64 = 4_096;

#[cfg(test)]
mod tests;
