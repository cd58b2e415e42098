//! The head of an object's file: what it is, written before its body, and checked before anything is believed.
//!
//! Reading needs no trust in the file: a damaged head is an error, and allocates no more than the head's own bytes.

#[cfg(test)]
mod tests;

use std::fmt;

/// The head of an object's file, before its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectHead {
    /// The text of its key.
    pub key: String,
    /// The fields of requests that choose among variants, and the values this one was made for.
    pub vary: Vec<(String, Vec<u8>)>,
    /// The status of the response; 0 where this only says by which fields the variants of the key differ.
    pub status: u16,
    /// True if those get it who show credentials, too.
    pub is_for_everybody: bool,
    /// The response's own field lines, ready to be sent.
    pub lines: Vec<u8>,
    /// The entity tag as it came; empty if there was none.
    pub etag: Vec<u8>,
    /// When the content was last modified, in seconds since 1970.
    pub modified: Option<u64>,
    /// The time it may be used; of what only says by which fields variants differ, those of the variant that is fresh longest.
    pub times: Times,
    /// The tags by which it can be purged.
    pub tags: Vec<String>,
    /// The store's generation when it was asked for. Purges of later generations cover it.
    pub generation: u64,
}

/// The time an object may be used. All in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// When it arrived or was validated last, since 1970.
    pub arrived: u64,
    /// Its age then.
    pub age: u64,
    /// Up to which age it is fresh.
    pub fresh_for: u64,
    /// The additional time it may be used while it is validated.
    pub stale_while_revalidate: u64,
    /// The additional time it may be used when nothing newer can be had.
    pub stale_if_error: u64,
}

impl Times {
    /// Up to when it is fresh, in seconds since 1970.
    pub(crate) fn fresh_until(&self) -> u64 {
        self.arrived.saturating_add(self.fresh_for.saturating_sub(self.age))
    }
}

/// The extent of the body in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyExtent {
    /// Its first byte: a multiple of [`BODY_ALIGNMENT`], so that pages go out as they are, or in the head's own page if all of it fits.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// Its CRC, where that is what shows a body that a power cut has torn; without one, the disk had it before it got its name.
    pub sum: Option<u32>,
}

/// A head that is not whole, not ours, or of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedHead;

impl fmt::Display for DamagedHead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the object's head is damaged")
    }
}

impl std::error::Error for DamagedHead {}

impl ObjectHead {
    /// True if this only says by which fields the variants of its key differ.
    #[must_use]
    pub fn is_marker(&self) -> bool {
        self.status == 0
    }

    /// The fields by which the variants of a marker's key differ, each with what a request says in it, by `value_of`.
    pub(crate) fn vary_for(&self, value_of: &dyn Fn(&str) -> Vec<u8>) -> Vec<(String, Vec<u8>)> {
        self.vary.iter().map(|(name, _)| (name.clone(), value_of(name))).collect()
    }

    /// The offset at which a body of this length, if it is known, may begin behind this head, with
    /// some room for a later head of more words; `None` if the head is too large.
    #[must_use]
    pub fn body_offset(&self, body_bytes: Option<u64>) -> Option<u64> {
        let head = self.encode(BodyExtent { offset: 0, bytes: 0, sum: None })?;
        let offset = (head.len() + SLACK_BYTES) as u64;
        // One page for both is half of what is written for a small object, and one read when it is looked for.
        let is_in_one_page =
            body_bytes.is_some_and(|body| body <= BODY_ALIGNMENT.saturating_sub(offset));
        Some(if is_in_one_page { offset } else { offset.next_multiple_of(BODY_ALIGNMENT) })
    }

