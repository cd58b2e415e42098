//! An open file as the responses that send from it share it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kettle_cache::Fill;

use crate::disk::{Device, OpenCount};

/// An open regular file, shared by the responses that send from it.
#[derive(Debug)]
pub struct OpenFile {
    /// There until it is closed.
    fd: Option<Descriptor>,
    device: Arc<Device>,
    bytes: u64,
    resident_until_milliseconds: AtomicU64,
}

/// Whose a descriptor is.
#[derive(Debug)]
enum Descriptor {
    /// This file's.
    Own(OwnedFd, OpenCount),
    /// The one of its writer.
    Filled(Fill),
}

impl OpenFile {
    /// A file that is still growing, and so never known to be in the page cache as a whole.
    #[must_use]
    pub fn shared(fill: Fill, device: Arc<Device>) -> Self {
        let fd = Some(Descriptor::Filled(fill));
        Self { fd, device, bytes: u64::MAX, resident_until_milliseconds: AtomicU64::new(0) }
    }

    /// A file of which `bytes` bytes may be sent: all that it had when it was opened, or an object's body.
    #[must_use]
    pub fn new(fd: OwnedFd, bytes: u64, device: Arc<Device>) -> Self {
        Self {
            fd: Some(Descriptor::Own(fd, device.count_open())),
            device,
            bytes,
            resident_until_milliseconds: AtomicU64::new(0),
        }
    }

    /// The descriptor.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Some(Descriptor::Own(fd, _)) => fd.as_fd(),
            Some(Descriptor::Filled(fill)) => fill.file(),
            None => rustix::fs::CWD,
        }
    }

    /// Returns the device on which it lies.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Returns where it is now, as [`path_of`] says.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        path_of(self.file())
    }

    /// Returns how much of it may be sent, as it was when it was opened; the file may have changed since.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Until when, on the worker's monotonic clock, all that may be sent of it is taken to be in the page
    /// cache without asking the kernel again. Zero: never asked, or not all of it was.
    #[must_use]
    pub fn resident_until(&self) -> Duration {
        Duration::from_millis(self.resident_until_milliseconds.load(Ordering::Relaxed))
    }

    /// Notes that all of that was found in the page cache.
    pub fn set_resident_until(&self, moment: Duration) {
        let milliseconds = u64::try_from(moment.as_millis()).unwrap_or(u64::MAX);
        self.resident_until_milliseconds.store(milliseconds, Ordering::Relaxed);
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        match self.fd.take() {
            Some(Descriptor::Own(fd, count)) => self.device.close((fd, count), self.bytes),
            Some(Descriptor::Filled(fill)) => {
                let bytes = fill.progress().filled;
                self.device.close(fill, bytes);
            }
            None => {}
        }
    }
}

/// Returns where an open file is now, without symlinks; a removed file has ` (deleted)` behind its name.
/// `None` where there is no `/proc`.
#[must_use]
pub fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).ok()
}
