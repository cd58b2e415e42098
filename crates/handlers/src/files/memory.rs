//! The memory of a worker for files: those it remembers, and those that only responses still hold.
//!
//! A response over HTTP/2 holds its body until its client makes room for it, whatever became of what was remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use kettle_kernel::bug;

/// The memory of one worker for files.
#[derive(Clone, Debug)]
pub struct FileMemory {
    taken: Arc<AtomicU64>,
    bytes_max: u64,
    file_bytes_max: u64,
}

/// Room for the bytes of a file. It is given back with the last response that has them.
#[derive(Debug)]
pub struct Room {
    taken: Arc<AtomicU64>,
    bytes: u64,
}

/// The bytes of a file, in their room.
struct Filled<B> {
    bytes: B,
    _room: Room,
}

impl FileMemory {
    /// Memory for files up to a size, of which this much is remembered; none where nothing is.
    pub fn new(file_bytes_max: u64, remembered_bytes_max: u64) -> Option<Self> {
        let remembered_whole_max = (remembered_bytes_max - remembered_bytes_max / BESIDE_SHARE)
            .saturating_sub(ENTRY_BYTES);
        (remembered_bytes_max > 0).then(|| Self {
            taken: Arc::default(),
            // As much again for what is not remembered any more.
            bytes_max: remembered_bytes_max.saturating_mul(2),
            // A file that is never remembered would be read for each of its responses.
            file_bytes_max: file_bytes_max.min(remembered_whole_max),
        })
    }

    /// True if files of this size are kept here as long as there is room.
    pub fn is_for(&self, bytes: u64) -> bool {
        bytes <= self.file_bytes_max
    }

    /// Room for a file of this size; none if it is to stay where it is.
    #[must_use]
    pub fn room(&self, bytes: u64) -> Option<Room> {
        if !self.is_for(bytes) {
            return None;
        }
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let room = Room { taken: Arc::clone(&self.taken), bytes };
        (before.saturating_add(bytes) <= self.bytes_max).then_some(room)
    }
}

impl Room {
    /// Bytes, no more than there is room for, that keep it until they are dropped. The rest of it is free.
    pub fn filled(mut self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        let left_bytes = self.bytes.checked_sub(bytes.as_ref().len() as u64).unwrap_or_else(|| {
            let _ = bug!("a file has room before it is read");
            0
        });
        self.taken.fetch_sub(left_bytes, Ordering::Relaxed);
        self.bytes -= left_bytes;
        Bytes::from_owner(Filled { bytes, _room: self })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Filled<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// The memory for an entry beside a file's bytes, about.
const ENTRY_BYTES: u64 = 1_024;
/// This part is for what was met before, and for gaps.
const BESIDE_SHARE: u64 = 8;
/// Of what is not to be remembered, more than this goes from the file into the records, without a copy between.
pub(super) const PASSING_BYTES_MAX: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_responses_hold_counts_until_the_last_of_them_has_ended() {
        let memory = FileMemory::new(5_000, 10_000).unwrap();
        let held: Vec<_> =
            (0..4).map(|_| memory.room(5_000).unwrap().filled(vec![7; 5_000])).collect();
        assert!(memory.room(1).is_none());
        let last = held[0].slice(1..2);
        drop(held);
        assert_eq!(&*last, [7]);
        assert!(memory.room(5_000).is_some(), "a room that is not filled is free again");
        assert_eq!(memory.taken.load(Ordering::Relaxed), 5_000);
        drop(last);
        assert_eq!(memory.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_becomes_smaller_takes_no_more_room_than_it_needs() {
        let memory = FileMemory::new(5_000, 10_000).unwrap();
        let bytes = memory.room(5_000).unwrap().filled(vec![7; 10]);
        assert_eq!((bytes.len(), memory.taken.load(Ordering::Relaxed)), (10, 10));
    }

    #[test]
    fn what_is_never_remembered_stays_where_it_is() {
        let memory = FileMemory::new(1 << 20, 1 << 20).unwrap();
        assert!(memory.room(1 << 20).is_none());
        assert!(memory.room((7 << 17) - ENTRY_BYTES).is_some());
        assert!(FileMemory::new(1 << 20, 0).is_none());
    }
}
