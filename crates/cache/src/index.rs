//! Which objects are there and how much they take, and which of them goes first when there is no room.
//!
//! SIEVE (NSDI 2024): a queue by age and a hand. Being used sets a mark and moves nothing, so lookups only read. Objects are spread over
//! shards, each with a lock, so that workers seldom meet at one, and a shard grows in small pieces, so that none waits for one that does. Ages are counted for all shards together, and the hand takes the next age of any of them: what goes first is
//! the same as with one queue.

mod shard;
mod slot;
mod table;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use crate::name::Name;
use shard::Shard;

/// The objects of a store.
#[derive(Debug)]
pub(crate) struct Index {
    shards: Box<[Part]>,
    /// Chooses the shard of a key; nobody can choose keys that all lie in one.
    hash: RandomState,
    /// Held while the hand moves.
    sweep: Mutex<()>,
    ages: AtomicU64,
    blocks: AtomicU64,
    objects: AtomicU64,
    /// The number of times an object stopped being what its name stands for.
    changes: AtomicU64,
}

/// One shard, with the age of what is next under its hand, which is read without its lock.
#[derive(Debug)]
struct Part {
    shard: RwLock<Shard>,
    next: AtomicU64,
}

/// An object as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The number that it got when it came, or was validated.
    pub(crate) serial: u64,
    /// The number of bytes it takes on the disk.
    pub(crate) bytes: u64,
    /// True if its body was compared with its sum.
    pub(crate) is_checked: bool,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Part::new()).collect(),
            hash: RandomState::new(),
            sweep: Mutex::default(),
            ages: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        }
    }
}

impl Index {
    /// Returns the entry of the object that has this name now. Counts as a use.
    pub(crate) fn look(&self, name: Name) -> Option<Entry> {
        self.read(name, |shard| shard.used(name))
    }

    /// The same: its number alone.
    pub(crate) fn find(&self, name: Name) -> Option<u64> {
        self.look(name).map(|entry| entry.serial)
    }

    /// True if an object is still what its name stands for; that is no use of it.
    pub(crate) fn holds(&self, name: Name, serial: u64) -> bool {
        self.read(name, |shard| shard.serial(name)) == Some(serial)
    }

    /// True if no object has this name; that is no use of one.
    pub(crate) fn lacks(&self, name: Name) -> bool {
        self.read(name, |shard| shard.serial(name)).is_none()
    }

    /// True if an object was found to be what was written.
    pub(crate) fn is_checked(&self, name: Name, serial: u64) -> bool {
        self.read(name, |shard| shard.is_checked(name, serial))
    }

    /// Notes that an object is what was written.
    pub(crate) fn set_checked(&self, name: Name, serial: u64) {
        self.read(name, |shard| shard.set_checked(name, serial));
    }

    /// Returns the number of times an object stopped being what its name stands for: as long as
    /// this is the same, all are that were. Takes no lock.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notes an object of `bytes` in place of any other of its name.
    pub(crate) fn insert(&self, name: Name, bytes: u64) -> u64 {
        self.change(self.part(name), |shard| {
            if shard.remove(name) {
                self.changed();
            }
            shard.insert(name, blocks(bytes), self.next_age())
        })
    }

    /// Notes an object that was found on the disk; not if one of its name is known, which may be another.
    pub(crate) fn insert_found(&self, name: Name, bytes: u64) -> Option<u64> {
        self.change(self.part(name), |shard| {
            let is_known = shard.serial(name).is_some();
            (!is_known).then(|| shard.insert(name, blocks(bytes), self.next_age()))
        })
    }

    /// Gives an object a new number, if it is still the one with this number.
    pub(crate) fn renew(&self, name: Name, serial: u64) -> Option<u64> {
        self.change(self.part(name), |shard| {
            let renewed = shard.renew(name, serial, || self.next_age())?;
            self.changed();
            Some(renewed)
        })
    }

    /// Forgets an object; with a number, only if it is still that one.
    pub(crate) fn remove(&self, name: Name, serial: Option<u64>) -> bool {
        self.change(self.part(name), |shard| {
            let found = shard.serial(name);
            let is_it = found.is_some() && (serial.is_none() || found == serial);
            if is_it {
                shard.remove(name);
                self.changed();
            }
            is_it
        })
    }

    /// Forgets some of a key's variants, no more than `at_most`, and says which they were.
    pub(crate) fn take_variants(&self, key: Name, at_most: usize) -> Vec<Name> {
        self.change(self.part(key), |shard| {
            let mut taken = Vec::new();
            while taken.len() < at_most
                && let Some(name) = shard.newest_variant(key)
                && shard.remove(name)
            {
                taken.push(name);
            }
            if !taken.is_empty() {
                self.changed();
            }
            taken
        })
    }

