//! Finding and reading files without stalling the worker: what the kernel has at hand is taken at
//! once, everything else is fetched on one of a few threads that may wait for a disk.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kettle_kernel::file_system::FileSystem;
use kettle_kernel::transfer::{self, Residency, Wait, read_at};
use rustix::io::Errno;

use super::entry::Content;
use super::file_route::FileRoute;
use super::listing::{Listing, View};
use super::locate::{self, Facts, Found, Identity, Located, Sought, identity_of};
use super::precompressed::CodingPreference;
use super::root::{Reach, Root, SWAPS_MAX};
use super::{OpenFile, compressed};
use crate::disk::{Abandoned, Device, Disks};
use crate::error_page::Page;

/// Finds and reads files for one worker.
#[derive(Debug)]
pub struct Finder {
    disks: Disks,
    /// What error pages lie on, wherever that is.
    pages: Arc<Device>,
    /// Threads that compress; no device at all.
    compressing: Arc<Device>,
    /// Larger files stay on disk; `None` leaves all of them there.
    memory_file_bytes_max: Option<u64>,
    /// How long a root is taken for what its path names.
    revalidate: Duration,
    /// The roots as they were last seen, by the number of their route.
    roots: RefCell<HashMap<u64, SeenRoot>>,
}

/// A root, and when it was last known to be what its path names.
#[derive(Clone, Debug)]
struct SeenRoot {
    root: Arc<Root>,
    looked: Duration,
}

/// What was found, and below which root.
#[derive(Debug)]
pub struct Sighting<T> {
    /// What was found.
    pub found: T,
    /// Below what.
    pub root: Arc<Root>,
    /// When that was last known to be what its path names.
    pub looked: Duration,
    /// Whether the root is another one than before: what is remembered of that is out of date.
    pub is_root_new: bool,
}

impl Finder {
    /// A finder that reads files up to this size into memory, and looks at a root's path again
    /// after this time.
    #[must_use]
    pub fn new(disks: Disks, memory_file_bytes_max: Option<u64>, revalidate: Duration) -> Self {
        let pages = Arc::new(Device::new(FileSystem::default()));
        let compressing = Arc::new(Device::new(FileSystem::default()));
        let roots = RefCell::default();
        Self { disks, pages, compressing, memory_file_bytes_max, revalidate, roots }
    }

    /// What the files lie on.
    #[must_use]
    pub fn disks(&self) -> &Disks {
        &self.disks
    }

    /// Files up to this size are read into memory.
    #[must_use]
    pub fn memory_file_bytes_max(&self) -> Option<u64> {
        self.memory_file_bytes_max
    }

    /// Looks for a file by its path below the route's prefix. `now` is on the monotonic clock.
    ///
    /// # Errors
    /// The kernel's, if there is no root.
    pub async fn find(
        &self,
        route: &Arc<FileRoute>,
        relative: &str,
        preference: CodingPreference,
        now: Duration,
    ) -> Result<Sighting<Located>, Errno> {
        let known = self.known_root(route, now);
        let device = self.device_of(&known.root);
        let deadline = self.disks.deadline();
        let looking = |reach| {
            let (known, route) = (known.clone(), Arc::clone(route));
            let relative = relative.to_owned();
            move || look(&known, &route, &relative, preference, reach)
        };
        // Opening alone may wait for a remote file system, whatever the kernel remembers of its names.
        let mut seen = match device.is_remote() {
            true => Err(Errno::AGAIN),
            false => look(&known, route, relative, preference, Reach::Cached),
        };
        if matches!(seen, Ok((_, Located::WouldBlock)) | Err(Errno::AGAIN)) {
            let look = looking(Reach::Device);
            seen =
                self.disks.wait_until(&device, deadline, look).await.map_err(|_| Errno::AGAIN)?;
        }
        // What is mounted there may hang, and the root's device goes on being served.
        if let Ok((below, Located::Beyond(part))) = &seen {
            let device = self.disks.behind(below.root.device(), part);
            let look = looking(Reach::Anywhere);
            seen =
                self.disks.wait_until(&device, deadline, look).await.map_err(|_| Errno::AGAIN)?;
        }
        if let Ok((_, Located::File(found))) = &mut seen {
            found.deadline = Some(deadline);
        }
        self.sighting(route, &known, seen, now)
    }

    /// Lets go of a file that was found and is not needed.
    pub fn release(&self, found: Found) {
        self.device_holding(&found).close(found.fd, found.facts.identity.bytes);
    }

    /// Forgets which roots there were.
    pub fn forget_roots(&self) {
        self.roots.borrow_mut().clear();
    }

