//! From a path to an open regular file: index files, precompressed siblings, directories.
//!
//! Runs without ever waiting for a disk, or on a thread that may wait for the root's own, or on one
//! that may wait for any; all walk the same code, so all decide alike.

use std::os::fd::{AsFd, OwnedFd};

use kettle_config::Coding;
use kettle_kernel::file_stamp::FileStamp;
use kettle_kernel::file_system::FileSystem;
use kettle_runtime::disk::DiskDeadline;
use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::Errno;

use super::file_route::OtherRoutes;
use super::marks::Meeting;
use super::precompressed::CodingPreference;
use super::programs::{Nature, Programs};
use super::root::{Reach, Root};
use crate::guard::DeniedFiles;

/// The subject of a lookup.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'s> {
    /// The path below the root, without a leading slash; empty or ending with a slash for a
    /// directory.
    pub relative: &'s str,
    /// File names that stand for a directory, best first.
    pub index: &'s [String],
    /// The routes that may answer for an index file.
    pub others: Option<&'s OtherRoutes>,
    /// Files that answer for no other path either.
    pub denied: Option<&'s DeniedFiles>,
    /// Files that are run, or that nobody gets.
    pub programs: Option<&'s Programs>,
    /// Content codings the client takes and the route offers, best first.
    pub preference: CodingPreference,
    /// The purpose of the lookup.
    pub purpose: Purpose,
}

#[cfg(test)]
impl<'s> Sought<'s> {
    /// A file to be read, for a client that takes no coding.
    pub(super) fn file(relative: &'s str) -> Self {
        Self {
            relative,
            index: &[],
            others: None,
            denied: None,
            programs: None,
            preference: CodingPreference::NONE,
            purpose: Purpose::Read,
        }
    }
}

/// The purpose of the lookup of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Read,
    /// To see whether it is what is remembered. That opens nothing, so that no rule of the kernel's about opening is asked.
    Compare,
    /// To know that it is there. It may be one that cannot be read.
    Exist,
}

impl Sought<'_> {
    /// Returns the flags with which a file is opened. Only what the kernel remembers is not read: elsewhere, opening asks for
    /// the present state.
    fn flags(&self, reach: Reach) -> OFlags {
        match (self.purpose, reach) {
            (Purpose::Compare, Reach::Cached) | (Purpose::Exist, _) => OFlags::PATH,
            _ => READING,
        }
    }

    /// Returns the flags with which a file is opened of which its name says so much. A file that is never sent is never read.
    fn flags_of(&self, path: &str, reach: Reach) -> OFlags {
        match self.nature(path) {
            Nature::File => self.flags(reach),
            Nature::Program | Nature::Source => OFlags::PATH,
        }
    }

    fn nature(&self, path: &str) -> Nature {
        self.programs.map_or(Nature::File, |programs| programs.nature(path))
    }

    fn is_denied(&self, path: &str) -> bool {
        self.denied.is_some_and(|denied| denied.have_below(path))
    }
}

/// The outcome of a lookup.
#[derive(Debug)]
pub enum LocateOutcome {
    /// A regular file.
    File(Found),
    /// A directory, but the path lacks its final slash.
    SlashMissing,
    /// A directory without an index file.
    Directory,
    /// A directory with an index file for which another route answers, by this path.
    Elsewhere(String),
    /// A program.
    Program {
        /// Its path below the root, without a leading slash.
        path: String,
        /// The part of the path that goes on behind it.
        path_info: String,
    },
    /// Nothing that may be served, as a status code says it.
    Refused(u16),
    /// A symbolic link that is not followed, or that leads in circles.
    Link,
    /// The answer needs a disk; ask again with [`Reach::Device`].
    WouldBlock,
    /// The answer lies beyond the root's device, behind this part of the path; ask again with [`Reach::Anywhere`].
    Beyond(String),
}

impl LocateOutcome {
    /// True if no file is there, as far as the disk says anything.
    #[must_use]
    pub fn is_no_file(&self) -> bool {
        match self {
            Self::File(_) | Self::Program { .. } | Self::WouldBlock | Self::Beyond(_) => false,
            Self::SlashMissing | Self::Directory | Self::Elsewhere(_) | Self::Link => true,
            // Out of descriptors or a failing disk: the file may well be there again.
            Self::Refused(status) => *status < 500,
        }
    }
}

/// An open regular file.
#[derive(Debug)]
pub struct Found {
    /// The file.
    pub fd: OwnedFd,
    /// The file system on which it lies.
    pub file_system: FileSystem,
    /// The facts about it.
    pub facts: Facts,
    /// True if it may be read: it was not only looked at.
    pub is_readable: bool,
    /// The earlier meeting with it.
    pub meeting: Meeting,
    /// True if it is to be remembered.
    pub is_kept: bool,
    /// True if it stays where it is, though it is small.
    pub by_sendfile: bool,
    /// When the caller gives up.
    pub deadline: Option<DiskDeadline>,
}

