//! A directory files are served from: what may be opened below it, and how.
//!
//! The kernel holds the border (`openat2`, Linux 5.6), so no check here can race with a rename.
//! It refuses every absolute symlink. The target of such a link is found out without it; the file is then opened by the path
//! below the root, and by that border.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kettle_config::Symlinks;
use kettle_kernel::file_system::{Disclosure, FileSystem};
use kettle_kernel::transfer::Wait;
use kettle_runtime::open_file::path_of;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::path::Arg;

use super::folder::{Folder, identity_of};

/// The reach of a look-up. A step that would go further fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A lookup in the kernel's memory of the device on which the root lies; else [`Errno::AGAIN`].
    Cached,
    /// All of that device, which may have to be waited for; else [`Errno::XDEV`].
    Device,
    /// Wherever the route's rules allow, which may have to be waited for by other threads than that device's.
    Anywhere,
}

impl Reach {
    /// Says whether the root's own device may be waited for.
    pub fn wait(self) -> Wait {
        if self == Reach::Cached { Wait::Never } else { Wait::Allowed }
    }
}

/// Which names that begin with a dot are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dotfiles {
    /// None.
    Hidden,
    /// `.well-known` in the root itself, and no other: RFC 8615 section 3 gives a site's own to the public.
    WellKnown,
    /// All.
    Served,
}

/// An opened root directory with its rules.
#[derive(Debug)]
pub struct Root {
    folder: Arc<Folder>,
    path: PathBuf,
    resolve: ResolveFlags,
    dotfiles: Dotfiles,
}

impl Root {
    /// Opens a root and makes sure that this kernel can open files below it safely.
    ///
    /// # Errors
    /// If it is no folder that this process may open, or the kernel has no openat2(2).
    pub fn open(path: &Path, symlinks: Symlinks, dotfiles: Dotfiles) -> Result<Self, Errno> {
        let folder = Folder::of(open_folder(path, Wait::Allowed)?)?;
        let resolve = ResolveFlags::NO_MAGICLINKS
            | match symlinks {
                Symlinks::Never => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
                Symlinks::Beneath => ResolveFlags::BENEATH,
                // Paths are relative and hold no "..", so they still begin at the root.
                Symlinks::Follow => ResolveFlags::empty(),
            };
        let root = Self { folder, path: path.to_owned(), resolve, dotfiles };
        root.open_below("", OFlags::PATH | OFlags::DIRECTORY, Reach::Anywhere)?;
        Ok(root)
    }

    /// The root that the path names now: this one, unless a symlink was changed or another folder
    /// put in its place. A step that would have to wait and may not fails with [`Errno::AGAIN`].
    ///
    /// # Errors
    /// If the path names nothing any more, or no folder; [`Errno::AGAIN`] as above.
    pub fn renewed(self: &Arc<Self>, wait: Wait) -> Result<Arc<Self>, Errno> {
        let directory = match open_folder(&self.path, wait) {
            // The way there may have been open only to the user who started the server.
            Err(Errno::ACCESS | Errno::PERM) => return Ok(Arc::clone(self)),
            opened => opened?,
        };
        if identity_of(&directory)? == self.folder.identity() {
            return Ok(Arc::clone(self));
        }
        // Asking what another folder lies on may wait for that.
        if wait == Wait::Never {
            return Err(Errno::AGAIN);
        }
        let Self { resolve, dotfiles, .. } = **self;
        let folder = Folder::of(directory)?;
        Ok(Arc::new(Self { folder, path: self.path.clone(), resolve, dotfiles }))
    }

    /// True if both are the same folder.
    pub fn is(&self, other: &Self) -> bool {
        self.folder.identity() == other.folder.identity()
    }

    /// Device and inode of the folder.
    pub fn identity(&self) -> (u64, u64) {
        self.folder.identity()
    }

    /// The path this root was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of what the root itself lies on (`st_dev`); other things may be mounted below.
    pub fn device(&self) -> u64 {
        self.folder.identity().0
    }

    /// The kind of file system the root itself lies on.
    pub fn file_system(&self) -> FileSystem {
        self.folder.file_system()
    }

    /// Returns the knowledge about reading its files before they are read.
    pub fn disclosure(&self) -> Disclosure {
        Disclosure::of(self.as_fd(), self.file_system())
    }

    /// True if no component of this path is hidden.
    pub fn allows(&self, relative: &str) -> bool {
        if self.dotfiles == Dotfiles::Served || !relative.contains('.') {
            return true;
        }
        let mut names = relative.split('/').filter(|name| !name.is_empty());
        let first = names.next().unwrap_or("");
        let is_public = first == WELL_KNOWN && self.dotfiles == Dotfiles::WellKnown;
        (!first.starts_with('.') || is_public) && names.all(|name| !name.starts_with('.'))
    }

    /// Opens what a path below the root names. An empty path is the root itself.
    ///
    /// # Errors
    /// The error of openat2(2), also of a way out of the root; [`Errno::XDEV`] beyond the `reach`, [`Errno::AGAIN`] if the
    /// kernel would have to look on the disk and may not.
    pub fn open_below(
        &self,
        relative: &str,
        flags: OFlags,
        reach: Reach,
    ) -> Result<OwnedFd, Errno> {
        let path = if relative.is_empty() { "." } else { relative };
        let flags = flags | OFlags::CLOEXEC;
        let own = self.resolve | ResolveFlags::NO_XDEV;
        match reach {
            // A mount below the root may be remote, and opening there may wait.
            Reach::Cached => open_cached(&self.folder, path, flags, own),
            Reach::Device => {
                let opened = open_twice(&self.folder, path, flags, own);
                // A lookup that raced with a rename is tried again with a longer reach.
                opened.map_err(|error| match error {
                    Errno::AGAIN | Errno::INTR => Errno::XDEV,
                    error => error,
                })
            }
            Reach::Anywhere => self.open_waiting(path, flags),
        }
    }

