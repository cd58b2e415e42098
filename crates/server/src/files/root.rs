//! A directory files are served from: what may be opened below it, and how.
//!
//! The kernel holds the border (`openat2`, Linux 5.6), so no check here can race with a rename.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kettle_config::Symlinks;
use kettle_kernel::transfer::Wait;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// An opened root directory with its rules.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    path: PathBuf,
    resolve: ResolveFlags,
    allows_dotfiles: bool,
}

impl Root {
    /// Opens a root and makes sure that this kernel can open files below it safely.
    pub fn open(path: &Path, symlinks: Symlinks, allows_dotfiles: bool) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let resolve = ResolveFlags::NO_MAGICLINKS
            | match symlinks {
                Symlinks::Never => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
                Symlinks::Beneath => ResolveFlags::BENEATH,
                // Paths are relative and hold no "..", so they still begin at the root.
                Symlinks::Follow => ResolveFlags::empty(),
            };
        let root = Self { directory, path: path.to_owned(), resolve, allows_dotfiles };
        root.open_below("", OFlags::PATH | OFlags::DIRECTORY, Wait::Allowed)?;
        Ok(root)
    }

    /// The path this root was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether names beginning with a dot are served and listed.
    #[must_use]
    pub fn allows_dotfiles(&self) -> bool {
        self.allows_dotfiles
    }

    /// Whether no component of this path is hidden.
    ///
    /// `.well-known` as the first component is always open: RFC 8615 gives it to the public.
    #[must_use]
    pub fn allows(&self, relative: &str) -> bool {
        if self.allows_dotfiles || !relative.contains('.') {
            return true;
        }
        let mut names = relative.split('/').filter(|name| !name.is_empty());
        let first = names.next().unwrap_or("");
        (!first.starts_with('.') || first == WELL_KNOWN) && names.all(|name| !name.starts_with('.'))
    }

    /// Opens what a path below the root names. An empty path is the root itself. What would have
    /// to wait and may not fails with [`Errno::AGAIN`].
    pub fn open_below(&self, relative: &str, flags: OFlags, wait: Wait) -> Result<OwnedFd, Errno> {
        let path = if relative.is_empty() { "." } else { relative };
        let flags = flags | OFlags::CLOEXEC;
        match wait {
            Wait::Never => self.open_cached(path, flags),
            Wait::Allowed => self.open_waiting(path, flags),
        }
    }

    fn open_cached(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if CACHED_RESOLVING_IS_MISSING.load(Ordering::Relaxed) {
            return Err(Errno::AGAIN);
        }
        let resolve = self.resolve | ResolveFlags::CACHED;
        openat2(&self.directory, path, flags, Mode::empty(), resolve).map_err(|error| {
            // Linux 5.6 to 5.11 do not know the flag.
            if error == Errno::INVAL {
                CACHED_RESOLVING_IS_MISSING.store(true, Ordering::Relaxed);
                return Errno::AGAIN;
            }
            error
        })
    }

    fn open_waiting(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut attempts = RENAME_RACES_MAX;
        loop {
            attempts -= 1;
            match openat2(&self.directory, path, flags, Mode::empty(), self.resolve) {
                // A rename or mount raced with a ".." in a symlink; openat2(2) asks to try again.
                Err(Errno::AGAIN | Errno::INTR) if attempts > 0 => {}
                result => return result,
            }
        }
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

const WELL_KNOWN: &str = ".well-known";
const RENAME_RACES_MAX: u32 = 4;

/// Set once a kernel refused `RESOLVE_CACHED`; from then on every opening may wait.
static CACHED_RESOLVING_IS_MISSING: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests;