/// The facts about a file that was found.
#[derive(Debug)]
pub struct Facts {
    /// Which file, in which state.
    pub identity: FileStamp,
    /// The coding of its content, if it is a precompressed sibling or was compressed here.
    pub coding: Option<Coding>,
    /// The path below the root of the file asked for: not that of its sibling, but with the index
    /// file's name if a directory was asked for.
    pub path: Box<str>,
}

/// The kind of an open descriptor.
enum FileKind {
    Regular(FileStamp),
    Directory,
    Other,
}

fn kind_of(fd: impl AsFd) -> Result<FileKind, Errno> {
    let stat = fstat(fd)?;
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::Regular(FileStamp::of_stat(&stat)),
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    })
}

/// The present state of an open file; `None` if it is not a regular one.
pub fn identity_of(fd: impl AsFd) -> Option<FileStamp> {
    match kind_of(fd) {
        Ok(FileKind::Regular(identity)) => Some(identity),
        _ => None,
    }
}

/// True if the content of a file was last modified before that of another. Where the time of the first has no fraction, seconds are
/// compared: many programs copy times without it.
fn is_older(one: &FileStamp, other: &FileStamp) -> bool {
    match one.modified {
        (seconds, 0) => seconds < other.modified.0,
        modified => modified < other.modified,
    }
}

/// Looks for a file below a root.
#[must_use]
pub fn locate(root: &Root, sought: Sought<'_>, reach: Reach) -> LocateOutcome {
    let outcome = if let Some(program) = locate_before_path_info(root, sought, reach).transpose() {
        program
    } else if !root.allows(sought.relative) {
        return LocateOutcome::Refused(404);
    } else if sought.relative.is_empty() || sought.relative.ends_with('/') {
        locate_directory(root, sought, reach)
    } else {
        locate_file(root, sought, reach)
    };
    outcome.unwrap_or_else(|error| match error {
        Errno::AGAIN => LocateOutcome::WouldBlock,
        Errno::XDEV if reach == Reach::Device => {
            LocateOutcome::Beyond(root.crossing(sought.relative))
        }
        Errno::LOOP => LocateOutcome::Link,
        error => LocateOutcome::Refused(status_of(error)),
    })
}

/// The first program from the left behind which the path goes on, if the route takes such paths and there is one. Where a part of
/// the path is not there, none that begins with it is.
fn locate_before_path_info(
    root: &Root,
    sought: Sought<'_>,
    reach: Reach,
) -> Result<Option<LocateOutcome>, Errno> {
    let takes = sought.programs.is_some_and(|programs| programs.take_path_info);
    let slashes = sought.relative.match_indices('/').filter(|_| takes);
    let parts = slashes.filter_map(|(at, _)| sought.relative.split_at_checked(at));
    let runs = |path: &str| sought.programs.is_some_and(|programs| programs.run(path));
    let named = parts.filter(|(path, _)| runs(path));
    for (path, path_info) in named.take(PROGRAM_FOLDERS_MAX) {
        if !root.allows(path) {
            return Ok(None);
        }
        let fd = match root.open_below(path, OFlags::PATH, reach) {
            Err(error @ (Errno::AGAIN | Errno::XDEV)) => return Err(error),
            Err(_) => return Ok(None),
            Ok(fd) => fd,
        };
        match kind_of(&fd)? {
            FileKind::Directory => {}
            FileKind::Other => return Ok(None),
            // Its own route may ask for more.
            FileKind::Regular(_) if sought.is_denied(path) => {
                return Ok(Some(LocateOutcome::Refused(403)));
            }
            FileKind::Regular(_)
                if sought.others.is_some_and(|others| others.path_of(path).is_some()) =>
            {
                return Ok(Some(LocateOutcome::Refused(404)));
            }
            FileKind::Regular(_) => {
                let path = path.to_owned();
                let path_info = path_info.to_owned();
                return Ok(Some(LocateOutcome::Program { path, path_info }));
            }
        }
    }
    Ok(None)
}

/// A regular file as its name says: a program, or one that is sent.
fn of_nature(
    root: &Root,
    sought: Sought<'_>,
    path: &str,
    fd: OwnedFd,
    identity: FileStamp,
    reach: Reach,
) -> Result<LocateOutcome, Errno> {
    match sought.nature(path) {
        Nature::File => best_variant(root, sought, path, fd, identity, reach),
        Nature::Program => {
            Ok(LocateOutcome::Program { path: path.to_owned(), path_info: String::new() })
        }
        Nature::Source => Ok(LocateOutcome::Refused(404)),
    }
}

