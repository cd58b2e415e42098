//! Waiting for disks: on threads of their own, few for each device, in a bounded queue and for a bounded time.
//!
//! Whatever may wait for a device goes through here, looks for files as much as their bytes. A device that never answers
//! ties up its own threads only.

mod later;
mod pace;
mod reservation;
mod thread;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kettle_kernel::file_system::FileSystem;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use later::Later;
use pace::ReadPace;

pub use later::UNWRITTEN_BYTES_MAX;
pub use pace::waited;
pub use reservation::Reservation;
pub use thread::on_thread;
#[cfg(test)]
use thread::runtime_without_threads;

/// The devices one worker has met, and how long it waits for them.
#[derive(Debug)]
pub struct Disks {
    timeout: Duration,
    devices: RefCell<HashMap<DeviceKey, Arc<Device>>>,
    open_files: Arc<AtomicUsize>,
    /// The bytes that may wait to be written to each of them.
    unwritten_bytes_max: Cell<usize>,
    /// Has no permits, and is closed when the time to drain is over.
    drain: Arc<Semaphore>,
}

/// The key of a device, as far as is known where it is.
#[derive(Debug, PartialEq, Eq, Hash)]
enum DeviceKey {
    /// Its number (`st_dev`).
    Number(u64),
    /// Behind this path below something on the device of this number. To ask for its own may wait for it.
    Behind(u64, Box<str>),
}

/// When a caller gives up. All waits for one response share one.
#[derive(Clone, Copy, Debug)]
pub struct DiskDeadline(Instant);

/// Tells a call that nobody waits for it any more.
#[derive(Clone, Debug, Default)]
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// An answer for which nobody waits from the start.
    pub fn already() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// True if it need not go on.
    #[must_use]
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says so when the wait ends, however it does.
struct Asking(Abandoned);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Why a wait for a device led to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The time was over.
    TimedOut,
    /// Too many wait for this device already.
    Crowded,
    /// The system has no thread for it.
    NoThread,
    /// The worker is ending.
    Ended,
}

impl fmt::Display for WaitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            WaitError::TimedOut => "the disk did not answer in time",
            WaitError::Crowded => "too many wait for this disk already",
            WaitError::NoThread => "no thread can be started to wait for the disk",
            WaitError::Ended => "the server is ending",
        })
    }
}

impl std::error::Error for WaitError {}