    /// The root as it was last seen, and whether that was within the period of revalidation.
    fn known_root(&self, route: &FileRoute, now: Duration) -> Known {
        match self.roots.borrow().get(&route.number) {
            Some(SeenRoot { root, looked }) => Known {
                root: Arc::clone(root),
                fresh_since: Some(*looked).filter(|looked| now < *looked + self.revalidate),
            },
            None => Known { root: Arc::clone(&route.root), fresh_since: None },
        }
    }

    /// Remembers the root something was seen below.
    fn sighting<T>(
        &self,
        route: &FileRoute,
        known: &Known,
        seen: Result<(Below, T), Errno>,
        now: Duration,
    ) -> Result<Sighting<T>, Errno> {
        route.note_root(seen.as_ref().map(|_| ()).map_err(|error| *error));
        let (below, found) = seen?;
        let looked = match (known.fresh_since, below.is_renewed) {
            (Some(looked), false) => looked,
            _ => now,
        };
        let is_root_new = !Arc::ptr_eq(&below.root, &known.root);
        let mut roots = self.roots.borrow_mut();
        // A look that took long must not undo a later one.
        if roots.get(&route.number).is_none_or(|seen| seen.looked <= looked) {
            roots.insert(route.number, SeenRoot { root: Arc::clone(&below.root), looked });
        }
        Ok(Sighting { found, root: below.root, looked, is_root_new })
    }

    /// Whether nobody has seen another root for this route meanwhile.
    #[must_use]
    pub fn is_current(&self, route: &FileRoute, root: &Arc<Root>) -> bool {
        self.roots.borrow().get(&route.number).is_some_and(|seen| Arc::ptr_eq(&seen.root, root))
    }

    /// Reads a small file into memory; a large one, and one that is just being changed, stays
    /// where it is, with its beginning at hand.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if what it lies on did not answer within the time for the whole answer.
    pub async fn content(&self, found: Found) -> Result<(Facts, Content), Errno> {
        let device = self.device_holding(&found);
        let deadline = found.deadline.unwrap_or_else(|| self.disks.deadline());
        let Found { fd, facts, .. } = found;
        let identity = facts.identity;
        let file = Arc::new(OpenFile::new(fd, identity.bytes, Arc::clone(&device)));
        let shared = Arc::clone(&file);
        if self.memory_file_bytes_max.is_none_or(|max| identity.bytes > max) {
            if is_out_of_reach(&file) {
                // Nobody is told 200 by a disk that hangs.
                let touch = move || transfer::touch(shared.file(), 0, 1);
                let touched = self.disks.wait_until(&device, deadline, touch).await;
                touched.map_err(|_| Errno::AGAIN)?;
            }
            return Ok((facts, Content::File(file)));
        }
        let mut bytes = None;
        if identity.bytes <= READ_AT_ONCE_BYTES_MAX && !device.is_remote() {
            bytes = read_whole(&file, identity, Wait::Never).ok();
        }
        if bytes.is_none() {
            let read = move || read_whole(&shared, identity, Wait::Allowed);
            let read = self.disks.wait_until(&device, deadline, read).await;
            bytes = read.map_err(|_| Errno::AGAIN)?.ok();
        }
        Ok((facts, bytes.map_or(Content::File(file), Content::Memory)))
    }

    /// A small text file as the client prefers it, where no sibling has it so; and whether that is for good: where there
    /// were too many to compress, another request may find it otherwise.
    pub async fn compressed(
        &self,
        route: &FileRoute,
        preference: CodingPreference,
        mut facts: Facts,
        content: Content,
    ) -> (Facts, Content, bool) {
        let Some(coding) = compressed::coding_for(route, preference, &facts, &content) else {
            return (facts, content, true);
        };
        let Content::Memory(bytes) = &content else { return (facts, content, true) };
        let original = bytes.clone();
        let make = move || compressed::compress(coding, &original);
        match self.disks.wait_for(&self.compressing, make).await {
            Ok(Some(bytes)) => {
                facts.coding = Some(coding);
                (facts, Content::Memory(bytes), true)
            }
            Ok(None) => (facts, content, true),
            Err(_) => (facts, content, false),
        }
    }

