//! What a worker remembers of objects of stores, among its files and within the same limits; and when it lets go of either.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::super::memory::FileMemory;
use super::super::object::ReadyObject;
use super::super::open_cache::{KeyRef, Remembered};
use super::super::precompressed::CodingPreference;
use super::Files;
use crate::clock::Clock;

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

    /// Whether an object is remembered for this, in whatever state.
    #[must_use]
    pub fn remembers_object(&self, route: u64, asked: &str) -> bool {
        self.cache.borrow().find(object_key(route, asked)).is_some()
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
    pub fn memory(&self) -> Option<FileMemory> {
        self.finder.memory().cloned()
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
