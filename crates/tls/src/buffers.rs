//! Buffers that connections share: taken while bytes are under way, given back when idle.
//!
//! Each worker thread has its own pool, so an idle connection holds no buffer at all and a busy
//! one allocates nothing. A pooled buffer keeps its length, so it is zeroed only when first made.

use std::cell::RefCell;

use crate::records::RECORD_BYTES_MAX;

/// Full records that one large buffer holds, and so one `write` carries at most.
pub const RECORDS_PER_WRITE: usize = 8;

/// Enough for a response head and a small body, or for one received record.
const SMALL_BYTES: usize = RECORD_BYTES_MAX + 1_024;

/// Enough for [`RECORDS_PER_WRITE`] records and the alert that may follow them.
const LARGE_BYTES: usize = RECORDS_PER_WRITE * RECORD_BYTES_MAX;

/// How many idle buffers of each size a worker keeps.
const SMALL_KEPT_MAX: usize = 64;
const LARGE_KEPT_MAX: usize = 16;

#[derive(Default)]
struct Pool {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

/// A buffer of at least `bytes` bytes, its content left over from earlier use.
#[must_use]
pub fn take(bytes: usize) -> Vec<u8> {
    POOL.with_borrow_mut(|pool| {
        if bytes <= SMALL_BYTES {
            pool.small.pop().unwrap_or_else(|| vec![0; SMALL_BYTES])
        } else if bytes <= LARGE_BYTES {
            pool.large.pop().unwrap_or_else(|| vec![0; LARGE_BYTES])
        } else {
            vec![0; bytes]
        }
    })
}

/// Gives a buffer back; one of an unusual size, or one too many, is freed.
pub fn give(buffer: Vec<u8>) {
    POOL.with_borrow_mut(|pool| match buffer.len() {
        SMALL_BYTES if pool.small.len() < SMALL_KEPT_MAX => pool.small.push(buffer),
        LARGE_BYTES if pool.large.len() < LARGE_KEPT_MAX => pool.large.push(buffer),
        _ => {}
    });
}

/// Bytes in order: appended at the end, taken from the front.
#[derive(Default)]
pub(crate) struct Queue {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(crate) fn filled(&self) -> &[u8] {
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

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.commit(bytes.len());
    }

    /// Takes `bytes` bytes from the front; an emptied queue gives its buffer back.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets everything and gives the buffer back.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        if !self.buffer.is_empty() {
            give(std::mem::take(&mut self.buffer));
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.clear();
    }
}
