//! Small files that were met before: how they are marked, so that they are not hashed again, and how long ago, so that only what is
//! asked for twice takes the place of another in memory.
//!
//! A table of fixed size, in which what was met longest ago makes room. Nothing in it is about a path: it goes by the file.

use std::cell::Cell;
use std::hash::{BuildHasher, Hash, RandomState};

/// A worker's table.
#[derive(Debug)]
pub struct Marks {
    sets: Vec<[Slot; WAYS]>,
    /// One says in which set a file is, the other which it is there: clients and authors of files know neither.
    hashers: [RandomState; 2],
    meetings: u32,
}

/// A tag that tells the file from others, zero for none; both halves of its hash; and when it was met, with a bit that says if it has a
/// hash. Memory of zeroes is a table of none, and is there only once it is written to.
type Slot = [u64; 4];

/// A small file that is met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meeting {
    /// The hash of its content, if that is known.
    pub hash: Option<[u8; 16]>,
    /// The number of meetings ago it was met last, if that is known.
    pub ago: Option<u32>,
}

/// The place where an object is kept for later, once it was answered with. A file that is small is never kept open: it may be
/// written to as it lies there, and its tag is that of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nowhere: it is looked for anew.
    Nowhere,
    /// Where it is, and open.
    Open,
    /// In memory, if it is small.
    InMemory,
}

impl Marks {
    /// A table beside memory for files of this many bytes.
    pub fn beside(hot_memory_bytes: usize) -> Self {
        let sets = hot_memory_bytes / SHARE / size_of::<[Slot; WAYS]>();
        Self { sets: vec![[[0; 4]; WAYS]; sets], hashers: Default::default(), meetings: 0 }
    }

    /// The bytes it takes at most.
    pub fn bytes(&self) -> usize {
        self.sets.len() * size_of::<[Slot; WAYS]>()
    }

    /// Meets a file in some state.
    pub fn meet(&mut self, identity: &impl Hash) -> Meeting {
        self.meetings = self.meetings.wrapping_add(1);
        let meetings = self.meetings;
        let Some((set, tag)) = self.set(identity) else { return Meeting::default() };
        let ago = |slot: &Slot| meetings.wrapping_sub(met(slot));
        if let Some(slot) = set.iter_mut().find(|slot| slot[TAG] == tag) {
            let has_hash = slot[MET] & HAS_HASH != 0;
            let hash = (u128::from(slot[HIGH]) << 64 | u128::from(slot[LOW])).to_be_bytes();
            let meeting = Meeting { hash: has_hash.then_some(hash), ago: Some(ago(slot)) };
            slot[MET] = u64::from(meetings) << 1 | slot[MET] & HAS_HASH;
            return meeting;
        }
        let oldest = set.iter_mut().max_by_key(|slot| (slot[TAG] == 0, ago(slot)));
        if let Some(slot) = oldest {
            *slot = [tag, 0, 0, u64::from(meetings) << 1];
        }
        Meeting::default()
    }

    /// The number of meetings there were.
    pub fn meetings(&self) -> u32 {
        self.meetings
    }

    /// Meets what is remembered, with the meeting at which that was so last. Says how many meetings ago that was.
    pub fn meet_again(&mut self, met: &Cell<u32>) -> u32 {
        self.meetings = self.meetings.wrapping_add(1);
        self.meetings.wrapping_sub(met.replace(self.meetings))
    }

    /// Notes the hash of a file that was met. It has to be one whose next change will show in its identity.
    pub fn note(&mut self, identity: &impl Hash, hash: [u8; 16]) {
        let Some((set, tag)) = self.set(identity) else { return };
        if let Some(slot) = set.iter_mut().find(|slot| slot[TAG] == tag) {
            let hash = u128::from_be_bytes(hash);
            (slot[HIGH], slot[LOW]) = ((hash >> 64) as u64, hash as u64);
            slot[MET] |= HAS_HASH;
        }
    }

    fn set(&mut self, identity: &impl Hash) -> Option<(&mut [Slot; WAYS], u64)> {
        let [place, tag] = self.hashers.each_ref().map(|hasher| hasher.hash_one(identity));
        // Of as many hashes each set gets its share.
        let set = ((u128::from(place) * self.sets.len() as u128) >> 64) as usize;
        Some((self.sets.get_mut(set)?, tag.max(1)))
    }
}

/// When a file was met.
fn met(slot: &Slot) -> u32 {
    (slot[MET] >> 1) as u32
}

const TAG: usize = 0;
const HIGH: usize = 1;
const LOW: usize = 2;
const MET: usize = 3;
const HAS_HASH: u64 = 1;
/// Files that may be in a set.
const WAYS: usize = 4;
/// Of `hot_memory` this part is the table's.
const SHARE: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_met_again_has_its_hash_and_how_long_ago_it_was() {
        let files = [1, 2, 3];
        let mut marks = Marks::beside(1 << 20);
        assert_eq!(marks.meet(&files[0]), Meeting::default());
        marks.note(&files[0], [9; 16]);
        marks.meet(&files[1]);
        assert_eq!(marks.meet(&files[0]), Meeting { hash: Some([9; 16]), ago: Some(2) });
        assert_eq!(marks.meet(&files[0]), Meeting { hash: Some([9; 16]), ago: Some(1) });
        assert_eq!(marks.meet(&files[1]), Meeting { hash: None, ago: Some(3) });
        marks.note(&files[2], [8; 16]);
        assert_eq!(marks.meet(&files[2]), Meeting::default(), "it was not met before");
    }

    #[test]
    fn what_was_met_longest_ago_makes_room() {
        let files: Vec<_> = (0..100).collect();
        let mut marks = Marks::beside(SHARE * size_of::<[Slot; WAYS]>());
        assert_eq!(marks.sets.len(), 1);
        for file in &files {
            marks.meet(file);
        }
        let again: Vec<_> = files[96..].iter().map(|file| marks.meet(file).ago).collect();
        assert_eq!(again, [Some(4); 4]);
        assert_eq!(marks.meet(&files[95]).ago, None);
        let mut none = Marks::beside(0);
        assert_eq!([none.meet(&files[0]).ago, none.meet(&files[0]).ago], [None, None]);
    }
}
