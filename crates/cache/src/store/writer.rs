//! An object that arrives: written without a name, given one when it is whole.

use std::sync::Arc;

use super::find::summed;
use super::naming::{Claim, SUMMED_BYTES_MAX};
use super::own_files::write_all;
use super::{Reference, Store};
use crate::error::StoreError;
use crate::fill::{Fill, FillState};
use crate::head::{BodyExtent, ObjectHead};
use crate::index::bytes_on_disk;
use crate::name::Name;

/// An object that arrives. Dropped before [`finish`](Self::finish), it has failed: its readers learn so, and nothing of it
/// stays.
#[derive(Debug)]
pub struct ObjectWriter {
    claim: Claim,
    head: ObjectHead,
    fill: Fill,
    filled_bytes: u64,
    /// The same with what there was no room for.
    came_bytes: u64,
    told_bytes: u64,
    /// That of the body so far, unless it is too long for that.
    sum: Option<u32>,
}

impl Store {
    /// Begins an object. Touches the disk, as all that a writer does.
    ///
    /// # Errors
    /// If it may not or cannot be stored; the response goes past the store then.
    pub fn begin(
        self: &Arc<Self>,
        head: ObjectHead,
        announced_bytes: Option<u64>,
    ) -> Result<ObjectWriter, StoreError> {
        if announced_bytes.is_some_and(|bytes| bytes > self.object_bytes_max()) {
            return Err(StoreError::TooLarge);
        }
        let offset = head.body_offset(announced_bytes).ok_or(StoreError::HeadTooLarge)?;
        let (file, claim) = self.claim(offset + announced_bytes.unwrap_or(0), true)?;
        let fill = Fill::new(file, offset, announced_bytes);
        Ok(ObjectWriter {
            claim,
            head,
            fill,
            filled_bytes: 0,
            came_bytes: 0,
            told_bytes: 0,
            sum: Some(0),
        })
    }
}

impl ObjectWriter {
    /// Returns the fill that readers of the growing object share.
    #[must_use]
    pub fn fill(&self) -> &Fill {
        &self.fill
    }

    /// Returns the head it will have.
    #[must_use]
    pub fn head(&self) -> &ObjectHead {
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
        self.came_bytes = after;
        let needed = self.fill.body_offset() + after;
        let Claim { store, bytes_max, reserved_bytes, .. } = &mut self.claim;
        let is_kept = after <= store.object_bytes_max();
        if needed > *reserved_bytes {
            let more = bytes_on_disk((needed - *reserved_bytes).max(RESERVED_AT_ONCE_BYTES));
            // Nothing makes room for what is not kept.
            match is_kept {
                true => store.reserve(more, *bytes_max)?,
                false => store.reserve_free(more, *bytes_max)?,
            }
            *reserved_bytes += more;
        }
        match is_kept {
            true => self.claim.make_room(needed),
            false => self.claim.take_free(),
        }
        let store = &self.claim.store;
        self.sum = self.sum.filter(|_| after <= SUMMED_BYTES_MAX).map(|sum| summed(sum, bytes));
        let offset = self.fill.body_offset() + self.filled_bytes;
        let write = || write_all(self.fill.shared_file(), bytes, offset);
        let written = match is_kept {
            true => store.with_room(bytes.len() as u64, write),
            false => write(),
        };
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

    /// Tells readers why the rest does not come. Without it they learn that it does not when this is dropped.
    pub fn fail(&mut self, why: FillState) {
        self.fill.end(why);
    }

    /// True if so much came that it is not kept, though its readers get all of it.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.came_bytes > self.claim.store.object_bytes_max()
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
        let Self { claim, head, fill, filled_bytes, sum, .. } = &mut self;
        let store = Arc::clone(&claim.store);
        if store.purges.covers_arriving(head) {
            return Err(StoreError::Purged);
        }
        let body = BodyExtent { offset: fill.body_offset(), bytes: *filled_bytes, sum: *sum };
        let bytes = head.encode(body).ok_or(StoreError::HeadTooLarge)?;
        let file = fill.shared_file();
        let written = store.with_room(bytes.len() as u64, || write_all(file, &bytes, 0));
        written.map_err(StoreError::disk("write an object's head"))?;
        if body.bytes == 0 {
            // The head ends before the body begins, and so would the file.
            let lengthened = rustix::fs::ftruncate(file, body.offset);
            lengthened.map_err(StoreError::disk("write an object's head"))?;
        }
        let name = Name::of_object(head);
        let serial = claim.name(fill.shared_file(), head, name, body)?;
        store.settle(head, name, serial)
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if self.fill.progress().state == FillState::Growing {
            self.fill.end(FillState::Failed);
        }
    }
}

/// Progress after which whoever waits is told without being asked.
const TOLD_BYTES: u64 = 64 * 1_024;

/// Room that bodies of unknown length take at a time.
const RESERVED_AT_ONCE_BYTES: u64 = 128 * 1_024;
