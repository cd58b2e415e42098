//! Getting at bytes of a file without holding up the worker, whatever they lie on.

use std::io::{self, IoSliceMut};
use std::sync::Arc;

use kettle_http::range::ByteRange;
use kettle_kernel::bug;
use kettle_kernel::transfer::{self, Residency, Wait};
use kettle_runtime::clock::{Clock, CoarseClock};
use kettle_runtime::disk::{self, ReadMode};
use kettle_runtime::open_file::OpenFile;
use kettle_tls::buffers::{self, WRITE_BYTES};

use super::{Delivery, DeliveryError, Remaining};
use crate::worker_state::WorkerState;

/// Bytes read from a file: a pooled buffer with a length of its own.
pub(crate) struct FileBytes {
    buffer: Vec<u8>,
    bytes: usize,
}

impl FileBytes {
    /// Reads as much as it gets, but never nothing.
    fn read(file: &OpenFile, span: ByteRange, wait: Wait) -> io::Result<Self> {
        let wanted = usize::try_from(span.bytes).unwrap_or(WRITE_BYTES).min(WRITE_BYTES);
        let mut piece = Self { buffer: buffers::take(wanted), bytes: 0 };
        let room = piece.buffer.get_mut(..wanted);
        let room = room.ok_or_else(|| bug!("a buffer has the room that was asked for"))?;
        let read = transfer::read_at(file.file(), &mut [IoSliceMut::new(room)], span.start, wait);
        piece.bytes = read?;
        if piece.bytes == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(piece) }
    }

    /// Returns the bytes read.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.bytes).unwrap_or_default()
    }
}

/// Where bytes of a file may be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// By the worker.
    Here,
    /// By the worker, once a thread has brought them into the page cache.
    Cold,
    OnThread,
}

impl Drop for FileBytes {
    fn drop(&mut self) {
        buffers::give(std::mem::take(&mut self.buffer));
    }
}

impl Delivery<'_> {
    /// Returns the way bytes of this file are read now.
    pub(super) fn reading(&self, file: &OpenFile) -> ReadMode {
        reading(self.sending.worker, file)
    }

    /// Reads a piece on a thread that may wait for the disk. A file that has no more is cut short.
    pub(super) async fn read_ahead(
        &self,
        piece: Remaining<'_>,
    ) -> Result<FileBytes, DeliveryError> {
        let read = read_on_thread(self.sending.worker, piece).await;
        read.map_err(DeliveryError::BodyCutShort)
    }

    /// Reads a piece where that holds up nobody. A file that has no more is cut short.
    pub(super) async fn read(&self, piece: Remaining<'_>) -> Result<FileBytes, DeliveryError> {
        let read = read_here(self.sending.worker, piece);
        match read.map_err(DeliveryError::BodyCutShort)? {
            Some(read) => Ok(read),
            None => self.read_ahead(piece).await,
        }
    }

    /// Brings a piece into the page cache; `false` if that cannot be made sure of.
    pub(super) async fn warm(
        &self,
        Remaining { file, span }: Remaining<'_>,
    ) -> Result<bool, DeliveryError> {
        let access = access(self.sending.worker, file, span);
        if access == Access::Cold {
            let shared = Arc::clone(file);
            let warm = move || transfer::warm(shared.file(), span.start, span.bytes);
            wait_for(self.sending.worker, file, warm).await.map_err(DeliveryError::BodyCutShort)?;
        }
        Ok(access != Access::OnThread)
    }
}

fn reading(worker: &WorkerState, file: &OpenFile) -> ReadMode {
    file.device().reading(worker.clock.monotonic())
}

/// Reads what the worker may read of a piece: where the kernel knows what is in memory, that and no more. `None` if a thread
/// has to.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file has no more; whatever the disk says.
pub(crate) fn read_here(
    worker: &WorkerState,
    Remaining { file, span }: Remaining<'_>,
) -> io::Result<Option<FileBytes>> {
    if reading(worker, file) == ReadMode::IfResident {
        match FileBytes::read(file, span, Wait::Never) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                file.device().refused_to_say();
            }
            read => return read.map(Some),
        }
    }
    if reading(worker, file) != ReadMode::AtOnce {
        return Ok(None);
    }
    held_up_by(worker.clock, file, || FileBytes::read(file, span, Wait::Allowed)).map(Some)
}

/// Reads a piece on a thread that may wait for the disk.
///
/// # Errors
/// As [`read_here`], and where the disk does not answer in time.
pub(crate) async fn read_on_thread(
    worker: &WorkerState,
    Remaining { file, span }: Remaining<'_>,
) -> io::Result<FileBytes> {
    let shared = Arc::clone(file);
    let read = move || {
        // A delivery that waits for a thread holds no buffer: it is taken here.
        let (read, waited) = disk::waited(|| FileBytes::read(&shared, span, Wait::Allowed));
        shared.device().took(waited);
        read
    };
    wait_for(worker, file, read).await
}

/// Finds out how to get at a piece.
fn access(worker: &WorkerState, file: &OpenFile, span: ByteRange) -> Access {
    let ByteRange { start, bytes } = span;
    let now = worker.clock.monotonic();
    if file.resident_until() > now {
        return Access::Here;
    }
    if reading(worker, file) == ReadMode::IfResident {
        match transfer::residency(file.file(), start, bytes) {
            Residency::Resident if bytes >= file.bytes() => {
                file.set_resident_until(now + RESIDENCE_TRUSTED);
                return Access::Here;
            }
            Residency::Resident | Residency::BeyondEnd => return Access::Here,
            Residency::Cold => return Access::Cold,
            Residency::Unsupported => file.device().refused_to_say(),
            // Whatever is wrong, the worker does not wait for it.
            Residency::Unknown => return Access::OnThread,
        }
    }
    access_at_once(worker.clock, file, || transfer::touch(file.file(), start, bytes))
}

/// The same where the device has to be tried: what it was slow with is in memory now, but only the few bytes that were touched.
fn access_at_once(clock: CoarseClock, file: &OpenFile, touch: impl FnOnce()) -> Access {
    let is_quick = || file.device().reading(clock.monotonic()) == ReadMode::AtOnce;
    if is_quick() {
        held_up_by(clock, file, touch);
    }
    if is_quick() { Access::Here } else { Access::OnThread }
}

async fn wait_for<T: Send + 'static>(
    worker: &WorkerState,
    file: &OpenFile,
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    // Boxed: a wait for the disk is long beside an allocation, and what it needs would be part of every connection.
    let outcome = Box::pin(worker.responder.files.disks().wait_for(file.device(), call)).await;
    outcome.map_err(io::Error::other).flatten()
}

/// Reads a file on the worker, and notes how long that held it up.
pub(super) fn held_up_by<T>(clock: CoarseClock, file: &OpenFile, read: impl FnOnce() -> T) -> T {
    let (outcome, waited) = disk::waited(read);
    file.device().held_up(waited, clock.monotonic());
    outcome
}

/// The time a file that was wholly in the page cache is taken to be there still.
const RESIDENCE_TRUSTED: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(test)]
mod tests;
