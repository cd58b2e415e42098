//! Forgetting objects on request.

use std::os::fd::BorrowedFd;
use std::sync::PoisonError;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::own_files::{SmallFile, open_file, read_small, write_all, write_small};
use super::room::is_full;
use super::{Store, open_folder};
use crate::error::StoreError;
use crate::layout::folder_name;
use crate::name::Name;
use crate::purges::{Purge, Purges};

impl Store {
    /// Forgets objects: once this returns, nothing that was asked for before it is found again, after a restart or a loss of power
    /// neither.
    /// Touches the disk. Says how many files went at once, or that there was one which somebody else removed meanwhile; those of
    /// prefixes and tags go when they are met.
    ///
    /// # Errors
    /// If nothing can be meant by it; or if the disk refuses, and the purge may not outlive the process.
    pub fn purge(&self, purge: &Purge) -> Result<u64, StoreError> {
        if !purge.is_possible() {
            return Err(StoreError::BadPurge);
        }
        // A lookup that meets it from here on may remove its file first.
        let was_known = matches!(purge, Purge::Key(key) if !self.index.lacks(*key));
        let written = {
            // Lines stand in the order of their generations.
            let mut appended_bytes = self.purge_log.lock().unwrap_or_else(PoisonError::into_inner);
            match self.purges.add(purge) {
                Some(line) => self.write_down(&line, &mut appended_bytes),
                None => Ok(()),
            }
        };
        written.map_err(StoreError::disk("write down a purge"))?;
        match purge {
            Purge::Key(key) => {
                let removed = self.remove_key(*key)?;
                // A removal may be back after a loss of power; a purge is not, whoever removed the file.
                let folder = folder_name(self.layout.folder(key.first()));
                let synced = open_folder(self.directory(), &folder)
                    .and_then(|folder| rustix::fs::fsync(&folder));
                let synced = match synced {
                    Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
                    other => other,
                };
                synced.map_err(StoreError::disk("have the disk remove an object"))?;
                Ok(removed.max(was_known.into()))
            }
            Purge::Prefix(_) | Purge::Tag(_) => Ok(0),
        }
    }

    /// The part of a purge that no disk is needed for: nothing that it covers is found any more, here or arriving. After a restart
    /// it is found again, unless [`purge`](Self::purge) or [`remove_key`](Self::remove_key) comes behind.
    pub fn forget(&self, purge: &Purge) {
        self.purges.add(purge);
    }

    /// The other part: removes what lookup finds first of a key, whether or not its index knows that yet. Without it nothing of
    /// the key is found, and what leads to variants later leads to none that are older ([`mark`](Self::mark)). So the
    /// work is the same for any number of objects and variants. Says how many files went, of variants a few; the others' room is
    /// free when they are met or make room for others.
    ///
    /// # Errors
    /// If the disk refuses to let it go.
    pub fn remove_key(&self, key: Name) -> Result<u64, StoreError> {
        let first = key.first();
        let purged_at = self.purges.key_purged_at(key);
        let removed = {
            // A file that gets this name was linked before this removes it, or shows that it is
            // forgotten before it is linked: at no moment of its life a process that is killed
            // leaves it behind.
            let _alone = self.alone_with(first);
            self.index.remove(first, None);
            self.unlink(first).map_err(StoreError::disk("remove an object"))?
        };
        self.purges.key_removed(key, purged_at);
        let variants = self.index.take_variants(first, VARIANTS_AT_ONCE);
        let gone = variants.into_iter().filter(|variant| self.remove_left(*variant));
        Ok(u64::from(removed) + gone.count() as u64)
    }

    fn write_down(&self, line: &str, appended_bytes: &mut u64) -> Result<(), Errno> {
        *appended_bytes += line.len() as u64;
        if *appended_bytes <= APPENDED_BYTES_MAX && append(self.directory(), line).is_ok() {
            return Ok(());
        }
        // Half a line may stand there now, which would be taken for damage.
        let text = self.purges.text();
        let write = || self.with_temporary(|| write_small(self.directory(), LOG, text.as_bytes()));
        self.with_room(text.len() as u64, write)?;
        *appended_bytes = 0;
        Ok(())
    }
}

