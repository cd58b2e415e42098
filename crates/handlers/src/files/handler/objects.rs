//! The memory of a worker for objects of stores, among its files and within the same limits; and when it lets go of either.

use std::cell::Cell;
use std::hash::Hash;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use kettle_runtime::clock::Clock;

use super::super::entry::Content;
use super::super::marks::Keep;
use super::super::memory::FileMemory;
use super::super::object::{ObjectMeeting, ReadyObject};
use super::super::open_cache::{KeyRef, Remembered};
use super::super::precompressed::CodingPreference;
use super::Files;

impl Files {
    /// The object that was found for this, if it is still current and its file is there. Waits for no disk.
    #[must_use]
    pub fn remembered_object(&self, route: u64, asked: &str) -> Option<Rc<ReadyObject>> {
        let key = object_key(route, asked);
        let object = match self.cache.borrow().find(key)? {
            Remembered::Object(object) => object,
            Remembered::File(_) => return None,
        };
        if !object.is_current() {
            self.cache.borrow_mut().forget(key);
            return None;
        }
        // A file removed from a store's folder is noticed as soon as a changed one.
        let now = self.clock.monotonic();
        if now.saturating_sub(object.checked.get()) >= self.revalidate {
            if !object.is_there() {
                return None;
            }
            object.checked.set(now);
        }
        if self.belongs_in_memory(&object) {
            return None;
        }
        Some(object)
    }

    /// True if what is remembered where it is should be read into memory: it was met again a short while after it was met last.
    /// A file in memory is not met: that would make all else seem to have been met long ago.
    fn belongs_in_memory(&self, object: &ReadyObject) -> bool {
        self.finder.has_room_for(&object.content) && {
            let ago = self.marks.borrow_mut().meet_again(&object.met);
            self.cache.borrow().is_worth_memory(object.content.bytes(), Some(ago))
        }
    }

    /// Meets an object of about this many bytes that is looked for. As with files, one that is small takes the place of others in memory,
    /// or among open files, only if it was asked for a short while ago.
    #[must_use]
    pub fn meet_object(
        &self,
        route: u64,
        asked: &str,
        name: &impl Hash,
        bytes: u64,
    ) -> ObjectMeeting {
        if self.cache.borrow().find(object_key(route, asked)).is_some() {
            return ObjectMeeting { keep: Keep::InMemory, wants_state: true };
        }
        let met_ago = self.marks.borrow_mut().meet(name).ago;
        let cache = self.cache.borrow();
        let keep = match cache.is_worth_memory(bytes, met_ago) {
            true => Keep::InMemory,
            false if cache.is_worth_descriptor(met_ago) => Keep::Open,
            false => Keep::Nowhere,
        };
        ObjectMeeting { keep, wants_state: keep != Keep::Nowhere && met_ago.is_some() }
    }

    /// Remembers an object, unless it is in memory and not to be kept. One that is remembered and the same stays, with its open file, unless it
    /// comes into memory.
    pub fn remember_object(
        &self,
        route: u64,
        asked: &str,
        object: &Rc<ReadyObject>,
        met: ObjectMeeting,
    ) {
        let is_in_memory = matches!(object.content, Content::Memory(_));
        if is_in_memory && met.keep != Keep::InMemory {
            return;
        }
        object.met.set(self.marks.borrow().meetings());
        let key = object_key(route, asked);
        let mut cache = self.cache.borrow_mut();
        if let Some(Remembered::Object(known)) = cache.find(key)
            && known.is(object)
            && (!is_in_memory || matches!(known.content, Content::Memory(_)))
        {
            known.checked.set(object.checked.get());
            return;
        }
        cache.remember(key, Remembered::Object(Rc::clone(object)));
        self.metrics.open_files(cache.open_files() as u64);
    }

    /// Lets go of the files of objects that are gone, and now and then of files nobody asked for in a while, which may be gone too:
    /// their room on the disk is free only then. Called at each tick.
    pub fn release(&self) {
        let mut cache = self.cache.borrow_mut();
        let mut has_released = cache.retain_objects(ReadyObject::has_its_name);
        let now = self.clock.monotonic();
        if now.saturating_sub(self.released.get()) >= RELEASED_AGAIN {
            let unasked_max = self.revalidate.max(UNASKED_MAX);
            let left = Cell::new(CLOSED_MAX);
            cache.retain_files(|entry| {
                let is_kept = now.saturating_sub(entry.checked.get().at) < unasked_max;
                is_kept || left.replace(left.get().saturating_sub(1)) == 0
            });
            if left.get() > 0 {
                self.released.set(now);
            }
            has_released = true;
        }
        if has_released {
            self.metrics.open_files(cache.open_files() as u64);
        }
    }

    /// Returns the memory into which small bodies of objects are read.
    #[must_use]
    pub fn memory(&self) -> Option<&FileMemory> {
        self.finder.memory()
    }

    /// The clocks by which files and objects are looked at.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The time on both clocks: for periods, and of day.
    #[must_use]
    pub fn now(&self) -> (Duration, SystemTime) {
        (self.clock.monotonic(), self.clock.wall())
    }
}

