//! Bodies that are stored before they are passed on: up to 64 KiB in memory, and then in a file without a name, which the disk's
//! threads write and read. One spool is the process's, with a bound on what all bodies take together.

mod flow;
mod share;

use std::fmt;
use std::fs::{DirBuilder, File};
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use kettle_kernel::file_system::FileSystem;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use crate::client_address::ClientHost;
use crate::clock::OnceAMinute;
use crate::disk::{Device, Disks, WaitError};
use crate::metrics::{MetricWriter, NamedCounters};

pub use flow::{FlowNext, SpoolFlow};
use share::{Share, Shares};

/// The place of stored bodies, and the bytes they take together.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    folder: OnceLock<Folder>,
    bytes_max: AtomicU64,
    memory_bytes_max: usize,
    memory_bytes: AtomicUsize,
    shares: Mutex<Shares>,
    files_max: usize,
    files_made: AtomicU64,
    warning: OnceAMinute,
}

#[derive(Debug)]
struct Folder {
    directory: File,
    device: u64,
    file_system: FileSystem,
}

/// A body that is stored piece by piece, and then given out piece by piece. All that it takes is free when it is dropped.
pub struct Spooled {
    held: Held,
    disks: Disks,
    device: Arc<Device>,
    file: Option<Arc<File>>,
    /// The bytes in the file, and how much of that was given out.
    file_bytes: u64,
    read_bytes: u64,
    /// The bytes behind that, and whether they were given out though they stay.
    memory: Vec<u8>,
    stays: bool,
    is_memory_read: bool,
    /// The length of the piece that was given out last, as far as it counts.
    lent_bytes: usize,
    reading: Option<Reading>,
}

/// A piece on its way from the disk.
type Reading = Pin<Box<dyn Future<Output = Result<Vec<u8>, SpoolError>>>>;

/// The share of one body of the spool's bounds.
struct Held {
    spool: Arc<Spool>,
    client: ClientHost,
    bytes: u64,
    memory_bytes: usize,
    has_file: bool,
}

/// Why a body cannot be stored.
#[derive(Debug)]
pub enum SpoolError {
    /// Others take all the room.
    Full,
    /// The disk was not waited for any longer.
    Unanswered(WaitError),
    /// The error of the disk.
    Disk(io::Error),
}

impl SpoolError {
    /// One word for the log.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Full => "spool_full",
            Self::Unanswered(_) | Self::Disk(_) => "spool_failed",
        }
    }
}

impl fmt::Display for SpoolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => formatter.write_str("what is stored already leaves no room"),
            Self::Unanswered(why) => write!(formatter, "{why}"),
            Self::Disk(error) => write!(formatter, "{error}"),
        }
    }
}

impl std::error::Error for SpoolError {}

