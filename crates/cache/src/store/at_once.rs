//! Finding an object without waiting, as a worker does: it opens and reads what the kernel has at hand, holds no lock over a call, and
//! removes nothing. Whatever is not a whole, current object that is known to be what was written is [found](Store::find) by a thread.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;

use super::find::{Object, READ_BYTES, summed};
use super::own_files::{FileState, open_cached};
use super::{Known, Reference, Store};
use crate::head::{BODY_ALIGNMENT, BodyExtent, ObjectHead, PREFIX_BYTES};
use crate::index::Entry;
use crate::name::Name;

/// A lookup that reads no more than memory and one page.
pub struct AtOnce<'a> {
    /// Reads the beginning of a file into the buffer, and up to so many bytes behind that into memory of their own, as much of it as
    /// needs no disk; `None` if that is nothing, or cannot be said. Says how much of the buffer was filled.
    pub read: &'a Read<'a>,
    /// Tells whether a body of at most this length is to be read. If not, its file is for it.
    pub takes: &'a dyn Fn(u64) -> bool,
    /// True if the state of the file is asked for in any case.
    pub wants_state: bool,
}

/// Reads a file's beginning, as [`AtOnce::read`] says.
pub type Read<'a> = dyn Fn(BorrowedFd<'_>, &mut [u8], usize) -> Option<(usize, Vec<u8>)> + 'a;

/// An object that was found at once.
#[derive(Debug)]
pub struct FoundAtOnce {
    /// The object.
    pub object: Object,
    /// Its body, if that was to be read.
    pub body: Option<Vec<u8>>,
}

/// A file that was opened in vain, and about how long it is: closing the last of a long one may wait.
pub type Left = (OwnedFd, u64);

impl AtOnce<'_> {
    /// The longest file that is read whole: a body of 64 KiB, and its head.
    const BYTES_MAX: u64 = 17 * 4_096;
}

impl fmt::Debug for AtOnce<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AtOnce").finish_non_exhaustive()
    }
}

impl Store {
    /// Finds the object that is known of a key for the request whose fields `value_of` says. Waits for no disk, as long as `how` reads
    /// without one.
    ///
    /// # Errors
    /// The rest to be closed, which may wait, if a thread has to look.
    pub fn find_at_once(
        &self,
        known: &Known,
        key: &str,
        value_of: &dyn Fn(&str) -> Vec<u8>,
        how: &AtOnce<'_>,
    ) -> Result<FoundAtOnce, Option<Left>> {
        let entry = known.entry.ok_or(None)?;
        let first = self.see(known.name, entry, key, how)?;
        match first.object.head.is_marker() {
            false => Ok(first),
            true => self.see_variant(&first.object, key, value_of, how),
        }
    }

    fn see_variant(
        &self,
        marker: &Object,
        key: &str,
        value_of: &dyn Fn(&str) -> Vec<u8>,
        how: &AtOnce<'_>,
    ) -> Result<FoundAtOnce, Option<Left>> {
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

    /// True if the file of an object is there, in this state. Waits for no disk: what cannot be said without one is no.
    #[must_use]
    pub fn is_there(&self, reference: &Reference, state: &FileState) -> bool {
        let path = self.layout.path(reference.name);
        let file = open_cached(self.directory(), &path, OFlags::PATH | OFlags::NOFOLLOW);
        file.is_ok_and(|file| state.lasts(file))
    }

    pub(super) fn see(
        &self,
        name: Name,
        entry: Entry,
        key: &str,
        how: &AtOnce<'_>,
    ) -> Result<FoundAtOnce, Option<Left>> {
        let path = self.layout.path(name);
        let file = open_cached(self.directory(), &path, OFlags::RDONLY).map_err(|_| None)?;
        // A body that does not share the head's page begins with a page.
        let body_bytes_max = entry.bytes.saturating_sub(BODY_ALIGNMENT).max(BODY_ALIGNMENT);
        let is_read = entry.bytes <= AtOnce::BYTES_MAX && (how.takes)(body_bytes_max);
        let state = if is_read && !how.wants_state { None } else { FileState::of(&file).ok() };
        if state.is_none() && (!is_read || how.wants_state) {
            return Err(Some((file, entry.bytes)));
        }
        // With a byte more than there is known to be: that there is no more is its length.
        let more_bytes = if is_read { (entry.bytes + 1).saturating_sub(BODY_ALIGNMENT) } else { 0 };
        let mut page = [0; READ_BYTES];
        let read = usize::try_from(more_bytes).ok().and_then(|more_bytes| {
            let (page_bytes, more) = (how.read)(file.as_fd(), &mut page, more_bytes)?;
            Some((page.get(..page_bytes)?, more))
        });
        let seen = read.and_then(|(page, more)| {
            let (head, body) = decoded(page, &more)?;
            let end = body.offset + body.bytes;
            let read_bytes = page.len() + more.len();
            let is_whole = !is_read || read_bytes as u64 == end;
            if !is_whole || state.is_some_and(|state| state.stamp.bytes != end) || head.key != key {
                return None;
            }
            let bytes = if is_read { Some(body_in(page, more, body.offset)?) } else { None };
            if !entry.is_checked && body.sum.is_some() {
                let is_as_written = body.sum == bytes.as_ref().map(|bytes| summed(0, bytes));
                is_as_written.then_some(())?;
            }
            Some((head, body, bytes))
        });
        let Some((head, body, bytes)) = seen else { return Err(Some((file, entry.bytes))) };
        if self.purges.covers(&head) {
            return Err(Some((file, entry.bytes)));
        }
        if !entry.is_checked {
            self.index.set_checked(name, entry.serial);
        }
        let reference = Reference { name, serial: entry.serial, marker: None };
        let object = Object { head, file, body, reference, state };
        Ok(FoundAtOnce { object, body: bytes })
    }
}

/// The head of a file whose first page is this, with what follows.
fn decoded(page: &[u8], more: &[u8]) -> Option<(ObjectHead, BodyExtent)> {
    if page.len() >= PREFIX_BYTES && ObjectHead::bytes(page).is_ok_and(|bytes| bytes > page.len()) {
        return ObjectHead::decode(&[page, more].concat()).ok();
    }
    ObjectHead::decode(page).ok()
}

/// The body that begins at `offset`. Where that is behind the first page, it is what follows, as it is.
fn body_in(page: &[u8], more: Vec<u8>, offset: u64) -> Option<Vec<u8>> {
    let offset = usize::try_from(offset).ok()?;
    Some(match offset.checked_sub(page.len()) {
        Some(0) => more,
        Some(behind) => more.get(behind..)?.to_vec(),
        None => [page.get(offset..)?, &more].concat(),
    })
}

#[cfg(test)]
mod tests;
