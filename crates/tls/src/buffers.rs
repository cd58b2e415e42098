//! Buffers that connections share: taken while bytes are under way, given back when idle.
//!
//! Each worker thread has its own pool, so an idle connection holds no buffer at all and a busy
//! one allocates nothing. A pooled buffer keeps its length, so it is zeroed only when first made.

use std::cell::{Cell, RefCell};

use crate::records::{
    ContentType, PLAINTEXT_BYTES_MAX, RECORD_BYTES_MAX, RecordError, RecordSealer,
};

/// Full records that the largest pooled buffer holds, and so one write from memory carries at most.
pub const RECORDS_PER_WRITE: usize = 8;

/// The most plaintext of one write from memory.
pub const WRITE_BYTES: usize = RECORDS_PER_WRITE * PLAINTEXT_BYTES_MAX;

/// Full records that are read from a file, sealed and written in one go. With more, what was read
/// has left the processor's nearest cache before it is sealed: 1 MiB cost 17 % more with 8 than
/// with 2 (AMD EPYC 9005, Linux 6.18).
pub const RECORDS_PER_READ: usize = 2;

/// The sizes of pooled buffers, and how many idle ones of each a worker keeps: one record and a
/// little, what is read from a file in one go, the largest write.
const SIZES: [(usize, usize); 3] = [
    (RECORD_BYTES_MAX + 1_024, 64),
    (RECORDS_PER_READ * RECORD_BYTES_MAX + 1_024, 64),
    (RECORDS_PER_WRITE * RECORD_BYTES_MAX + 1_024, 16),
];

/// The largest of them, and how many idle ones are kept.
const LARGEST_BYTES: usize = SIZES[2].0;
const LARGEST_KEPT: usize = SIZES[2].1;

thread_local! {
    static POOL: RefCell<[Vec<Vec<u8>>; SIZES.len()]> = RefCell::default();
    /// The number of the largest buffers that connections have.
    static LARGEST_TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// The amount that is received in one go where records keep it. It doubles each time that all came there was room for, since a
/// socket is received from and sent to the cheaper, the more goes at once: of a backend's 1 MiB, eight records at a time cost
/// 0.73 of two (AMD EPYC, Linux 6.18). Of connections that wait for their clients only so many hold as large a buffer as a
/// worker keeps.
#[derive(Clone, Copy, Debug)]
pub struct Intake {
    records: usize,
}

impl Default for Intake {
    fn default() -> Self {
        Self { records: RECORDS_PER_READ }
    }
}

impl Intake {
    /// The number of bytes there should be room for.
    #[must_use]
    pub fn bytes(self) -> usize {
        let is_spare = LARGEST_TAKEN.get() < LARGEST_KEPT;
        let records_max = if is_spare { RECORDS_PER_WRITE } else { RECORDS_PER_READ };
        self.records.min(records_max) * PLAINTEXT_BYTES_MAX
    }

    /// Notes whether all came there was room for.
    pub fn note(&mut self, is_full: bool) {
        self.records = if is_full { (self.records * 2).min(RECORDS_PER_WRITE) } else { 1 };
    }
}

/// A buffer of at least `bytes` bytes, its content left over from earlier use.
#[must_use]
pub fn take(bytes: usize) -> Vec<u8> {
    POOL.with_borrow_mut(|pool| {
        let fitting = SIZES.iter().zip(pool).find(|((size, _), _)| bytes <= *size);
        match fitting {
            Some(((size, _), kept)) => {
                if *size == LARGEST_BYTES {
                    LARGEST_TAKEN.set(LARGEST_TAKEN.get() + 1);
                }
                kept.pop().unwrap_or_else(|| vec![0; *size])
            }
            None => vec![0; bytes],
        }
    })
}

/// Gives a buffer back; one of an unusual size, or one too many, is freed.
pub fn give(buffer: Vec<u8>) {
    if buffer.len() == LARGEST_BYTES {
        LARGEST_TAKEN.set(LARGEST_TAKEN.get().saturating_sub(1));
    }
    POOL.with_borrow_mut(|pool| {
        let own = SIZES.iter().zip(pool).find(|((size, _), _)| buffer.len() == *size);
        if let Some(((_, kept_max), kept)) = own
            && kept.len() < *kept_max
        {
            kept.push(buffer);
        }
    });
}

/// Bytes in order: appended at the end, taken from the front.
/// An empty one holds no memory.
#[derive(Default)]
pub struct Queue {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Queue {
    /// True if there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the bytes in it.
    #[must_use]
    #[inline]
    pub fn filled(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn filled_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.start..self.end).unwrap_or_default()
    }

    /// Room for `bytes` more bytes; [`commit`](Self::commit) says how many were put there.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() - self.end < bytes {
            self.grow(bytes);
        }
        self.buffer.get_mut(self.end..self.end + bytes).unwrap_or_default()
    }

    fn grow(&mut self, bytes: usize) {
        let filled = self.end - self.start;
        let mut larger = take(filled + bytes);
        if let Some(front) = larger.get_mut(..filled) {
            front.copy_from_slice(self.filled());
        }
        give(std::mem::replace(&mut self.buffer, larger));
        self.start = 0;
        self.end = filled;
    }

    /// Keeps the first `bytes` bytes of the room last asked for.
    pub(crate) fn commit(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// Puts a copy of `bytes` at its end.
    pub fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.commit(bytes.len());
    }

    /// Appends one small record, sealed.
    pub(crate) fn append_sealed(
        &mut self,
        sealer: &mut RecordSealer,
        content_type: ContentType,
        content: &[u8],
    ) -> Result<(), RecordError> {
        let prefix_bytes = sealer.prefix_bytes();
        let record_bytes = prefix_bytes + content.len() + sealer.suffix_bytes();
        let record = self.room(record_bytes);
        if let Some(room) = record.get_mut(prefix_bytes..prefix_bytes + content.len()) {
            room.copy_from_slice(content);
        }
        sealer.seal(content_type, record)?;
        self.commit(record_bytes);
        Ok(())
    }

    /// Takes `bytes` bytes from the front; an emptied queue gives its buffer back.
    pub fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
        if self.is_empty() {
            self.clear();
        }
    }

    /// Returns the bytes of memory it holds.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Forgets everything and gives the buffer back.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        if !self.buffer.is_empty() {
            give(std::mem::take(&mut self.buffer));
        }
    }
}

impl From<Vec<u8>> for Queue {
    fn from(buffer: Vec<u8>) -> Self {
        Self { start: 0, end: buffer.len(), buffer }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_received_at_once_while_it_comes_and_buffers_are_spare() {
        let mut intake = Intake::default();
        let mut sizes = Vec::new();
        for is_full in [true, true, true, false, true, true] {
            sizes.push(intake.bytes() / PLAINTEXT_BYTES_MAX);
            intake.note(is_full);
        }
        assert_eq!(sizes, [2, 4, 8, 8, 1, 2]);
        let held: Vec<_> = (0..LARGEST_KEPT).map(|_| take(LARGEST_BYTES)).collect();
        assert_eq!(intake.bytes(), 2 * PLAINTEXT_BYTES_MAX, "as many wait as there may");
        held.into_iter().for_each(give);
        assert_eq!(intake.bytes(), 4 * PLAINTEXT_BYTES_MAX);
    }
}
