//! Room: what objects may take, and what goes where that is not there, in the store or on its disk.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::Store;
use super::naming::Claim;
use crate::error::StoreError;
use crate::index::bytes_on_disk;
use crate::name::Name;

impl Store {
    /// Reserves room that is free, or that [`make_room`](Claim::make_room) can make. A fill that
    /// had begun before the store became smaller has the room that was there then,
    /// `bytes_max_before`: its readers get it whole.
    pub(super) fn reserve(&self, bytes: u64, bytes_max_before: u64) -> Result<(), StoreError> {
        let arriving = self.arriving_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if arriving > self.bytes_max().max(bytes_max_before) {
            self.release(bytes);
            return Err(StoreError::NoRoom);
        }
        Ok(())
    }

    /// Reserves room that is free, and that nobody has reserved.
    pub(super) fn reserve_free(&self, bytes: u64, bytes_max_before: u64) -> Result<(), StoreError> {
        let arriving = self.arriving_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        if self.index.bytes() + arriving > self.bytes_max().max(bytes_max_before) {
            self.release(bytes);
            return Err(StoreError::NoRoom);
        }
        Ok(())
    }

    fn release(&self, bytes: u64) {
        self.arriving_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Returns the bytes that the objects take on the disk, with what there is room for of those that are arriving.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.index.bytes() + self.room_bytes.load(Ordering::Acquire)
    }

    /// Removes objects until the rest fits. Touches the disk.
    pub fn evict(&self) {
        while self.taken_bytes() > self.bytes_max() && self.evict_one().is_some() {}
    }

    /// Removes the object that is needed least; how much it took.
    fn evict_one(&self) -> Option<u64> {
        let (name, bytes) = self.index.evict()?;
        self.evictions.fetch_add(1, Ordering::Relaxed);
        self.remove_left(name);
        Some(bytes)
    }

    /// Removes what a key has of variants beyond those that one may have. Touches the disk.
    pub(super) fn remove_surplus(&self, key: Name) {
        while let Some(oldest) = self.index.take_surplus(key) {
            self.evictions.fetch_add(1, Ordering::Relaxed);
            self.remove_left(oldest);
        }
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
            Err(errno) if is_full(errno) && self.make_disk_room(bytes) => call(),
            outcome => outcome,
        }
    }

    /// Sets room on the disk aside, which says that it is full before the first client has been sent a byte. Of what is long and
    /// does not fit beside what is there, the rest gets its room as it comes.
    pub(super) fn set_aside(&self, file: &OwnedFd, bytes: u64) -> Result<(), Errno> {
        let first_bytes = bytes.min(AT_ONCE_BYTES);
        match allocate(file, bytes) {
            Err(errno) if is_full(errno) => {
                // Some file systems give out what there is.
                let _ = rustix::fs::ftruncate(file, 0);
                match self.may_fit(bytes) {
                    true => self.with_room(first_bytes, || allocate(file, first_bytes)),
                    false => Err(errno),
                }
            }
            outcome => outcome,
        }
    }

    /// True if the disk has room for so much if all objects go.
    fn may_fit(&self, bytes: u64) -> bool {
        let free = rustix::fs::fstatvfs(&self.directory);
        let free = free.map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
        free.saturating_add(self.index.bytes()) >= bytes
    }

    /// Removes objects that took this much of the disk, and little more: others may be filling it, and would get all of it.
    fn make_disk_room(&self, bytes: u64) -> bool {
        if !self.may_fit(bytes) {
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

impl Claim {
    /// Room for so much, which is reserved. Of a long body no more goes for it at once than for what is soon there: its client may be
    /// gone before the rest comes.
    pub(super) fn make_room(&mut self, bytes: u64) {
        let Self { store, reserved_bytes, room_bytes, .. } = self;
        if bytes <= *room_bytes {
            return;
        }
        let soon = bytes.max(*room_bytes + AT_ONCE_BYTES).min(*reserved_bytes);
        store.room_bytes.fetch_add(soon - *room_bytes, Ordering::AcqRel);
        *room_bytes = soon;
        store.evict();
    }

    /// Room for what is reserved, as far as it is free, and for the beginning in any case.
    pub(super) fn begin_room(&mut self) {
        let store = &self.store;
        let free_bytes = store.bytes_max().saturating_sub(store.taken_bytes());
        self.make_room(free_bytes.clamp(1, self.reserved_bytes));
    }

    /// All that is reserved, which was free then.
    pub(super) fn take_free(&mut self) {
        let more = self.reserved_bytes - self.room_bytes;
        self.store.room_bytes.fetch_add(more, Ordering::AcqRel);
        self.room_bytes = self.reserved_bytes;
    }

    /// Gives back what is reserved.
    pub(super) fn release(&mut self) {
        let room_bytes = std::mem::take(&mut self.room_bytes);
        self.store.room_bytes.fetch_sub(room_bytes, Ordering::AcqRel);
        self.store.release(std::mem::take(&mut self.reserved_bytes));
    }
}

/// The length of the file stays what was written.
fn allocate(file: &OwnedFd, bytes: u64) -> Result<(), Errno> {
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => Err(errno),
        // Not all file systems can.
        _ => Ok(()),
    }
}

/// Tells whether it is the disk, or what its user may take of it, that has no room.
pub(super) fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT)
}

/// The objects' bytes that go at once for an object that begins, and for the next part of one that
/// arrives.
const AT_ONCE_BYTES: u64 = 16 * 1_024 * 1_024;

/// Room beside what is asked for, as a part of what all objects take: for what the file system itself needs, and so that the
/// next objects find some.
const MORE_PART: u64 = 128;
const MORE_BYTES_MIN: u64 = 64 * 1_024;
const MORE_BYTES_MAX: u64 = 16 * 1_024 * 1_024;

#[cfg(test)]
mod tests;
