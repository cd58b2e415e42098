//! An object that arrives: written without a name, given one when it is whole.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FallocateFlags};
use rustix::io::Errno;

use super::find::write_all;
use super::{Reference, Store, link, make_folder};
use crate::error::StoreError;
use crate::fill::{Fill, FillState};
use crate::head::{Head, Placement};
use crate::index::bytes_on_disk;
use crate::name::Name;

/// An object that arrives. Dropped before [`finish`](Self::finish), it has failed: its readers learn so, and nothing of it
/// stays.
#[derive(Debug)]
pub struct Writer {
    store: Arc<Store>,
    head: Head,
    fill: Fill,
    /// Where the file has a name from the start.
    temporary: Option<String>,
    reserved_bytes: u64,
    filled_bytes: u64,
    told_bytes: u64,
}

impl Store {
    /// Begins an object. Touches the disk, as all that a writer does.
    ///
    /// # Errors
    /// If it may not or cannot be stored; the response goes past the store then.
    pub fn begin(
        self: &Arc<Self>,
        head: Head,
        announced_bytes: Option<u64>,
    ) -> Result<Writer, StoreError> {
        if announced_bytes.is_some_and(|bytes| bytes > self.settings.object_bytes_max) {
            return Err(StoreError::TooLarge);
        }
        let offset = head.body_offset().ok_or(StoreError::HeadTooLarge)?;
        let reserved_bytes = bytes_on_disk(offset + announced_bytes.unwrap_or(0));
        self.reserve(reserved_bytes)?;
        let opened = self.open_new(offset + announced_bytes.unwrap_or(0));
        let (file, temporary) = opened.map_err(|errno| {
            self.release(reserved_bytes);
            StoreError::Disk { action: "make a file in the store", errno }
        })?;
        Ok(Writer {
            store: Arc::clone(self),
            head,
            fill: Fill::new(file, offset, announced_bytes),
            temporary,
            reserved_bytes,
            filled_bytes: 0,
            told_bytes: 0,
        })
    }

    fn open_new(&self, expected_bytes: u64) -> Result<(OwnedFd, Option<String>), Errno> {
        let (file, temporary) = if self.has_unnamed_files {
            (self.open_unnamed()?, None)
        } else {
            let name = self.temporary_name();
            (self.create_named(&name)?, Some(name))
        };
        // A full disk says so before the first client has been sent a byte. The length stays what was written.
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, expected_bytes) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
                if let Some(name) = &temporary {
                    let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
                }
                Err(errno)
            }
            // Not all file systems can.
            _ => Ok((file, temporary)),
        }
    }
}

impl Writer {
    /// What readers of the growing object share.
    #[must_use]
    pub fn fill(&self) -> &Fill {
        &self.fill
    }

