//! The store itself: its directory, what it may take, and which of its objects are still the ones they were.
//!
//! ```text
//! <directory>/0fe/3fa1…-0000…   one file for each object and variant: head, then body
//! <directory>/layout-key        what chooses the folder of a file
//! <directory>/purged            what was purged by prefix and tag
//! <directory>/temporary/        what has no name yet where the file system knows no unnamed files
//! ```

mod at_once;
mod find;
mod form;
mod naming;
mod own_files;
mod purge;
mod room;
mod scan;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kettle_kernel::file_system::FileSystem;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::GetRandomFlags;

use crate::error::StoreError;
use crate::head::ObjectHead;
use crate::index::{Entry, Index};
use crate::layout::{LAYOUT_KEY_BYTES, Layout, is_folder_name};
use crate::name::Name;
use crate::purges::Purges;
use own_files::{SmallFile, put_aside, read_small, write_small};
use room::is_full;

pub use at_once::{AtOnce, FoundAtOnce, Left};
pub use find::Object;
pub use form::FormOf;
pub use own_files::FileState;
pub use writer::ObjectWriter;

/// The place of a store and its size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Its directory, which exists and is its own.
    pub directory: PathBuf,
    /// The bytes that all objects may take on the disk.
    pub bytes_max: u64,
    /// The longest body that is kept.
    pub object_bytes_max: u64,
}

/// A directory of objects. All workers share it.
#[derive(Debug)]
pub struct Store {
    bytes_max: AtomicU64,
    object_bytes_max: AtomicU64,
    directory: OwnedFd,
    layout: Layout,
    /// False while the disk had no room for it.
    has_layout_key: AtomicBool,
    /// True until what others left is removed, which nobody finds.
    is_emptied: AtomicBool,
    index: Index,
    purges: Purges,
    /// The bytes added to the file of purges; held while it grows.
    purge_log: Mutex<u64>,
    /// Each for some of the names: held while one is given to a file, or its file is removed.
    naming: [Mutex<()>; NAMING_LOCKS],
    /// Held while a head is rewritten, and by whoever reads one that seems damaged again.
    rewriting: Mutex<()>,
    has_unnamed_files: bool,
    temporary_files: AtomicU64,
    /// Reserved for objects that are arriving: no more than all may take.
    arriving_bytes: AtomicU64,
    /// The part of these that room was made for.
    room_bytes: AtomicU64,
    is_scanned: AtomicBool,
    evictions: AtomicU64,
    full_disks: AtomicU64,
    damaged: AtomicU64,
}

/// An object as it was found: another that takes its name has another serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    pub(crate) name: Name,
    pub(crate) serial: u64,
    /// The marker that led to it, where that was not its key alone.
    pub(crate) marker: Option<u64>,
}

/// The entries known of a key without the disk.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    name: Name,
    is_scanned: bool,
    entry: Option<Entry>,
}

impl Known {
    /// True if a lookup would find nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.is_scanned && self.entry.is_none()
    }

    /// Returns the name of the key's objects.
    #[must_use]
    pub fn name(&self) -> Name {
        self.name
    }

    /// About how long the object is; zero if none is known.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entry.map_or(0, |entry| entry.bytes)
    }

    /// True if the same was known then. If not, there is another object, or another choice among variants.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let serial = |known: &Self| known.entry.map(|entry| entry.serial);
        serial(self) == serial(other)
    }
}

/// A moment in the life of a store. As long as it is the same, all objects are current that were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    changes: u64,
    generation: u64,
}

/// The state of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The bytes that the objects take on the disk, those that are arriving too.
    pub bytes: u64,
    /// The bytes they may take.
    pub bytes_max: u64,
    /// The number of objects.
    pub objects: u64,
    /// The number of objects that went to make room.
    pub evictions: u64,
    /// The number of times objects went because the disk was full though they took less than they
    /// may.
    pub full_disks: u64,
    /// The number of objects that were removed because they were not what had been written.
    pub damaged: u64,
    /// True if all that was there at the start has been counted.
    pub is_scanned: bool,
}

