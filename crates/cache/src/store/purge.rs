//! Forgetting objects on request.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::PoisonError;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::find::write_all;
use super::room::is_full;
use super::{FILE_MODE, Store, TEMPORARY, open_folder};
use crate::error::StoreError;
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
        // Whoever meets it from here on may remove its file first.
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
                // What writes remove may be back after a loss of power; a purge is not, whoever removed the file.
                let synced = open_folder(self.directory(), &key.folder())
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

    /// The part of a purge that no disk is needed for: nothing that it means is found any more, here or arriving. After a restart
    /// it is found again, unless [`purge`](Self::purge) or [`remove_key`](Self::remove_key) comes behind.
    pub fn forget(&self, purge: &Purge) {
        self.purges.add(purge);
    }

    /// The other part: removes what is there of a key, which its index may not know yet. Says how many files that were.
    ///
    /// # Errors
    /// If the disk refuses to let one of them go; the others are gone then.
    pub fn remove_key(&self, key: Name) -> Result<u64, StoreError> {
        // What gets a name of this key was linked before this lists them, or shows that it is forgotten before it is linked: at no
        // moment of its life a process that is killed leaves it behind.
        let _alone = self.alone_with(key);
        let names = self.entries(&key.folder())?;
        let names = names.iter().filter_map(|name| Name::parse(name));
        let (mut removed, mut refused) = (0, Ok(()));
        for name in names.filter(|name| name.has_key_of(key)) {
            match self.remove_any(name) {
                Ok(()) => removed += 1,
                Err(errno) => refused = refused.and(Err(errno)),
            }
        }
        // Where its file was removed by somebody else.
        self.index.remove(key, None);
        refused.map(|()| removed).map_err(StoreError::disk("remove an object"))
    }

    fn write_down(&self, line: &str, appended_bytes: &mut u64) -> Result<(), Errno> {
        *appended_bytes += line.len() as u64;
        if *appended_bytes <= APPENDED_BYTES_MAX && append(self.directory(), line).is_ok() {
            return Ok(());
        }
        // Half a line may stand there now, which would be taken for damage.
        let text = self.purges.text();
        let write = || self.with_temporary(|| write_log(self.directory(), &text));
        self.with_room(text.len() as u64, write)?;
        *appended_bytes = 0;
        Ok(())
    }
}

/// Reads what was purged in earlier lives, and writes it down without what means nothing any more. Says how much of it may
/// still be that.
pub(super) fn read_log(directory: BorrowedFd<'_>) -> Result<(Purges, u64), StoreError> {
    let read = || {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::openat(directory, LOG, flags, FILE_MODE) {
            Ok(log) => read_whole(&log),
            Err(Errno::NOENT) => Ok(Vec::new()),
            Err(errno) => Err(errno),
        }
    };
    let text = read().map_err(StoreError::disk("read what was purged"))?;
    let purges = Purges::read(&text);
    let written = match write_log(directory, &purges.text()) {
        // Nothing is counted yet that could make room, and this needs hardly any: the last block of a file is seldom full.
        Err(errno) if is_full(errno) && !text.is_empty() => {
            let life = purges.life_line();
            append(directory, &life).map(|()| (text.len() + life.len()) as u64)
        }
        written => written.map(|()| 0),
    };
    let appended_bytes = written.map_err(StoreError::disk("write down what was purged"))?;
    Ok((purges, appended_bytes))
}

fn write_log(directory: BorrowedFd<'_>, text: &str) -> Result<(), Errno> {
    let name = format!("{TEMPORARY}/{LOG}-{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let log = rustix::fs::openat(directory, &name, flags, FILE_MODE)?;
    let written = write_all(&log, text.as_bytes(), 0)
        .and_then(|()| rustix::fs::fdatasync(&log))
        .and_then(|()| rustix::fs::renameat(directory, &name, directory, LOG))
        .and_then(|()| rustix::fs::fsync(directory));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
    }
    written
}

/// Adds a line, behind an end of line: half of one may stand there, which would swallow it.
fn append(directory: BorrowedFd<'_>, line: &str) -> Result<(), Errno> {
    let line = format!("\n{line}");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let log = retry_on_intr(|| rustix::fs::openat(directory, LOG, flags, FILE_MODE))?;
    // Where a file is opened to append, the offset means nothing.
    write_all(&log, line.as_bytes(), 0)?;
    rustix::fs::fdatasync(&log)
}

