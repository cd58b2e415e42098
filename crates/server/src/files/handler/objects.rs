//! What a worker remembers of objects of stores, among its files and within the same limits; and when it lets go of either.

use std::cell::Cell;
use std::hash::Hash;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use kettle_runtime::clock::Clock;

use super::super::entry::Content;
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
        Some(object)
    }

    /// Meets an object of about this many bytes that is looked for. As with files, one that is small takes the place of others in memory
    /// only if it was asked for a short while ago.
    #[must_use]
    pub fn meet_object(
        &self,
        route: u64,
        asked: &str,
        name: &impl Hash,
        bytes: u64,
    ) -> ObjectMeeting {
        let cache = self.cache.borrow();
        if cache.find(object_key(route, asked)).is_some() {
            return ObjectMeeting { is_kept: true, wants_state: true };
        }
        let met_ago = self.marks.borrow_mut().meet(name).ago;
        let is_kept = cache.is_worth_memory(bytes, met_ago);
        ObjectMeeting { is_kept, wants_state: is_kept && met_ago.is_some() }
    }

    /// Remembers an object, unless it is in memory and not to be kept. One that is remembered and the same stays, with its open file.
    pub fn remember_object(
        &self,
        route: u64,
        asked: &str,
        object: &Rc<ReadyObject>,
        met: ObjectMeeting,
    ) {
        if !met.is_kept && matches!(object.content, Content::Memory(_)) {
            return;
        }
        let key = object_key(route, asked);
        let mut cache = self.cache.borrow_mut();
        if let Some(Remembered::Object(known)) = cache.find(key)
            && known.is(object)
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
            let (unasked_max, left) = (self.revalidate.max(UNASKED_MAX), Cell::new(CLOSED_MAX));
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

    /// Where small bodies of objects are read to.
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

/// How long a file stays open that nobody asks for, unless it need not be looked at for longer,
const UNASKED_MAX: Duration = Duration::from_secs(60);
/// how often such files are looked for,
const RELEASED_AGAIN: Duration = Duration::from_secs(10);
/// and how many are closed at once.
const CLOSED_MAX: usize = 1_024;

fn object_key(route: u64, asked: &str) -> KeyRef<'_> {
    KeyRef { route, preference: CodingPreference::NONE, path: asked }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::Arc;

    use kettle_cache::{ObjectHead, Store, StoreSettings};
    use kettle_config::Limits;
    use kettle_kernel::file_system::FileSystem;
    use kettle_runtime::disk::Device;
    use kettle_runtime::encoder::EncoderPlaces;
    use tempfile::TempDir;

    use super::*;
    use crate::files::object::{FoundObject, ObjectLook};

    #[test]
    fn once_memory_is_full_an_object_is_remembered_if_it_was_asked_for_a_short_while_ago() {
        let folder = TempDir::new().unwrap();
        let directory = folder.path().to_owned();
        let settings = StoreSettings { directory, bytes_max: 1 << 24, object_bytes_max: 1 << 18 };
        let store = Arc::new(Store::open(settings).unwrap());
        let limits = Limits { hot_memory_bytes: 1 << 20, ..Limits::default() };
        let files = Files::new(&limits, Default::default(), EncoderPlaces::new(1, 4 << 20));
        let on = FileSystem::of(std::fs::File::open(folder.path()).unwrap().as_fd()).unwrap();
        let device = Arc::new(Device::new(on));
        // Looks for an object that was not looked for before, or was: whether it was remembered by it.
        let look = |key: &str| {
            let device = Arc::clone(&device);
            let look = ObjectLook::begin(&store, key, device, files.clock());
            let met = files.meet_object(1, key, &look.known.name(), look.known.bytes());
            let found = FoundObject::find_at_once(&look, key, &|_| Vec::new(), files.memory(), met);
            let found = found.unwrap();
            let device = Arc::clone(look.device());
            let object = ReadyObject::new(found, &store, device, files.now().0);
            files.remember_object(1, key, &object, met);
            files.remembered_object(1, key).is_some()
        };
        let keys: Vec<_> = (0..400).map(|number| format!("https://a/{number}")).collect();
        for key in &keys {
            let generation = store.generation();
            let head =
                ObjectHead { key: key.clone(), status: 200, generation, ..ObjectHead::default() };
            store.keep(&head, &[7; 8_192]).unwrap();
        }
        let remembered = keys.iter().filter(|key| look(key)).count();
        assert!((50..200).contains(&remembered), "a part of them fills it: {remembered}");
        let last = keys.last().unwrap();
        assert!(files.remembered_object(1, last).is_none());
        assert!(look(last), "it was met a moment ago");
        assert!(!look(keys.get(remembered + 10).unwrap()), "much was met since");
    }
}
