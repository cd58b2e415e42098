//! Finding and reading files without stalling the worker: what the kernel has at hand is taken at
//! once, everything else is fetched on one of a few threads that may wait for a disk.

mod whole;

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kettle_config::{Coding, Limits};
use kettle_exchange::error_page::ErrorPage;
use kettle_kernel::file_stamp::FileStamp;
use kettle_kernel::file_system::FileSystem;
use kettle_kernel::keeper;
use kettle_kernel::transfer::{self, Residency, Wait, read_at};
use kettle_runtime::disk::{Abandoned, Device, DiskDeadline, Disks, WaitError};
use kettle_runtime::encoder::{EncoderPermits, compress};
use rustix::io::Errno;

use super::current_roots::{Below, CurrentRoots, Known, RootLookup};
use super::entry::{Content, Mark};
use super::file_route::FileRoute;
use super::listing::{Listing, View};
use super::locate::{self, Facts, Found, LocateOutcome, Purpose, Sought};
use super::memory::{FileMemory, PASSING_BYTES_MAX};
use super::precompressed::CodingPreference;
use super::root::{Reach, Root, SWAPS_MAX};
use super::{OpenFile, compressed};
use whole::{hash, read_and_hash, read_whole};

/// Finds and reads files for one worker.
#[derive(Debug)]
pub struct Finder {
    disks: Disks,
    /// The device of error pages of which that is not known yet.
    pages: Arc<Device>,
    /// Threads that compress; no device at all.
    compressing: Arc<Device>,
    /// The number of all workers' that may be at work.
    encoders: EncoderPermits,
    /// The compressions under way.
    compressed_now: RefCell<HashSet<Compression>>,
    /// For small files; `None` leaves all of them on disk.
    memory: Option<FileMemory>,
    /// Files that may be open, those included that are kept for later.
    open_files_max: usize,
    /// The folders that the roots' paths were last seen to name.
    roots: CurrentRoots,
}

impl Finder {
    /// A finder within these limits.
    pub fn new(limits: &Limits, encoders: EncoderPermits) -> Self {
        Self {
            disks: Disks::new(limits.disk_timeout),
            pages: Arc::new(Device::new(FileSystem::default())),
            compressing: Arc::new(Device::new(FileSystem::default())),
            encoders,
            compressed_now: RefCell::default(),
            memory: FileMemory::new(limits.hot_file_bytes, limits.hot_memory_bytes as u64),
            open_files_max: limits.open_files.saturating_add(limits.files_in_use()),
            roots: CurrentRoots::new(limits.revalidate),
        }
    }

    /// Returns the disks on which the files lie.
    pub fn disks(&self) -> &Disks {
        &self.disks
    }

    /// The permits of encoders.
    pub fn encoders(&self) -> &EncoderPermits {
        &self.encoders
    }

    /// Returns the memory into which small files are read.
    pub fn memory(&self) -> Option<&FileMemory> {
        self.memory.as_ref()
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
        purpose: Purpose,
        (now, deadline): (Duration, DiskDeadline),
    ) -> Result<RootLookup<LocateOutcome>, Errno> {
        let mut looks_left = SWAPS_MAX;
        loop {
            let known = self.roots.known(route, now);
            let seen = self.look(route, relative, (preference, purpose), &known, deadline).await;
            route.note_root(seen.as_ref().map(|_| ()).map_err(|error| *error));
            let (below, found) = seen?;
            looks_left -= 1;
            if looks_left > 0 && self.roots.is_overtaken(route, &known, &below) {
                if let LocateOutcome::File(found) = found {
                    self.release(found);
                }
                continue;
            }
            return Ok(self.roots.remember(route, &known, below, found, now));
        }
    }