fn locate_file(root: &Root, sought: Sought<'_>, reach: Reach) -> Result<LocateOutcome, Errno> {
    let flags = sought.flags_of(sought.relative, reach);
    let fd = match root.open_below(sought.relative, flags, reach) {
        // A folder that may be searched and not read is served from below its slash.
        Err(Errno::ACCESS) if root.open_below(sought.relative, FOLDER, reach).is_ok() => {
            return Ok(LocateOutcome::SlashMissing);
        }
        Err(Errno::NOENT) if sought.programs.is_some_and(|it| it.ask_for(sought.relative)) => {
            // An application may go back to a file on the way, and run that: there is none in a folder.
            let (folder, _) = sought.relative.rsplit_once('/').unwrap_or_default();
            root.open_below(folder, FOLDER, reach)?;
            let path = sought.relative.to_owned();
            return Ok(LocateOutcome::Program { path, path_info: String::new() });
        }
        opened => opened?,
    };
    match kind_of(&fd)? {
        FileKind::Regular(identity) => {
            of_nature(root, sought, sought.relative, fd, identity, reach)
        }
        FileKind::Directory => Ok(LocateOutcome::SlashMissing),
        FileKind::Other => Ok(LocateOutcome::Refused(404)),
    }
}

fn locate_directory(root: &Root, sought: Sought<'_>, reach: Reach) -> Result<LocateOutcome, Errno> {
    for name in sought.index {
        let path = format!("{}{name}", sought.relative);
        let elsewhere = || sought.others.and_then(|others| others.led_to(&path, sought.relative));
        match root.open_below(&path, sought.flags_of(&path, reach), reach) {
            Ok(fd) => {
                if let FileKind::Regular(identity) = kind_of(&fd)? {
                    // Its route may ask for more.
                    if let Some(path) = elsewhere() {
                        return Ok(LocateOutcome::Elsewhere(path));
                    }
                    return match sought.is_denied(&path) {
                        true => Ok(LocateOutcome::Refused(403)),
                        false => of_nature(root, sought, &path, fd, identity, reach),
                    };
                }
            }
            Err(Errno::NOENT) => {}
            Err(Errno::ACCESS) if let Some(path) = elsewhere() => {
                return Ok(LocateOutcome::Elsewhere(path));
            }
            Err(error) => return Err(error),
        }
    }
    root.open_below(sought.relative, FOLDER, reach)?;
    Ok(LocateOutcome::Directory)
}

/// The best sibling the client takes, or the file itself. A sibling older than its file was made
/// from another content and is passed over.
fn best_variant(
    root: &Root,
    sought: Sought<'_>,
    path: &str,
    fd: OwnedFd,
    identity: FileStamp,
    reach: Reach,
) -> Result<LocateOutcome, Errno> {
    for coding in sought.preference.codings() {
        let sibling = format!("{path}{}", coding.suffix());
        if sought.is_denied(&sibling) {
            continue;
        }
        match root.open_below(&sibling, sought.flags(reach), reach) {
            Ok(fd) => {
                if let FileKind::Regular(sibling) = kind_of(&fd)?
                    && !is_older(&sibling, &identity)
                {
                    return Ok(found(root, fd, sibling, Some(coding), sought, path, reach));
                }
            }
            Err(error @ (Errno::AGAIN | Errno::XDEV)) if reach != Reach::Anywhere => {
                return Err(error);
            }
            // A sibling that is missing or may not be read never hides the file itself.
            Err(_) => {}
        }
    }
    Ok(found(root, fd, identity, None, sought, path, reach))
}

fn found(
    root: &Root,
    fd: OwnedFd,
    identity: FileStamp,
    coding: Option<Coding>,
    sought: Sought<'_>,
    path: &str,
    reach: Reach,
) -> LocateOutcome {
    let file_system = match reach {
        // A file that was found without leaving it lies on the root's own mount.
        Reach::Cached | Reach::Device => root.file_system(),
        Reach::Anywhere => FileSystem::of(fd.as_fd()).unwrap_or_default(),
    };
    let facts = Facts { identity, coding, path: path.into() };
    let is_readable = sought.flags(reach) == READING;
    let meeting = Meeting::default();
    LocateOutcome::File(Found {
        fd,
        file_system,
        facts,
        is_readable,
        meeting,
        is_kept: true,
        by_sendfile: false,
        deadline: None,
    })
}

/// Returns the status for an opening that failed.
#[must_use]
pub fn status_of(error: Errno) -> u16 {
    match error {
        // ENXIO: a socket. EXDEV: a symlink that leads out of the root.
        Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::NAMETOOLONG | Errno::NXIO => 404,
        // ELOOP: a symlink that is not followed, or that leads in circles.
        Errno::ACCESS | Errno::PERM | Errno::LOOP => 403,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => 503,
        _ => 500,
    }
}

/// More folders than this, named as programs are, are in no path that anybody means.
const PROGRAM_FOLDERS_MAX: usize = 16;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// `NONBLOCK`: opening a FIFO without a writer must not wait; `NOCTTY`: nor make a terminal ours.
const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

#[cfg(test)]
mod tests;
