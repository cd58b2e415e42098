//! Counting the objects that were there at the start, and removing what cannot be found any more. Lookups need not wait for it.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::{Store, open_folder};
use crate::error::StoreError;
use crate::layout::{folder_name, folders};
use crate::name::Name;

impl Store {
    /// Walks the whole directory. Takes as long as the disk does; ends early once `is_ended` says so.
    ///
    /// # Errors
    /// If a folder cannot be read. An object that was not counted is still found, but takes room
    /// that nobody knows of.
    pub fn scan(&self, is_ended: &dyn Fn() -> bool) -> Result<(), StoreError> {
        for folder in folders() {
            if is_ended() || !self.scan_folder(folder, is_ended)? {
                return Ok(());
            }
        }
        if self.has_layout_key.load(Ordering::Relaxed) || self.write_layout_key().is_ok() {
            self.is_emptied.store(false, Ordering::Relaxed);
        }
        self.is_scanned.store(true, Ordering::Release);
        Ok(())
    }

    /// Says whether it came to the end.
    fn scan_folder(&self, number: u16, is_ended: &dyn Fn() -> bool) -> Result<bool, StoreError> {
        let folder = folder_name(number);
        let list = || {
            let folder = open_folder(self.directory.as_fd(), &folder)?;
            Dir::read_from(&folder)
        };
        let mut entries = match list() {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(true),
            listed => listed.map_err(StoreError::disk("list a folder of the store"))?,
        };
        loop {
            // However many somebody has put there.
            let names: Result<Vec<_>, Errno> = (&mut entries)
                .take(NAMES_AT_ONCE)
                .map(|entry| Ok(entry?.file_name().to_bytes().to_vec()))
                .collect();
            let names = names.map_err(StoreError::disk("list a folder of the store"))?;
            if names.is_empty() {
                return Ok(true);
            }
            names.iter().filter_map(|name| Name::parse(name)).for_each(|name| {
                self.count(name, number, &folder);
            });
            self.evict();
            if is_ended() {
                return Ok(false);
            }
        }
    }

    fn count(&self, name: Name, number: u16, folder: &str) {
        if self.layout.folder(name) != number {
            // Put there with another key, or by somebody else: no lookup leads to it.
            let path = format!("{folder}/{name}");
            let _ = rustix::fs::unlinkat(&self.directory, path, AtFlags::empty());
            return;
        }
        if self.is_emptied.load(Ordering::Relaxed) {
            // But what has come since.
            self.remove_left(name);
            return;
        }
        let path = self.layout.path(name);
        let Ok(stat) = rustix::fs::statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let bytes = u64::try_from(stat.st_size).unwrap_or_default();
                let _ = self.index.insert_found(name, bytes);
                self.remove_surplus(name);
            }
            _ => _ = self.remove_left(name),
        }
    }
}

/// Names of a folder that are in memory at a time.
const NAMES_AT_ONCE: usize = 1_024;
