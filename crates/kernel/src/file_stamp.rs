//! Which file was read, and how it was then: whether what was read of it is still what is there.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Which file it is, and what differs where its content does, and at times where it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// The number of what it lies on (`st_dev`).
    pub device: u64,
    inode: u64,
    /// Its length.
    pub bytes: u64,
    /// Seconds and nanoseconds of the last modification, which programs set as they like.
    pub modified: (i64, u64),
    /// The same of the last change, of name, owner, mode or number of names besides: whoever may read it now could not before. No
    /// program can set it.
    pub changed: (i64, u64),
}

impl FileStamp {
    /// That of a file.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        let nanoseconds = |of_kernel: i64| u64::try_from(of_kernel).unwrap_or(0);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), nanoseconds(metadata.mtime_nsec())),
            changed: (metadata.ctime(), nanoseconds(metadata.ctime_nsec())),
        }
    }

    /// That of a file as rustix looks at it.
    #[must_use]
    pub fn of_stat(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// True of two states of one file.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// True if the last change was so long before `now` that a later one has another moment: clocks of file systems are coarse.
    /// A change in the future was one before the clock was set back, and the next one may have the same moment.
    #[must_use]
    pub fn has_settled(&self, now: SystemTime) -> bool {
        let age = moment(self.changed).and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age > CLOCK_GRANULARITY_MAX)
    }

    /// When the content was last modified. Times before 1970 read as 1970.
    #[must_use]
    pub fn modified_at(&self) -> SystemTime {
        moment(self.modified).unwrap_or(UNIX_EPOCH)
    }
}

/// Since 1970.
fn moment((seconds, nanoseconds): (i64, u64)) -> Option<SystemTime> {
    let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
    UNIX_EPOCH.checked_add(since)
}

/// A file changed twice within the granularity of its time stamps may look unchanged: FAT has two seconds, others at most one clock
/// tick.
pub const CLOCK_GRANULARITY_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
