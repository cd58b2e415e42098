//! The frames that are due, on their way to the socket: gathered, sealed as full records here or by the kernel, sent together; and how
//! much of each stream's response was written, and has been taken by the kernel.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use kettle_exchange::request::StreamClosed;
use kettle_kernel::bug;
use kettle_runtime::tx_path::{Reason, TxPath};
use kettle_tls::records::PLAINTEXT_BYTES_MAX;
use kettle_tls::stream::StreamError;

use super::Http2Io;

/// The party that encrypts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SealedBy {
    User,
    /// The kernel is to, from the next write on.
    Moving,
    /// The kernel, or nobody: its socket is given plaintext.
    Kernel,
}

/// The bytes that one connection has written of its streams.
#[derive(Default)]
pub(super) struct Written {
    /// Plaintext that was sealed or that the kernel took, ever.
    plaintext_bytes: u64,
    /// The ciphertext of what was sealed, ever.
    ciphertext_bytes: u64,
    /// For what was sealed and is queued, both as they were behind it.
    sealed: VecDeque<(u64, u64)>,
    /// The bytes that the kernel has taken, in plaintext.
    sent_bytes: u64,
    /// In the order in which it was written.
    unsent: VecDeque<Unsent>,
}

struct Unsent {
    /// The plaintext that there was with it.
    until_bytes: u64,
    number: u32,
    progress: Rc<StreamProgress>,
    data_bytes: u64,
    is_end: bool,
}

/// The progress of one stream.
#[derive(Default)]
pub(crate) struct StreamProgress {
    pub(in crate::http2) written_bytes: Cell<u64>,
    pub(in crate::http2) sent_bytes: Cell<u64>,
    pub(in crate::http2) is_taken: Cell<bool>,
    /// True if somebody waits for what was written, and not for the end alone.
    pub(in crate::http2) is_watched: Cell<bool>,
}

impl Http2Io {
    /// Writes a DATA frame of a stream. Small ones are gathered, and go out with others.
    pub(in crate::http2) fn write_data(
        &self,
        stream: (u32, &Rc<StreamProgress>),
        payload: &[u8],
        is_end: bool,
    ) -> Result<(), StreamClosed> {
        let head = self.frames.borrow_mut().data_head(stream.0, payload.len(), is_end)?;
        self.written_bytes.set(self.written_bytes.get() + payload.len() as u64);
        let whole_bytes = self.staged_bytes() + head.len() + payload.len();
        let is_small = payload.len() <= SMALL_BYTES_MAX && whole_bytes <= PLAINTEXT_BYTES_MAX;
        let sealed_by = self.sealed_by.get();
        // They are noted before, since the kernel may take them at once.
        self.written.borrow_mut().note(stream, whole_bytes, payload.len(), is_end);
        let written = match sealed_by {
            SealedBy::Moving => self.stage(&head, payload),
            _ if is_small => self.stage(&head, payload),
            SealedBy::User => self.seal(&head, payload),
            SealedBy::Kernel => self.write_to_kernel(&head, payload),
        };
        self.wake_driver();
        written.map_err(|failure| {
            self.failure.set(Some(failure));
            StreamClosed
        })
    }

    /// Notes that a head was written with which a stream ends, or none of it.
    pub(in crate::http2) fn note_head(&self, stream: (u32, &Rc<StreamProgress>), is_end: bool) {
        if is_end {
            self.written.borrow_mut().note(stream, self.staged_bytes(), 0, true);
        }
        self.wake_driver();
    }

    /// Has what is written next staged in memory that the worker has at hand.
    pub(in crate::http2) fn lend_room(&self) {
        let mut frames = self.frames.borrow_mut();
        if frames.output().capacity() == 0 {
            *frames.output() = self.heads.take();
        }
    }

    fn stage(&self, head: &[u8], payload: &[u8]) -> Result<(), StreamError> {
        self.lend_room();
        let mut frames = self.frames.borrow_mut();
        frames.output().extend_from_slice(head);
        frames.output().extend_from_slice(payload);
        Ok(())
    }

    /// The driver is told when there is room for what has none now: a socket tells one task.
    fn write_to_kernel(&self, head: &[u8], payload: &[u8]) -> Result<(), StreamError> {
        let driver = self.driver.borrow().clone().unwrap_or_else(|| Waker::noop().clone());
        match self.poll_kernel_write(&mut Context::from_waker(&driver), head, payload) {
            Poll::Ready(written) => written,
            Poll::Pending => {
                self.is_blocked.set(true);
                Ok(())
            }
        }
    }

