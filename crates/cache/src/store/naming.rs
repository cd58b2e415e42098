//! Giving whole objects their names: no name ever stands for a part, nor, once looked at, for what a loss of power tore.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use kettle_kernel::bug;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::find::Object;
use super::own_files::write_all;
use super::{Reference, Store, link, make_folder};
use crate::error::StoreError;
use crate::head::{BodyExtent, ObjectHead, Times};
use crate::index::bytes_on_disk;
use crate::layout::folder_name;
use crate::name::Name;

/// The claim of a file without a name on the store; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) store: Arc<Store>,
    /// The temporary name, if the file has a name from the start.
    temporary: Option<String>,
    pub(super) reserved_bytes: u64,
    /// The part of that which room was made for.
    pub(super) room_bytes: u64,
    /// The bytes that the store might hold when it began.
    pub(super) bytes_max: u64,
}

impl Store {
    /// Keeps an object whose body is here as a whole, in one go. Touches the disk.
    ///
    /// # Errors
    /// If it may not or cannot be stored, or was purged meanwhile.
    pub fn keep(self: &Arc<Self>, head: &ObjectHead, body: &[u8]) -> Result<Reference, StoreError> {
        if body.len() as u64 > self.object_bytes_max() {
            return Err(StoreError::TooLarge);
        }
        if self.purges.covers_arriving(head) {
            return Err(StoreError::Purged);
        }
        let name = Name::of_object(head);
        let serial = self.write(head, body, name)?;
        self.settle(head, name, serial)
    }

    pub(super) fn write(
        self: &Arc<Self>,
        head: &ObjectHead,
        body: &[u8],
        name: Name,
    ) -> Result<u64, StoreError> {
        let bytes = body.len() as u64;
        let offset = head.body_offset(Some(bytes)).ok_or(StoreError::HeadTooLarge)?;
        let sum = (bytes <= SUMMED_BYTES_MAX).then(|| crc32fast::hash(body));
        let extent = BodyExtent { offset, bytes, sum };
        let mut whole = head.encode(extent).ok_or(StoreError::HeadTooLarge)?;
        let head_bytes = usize::try_from(offset)
            .map_err(|_| StoreError::Bug(bug!("a head is shorter than memory")))?;
        whole.resize(head_bytes, 0);
        whole.extend_from_slice(body);
        let (file, mut claim) = self.claim(whole.len() as u64, false)?;
        let written = self.with_room(whole.len() as u64, || write_all(&file, &whole, 0));
        written.map_err(StoreError::disk("write an object"))?;
        claim.name(&file, head, name, extent)
    }

    /// A new file, and room for this many bytes; on the disk, too, if others are to rely on it before they are written.
    pub(super) fn claim(
        self: &Arc<Self>,
        bytes: u64,
        is_relied_on: bool,
    ) -> Result<(OwnedFd, Claim), StoreError> {
        let reserved_bytes = bytes_on_disk(bytes);
        let bytes_max = self.bytes_max();
        self.reserve(reserved_bytes, bytes_max)?;
        let store = Arc::clone(self);
        let mut claim = Claim { store, temporary: None, reserved_bytes, room_bytes: 0, bytes_max };
        match is_relied_on {
            true => claim.begin_room(),
            false => claim.make_room(reserved_bytes),
        }
        let mut make = || {
            let file = self.with_room(0, || self.open_new(&mut claim.temporary))?;
            if is_relied_on {
                self.set_aside(&file, bytes)?;
            }
            Ok(file)
        };
        let file = make().map_err(StoreError::disk("make a file in the store"))?;
        Ok((file, claim))
    }

    fn open_new(&self, temporary: &mut Option<String>) -> Result<OwnedFd, Errno> {
        if self.has_unnamed_files {
            return self.open_unnamed();
        }
        let name = self.temporary_name();
        let file = self.with_temporary(|| self.create_named(&name))?;
        *temporary = Some(name);
        Ok(file)
    }

    /// Completes the work for an object that has its name.
    pub(super) fn settle(
        self: &Arc<Self>,
        head: &ObjectHead,
        name: Name,
        serial: u64,
    ) -> Result<Reference, StoreError> {
        self.settle_alone(head, name, serial)?;
        if !name.is_first() {
            self.mark(head)?;
        }
        Ok(Reference { name, serial, marker: None })
    }

    /// The same, but for what leads to a variant.
    pub(super) fn settle_alone(
        &self,
        head: &ObjectHead,
        name: Name,
        serial: u64,
    ) -> Result<(), StoreError> {
        // An object that was purged since it was linked is met by nobody; its room is free at once.
        if self.purges.covers_arriving(head) {
            self.remove(name, Some(serial));
            return Err(StoreError::Purged);
        }
        self.evict();
        if !name.is_first() {
            self.remove_surplus(name);
        }
        Ok(())
    }

