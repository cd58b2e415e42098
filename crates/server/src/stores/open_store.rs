//! The one store that there is for a folder.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kettle_cache::{Store, StoreError, StoreSettings};
use kettle_kernel::file_system::FileSystem;
use rustix::fs::fstat;

use super::Arrivals;

/// A store that could be opened, and where it lies. There is one for a folder, however often that is named and whatever
/// reloads do: what arrives would be known to nobody else, and would count for nobody.
#[derive(Clone, Debug)]
pub struct OpenStore {
    /// The store.
    pub store: Arc<Store>,
    /// What is on its way into it.
    pub arrivals: Arc<Arrivals>,
    /// The number of its device.
    pub device: u64,
    /// What lies on that.
    pub file_system: FileSystem,
    inode: u64,
}

impl OpenStore {
    /// The store of this folder, opened if it is not open yet.
    pub(super) fn find_or_open(settings: StoreSettings) -> Result<Self, StoreError> {
        let disk = |errno| StoreError::Disk { action: "look at the directory of the store", errno };
        if let Ok(stat) = rustix::fs::stat(&settings.directory) {
            let there = find_living(&mut living(), (stat.st_dev, stat.st_ino));
            if let Some(open) = there {
                return Ok(open);
            }
        }
        let store = Arc::new(Store::open(settings)?);
        let stat = fstat(store.directory()).map_err(disk)?;
        let file_system = FileSystem::of(store.directory()).unwrap_or_default();
        let (arrivals, device, inode) = (Arc::default(), stat.st_dev, stat.st_ino);
        let open = Self { store, arrivals, device, file_system, inode };
        {
            let mut living = living();
            // Two may have come at once.
            if let Some(other) = find_living(&mut living, (device, inode)) {
                return Ok(other);
            }
            living.retain(|it| it.store.strong_count() > 0);
            let (store, arrivals) = (Arc::downgrade(&open.store), Arc::downgrade(&open.arrivals));
            living.push(Living { store, arrivals, device, file_system, inode });
        }
        open.scan();
        Ok(open)
    }

    /// Has it follow these settings from now on. What a smaller one has too much of goes on a thread of its own.
    pub(super) fn follow(&self, settings: &StoreSettings) {
        if !self.store.set_limits(settings) {
            return;
        }
        let store = Arc::clone(&self.store);
        let evict = move || store.evict();
        if let Err(error) = std::thread::Builder::new().name("cache-size".to_owned()).spawn(evict) {
            tracing::warn!(%error, "a cache is larger than its size until something new comes");
        }
    }

    /// Whether it is in this folder.
    pub(super) fn is_at(&self, directory: &Path) -> bool {
        let there = rustix::fs::stat(directory);
        there.is_ok_and(|there| (there.st_dev, there.st_ino) == (self.device, self.inode))
    }

    /// Begins to count what is in it.
    fn scan(&self) {
        let store = Arc::clone(&self.store);
        // Ends early when nobody has the store any more.
        let scan = move || {
            let is_ended = || Arc::strong_count(&store) == 1;
            if let Err(error) = store.scan(&is_ended) {
                tracing::warn!(%error, "the objects of a cache are not all counted");
            }
        };
        if let Err(error) = std::thread::Builder::new().name("cache-scan".to_owned()).spawn(scan) {
            tracing::warn!(%error, "the objects of a cache are not counted");
        }
    }
}

/// A store for as long as somebody has it: a configuration, or what arrives.
struct Living {
    store: Weak<Store>,
    arrivals: Weak<Arrivals>,
    device: u64,
    file_system: FileSystem,
    inode: u64,
}

fn find_living(living: &mut [Living], folder: (u64, u64)) -> Option<OpenStore> {
    let of_folder = |it: &&mut Living| (it.device, it.inode) == folder;
    let Living { store, arrivals, device, file_system, inode } =
        living.iter_mut().find(|it| of_folder(it) && it.store.strong_count() > 0)?;
    let store = store.upgrade()?;
    // What is remembered of objects may be all that has the store.
    let known = arrivals.upgrade().unwrap_or_default();
    *arrivals = Arc::downgrade(&known);
    let (device, file_system, inode) = (*device, *file_system, *inode);
    Some(OpenStore { store, arrivals: known, device, file_system, inode })
}

/// All that somebody has.
pub(super) fn in_use() -> Vec<Arc<Store>> {
    living().iter().filter_map(|it| it.store.upgrade()).collect()
}

/// The stores that are open. The lock is never held while a disk is asked.
fn living() -> MutexGuard<'static, Vec<Living>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

static LIVING: Mutex<Vec<Living>> = Mutex::new(Vec::new());
