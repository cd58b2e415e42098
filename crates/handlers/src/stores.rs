//! The disk stores of a configuration, as all workers share them: opened when one is first needed, and gone without where
//! that fails. An object on its way into one is here, too, so that many requests for it cost one to the backend.

mod fetch;
mod open_store;
mod render;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub use kettle_cache::{Name, Purge};
use kettle_cache::{Store, StoreError, StoreSettings};
use kettle_config::Cache;
use kettle_kernel::file_system::FileSystem;
use kettle_runtime::clock::{OnceAMinute, is_long_ago};
use kettle_runtime::disk::Device;
use kettle_runtime::metrics::{By, Durations, Label};

pub use fetch::{Fetch, FetchBody, FetchState, FetchWriter, Fetches};
pub use open_store::OpenStore;

/// All stores.
#[derive(Debug, Default)]
pub struct Stores {
    /// Each with what it is to be from the moment on that they are in force.
    stores: Vec<(Arc<KeptStore>, StoreSettings)>,
    /// Their numbers.
    by_name: HashMap<Arc<str>, usize>,
}

/// One store, by its name.
#[derive(Debug)]
pub struct KeptStore {
    /// Its name in routes.
    pub name: Arc<str>,
    /// Where it is opened: nothing is known of its device before, and few of the requests that wait for it hold a thread.
    pub(crate) opening: Arc<Device>,
    directory: PathBuf,
    settings: Mutex<StoreSettings>,
    opened: OnceLock<OpenStore>,
    /// Held for no look at the disk.
    unopened: Mutex<WrittenTo>,
    /// When it was tried in vain.
    tried: Mutex<Option<Instant>>,
    /// Bounds how often it is said that a response is not kept.
    warning: OnceAMinute,
    /// True if it was said that the disk has less room than the store may take.
    is_full_disk_said: AtomicBool,
    /// When the disk took no more in the middle of a body.
    broke_off: Mutex<Option<Instant>>,
    passed: Mutex<PassedKeys>,
    errors: AtomicU64,
    unwritten: AtomicU64,
    fill_times: Durations,
    responses: By<CacheOutcome, { CacheOutcome::WORDS.len() }>,
}

/// An object that its clients have, and that waits to be written.
#[derive(Debug)]
pub(crate) struct UnwrittenObject(Arc<KeptStore>);

impl Drop for UnwrittenObject {
    fn drop(&mut self) {
        self.0.unwritten.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The keys that were written to while a store could not be opened: its objects are older.
#[derive(Debug, Default)]
struct WrittenTo {
    keys: HashSet<Name>,
    /// True if there were more than are told apart, so that it may be any object.
    is_any: bool,
}

/// Keys whose requests go past a store.
#[derive(Debug, Default)]
struct PassedKeys {
    /// Until when, and why.
    keys: HashMap<Name, (Instant, &'static str)>,
    /// Before then none of them ends.
    first_end: Option<Instant>,
}

/// The source of a response of a route with a cache, in the words of nginx's `$upstream_cache_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// From the store.
    Hit,
    /// From the backend: nothing was in the store.
    Miss,
    /// From the backend: what was in the store was no longer good.
    Expired,
    /// From the store after its time, because the backend had failed.
    Stale,
    /// From the store after its time, while the backend is asked.
    Updating,
    /// From the store, after the backend had said that it is still good.
    Revalidated,
    /// From the backend, past the store.
    Bypass,
    /// From what another client had asked for: a word of ours.
    Collapsed,
}

impl CacheOutcome {
    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.get(self as usize).copied().unwrap_or("other")
    }
}

impl Label for CacheOutcome {
    const WORDS: &'static [&'static str] =
        &["hit", "miss", "expired", "stale", "updating", "revalidated", "bypass", "collapsed"];

    fn index(self) -> usize {
        self as usize
    }
}

impl Stores {
    /// The stores of a configuration; those of `before` go on that have the same name and folder.
    pub fn new(caches: &[Cache], before: Option<&Self>) -> Self {
        let store = |cache: &Cache| {
            let settings = StoreSettings {
                directory: cache.directory.value.clone(),
                bytes_max: cache.size,
                object_bytes_max: cache.max_object,
            };
            let known = before.and_then(|before| before.find(&cache.name.value));
            let known =
                known.filter(|known| known.directory == settings.directory && known.is_in_place());
            let store = || Arc::new(KeptStore::new(&cache.name.value, settings.clone()));
            (known.map_or_else(store, Arc::clone), settings)
        };
        let stores: Vec<_> = caches.iter().map(store).collect();
        let named = stores.iter().enumerate().map(|(at, (it, _))| (Arc::clone(&it.name), at));
        Self { by_name: named.collect(), stores }
    }

