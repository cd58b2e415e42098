//! Objects of stores as a worker remembers them: ready to be answered with, for as long as their store says that they are current.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kettle_cache::{
    AtOnce, BodyExtent, FileState, FormOf, FoundAtOnce, Known, Moment, Object, ObjectHead,
    Reference, Store, StoreError,
};
use kettle_config::Coding;
use kettle_kernel::transfer::{self, Wait};
use kettle_runtime::clock::Clock;
use kettle_runtime::disk::{self, Device, ReadMode};
use rustix::io::Errno;

use super::OpenFile;
use super::entry::Content;
use super::marks::Keep;
use super::memory::FileMemory;
use super::memory::PASSING_BYTES_MAX;
use super::precompressed::token;

/// An object ready to be answered with.
#[derive(Debug)]
pub struct ReadyObject {
    /// The head of the object.
    pub head: ObjectHead,
    /// Its body where that is in memory, or else its file, with its head before its body.
    pub content: Content,
    /// The extent of its body in the file.
    pub body: BodyExtent,
    store: Arc<Store>,
    reference: Reference,
    /// As its file was when it was found, where that was asked.
    state: Option<FileState>,
    /// When it was current.
    moment: Cell<Moment>,
    /// When its file was looked at last.
    pub checked: Cell<Duration>,
    /// At which [meeting](super::marks::Marks) it was met last.
    pub met: Cell<u32>,
    /// Its compressed forms that are in memory.
    forms: RefCell<Vec<(Coding, Bytes)>>,
}

/// A compressed form of an object, as it is at hand. An empty one says that the coding makes the object no smaller.
#[derive(Debug)]
pub struct ReadyForm {
    /// The place of its bytes.
    pub content: Content,
    /// The extent of them in a file.
    pub body: BodyExtent,
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
        let Some(object) = store.find(key, value_of)? else { return Ok(None) };
        let Object { body, .. } = object;
        let file = File::from(object.file);
        let room = memory.and_then(|memory| memory.room(body.bytes));
        let bytes = room.and_then(|room| {
            let mut bytes = vec![0; usize::try_from(body.bytes).ok()?];
            file.read_exact_at(&mut bytes, body.offset).ok()?;
            Some(room.filled(bytes))
        });
        let object = Object { file: file.into(), ..object };
        Ok(Some(Self { object, bytes, moment }))
    }

    /// The same by the worker, as far as what is known leads to an object that the kernel has at hand; `None` if a thread has to look.
    pub fn find_at_once(
        look: &ObjectLook<'_>,
        key: &str,
        value_of: &dyn Fn(&str) -> Vec<u8>,
        memory: Option<&FileMemory>,
        met: ObjectMeeting,
    ) -> Option<Self> {
        let ObjectLook { store, device, clock, known, moment } = look;
        let is_passing = |bytes| match met.keep {
            Keep::Nowhere => bytes <= PASSING_BYTES_MAX,
            Keep::Open => false,
            Keep::InMemory => true,
        };
        let how = AtOnce {
            read: &|file, page, more_bytes| read_at_hand(device, *clock, file, page, more_bytes),
            takes: &|bytes| memory.is_some_and(|it| it.is_for(bytes)) && is_passing(bytes),
            wants_state: met.wants_state,
        };
        let left = match store.find_at_once(known, key, value_of, &how) {
            Ok(FoundAtOnce { object, body: None }) => {
                return Some(Self { object, bytes: None, moment: *moment });
            }
            Ok(FoundAtOnce { object, body: Some(body) }) => {
                match memory.and_then(|memory| memory.room(body.len() as u64)) {
                    Some(room) => {
                        let bytes = Some(room.filled(body));
                        return Some(Self { object, bytes, moment: *moment });
                    }
                    // Its file would be kept, and nothing is known of that yet.
                    None => Some((object.file, body.len() as u64)),
                }
            }
            Err(left) => left,
        };
        if let Some((file, bytes)) = left {
            device.close(file, bytes);
        }
        None
    }
}

/// The consequence of an object's earlier meetings.
#[derive(Clone, Copy, Debug)]
pub struct ObjectMeeting {
    /// The place where it is remembered.
    pub keep: Keep,
    /// True if it is noted how its file is: by that it is looked at from then on.
    pub wants_state: bool,
}

/// The facts known before an object is looked for, and its device.
pub struct ObjectLook<'l> {
    store: &'l Arc<Store>,
    device: Arc<Device>,
    clock: &'l dyn Clock,
    /// The knowledge of its store on the key.
    pub known: Known,
    moment: Moment,
}

impl fmt::Debug for ObjectLook<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ObjectLook").field("known", &self.known).finish_non_exhaustive()
    }
}

impl<'l> ObjectLook<'l> {
    /// Begins to look for a key.
    #[must_use]
    pub fn begin(
        store: &'l Arc<Store>,
        key: &str,
        device: Arc<Device>,
        clock: &'l dyn Clock,
    ) -> Self {
        // Asked for before the look: whatever is purged or replaced during it makes another moment.
        let moment = store.moment();
        Self { store, device, clock, known: store.known(key), moment }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &'l Arc<Store> {
        self.store
    }