impl Store {
    /// Opens a store, with no look at its objects yet: [`scan`](Self::scan) counts them. Touches the disk.
    ///
    /// # Errors
    /// If the directory is not there, cannot be written to, or lies on a file system that may never answer.
    pub fn open(settings: StoreSettings) -> Result<Self, StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            retry_on_intr(|| rustix::fs::open(&settings.directory, flags, Mode::empty()))
                .map_err(StoreError::disk("open the directory of the store"))?;
        let kind = FileSystem::of(directory.as_fd()).map_err(|error| StoreError::Disk {
            action: "ask what the directory of the store lies on",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        if kind.is_remote() {
            return Err(StoreError::Remote(kind.name()));
        }
        empty_temporary(directory.as_fd())?;
        let known = read_layout_key(directory.as_fd())?;
        let is_emptied = known.is_none() && has_folders(directory.as_fd())?;
        let (purges, appended_bytes) = purge::read_log(directory.as_fd(), is_emptied)?;
        let layout_key = known.map_or_else(random, Ok)?;
        let mut store = Self {
            bytes_max: AtomicU64::new(settings.bytes_max),
            object_bytes_max: AtomicU64::new(settings.object_bytes_max),
            directory,
            layout: Layout::new(layout_key),
            has_layout_key: AtomicBool::new(known.is_some()),
            is_emptied: AtomicBool::new(is_emptied),
            index: Index::default(),
            purges,
            purge_log: Mutex::new(appended_bytes),
            naming: Default::default(),
            rewriting: Mutex::default(),
            has_unnamed_files: true,
            // Other names than those of a process that had the same number and could not tidy up.
            temporary_files: AtomicU64::new(u32::from_le_bytes(random()?).into()),
            arriving_bytes: AtomicU64::new(0),
            room_bytes: AtomicU64::new(0),
            is_scanned: AtomicBool::new(false),
            evictions: AtomicU64::new(0),
            full_disks: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
        };
        // Also shows that files can be written at all.
        store.has_unnamed_files = store.try_unnamed()?;
        if known.is_none() {
            // Behind what was purged: without that, what is there would be found again.
            match store.write_layout_key() {
                // There is room once the scan has removed what is there.
                Err(errno) if is_full(errno) => {}
                written => written.map_err(StoreError::disk("write the store's own key"))?,
            }
        }
        Ok(store)
    }

    /// True if what was here is removed, because no key says where it lies: an earlier kettle had none. Until it was scanned.
    #[must_use]
    pub fn is_emptied(&self) -> bool {
        self.is_emptied.load(Ordering::Relaxed)
    }

    fn write_layout_key(&self) -> Result<(), Errno> {
        let write = || write_small(self.directory(), LAYOUT_KEY, self.layout.key());
        self.with_temporary(write)?;
        // The file that shows that there was none, once nothing of it is found any more.
        self.remove_path(purge::LOG_BEFORE)?;
        self.has_layout_key.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the bytes that all objects may take on the disk.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// The longest body that is kept.
    #[must_use]
    pub fn object_bytes_max(&self) -> u64 {
        self.object_bytes_max.load(Ordering::Relaxed)
    }

    /// Follows other settings of the same directory from now on; whether it has become smaller by them.
    pub fn set_limits(&self, settings: &StoreSettings) -> bool {
        self.object_bytes_max.store(settings.object_bytes_max, Ordering::Relaxed);
        self.bytes_max.swap(settings.bytes_max, Ordering::Relaxed) > settings.bytes_max
    }

    /// Its open directory.
    #[must_use]
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the generation of objects asked for now: taken before the request for one goes out.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.purges.generation()
    }

    /// True if an object that is arriving was asked for before a purge that covers it, or may cover it. Touches no disk.
    #[must_use]
    pub fn is_purged(&self, arriving: &ObjectHead) -> bool {
        self.purges.covers_arriving(arriving)
    }

    /// The same of what was asked for in this generation, and nothing else is known of. Touches no disk.
    #[must_use]
    pub fn may_be_purged(&self, key: &str, generation: u64) -> bool {
        self.purges.may_cover(key, generation)
    }

    /// Now, as this store knows it. Takes no lock and touches no disk.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment { changes: self.index.changes(), generation: self.generation() }
    }