    /// Looks for a file as far as that may be, each part by a thread that may wait for it.
    async fn look(
        &self,
        route: &Arc<FileRoute>,
        relative: &str,
        sought: (CodingPreference, Purpose),
        known: &Known,
        deadline: DiskDeadline,
    ) -> Result<(Below, LocateOutcome), Errno> {
        let device = self.device_of(&known.root);
        let looking = |reach| {
            let known = known.clone();
            let route = Arc::clone(route);
            let relative = relative.to_owned();
            move || look(&known, &route, &relative, sought, reach)
        };
        // Opening alone may wait for a remote file system, whatever the kernel remembers of its names.
        let mut seen = match device.is_remote() {
            true => Err(Errno::AGAIN),
            false => look(known, route, relative, sought, Reach::Cached),
        };
        if matches!(seen, Ok((_, LocateOutcome::WouldBlock)) | Err(Errno::AGAIN)) {
            let look = looking(Reach::Device);
            seen =
                self.disks.wait_until(&device, deadline, look).await.map_err(|_| Errno::AGAIN)?;
        }
        // A mount there may hang, and the root's device goes on being served.
        if let Ok((below, LocateOutcome::Beyond(part))) = &seen {
            let device = self.disks.behind(below.root.device(), part);
            let look = looking(Reach::Anywhere);
            seen =
                self.disks.wait_until(&device, deadline, look).await.map_err(|_| Errno::AGAIN)?;
        }
        if let Ok((_, LocateOutcome::File(found))) = &mut seen {
            found.deadline = Some(deadline);
        }
        seen
    }

    /// Lets go of a file that was found and is not needed.
    pub fn release(&self, found: Found) {
        self.device_holding(&found).close(found.fd, found.facts.identity.bytes);
    }

    /// Forgets which roots there were.
    pub fn forget_roots(&self) {
        self.roots.forget();
    }

    /// True if nobody has seen another root for this route meanwhile.
    pub fn is_current(&self, route: &FileRoute, root: &Arc<Root>) -> bool {
        self.roots.is_current(route, root)
    }

    /// Reads a small file into memory; a large one, and one that is just being changed, stays
    /// where it is, with its beginning at hand.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if what it lies on did not answer within the time for the whole answer; [`Errno::MFILE`] if too many are
    /// open; what the kernel says of reading it.
    pub async fn content(&self, found: Found) -> Result<(Facts, Content, Mark), Errno> {
        let device = self.device_holding(&found);
        let deadline = found.deadline.unwrap_or_else(|| self.disks.deadline());
        let Found { fd, facts, is_kept, by_sendfile, meeting, .. } = found;
        let identity = facts.identity;
        let file = Arc::new(OpenFile::new(fd, identity.bytes, Arc::clone(&device)));
        let memory = self.memory.as_ref().filter(|memory| memory.is_for(identity.bytes));
        let known = memory.and(meeting.hash).map(Mark::Hash);
        let is_passing = !is_kept && identity.bytes > PASSING_BYTES_MAX;
        let is_sent_from_disk = known.is_some() && (is_passing || by_sendfile);
        let memory = memory.filter(|_| !is_sent_from_disk);
        let room = |memory: &FileMemory| memory.room(identity.bytes).filter(|_| !by_sendfile);
        let (bytes, mark) = match memory.map(room) {
            Some(Some(room)) => {
                let read = if known.is_some() { read_whole } else { read_and_hash };
                match self.read(&file, identity, deadline, room, read).await? {
                    Some(((bytes, mark), room)) => {
                        (Some(room.filled(bytes)), known.unwrap_or(mark))
                    }
                    None => (None, Mark::Nothing),
                }
            }
            // A file for which there is no room has the same mark.
            Some(None) if known.is_none() => {
                let read = self.read(&file, identity, deadline, (), hash).await?;
                (None, read.map_or(Mark::Nothing, |(mark, ())| mark))
            }
            _ if is_out_of_reach(&file) => {
                // Nobody is told 200 by a disk that hangs or fails.
                let shared = Arc::clone(&file);
                let read = move || {
                    let mut byte = [0];
                    read_at(shared.file(), &mut [IoSliceMut::new(&mut byte)], 0, Wait::Allowed)
                };
                let read = self.disks.wait_until(&device, deadline, read).await;
                read.map_err(|_| Errno::AGAIN)?.map_err(|error| errno_of(&error))?;
                (None, known.unwrap_or(Mark::Times))
            }
            _ => (None, known.unwrap_or(Mark::Times)),
        };
        if bytes.is_none() && self.disks.open_files() > self.open_files_max {
            return Err(Errno::MFILE);
        }
        Ok((facts, bytes.map_or(Content::File(file), Content::Memory), mark))
    }

