//! The memory of a worker for files, and objects of stores: ready bytes of small ones, descriptors of others.
//!
//! Both stores are bounded and forget what is used least. The caller decides whether an entry still tells the truth; a file
//! that was not found is never remembered.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use quick_cache::unsync::Cache;
use quick_cache::{Equivalent, Weighter};

use super::entry::{Content, Entry};
use super::memory::PASSING_BYTES_MAX;
use super::object::ReadyObject;
use super::precompressed::CodingPreference;

/// The facts on which an answer from a file depends.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    route: u64,
    preference: CodingPreference,
    by_sendfile: bool,
    path: Box<str>,
}

/// A [`Key`] that borrows its path, so that looking allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRef<'k> {
    /// The number of the route.
    pub route: u64,
    /// The codings the client takes.
    pub preference: CodingPreference,
    /// True if sendfile takes a small file to the client, too: a copy in memory costs it more.
    pub by_sendfile: bool,
    /// The path below the route's prefix, with its slash.
    pub path: &'k str,
}

impl Hash for KeyRef<'_> {
    /// One number and the path, instead of three values: each costs a round of the hash.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let bits = u64::from(self.preference.bits()) << 1 | u64::from(self.by_sendfile);
        state.write_u64(self.route << 9 | bits);
        state.write(self.path.as_bytes());
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

impl Key {
    fn as_ref(&self) -> KeyRef<'_> {
        let Self { route, preference, by_sendfile, ref path } = *self;
        KeyRef { route, preference, by_sendfile, path }
    }
}

impl KeyRef<'_> {
    /// The key to remember an entry by.
    #[must_use]
    pub fn to_key(self) -> Key {
        let Self { route, preference, by_sendfile, path } = self;
        Key { route, preference, by_sendfile, path: path.into() }
    }

    /// True if sendfile takes a file of this size to the client, though it is small.
    #[must_use]
    pub fn leaves(&self, bytes: u64) -> bool {
        self.by_sendfile && bytes > PASSING_BYTES_MAX
    }

    /// The key of entries that are for every client.
    fn for_all(self) -> Self {
        Self { by_sendfile: false, ..self }
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self == key.as_ref()
    }
}

/// The entry under a key.
#[derive(Clone, Debug)]
pub enum Remembered {
    /// A file below a root.
    File(Rc<Entry>),
    /// An object of a store.
    Object(Rc<ReadyObject>),
}

impl Remembered {
    fn content(&self) -> &Content {
        match self {
            Remembered::File(entry) => &entry.content,
            Remembered::Object(object) => &object.content,
        }
    }

    /// True if its bytes are where they are best for every client.
    fn is_for_all(&self) -> bool {
        match self {
            Remembered::File(entry) => entry.is_for_all,
            Remembered::Object(_) => true,
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Remembered::File(entry) => entry.memory_bytes(),
            Remembered::Object(object) => object.memory_bytes(),
        }
    }
}

/// The two stores of a worker.
#[derive(Debug)]
pub struct OpenCache {
    hot: Option<Cache<Key, Remembered, ByMemory>>,
    open: Option<Cache<Key, Remembered>>,
    /// True if files of objects may be open.
    has_open_objects: bool,
}

/// Weighs an entry by the memory it holds.
#[derive(Clone, Copy, Debug)]
struct ByMemory;

impl Weighter<Key, Remembered> for ByMemory {
    fn weight(&self, key: &Key, entry: &Remembered) -> u64 {
        let bytes = entry.memory_bytes();
        (bytes + bytes / GAPS_SHARE + key.path.len() + ENTRY_OVERHEAD_BYTES) as u64
    }
}

impl OpenCache {
    /// Stores for at most this many descriptors and this much memory; zero of either keeps none.
    #[must_use]
    pub fn new(open_files_max: usize, hot_memory_bytes_max: usize) -> Self {
        let hot_items = hot_memory_bytes_max / EXPECTED_HOT_BYTES;
        Self {
            hot: (hot_memory_bytes_max > 0).then(|| {
                Cache::with_weighter(hot_items.max(1), hot_memory_bytes_max as u64, ByMemory)
            }),
            open: (open_files_max > 0).then(|| Cache::new(open_files_max)),
            has_open_objects: false,
        }
    }

    /// Returns the entry of a key.
    #[must_use]
    pub fn find(&self, key: KeyRef<'_>) -> Option<Remembered> {
        let for_all = key.for_all();
        let hot = self.hot.as_ref().and_then(|hot| hot.get(&for_all));
        let hot = hot.filter(|it| it.is_for_all() || !key.leaves(it.content().bytes()));
        let open = |key| self.open.as_ref().and_then(|open| open.get(key));
        let own = || key.by_sendfile.then(|| open(&key)).flatten();
        hot.or_else(|| open(&for_all)).or_else(own).cloned()
    }