impl Spool {
    /// A spool below this folder, for at most so many bytes, so many of them in memory, and so many bodies that are not in memory
    /// alone.
    #[must_use]
    pub fn new(
        directory: &Path,
        bytes_max: u64,
        memory_bytes_max: usize,
        files_max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            directory: directory.to_owned(),
            folder: OnceLock::new(),
            bytes_max: bytes_max.into(),
            memory_bytes_max,
            memory_bytes: AtomicUsize::new(0),
            shares: Mutex::default(),
            files_max,
            files_made: AtomicU64::new(0),
            warning: OnceAMinute::default(),
        })
    }

    /// Opens its folder, which is made if it is not there, and tries a file. Before the process gives up what it does not need; may
    /// wait for the disk.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(&self) -> io::Result<()> {
        self.open_file().map(drop)
    }

    /// The longest body that is ever stored: it is one client's, and others have the other half.
    #[must_use]
    pub fn body_bytes_max(&self) -> u64 {
        self.bytes_max() / 2
    }

    /// The most that all bodies may take.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Changes that, for what comes from now on.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of all bodies now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shares().all.bytes
    }

    /// Returns the number of them in files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.shares().all.files
    }

    /// Says why a body could not be stored or read back, if that has not just been said: clients can make it so as often as they like.
    pub fn failed(&self, error: &SpoolError) {
        if self.warning.is_due(Instant::now()) {
            let directory = self.directory.display();
            tracing::warn!(%error, %directory, "a body could not be stored, or read back");
        }
    }

    /// Begins to store a body of this client.
    #[must_use]
    pub fn begin(self: &Arc<Self>, client: ClientHost, disks: &Disks) -> Spooled {
        let spool = Arc::clone(self);
        let device = self.device(disks);
        let held = Held { spool, client, bytes: 0, memory_bytes: 0, has_file: false };
        Spooled {
            held,
            disks: disks.again(),
            device,
            file: None,
            file_bytes: 0,
            read_bytes: 0,
            memory: Vec::new(),
            stays: false,
            is_memory_read: false,
            lent_bytes: 0,
            reading: None,
        }
    }

    fn device(&self, disks: &Disks) -> Arc<Device> {
        match self.folder.get() {
            Some(folder) => disks.device(folder.device, folder.file_system),
            None => disks.behind(0, "spool"),
        }
    }

    /// Locked for a count, and across no call.
    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self) -> io::Result<&Folder> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let directory = File::open(&self.directory)?;
        let device = fstat(&directory)?.st_dev;
        let file_system = FileSystem::of(directory.as_fd()).unwrap_or_default();
        Ok(self.folder.get_or_init(|| Folder { directory, device, file_system }))
    }

    /// A file that no other program finds, and that is gone with this process.
    fn open_file(&self) -> io::Result<File> {
        let directory = &self.folder()?.directory;
        let unnamed = FILE_FLAGS | OFlags::TMPFILE;
        match retry_on_intr(|| openat(directory, ".", unnamed, FILE_MODE)) {
            Ok(file) => return Ok(file.into()),
            // Some file systems know none, each with another word for it.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        self.open_named(directory)
    }

    /// The same where each file begins with a name.
    fn open_named(&self, directory: &File) -> io::Result<File> {
        let number = self.files_made.fetch_add(1, Ordering::Relaxed);
        let name = format!("body-{}-{number}", process::id());
        let alone = FILE_FLAGS | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = match retry_on_intr(|| openat(directory, &name, alone, FILE_MODE)) {
            // A file that a process before this one left when it was killed.
            Err(Errno::EXIST) => {
                unlinkat(directory, &name, AtFlags::empty())?;
                retry_on_intr(|| openat(directory, &name, alone, FILE_MODE))?
            }
            file => file?,
        };
        unlinkat(directory, &name, AtFlags::empty())?;
        Ok(file.into())
    }
}

impl Spooled {
    /// Stores some more, and waits for the disk where that takes it.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub async fn push(&mut self, data: &[u8]) -> Result<(), SpoolError> {
        self.held.take_bytes(data.len() as u64)?;
        let mut data = data;
        while !data.is_empty() {
            let room_bytes = MEMORY_BYTES_MAX - self.memory.len();
            let (mut piece, mut rest) = data.split_at(data.len().min(room_bytes));
            if !piece.is_empty() && self.held.take_memory(piece.len()) {
                self.keep(piece);
            } else {
                // Without room in memory each piece goes to the disk by itself, and a little at a time.
                (piece, rest) = data.split_at(piece.len().min(PIECE_BYTES_MIN));
                self.write_out(piece).await?;
            }
            data = rest;
        }
        Ok(())
    }

    fn keep(&mut self, piece: &[u8]) {
        let bytes = (self.memory.len() + piece.len()).next_multiple_of(PIECE_BYTES_MIN);
        // A vector that grows by itself may take twice what is counted.
        self.memory.reserve_exact(bytes - self.memory.len());
        self.memory.extend_from_slice(piece);
    }

    async fn write_out(&mut self, behind: &[u8]) -> Result<(), SpoolError> {
        self.held.take_file()?;
        let mut bytes = std::mem::take(&mut self.memory);
        bytes.extend_from_slice(behind);
        let file = self.file.clone();
        let spool = Arc::clone(&self.held.spool);
        let at = self.file_bytes;
        let written_bytes = bytes.len() as u64;
        let write = move || {
            let file = match file {
                Some(file) => file,
                None => Arc::new(spool.open_file()?),
            };
            file.write_all_at(&bytes, at)?;
            Ok(file)
        };
        let written = self.disks.wait_for(&self.device, write).await;
        self.file = Some(written.map_err(SpoolError::Unanswered)?.map_err(SpoolError::Disk)?);
        self.file_bytes += written_bytes;
        self.held.release_memory(self.held.memory_bytes);
        Ok(())
    }

    /// Returns the spool in which it is stored.
    #[must_use]
    pub fn spool(&self) -> &Spool {
        &self.held.spool
    }

    /// Says whether it is to be given out more than once.
    pub fn stays(&mut self, stays: bool) {
        self.stays = stays;
    }

    /// Gives it out from its beginning again, if it stays.
    pub fn begin_again(&mut self) {
        self.reading = None;
        (self.read_bytes, self.is_memory_read) = (0, false);
    }

    /// The length of the body.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held.bytes
    }

    /// True once all of it was given out.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.read_bytes == self.file_bytes && (self.memory.is_empty() || self.is_memory_read)
    }

    /// The next piece of it, nothing at its end. The one before counts for nothing any more.
    ///
    /// # Errors
    /// [`SpoolError`].
    pub async fn next(&mut self) -> Result<Vec<u8>, SpoolError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next).
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<u8>, SpoolError>> {
        let left_bytes = self.file_bytes - self.read_bytes;
        let Some(file) = self.file.as_ref().filter(|_| left_bytes > 0) else {
            return Poll::Ready(Ok(
                match (self.stays, std::mem::replace(&mut self.is_memory_read, true)) {
                    (false, _) => std::mem::take(&mut self.memory),
                    (true, false) => self.memory.clone(),
                    (true, true) => Vec::new(),
                },
            ));
        };
        let reading = self.reading.get_or_insert_with(|| {
            let file = Arc::clone(file);
            let device = Arc::clone(&self.device);
            let at = self.read_bytes;
            let mut bytes = usize::try_from(left_bytes).unwrap_or(usize::MAX).min(READ_BYTES_MAX);
            self.held.release_memory(std::mem::take(&mut self.lent_bytes));
            // A server that takes nothing has the piece stay as long as it likes.
            if self.held.take_memory(bytes) {
                self.lent_bytes = bytes;
            } else {
                bytes = bytes.min(PIECE_BYTES_MIN);
            }
            let disks = self.disks.again();
            let read = move || {
                let mut piece = vec![0; bytes];
                file.read_exact_at(&mut piece, at).map(|()| piece)
            };
            Box::pin(async move {
                let read = disks.wait_for(&device, read).await;
                read.map_err(SpoolError::Unanswered)?.map_err(SpoolError::Disk)
            })
        });
        let piece = ready!(reading.as_mut().poll(context));
        self.reading = None;
        self.read_bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece)
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        self.reading = None;
        if let Some(file) = self.file.take() {
            // To give back its blocks takes the disk, which may not answer.
            self.device.close(file, u64::MAX);
        }
    }
}