    /// True if a file that was found is small enough for memory, and does not have to be waited for.
    pub fn is_at_hand(&self, found: &Found) -> bool {
        let is_for = |memory: &FileMemory| memory.is_for(found.facts.identity.bytes);
        self.memory.as_ref().is_some_and(is_for) && !self.device_holding(found).is_remote()
    }

    /// True if a file that was left where it is would be read into memory now: there was no room, or it was being changed.
    pub fn has_room_for(&self, content: &Content) -> bool {
        match content {
            Content::Memory(_) => false,
            Content::File(file) => {
                self.memory.as_ref().is_some_and(|memory| memory.room(file.bytes()).is_some())
            }
        }
    }

    /// Returns the content of a small file, at once if no disk is waited for; none if it is just being changed. Comes back with
    /// `kept`, which lasts as long as the reading does, whoever waits for it.
    async fn read<T: Send + 'static, K: Send + 'static>(
        &self,
        file: &Arc<OpenFile>,
        identity: FileStamp,
        deadline: DiskDeadline,
        kept: K,
        read: fn(&OpenFile, FileStamp, Wait) -> io::Result<T>,
    ) -> Result<Option<(T, K)>, Errno> {
        let device = file.device();
        if identity.bytes <= READ_AT_ONCE_BYTES_MAX
            && !device.is_remote()
            && let Ok(found) = read(file, identity, Wait::Never)
        {
            return Ok(Some((found, kept)));
        }
        let shared = Arc::clone(file);
        let read = move || read(&shared, identity, Wait::Allowed).map(|found| (found, kept));
        match self.disks.wait_until(device, deadline, read).await.map_err(|_| Errno::AGAIN)? {
            Ok(found) => Ok(Some(found)),
            // It was read, and is not what it was found to be.
            Err(error) if error.raw_os_error().is_none() => Ok(None),
            Err(error) => Err(errno_of(&error)),
        }
    }