    /// Lets lookup find the variants of this key by the fields this one was chosen by, and says until when one is fresh.
    fn mark(self: &Arc<Self>, variant: &ObjectHead) -> Result<(), StoreError> {
        let vary: Vec<_> =
            variant.vary.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
        let known = self.marker(&variant.key)?;
        if let Some(known) = known.filter(|known| known.head.vary == vary) {
            return self.prolong(&known, variant.times);
        }
        let head = ObjectHead {
            key: variant.key.clone(),
            vary,
            times: variant.times,
            // The variants that an earlier marker led to and that were purged with it stay so.
            generation: self.purges.unpurged_since(&variant.key),
            ..ObjectHead::default()
        };
        self.write(&head, &[], Name::of_key(&variant.key)).map(|_| ())
    }

    /// Gives a marker the times of another variant, if that is fresh for longer. It keeps its number: what it leads to stays
    /// current.
    pub(super) fn prolong(&self, marker: &Object, times: Times) -> Result<(), StoreError> {
        if times.fresh_until() <= marker.head.times.fresh_until() {
            return Ok(());
        }
        self.rewrite(marker, &ObjectHead { times, ..marker.head.clone() }).map(|_| ())
    }

    /// Gives a whole file its name, in place of another that has it. There is no moment at which the name stands for a part.
    fn give_name(&self, file: &OwnedFd, temporary: Option<&str>, name: Name) -> Result<(), Errno> {
        let path = self.layout.path(name);
        let rename = |from: &str| {
            let rename = || rustix::fs::renameat(&self.directory, from, &self.directory, &path);
            self.in_its_folder(name, || match rename() {
                Err(Errno::ISDIR) => self.put_aside(&path).and_then(|()| rename()),
                outcome => outcome,
            })
        };
        if let Some(temporary) = temporary {
            return rename(temporary);
        }
        match self.in_its_folder(name, || link(file, self.directory(), &path)) {
            Err(Errno::EXIST) => {
                let temporary = self.temporary_name();
                self.with_temporary(|| link(file, self.directory(), &temporary))?;
                let renamed = rename(&temporary);
                if renamed.is_err() {
                    let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
                }
                renamed
            }
            outcome => outcome,
        }
    }

    /// Tries again with the folder made, if it is missing or is none.
    fn in_its_folder(
        &self,
        name: Name,
        mut call: impl FnMut() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match call() {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                let folder = folder_name(self.layout.folder(name));
                // An entry that has its name and is no folder; a folder stays.
                let _ = rustix::fs::unlinkat(&self.directory, &folder, AtFlags::empty());
                make_folder(self.directory(), &folder)?;
                call()
            }
            outcome => outcome,
        }
    }

    /// The same with that of files that have no name yet.
    pub(super) fn with_temporary<T>(
        &self,
        mut call: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match call() {
            Err(Errno::NOENT) => {
                make_folder(self.directory(), super::TEMPORARY)?;
                call()
            }
            outcome => outcome,
        }
    }
}

impl Claim {
    /// Gives the file the name of the whole object that is in it, unless that was purged meanwhile.
    pub(super) fn name(
        &mut self,
        file: &OwnedFd,
        head: &ObjectHead,
        name: Name,
        body: BodyExtent,
    ) -> Result<u64, StoreError> {
        if body.sum.is_none() {
            // A name promises the whole, after a loss of power too.
            rustix::fs::fdatasync(file).map_err(StoreError::disk("write an object"))?;
        }
        let store = Arc::clone(&self.store);
        let named = store.with_room(0, || {
            let _alone = store.alone_with(name);
            // A purge of its key counts before it locks the first name of the key and removes its file: it sees this one, or shows
            // here. A marker that leads to this one as a variant is held against the purge in the
            // same way.
            if store.purges.covers_arriving(head) {
                return Ok(None);
            }
            store.give_name(file, self.temporary.as_deref(), name)?;
            self.temporary = None;
            // From here on it is counted in the index.
            self.release();
            Ok(Some(store.index.insert(name, body.offset + body.bytes)))
        });
        named.map_err(StoreError::disk("give an object its name"))?.ok_or(StoreError::Purged)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = rustix::fs::unlinkat(&self.store.directory, temporary, AtFlags::empty());
        }
        self.release();
    }
}

/// Bodies up to this length have a sum, and are compared with it when they are met for the first time. For longer ones that would take
/// longer than a client should wait; what it takes to have them on the disk first is little beside their length.
pub(super) const SUMMED_BYTES_MAX: u64 = 1_024 * 1_024;

#[cfg(test)]
mod tests;
