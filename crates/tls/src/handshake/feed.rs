//! The bytes received during a handshake, given to rustls one whole record at a time, so that nothing
//! behind the last record of the handshake ever gets into rustls.

use kettle_kernel::bug;
use kettle_kernel::bug::Bug;

use crate::buffers::Queue;

/// Bytes in order: first those that rustls may look at, then those it may not yet.
#[derive(Default)]
pub(crate) struct Feed {
    received: Queue,
    shown_bytes: usize,
}

impl Feed {
    /// Returns the bytes at which rustls may look.
    pub(crate) fn shown(&mut self) -> &mut [u8] {
        self.received.filled_mut().get_mut(..self.shown_bytes).unwrap_or_default()
    }

    /// Returns the bytes received behind that.
    pub(crate) fn waiting(&self) -> &[u8] {
        self.received.filled().get(self.shown_bytes..).unwrap_or_default()
    }

    /// Lets rustls look at this many bytes more.
    pub(crate) fn show(&mut self, bytes: usize) -> Result<(), Bug> {
        self.shown_bytes += bytes;
        match self.shown_bytes <= self.received.filled().len() {
            true => Ok(()),
            false => Err(bug!("what is shown was received")),
        }
    }

    /// rustls is done with this many bytes at the front.
    pub(crate) fn discard(&mut self, bytes: usize) -> Result<(), Bug> {
        self.received.consume(bytes);
        let left = self.shown_bytes.checked_sub(bytes);
        self.shown_bytes = left.ok_or_else(|| bug!("what rustls is done with was shown to it"))?;
        Ok(())
    }

    /// Drops the next bytes that wait. `false` where rustls is not done with what it was shown: they are not at the front.
    pub(crate) fn skip(&mut self, bytes: usize) -> bool {
        let is_at_front = self.shown_bytes == 0;
        if is_at_front {
            self.received.consume(bytes);
        }
        is_at_front
    }

    /// Returns the room where the socket puts what it received.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        self.received.room(bytes)
    }

    /// This many bytes were put there.
    pub(crate) fn commit(&mut self, bytes: usize) {
        self.received.commit(bytes);
    }

    /// These bytes were received before the handshake.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.received.append(bytes);
    }

    /// Takes out what waits; `None` if rustls is not done with what it was shown.
    pub(crate) fn into_waiting(self) -> Option<Queue> {
        (self.shown_bytes == 0).then_some(self.received)
    }
}