    /// The bytes of the head; `None` if one of its parts is too large.
    #[must_use]
    pub fn encode(&self, extent: BodyExtent) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[0; 8]);
        let Times { arrived, age, fresh_for, stale_while_revalidate, stale_if_error } = self.times;
        let modified = self.modified.unwrap_or(u64::MAX);
        for number in [
            extent.offset,
            extent.bytes,
            extent.sum.map_or(u64::MAX, u64::from),
            self.generation,
            modified,
            arrived,
            age,
            fresh_for,
            stale_while_revalidate,
            stale_if_error,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.status, self.is_for_everybody.into()] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for count in [self.vary.len(), self.tags.len()] {
            out.extend_from_slice(&u16::try_from(count).ok()?.to_le_bytes());
        }
        let vary = self.vary.iter().flat_map(|(name, value)| [name.as_bytes(), value]);
        let fixed = [self.key.as_bytes(), &self.lines, &self.etag];
        for text in fixed.into_iter().chain(vary).chain(self.tags.iter().map(String::as_bytes)) {
            out.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
            out.extend_from_slice(text);
        }
        if out.len() > HEAD_BYTES_MAX {
            return None;
        }
        let bytes = u32::try_from(out.len()).ok()?.to_le_bytes();
        let sum = crc32fast::hash(out.get(SUMMED_FROM..)?).to_le_bytes();
        for (at, word) in [(MAGIC.len(), bytes), (MAGIC.len() + 4, sum)] {
            out.get_mut(at..at + 4)?.copy_from_slice(&word);
        }
        Some(out)
    }

    /// The number of bytes the head takes that begins so; needs the first [`PREFIX_BYTES`].
    ///
    /// # Errors
    /// If no head begins so.
    pub(crate) fn bytes(beginning: &[u8]) -> Result<usize, DamagedHead> {
        let rest = beginning.strip_prefix(MAGIC).ok_or(DamagedHead)?;
        let bytes = u32::from_le_bytes(rest.first_chunk().copied().ok_or(DamagedHead)?) as usize;
        if (SUMMED_FROM..=HEAD_BYTES_MAX).contains(&bytes) { Ok(bytes) } else { Err(DamagedHead) }
    }

    /// Reads a head that begins with the first byte and may have more behind it.
    ///
    /// # Errors
    /// If it is damaged in any way that shows.
    pub fn decode(file: &[u8]) -> Result<(Self, BodyExtent), DamagedHead> {
        let head = file.get(..Self::bytes(file)?).ok_or(DamagedHead)?;
        let summed = head.get(SUMMED_FROM..).ok_or(DamagedHead)?;
        let sum = head.get(MAGIC.len() + 4..).and_then(|rest| rest.first_chunk().copied());
        if sum.map(u32::from_le_bytes) != Some(crc32fast::hash(summed)) {
            return Err(DamagedHead);
        }
        let mut rest = Reader(summed);
        let offset = rest.u64()?;
        let bytes = rest.u64()?;
        let sum = rest.u64()?;
        // No sum is a number that no sum is.
        let extent = BodyExtent { offset, bytes, sum: u32::try_from(sum).ok() };
        let generation = rest.u64()?;
        let modified = rest.u64()?;
        let times = Times {
            arrived: rest.u64()?,
            age: rest.u64()?,
            fresh_for: rest.u64()?,
            stale_while_revalidate: rest.u64()?,
            stale_if_error: rest.u64()?,
        };
        let status = rest.u16()?;
        let is_for_everybody = rest.u16()? != 0;
        let vary_count = rest.u16()?;
        let tag_count = rest.u16()?;
        let key = rest.text()?;
        let lines = rest.bytes()?.to_vec();
        let etag = rest.bytes()?.to_vec();
        // Each takes at least its length's bytes, so nothing is collected that the head does not hold.
        let vary = (0..vary_count).map(|_| Ok((rest.text()?, rest.bytes()?.to_vec())));
        let vary = vary.collect::<Result<_, _>>()?;
        let tags = (0..tag_count).map(|_| rest.text()).collect::<Result<_, _>>()?;
        let is_behind = offset >= head.len() as u64 && offset.checked_add(bytes).is_some();
        if !rest.0.is_empty() || !is_behind {
            return Err(DamagedHead);
        }
        let modified = (modified != u64::MAX).then_some(modified);
        let head = Self {
            key,
            vary,
            status,
            is_for_everybody,
            lines,
            etag,
            modified,
            times,
            tags,
            generation,
        };
        Ok((head, extent))
    }
}

/// The part left to read.
struct Reader<'h>(&'h [u8]);

impl<'h> Reader<'h> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DamagedHead> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DamagedHead)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, DamagedHead> {
        self.take().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, DamagedHead> {
        self.take().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Result<&'h [u8], DamagedHead> {
        let bytes = u32::from_le_bytes(self.take()?) as usize;
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(DamagedHead)?;
        self.0 = rest;
        Ok(taken)
    }

    fn text(&mut self) -> Result<String, DamagedHead> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| DamagedHead)
    }
}

/// A page, which is also the largest block of common file systems.
pub const BODY_ALIGNMENT: u64 = 4_096;

/// The most one head takes.
pub const HEAD_BYTES_MAX: usize = 64 * 1_024;

/// The number of bytes to read before the length of a head is known.
pub(crate) const PREFIX_BYTES: usize = SUMMED_FROM;

/// Whose file it is, and which version of this layout.
const MAGIC: &[u8] = b"kettle\x00\x03";

/// Behind the magic, the length and the sum.
const SUMMED_FROM: usize = 16;

/// Room for what a validation may add to a head.
const SLACK_BYTES: usize = 256;
