//! Open folders, one descriptor for each: routes, sites, workers and configurations whose roots' paths name the same folder share it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kettle_kernel::file_system::FileSystem;
use rustix::fs::{AtFlags, StatxFlags, fstat, statx};
use rustix::io::Errno;

/// Device and inode, which no other folder has as long as this one is open.
pub type FolderIdentity = (u64, u64);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    directory: OwnedFd,
    identity: FolderIdentity,
    file_system: FileSystem,
    /// By what others find it; none where this kernel does not number mounts (before Linux 5.8), and then none do.
    key: Option<FolderKey>,
}

/// A folder, and the mount that it was reached by: what is mounted below may be seen through one and not through another.
type FolderKey = (FolderIdentity, u64);

impl Folder {
    /// The folder of this descriptor: one that is open already, if there is one.
    ///
    /// # Errors
    /// The kernel's, if it says nothing about what was opened.
    pub fn of(directory: OwnedFd) -> Result<Arc<Self>, Errno> {
        let identity = identity_of(&directory)?;
        let key = mount_of(&directory).map(|mount| (identity, mount));
        let shared = key.and_then(|key| folders().get(&key).and_then(Weak::upgrade));
        if let Some(shared) = shared {
            return Ok(shared);
        }
        // This may wait for a file system, so nobody waits for the lock meanwhile; of two that are made at once one is enough.
        let file_system = FileSystem::of(directory.as_fd()).unwrap_or_default();
        let folder = Arc::new(Self { directory, identity, file_system, key });
        let Some(key) = key else { return Ok(folder) };
        let mut folders = folders();
        let first = folders.get(&key).and_then(Weak::upgrade);
        if first.is_none() {
            folders.insert(key, Arc::downgrade(&folder));
        }
        // Whatever is dropped asks for the lock.
        drop(folders);
        Ok(first.unwrap_or(folder))
    }

    /// Returns the identity that distinguishes it from others.
    pub fn identity(&self) -> FolderIdentity {
        self.identity
    }

    /// The kind of file system it lies on.
    pub fn file_system(&self) -> FileSystem {
        self.file_system
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut folders = folders();
        // Another may have taken its place since nobody held this one.
        if folders.get(&key).is_some_and(|folder| folder.strong_count() == 0) {
            folders.remove(&key);
        }
    }
}

/// The device and inode of an open folder.
///
/// # Errors
/// The kernel's, if it does not say.
pub fn identity_of(directory: impl AsFd) -> Result<FolderIdentity, Errno> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The mount of an open folder. As long as the folder is open, no other mount has this number.
fn mount_of(directory: &OwnedFd) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = statx(directory, c"", flags, StatxFlags::from_bits_retain(STATX_MNT_ID)).ok()?;
    let is_said = stat.stx_mask & STATX_MNT_ID != 0;
    is_said.then_some(stat.stx_mnt_id)
}

/// All that are open. Locked for a look or a change, and across no call that waits.
fn folders() -> MutexGuard<'static, BTreeMap<FolderKey, Weak<Folder>>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

static FOLDERS: Mutex<BTreeMap<FolderKey, Weak<Folder>>> = Mutex::new(BTreeMap::new());

/// As Linux has it in include/uapi/linux/stat.h.
const STATX_MNT_ID: u32 = 0x1000;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    fn open(path: &std::path::Path) -> Arc<Folder> {
        Folder::of(File::open(path).unwrap().into()).unwrap()
    }

    #[test]
    fn a_folder_has_one_descriptor_by_whatever_path_it_was_opened() {
        let root = tempfile::tempdir().unwrap();
        let [real, other, link] = ["real", "other", "link"].map(|name| root.path().join(name));
        std::fs::create_dir(&real).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let first = open(&real);
        let again = open(&link);
        assert_eq!(first.as_fd().as_raw_fd(), again.as_fd().as_raw_fd());
        assert!(!Arc::ptr_eq(&first, &open(&other)));
        // The path names another folder now, and that is the one that is opened by it.
        std::fs::rename(&real, root.path().join("gone")).unwrap();
        std::fs::rename(&other, &real).unwrap();
        assert_ne!(open(&link).identity(), first.identity());
        assert!(Arc::ptr_eq(&first, &open(&root.path().join("gone"))));
    }

    #[test]
    fn a_folder_that_nobody_holds_any_more_is_closed_and_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let first = open(root.path());
        let second = open(root.path());
        let key = first.key.unwrap();
        let left = Arc::downgrade(&first);
        drop(first);
        assert!(folders().contains_key(&key));
        drop(second);
        assert!(left.upgrade().is_none() && !folders().contains_key(&key));
    }
}