    /// Has those that go on follow their settings.
    pub fn put_in_force(&self) {
        for (store, settings) in &self.stores {
            let mut current = store.settings();
            if *current != *settings {
                current.clone_from(settings);
                // A key that was too large may not be so any more.
                *store.passed() = PassedKeys::default();
            }
            match store.get() {
                Some(open) => open.follow(&current),
                None => store.try_again(),
            }
        }
    }

    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<KeptStore>> {
        self.stores.get(*self.by_name.get(name)?).map(|(store, _)| store)
    }

    /// All, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KeptStore>> {
        self.stores.iter().map(|(store, _)| store)
    }

    /// Says how much of what clients were told is stored is lost, where the process ends before it is written.
    pub fn tell_unwritten(&self) {
        for store in self.iter() {
            let objects = store.unwritten.load(Ordering::Relaxed);
            if objects > 0 {
                let directory = store.directory.display();
                tracing::warn!(
                    cache = %store.name, %directory, objects,
                    "what still waits to be written is lost: the disk is behind"
                );
            }
        }
    }

    /// Those of earlier configurations that are in use all the same, and would be found again.
    pub fn left_out(&self) -> Vec<Arc<Store>> {
        let open = self.iter().filter_map(|store| store.get());
        let here: HashSet<_> = open.map(|open| Arc::as_ptr(&open.store)).collect();
        let in_use = open_store::in_use().into_iter();
        in_use.filter(|it| !here.contains(&Arc::as_ptr(it))).collect()
    }
}

impl KeptStore {
    fn new(name: &str, settings: StoreSettings) -> Self {
        Self {
            name: name.into(),
            opening: Arc::new(Device::new(FileSystem::default())),
            directory: settings.directory.clone(),
            settings: Mutex::new(settings),
            opened: OnceLock::new(),
            unopened: Mutex::default(),
            tried: Mutex::default(),
            warning: OnceAMinute::default(),
            is_full_disk_said: AtomicBool::new(false),
            broke_off: Mutex::default(),
            passed: Mutex::default(),
            errors: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
            fill_times: Durations::default(),
            responses: By::default(),
        }
    }

    /// Its folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the bytes that its objects may take on the disk.
    pub fn bytes_max(&self) -> u64 {
        self.settings().bytes_max
    }

    fn settings(&self) -> MutexGuard<'_, StoreSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn passed(&self) -> MutexGuard<'_, PassedKeys> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store, if it is open. Touches no disk.
    pub fn get(&self) -> Option<&OpenStore> {
        self.opened.get()
    }

    /// True if it is worth a try to open it: it was not tried in vain a moment ago. Waits for nobody.
    pub fn may_open(&self) -> bool {
        self.tried_unless_opening().is_none_or(|it| is_long_ago(*it, TRIED_AGAIN))
    }

    /// The next request that needs it tries to open it, also where that was in vain a moment ago. Waits for nobody.
    fn try_again(&self) {
        if let Some(mut tried) = self.tried_unless_opening() {
            *tried = None;
        }
    }

    /// True if somebody is opening it. Waits for nobody.
    pub(crate) fn is_opening(&self) -> bool {
        self.tried_unless_opening().is_none()
    }