    /// True if an object with this head is still what its name stands for, and not purged. No disk is touched, and it counts
    /// as a use. It holds for the [`moment`](Self::moment) that was asked for before.
    #[must_use]
    pub fn is_current(&self, reference: &Reference, head: &ObjectHead) -> bool {
        let Reference { name, serial, marker } = *reference;
        self.index.find(name) == Some(serial)
            && marker.is_none_or(|marker| self.index.find(name.first()) == Some(marker))
            && !self.purges.covers(head)
    }

    /// True if an object's file still has its name, and what led to it has its own. That is no use of it, and says nothing of purges.
    #[must_use]
    pub fn holds(&self, reference: &Reference) -> bool {
        let Reference { name, serial, marker } = *reference;
        self.index.holds(name, serial)
            && marker.is_none_or(|marker| self.index.holds(name.first(), marker))
    }

    /// True if a lookup would find nothing, as far as that is known without the disk.
    #[must_use]
    pub fn lacks(&self, key: &str) -> bool {
        self.known(key).is_nothing()
    }

    /// Returns the entry that is known to have the name of a key, without the disk. Counts as a
    /// use.
    #[must_use]
    pub fn known(&self, key: &str) -> Known {
        let name = Name::of_key(key);
        // Before the look: what is not known of then may be there all the same.
        let is_scanned = self.is_scanned.load(Ordering::Acquire);
        Known { name, is_scanned, entry: self.index.look(name) }
    }

    /// Returns the state of the store.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            bytes: self.taken_bytes(),
            bytes_max: self.bytes_max(),
            objects: self.index.len() as u64,
            evictions: self.evictions.load(Ordering::Relaxed),
            full_disks: self.full_disks(),
            damaged: self.damaged.load(Ordering::Relaxed),
            is_scanned: self.is_scanned.load(Ordering::Acquire),
        }
    }

    /// Returns the number of times objects went because the disk was full though they took less
    /// than they may.
    pub fn full_disks(&self) -> u64 {
        self.full_disks.load(Ordering::Relaxed)
    }

    /// Removes an object, if it is still that one.
    fn remove(&self, name: Name, serial: Option<u64>) {
        if serial.is_none() || self.index.remove(name, serial) {
            self.remove_left(name);
        }
    }

    /// Removes the file of an object that the index does not know any more. Says whether one went.
    fn remove_left(&self, name: Name) -> bool {
        let _alone = self.alone_with(name);
        // Another that got the name meanwhile has taken the place of this one's file. A file that stays is found again at the next
        // start, with a head that is checked as any.
        self.index.lacks(name) && self.unlink(name) == Ok(true)
    }

    /// Removes whatever has this name, which the caller has locked. Says whether anything had it.
    fn unlink(&self, name: Name) -> Result<bool, Errno> {
        self.remove_path(&self.layout.path(name))
    }

    fn remove_path(&self, path: &str) -> Result<bool, Errno> {
        match rustix::fs::unlinkat(&self.directory, path, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(Errno::ISDIR) => self.put_aside(path).map(|()| true),
            Err(errno) => Err(errno),
        }
    }

    /// Moves a folder out of the way.
    fn put_aside(&self, path: &str) -> Result<(), Errno> {
        let aside = self.temporary_name();
        self.with_temporary(|| put_aside(self.directory(), path, &aside))
    }

    /// Keeps others from giving this name to a file, and from removing that. Nobody knows which names share a lock.
    fn alone_with(&self, name: Name) -> Option<MutexGuard<'_, ()>> {
        let lock = self.naming.get(usize::from(self.layout.folder(name)) % NAMING_LOCKS)?;
        Some(lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells whether the file system has files without names, which can be given one.
    fn try_unnamed(&self) -> Result<bool, StoreError> {
        let name = self.temporary_name();
        match self.open_unnamed().and_then(|file| link(&file, self.directory(), &name)) {
            Ok(()) => {
                let _ = rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty());
                Ok(true)
            }
            // File systems that know none say so before they look for room.
            Err(errno) if is_full(errno) => Ok(true),
            Err(_) => {
                let file = self.create_named(&name);
                file.map_err(StoreError::disk("write to the directory of the store"))?;
                let _ = rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty());
                Ok(false)
            }
        }
    }

    fn open_unnamed(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        retry_on_intr(|| rustix::fs::openat(&self.directory, ".", flags, FILE_MODE))
    }

    fn create_named(&self, name: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        retry_on_intr(|| rustix::fs::openat(&self.directory, name, flags, FILE_MODE))
    }

    fn temporary_name(&self) -> String {
        let number = self.temporary_files.fetch_add(1, Ordering::Relaxed);
        let mut name = String::from(TEMPORARY);
        let _ = write!(name, "/{}-{number}", std::process::id());
        name
    }
}

