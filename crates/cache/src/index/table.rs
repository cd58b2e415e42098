//! A map and a list that grow in small pieces: whoever inserts holds a shard's lock, and with a million objects it would move thousands of
//! entries where a plain one becomes larger.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use super::slot::{Place, Slot};
use crate::name::{HASH_BYTES, Name};

/// A key that is already a hash.
pub(super) trait Hashed: Eq + Hash {
    /// All of it, in fewer bits.
    fn word(&self) -> u128;
}

impl Hashed for [u8; HASH_BYTES] {
    fn word(&self) -> u128 {
        u128::from_le_bytes(*self)
    }
}

impl Hashed for Name {
    fn word(&self) -> u128 {
        let [key, variant] = self.parts();
        key.word() ^ variant.word()
    }
}

/// Places by name: several maps, each of which grows alone.
#[derive(Debug)]
pub(super) struct Table<K> {
    parts: [HashMap<K, Place>; PARTS],
    /// Chooses the part of a key; nobody can choose keys that all lie in one.
    secret: [u64; 2],
    len: usize,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        let hash = RandomState::new();
        Self { parts: Default::default(), secret: [0, 1].map(|it| hash.hash_one(it)), len: 0 }
    }
}

impl<K: Hashed> Table<K> {
    pub(super) fn get(&self, key: &K) -> Option<&Place> {
        self.parts.get(self.part(key))?.get(key)
    }

    pub(super) fn insert(&mut self, key: K, place: Place) -> Option<Place> {
        let part = self.part(&key);
        let before = self.parts.get_mut(part)?.insert(key, place);
        self.len += usize::from(before.is_none());
        before
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<Place> {
        let part = self.part(key);
        let removed = self.parts.get_mut(part)?.remove(key);
        self.len -= usize::from(removed.is_some());
        removed
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Multiplies by a secret and takes the highest bits (Dietzfelbinger et al., 1997).
    fn part(&self, key: &K) -> usize {
        let word = key.word();
        let [mask, factor] = self.secret;
        let spread = (word as u64 ^ (word >> 64) as u64 ^ mask).wrapping_mul(factor | 1);
        (spread >> (u64::BITS - PARTS.ilog2())) as usize
    }
}

/// Slots one behind the other, in pieces that never move.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pieces: Vec<Vec<Slot>>,
}

impl Slots {
    pub(super) fn get(&self, at: usize) -> Option<&Slot> {
        self.pieces.get(at / PIECE_SLOTS)?.get(at % PIECE_SLOTS)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Slot> {
        self.pieces.get_mut(at / PIECE_SLOTS)?.get_mut(at % PIECE_SLOTS)
    }

    pub(super) fn push(&mut self, slot: Slot) {
        match self.pieces.last_mut().filter(|piece| piece.len() < PIECE_SLOTS) {
            Some(piece) => piece.push(slot),
            None => {
                let mut piece = Vec::with_capacity(PIECE_SLOTS);
                piece.push(slot);
                self.pieces.push(piece);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        let full = self.pieces.len().saturating_sub(1) * PIECE_SLOTS;
        full + self.pieces.last().map_or(0, Vec::len)
    }
}

#[cfg(test)]
impl<K> Table<K> {
    /// The number of entries its maps have room for, and how many the largest has: that many are
    /// moved when it grows.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let largest = self.parts.iter().map(HashMap::len).max();
        (self.parts.iter().map(HashMap::capacity).sum(), largest.unwrap_or(0))
    }
}

#[cfg(test)]
impl Slots {
    pub(super) fn capacity(&self) -> usize {
        self.pieces.len() * PIECE_SLOTS
    }
}

/// With a million objects, five hundred entries in each part of a shard.
const PARTS: usize = 8;

/// 1 KiB.
const PIECE_SLOTS: usize = 16;
