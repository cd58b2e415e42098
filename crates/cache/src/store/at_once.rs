//! Finding an object without waiting, as a worker does: it opens and reads what the kernel has at hand, holds no lock over a call, and
//! removes nothing. Whatever is not a whole, current object that is known to be what was written is [found](Store::find) by a thread.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;

use super::find::{Object, READ_BYTES, summed};
use super::own_files::{FileState, open_cached};
use super::{Known, Reference, Store};
use crate::head::{BODY_ALIGNMENT, ObjectHead};
use crate::index::Entry;
use crate::name::Name;

/// How an object is found at once.
pub struct AtOnce<'a> {
    /// Reads the beginning of a file, as much of it as needs no disk; `None` if that is nothing, or cannot be said.
    pub read: &'a dyn Fn(BorrowedFd<'_>, &mut [u8]) -> Option<usize>,
    /// Whether a body of at most this length is to be read. If not, its file is for it.
    pub takes: &'a dyn Fn(u64) -> bool,
    /// Whether the state of the file is asked for in any case.
    pub wants_state: bool,
    /// Memory to read to, of at least [`BYTES_MAX`](Self::BYTES_MAX) bytes.
    pub buffer: &'a mut [u8],
}

/// An object that was found at once.
#[derive(Debug)]
pub struct FoundAtOnce<'a> {
    /// The object.
    pub object: Object,
    /// Its body, if that was to be read.
    pub body: Option<&'a [u8]>,
}

/// A file that was opened in vain, and about how long it is: closing the last of a long one may wait.
pub type Left = (OwnedFd, u64);

impl AtOnce<'_> {
    /// The most that is read at once, and what shows that there is no more: a body of 64 KiB, and its head.
    pub const BYTES_MAX: usize = 17 * 4_096 + 1;
}

impl fmt::Debug for AtOnce<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AtOnce").finish_non_exhaustive()
    }
}

/// What a file was found to hold: how it is known, and how many bytes of it are in the buffer.
struct Seen {
    object: Object,
    read_bytes: Option<usize>,
}

impl Store {
    /// Finds the object that is known of a key for the request whose fields `value_of` says. Waits for no disk, as long as `how` reads
    /// without one.
    ///
    /// # Errors
    /// What is left to be closed, which may wait, if a thread has to look.
    pub fn find_at_once<'a>(
        &self,
        known: &Known,
        key: &str,
        value_of: &dyn Fn(&str) -> Vec<u8>,
        mut how: AtOnce<'a>,
    ) -> Result<FoundAtOnce<'a>, Option<Left>> {
        let entry = known.entry.ok_or(None)?;
        let first = self.see(known.name, entry, key, &mut how)?;
        let seen = match first.object.head.is_marker() {
            false => first,
            true => self.see_variant(&first.object, key, value_of, &mut how)?,
        };
        let Seen { object, read_bytes } = seen;
        let buffer: &'a [u8] = how.buffer;
        let start = usize::try_from(object.body.offset).unwrap_or(usize::MAX);
        let body = read_bytes.map(|end| buffer.get(start..end).unwrap_or_default());
        Ok(FoundAtOnce { object, body })
    }

    fn see_variant(
        &self,
        marker: &Object,
        key: &str,
        value_of: &dyn Fn(&str) -> Vec<u8>,
        how: &mut AtOnce<'_>,
    ) -> Result<Seen, Option<Left>> {
        let vary = marker.head.vary_for(value_of);
        let name = marker.reference.name.variant(&vary);
        let entry = self.index.look(name).ok_or(None)?;
        let mut seen = self.see(name, entry, key, how)?;
        let head = &seen.object.head;
        if head.vary != vary || head.is_marker() || head.generation < marker.head.generation {
            let bytes = seen.object.body.offset + seen.object.body.bytes;
            return Err(Some((seen.object.file, bytes)));
        }
        seen.object.reference.marker = Some(marker.reference.serial);
        Ok(seen)
    }

    /// Whether the file of an object is there, in this state. Waits for no disk: what cannot be said without one is no.
    #[must_use]
    pub fn is_there(&self, reference: &Reference, state: &FileState) -> bool {
        let path = self.layout.path(reference.name);
        let file = open_cached(self.directory(), &path, OFlags::PATH | OFlags::NOFOLLOW);
        file.is_ok_and(|file| state.lasts(file))
    }

    fn see(
        &self,
        name: Name,
        entry: Entry,
        key: &str,
        how: &mut AtOnce<'_>,
    ) -> Result<Seen, Option<Left>> {
        let path = self.layout.path(name);
        let file = open_cached(self.directory(), &path, OFlags::RDONLY).map_err(|_| None)?;
        let file_bytes = usize::try_from(entry.bytes).unwrap_or(usize::MAX);
        // A body that does not share the head's page begins with a page.
        let body_bytes_max = entry.bytes.saturating_sub(BODY_ALIGNMENT).max(BODY_ALIGNMENT);
        let is_read = file_bytes < AtOnce::BYTES_MAX && (how.takes)(body_bytes_max);
        let bytes = if is_read { file_bytes + 1 } else { READ_BYTES };
        let Some(buffer) = how.buffer.get_mut(..bytes) else {
            return Err(Some((file, entry.bytes)));
        };
        let state = if is_read && !how.wants_state { None } else { FileState::of(&file).ok() };
        if state.is_none() && (!is_read || how.wants_state) {
            return Err(Some((file, entry.bytes)));
        }
        let seen = (how.read)(file.as_fd(), buffer).and_then(|read_bytes| {
            let read = buffer.get(..read_bytes)?;
            let (head, body) = ObjectHead::decode(read).ok()?;
            let end = body.offset + body.bytes;
            // All of it was asked for and one byte more, or else its length.
            let is_whole = !is_read || read_bytes as u64 == end;
            if !is_whole || state.is_some_and(|state| state.bytes != end) || head.key != key {
                return None;
            }
            if !entry.is_checked && body.sum.is_some() {
                let of_body = read.get(usize::try_from(body.offset).ok()?..)?;
                let is_as_written = is_read && body.sum == Some(summed(0, of_body));
                is_as_written.then_some(())?;
            }
            Some((head, body, is_read.then_some(read_bytes)))
        });
        let Some((head, body, read_bytes)) = seen else { return Err(Some((file, entry.bytes))) };
        if self.purges.mean(&head) {
            return Err(Some((file, entry.bytes)));
        }
        if !entry.is_checked {
            self.index.set_checked(name, entry.serial);
        }
        let reference = Reference { name, serial: entry.serial, marker: None };
        Ok(Seen { object: Object { head, file, body, reference, state }, read_bytes })
    }
}

#[cfg(test)]
mod tests;