impl Disks {
    /// Disks that are waited for at most so long.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        let drain = Arc::new(Semaphore::new(0));
        let unwritten_bytes_max = Cell::new(UNWRITTEN_BYTES_MAX);
        let devices = RefCell::default();
        let open_files = Arc::default();
        Self { timeout, devices, open_files, unwritten_bytes_max, drain }
    }

    /// Others that are waited for as long, for a task that does not end with its answer.
    #[must_use]
    pub fn again(&self) -> Self {
        self.within(self.timeout)
    }

    /// Others of this worker, that are waited for at most so long.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        let drain = Arc::clone(&self.drain);
        let open_files = Arc::clone(&self.open_files);
        Self { drain, open_files, ..Self::new(timeout) }
    }

    /// Bounds what may wait to be written to each device that is met from now on.
    pub fn bound_unwritten(&self, bytes_max: usize) {
        self.unwritten_bytes_max.set(bytes_max);
    }

    /// Files that are open on these devices, those included that wait to be closed.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.open_files.load(Ordering::Relaxed)
    }

    /// From now on nobody waits for a disk.
    pub fn end_drain(&self) {
        self.drain.close();
    }

    /// The device of this number (`st_dev`), which files of this kind lie on.
    #[must_use]
    pub fn device(&self, number: u64, file_system: FileSystem) -> Arc<Device> {
        self.known(DeviceKey::Number(number), file_system)
    }

    /// Whatever a path leads to that leaves the device of this number: a stand-in for it, with threads of its own.
    #[must_use]
    pub fn behind(&self, number: u64, path: &str) -> Arc<Device> {
        self.known(DeviceKey::Behind(number, path.into()), FileSystem::default())
    }

    fn known(&self, key: DeviceKey, file_system: FileSystem) -> Arc<Device> {
        let mut devices = self.devices.borrow_mut();
        // Numbers are given out again after an unmount.
        if let Some(known) = devices.get(&key).filter(|it| it.file_system == file_system) {
            return Arc::clone(known);
        }
        if devices.len() >= DEVICES_MAX {
            devices.retain(|_, device| Arc::strong_count(device) > 1);
        }
        let open_files = Arc::clone(&self.open_files);
        let device = Arc::new(Device { open_files, ..Device::new(file_system) });
        device.later.set_bytes_max(self.unwritten_bytes_max.get());
        if devices.len() < DEVICES_MAX {
            devices.insert(key, Arc::clone(&device));
        }
        device
    }

    /// The deadline of an answer that is begun now.
    #[must_use]
    pub fn deadline(&self) -> DiskDeadline {
        let now = Instant::now();
        DiskDeadline(now.checked_add(self.timeout).unwrap_or(now + FAR_FUTURE))
    }

    /// The same deadline, or one a moment from now: for what an answer that was late is made from.
    #[must_use]
    pub fn in_a_moment(&self, deadline: DiskDeadline) -> DiskDeadline {
        DiskDeadline(deadline.0.max(Instant::now() + self.timeout.min(MOMENT)))
    }

    /// Runs a call that may wait for a device on a thread that may wait, within a time of its own.
    ///
    /// # Errors
    /// [`WaitError`]. A call that has begun goes on all the same, and keeps its permit until it returns.
    pub async fn wait_for<T: Send + 'static>(
        &self,
        device: &Arc<Device>,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WaitError> {
        self.wait_until(device, self.deadline(), call).await
    }

    /// The same, within what is left of the time for an answer.
    ///
    /// # Errors
    /// As for [`wait_for`](Self::wait_for).
    pub async fn wait_until<T: Send + 'static>(
        &self,
        device: &Arc<Device>,
        deadline: DiskDeadline,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WaitError> {
        self.wait_with(device, None, deadline, |_| call()).await
    }

    /// The same for calls that take much work or memory, such as listing a folder: fewer at a time. They end when they
    /// are told that nobody waits any more.
    ///
    /// # Errors
    /// As for [`wait_for`](Self::wait_for).
    pub async fn wait_in_turn<T: Send + 'static>(
        &self,
        device: &Arc<Device>,
        deadline: DiskDeadline,
        call: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, WaitError> {
        self.wait_with(device, Some(&device.turns), deadline, call).await
    }

    async fn wait_with<T: Send + 'static>(
        &self,
        device: &Arc<Device>,
        turns: Option<&Arc<Semaphore>>,
        deadline: DiskDeadline,
        call: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, WaitError> {
        let _queued = Queued::behind(&device.waiting)?;
        let asking = Asking(Abandoned::default());
        let waiting = async {
            let ended = |_| WaitError::Ended;
            let turn = match turns {
                Some(turns) => Some(Arc::clone(turns).acquire_owned().await.map_err(ended)?),
                None => None,
            };
            let permit = Arc::clone(&device.permits).acquire_owned().await.map_err(ended)?;
            let device = Arc::clone(device);
            let abandoned = asking.0.clone();
            let held = move || {
                device.close_left();
                // Every thread may have been taken until now.
                let outcome = (!abandoned.is_so()).then(|| call(&abandoned));
                // Closed while every permit was taken.
                device.close_left();
                drop((turn, permit));
                device.begin_closing();
                outcome
            };
            let made = on_thread(held).ok_or(WaitError::NoThread)?;
            made.await.flatten().ok_or(WaitError::Ended)
        };
        tokio::select! {
            biased;
            done = timeout_at(deadline.0, waiting) => done.unwrap_or(Err(WaitError::TimedOut)),
            // The rest of the drain is for the answer that says so.
            _ = self.drain.acquire() => Err(WaitError::Ended),
        }
    }
}

/// Something files lie on that answers quickly, slowly or never: what a worker knows about it.
#[derive(Debug)]
pub struct Device {
    file_system: FileSystem,
    /// One for each thread that may wait for it at the same time.
    permits: Arc<Semaphore>,
    /// One for each call among them that takes much work or memory.
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// True if it refused to say what is in memory (`RWF_NOWAIT`).
    is_silent: AtomicBool,
    pace: ReadPace,
    /// Files that the worker has open, on this device and others.
    open_files: Arc<AtomicUsize>,
    /// Descriptors that are closed when there is a permit: closing may wait, too.
    unclosed: Mutex<Vec<Unclosed>>,
    later: Later,
}

/// A file, or whatever else closes one.
type Unclosed = Box<dyn fmt::Debug + Send>;

/// The way bytes of a file are read so that the worker does not wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// By the worker, if the kernel says that they are in memory.
    IfResident,
    /// By the worker, which says how long it took: the device is quick, and cannot say more.
    AtOnce,
    /// By a thread that may wait.
    OnThread,
}

