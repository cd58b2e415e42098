//! Counting the objects that were there at the start. Lookups need not wait for it.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Dir};
use rustix::io::Errno;

use super::{Store, open_folder};
use crate::error::StoreError;
use crate::name::Name;

impl Store {
    /// Walks the whole directory. Takes as long as the disk does; ends early once `is_ended` says so.
    ///
    /// # Errors
    /// If a folder cannot be read. What was not counted is still found, but takes room that nobody knows of.
    pub fn scan(&self, is_ended: &dyn Fn() -> bool) -> Result<(), StoreError> {
        for folder in Name::folders() {
            if is_ended() {
                return Ok(());
            }
            self.scan_folder(&folder)?;
        }
        self.is_scanned.store(true, Ordering::Release);
        Ok(())
    }

    fn scan_folder(&self, folder: &str) -> Result<(), StoreError> {
        for file_name in self.entries(folder)? {
            let Some(name) = Name::parse(&file_name) else { continue };
            let stat = rustix::fs::statat(&self.directory, name.path(), AtFlags::SYMLINK_NOFOLLOW);
            if let Ok(stat) = stat {
                self.index.insert_found(name, u64::try_from(stat.st_size).unwrap_or_default());
            }
        }
        self.evict();
        Ok(())
    }

    /// The names in a folder; none if it is not there.
    pub(super) fn entries(&self, folder: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let list = || {
            let folder = open_folder(self.directory.as_fd(), folder)?;
            let entries = Dir::read_from(&folder)?;
            entries.map(|entry| Ok(entry?.file_name().to_bytes().to_vec())).collect()
        };
        match list() {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(Vec::new()),
            listed => listed.map_err(StoreError::disk("list a folder of the store")),
        }
    }
}