    /// Sends what is due, and moves into the kernel if that was asked for. Pending if the client has no room for it;
    /// [`is_blocked`](Self::is_blocked) says the same later.
    pub(crate) fn poll_flush(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Err(failure));
        }
        let flushed = self.poll_flush_now(context);
        self.is_blocked.set(flushed.is_pending());
        self.settle();
        if self.has_room(0) {
            self.queue.wake_first();
        }
        flushed
    }

    fn poll_flush_now(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        // The goodbye that is queued must not go out in the middle of a response.
        if self.tls.borrow().is_key_refused() {
            return Poll::Ready(Err(StreamError::KeyExhausted));
        }
        if self.sealed_by.get() == SealedBy::User {
            self.seal(&[], &[])?;
        }
        let flushed = {
            let mut tls = self.tls.borrow_mut();
            let flushed = tls.poll_flush(context);
            self.written.borrow_mut().sent(tls.queued_bytes());
            flushed
        };
        ready!(flushed)?;
        if self.sealed_by.get() == SealedBy::Moving {
            ready!(self.poll_move(context))?;
        }
        while self.sealed_by.get() == SealedBy::Kernel && self.staged_bytes() > 0 {
            ready!(self.poll_kernel_write(context, &[], &[]))?;
        }
        match self.staged_bytes() {
            0 => Poll::Ready(Ok(())),
            // The kernel was refused: it goes on as before.
            _ => self.poll_flush_now(context),
        }
    }

    /// Moves what is sent into the kernel; nothing is sealed until that is done.
    fn poll_move(&self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        let mut tls = self.tls.borrow_mut();
        let offloaded = tls.poll_offload(context, self.offloads.can_rekey());
        let refusal = self.offloads.conclude(tls.session(), ready!(offloaded))?;
        self.sealed_by.set(if refusal.is_none() { SealedBy::Kernel } else { SealedBy::User });
        self.refusal.set(refusal);
        Poll::Ready(Ok(()))
    }

    /// Seals what is staged and a frame behind it, in as few records as possible.
    fn seal(&self, head: &[u8], payload: &[u8]) -> Result<(), StreamError> {
        let staged = std::mem::take(self.frames.borrow_mut().output());
        let plaintext_bytes = staged.len() + head.len() + payload.len();
        if plaintext_bytes == 0 {
            return Ok(());
        }
        let mut tls = self.tls.borrow_mut();
        let queued_bytes = tls.queued_bytes();
        tls.seal(&[&staged, head, payload])?;
        let ciphertext_bytes = tls
            .queued_bytes()
            .checked_sub(queued_bytes)
            .ok_or_else(|| bug!("sealing takes nothing out of the queue"))?;
        self.written.borrow_mut().sealed(plaintext_bytes, ciphertext_bytes);
        self.heads.give(staged);
        Ok(())
    }

    /// Writes what is staged and a frame behind it to the kernel, which encrypts it. The bytes it does not take stay staged.
    fn poll_kernel_write(
        &self,
        context: &mut Context<'_>,
        head: &[u8],
        payload: &[u8],
    ) -> Poll<Result<(), StreamError>> {
        let mut frames = self.frames.borrow_mut();
        let staged = frames.output();
        let pieces = [IoSlice::new(staged), IoSlice::new(head), IoSlice::new(payload)];
        let written = self.tls.borrow_mut().poll_kernel_write(context, &pieces, false);
        let taken_bytes = match &written {
            Poll::Ready(Ok(bytes)) => *bytes,
            _ => 0,
        };
        self.written.borrow_mut().taken(taken_bytes);
        let before = staged.len();
        staged.drain(..taken_bytes.min(before));
        let mut taken_bytes = taken_bytes.saturating_sub(before);
        for piece in [head, payload] {
            let (_taken, left) = piece.split_at(taken_bytes.min(piece.len()));
            taken_bytes = taken_bytes.saturating_sub(piece.len());
            staged.extend_from_slice(left);
        }
        if staged.is_empty() {
            self.heads.give(std::mem::take(staged));
        }
        written.map_ok(drop)
    }

    /// Notes what the kernel has, and wakes whose response that is.
    fn settle(&self) {
        let mut frames = self.frames.borrow_mut();
        let tell = |number| frames.wake(number);
        self.written.borrow_mut().settle(self.is_input_over.get(), tell);
    }

    /// Has what is written from now on encrypted by the kernel, if it can.
    pub(crate) fn ask_for_kernel(&self) {
        if self.sealed_by.get() == SealedBy::User {
            self.sealed_by.set(SealedBy::Moving);
        }
    }

    /// Where what is written now is encrypted.
    pub(crate) fn path(&self) -> TxPath {
        match self.sealed_by.get() {
            _ if self.is_plain => TxPath::Plain,
            SealedBy::Kernel => TxPath::KernelWrite,
            SealedBy::User | SealedBy::Moving => TxPath::User,
        }
    }

    /// Why the kernel did not take the connection when that was last tried.
    pub(crate) fn refusal(&self) -> Option<Reason> {
        self.refusal.get()
    }
}

