//! The progress of each stream's response: the part of it that was written, and the part that the kernel has taken.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

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
    pub(super) written_bytes: Cell<u64>,
    pub(super) sent_bytes: Cell<u64>,
    pub(super) is_taken: Cell<bool>,
    /// True if somebody waits for what was written, and not for the end alone.
    pub(super) is_watched: Cell<bool>,
}

impl StreamProgress {
    /// True if the kernel has its end.
    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken.get()
    }

    /// True if the kernel has all of its body that was written.
    pub(super) fn is_drained(&self) -> bool {
        self.sent_bytes.get() >= self.written_bytes.get()
    }
}

impl Written {
    /// Plaintext that was sealed or that the kernel took, ever.
    pub(super) fn plaintext_bytes(&self) -> u64 {
        self.plaintext_bytes
    }

    /// Something of a stream was written: it ends behind so many bytes that are still to be sealed.
    pub(super) fn note(
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
    pub(super) fn sealed(&mut self, plaintext_bytes: usize, ciphertext_bytes: usize) {
        self.plaintext_bytes += plaintext_bytes as u64;
        self.ciphertext_bytes += ciphertext_bytes as u64;
        self.sealed.push_back((self.plaintext_bytes, self.ciphertext_bytes));
    }

    /// The kernel took plaintext; nothing is queued in front of it.
    pub(super) fn taken(&mut self, plaintext_bytes: usize) {
        self.plaintext_bytes += plaintext_bytes as u64;
        self.sent_bytes = self.plaintext_bytes;
    }

    /// The kernel has all but so many bytes of ciphertext.
    pub(super) fn sent(&mut self, queued_bytes: usize) {
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
    pub(super) fn settle(&mut self, tells_all: bool, mut tell: impl FnMut(u32)) {
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

/// Pieces for which room is kept.
const UNSENT_USUAL: usize = 8;

#[cfg(test)]
mod tests;
