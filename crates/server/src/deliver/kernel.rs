//! Responses whose records the kernel encrypts, and those of plain connections.

use std::io::{self, IoSlice};
use std::task::Context;

use kettle_http::range::ByteRange;
use kettle_kernel::ktls;
use kettle_runtime::tx_path::{Reason, TxPath};
use kettle_tls::buffers::WRITE_BYTES;
use kettle_tls::records::PLAINTEXT_BYTES_MAX;
use kettle_tls::stream::{Stream, StreamError};

use super::{Delivery, DeliveryError, Remaining, cut_short, rest};

impl Delivery<'_> {
    /// Head and body from memory in one call, so that they share the first record.
    pub(super) async fn kernel_memory(
        &mut self,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), DeliveryError> {
        let mut head = head;
        let mut body = body;
        while !head.is_empty() || !body.is_empty() {
            // A whole number of records, as long as the kernel takes all.
            let room = usize::try_from(CALL_BYTES).unwrap_or(usize::MAX).saturating_sub(head.len());
            let now = body.get(..room).unwrap_or(body);
            let sent_bytes = self.kernel_write(head, now, false).await?;
            let of_head = sent_bytes.min(head.len());
            let of_body = sent_bytes - of_head;
            (head, body) = (rest(head, of_head)?, rest(body, of_body)?);
            self.delivered.body_bytes += of_body as u64;
            if self.ends_turn(sent_bytes as u64, CALL_BYTES) {
                self.sending.worker.send_turns.end().await;
            }
        }
        Ok(())
    }

    /// Head by `MSG_MORE`, so that the body's first bytes fill up its record; body by sendfile.
    pub(super) async fn kernel_sendfile(
        &mut self,
        mut head: &[u8],
        mut left: Remaining<'_>,
    ) -> Result<(), DeliveryError> {
        if left.is_over() {
            return self.kernel_memory(head, &[]).await;
        }
        let begin = left.span.start;
        let mut call = left.first(match self.stream.is_plain() {
            true => CALL_BYTES,
            false => first_call_bytes(head.len(), left.span),
        });
        let mut resident_until = begin;
        let mut looked_at = self.sending.deadline.ticks();
        while !left.is_over() {
            // The bytes that a call reads are made sure of before it: after the first, a whole call at a time. Bytes that were
            // in memory a tick ago may have left it.
            if resident_until < call.span.end() || looked_at != self.sending.deadline.ticks() {
                let offset = left.span.start;
                let ahead = left.first(warm_end(call.span.end(), offset == begin) - offset);
                let warmed = self.warm(ahead).await;
                if !self.or_end_early(head, warmed).await? {
                    let read = self.read_ahead(ahead).await;
                    let read = self.or_end_early(head, read).await?;
                    (self.delivered.path, self.delivered.reason) =
                        (TxPath::KernelWrite, Some(Reason::SlowDisk));
                    self.kernel_memory(std::mem::take(&mut head), read.bytes()).await?;
                    left.sent(read.bytes().len() as u64)?;
                    (call, resident_until) = (left.first(CALL_BYTES), left.span.start);
                    continue;
                }
                (resident_until, looked_at) = (ahead.span.end(), self.sending.deadline.ticks());
            }
            while !head.is_empty() {
                let sent_bytes = self.kernel_write(head, &[], true).await?;
                head = rest(head, sent_bytes)?;
            }
            let sent_bytes = self.sendfile(call, looked_at).await?;
            self.delivered.body_bytes += sent_bytes;
            left.sent(sent_bytes)?;
            call.sent(sent_bytes)?;
            if call.is_over() {
                call = left.first(CALL_BYTES);
            }
            if self.ends_turn(sent_bytes, CALL_BYTES) {
                self.sending.worker.send_turns.end().await;
            }
        }
        Ok(())
    }

    /// One call, which returns how much it sent, from where was looked at this tick what is in memory. If it has to wait until a
    /// later one, nothing is sent.
    async fn sendfile(
        &mut self,
        Remaining { file, span }: Remaining<'_>,
        looked_at: u32,
    ) -> Result<u64, DeliveryError> {
        let count = usize::try_from(span.bytes).unwrap_or(usize::MAX);
        let mut offset = span.start;
        let deadline = self.sending.deadline;
        let call = |context: &mut Context<'_>| {
            if deadline.ticks() == looked_at {
                return self
                    .stream
                    .poll_kernel_sendfile(context, file.file(), &mut offset, count)
                    .map(Some);
            }
            // The task that looks again waits no longer for that: there is room now.
            self.stream.tcp().poll_write_ready(context).map(|_| None)
        };
        match deadline.within(self.sending.write_timeout, call).await? {
            Some(Ok(0)) => Err(self.end_early(cut_short(io::ErrorKind::UnexpectedEof)).await),
            Some(Err(StreamError::Io(error))) if !is_of_socket(&error) => {
                Err(self.end_early(cut_short(error)).await)
            }
            Some(Err(error)) => Err(error.into()),
            Some(Ok(_)) | None => Ok(offset - span.start),
        }
    }

    /// Returns the outcome of asking the disk. Where it failed, and the head has gone already, that may be in a record that
    /// waits for more.
    async fn or_end_early<T>(
        &mut self,
        head: &[u8],
        outcome: Result<T, DeliveryError>,
    ) -> Result<T, DeliveryError> {
        match outcome {
            Err(cut) if head.is_empty() => Err(self.end_early(cut).await),
            outcome => outcome,
        }
    }

    /// The bytes for which the head's record waited do not come: it goes without.
    async fn end_early(&mut self, cut: DeliveryError) -> DeliveryError {
        match self.client_takes(Stream::poll_kernel_push).await {
            Ok(Ok(())) => cut,
            Ok(Err(error)) => error.into(),
            Err(interrupt) => interrupt.into(),
        }
    }

    /// Body read into memory and written: what `kernel-write` means for a file.
    pub(super) async fn kernel_file(
        &mut self,
        mut head: &[u8],
        mut left: Remaining<'_>,
    ) -> Result<(), DeliveryError> {
        if left.is_over() {
            return self.kernel_memory(head, &[]).await;
        }
        while !left.is_over() {
            // The head's bytes come out of the last record, so that none is nearly empty.
            let room_bytes = (WRITE_BYTES - head.len() % PLAINTEXT_BYTES_MAX) as u64;
            let read = self.read(left.first(room_bytes)).await?;
            self.kernel_memory(head, read.bytes()).await?;
            left.sent(read.bytes().len() as u64)?;
            (head, self.turn_bytes) = (&[], 0);
            self.sending.worker.send_turns.end().await;
        }
        Ok(())
    }

    async fn kernel_write(
        &mut self,
        head: &[u8],
        body: &[u8],
        more: bool,
    ) -> Result<usize, DeliveryError> {
        let write = |stream: &mut Stream, context: &mut Context<'_>| {
            let pieces = [IoSlice::new(head), IoSlice::new(body)];
            stream.poll_kernel_write(context, &pieces, more)
        };
        let sent_bytes = self.client_takes(write).await??;
        self.note_taken(sent_bytes);
        self.has_begun |= sent_bytes > 0;
        Ok(sent_bytes)
    }
}

/// True if sendfile failed for the connection's sake; otherwise it is the file that cannot be read.
fn is_of_socket(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::BrokenPipe
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::ConnectionRefused
            | Kind::TimedOut
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
    ) || ktls::is_encryption_failure(error)
}

/// Returns the bytes of a file that go with the head by the first sendfile call. Each call ends a record, and this one ends it
/// with a page of the file: where records begin within pages, the kernel's GCM copies a block aside at every border of pages, a
/// tenth of all its work.
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