    /// The first part of a path that leads away from the device that the root lies on; all of it if none does.
    pub fn crossing(&self, relative: &str) -> String {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let mut part = String::new();
        for name in relative.split('/').filter(|name| !name.is_empty()) {
            part.push_str(name);
            if self.open_below(&part, flags, Reach::Device).is_err_and(|it| it == Errno::XDEV) {
                return part;
            }
            part.push('/');
        }
        part
    }

    fn open_waiting(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut attempts = RENAME_RACES_MAX;
        loop {
            attempts -= 1;
            match open_twice(&self.folder, path, flags, self.resolve) {
                // A rename or mount raced with a ".." in a symlink; openat2(2) asks to try again. A program that renames all
                // the time may have been waiting for this processor.
                Err(Errno::AGAIN | Errno::INTR) if attempts > 0 => std::thread::yield_now(),
                Err(Errno::XDEV) => {
                    let real = self.real_path(path)?;
                    match openat2(&self.folder, &real, flags, Mode::empty(), self.resolve) {
                        // The target of the path changed meanwhile: find out again.
                        Err(Errno::AGAIN | Errno::INTR | Errno::NOENT | Errno::XDEV)
                            if attempts > 0 => {}
                        result => return result,
                    }
                }
                result => return result,
            }
        }
    }

    /// The path below the root, without symlinks, of what a path leads to; [`Errno::XDEV`] if that
    /// lies outside, whatever it is and whether or not it exists.
    fn real_path(&self, path: &str) -> Result<PathBuf, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let target = open_twice(&self.folder, path, flags, resolve);
        let target = target.map_err(|error| match error {
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => error,
            _ => Errno::XDEV,
        })?;
        let target = path_of(&target);
        let root = path_of(&self.folder);
        let (target, root) = target.zip(root).ok_or(Errno::XDEV)?;
        let below = target.strip_prefix(root).map_err(|_| Errno::XDEV)?;
        Ok(if below.as_os_str().is_empty() { ".".into() } else { below.to_owned() })
    }
}

/// Opens what a root's path names. A symlink on the way may be exchanged, and what it led to removed, between the kernel's
/// look at the one and at the other: what is missing is looked for again.
fn open_folder(path: &Path, wait: Wait) -> Result<OwnedFd, Errno> {
    let mut attempts = SWAPS_MAX;
    loop {
        attempts -= 1;
        let opened = match wait {
            Wait::Never => open_cached(CWD, path, FOLDER, ResolveFlags::empty()),
            Wait::Allowed => open_twice(CWD, path, FOLDER, ResolveFlags::empty()),
        };
        match opened {
            Err(Errno::NOENT | Errno::NOTDIR) if attempts > 0 => {}
            opened => return opened,
        }
    }
}

/// Opens what the kernel can find without a disk.
fn open_cached(
    at: impl AsFd,
    path: impl Arg + Copy,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    if CACHED_RESOLVING_IS_MISSING.load(Ordering::Relaxed) {
        return Err(Errno::AGAIN);
    }
    let resolve = resolve | ResolveFlags::CACHED;
    open_twice(at, path, flags, resolve).map_err(|error| match error {
        // Linux 5.6 to 5.11 do not know the flag.
        Errno::INVAL => {
            CACHED_RESOLVING_IS_MISSING.store(true, Ordering::Relaxed);
            Errno::AGAIN
        }
        // Where the link leads, and what is mounted there, can only be found out by waiting.
        Errno::XDEV => Errno::AGAIN,
        error => error,
    })
}

/// Opens what a path names, and looks again where symlinks led there, until two looks in a row saw the same.
///
/// A symlink that is removed between the kernel's look at it and at its text may be found empty (ext4 clears the text of a
/// short one), and then the look goes on in the folder that held it: seen with Linux 6.1, 6.12 and 7.
fn open_twice(
    at: impl AsFd,
    path: impl Arg + Copy,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let open = |resolve| openat2(&at, path, flags, Mode::empty(), resolve);
    let straight = open(resolve | ResolveFlags::NO_SYMLINKS);
    if resolve.contains(ResolveFlags::NO_SYMLINKS) || !matches!(straight, Err(Errno::LOOP)) {
        return straight;
    }
    let identity = |opened: &Result<OwnedFd, Errno>| match opened {
        Ok(opened) => identity_of(opened),
        Err(error) => Err(*error),
    };
    let mut opened = open(resolve);
    for _ in 1..SWAPS_MAX {
        let before = identity(&opened);
        opened = open(resolve);
        if identity(&opened) == before {
            break;
        }
    }
    opened
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const WELL_KNOWN: &str = ".well-known";
/// Any rename on the machine may race with the look along a symlink: a thread tries this often before it gives up.
const RENAME_RACES_MAX: u32 = 1_000;
/// Looks for one request at what is exchanged for another all the time.
pub const SWAPS_MAX: u32 = 8;

/// Set once a kernel refused `RESOLVE_CACHED`; from then on every opening may wait.
static CACHED_RESOLVING_IS_MISSING: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests;
