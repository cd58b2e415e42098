//! Reading field blocks (RFC 7541 §3.2): each representation in turn, as it stands in the block.
//!
//! The caller decides whether a name or a value may stand in a message (RFC 9113 §8.2).

use std::fmt;

use super::dynamic_table::{DynamicTable, Entry};
use super::{huffman, static_table};

/// Reads field blocks. A new one, and one whose dynamic table is empty, holds no memory.
pub struct Decoder {
    table: DynamicTable,
    /// The most that the peer may choose as the size of its table.
    table_bytes_max: usize,
}

/// A field block that RFC 7541 does not allow. Nothing more can be read on its connection, as the
/// two sides no longer agree on the dynamic table: COMPRESSION_ERROR (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field block is not valid HPACK")
    }
}

impl std::error::Error for Malformed {}

impl Decoder {
    /// A decoder with an empty table. SETTINGS_HEADER_TABLE_SIZE allows the peer this many bytes;
    /// 4,096 if nothing has been said (RFC 9113 §6.5.2).
    #[must_use]
    pub fn new(table_bytes_max: usize) -> Self {
        Decoder { table: DynamicTable::new(table_bytes_max), table_bytes_max }
    }

    /// Decodes one whole block; gives each field line, name and value, to `take`, in order.
    ///
    /// A byte of the block can stand for a whole entry of the table, so the caller bounds what it
    /// keeps. It still has to let the block be read to its end. There are no more field lines than
    /// the block has bytes, and no more than `table_bytes_max` + 32 bytes of them for each.
    ///
    /// # Errors
    /// [`Malformed`]: the connection cannot go on. Field lines before the mistake have been given.
    pub fn decode(
        &mut self,
        block: &[u8],
        take: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Malformed> {
        let decoded = self.decode_block(Input { rest: block }, take);
        self.table.release_if_empty();
        decoded.ok_or(Malformed)
    }

    fn decode_block(
        &mut self,
        mut input: Input<'_>,
        mut take: impl FnMut(&[u8], &[u8]),
    ) -> Option<()> {
        self.decode_size_updates(&mut input)?;
        let mut scratch = Scratch::default();
        while let [first, ..] = input.rest {
            match first {
                // Indexed (§6.1).
                0x80.. => {
                    let (name, value) = self.field_line(input.integer(7)?)?;
                    take(name, value);
                }
                // Literal with incremental indexing (§6.2.1).
                0x40.. => {
                    let (name, value) = self.literal(6, &mut input, &mut scratch)?;
                    take(name, value);
                    if self.table.has_room_for(name, value) {
                        // Made before older entries go: the name may be one of theirs (§4.4).
                        let entry = Entry::new(name, value);
                        self.table.insert(entry);
                    } else {
                        self.table.clear();
                    }
                }
                // A size update, which stands at the beginning only (§4.2).
                0x20.. => return None,
                // Literal without indexing, or never indexed (§6.2.2, §6.2.3).
                _ => {
                    let (name, value) = self.literal(4, &mut input, &mut scratch)?;
                    take(name, value);
                }
            }
        }
        Some(())
    }

    /// The dynamic table size updates at the beginning of a block (§6.3).
    fn decode_size_updates(&mut self, input: &mut Input<'_>) -> Option<()> {
        let mut updates = 0;
        while let [0x20..0x40, ..] = input.rest {
            let bytes_max = input.integer(5)?;
            updates += 1;
            if bytes_max > self.table_bytes_max || updates > SIZE_UPDATES_MAX {
                return None;
            }
            self.table.resize(bytes_max);
        }
        Some(())
    }

    /// A literal, the index of whose name has a prefix of this many bits.
    fn literal<'a, 'b: 'a>(
        &'a self,
        prefix_bits: u32,
        input: &mut Input<'b>,
        scratch: &'a mut Scratch,
    ) -> Option<(&'a [u8], &'a [u8])> {
        let name = match input.integer(prefix_bits)? {
            0 => input.string(&mut scratch.name)?,
            index => self.field_line(index)?.0,
        };
        Some((name, input.string(&mut scratch.value)?))
    }

    /// The field line of an index (§2.3.3): the static table, then the dynamic one.
    #[inline]
    fn field_line(&self, index: usize) -> Option<(&[u8], &[u8])> {
        match index.checked_sub(static_table::ENTRIES + 1) {
            None => static_table::field_line(index),
            Some(age) => self.table.field_line(age),
        }
    }
}

/// The memory into which Huffman coded strings are written out. It lasts for one block.
#[derive(Default)]
struct Scratch {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The part of a block that has not been read yet.
struct Input<'b> {
    rest: &'b [u8],
}

impl<'b> Input<'b> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// An integer with a prefix of this many bits, at most seven (§5.1).
    #[inline]
    fn integer(&mut self, prefix_bits: u32) -> Option<usize> {
        let prefix_max = (1 << prefix_bits) - 1;
        let prefix = self.byte()? & prefix_max;
        if prefix < prefix_max {
            return Some(usize::from(prefix));
        }
        let mut value = u64::from(prefix_max);
        for position in 0..CONTINUATION_BYTES_MAX {
            let byte = self.byte()?;
            value += u64::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                return usize::try_from(value).ok().filter(|value| *value <= INTEGER_MAX);
            }
        }
        None
    }

    /// A string (§5.2): as it stands in the block, or written out to `scratch`.
    #[inline]
    fn string<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'b: 's,
    {
        let is_huffman = self.rest.first()? & 0x80 != 0;
        let bytes = self.integer(7)?;
        let (string, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        if !is_huffman {
            return Some(string);
        }
        scratch.clear();
        huffman::decode(string, scratch)?;
        Some(scratch)
    }
}

/// Size updates at the beginning of a block. A peer that keeps to §4.2 sends two at most.
const SIZE_UPDATES_MAX: usize = 4;

/// The largest integer that is read. No block is as long, and no table as large.
const INTEGER_MAX: usize = 1 << 28;

/// Bytes after the prefix of an integer.
const CONTINUATION_BYTES_MAX: u32 = 5;

#[cfg(test)]
mod tests;