impl Held {
    fn take_bytes(&mut self, bytes: u64) -> Result<(), SpoolError> {
        self.take(Share { bytes, files: 0 })?;
        self.bytes += bytes;
        Ok(())
    }

    fn take(&self, more: Share) -> Result<(), SpoolError> {
        let max = Share { bytes: self.spool.bytes_max(), files: self.spool.files_max };
        let is_taken = self.spool.shares().take(self.client, more, max);
        is_taken.then_some(()).ok_or(SpoolError::Full)
    }

    fn take_memory(&mut self, bytes: usize) -> bool {
        let bytes_max = self.spool.memory_bytes_max;
        let more = |used: usize| Some(used + bytes).filter(|all| *all <= bytes_max);
        let used = &self.spool.memory_bytes;
        let is_taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if is_taken {
            self.memory_bytes += bytes;
        }
        is_taken
    }

    fn release_memory(&mut self, bytes: usize) {
        self.memory_bytes -= bytes;
        self.spool.memory_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn take_file(&mut self) -> Result<(), SpoolError> {
        if !self.has_file {
            self.take(Share { bytes: 0, files: 1 })?;
        }
        self.has_file = true;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release_memory(self.memory_bytes);
        let held = Share { bytes: self.bytes, files: self.has_file.into() };
        self.spool.shares().give_back(self.client, held);
    }
}

/// The stored bytes, and the bound of them.
impl NamedCounters for Spool {
    fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let Share { bytes, files } = self.shares().all;
        writer.gauge("spool_bytes", "What bodies take that are stored", bytes)?;
        let help = "What bodies that are stored may take, all together";
        writer.gauge("spool_bytes_max", help, self.bytes_max())?;
        let help = "Bodies that are stored in files";
        writer.gauge("spool_files", help, files as u64)
    }
}

const FILE_FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);

/// Nobody else's to read.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The bytes that one body keeps in memory, beside the file or in its place.
const MEMORY_BYTES_MAX: usize = 64 * 1_024;

/// The bytes that are read of a file at a time.
const READ_BYTES_MAX: usize = 64 * 1_024;

/// The same, and what is written, where all bodies together have no room left in memory: it counts for nothing, and each file has one.
const PIECE_BYTES_MIN: usize = 4 * 1_024;

#[cfg(test)]
mod tests;