impl StreamProgress {
    /// True if the kernel has its end.
    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken.get()
    }

    /// True if the kernel has all of its body that was written.
    pub(in crate::http2) fn is_drained(&self) -> bool {
        self.sent_bytes.get() >= self.written_bytes.get()
    }
}

impl Written {
    /// Plaintext that was sealed or that the kernel took, ever.
    pub(super) fn plaintext_bytes(&self) -> u64 {
        self.plaintext_bytes
    }

    /// Something of a stream was written: it ends behind so many bytes that are still to be sealed.
    fn note(
        &mut self,
        (number, progress): (u32, &Rc<StreamProgress>),
        ahead_bytes: usize,
        data_bytes: usize,
        is_end: bool,
    ) {
        let data_bytes = data_bytes as u64;
        progress.written_bytes.set(progress.written_bytes.get() + data_bytes);
        let until_bytes = self.plaintext_bytes + ahead_bytes as u64;
        let progress = Rc::clone(progress);
        self.unsent.push_back(Unsent { until_bytes, number, progress, data_bytes, is_end });
    }

    /// Plaintext was sealed and queued.
    fn sealed(&mut self, plaintext_bytes: usize, ciphertext_bytes: usize) {
        self.plaintext_bytes += plaintext_bytes as u64;
        self.ciphertext_bytes += ciphertext_bytes as u64;
        self.sealed.push_back((self.plaintext_bytes, self.ciphertext_bytes));
    }

    /// The kernel took plaintext; nothing is queued in front of it.
    fn taken(&mut self, plaintext_bytes: usize) {
        self.plaintext_bytes += plaintext_bytes as u64;
        self.sent_bytes = self.plaintext_bytes;
    }

    /// The kernel has all but so many bytes of ciphertext.
    fn sent(&mut self, queued_bytes: usize) {
        let sent_bytes = self.ciphertext_bytes.saturating_sub(queued_bytes as u64);
        while let Some((plaintext, _)) = self.sealed.pop_front_if(|it| it.1 <= sent_bytes) {
            self.sent_bytes = plaintext;
        }
    }

    /// Returns the bytes that the kernel has taken, of ciphertext and of what it encrypts itself, with so many bytes queued.
    pub(super) fn taken_so_far(&self, queued_bytes: usize) -> (u64, u64) {
        (self.ciphertext_bytes.saturating_sub(queued_bytes as u64), self.sent_bytes)
    }

    /// Notes with their streams what the kernel has, and has those told of which it has the end, those that are watched, or all.
    fn settle(&mut self, tells_all: bool, mut tell: impl FnMut(u32)) {
        let sent_bytes = self.sent_bytes;
        while let Some(unsent) = self.unsent.pop_front_if(|it| it.until_bytes <= sent_bytes) {
            let progress = &unsent.progress;
            progress.sent_bytes.set(progress.sent_bytes.get() + unsent.data_bytes);
            progress.is_taken.set(progress.is_taken.get() || unsent.is_end);
            if unsent.is_end || tells_all || progress.is_watched.get() {
                tell(unsent.number);
            }
        }
        if self.unsent.is_empty() && self.unsent.capacity() > UNSENT_USUAL {
            self.unsent = VecDeque::new();
        }
    }
}

/// The most of a frame's payload that is copied to go out with others.
const SMALL_BYTES_MAX: usize = 4_096;

/// Pieces for which room is kept.
const UNSENT_USUAL: usize = 8;

#[cfg(test)]
mod tests;
