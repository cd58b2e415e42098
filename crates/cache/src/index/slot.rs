//! One object of a shard, and where it is there.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use crate::name::Name;

/// Which slot, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(NonZeroU32);

impl Place {
    /// `None` behind the last that can be counted.
    pub(super) fn new(at: usize) -> Option<Self> {
        u32::try_from(at).ok()?.checked_add(1).and_then(NonZeroU32::new).map(Self)
    }

    pub(super) fn at(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// One object, in a queue by age, and in a list if it is a variant.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) name: Name,
    /// Its age, and how often it was renewed since.
    pub(super) serial: u64,
    pub(super) blocks: u32,
    pub(super) newer: Option<Place>,
    pub(super) older: Option<Place>,
    /// Of a key's newest variant the oldest: they are in a ring.
    pub(super) newer_variant: Option<Place>,
    pub(super) older_variant: Option<Place>,
    /// Of a key's newest variant: how many it has.
    pub(super) variants: u16,
    pub(super) is_used: AtomicBool,
    /// True if its body was compared with its sum.
    pub(super) is_checked: AtomicBool,
}
