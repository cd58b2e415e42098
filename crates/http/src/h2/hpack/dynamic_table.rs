//! The dynamic table of a connection (RFC 7541 §2.3.2, §4): the field lines its peer named last.

use std::collections::VecDeque;

/// Field lines, the newest first, within a number of bytes.
pub(super) struct DynamicTable {
    entries: VecDeque<Entry>,
    /// The sum of the entries' sizes.
    bytes: usize,
    bytes_max: usize,
}

/// A field line in one allocation: its name, and its value behind that.
pub(super) struct Entry {
    line: Box<[u8]>,
    name_bytes: usize,
}

impl Entry {
    pub(super) fn new(name: &[u8], value: &[u8]) -> Self {
        Entry { line: [name, value].concat().into_boxed_slice(), name_bytes: name.len() }
    }

    fn size(&self) -> usize {
        self.line.len() + OVERHEAD_BYTES
    }
}

impl DynamicTable {
    pub(super) fn new(bytes_max: usize) -> Self {
        DynamicTable { entries: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// The field line of this age: how many newer ones were inserted since.
    #[inline]
    pub(super) fn field_line(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(age)?;
        entry.line.split_at_checked(entry.name_bytes)
    }

    /// True if a field line fits in the table once that is empty.
    pub(super) fn has_room_for(&self, name: &[u8], value: &[u8]) -> bool {
        name.len() + value.len() + OVERHEAD_BYTES <= self.bytes_max
    }

    /// Inserts an entry that the table [has room for](Self::has_room_for), in the place of as many
    /// of the oldest as needed (§4.4).
    pub(super) fn insert(&mut self, entry: Entry) {
        self.evict_down_to(self.bytes_max.saturating_sub(entry.size()));
        self.bytes += entry.size();
        self.entries.push_front(entry);
    }

    /// Changes the largest size of the table (§4.3).
    pub(super) fn resize(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.evict_down_to(bytes_max);
    }

    /// Empties the table, as an entry does that is larger than all of it (§4.4).
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Gives back the memory for entries if there are none.
    pub(super) fn release_if_empty(&mut self) {
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        }
    }

    fn evict_down_to(&mut self, bytes: usize) {
        while self.bytes > bytes
            && let Some(oldest) = self.entries.pop_back()
        {
            self.bytes -= oldest.size();
        }
    }
}

/// The bytes that an entry counts for beyond its name and value (§4.1): the memory that keeping it takes.
const OVERHEAD_BYTES: usize = 32;

#[cfg(test)]
mod tests;
