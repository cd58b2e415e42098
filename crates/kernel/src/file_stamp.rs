//! Which file was read, and how it was then: whether what was read of it is still what is there.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What differs where the content of a file does, and at times where it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// The same for name, owner and mode besides: whoever may read it now could not before.
    changed: (i64, i64),
}

impl FileStamp {
    /// That of a file.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// True if the last change was so long before `now` that a later one has another moment: clocks of file systems are coarse.
    /// A change in the future was one before the clock was set back, and the next one may have the same moment.
    #[must_use]
    pub fn has_settled(&self, now: SystemTime) -> bool {
        let (Ok(seconds), Ok(nanos)) =
            (u64::try_from(self.changed.0), u32::try_from(self.changed.1))
        else {
            return false;
        };
        let changed = UNIX_EPOCH.checked_add(Duration::new(seconds, nanos));
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age > CLOCK_GRANULARITY_MAX)
    }
}

/// A file changed twice within the granularity of its time stamps may look unchanged: FAT has two seconds, others at most one clock
/// tick.
pub const CLOCK_GRANULARITY_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