/// Gives an unnamed file a name.
fn link(file: &OwnedFd, directory: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, unnamed, directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// Reads the key that chooses the folder of a file; `None` where there is none that nobody else
/// could read, or where files lie elsewhere.
fn read_layout_key(
    directory: BorrowedFd<'_>,
) -> Result<Option<[u8; LAYOUT_KEY_BYTES]>, StoreError> {
    let read = read_small(directory, LAYOUT_KEY, LAYOUT_KEY_BYTES);
    let key = match read.map_err(StoreError::disk("read the store's own key"))? {
        SmallFile::Read { bytes, is_private: true } => bytes.try_into().ok(),
        SmallFile::Read { .. } | SmallFile::Missing | SmallFile::Foreign => None,
    };
    Ok(key.filter(|_| !purge::has_log_before(directory)))
}

/// True if objects may be here.
fn has_folders(directory: BorrowedFd<'_>) -> Result<bool, StoreError> {
    let disk = StoreError::disk("list the directory of the store");
    let has_any = || {
        for entry in Dir::read_from(directory)? {
            if is_folder_name(entry?.file_name().to_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    has_any().map_err(disk)
}

fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    // Up to 256 bytes come as a whole (getrandom(2)).
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(StoreError::disk("get random bytes for the store"))?;
    Ok(bytes)
}

/// Removes the files that an earlier life left without a name: they are of no use.
fn empty_temporary(directory: BorrowedFd<'_>) -> Result<(), StoreError> {
    let make = || make_folder(directory, TEMPORARY);
    make().map_err(StoreError::disk("make a folder in the store"))?;
    let mut folder = open_folder(directory, TEMPORARY);
    if matches!(folder, Err(Errno::NOTDIR | Errno::LOOP)) {
        // Something else has its name.
        folder = rustix::fs::unlinkat(directory, TEMPORARY, AtFlags::empty())
            .and_then(|()| make())
            .and_then(|()| open_folder(directory, TEMPORARY));
    }
    let folder = folder.map_err(StoreError::disk("open a folder of the store"))?;
    let entries =
        Dir::read_from(&folder).map_err(StoreError::disk("list a folder of the store"))?;
    for entry in entries.flatten() {
        // `.` and `..` are refused.
        let _ = rustix::fs::unlinkat(&folder, entry.file_name(), AtFlags::empty());
    }
    Ok(())
}

fn open_folder(directory: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    retry_on_intr(|| rustix::fs::openat(directory, path, flags, Mode::empty()))
}

fn make_folder(directory: BorrowedFd<'_>, path: &str) -> Result<(), Errno> {
    match rustix::fs::mkdirat(directory, path, FOLDER_MODE) {
        Err(Errno::EXIST) => Ok(()),
        outcome => outcome,
    }
}

/// Nobody else's to read: responses may be for few.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: Mode = FILE_MODE.union(Mode::XUSR);

/// Removing a file of many gigabytes may take a while: most other names have nothing to do with it.
const NAMING_LOCKS: usize = 32;

const TEMPORARY: &str = "temporary";
const LAYOUT_KEY: &str = "layout-key";
