//! Finding an object, and giving one that was validated a new head.

use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rustix::fs::OFlags;
use rustix::io::{Errno, pread, retry_on_intr};

use super::own_files::{FileState, is_foreign, open_file, write_all};
use super::{Reference, Store};
use crate::error::StoreError;
use crate::head::{BodyExtent, DamagedHead, ObjectHead, PREFIX_BYTES};
use crate::name::Name;

/// An object that was found.
#[derive(Debug)]
pub struct Object {
    /// The head of the object.
    pub head: ObjectHead,
    /// Its open file.
    pub file: OwnedFd,
    /// The extent of the body in the file.
    pub body: BodyExtent,
    /// By which the store says whether it is still current.
    pub reference: Reference,
    /// As its file was before its head was read, where that was asked for.
    pub state: Option<FileState>,
}

impl Object {
    /// Reads the body once, so that the kernel has it at hand.
    pub(super) fn read_through(&self) -> Result<(), Errno> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut at = self.body.offset;
        loop {
            match read_at(&self.file, &mut piece, at)? {
                0 => return Ok(()),
                bytes => at += bytes as u64,
            }
        }
    }
}

impl Store {
    /// Finds the object for a key and the request whose fields `value_of` says. Touches the disk, except where nothing of
    /// the key is there.
    ///
    /// # Errors
    /// If the disk refuses. A damaged object is none, and removed.
    pub fn find(
        &self,
        key: &str,
        value_of: &dyn Fn(&str) -> Vec<u8>,
    ) -> Result<Option<Object>, StoreError> {
        let name = Name::of_key(key);
        let first = self.open_object(name, key)?;
        let Some(marker) = first.as_ref().filter(|first| first.head.is_marker()) else {
            return Ok(first);
        };
        let vary = marker.head.vary_for(value_of);
        let led_by = Some(marker.reference.serial);
        let object = self.open_object(name.variant(&vary), key)?;
        let object = object.filter(|object| object.head.vary == vary && !object.head.is_marker());
        if let Some(object) = &object
            && object.head.generation < marker.head.generation
        {
            // It was purged with a marker before this one.
            self.remove(object.reference.name, Some(object.reference.serial));
            return Ok(None);
        }
        Ok(object.map(|object| Object {
            reference: Reference { marker: led_by, ..object.reference },
            ..object
        }))
    }

    /// Returns the marker that says by which fields the variants of a key differ, and until when
    /// one of them is fresh; `None` where there are no variants. Touches the disk.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn marker(&self, key: &str) -> Result<Option<Object>, StoreError> {
        let first = self.open_object(Name::of_key(key), key)?;
        Ok(first.filter(|first| first.head.is_marker()))
    }

    /// Gives an object that was validated a new head. It keeps the generation it has: what was purged meanwhile stays so.
    /// Touches the disk.
    ///
    /// # Errors
    /// If the disk refuses, or [`HeadTooLarge`](StoreError::HeadTooLarge) if there is no room before the body: the object
    /// has to come anew then.
    pub fn refresh(&self, object: &mut Object, head: ObjectHead) -> Result<(), StoreError> {
        let head = ObjectHead {
            generation: object.head.generation,
            key: object.head.key.clone(),
            vary: object.head.vary.clone(),
            ..head
        };
        let is_written = self.rewrite(object, &head)?;
        object.head = head;
        let Reference { name, serial, marker } = object.reference;
        // One that is gone meanwhile serves those who have it, and has no name.
        if is_written && let Some(serial) = self.index.renew(name, serial) {
            object.reference.serial = serial;
        }
        if marker.is_some()
            && let Some(marker) = self.marker(&object.head.key)?
        {
            self.prolong(&marker, object.head.times)?;
        }
        Ok(())
    }

    /// Writes another head before an object's body, if its file still has its name. Those who read it cannot write to it.
    pub(super) fn rewrite(&self, object: &Object, head: &ObjectHead) -> Result<bool, StoreError> {
        let bytes = head.encode(object.body).filter(|it| it.len() as u64 <= object.body.offset);
        let bytes = bytes.ok_or(StoreError::HeadTooLarge)?;
        let path = self.layout.path(object.reference.name);
        let _alone = self.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        let write = || {
            let file = open_file(self.directory(), &path, OFlags::WRONLY)?;
            let is_it =
                FileState::of(&file)?.stamp.is_same_file(&FileState::of(&object.file)?.stamp);
            if is_it {
                write_all(&file, &bytes, 0)?;
            }
            Ok(is_it)
        };
        match write() {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(errno) if is_foreign(errno) => Ok(false),
            written => written.map_err(StoreError::disk("write an object's head")),
        }
    }

    pub(super) fn open_object(&self, name: Name, key: &str) -> Result<Option<Object>, StoreError> {
        let known = self.index.find(name);
        if known.is_none() && self.status().is_scanned {
            return Ok(None);
        }
        let file = match open_file(self.directory(), &self.layout.path(name), OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => {
                // Somebody else removed it; or it was not there, and may have come since.
                if known.is_some() {
                    self.index.remove(name, known);
                }
                return Ok(None);
            }
            Err(errno) if is_foreign(errno) => {
                self.remove_damaged(name, known);
                return Ok(None);
            }
            Err(errno) => return Err(StoreError::Disk { action: "open an object", errno }),
        };
        let read = match read_head(&file) {
            Ok(Err(DamagedHead)) => {
                // It may be one that is being rewritten.
                let _alone = self.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
                read_head(&file)
            }
            read => read,
        };
        let read = read.map_err(StoreError::disk("read an object's head"))?;
        let Ok((head, body, state)) = read else {
            self.remove_damaged(name, known);
            return Ok(None);
        };
        if head.key != key {
            return Ok(None);
        }
        let bytes = body.offset + body.bytes;
        let Some(serial) = known.or_else(|| self.index.insert_found(name, bytes)) else {
            // Counted meanwhile, or this is the file of one whose place another has taken.
            return self.open_object(name, key);
        };
        // Behind that: a purge that does not show here removes what is noted.
        if self.purges.covers(&head) {
            self.remove(name, Some(serial));
            return Ok(None);
        }
        if !self.index.is_checked(name, serial) {
            if !is_as_written(&file, body).map_err(StoreError::disk("read an object"))? {
                self.remove_damaged(name, Some(serial));
                return Ok(None);
            }
            self.index.set_checked(name, serial);
        }
        let reference = Reference { name, serial, marker: None };
        Ok(Some(Object { head, file, body, reference, state: Some(state) }))
    }

    fn remove_damaged(&self, name: Name, serial: Option<u64>) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        self.remove(name, serial);
    }
}

