//! A part of the index: its objects by name, in a queue by age, and those of a key that has variants in a list.

use std::sync::atomic::{AtomicBool, Ordering};

use kettle_kernel::bug;

use super::slot::{Place, Slot};
use super::table::{Slots, Table};
use super::{BLOCK_BYTES, Entry, VARIANTS_MAX};
use crate::name::{HASH_BYTES, Name};

/// Objects that share a lock.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) by_name: Table<Name>,
    /// The newest variant of each key that has any, by the key's hash.
    pub(super) variants: Table<[u8; HASH_BYTES]>,
    pub(super) slots: Slots,
    /// Slots without an object, for the next ones.
    free: Vec<Place>,
    newest: Option<Place>,
    oldest: Option<Place>,
    /// The entry at which the hand arrives next; nothing where it has passed all that is here.
    hand: Option<Place>,
    blocks: u64,
}

impl Shard {
    /// An object, which is used.
    pub(super) fn used(&self, name: Name) -> Option<Entry> {
        let slot = self.named(name)?;
        // Written only once between two turns of the hand: processors share what they only read.
        if !slot.is_used.load(Ordering::Relaxed) {
            slot.is_used.store(true, Ordering::Relaxed);
        }
        let is_checked = slot.is_checked.load(Ordering::Relaxed);
        Some(Entry { serial: slot.serial, bytes: u64::from(slot.blocks) * BLOCK_BYTES, is_checked })
    }

    pub(super) fn serial(&self, name: Name) -> Option<u64> {
        self.named(name).map(|slot| slot.serial)
    }

    pub(super) fn is_checked(&self, name: Name, serial: u64) -> bool {
        self.is(name, serial).is_some_and(|slot| slot.is_checked.load(Ordering::Relaxed))
    }

    pub(super) fn set_checked(&self, name: Name, serial: u64) {
        if let Some(slot) = self.is(name, serial) {
            slot.is_checked.store(true, Ordering::Relaxed);
        }
    }