fn read_whole(log: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let mut text = Vec::new();
    let mut piece = vec![0; 64 * 1_024];
    loop {
        match retry_on_intr(|| rustix::io::read(log, &mut *piece))? {
            0 => return Ok(text),
            bytes => text.extend_from_slice(piece.get(..bytes).unwrap_or_default()),
        }
        if text.len() > LOG_BYTES_MAX {
            // Not written by us. What cannot be understood purges everything.
            return Ok(b"?".to_vec());
        }
    }
}

const LOG: &str = "purges";

/// More than the tables hold.
const LOG_BYTES_MAX: usize = 128 * 1024 * 1024;

/// How much is added to the file of purges before it is written anew, without what means nothing any more.
const APPENDED_BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::head::ObjectHead;
    use crate::store::StoreSettings;

    fn open(folder: &TempDir) -> Arc<Store> {
        let directory = folder.path().to_owned();
        let settings = StoreSettings { directory, bytes_max: 1 << 20, object_bytes_max: 10 };
        Arc::new(Store::open(settings).unwrap())
    }

    #[test]
    fn the_file_of_purges_stays_short_where_one_prefix_is_purged_again_and_again() {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        let purge = Purge::Prefix("x".repeat(8_000));
        for _ in 0..=APPENDED_BYTES_MAX / 8_000 {
            store.purge(&purge).unwrap();
        }
        let file_bytes = std::fs::metadata(folder.path().join(LOG)).unwrap().len();
        assert!(file_bytes < 20_000, "{file_bytes}");
    }

    #[test]
    fn the_file_of_purges_is_written_anew_where_its_folder_was_emptied() {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        std::fs::remove_dir_all(folder.path().join(TEMPORARY)).unwrap();
        let purge = Purge::Prefix("x".repeat(8_000));
        for _ in 0..=APPENDED_BYTES_MAX / 8_000 {
            store.purge(&purge).unwrap();
        }
        assert!(std::fs::metadata(folder.path().join(LOG)).unwrap().len() < 20_000);
    }

    /// As a reader does who meets it when the purge is made and has not looked for files yet.
    #[test]
    fn a_purge_counts_what_another_thread_removes_meanwhile() {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        let generation = store.generation();
        let head = ObjectHead { key: "a".into(), status: 200, generation, ..ObjectHead::default() };
        store.keep(&head, b"body").unwrap();
        let key = Name::of_key("a");
        std::fs::remove_file(folder.path().join(key.path())).unwrap();
        assert_eq!(store.purge(&Purge::Key(key)).unwrap(), 1);
        assert_eq!(store.purge(&Purge::Key(key)).unwrap(), 0);
    }

    #[test]
    fn a_purge_says_what_the_disk_does_not_let_go_and_removes_the_rest() {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        let key = "https://example.org/a";
        let variant = |value: &str| {
            let vary = vec![("accept".to_owned(), value.into())];
            let generation = store.generation();
            let key = key.to_owned();
            ObjectHead { key, vary, status: 200, generation, ..ObjectHead::default() }
        };
        for value in ["a", "b"] {
            store.keep(&variant(value), b"body").unwrap();
        }
        // As little as on a disk that went read-only, its name goes by `unlink`.
        let stays = folder.path().join(Name::of_object(&variant("a")).path());
        std::fs::remove_file(&stays).unwrap();
        std::fs::create_dir(&stays).unwrap();
        let purged = store.purge(&Purge::Key(Name::of_key(key)));
        assert!(matches!(purged, Err(StoreError::Disk { .. })), "{purged:?}");
        let left = store.entries(&Name::of_key(key).folder()).unwrap();
        assert_eq!(left.iter().filter(|name| Name::parse(name).is_some()).count(), 1);
        std::fs::remove_dir(&stays).unwrap();
        assert_eq!(store.purge(&Purge::Key(Name::of_key(key))).unwrap(), 0);
    }

    #[test]
    fn a_purge_behind_half_a_line_is_read_back() {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        let before = ObjectHead {
            tags: vec!["x".to_owned()],
            generation: store.generation(),
            ..ObjectHead::default()
        };
        let log = folder.path().join(LOG);
        let mut text = std::fs::read(&log).unwrap();
        text.extend_from_slice(format!("{} prefix https://a/im", before.generation + 1).as_bytes());
        std::fs::write(&log, &text).unwrap();
        append(store.directory(), &format!("{} tag x\n", before.generation + 2)).unwrap();
        let (purges, _) = read_log(store.directory()).unwrap();
        assert!(purges.mean(&before));
        let other = ObjectHead { tags: Vec::new(), ..before };
        assert!(!purges.mean(&other), "and it is no damage");
    }
}