/// The head of a file, if it is whole and the body has its length; and how the file was before.
fn read_head(file: &OwnedFd) -> Result<Result<ReadHead, DamagedHead>, Errno> {
    let state = FileState::of(file)?;
    let mut bytes = vec![0; READ_BYTES];
    let read_bytes = read_at(file, &mut bytes, 0)?;
    bytes.truncate(read_bytes);
    if bytes.len() < PREFIX_BYTES {
        return Ok(Err(DamagedHead));
    }
    let Ok(head_bytes) = ObjectHead::bytes(&bytes) else { return Ok(Err(DamagedHead)) };
    if head_bytes > bytes.len() {
        // At most `HEAD_BYTES_MAX`.
        bytes.resize(head_bytes, 0);
        let (_, rest) = bytes.split_at_mut(read_bytes);
        if read_at(file, rest, read_bytes as u64)? < rest.len() {
            return Ok(Err(DamagedHead));
        }
    }
    Ok(ObjectHead::decode(&bytes).and_then(|(head, body)| {
        let is_whole = state.stamp.bytes == body.offset + body.bytes;
        if is_whole { Ok((head, body, state)) } else { Err(DamagedHead) }
    }))
}

type ReadHead = (ObjectHead, BodyExtent, FileState);

/// Tells whether a body is the one whose sum is in its head: power may have failed, or the disk,
/// after it got its name.
fn is_as_written(file: &OwnedFd, body: BodyExtent) -> Result<bool, Errno> {
    let Some(expected) = body.sum else { return Ok(true) };
    let mut piece = vec![0; usize::try_from(body.bytes).unwrap_or(PIECE_BYTES).min(PIECE_BYTES)];
    let mut at = body.offset;
    let mut sum = 0;
    while at < body.offset + body.bytes {
        let bytes = read_at(file, &mut piece, at)?;
        if bytes == 0 {
            return Ok(false);
        }
        sum = summed(sum, piece.split_at(bytes).0);
        at += bytes as u64;
    }
    Ok(sum == expected)
}

fn read_at(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while let Some(free) = buffer.get_mut(filled..).filter(|free| !free.is_empty()) {
        match retry_on_intr(|| pread(file, &mut *free, offset + filled as u64))? {
            0 => break,
            read_bytes => filled += read_bytes,
        }
    }
    Ok(filled)
}

/// The CRC of what has this one, with more behind it.
pub(super) fn summed(sum: u32, more: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(sum);
    hasher.update(more);
    hasher.finalize()
}

/// Holds nearly all heads, and is read with the first page in any case.
pub(super) const READ_BYTES: usize = 4_096;

/// The bytes that are compared with a sum at a time.
const PIECE_BYTES: usize = 64 * 1_024;