    /// Remembers an entry in place of any other of this key.
    pub fn remember(&mut self, key: KeyRef<'_>, entry: Remembered) {
        match entry.content() {
            Content::Memory(_) => {
                self.close(key);
                if let Some(hot) = &mut self.hot {
                    hot.insert(key.for_all().to_key(), entry);
                }
            }
            Content::File(_) => {
                if let Some(hot) = &mut self.hot {
                    hot.remove(&key);
                }
                if let Some(open) = &mut self.open {
                    self.has_open_objects |= matches!(entry, Remembered::Object(_));
                    open.insert(key.to_key(), entry);
                }
            }
        }
    }

    /// True if a file of so many bytes, met so many meetings ago, is worth a place in memory: nothing has to go for it, or it is asked for
    /// again before much of what is there could have been exchanged.
    #[must_use]
    pub fn is_worth_memory(&self, bytes: u64, met_ago: Option<u32>) -> bool {
        let Some(hot) = &self.hot else { return false };
        let weight = bytes + bytes / GAPS_SHARE as u64 + FREE_BYTES_MIN;
        let is_free = hot.weight() + weight <= hot.capacity();
        is_free || met_ago.is_some_and(|ago| is_soon(ago, hot.len()))
    }

    /// True if what was met so many meetings ago is worth a descriptor: by the rule for memory.
    #[must_use]
    pub fn is_worth_descriptor(&self, met_ago: Option<u32>) -> bool {
        let (Some(open), Some(ago)) = (&self.open, met_ago) else { return false };
        (open.len() as u64) < open.capacity() || is_soon(ago, open.len())
    }

    /// Forgets the entry of a key.
    pub fn forget(&mut self, key: KeyRef<'_>) {
        if let Some(hot) = &mut self.hot {
            hot.remove(&key.for_all());
        }
        self.close(key);
    }

    fn close(&mut self, key: KeyRef<'_>) {
        if let Some(open) = &mut self.open {
            open.remove(&key.for_all());
            if key.by_sendfile {
                open.remove(&key);
            }
        }
    }

    /// Forgets the open files of objects of which this does not hold; says whether there may have been some.
    pub fn retain_objects(&mut self, is_kept: impl Fn(&ReadyObject) -> bool) -> bool {
        let (true, Some(open)) = (self.has_open_objects, &mut self.open) else { return false };
        let has_objects = Cell::new(false);
        open.retain(|_, entry| match entry {
            Remembered::File(_) => true,
            Remembered::Object(object) => {
                let is_kept = is_kept(object);
                has_objects.set(has_objects.get() | is_kept);
                is_kept
            }
        });
        self.has_open_objects = has_objects.get();
        true
    }

    /// Forgets the open files of which this does not hold.
    pub fn retain_files(&mut self, is_kept: impl Fn(&Entry) -> bool) {
        if let Some(open) = &mut self.open {
            open.retain(|_, entry| match entry {
                Remembered::File(entry) => is_kept(entry),
                Remembered::Object(_) => true,
            });
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if let Some(hot) = &mut self.hot {
            hot.clear();
        }
        if let Some(open) = &mut self.open {
            open.clear();
        }
    }

    /// The number of descriptors that are kept open.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.open.as_ref().map_or(0, Cache::len)
    }

    /// Returns the bytes of memory of ready files.
    #[must_use]
    pub fn hot_bytes(&self) -> u64 {
        self.hot.as_ref().map_or(0, Cache::weight)
    }
}

/// True if what was met so many meetings ago takes the place of another among so many.
fn is_soon(met_ago: u32, remembered: usize) -> bool {
    met_ago as usize <= (remembered / EXCHANGED_SHARE).max(SOON_MIN)
}

/// An entry's own size, its key's, and the stores' share, rounded up.
const ENTRY_OVERHEAD_BYTES: usize = 512;
/// Entries that come and go leave gaps, in which nothing as large fits: this part of it.
const GAPS_SHARE: usize = 16;
/// The memory for an entry beside its bytes, about.
const FREE_BYTES_MIN: u64 = 1_024;
/// A file that is asked for again while less than this part of what is remembered was looked for takes the place of another.
const EXCHANGED_SHARE: usize = 4;
/// However little is remembered, what is asked for again and again replaces what nobody asks for.
const SOON_MIN: usize = 64;
/// Only sizes the tables at first; any mix of sizes is held to the bound.
const EXPECTED_HOT_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests;