    /// What its head will be.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Adds what follows of the body, and tells whoever waits once there is enough of it.
    ///
    /// # Errors
    /// If there is more than announced, or the store or the disk has no room for it. The object has failed then.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let after = self.filled_bytes + bytes.len() as u64;
        if self.fill.announced_bytes().is_some_and(|announced| after > announced) {
            return Err(StoreError::WrongLength);
        }
        let needed = self.fill.body_offset() + after;
        if needed > self.reserved_bytes {
            let more = bytes_on_disk((needed - self.reserved_bytes).max(RESERVED_AT_ONCE_BYTES));
            // Nothing makes room for what is not kept.
            match after > self.store.settings.object_bytes_max {
                true => self.store.reserve_free(more)?,
                false => self.store.reserve(more)?,
            }
            self.reserved_bytes += more;
        }
        let offset = self.fill.body_offset() + self.filled_bytes;
        let written = write_all(self.fill.shared_file(), bytes, offset);
        written.map_err(StoreError::disk("write an object"))?;
        self.filled_bytes = self.fill.add(bytes.len() as u64);
        if self.filled_bytes - self.told_bytes >= TOLD_BYTES {
            self.tell();
        }
        Ok(())
    }

    /// Tells whoever waits of all that is there: before a wait for more.
    pub fn tell(&mut self) {
        if self.told_bytes < self.filled_bytes {
            self.told_bytes = self.filled_bytes;
            self.fill.wake();
        }
    }

    /// Whether so much came that it is not kept, though its readers get all of it.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.filled_bytes > self.store.settings.object_bytes_max
    }

    /// Ends a body that came whole: its readers have all, and then it gets its name.
    ///
    /// # Errors
    /// If the body is shorter than announced, and so has failed; or if it came whole but is not kept: too large, purged
    /// meanwhile, or refused by the disk.
    pub fn finish(mut self) -> Result<Reference, StoreError> {
        if self.fill.announced_bytes().is_some_and(|announced| announced != self.filled_bytes) {
            return Err(StoreError::WrongLength);
        }
        self.fill.end(FillState::Complete);
        if self.is_too_large() {
            return Err(StoreError::TooLarge);
        }
        if self.store.purges.mean_arriving(&self.head) {
            return Err(StoreError::Purged);
        }
        let placement = Placement { offset: self.fill.body_offset(), bytes: self.filled_bytes };
        let head = self.head.encode(placement).ok_or(StoreError::HeadTooLarge)?;
        let file = self.fill.shared_file();
        write_all(file, &head, 0).map_err(StoreError::disk("write an object's head"))?;
        if placement.bytes == 0 {
            // The head ends before the body begins, and so would the file.
            let lengthened = rustix::fs::ftruncate(file, placement.offset);
            lengthened.map_err(StoreError::disk("write an object's head"))?;
        }
        // A name promises the whole, after a loss of power too.
        rustix::fs::fdatasync(file).map_err(StoreError::disk("write an object"))?;
        let first = Name::of_key(&self.head.key);
        let is_variant = !self.head.vary.is_empty();
        let name = if is_variant { first.variant(&self.head.vary) } else { first };
        let named = self.store.give_name(self.fill.shared_file(), self.temporary.take(), name);
        named.map_err(StoreError::disk("give an object its name"))?;
        // From here on it is counted in the index.
        self.store.release(std::mem::take(&mut self.reserved_bytes));
        let serial = self.store.index.insert(name, placement.offset + placement.bytes);
        self.store.evict();
        if is_variant && !self.head.is_marker() {
            self.mark(first)?;
        }
        // A purge looks for files after it has counted; so either it saw this one, or it shows here.
        if self.store.purges.mean_arriving(&self.head) {
            self.store.remove(name, Some(serial));
            return Err(StoreError::Purged);
        }
        Ok(Reference { name, serial, marker: None })
    }

    /// Lets lookup find the variants of this key by the fields this one was chosen by.
    fn mark(&self, first: Name) -> Result<(), StoreError> {
        let names: Vec<_> =
            self.head.vary.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
        let known = self.store.open_object(first, &self.head.key)?;
        if known.is_some_and(|known| known.head.is_marker() && known.head.vary == names) {
            return Ok(());
        }
        let head = Head {
            key: self.head.key.clone(),
            vary: names,
            generation: self.head.generation,
            ..Head::default()
        };
        let marker = self.store.begin(head, Some(0))?;
        marker.name_marker(first)
    }

    fn name_marker(mut self, first: Name) -> Result<(), StoreError> {
        let placement = Placement { offset: self.fill.body_offset(), bytes: 0 };
        let head = self.head.encode(placement).ok_or(StoreError::HeadTooLarge)?;
        let file = self.fill.shared_file();
        write_all(file, &head, 0)
            .and_then(|()| rustix::fs::ftruncate(file, placement.offset))
            .and_then(|()| self.store.give_name(file, self.temporary.take(), first))
            .map_err(StoreError::disk("write an object's head"))?;
        self.store.release(std::mem::take(&mut self.reserved_bytes));
        self.store.index.insert(first, placement.offset);
        Ok(())
    }
}

impl Store {
    /// Gives a whole file its name, in place of another that has it. There is no moment at which the name stands for a part.
    fn give_name(
        &self,
        file: &OwnedFd,
        temporary: Option<String>,
        name: Name,
    ) -> Result<(), Errno> {
        let path = name.path();
        let temporary = match temporary {
            Some(temporary) => temporary,
            None => match self.in_its_folder(name, || link(file, self.directory(), &path)) {
                Err(Errno::EXIST) => {
                    let temporary = self.temporary_name();
                    self.with_temporary(|| link(file, self.directory(), &temporary))?;
                    temporary
                }
                outcome => return outcome,
            },
        };
        let rename = || rustix::fs::renameat(&self.directory, &temporary, &self.directory, &path);
        let renamed = self.in_its_folder(name, rename);
        if renamed.is_err() {
            let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
        }
        renamed
    }

    /// Tries again with the folders made, if they are missing.
    fn in_its_folder(
        &self,
        name: Name,
        mut call: impl FnMut() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match call() {
            Err(Errno::NOENT) => {
                for folder in name.folders() {
                    make_folder(self.directory(), &folder)?;
                }
                call()
            }
            outcome => outcome,
        }
    }

    fn with_temporary(&self, mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
        match call() {
            Err(Errno::NOENT) => {
                make_folder(self.directory(), super::TEMPORARY)?;
                call()
            }
            outcome => outcome,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.fill.progress().state == FillState::Growing {
            self.fill.end(FillState::Failed);
        }
        if let Some(temporary) = &self.temporary {
            let _ = rustix::fs::unlinkat(&self.store.directory, temporary, AtFlags::empty());
        }
        self.store.release(self.reserved_bytes);
    }
}

/// Progress after which whoever waits is told without being asked.
const TOLD_BYTES: u64 = 64 * 1_024;

/// Room that bodies of unknown length take at a time.
const RESERVED_AT_ONCE_BYTES: u64 = 128 * 1_024;