    fn tried_unless_opening(&self) -> Option<MutexGuard<'_, Option<Instant>>> {
        match self.tried.try_lock() {
            Ok(tried) => Some(tried),
            Err(TryLockError::Poisoned(tried)) => Some(tried.into_inner()),
            // Its holder is opening it.
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Opens it, and begins to count what is in it. Touches the disk.
    pub fn open(&self) -> Option<&OpenStore> {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = self.opened.get() {
            return Some(open);
        }
        if !is_long_ago(*tried, TRIED_AGAIN) {
            return None;
        }
        *tried = Some(Instant::now());
        let settings = self.settings().clone();
        match OpenStore::find_or_open(settings) {
            Ok(open) => {
                let written_to = self.put_in_place(open);
                let open = self.opened.get()?;
                // It may have been there for another, or a reload came meanwhile.
                open.follow(&self.settings());
                written_to.remove(&open.store).unwrap_or_else(|error| self.failed(&error));
                Some(open)
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    /// From here on the store answers, though with nothing of what was written to meanwhile.
    fn put_in_place(&self, open: OpenStore) -> WrittenTo {
        let mut unopened = self.unopened.lock().unwrap_or_else(PoisonError::into_inner);
        let written_to = std::mem::take(&mut *unopened);
        written_to.purges().for_each(|purge| open.store.forget(&purge));
        self.opened.get_or_init(|| open);
        written_to
    }

    /// Takes note of keys that were written to, if it is not open; else the store that has to forget them.
    pub(crate) fn written_to(&self, keys: &[Name]) -> Option<&OpenStore> {
        self.opened.get().or_else(|| {
            let mut unopened = self.unopened.lock().unwrap_or_else(PoisonError::into_inner);
            // It may have been put in place while the lock was waited for.
            if self.opened.get().is_none() {
                unopened.add(keys);
            }
            self.opened.get()
        })
    }

    /// Counts what the store could not do, and says so if it has not just been said.
    pub fn failed(&self, error: &StoreError) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        if self.warning.is_due(Instant::now()) {
            let directory = self.directory.display();
            tracing::warn!(cache = %self.name, %directory, %error, "a response is not kept");
        }
    }

    /// Counts an object among those that wait to be written, until what this returns is dropped.
    pub(crate) fn count_unwritten(self: &Arc<Self>) -> UnwrittenObject {
        self.unwritten.fetch_add(1, Ordering::Relaxed);
        UnwrittenObject(Arc::clone(self))
    }

    /// Counts an object that the store has now, so long after it was asked for.
    pub(crate) fn filled(&self, time: Duration) {
        self.fill_times.observe(time);
        if let Some(open) = self.get() {
            // Where there was no thread for it, it is time to: the store grows.
            open.count();
        }
        let is_disk_full = || self.get().is_some_and(|open| open.store.full_disks() > 0);
        if !self.is_full_disk_said.load(Ordering::Relaxed)
            && is_disk_full()
            && !self.is_full_disk_said.swap(true, Ordering::Relaxed)
        {
            let directory = self.directory.display();
            tracing::warn!(
                cache = %self.name, %directory,
                "the disk is full before the cache has its `size`: objects go as if that were reached"
            );
        }
    }

    /// Notes that the disk or the store took no more in the middle of a body.
    pub(crate) fn broke_off(&self) {
        *self.broke_off.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// True if a body may begin although room for it cannot be reserved on the disk.
    pub(crate) fn takes_unannounced(&self) -> bool {
        let broke_off = self.broke_off.lock().unwrap_or_else(PoisonError::into_inner);
        is_long_ago(*broke_off, TRIED_AGAIN)
    }

    /// Lets requests for a key go past the store for a while.
    pub fn pass(&self, key: &str, time: Duration, why: &'static str) {
        let mut passed = self.passed();
        let now = Instant::now();
        if passed.keys.len() >= PASSED_MAX && passed.first_end.is_none_or(|end| end <= now) {
            passed.keys.retain(|_, (until, _)| *until > now);
            passed.first_end = passed.keys.values().map(|(until, _)| *until).min();
        }
        let key = Name::of_key(key);
        let until = now + time;
        if passed.keys.len() >= PASSED_MAX && !passed.keys.contains_key(&key) {
            // The key that was asked for last is asked for again sooner than the others.
            let first = passed.keys.iter().min_by_key(|(_, (until, _))| *until);
            let first = first.map(|(first, _)| *first);
            first.and_then(|first| passed.keys.remove(&first));
        }
        passed.first_end = Some(passed.first_end.map_or(until, |end| end.min(until)));
        passed.keys.insert(key, (until, why));
    }

    /// Why requests for a key go past the store, if they do.
    pub fn passes(&self, key: &str) -> Option<&'static str> {
        let passed = self.passed();
        if passed.keys.is_empty() {
            return None;
        }
        passed
            .keys
            .get(&Name::of_key(key))
            .filter(|(until, _)| *until > Instant::now())
            .map(|(_, why)| *why)
    }

    /// Counts a response.
    pub fn responded(&self, outcome: CacheOutcome) {
        self.responses.add_many(outcome, 1);
    }

    /// True if what is open is what its path names.
    fn is_in_place(&self) -> bool {
        self.get().is_none_or(|open| open.is_at(&self.directory))
    }
}

impl WrittenTo {
    fn add(&mut self, keys: &[Name]) {
        self.keys.extend(keys);
        if self.keys.len() > WRITTEN_TO_MAX {
            self.keys.clear();
            self.is_any = true;
        }
    }

    fn purges(&self) -> impl Iterator<Item = Purge> {
        let any = self.is_any.then(|| Purge::Prefix(EVERY_KEY.to_owned()));
        self.keys.iter().map(|key| Purge::Key(*key)).chain(any)
    }

    /// Sees to it that all of it is gone after a restart, too. Touches the disk.
    fn remove(&self, store: &Store) -> Result<(), StoreError> {
        // Each of it, whatever becomes of the rest.
        self.purges().map(|purge| store.purge(&purge).map(drop)).fold(Ok(()), Result::and)
    }
}

/// The beginning of all keys, of either scheme.
const EVERY_KEY: &str = "http";

/// Keys that are told apart of those that were written to while a store could not be opened: for each of them the disk is waited for
/// when it is.
const WRITTEN_TO_MAX: usize = 1_024;

const TRIED_AGAIN: Duration = Duration::from_mins(1);
/// For how many keys it is remembered that their requests go past the store.
const PASSED_MAX: usize = 4_096;

#[cfg(test)]
mod tests;
