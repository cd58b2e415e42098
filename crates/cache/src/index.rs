//! Which objects are there and how much they take, and which of them goes first when there is no room.
//!
//! SIEVE (NSDI 2024): a queue by age and a hand. Being used sets a mark and moves nothing, so lookups only read.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::name::{HASH_BYTES, Name};

/// The objects of a store.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: RwLock<Entries>,
    /// How often an object stopped being what its name stands for.
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Entries {
    by_name: HashMap<Name, Place>,
    /// The newest variant of each key that has any, by the key's hash.
    variants: HashMap<[u8; HASH_BYTES], Place>,
    slots: Vec<Slot>,
    /// Slots without an object, for the next ones.
    free: Vec<Place>,
    newest: Option<Place>,
    oldest: Option<Place>,
    hand: Option<Place>,
    blocks: u64,
    serial: u64,
}

/// Which slot, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(NonZeroU32);

impl Place {
    /// `None` behind the last that can be counted.
    fn new(at: usize) -> Option<Self> {
        u32::try_from(at).ok()?.checked_add(1).and_then(NonZeroU32::new).map(Self)
    }

    fn at(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// One object, in a queue by age, and in a list if it is a variant.
#[derive(Debug)]
struct Slot {
    name: Name,
    serial: u64,
    blocks: u32,
    newer: Option<Place>,
    older: Option<Place>,
    newer_variant: Option<Place>,
    older_variant: Option<Place>,
    is_used: AtomicBool,
    /// Whether its body was compared with its sum.
    is_checked: AtomicBool,
}

impl Index {
    /// Which object has this name now, by the number it got when it came. Counts as a use.
    pub(crate) fn find(&self, name: Name) -> Option<u64> {
        let entries = self.read();
        let slot = entries.slot(*entries.by_name.get(&name)?)?;
        // Written only once between two turns of the hand: processors share what they only read.
        if !slot.is_used.load(Ordering::Relaxed) {
            slot.is_used.store(true, Ordering::Relaxed);
        }
        Some(slot.serial)
    }

    /// Whether an object is still what its name stands for; that is no use of it.
    pub(crate) fn holds(&self, name: Name, serial: u64) -> bool {
        self.with_slot(name, serial, |_| ()).is_some()
    }

    /// Whether no object has this name; that is no use of one.
    pub(crate) fn lacks(&self, name: Name) -> bool {
        !self.read().by_name.contains_key(&name)
    }

    fn with_slot<T>(&self, name: Name, serial: u64, look: impl FnOnce(&Slot) -> T) -> Option<T> {
        let entries = self.read();
        let slot = entries.by_name.get(&name).and_then(|place| entries.slot(*place));
        slot.filter(|slot| slot.serial == serial).map(look)
    }

    /// Whether an object was found to be what was written.
    pub(crate) fn is_checked(&self, name: Name, serial: u64) -> bool {
        self.with_slot(name, serial, |slot| slot.is_checked.load(Ordering::Relaxed)) == Some(true)
    }

    /// Notes that an object is what was written.
    pub(crate) fn set_checked(&self, name: Name, serial: u64) {
        self.with_slot(name, serial, |slot| slot.is_checked.store(true, Ordering::Relaxed));
    }

    /// How often an object stopped being what its name stands for: as long as this is the same, all are that were. Takes no lock.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notes an object of `bytes` in place of any other of its name.
    pub(crate) fn insert(&self, name: Name, bytes: u64) -> u64 {
        let mut entries = self.write();
        if entries.remove(name) {
            self.changed();
        }
        entries.insert(name, bytes)
    }

    /// Notes an object that was found on the disk; not if one of its name is known, which may be another.
    pub(crate) fn insert_found(&self, name: Name, bytes: u64) -> Option<u64> {
        let mut entries = self.write();
        let is_known = entries.by_name.contains_key(&name);
        (!is_known).then(|| entries.insert(name, bytes))
    }

    /// Gives an object a new number, if it is still the one with this number.
    pub(crate) fn renew(&self, name: Name, serial: u64) -> Option<u64> {
        let mut entries = self.write();
        let next = entries.serial + 1;
        let at = *entries.by_name.get(&name)?;
        let slot = entries.slots.get_mut(at.at()).filter(|slot| slot.serial == serial)?;
        slot.serial = next;
        entries.serial = next;
        self.changed();
        Some(next)
    }

    /// Forgets an object; with a number, only if it is still that one.
    pub(crate) fn remove(&self, name: Name, serial: Option<u64>) -> bool {
        let mut entries = self.write();
        let Some(at) = entries.by_name.get(&name).copied() else { return false };
        let found = entries.slot(at).map(|slot| slot.serial);
        if serial.is_some() && found != serial {
            return false;
        }
        entries.remove(name);
        self.changed();
        true
    }

    /// Forgets some of a key's variants, no more than `at_most`, and says which they were.
    pub(crate) fn take_variants(&self, key: Name, at_most: usize) -> Vec<Name> {
        let mut entries = self.write();
        let mut taken = Vec::new();
        while taken.len() < at_most
            && let Some(name) = entries.newest_variant(key)
            && entries.remove(name)
        {
            taken.push(name);
        }
        if !taken.is_empty() {
            self.changed();
        }
        taken
    }

    /// Forgets the object that is needed least, and says which it was and how much it took.
    pub(crate) fn evict(&self) -> Option<(Name, u64)> {
        let mut entries = self.write();
        self.changed();
        entries.evict()
    }

    /// How much all objects take.
    pub(crate) fn bytes(&self) -> u64 {
        self.read().blocks * BLOCK_BYTES
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.read().by_name.len()
    }

    /// Counts a change while the lock is held: whoever sees the new number and looks then, sees the change.
    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn slot(&self, place: Place) -> Option<&Slot> {
        self.slots.get(place.at())
    }

    fn slot_mut(&mut self, place: Option<Place>) -> Option<&mut Slot> {
        self.slots.get_mut(place?.at())
    }

    fn newest_variant(&self, key: Name) -> Option<Name> {
        let [key, _] = key.parts();
        self.slot(*self.variants.get(&key)?).map(|slot| slot.name)
    }

    fn insert(&mut self, name: Name, bytes: u64) -> u64 {
        self.serial += 1;
        let Some(at) = self.free.pop().or_else(|| Place::new(self.slots.len())) else {
            // More than four billion: it is found on the disk as it was before the first scan, and counts for nothing.
            return self.serial;
        };
        let blocks = blocks(bytes);
        let [key, _] = name.parts();
        let older_variant = if name.is_first() { None } else { self.variants.insert(key, at) };
        let slot = Slot {
            name,
            serial: self.serial,
            blocks,
            newer: None,
            older: self.newest,
            newer_variant: None,
            older_variant,
            is_used: AtomicBool::new(false),
            is_checked: AtomicBool::new(false),
        };
        match self.slots.get_mut(at.at()) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        if let Some(older) = self.slot_mut(older_variant) {
            older.newer_variant = Some(at);
        }
        match self.slot_mut(self.newest) {
            Some(newest) => newest.newer = Some(at),
            None => self.oldest = Some(at),
        }
        self.newest = Some(at);
        self.blocks += u64::from(blocks);
        self.by_name.insert(name, at);
        self.serial
    }

    fn remove(&mut self, name: Name) -> bool {
        let Some(at) = self.by_name.remove(&name) else { return false };
        let Some(slot) = self.slot(at) else { return false };
        let (newer, older, blocks) = (slot.newer, slot.older, slot.blocks);
        let (newer_variant, older_variant) = (slot.newer_variant, slot.older_variant);
        match self.slot_mut(newer) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.slot_mut(older) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        if self.hand == Some(at) {
            self.hand = newer;
        }
        if !name.is_first() {
            self.unlink_variant(name, newer_variant, older_variant);
        }
        self.blocks -= u64::from(blocks);
        self.free.push(at);
        true
    }

    fn unlink_variant(&mut self, name: Name, newer: Option<Place>, older: Option<Place>) {
        let [key, _] = name.parts();
        if let Some(older) = self.slot_mut(older) {
            older.newer_variant = newer;
        }
        match (self.slot_mut(newer), older) {
            (Some(newer), _) => newer.older_variant = older,
            (None, Some(older)) => _ = self.variants.insert(key, older),
            (None, None) => _ = self.variants.remove(&key),
        }
    }

    /// Goes from old to new, takes marks away, and takes the first object without one. Work is bounded: after [`STEPS_MAX`]
    /// marks the next object goes whether it has one or not.
    fn evict(&mut self) -> Option<(Name, u64)> {
        for step in 0..=STEPS_MAX {
            let at = self.hand.or(self.oldest)?;
            let slot = self.slot_mut(Some(at))?;
            let (newer, name, blocks) = (slot.newer, slot.name, slot.blocks);
            let is_used = std::mem::take(slot.is_used.get_mut());
            self.hand = newer;
            if !is_used || step == STEPS_MAX {
                self.remove(name);
                return Some((name, u64::from(blocks) * BLOCK_BYTES));
            }
        }
        None
    }
}

/// How much of the disk a file of this length takes.
pub(crate) fn bytes_on_disk(bytes: u64) -> u64 {
    u64::from(blocks(bytes)) * BLOCK_BYTES
}

fn blocks(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(BLOCK_BYTES).max(1)).unwrap_or(u32::MAX)
}

/// What file systems give out at a time.
const BLOCK_BYTES: u64 = 4_096;

/// Marks that one eviction takes away.
const STEPS_MAX: usize = 1_024;
