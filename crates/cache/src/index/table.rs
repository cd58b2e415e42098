//! A map and a list that grow in small pieces: whoever inserts holds a shard's lock, and with a million objects it would move thousands of
//! entries where a plain one becomes larger.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use crate::name::{HASH_BYTES, Name};

/// What is a hash already.
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

/// A map in several parts, each of which grows alone.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    parts: [HashMap<K, V>; PARTS],
    /// Chooses the part of a key; nobody can choose keys that all lie in one.
    secret: [u64; 2],
    len: usize,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        let hash = RandomState::new();
        Self { parts: Default::default(), secret: [0, 1].map(|it| hash.hash_one(it)), len: 0 }
    }
}

impl<K: Hashed, V> Table<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.parts.get(self.part(key))?.get(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let part = self.part(&key);
        let before = self.parts.get_mut(part)?.insert(key, value);
        self.len += usize::from(before.is_none());
        before
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
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

/// A list in pieces that never move.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T> Pieces<T> {
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / PIECE_LENGTH)?.get(at % PIECE_LENGTH)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pieces.get_mut(at / PIECE_LENGTH)?.get_mut(at % PIECE_LENGTH)
    }

    pub(super) fn push(&mut self, one: T) {
        match self.pieces.last_mut().filter(|piece| piece.len() < PIECE_LENGTH) {
            Some(piece) => piece.push(one),
            None => {
                let mut piece = Vec::with_capacity(PIECE_LENGTH);
                piece.push(one);
                self.pieces.push(piece);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        let full = self.pieces.len().saturating_sub(1) * PIECE_LENGTH;
        full + self.pieces.last().map_or(0, Vec::len)
    }
}

#[cfg(test)]
impl<K, V> Table<K, V> {
    /// How many entries its maps have room for, and how many the largest has: that many are moved when it grows.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let largest = self.parts.iter().map(HashMap::len).max();
        (self.parts.iter().map(HashMap::capacity).sum(), largest.unwrap_or(0))
    }
}

#[cfg(test)]
impl<T> Pieces<T> {
    pub(super) fn capacity(&self) -> usize {
        self.pieces.len() * PIECE_LENGTH
    }
}

/// With a million objects, five hundred entries in each part of a shard.
const PARTS: usize = 8;

/// Of slots 1 KiB.
const PIECE_LENGTH: usize = 16;
