//! The one store that there is for a folder.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use kettle_cache::{Store, StoreError, StoreSettings};
use kettle_kernel::file_system::FileSystem;
use kettle_runtime::clock::is_long_ago;
use rustix::fs::fstat;

use super::{Fetches, TRIED_AGAIN};

/// A store that could be opened, and where it lies. There is one for a folder, however often that is named and whatever
/// reloads do: what arrives would be known to nobody else, and would count for nobody.
#[derive(Clone, Debug)]
pub struct OpenStore {
    /// The store.
    pub store: Arc<Store>,
    /// The fetches into it.
    pub fetches: Arc<Fetches>,
    /// The number of its device.
    pub device: u64,
    /// The file system on which that lies.
    pub file_system: FileSystem,
    inode: u64,
    counting: Arc<Mutex<Counting>>,
}

/// The state of counting a store's content.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counting {
    /// There was no thread for it when it was tried.
    Unbegun {
        tried: Option<Instant>,
    },
    Begun,
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
        let directory = settings.directory.clone();
        let store = Arc::new(Store::open(settings)?);
        if store.is_emptied() {
            let directory = directory.display();
            tracing::warn!(
                %directory,
                "the cache is emptied: it has no `layout-key` that nobody but its owner may read, or an earlier kettle was at work in it"
            );
        }
        let stat = fstat(store.directory()).map_err(disk)?;
        let file_system = FileSystem::of(store.directory()).unwrap_or_default();
        let fetches = Arc::default();
        let device = stat.st_dev;
        let inode = stat.st_ino;
        let counting = Arc::new(Mutex::new(Counting::Unbegun { tried: None }));
        let open = Self { store, fetches, device, file_system, inode, counting };
        {
            let mut living = living();
            // Two may have come at once.
            if let Some(other) = find_living(&mut living, (device, inode)) {
                return Ok(other);
            }
            living.retain(|it| it.store.strong_count() > 0);
            let store = Arc::downgrade(&open.store);
            let fetches = Arc::downgrade(&open.fetches);
            let counting = Arc::clone(&open.counting);
            living.push(Living { store, fetches, device, file_system, inode, counting });
        }
        open.count();
        Ok(open)
    }

    /// Has it follow these settings from now on. The objects that a smaller one has too much of go on a thread of its own.
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

    /// True if it is in this folder.
    pub(super) fn is_at(&self, directory: &Path) -> bool {
        let there = rustix::fs::stat(directory);
        there.is_ok_and(|there| (there.st_dev, there.st_ino) == (self.device, self.inode))
    }

    /// Begins to count what is in it, unless that was done, or was tried in vain a moment ago. Until then the store may grow larger
    /// than its size.
    pub(super) fn count(&self) {
        let mut counting = self.counting();
        match *counting {
            Counting::Unbegun { tried } if is_long_ago(tried, TRIED_AGAIN) => {}
            Counting::Unbegun { .. } | Counting::Begun => return,
        }
        let store = Arc::clone(&self.store);
        // Ends early when nobody has the store any more.
        let count = move || {
            let is_ended = || Arc::strong_count(&store) == 1;
            let pause = || {
                let seconds = std::iter::repeat_n(Duration::from_secs(1), COUNT_PAUSE_SECONDS);
                seconds.take_while(|_| !is_ended()).for_each(std::thread::park_timeout);
            };
            until_counted(|| store.scan(&is_ended), pause);
        };
        let thread = std::thread::Builder::new().name("cache-scan".to_owned()).spawn(count);
        *counting = match thread {
            Ok(_) => Counting::Begun,
            Err(error) => {
                tracing::warn!(%error, "the objects of a cache are not counted for now");
                Counting::Unbegun { tried: Some(Instant::now()) }
            }
        };
    }

    pub(super) fn counting(&self) -> MutexGuard<'_, Counting> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts until nothing is left out.
fn until_counted(mut count: impl FnMut() -> Result<(), StoreError>, mut pause: impl FnMut()) {
    let mut is_said = false;
    while let Err(error) = count() {
        if !std::mem::replace(&mut is_said, true) {
            tracing::warn!(%error, "the objects of a cache are not all counted; that is tried again");
        }
        pause();
    }
}

/// A store for as long as somebody has it: a configuration, or what arrives.
struct Living {
    store: Weak<Store>,
    fetches: Weak<Fetches>,
    device: u64,
    file_system: FileSystem,
    inode: u64,
    counting: Arc<Mutex<Counting>>,
}

fn find_living(living: &mut [Living], folder: (u64, u64)) -> Option<OpenStore> {
    let of_folder = |it: &&mut Living| (it.device, it.inode) == folder;
    let Living { store, fetches, device, file_system, inode, counting } =
        living.iter_mut().find(|it| of_folder(it) && it.store.strong_count() > 0)?;
    let store = store.upgrade()?;
    // The memory of objects may be all that has the store.
    let known = fetches.upgrade().unwrap_or_default();
    *fetches = Arc::downgrade(&known);
    let device = *device;
    let file_system = *file_system;
    let inode = *inode;
    let counting = Arc::clone(counting);
    Some(OpenStore { store, fetches: known, device, file_system, inode, counting })
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

/// Between two tries to count a store: what was in the way may last for seconds, such as a lack of descriptors.
const COUNT_PAUSE_SECONDS: usize = 10;

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_store_is_counted_again_until_nothing_was_in_the_way() {
        let failed = || Err(StoreError::Disk { action: "list a folder", errno: Errno::MFILE });
        let mut outcomes = [failed(), failed(), Ok(())].into_iter();
        let mut pauses = 0;
        until_counted(|| outcomes.next().unwrap(), || pauses += 1);
        assert_eq!((outcomes.next().is_none(), pauses), (true, 2));
    }
}