    /// Blocks and objects.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.blocks, self.by_name.len() as u64)
    }

    pub(super) fn newest_variant(&self, key: Name) -> Option<Name> {
        let [key, _] = key.parts();
        self.slot(*self.variants.get(&key)?).map(|slot| slot.name)
    }

    /// Notes an object that is younger than all others. The caller has removed any other of its name.
    pub(super) fn insert(&mut self, name: Name, blocks: u32, age: u64) -> u64 {
        let serial = age << RENEWALS_BITS;
        let Some(at) = self.free.pop().or_else(|| Place::new(self.slots.len())) else {
            // More than four billion: it is found on the disk as it was before the first scan, and counts for nothing.
            return serial;
        };
        let slot = Slot {
            name,
            serial,
            blocks,
            newer: None,
            older: self.newest,
            newer_variant: None,
            older_variant: None,
            variants: 0,
            is_used: AtomicBool::new(false),
            is_checked: AtomicBool::new(false),
        };
        match self.slots.get_mut(at.at()) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        if !name.is_first() {
            self.link_variant(name, at);
        }
        match self.slot_mut(self.newest) {
            Some(newest) => newest.newer = Some(at),
            None => self.oldest = Some(at),
        }
        self.newest = Some(at);
        self.hand = self.hand.or(Some(at));
        self.blocks += u64::from(blocks);
        self.by_name.insert(name, at);
        serial
    }

    /// Gives an object another number, if it has this one. It keeps its age, unless it was renewed more often than is counted.
    pub(super) fn renew(
        &mut self,
        name: Name,
        serial: u64,
        age: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let at = self.by_name.get(&name).copied();
        let slot = self.slot_mut(at).filter(|slot| slot.serial == serial)?;
        let next = serial + 1;
        let blocks = slot.blocks;
        if next >> RENEWALS_BITS == serial >> RENEWALS_BITS {
            slot.serial = next;
            return Some(next);
        }
        self.remove(name);
        Some(self.insert(name, blocks, age()))
    }

    pub(super) fn remove(&mut self, name: Name) -> bool {
        let Some(at) = self.by_name.remove(&name) else { return false };
        let Some(slot) = self.slot(at) else { return false };
        let newer = slot.newer;
        let older = slot.older;
        let blocks = slot.blocks;
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
            self.unlink_variant(name, at);
        }
        self.blocks -= u64::from(blocks);
        self.free.push(at);
        true
    }

    /// The oldest variant of a key that has more than it may.
    pub(super) fn surplus_variant(&self, key: Name) -> Option<Name> {
        let [key, _] = key.parts();
        let newest = self.slot(*self.variants.get(&key)?)?;
        let oldest = self.slot(newest.newer_variant?)?;
        (usize::from(newest.variants) > VARIANTS_MAX).then_some(oldest.name)
    }

    fn link_variant(&mut self, name: Name, at: Place) {
        let [key, _] = name.parts();
        let older = self.variants.insert(key, at);
        let (oldest, variants) = match self.slot_mut(older) {
            Some(older) => (older.newer_variant.replace(at), older.variants),
            None => (Some(at), 0),
        };
        if let Some(slot) = self.slot_mut(Some(at)) {
            slot.newer_variant = oldest;
            slot.older_variant = older;
            slot.variants = variants.saturating_add(1);
        }
    }

    fn unlink_variant(&mut self, name: Name, at: Place) {
        let [key, _] = name.parts();
        let Some(slot) = self.slot(at) else { return };
        let newer = slot.newer_variant;
        let older = slot.older_variant;
        let newest = self.variants.get(&key).copied();
        let Some(variants) = self.slot_mut(newest).map(|newest| newest.variants) else { return };
        if let Some(older) = self.slot_mut(older) {
            older.newer_variant = newer;
        }
        let newest = match (newest == Some(at), older) {
            (true, None) => {
                self.variants.remove(&key);
                return;
            }
            (true, Some(older)) => {
                self.variants.insert(key, older);
                Some(older)
            }
            (false, older) => {
                if let Some(newer) = self.slot_mut(newer) {
                    newer.older_variant = older;
                }
                newest
            }
        };
        let has_oldest = older.is_none();
        if let Some(newest) = self.slot_mut(newest) {
            newest.variants = variants.checked_sub(1).unwrap_or_else(|| {
                let _ = bug!("a variant that goes was counted");
                0
            });
            if has_oldest {
                newest.newer_variant = newer;
            }
        }
    }

    /// The age of what the hand comes to next.
    pub(super) fn next_age(&self) -> Option<u64> {
        self.slot(self.hand?).map(|slot| slot.serial >> RENEWALS_BITS)
    }

    /// Moves the hand by one object, which loses its mark; or goes if it had none, or `in_any_case`.
    pub(super) fn step(&mut self, in_any_case: bool) -> Option<(Name, u32)> {
        let slot = self.slot_mut(self.hand)?;
        let newer = slot.newer;
        let name = slot.name;
        let blocks = slot.blocks;
        let is_used = std::mem::take(slot.is_used.get_mut());
        self.hand = newer;
        if is_used && !in_any_case {
            return None;
        }
        self.remove(name);
        Some((name, blocks))
    }

    /// Puts the hand to the oldest.
    pub(super) fn turn_back(&mut self) {
        self.hand = self.oldest;
    }

    fn named(&self, name: Name) -> Option<&Slot> {
        self.slot(*self.by_name.get(&name)?)
    }

    fn is(&self, name: Name, serial: u64) -> Option<&Slot> {
        self.named(name).filter(|slot| slot.serial == serial)
    }

    fn slot(&self, place: Place) -> Option<&Slot> {
        self.slots.get(place.at())
    }

    fn slot_mut(&mut self, place: Option<Place>) -> Option<&mut Slot> {
        self.slots.get_mut(place?.at())
    }
}

/// A million renewals of an object, and more objects than any life sees.
const RENEWALS_BITS: u32 = 20;
