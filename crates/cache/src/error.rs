//! Why the store did not do what it was asked for.

use std::fmt;
use std::io;

use kettle_kernel::bug::Bug;
use rustix::io::Errno;

/// Why the store did not do what it was asked for. The caller that asked goes on without it.
#[derive(Debug)]
pub enum StoreError {
    /// The disk refused: full, read-only, gone.
    Disk {
        /// The operation that failed.
        action: &'static str,
        /// The error of the kernel.
        errno: Errno,
    },
    /// The object is larger than the operator lets one be.
    TooLarge,
    /// There is no room even after evicting what may go.
    NoRoom,
    /// More arrives than the disk takes.
    Crowded,
    /// The disk has not answered in the time that is waited for it.
    Slow,
    /// The head takes more than [`HEAD_BYTES_MAX`](crate::HEAD_BYTES_MAX).
    HeadTooLarge,
    /// It has more tags than one object may have, so not every purge would find it.
    TooManyTags,
    /// The body ended before its announced length, or went on behind it.
    WrongLength,
    /// The object was purged while it arrived.
    Purged,
    /// The directory lies on a file system that another machine or program answers for.
    Remote(&'static str),
    /// The text of a purge has characters that no key has.
    BadPurge,
    /// A bug of ours.
    Bug(Bug),
}

impl StoreError {
    pub(crate) fn disk(action: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| StoreError::Disk { action, errno }
    }

    /// True if it is worth a warning; the rest is the object's own matter.
    #[must_use]
    pub fn is_for_the_operator(&self) -> bool {
        let is_disk =
            matches!(self, StoreError::Disk { .. } | StoreError::NoRoom | StoreError::Remote(_));
        is_disk || matches!(self, StoreError::TooManyTags | StoreError::Crowded | StoreError::Slow)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Disk { action, errno } => {
                write!(formatter, "cannot {action}: {}", io::Error::from(*errno))
            }
            StoreError::TooLarge => formatter.write_str("the object is larger than `max_object`"),
            StoreError::NoRoom => formatter.write_str("the store has no room left"),
            StoreError::Crowded => formatter.write_str("more arrives than the disk takes"),
            StoreError::Slow => formatter.write_str("the disk did not answer in time"),
            StoreError::HeadTooLarge => formatter.write_str("the object's head is too large"),
            StoreError::TooManyTags => formatter.write_str("the object has too many tags"),
            StoreError::WrongLength => {
                formatter.write_str("the body has another length than announced")
            }
            StoreError::Purged => formatter.write_str("the object was purged while it arrived"),
            StoreError::Remote(kind) => write!(
                formatter,
                "the directory lies on {kind}, which may never answer: use a local file system"
            ),
            StoreError::Bug(bug) => write!(formatter, "{bug}"),
            StoreError::BadPurge => formatter.write_str("no key, prefix or tag reads like that"),
        }
    }
}

impl std::error::Error for StoreError {}