/// Reads what was purged in earlier lives, and writes it down without what covers nothing any more. Says how much of it may
/// still be that. If `is_emptied`, nothing that earlier lives kept is found again.
pub(super) fn read_log(
    directory: BorrowedFd<'_>,
    is_emptied: bool,
) -> Result<(Purges, u64), StoreError> {
    let read = |name| {
        let read = read_small(directory, name, LOG_BYTES_MAX);
        Ok(match read.map_err(StoreError::disk("read what was purged"))? {
            SmallFile::Missing => Vec::new(),
            SmallFile::Read { bytes, .. } => bytes,
            // A line not understood purges everything.
            SmallFile::Foreign => b"?".to_vec(),
        })
    };
    let mut text = read(LOG)?;
    if is_emptied {
        // For its generations, which this life is above. A line not understood purges everything.
        text.push(b'\n');
        text.extend(read(LOG_BEFORE)?);
        text.extend(b"\n?");
    }
    let purges = Purges::read(&text);
    let written = match write_small(directory, LOG, purges.text().as_bytes()) {
        // Nothing is counted yet that could make room, and this needs hardly any: the last block of a file is seldom full.
        Err(errno) if is_full(errno) && !text.is_empty() => {
            let line = purges.first_lines();
            append(directory, &line).map(|()| (text.len() + line.len()) as u64)
        }
        written => written.map(|()| 0),
    };
    let appended_bytes = written.map_err(StoreError::disk("write down what was purged"))?;
    Ok((purges, appended_bytes))
}

/// True if a kettle has been at work here that looks for files elsewhere.
pub(super) fn has_log_before(directory: BorrowedFd<'_>) -> bool {
    rustix::fs::statat(directory, LOG_BEFORE, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Adds a line, behind an end of line: half of one may stand there, which would swallow it.
fn append(directory: BorrowedFd<'_>, line: &str) -> Result<(), Errno> {
    let line = format!("\n{line}");
    let log = open_file(directory, LOG, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)?;
    // Where a file is opened to append, the offset means nothing.
    write_all(&log, line.as_bytes(), 0)?;
    rustix::fs::fdatasync(&log)
}

const LOG: &str = "purged";

/// The name of the file of purges while files lay elsewhere. A directory that has it was used by
/// such a version of kettle.
pub(super) const LOG_BEFORE: &str = "purges";

/// More than the tables hold.
const LOG_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The bytes that are added to the file of purges before it is written anew, without what covers
/// nothing any more.
const APPENDED_BYTES_MAX: u64 = 1024 * 1024;

/// Variants of a key whose files go at once, so that no purge takes longer than another.
const VARIANTS_AT_ONCE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::ObjectHead;
    use crate::store::TEMPORARY;
    use crate::store::tests::TestStore;

    /// Purges one prefix until the file of purges has to become short.
    fn purge_again_and_again(store: &TestStore) {
        let purge = Purge::Prefix("x".repeat(8_000));
        for _ in 0..=APPENDED_BYTES_MAX / 8_000 {
            store.purge(&purge).unwrap();
        }
        let file_bytes = std::fs::metadata(store.folder().join(LOG)).unwrap().len();
        assert!(file_bytes < 20_000, "{file_bytes}");
    }

    #[test]
    fn the_file_of_purges_stays_short_where_one_prefix_is_purged_again_and_again() {
        purge_again_and_again(&TestStore::new());
    }

    #[test]
    fn the_file_of_purges_is_written_anew_where_its_folder_was_emptied() {
        let store = TestStore::new();
        std::fs::remove_dir_all(store.folder().join(TEMPORARY)).unwrap();
        purge_again_and_again(&store);
    }

    /// As a reader does who meets it when the purge is made and has not looked for files yet.
    #[test]
    fn a_purge_counts_what_another_thread_removes_meanwhile() {
        let store = TestStore::new();
        store.keep_short("a");
        let key = Name::of_key("a");
        std::fs::remove_file(store.path(key)).unwrap();
        assert_eq!(store.purge(&Purge::Key(key)).unwrap(), 1);
        assert_eq!(store.purge(&Purge::Key(key)).unwrap(), 0);
    }

    #[test]
    fn a_purge_says_that_the_disk_does_not_let_go() {
        let store = TestStore::new();
        let key = Name::of_key("a");
        // As little as on a disk that went read-only, a name goes below a link that leads to itself.
        let below = store.folder().join(folder_name(store.layout.folder(key)));
        std::os::unix::fs::symlink(&below, &below).unwrap();
        let purged = store.purge(&Purge::Key(key));
        assert!(matches!(purged, Err(StoreError::Disk { .. })), "{purged:?}");
        std::fs::remove_file(&below).unwrap();
        assert_eq!(store.purge(&Purge::Key(key)).unwrap(), 0);
    }

    #[test]
    fn a_purge_behind_half_a_line_is_read_back() {
        let store = TestStore::new();
        let before = ObjectHead {
            tags: vec!["x".to_owned()],
            generation: store.generation(),
            ..ObjectHead::default()
        };
        let log = store.folder().join(LOG);
        let mut text = std::fs::read(&log).unwrap();
        text.extend_from_slice(format!("{} prefix https://a/im", before.generation + 1).as_bytes());
        std::fs::write(&log, &text).unwrap();
        append(store.directory(), &format!("{} tag x\n", before.generation + 2)).unwrap();
        let (purges, _) = read_log(store.directory(), false).unwrap();
        assert!(purges.covers(&before));
        let other = ObjectHead { tags: Vec::new(), ..before };
        assert!(!purges.covers(&other), "and it is no damage");
    }
}
