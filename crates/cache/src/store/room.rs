//! Room: what objects may take, and what goes where that is not there, in the store or on its disk.

use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::Store;
use crate::error::StoreError;
use crate::index::bytes_on_disk;

impl Store {
    /// Reserves room, evicting what is needed least. What had begun before the store became smaller has the room that was
    /// there then, `bytes_max_before`: its readers get it whole.
    pub(super) fn reserve(&self, bytes: u64, bytes_max_before: u64) -> Result<(), StoreError> {
        let arriving = self.arriving_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if arriving > self.bytes_max().max(bytes_max_before) {
            self.release(bytes);
            return Err(StoreError::NoRoom);
        }
        self.evict();
        Ok(())
    }

    /// Reserves room that is free, evicting nothing.
    pub(super) fn reserve_free(&self, bytes: u64, bytes_max_before: u64) -> Result<(), StoreError> {
        let arriving = self.arriving_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if self.index.bytes() + arriving > self.bytes_max().max(bytes_max_before) {
            self.release(bytes);
            return Err(StoreError::NoRoom);
        }
        Ok(())
    }

    pub(super) fn release(&self, bytes: u64) {
        self.arriving_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Removes objects until the rest fits. Touches the disk.
    pub fn evict(&self) {
        let is_too_much = || {
            let arriving = self.arriving_bytes.load(Ordering::Acquire);
            self.index.bytes() + arriving > self.bytes_max()
        };
        while is_too_much() && self.evict_one().is_some() {}
    }

    /// Removes the object that is needed least; how much it took.
    fn evict_one(&self) -> Option<u64> {
        let (name, bytes) = self.index.evict()?;
        self.evictions.fetch_add(1, Ordering::Relaxed);
        self.remove_left(name);
        Some(bytes)
    }

    /// Does what takes this much of the disk. Where the disk is full before the store is, objects go as if the store were. The
    /// caller has no name locked.
    pub(super) fn with_room<T>(
        &self,
        bytes: u64,
        mut call: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match call() {
            // Once: what is being sent leaves its room later, and until then all else would go in vain.
            Err(errno) if is_full(errno) && self.make_room(bytes) => call(),
            outcome => outcome,
        }
    }

    /// Removes objects that took this much of the disk, and little more: others may be filling it, and would get all of it.
    fn make_room(&self, bytes: u64) -> bool {
        let free = rustix::fs::fstatvfs(&self.directory);
        let free = free.map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
        if free.saturating_add(self.index.bytes()) < bytes {
            // For what never fits nothing has to go.
            return false;
        }
        let more = (self.index.bytes() / MORE_PART).clamp(MORE_BYTES_MIN, MORE_BYTES_MAX);
        let wanted = bytes_on_disk(bytes) + more;
        let mut freed = 0;
        while freed < wanted {
            let Some(bytes) = self.evict_one() else { break };
            freed += bytes;
        }
        if freed > 0 {
            self.full_disks.fetch_add(1, Ordering::Relaxed);
        }
        freed > 0
    }
}

/// Whether it is the disk, or what its user may take of it, that has no room.
pub(super) fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT)
}

/// Room beside what is asked for, as a part of what all objects take: for what the file system itself needs, and so that the
/// next objects find some.
const MORE_PART: u64 = 128;
const MORE_BYTES_MIN: u64 = 64 * 1_024;
const MORE_BYTES_MAX: u64 = 16 * 1_024 * 1_024;

#[cfg(test)]
mod tests;