    /// Reads a page of a folder by its path below the route's prefix, and writes it.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn list(
        &self,
        route: &Arc<FileRoute>,
        relative: &str,
        now: Duration,
        view: View,
        write: impl FnOnce(&Listing, &View) -> String + Clone + Send + 'static,
    ) -> Result<String, Errno> {
        let known = self.known_root(route, now);
        let deadline = self.disks.deadline();
        let reading = |reach| {
            let (known, relative) = (known.clone(), relative.to_owned());
            let (view, write) = (view.clone(), write.clone());
            move |abandoned: &Abandoned| {
                // Of a folder that is being removed only a part may have been there.
                let look = |root: &Root| Listing::read(root, &relative, &view, reach, abandoned);
                let (below, listing) = known.look_below(Wait::Allowed, look, |_| false)?;
                // Only a thread may look for that: on a mount that is dead this takes for ever.
                let is_beyond = reach == Reach::Device && matches!(listing, Err(Errno::XDEV));
                let beyond = is_beyond.then(|| below.root.crossing(&relative));
                Ok((below, Listed { page: listing.map(|it| write(&it, &view)), beyond }))
            }
        };
        let device = self.device_of(&known.root);
        let mut seen = self.disks.wait_in_turn(&device, deadline, reading(Reach::Device)).await;
        if let Ok(Ok((below, Listed { beyond: Some(part), .. }))) = &seen {
            let device = self.disks.behind(below.root.device(), part);
            seen = self.disks.wait_in_turn(&device, deadline, reading(Reach::Anywhere)).await;
        }
        self.sighting(route, &known, seen.map_err(|_| Errno::AGAIN)?, now)?.found.page
    }

    /// Reads an error page.
    ///
    /// # Errors
    /// If the file cannot be read or is too large.
    pub async fn page(&self, path: PathBuf, content_type: String) -> io::Result<Page> {
        let read = move || Page::read(&path, content_type);
        let page = self.disks.wait_for(&self.pages, read).await;
        page.map_err(io::Error::other).flatten()
    }

    fn device_of(&self, root: &Root) -> Arc<Device> {
        self.disks.device(root.device(), root.file_system())
    }

    fn device_holding(&self, found: &Found) -> Arc<Device> {
        self.disks.device(found.facts.identity.device, found.file_system)
    }
}

fn look(
    known: &Known,
    route: &FileRoute,
    relative: &str,
    preference: CodingPreference,
    reach: Reach,
) -> Result<(Below, Located), Errno> {
    let preference = preference.among(&route.codings);
    let sought =
        Sought { relative, index: &route.index, foreign: &route.foreign_index, preference };
    let is_sure = |located: &Located| {
        matches!(located, Located::File(_) | Located::WouldBlock | Located::Beyond(_))
    };
    known.look_below(reach.wait(), |root| locate::locate(root, sought, reach), is_sure)
}

/// Whether the beginning of a file has to be waited for. Those who say nothing about that are read with care later.
fn is_out_of_reach(file: &OpenFile) -> bool {
    file.bytes() > 0
        && (file.device().is_remote() || transfer::residency(file.file(), 0, 1) == Residency::Cold)
}

/// A page of a folder, written.
struct Listed {
    page: Result<String, Errno>,
    /// The part of its path that leads away from the root's device, if it was not read for that.
    beyond: Option<String>,
}

/// A root that may be out of date.
#[derive(Clone)]
struct Known {
    root: Arc<Root>,
    /// When it was last looked at, if that was within the period of revalidation.
    fresh_since: Option<Duration>,
}

/// The root that was looked below.
struct Below {
    root: Arc<Root>,
    /// Whether its path was looked at.
    is_renewed: bool,
}

impl Known {
    /// Looks for something below the root, and looks at the root's path before where that is due.
    ///
    /// Unless `is_sure` of what was found, the path must still name the same root afterwards: what
    /// is missing in a release that was just exchanged for another may be in that one.
    fn look_below<T>(
        &self,
        wait: Wait,
        look: impl Fn(&Root) -> T,
        is_sure: impl Fn(&T) -> bool,
    ) -> Result<(Below, T), Errno> {
        let mut is_renewed = self.fresh_since.is_none();
        let mut root = if is_renewed { self.root.renewed(wait)? } else { Arc::clone(&self.root) };
        let mut swaps_left = SWAPS_MAX;
        loop {
            let found = look(&root);
            if is_sure(&found) {
                return Ok((Below { root, is_renewed }, found));
            }
            let renewed = root.renewed(wait)?;
            is_renewed = true;
            swaps_left -= 1;
            if Arc::ptr_eq(&root, &renewed) || swaps_left == 0 {
                return Ok((Below { root, is_renewed }, found));
            }
            root = renewed;
        }
    }
}

/// All bytes of a file that does not change meanwhile.
fn read_whole(file: &OpenFile, identity: Identity, wait: Wait) -> io::Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(identity.bytes).unwrap_or(usize::MAX)];
    let mut filled = 0;
    while filled < bytes.len() {
        let mut rest = [IoSliceMut::new(&mut bytes[filled..])];
        match read_at(file.file(), &mut rest, filled as u64, wait)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    if identity_of(file.file()) != Some(identity) {
        return Err(io::ErrorKind::StaleNetworkFileHandle.into());
    }
    Ok(bytes.into())
}

/// Copying more than this at once would keep other connections waiting.
const READ_AT_ONCE_BYTES_MAX: u64 = 256 * 1024;

#[cfg(test)]
mod tests;