/// The time a file stays open that nobody asks for, unless it need not be looked at for longer,
const UNASKED_MAX: Duration = Duration::from_secs(60);
/// how often such files are looked for,
const RELEASED_AGAIN: Duration = Duration::from_secs(10);
/// and how many are closed at once.
const CLOSED_MAX: usize = 1_024;

fn object_key(route: u64, asked: &str) -> KeyRef<'_> {
    KeyRef { route, preference: CodingPreference::NONE, by_sendfile: false, path: asked }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::Arc;

    use kettle_cache::{ObjectHead, Store, StoreSettings};
    use kettle_config::Limits;
    use kettle_kernel::file_system::FileSystem;
    use kettle_runtime::disk::Device;
    use kettle_runtime::encoder::EncoderPermits;
    use tempfile::TempDir;

    use super::*;
    use crate::files::object::{FoundObject, ObjectLook};

    /// Objects of 8 KiB in a store, and a worker that has asked for each of them once, with memory for a part of them.
    struct Asked {
        _folder: TempDir,
        store: Arc<Store>,
        device: Arc<Device>,
        files: Files,
        keys: Vec<String>,
        remembered: usize,
    }

    impl Asked {
        fn once(open_files: usize) -> Self {
            let folder = TempDir::new().unwrap();
            let directory = folder.path().to_owned();
            let settings =
                StoreSettings { directory, bytes_max: 1 << 24, object_bytes_max: 1 << 18 };
            let store = Arc::new(Store::open(settings).unwrap());
            let limits = Limits { hot_memory_bytes: 1 << 20, open_files, ..Limits::default() };
            let files = Files::new(&limits, Default::default(), EncoderPermits::new(1, 4 << 20));
            let on = FileSystem::of(std::fs::File::open(folder.path()).unwrap().as_fd()).unwrap();
            let device = Arc::new(Device::new(on));
            let keys: Vec<_> = (0..400).map(|number| format!("https://a/{number}")).collect();
            for key in &keys {
                let key = key.clone();
                let generation = store.generation();
                let head = ObjectHead { key, status: 200, generation, ..ObjectHead::default() };
                store.keep(&head, &[7; 8_192]).unwrap();
            }
            let mut asked = Self { _folder: folder, store, device, files, keys, remembered: 0 };
            let find = |key| asked.ask(key).is_some();
            asked.remembered = asked.keys.iter().filter(|key| find(key)).count();
            assert!((50..200).contains(&asked.remembered), "{}", asked.remembered);
            asked
        }

        /// Looks for what is not remembered, and says what is remembered then.
        fn ask(&self, key: &str) -> Option<Remembered> {
            let device = Arc::clone(&self.device);
            let files = &self.files;
            let look = ObjectLook::begin(&self.store, key, device, files.clock());
            let met = files.meet_object(1, key, &look.known.name(), look.known.bytes());
            let found = FoundObject::find_at_once(&look, key, &|_| Vec::new(), files.memory(), met);
            let device = Arc::clone(look.device());
            let now = files.now().0;
            let object = ReadyObject::new(found.unwrap(), &self.store, device, now);
            files.remember_object(1, key, &object, met);
            files.cache.borrow().find(object_key(1, key))
        }
    }

    fn is_open(remembered: Option<Remembered>) -> bool {
        let Some(Remembered::Object(object)) = remembered else { return false };
        matches!(object.content, Content::File(_))
    }

    #[test]
    fn once_memory_is_full_an_object_is_remembered_if_it_was_asked_for_a_short_while_ago() {
        let asked = Asked::once(0);
        let last = asked.keys.last().unwrap();
        assert!(asked.files.remembered_object(1, last).is_none());
        assert!(asked.ask(last).is_some(), "it was met a moment ago");
        let meetings = asked.files.marks.borrow().meetings();
        assert!(asked.files.remembered_object(1, last).is_some());
        assert_eq!(asked.files.marks.borrow().meetings(), meetings, "what is in memory is not met");
        let other = asked.keys.get(asked.remembered + 10).unwrap();
        assert!(asked.ask(other).is_none(), "much was met since");
    }

    #[test]
    fn what_is_met_again_and_has_no_place_in_memory_stays_open_until_it_has() {
        let asked = Asked::once(10);
        let files = &asked.files;
        let mut late = asked.keys.iter().skip(asked.remembered);
        // Of those, the table of what was met has lost a few, by chance.
        let key = late.find(|key| is_open(asked.ask(key))).expect("much was met since");
        assert_eq!(files.cache.borrow().open_files(), 1);
        for other in 0..400 {
            files.marks.borrow_mut().meet(&other);
        }
        assert!(files.remembered_object(1, key).is_some(), "it is answered from its file");
        assert!(files.remembered_object(1, key).is_none(), "it belongs in memory by now");
        let found = asked.ask(key);
        assert!(found.is_some() && !is_open(found));
        assert_eq!(files.cache.borrow().open_files(), 0);
    }

    #[test]
    fn as_many_stay_open_as_there_are_descriptors_for() {
        let asked = Asked::once(10);
        let late = asked.keys.get(asked.remembered..asked.keys.len() - 100).unwrap();
        assert_eq!(late.iter().filter(|key| is_open(asked.ask(key))).count(), 10);
        assert!(asked.files.cache.borrow().open_files() <= 10);
    }
}