impl Device {
    /// A device about which nothing is known yet but what kind of file system it holds.
    #[must_use]
    pub fn new(file_system: FileSystem) -> Self {
        Self {
            file_system,
            permits: Arc::new(Semaphore::new(PERMITS)),
            turns: Arc::new(Semaphore::new(TURNS)),
            waiting: AtomicUsize::new(0),
            is_silent: AtomicBool::new(false),
            pace: if file_system.is_memory() { ReadPace::proved() } else { ReadPace::default() },
            open_files: Arc::default(),
            unclosed: Mutex::default(),
            later: Later::default(),
        }
    }

    /// True if any call on it may wait for ever, even those that only look at what is open.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.file_system.is_remote()
    }

    /// Returns the way its files are read now.
    #[must_use]
    pub fn reading(&self, now: Duration) -> ReadMode {
        if self.is_remote() {
            ReadMode::OnThread
        } else if !self.is_silent.load(Ordering::Relaxed) {
            ReadMode::IfResident
        } else if self.pace.is_quick(now) {
            ReadMode::AtOnce
        } else {
            ReadMode::OnThread
        }
    }

    /// Notes that it does not say what is in memory.
    pub fn refused_to_say(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Notes how long the worker [`waited`] in a read that ended now.
    pub fn held_up(&self, waited: Duration, now: Duration) {
        self.pace.held_up(waited, now);
    }

    /// Notes how long a thread [`waited`] in a read.
    pub fn took(&self, waited: Duration) {
        self.pace.took(waited);
    }

    /// Counts a file that was opened on it, until what this returns is dropped.
    #[must_use]
    pub fn count_open(&self) -> OpenCount {
        self.open_files.fetch_add(1, Ordering::Relaxed);
        OpenCount(Arc::clone(&self.open_files))
    }

    /// Closes a file of this many bytes without waiting: FUSE and NFS tell their server, and wait for its answer; where it was
    /// the last name of a large file, all of its blocks are given back.
    pub fn close(self: &Arc<Self>, file: impl fmt::Debug + Send + 'static, bytes: u64) {
        if !self.is_remote() && bytes <= CLOSED_AT_ONCE_BYTES_MAX {
            return;
        }
        self.left().push(Box::new(file));
        self.begin_closing();
    }

    /// Closes what is left where a permit is free. The task with the last one looks again when it is given back: what comes
    /// before that finds none. Without a runtime or a thread, the next call closes it.
    fn begin_closing(self: &Arc<Self>) {
        if self.left().is_empty() {
            return;
        }
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            let device = Arc::clone(self);
            let closing = on_thread(move || {
                device.close_left();
                drop(permit);
                device.begin_closing();
            });
            drop(closing);
        }
    }

    fn close_left(&self) {
        let left = std::mem::take(&mut *self.left());
        drop(left);
    }

    fn left(&self) -> MutexGuard<'_, Vec<Unclosed>> {
        self.unclosed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the files that are open, for as long as it is kept.
#[derive(Debug)]
pub struct OpenCount(Arc<AtomicUsize>);

impl Drop for OpenCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place in a queue, given back however the wait ends.
struct Queued<'q>(&'q AtomicUsize);

impl<'q> Queued<'q> {
    fn behind(waiting: &'q AtomicUsize) -> Result<Self, WaitError> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let queued = Self(waiting);
        if before < QUEUE_MAX { Ok(queued) } else { Err(WaitError::Crowded) }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads of a worker that may wait for a disk: those of this many devices that never answer leave none for others.
pub const THREADS_MAX: usize = (PERMITS + 1) * 16;

/// Threads of a worker that may wait for one device at the same time.
const PERMITS: usize = 4;

/// Calls among them that take much work or memory: listing a folder may be a second of work and memory for two pages.
const TURNS: usize = 2;

/// Connections of a worker that may wait for one device at the same time. Each holds its request and no more.
const QUEUE_MAX: usize = 4_096;

/// Files up to this size are closed by the worker: giving back their blocks takes no longer than sending a part of them.
const CLOSED_AT_ONCE_BYTES_MAX: u64 = 4 * 1_024 * 1_024;

/// The time a disk may still take where the time for an answer is over: enough for one that is well.
const MOMENT: Duration = Duration::from_secs(1);

/// A deadline for calls that wait as long as it takes.
const FAR_FUTURE: Duration = Duration::from_hours(24 * 365);

/// Devices a worker remembers. Each btrfs subvolume and each overlay is one.
const DEVICES_MAX: usize = 256;

#[cfg(test)]
mod tests;