    /// Returns the device on which the store lies.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

/// Reads the beginning of a file where that holds up nobody, as a body is read.
fn read_at_hand(
    device: &Device,
    clock: &dyn Clock,
    file: BorrowedFd<'_>,
    page: &mut [u8],
    more_bytes: usize,
) -> Option<(usize, Vec<u8>)> {
    let mut read = |wait| transfer::read_beginning(file, page, more_bytes, wait);
    let reading = || device.reading(clock.monotonic());
    if reading() == ReadMode::IfResident {
        match read(Wait::Never) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => device.refused_to_say(),
            read => return read.ok(),
        }
    }
    if reading() != ReadMode::AtOnce {
        return None;
    }
    let (read, waited) = disk::waited(|| read(Wait::Allowed));
    device.held_up(waited, clock.monotonic());
    read.ok()
}

impl FoundObject {
    /// Returns the head of the object.
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
        let Object { head, file, body, reference, state } = object;
        let content = match bytes {
            Some(bytes) => Content::Memory(bytes),
            None => Content::File(Arc::new(OpenFile::new(file, body.bytes, device))),
        };
        let moment = Cell::new(moment);
        let checked = Cell::new(now);
        let met = Cell::default();
        let store = Arc::clone(store);
        let forms = RefCell::default();
        Rc::new(Self { head, content, body, store, reference, state, moment, checked, met, forms })
    }

    /// The form of it in a coding that is in memory, or that the kernel has at hand; `None` if a thread has to
    /// [keep](Self::keeping_form) it.
    #[must_use]
    pub fn form_at_once(
        &self,
        coding: Coding,
        device: &Arc<Device>,
        clock: &dyn Clock,
        memory: Option<&FileMemory>,
    ) -> Option<ReadyForm> {
        let known = |bytes: &Bytes| {
            let body = BodyExtent { offset: 0, bytes: bytes.len() as u64, sum: None };
            ReadyForm { content: Content::Memory(bytes.clone()), body }
        };
        if let Some((_, bytes)) = self.forms.borrow().iter().find(|(it, _)| *it == coding) {
            return Some(known(bytes));
        }
        let how = AtOnce {
            read: &|file, page, more_bytes| read_at_hand(device, clock, file, page, more_bytes),
            takes: &|bytes| memory.is_some_and(|it| it.is_for(bytes)),
            wants_state: false,
        };
        let found = self.store.find_form_at_once(&self.form_of(coding), &how);
        let FoundAtOnce { object, body } = found
            .map_err(|left| {
                if let Some((file, bytes)) = left {
                    device.close(file, bytes);
                }
            })
            .ok()?;
        let room = body.as_ref().and_then(|body| memory?.room(body.len() as u64));
        if let (Some(body), Some(room)) = (body, room) {
            let bytes = room.filled(body);
            self.forms.borrow_mut().push((coding, bytes.clone()));
            return Some(known(&bytes));
        }
        let Object { file, body, .. } = object;
        let file = OpenFile::new(file, body.bytes, Arc::clone(device));
        Some(ReadyForm { content: Content::File(Arc::new(file)), body })
    }

    /// A call that makes and keeps the form in a coding, unless it is there. It touches the disk, and takes its time.
    pub fn keeping_form(
        &self,
        coding: Coding,
        compress: impl FnOnce(&[u8]) -> Option<Bytes> + Send + 'static,
    ) -> impl FnOnce() -> Result<(), StoreError> + Send + 'static {
        let store = Arc::clone(&self.store);
        let head = self.head.clone();
        let body = self.body;
        let reference = self.reference;
        let content = self.content.clone();
        let plain = move || match content {
            Content::Memory(bytes) => Ok(bytes),
            Content::File(file) => {
                let mut bytes = vec![0; usize::try_from(body.bytes).unwrap_or_default()];
                let own = file.file().try_clone_to_owned().map(File::from);
                let read = own.and_then(|own| own.read_exact_at(&mut bytes, body.offset));
                read.map(|()| bytes.into()).map_err(|error| StoreError::Disk {
                    action: "read an object",
                    errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
                })
            }
        };
        move || {
            let of = FormOf { reference: &reference, head: &head, body, coding: token(coding) };
            store.keep_form(&of, || Ok(compress(&plain()?).map(Into::into)))
        }
    }

    fn form_of(&self, coding: Coding) -> FormOf<'_> {
        let Self { reference, head, body, .. } = self;
        FormOf { reference, head, body: *body, coding: token(coding) }
    }

    /// True if it is still what its name stands for. Takes no lock where nothing in its store has ended.
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

    /// True if its file still has its name, and so its room on the disk. Asking does not count as a use.
    #[must_use]
    pub fn has_its_name(&self) -> bool {
        self.moment.get() == self.store.moment() || self.store.holds(&self.reference)
    }

    /// True if its file is as it was when it was found. Takes one look that waits for no disk: no store lies on a file system that may
    /// never answer. If that cannot be said, the answer is no.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.state.is_some_and(|state| match &self.content {
            Content::File(file) => state.lasts(file.file()),
            Content::Memory(_) => self.store.is_there(&self.reference, &state),
        })
    }

    /// True if all that is known of both is the same, found twice.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.reference == other.reference && self.state == other.state
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
