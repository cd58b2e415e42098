//! The disk stores of a configuration, as all workers share them: opened by whoever needs one first, and gone without where
//! that fails. What is on its way into one is here, too, so that many who ask for it cost one request.

mod arrival;
mod render;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

pub use kettle_cache::Purge;
use kettle_cache::{Store, StoreError, StoreSettings};
use kettle_config::Cache;
use kettle_kernel::file_system::FileSystem;
use rustix::fs::fstat;

use crate::disk::Device;
pub use arrival::{Arrival, ArrivalState, Arrivals, Arriving, ArrivingBody};

/// All stores.
#[derive(Debug, Default)]
pub struct Stores {
    stores: Vec<Arc<KeptStore>>,
}

/// One store, by its name.
#[derive(Debug)]
pub struct KeptStore {
    /// What routes call it.
    pub name: Box<str>,
    /// What is on its way into it.
    pub arrivals: Arc<Arrivals>,
    /// Where it is opened: nothing is known of its device before, and of all who wait for it few do so on a thread.
    pub(crate) opening: Arc<Device>,
    settings: StoreSettings,
    opened: OnceLock<OpenStore>,
    /// When it was tried in vain.
    tried: Mutex<Option<Instant>>,
    warned: Mutex<Option<Instant>>,
    /// Keys whose requests go past the store: until when, and why.
    passed: Mutex<HashMap<Box<str>, (Instant, &'static str)>>,
    errors: AtomicU64,
    /// By [`CacheOutcome`].
    responses: [AtomicU64; CacheOutcome::ALL.len()],
}

/// A store that could be opened, and where it lies.
#[derive(Clone, Debug)]
pub struct OpenStore {
    /// The store.
    pub store: Arc<Store>,
    /// The number of its device.
    pub device: u64,
    /// What lies on that.
    pub file_system: FileSystem,
    inode: u64,
}

/// Where a response of a route with a cache came from, in the words of nginx's `$upstream_cache_status`.
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
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Hit,
        Self::Miss,
        Self::Expired,
        Self::Stale,
        Self::Updating,
        Self::Revalidated,
        Self::Bypass,
        Self::Collapsed,
    ];

    /// The word in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Expired => "expired",
            Self::Stale => "stale",
            Self::Updating => "updating",
            Self::Revalidated => "revalidated",
            Self::Bypass => "bypass",
            Self::Collapsed => "collapsed",
        }
    }
}

impl Stores {
    /// The stores of a configuration; those of `before` go on that are the same, in the same folder.
    #[must_use]
    pub fn new(caches: &[Cache], before: Option<&Self>) -> Self {
        let store = |cache: &Cache| {
            let settings = StoreSettings {
                directory: cache.directory.value.clone(),
                bytes_max: cache.size,
                object_bytes_max: cache.max_object,
            };
            let known = before.and_then(|before| before.find(&cache.name.value));
            let known = known.filter(|known| known.settings == settings && known.is_in_place());
            known.map_or_else(|| Arc::new(KeptStore::new(&cache.name.value, settings)), Arc::clone)
        };
        Self { stores: caches.iter().map(store).collect() }
    }

    /// The one of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<KeptStore>> {
        self.stores.iter().find(|store| &*store.name == name)
    }

    /// All, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<KeptStore>> {
        self.stores.iter()
    }
}

impl KeptStore {
    fn new(name: &str, settings: StoreSettings) -> Self {
        Self {
            name: name.into(),
            arrivals: Arc::default(),
            opening: Arc::new(Device::new(FileSystem::default())),
            settings,
            opened: OnceLock::new(),
            tried: Mutex::default(),
            warned: Mutex::default(),
            passed: Mutex::default(),
            errors: AtomicU64::new(0),
            responses: Default::default(),
        }
    }

    /// Its folder.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.settings.directory
    }

    /// What its objects may take of the disk.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.settings.bytes_max
    }

    /// The store, if it is open. Touches no disk.
    #[must_use]
    pub fn get(&self) -> Option<&OpenStore> {
        self.opened.get()
    }

    /// Whether it is worth a try to open it: it was not tried in vain a moment ago. Waits for nobody.
    #[must_use]
    pub fn may_open(&self) -> bool {
        // Whoever has it is opening it.
        self.tried.try_lock().is_ok_and(|it| is_long_ago(*it, TRIED_AGAIN)) || self.is_opening()
    }

    fn is_opening(&self) -> bool {
        matches!(self.tried.try_lock(), Err(TryLockError::WouldBlock))
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
        match OpenStore::open(self.settings.clone()) {
            Ok(open) => {
                let store = Arc::clone(&open.store);
                // Ends early when nobody has the store any more.
                let scan = move || {
                    let is_ended = || Arc::strong_count(&store) == 1;
                    if let Err(error) = store.scan(&is_ended) {
                        tracing::warn!(%error, "the objects of a cache are not all counted");
                    }
                };
                let scanning =
                    std::thread::Builder::new().name("cache-scan".to_owned()).spawn(scan);
                if let Err(error) = scanning {
                    tracing::warn!(%error, "the objects of a cache are not counted");
                }
                Some(self.opened.get_or_init(|| open))
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    /// Counts what the store could not do, and says so if it has not just been said.
    pub fn failed(&self, error: &StoreError) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if is_long_ago(*warned, WARNED_AGAIN) {
            *warned = Some(Instant::now());
            let directory = self.settings.directory.display();
            tracing::warn!(cache = %self.name, %directory, %error, "a response is passed on without being kept");
        }
    }

    /// Lets requests for a key go past the store for a while.
    pub fn pass(&self, key: &str, time: Duration, why: &'static str) {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if passed.len() >= PASSED_MAX {
            passed.retain(|_, (until, _)| *until > now);
        }
        if passed.len() < PASSED_MAX {
            passed.insert(key.into(), (now + time, why));
        }
    }

    /// Why requests for a key go past the store, if they do.
    #[must_use]
    pub fn passes(&self, key: &str) -> Option<&'static str> {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        passed.get(key).filter(|(until, _)| *until > Instant::now()).map(|(_, why)| *why)
    }

    /// Counts a response.
    pub fn responded(&self, outcome: CacheOutcome) {
        if let Some(count) = self.responses.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether what is open is what its path names.
    fn is_in_place(&self) -> bool {
        self.get().is_none_or(|open| {
            let there = rustix::fs::stat(&self.settings.directory);
            there.is_ok_and(|there| (there.st_dev, there.st_ino) == (open.device, open.inode))
        })
    }
}

impl OpenStore {
    fn open(settings: StoreSettings) -> Result<Self, StoreError> {
        let store = Store::open(settings)?;
        let disk = |errno| StoreError::Disk { action: "look at the directory of the store", errno };
        let stat = fstat(store.directory()).map_err(disk)?;
        let file_system = FileSystem::of(store.directory()).unwrap_or_default();
        Ok(Self { store: Arc::new(store), device: stat.st_dev, file_system, inode: stat.st_ino })
    }
}

fn is_long_ago(moment: Option<Instant>, time: Duration) -> bool {
    moment.is_none_or(|moment| moment.elapsed() >= time)
}

const TRIED_AGAIN: Duration = Duration::from_mins(1);
/// For how many keys it is remembered that their requests go past the store.
const PASSED_MAX: usize = 4_096;
const WARNED_AGAIN: Duration = Duration::from_mins(1);
