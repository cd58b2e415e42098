//! Forms of an object: its body in a content coding, made once and kept beside it.
//!
//! A form has the name of a variant that no marker leads to, so [`Store::find`] never meets it, and a purge of its key takes it along. It
//! is found by the object that it was made of, and stands for that one only: an object that was replaced since gets a new one, and the
//! old one makes room as what nobody uses.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::at_once::{AtOnce, FoundAtOnce, Left};
use super::find::Object;
use super::{Reference, Store};
use crate::error::StoreError;
use crate::head::{BodyExtent, ObjectHead, Times};
use crate::name::Name;

/// An object, and the coding that a form of it is in.
#[derive(Clone, Copy, Debug)]
pub struct FormOf<'o> {
    /// The object's reference.
    pub reference: &'o Reference,
    /// The object's head.
    pub head: &'o ObjectHead,
    /// The extent of the object's body.
    pub body: BodyExtent,
    /// The coding, as `Content-Encoding` has it.
    pub coding: &'o str,
}

impl FormOf<'_> {
    /// The head of the form, which belongs to this generation.
    fn form_head(&self, generation: u64) -> ObjectHead {
        let ObjectHead { key, vary, tags, times, is_for_everybody, .. } = self.head;
        let mut vary = vary.clone();
        vary.push((CODING.to_owned(), self.coding.into()));
        ObjectHead {
            key: key.clone(),
            vary,
            status: FORM_STATUS,
            is_for_everybody: *is_for_everybody,
            etag: self.identity(),
            times: *times,
            tags: tags.clone(),
            generation,
            ..ObjectHead::default()
        }
    }

    /// Returns the value that distinguishes the object from each other one that its key has had:
    /// its content and validators; without those, when it came.
    fn identity(&self) -> Vec<u8> {
        let BodyExtent { bytes, sum, .. } = self.body;
        let ObjectHead { etag, modified, times: Times { arrived, age, .. }, .. } = self.head;
        let mut hash = Sha256::new();
        let sum = sum.map_or(u64::MAX, u64::from);
        let came = match (etag.is_empty(), modified) {
            (true, None) => [*arrived, *age],
            // It is the same after it was validated.
            _ => [0, 0],
        };
        for number in [bytes, sum, modified.unwrap_or(u64::MAX)].into_iter().chain(came) {
            hash.update(number.to_le_bytes());
        }
        hash.update(etag);
        hash.finalize().to_vec()
    }

    fn name(&self, form: &ObjectHead) -> Name {
        self.reference.name.variant(&form.vary)
    }
}

impl Store {
    /// Finds a form without waiting for a disk, as [`find_at_once`](Self::find_at_once) does. An empty one says that the coding makes the
    /// object no smaller.
    ///
    /// # Errors
    /// The rest to be closed, which may wait, if a thread has to [keep](Self::keep_form) one.
    pub fn find_form_at_once(
        &self,
        of: &FormOf<'_>,
        how: &AtOnce<'_>,
    ) -> Result<FoundAtOnce, Option<Left>> {
        let form = of.form_head(0);
        let name = of.name(&form);
        let entry = self.index.look(name).ok_or(None)?;
        let found = self.see(name, entry, &form.key, how)?;
        if is_form(&found.object, &form) {
            return Ok(found);
        }
        let bytes = found.object.body.offset + found.object.body.bytes;
        Err(Some((found.object.file, bytes)))
    }

    /// Makes and keeps a form, unless it is there: then it is read, so that the kernel has it at hand. `make` returns nothing where the
    /// coding makes the object no smaller. Touches the disk.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_form(
        self: &Arc<Self>,
        of: &FormOf<'_>,
        make: impl FnOnce() -> Result<Option<Vec<u8>>, StoreError>,
    ) -> Result<(), StoreError> {
        // Before the object is known to be current: a purge from here on covers the form.
        let form = of.form_head(self.generation());
        let name = of.name(&form);
        if let Some(found) = self.open_object(name, &form.key)?
            && is_form(&found, &form)
        {
            return found.read_through().map_err(StoreError::disk("read an object"));
        }
        if !self.is_current(of.reference, of.head) {
            return Err(StoreError::Purged);
        }
        let coded = make()?.unwrap_or_default();
        if coded.len() as u64 > self.object_bytes_max() {
            return Err(StoreError::TooLarge);
        }
        let serial = self.write(&form, &coded, name)?;
        self.settle_alone(&form, name, serial)
    }
}

fn is_form(found: &Object, form: &ObjectHead) -> bool {
    let ObjectHead { status, vary, etag, .. } = &found.head;
    (*status, vary, etag) == (form.status, &form.vary, &form.etag)
}

/// In place of a field's name. No field has it, so no response varies by it.
const CODING: &str = ":coding";

/// Of a form: no response has it, and it is no marker's.
const FORM_STATUS: u16 = 1;

#[cfg(test)]
mod tests;