    /// Forgets the oldest variant of a key, if it has more than [`VARIANTS_MAX`], and says which that was.
    pub(crate) fn take_surplus(&self, key: Name) -> Option<Name> {
        self.read(key, |shard| shard.surplus_variant(key))?;
        self.change(self.part(key), |shard| {
            let name = shard.surplus_variant(key)?;
            shard.remove(name);
            self.changed();
            Some(name)
        })
    }

    /// Forgets the object that is needed least, and says which it was and how much it took. Goes from old to new, takes marks away, and
    /// takes the first object without one. Work is bounded: after [`STEPS_MAX`] marks the next object goes whether it has one or not.
    pub(crate) fn evict(&self) -> Option<(Name, u64)> {
        let _alone = self.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        for step in 0..=STEPS_MAX {
            let part = match self.under_hand() {
                Some(part) => part,
                None => self.turn_back()?,
            };
            let evicted = self.change(part, |shard| {
                let evicted = shard.step(step == STEPS_MAX);
                if evicted.is_some() {
                    self.changed();
                }
                evicted
            });
            if part.next.load(Ordering::Relaxed) == NOTHING && self.under_hand().is_none() {
                // At once: what comes from here on is the last that the hand gets to.
                self.turn_back();
            }
            if let Some((name, blocks)) = evicted {
                return Some((name, u64::from(blocks) * BLOCK_BYTES));
            }
        }
        None
    }

    /// The shard with the oldest object that the hand has not passed.
    fn under_hand(&self) -> Option<&Part> {
        let next = self.shards.iter().map(|part| (part.next.load(Ordering::Relaxed), part));
        let (age, part) = next.min_by_key(|(age, _)| *age)?;
        (age != NOTHING).then_some(part)
    }

    /// Puts the hand to the oldest again, and says in which shard that is.
    fn turn_back(&self) -> Option<&Part> {
        self.shards.iter().for_each(|part| self.change(part, Shard::turn_back));
        self.under_hand()
    }

    /// Returns the bytes that all objects take.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.load(Ordering::Acquire) * BLOCK_BYTES
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.objects.load(Ordering::Acquire)).unwrap_or(usize::MAX)
    }

    fn next_age(&self) -> u64 {
        self.ages.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a change while the shard's lock is held: whoever sees the new number and looks then, sees the change.
    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// All variants of a key are in one shard.
    #[expect(clippy::indexing_slicing, reason = "the rest of a division by the length")]
    fn part(&self, name: Name) -> &Part {
        let [key, _] = name.parts();
        let shards = self.shards.len() as u64;
        &self.shards[usize::try_from(self.hash.hash_one(key) % shards).unwrap_or_default()]
    }

    fn read<T>(&self, name: Name, look: impl FnOnce(&Shard) -> T) -> T {
        look(&self.part(name).shard.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes a shard, and counts what that makes of all.
    fn change<T>(&self, part: &Part, change: impl FnOnce(&mut Shard) -> T) -> T {
        let mut shard = part.shard.write().unwrap_or_else(PoisonError::into_inner);
        let (blocks, objects) = shard.size();
        let changed = change(&mut shard);
        let (blocks_now, objects_now) = shard.size();
        // A difference below zero wraps, and adding it takes away.
        self.blocks.fetch_add(blocks_now.wrapping_sub(blocks), Ordering::AcqRel);
        self.objects.fetch_add(objects_now.wrapping_sub(objects), Ordering::AcqRel);
        part.next.store(shard.next_age().unwrap_or(NOTHING), Ordering::Relaxed);
        changed
    }
}

impl Part {
    fn new() -> Self {
        Self { shard: RwLock::default(), next: AtomicU64::new(NOTHING) }
    }
}

/// Returns the bytes that a file of this length takes on the disk.
pub(crate) fn bytes_on_disk(bytes: u64) -> u64 {
    u64::from(blocks(bytes)) * BLOCK_BYTES
}

fn blocks(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(BLOCK_BYTES).max(1)).unwrap_or(u32::MAX)
}

/// The unit in which file systems give out space.
pub(crate) const BLOCK_BYTES: u64 = 4_096;

/// Variants of one key, which share a shard: it must not become much larger than others.
pub(crate) const VARIANTS_MAX: usize = 4_096;

/// With a million objects, four thousand in each.
const SHARDS: usize = 256;

/// The age of what is next where the hand has passed all.
const NOTHING: u64 = u64::MAX;

/// Marks that one eviction takes away.
const STEPS_MAX: usize = 1_024;