    /// A small text file as the client prefers it, where no sibling has it so; and whether that is for good: where there
    /// were too many to compress, or it is being compressed for another request, one that comes later may find it otherwise.
    pub async fn compressed(
        &self,
        route: &FileRoute,
        preference: CodingPreference,
        mut facts: Facts,
        content: Content,
        deadline: Option<DiskDeadline>,
    ) -> (Facts, Content, bool) {
        let Some(coding) = compressed::coding_for(route, preference, &facts, &content) else {
            return (facts, content, true);
        };
        let Content::Memory(original) = &content else { return (facts, content, true) };
        let room = self.memory.as_ref().and_then(|memory| memory.room(original.len() as u64));
        let under_way = UnderWay::begin(self, (route.number, facts.path.clone(), coding));
        let (Some(room), Some(_under_way)) = (room, under_way) else {
            return (facts, content, false);
        };
        let Some(permit) = self.encoders.take().await else { return (facts, content, false) };
        let original = original.clone();
        let make = move || {
            let made = compress(coding, &original).map(|bytes| room.filled(bytes));
            drop(permit);
            made
        };
        let deadline = deadline.unwrap_or_else(|| self.disks.deadline());
        match self.disks.wait_until(&self.compressing, deadline, make).await {
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
    /// The kernel's, if there is no root; what is found may be its refusal of the folder.
    pub async fn list(
        &self,
        route: &Arc<FileRoute>,
        relative: &str,
        now: Duration,
        view: View,
        write: impl FnOnce(&Listing, &View) -> String + Clone + Send + 'static,
    ) -> Result<RootLookup<Result<String, Errno>>, Errno> {
        let known = self.roots.known(route, now);
        let deadline = self.disks.deadline();
        let reading = |reach| {
            let known = known.clone();
            let relative = relative.to_owned();
            let route = Arc::clone(route);
            let view = view.clone();
            let write = write.clone();
            move |abandoned: &Abandoned| {
                // Of a folder that is being removed only a part may have been there.
                let is_denied =
                    |path: &str| route.denied.as_ref().is_some_and(|it| it.have_below(path));
                let look = |root: &Root| {
                    Listing::read(root, &relative, &view, is_denied, reach, abandoned)
                };
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
        let seen = seen.map_err(|_| Errno::AGAIN).flatten();
        route.note_root(seen.as_ref().map(|_| ()).map_err(|error| *error));
        let (below, listed) = seen?;
        Ok(self.roots.remember(route, &known, below, listed.page, now))
    }

    /// Reads an error page, which lies on this device as far as that is known, and says on which it does. The deadline is that of
    /// the answer; beyond it there is a moment.
    ///
    /// # Errors
    /// If the file does not answer; what was read may be that it cannot be, or is too large.
    pub async fn page(
        &self,
        path: PathBuf,
        content_type: String,
        device: Option<Arc<Device>>,
        deadline: DiskDeadline,
    ) -> Result<io::Result<(ErrorPage, Arc<Device>)>, WaitError> {
        let device = device.unwrap_or_else(|| Arc::clone(&self.pages));
        let read = move || {
            let file = keeper::open(&path)?;
            let number = file.metadata()?.dev();
            let file_system = FileSystem::of(file.as_fd()).unwrap_or_default();
            Ok::<_, io::Error>((ErrorPage::read(file, content_type)?, number, file_system))
        };
        let deadline = self.disks.in_a_moment(deadline);
        let read = self.disks.wait_until(&device, deadline, read).await?;
        Ok(read.map(|(page, number, kind)| (page, self.disks.device(number, kind))))
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
    (preference, purpose): (CodingPreference, Purpose),
    reach: Reach,
) -> Result<(Below, LocateOutcome), Errno> {
    let preference = preference.among(&route.codings);
    let index = &*route.index;
    let others = route.others.as_ref();
    let denied = route.denied.as_ref();
    let programs = route.programs.as_ref();
    let sought = Sought { relative, index, others, denied, programs, preference, purpose };
    let is_sure = |located: &LocateOutcome| {
        matches!(
            located,
            LocateOutcome::File(_)
                | LocateOutcome::Elsewhere(_)
                | LocateOutcome::Program { .. }
                | LocateOutcome::WouldBlock
                | LocateOutcome::Beyond(_)
        )
    };
    known.look_below(reach.wait(), |root| locate::locate(root, sought, reach), is_sure)
}

/// A file that is being compressed: its route's number, its path below that, and how.
type Compression = (u64, Box<str>, Coding);

/// Says so for as long as the wait lasts.
struct UnderWay<'f>(&'f Finder, Compression);

impl<'f> UnderWay<'f> {
    fn begin(finder: &'f Finder, compression: Compression) -> Option<Self> {
        let is_first = finder.compressed_now.borrow_mut().insert(compression.clone());
        is_first.then(|| Self(finder, compression))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.compressed_now.borrow_mut().remove(&self.1);
    }
}

/// Tells whether the beginning of a file has to be waited for, or whatever is wrong with it. Those who say nothing about that
/// are read with care later.
fn is_out_of_reach(file: &OpenFile) -> bool {
    let residency = || transfer::residency(file.file(), 0, 1);
    file.bytes() > 0
        && (file.device().is_remote()
            || matches!(residency(), Residency::Cold | Residency::Unknown))
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// A page of a folder, written.
struct Listed {
    page: Result<String, Errno>,
    /// The part of its path that leads away from the root's device, if it was not read for that.
    beyond: Option<String>,
}

/// Copying more than this at once would keep other connections waiting.
const READ_AT_ONCE_BYTES_MAX: u64 = 256 * 1024;

#[cfg(test)]
mod tests;
