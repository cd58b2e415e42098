//! Objects of stores as a worker remembers them: ready to be answered with, for as long as their store says that they are current.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kettle_cache::{BodyExtent, Moment, Object, ObjectHead, Reference, Store, StoreError};

use super::OpenFile;
use super::entry::Content;
use super::memory::FileMemory;
use crate::disk::Device;

/// An object ready to be answered with.
#[derive(Debug)]
pub struct ReadyObject {
    /// What it is.
    pub head: ObjectHead,
    /// Its body where that is in memory, or else its file, with its head before its body.
    pub content: Content,
    /// Where its body is in the file.
    pub body: BodyExtent,
    store: Arc<Store>,
    reference: Reference,
    /// When it was current.
    moment: Cell<Moment>,
    /// When it was found on the disk.
    pub checked: Cell<Duration>,
}

/// An object that was found on the disk, and its body if that is small.
#[derive(Debug)]
pub struct FoundObject {
    object: Object,
    bytes: Option<Bytes>,
    moment: Moment,
}

impl FoundObject {
    /// Finds an object. Touches the disk.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn find(
        store: &Store,
        key: &str,
        value_of: &dyn Fn(&str) -> Vec<u8>,
        memory: Option<FileMemory>,
    ) -> Result<Option<Self>, StoreError> {
        // Asked for before the look: whatever is purged or replaced during it makes another moment.
        let moment = store.moment();
        let Some(Object { head, file, body, reference }) = store.find(key, value_of)? else {
            return Ok(None);
        };
        let file = File::from(file);
        let room = memory.and_then(|memory| memory.room(body.bytes));
        let bytes = room.and_then(|room| {
            let mut bytes = vec![0; usize::try_from(body.bytes).ok()?];
            file.read_exact_at(&mut bytes, body.offset).ok()?;
            Some(room.filled(bytes.into()))
        });
        let object = Object { head, file: file.into(), body, reference };
        Ok(Some(Self { object, bytes, moment }))
    }
}

impl FoundObject {
    /// What it is.
    #[must_use]
    pub fn head(&self) -> &ObjectHead {
        &self.object.head
    }

    /// The same, to change what is known of it.
    pub fn head_mut(&mut self) -> &mut ObjectHead {
        &mut self.object.head
    }
}

impl ReadyObject {
    /// Makes an object ready that was found at `now`, on the monotonic clock.
    #[must_use]
    pub fn new(
        found: FoundObject,
        store: &Arc<Store>,
        device: Arc<Device>,
        now: Duration,
    ) -> Rc<Self> {
        let FoundObject { object, bytes, moment } = found;
        let Object { head, file, body, reference } = object;
        let content = match bytes {
            Some(bytes) => Content::Memory(bytes),
            None => Content::File(Arc::new(OpenFile::new(file, body.bytes, device))),
        };
        let (moment, checked) = (Cell::new(moment), Cell::new(now));
        Rc::new(Self { head, content, body, store: Arc::clone(store), reference, moment, checked })
    }

    /// Whether it is still what its name stands for. Takes no lock where nothing in its store has ended.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let moment = self.store.moment();
        if self.moment.get() == moment {
            return true;
        }
        let is_current = self.store.is_current(&self.reference, &self.head);
        if is_current {
            self.moment.set(moment);
        }
        is_current
    }

    /// Whether its file still has its name, and so its room on the disk. Asking does not count as a use.
    #[must_use]
    pub fn has_its_name(&self) -> bool {
        self.moment.get() == self.store.moment() || self.store.holds(&self.reference)
    }

    /// Whether both are the same object, found twice.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.reference == other.reference
    }

    /// Bytes of memory it refers to.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len(),
            Content::File(_) => 0,
        };
        let ObjectHead { key, vary, lines, etag, tags, .. } = &self.head;
        let vary = vary.iter().map(|(name, value)| name.len() + value.len() + TEXT_BYTES);
        let tags = tags.iter().map(|tag| tag.len() + TEXT_BYTES);
        content + key.len() + lines.len() + etag.len() + vary.chain(tags).sum::<usize>()
    }
}

/// A text's own size, beside its bytes.
const TEXT_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use kettle_cache::StoreSettings;
    use kettle_kernel::file_system::FileSystem;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_body_that_is_sent_whole_is_all_that_may_be_sent_of_its_file() {
        let folder = TempDir::new().unwrap();
        let directory = folder.path().to_owned();
        let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 1 << 18 };
        let store = Arc::new(Store::open(settings).unwrap());
        let generation = store.generation();
        let head = ObjectHead {
            key: "https://a/".into(),
            status: 200,
            generation,
            ..ObjectHead::default()
        };
        store.keep(&head, b"body").unwrap();
        let found = FoundObject::find(&store, "https://a/", &|_| Vec::new(), None).unwrap();
        let device = Arc::new(Device::new(FileSystem::default()));
        let object = ReadyObject::new(found.unwrap(), &store, device, Duration::ZERO);
        // Else it is asked at each response whether all of it is in memory.
        assert!(matches!(&object.content, Content::File(file) if file.bytes() == 4));
    }
}
