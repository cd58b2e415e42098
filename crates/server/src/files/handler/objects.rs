//! What a worker remembers of objects of stores: among its files, and within the same limits.

use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::super::memory::FileMemory;
use super::super::object::ReadyObject;
use super::super::open_cache::{KeyRef, Remembered};
use super::super::precompressed::CodingPreference;
use super::Files;

impl Files {
    /// The object that was found for this a moment ago, if it is still current. Touches no disk.
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
        let age = self.clock.monotonic().saturating_sub(object.checked.get());
        (age < self.revalidate).then_some(object)
    }

    /// Remembers an object. One that is remembered and the same stays, with its open file.
    pub fn remember_object(&self, route: u64, asked: &str, object: &Rc<ReadyObject>) {
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

    /// Lets go of the files of objects that are gone: their room on the disk is free only then.
    pub fn release_objects(&self) {
        let mut cache = self.cache.borrow_mut();
        if cache.retain_objects(ReadyObject::has_its_name) {
            self.metrics.open_files(cache.open_files() as u64);
        }
    }

    /// Where small bodies of objects are read to.
    #[must_use]
    pub fn memory(&self) -> Option<FileMemory> {
        self.finder.memory().cloned()
    }

    /// The time on both clocks: for periods, and of day.
    #[must_use]
    pub fn now(&self) -> (Duration, SystemTime) {
        (self.clock.monotonic(), self.clock.wall())
    }
}

fn object_key(route: u64, asked: &str) -> KeyRef<'_> {
    KeyRef { route, preference: CodingPreference::NONE, path: asked }
}
