//! Room for plaintext where records keep it, so that what a file or a socket yields is sealed where it was put.

use std::io::IoSliceMut;

use kettle_kernel::bug;

use super::StreamError;
use crate::buffers::{Queue, RECORDS_PER_WRITE};
use crate::records::{ContentType, PLAINTEXT_BYTES_MAX, RecordSealer};

/// The insides of records that are not sealed yet. Dropped without [`commit`](Self::commit), it leaves nothing
/// behind but a buffer.
pub struct RecordRoom<'w> {
    /// None on a plain connection: there it is room in the queue.
    sealer: Option<&'w mut RecordSealer>,
    outgoing: &'w mut Queue,
    head_bytes: usize,
    plaintext_bytes: usize,
}

impl<'w> RecordRoom<'w> {
    /// Room for `bytes` bytes behind `head`, as far as [`RECORDS_PER_WRITE`] records hold them, from the one on in which it ends.
    pub(super) fn new(
        sealer: Option<&'w mut RecordSealer>,
        outgoing: &'w mut Queue,
        head: &[u8],
        bytes: usize,
    ) -> Self {
        let records_max = head.len() / PLAINTEXT_BYTES_MAX + RECORDS_PER_WRITE;
        let plaintext_max = records_max * PLAINTEXT_BYTES_MAX;
        let plaintext_bytes = head.len().saturating_add(bytes).min(plaintext_max);
        let mut room = Self { sealer, outgoing, head_bytes: head.len(), plaintext_bytes };
        if !head.is_empty() {
            let mut head = head;
            for plaintext in room.plaintexts() {
                let (now, later) = head.split_at(head.len().min(plaintext.len()));
                let (target, _) = plaintext.split_at_mut(now.len());
                target.copy_from_slice(now);
                head = later;
            }
        }
        room
    }

    /// The number of bytes there is room for.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.plaintext_bytes - self.head_bytes
    }

    /// Lends the room, to be filled from its beginning on. The bytes in it are left over from earlier use.
    pub fn lend<T>(&mut self, fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> T) -> T {
        let mut head_bytes = self.head_bytes;
        let mut slices: [IoSliceMut<'_>; RECORDS_PER_WRITE] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut slices_used = 0;
        for plaintext in self.plaintexts() {
            let of_head = head_bytes.min(plaintext.len());
            head_bytes -= of_head;
            let (_, room) = plaintext.split_at_mut(of_head);
            if let Some(slice) = slices.get_mut(slices_used).filter(|_| !room.is_empty()) {
                *slice = IoSliceMut::new(room);
                slices_used += 1;
            }
        }
        fill(slices.split_at_mut(slices_used).0)
    }

    /// Seals the head and the first `bytes` bytes of the room in as few records as possible, and queues them. As many
    /// must have been put there: what lies behind them is none of this connection's. Zero gives unused room back.
    ///
    /// # Errors
    /// [`StreamError::KeyExhausted`] at the key's limit; then nothing was queued.
    pub fn commit(mut self, bytes: usize) -> Result<(), StreamError> {
        let overhead_bytes = self.overhead_bytes();
        let mut left_bytes = self.head_bytes + bytes.min(self.bytes());
        let mut sealed_bytes = 0;
        let room = self.outgoing.room(room_bytes(self.plaintext_bytes, overhead_bytes));
        while left_bytes > 0 {
            let plaintext_bytes = left_bytes.min(PLAINTEXT_BYTES_MAX);
            let record_bytes = plaintext_bytes + overhead_bytes;
            let record = room.get_mut(sealed_bytes..sealed_bytes + record_bytes);
            let record = record.ok_or_else(|| bug!("the records of a room lie in it"))?;
            if let Some(sealer) = &mut self.sealer {
                sealer.seal(ContentType::ApplicationData, record)?;
            }
            sealed_bytes += record_bytes;
            left_bytes -= plaintext_bytes;
        }
        self.outgoing.commit(sealed_bytes);
        if self.outgoing.is_empty() {
            // Connections that wait hold no buffer.
            self.outgoing.clear();
        }
        Ok(())
    }

    /// Returns where each record keeps its plaintext.
    fn plaintexts(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (prefix_bytes, suffix_bytes) = self.around_bytes();
        let overhead_bytes = prefix_bytes + suffix_bytes;
        let room = self.outgoing.room(room_bytes(self.plaintext_bytes, overhead_bytes));
        room.chunks_mut(PLAINTEXT_BYTES_MAX + overhead_bytes).map(move |record| {
            let plaintext_end = record.len().saturating_sub(suffix_bytes);
            record.get_mut(prefix_bytes..plaintext_end).unwrap_or_default()
        })
    }

    fn overhead_bytes(&self) -> usize {
        let (prefix_bytes, suffix_bytes) = self.around_bytes();
        prefix_bytes + suffix_bytes
    }

    /// Returns how much of a record lies before and behind its plaintext.
    fn around_bytes(&self) -> (usize, usize) {
        let around = |sealer: &&mut RecordSealer| (sealer.prefix_bytes(), sealer.suffix_bytes());
        self.sealer.as_ref().map(around).unwrap_or_default()
    }
}

/// Returns the room that so much plaintext takes in full records and one that may not be.
fn room_bytes(plaintext_bytes: usize, overhead_bytes: usize) -> usize {
    plaintext_bytes + plaintext_bytes.div_ceil(PLAINTEXT_BYTES_MAX) * overhead_bytes
}

#[cfg(test)]
mod tests;
