//! Purges by prefix and by tag: numbers, not searches.
//!
//! Each purge takes the next generation. An object knows the generation in which it was asked for, so a purge covers all that
//! were asked for before it, those that are still arriving too. Each life of a store has generations of its own, above those
//! of the lives before it, since not every purge is written down.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::head::ObjectHead;
use crate::name::Name;

/// The objects to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purge {
    /// All variants of one key, however long that is.
    Key(Name),
    /// All objects whose keys begin so.
    Prefix(String),
    /// All objects with this tag.
    Tag(String),
}

/// The purges that still cover objects.
#[derive(Debug)]
pub(crate) struct Purges {
    generation: AtomicU64,
    /// The first generation of this life.
    life: u64,
    table: RwLock<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Objects of earlier generations are purged, whatever they are.
    floor: u64,
    tags: HashMap<Box<str>, u64>,
    /// When anything was last purged by a tag.
    last_tag: u64,
    prefixes: Vec<(Box<str>, u64)>,
    /// Those whose objects may be arriving, or may not be removed yet.
    keys: HashMap<Name, PurgedKey>,
    /// An object that is still arriving from an earlier generation may have been meant by a key
    /// that is no longer known.
    keys_floor: u64,
}

#[derive(Clone, Copy, Debug)]
struct PurgedKey {
    at: u64,
    /// True until what lookup would find has no name any more.
    may_be_there: bool,
}

impl Purges {
    /// The purges that a file of them tells of, as [`text`](Self::text) wrote it. A line that is
    /// not understood might have meant anything, so nothing older than it is used.
    pub(crate) fn read(text: &[u8]) -> Self {
        let mut table = Table::default();
        let mut last = FIRST_GENERATION;
        let mut is_damaged = false;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Some((generation, kind, text)) = parse(line) else {
                is_damaged = true;
                continue;
            };
            last = last.max(generation);
            match kind {
                "floor" => table.raise_floor(generation),
                "life" => {}
                "tag" => table.add_tag(text, generation),
                "prefix" => table.add_prefix(text, generation),
                _ => is_damaged = true,
            }
        }
        let mut life = (last / LIFE_GENERATIONS + 1) * LIFE_GENERATIONS;
        if is_damaged {
            // Which lives there were may not be known: above as many as there can have been by now.
            life = life.max(minutes_since_1970() * LIFE_GENERATIONS);
            table.raise_floor(life);
        }
        Self { generation: AtomicU64::new(life), life, table: RwLock::new(table) }
    }

    /// All that has to be known after a restart.
    pub(crate) fn text(&self) -> String {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let mut text = line(self.life, "life", "") + &line(table.floor, "floor", "");
        let prefixes = table.prefixes.iter().map(|(prefix, at)| line(*at, "prefix", prefix));
        text.extend(prefixes.chain(table.tags.iter().map(|(tag, at)| line(*at, "tag", tag))));
        text
    }

    /// Returns the lines that the file has at least: the next life begins above this one.
    pub(crate) fn first_lines(&self) -> String {
        let floor = self.table.read().unwrap_or_else(PoisonError::into_inner).floor;
        line(self.life, "life", "") + &line(floor, "floor", "")
    }

    /// Returns the generation of objects that are asked for now.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Takes note of a purge; returns the line to keep of it, if it has to outlive the process.
    pub(crate) fn add(&self, purge: &Purge) -> Option<String> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        let floor_before = table.floor;
        let kept = match purge {
            Purge::Key(key) => {
                table.add_key(*key, generation);
                None
            }
            Purge::Prefix(prefix) => {
                table.add_prefix(prefix, generation);
                Some(line(generation, "prefix", prefix))
            }
            Purge::Tag(tag) => {
                table.add_tag(tag, generation);
                Some(line(generation, "tag", tag))
            }
        };
        let floor = (table.floor > floor_before).then(|| line(table.floor, "floor", ""));
        self.generation.store(generation, Ordering::Release);
        match (kept, floor) {
            (kept, None) => kept,
            (kept, Some(floor)) => Some(kept.unwrap_or_default() + &floor),
        }
    }

    /// When a key was purged last, as far as that is still known.
    pub(crate) fn key_purged_at(&self, key: Name) -> Option<u64> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.keys.get(&key.first()).map(|purged| purged.at)
    }

    /// Notes that what lookup would find of a key was removed after it was purged in this generation.
    pub(crate) fn key_removed(&self, key: Name, purged_at: Option<u64>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(purged) = table.keys.get_mut(&key.first())
            && Some(purged.at) == purged_at
        {
            purged.may_be_there = false;
        }
    }

    /// A generation since which no purge meant a key, but by tags: what was asked for in an earlier one may have been purged, in a life
    /// before this one, too.
    pub(crate) fn unpurged_since(&self, key: &str) -> u64 {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let prefixes = table.prefixes.iter().filter(|(prefix, _)| key.starts_with(&**prefix));
        let own = table.keys.get(&Name::of_key(key)).map(|purged| purged.at);
        let all = prefixes.map(|(_, at)| *at).chain(own);
        all.fold(self.life.max(table.floor).max(table.keys_floor), u64::max)
    }

    /// True if a purge since this generation covers what was asked for under a key, or may cover it: its tags are not known yet.
    pub(crate) fn may_cover(&self, key: &str, asked_in: u64) -> bool {
        if asked_in >= self.generation() {
            return false;
        }
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        asked_in < table.keys_floor.max(table.last_tag) || table.covers_key(key, asked_in)
    }

    /// True if an object that is arriving was asked for before a purge that covers it, or may cover it.
    pub(crate) fn covers_arriving(&self, head: &ObjectHead) -> bool {
        let keys_floor = self.table.read().unwrap_or_else(PoisonError::into_inner).keys_floor;
        head.generation < keys_floor || self.covers(head)
    }

    /// True if an object was asked for before a purge that covers it.
    pub(crate) fn covers(&self, head: &ObjectHead) -> bool {
        let asked_in = head.generation;
        let last = self.generation();
        if asked_in > last {
            // From another life of this directory: no purge of this one could ever cover it.
            return true;
        }
        if asked_in == last {
            return false;
        }
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let is_purged =
            |tag: &String| table.tags.get(tag.as_str()).is_some_and(|at| asked_in < *at);
        table.covers_key(&head.key, asked_in) || head.tags.iter().any(is_purged)
    }
}

impl Table {
    /// True if what was asked for in this generation is purged whatever its tags are.
    fn covers_key(&self, key: &str, asked_in: u64) -> bool {
        let is_in = |(prefix, at): &(Box<str>, u64)| asked_in < *at && key.starts_with(&**prefix);
        asked_in < self.floor
            || self.prefixes.iter().any(is_in)
            || self.keys.get(&Name::of_key(key)).is_some_and(|purged| asked_in < purged.at)
    }

    // Where there are too many of a kind, the older half of them become one purge of everything as old; of keys whose
    // objects are gone, of everything as old that is still arriving.

    fn add_key(&mut self, key: Name, at: u64) {
        self.keys.insert(key.first(), PurgedKey { at, may_be_there: true });
        if self.keys.len() > KEYS_MAX {
            let middle = median(self.keys.values().map(|purged| &purged.at));
            match self.keys.values().any(|purged| purged.may_be_there && purged.at <= middle) {
                // A disk that lets nothing go must not bring it back.
                true => self.raise_floor(middle),
                false => {
                    self.keys_floor = self.keys_floor.max(middle);
                    self.forget_older();
                }
            }
        }
    }

    fn add_tag(&mut self, tag: &str, at: u64) {
        self.tags.insert(tag.into(), at);
        self.last_tag = self.last_tag.max(at);
        if self.tags.len() > TAGS_MAX {
            self.raise_floor(median(self.tags.values()));
        }
    }

    fn add_prefix(&mut self, prefix: &str, at: u64) {
        self.prefixes.retain(|(other, _)| !other.starts_with(prefix));
        self.prefixes.push((prefix.into(), at));
        if self.prefixes.len() > PREFIXES_MAX {
            self.raise_floor(median(self.prefixes.iter().map(|(_, at)| at)));
        }
    }

    fn raise_floor(&mut self, at: u64) {
        self.floor = self.floor.max(at);
        self.forget_older();
    }

    /// Forgets the purges that the floors stand for.
    fn forget_older(&mut self) {
        let floor = self.floor;
        let keys_floor = floor.max(self.keys_floor);
        self.keys.retain(|_, purged| purged.at > keys_floor);
        self.tags.retain(|_, at| *at > floor);
        self.prefixes.retain(|(_, at)| *at > floor);
    }
}

fn median<'n>(numbers: impl Iterator<Item = &'n u64>) -> u64 {
    let mut numbers: Vec<u64> = numbers.copied().collect();
    let middle = numbers.len() / 2;
    if numbers.is_empty() { 0 } else { *numbers.select_nth_unstable(middle).1 }
}

fn line(generation: u64, kind: &str, text: &str) -> String {
    format!("{generation} {kind} {text}\n")
}

fn parse(line: &[u8]) -> Option<(u64, &str, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let (generation, rest) = line.split_once(' ')?;
    let (kind, text) = rest.split_once(' ')?;
    // Digits only: `parse` alone would take a sign.
    let generation = generation.bytes().all(|byte| byte.is_ascii_digit()).then_some(generation)?;
    let generation = generation.parse().ok().filter(|it| *it <= GENERATION_MAX)?;
    Some((generation, kind, text))
}

fn minutes_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 60
}

impl Purge {
    /// True if keys and tags can look like that: no control characters, not empty, not endless.
    pub(crate) fn is_possible(&self) -> bool {
        match self {
            Purge::Key(_) => true,
            Purge::Prefix(text) | Purge::Tag(text) => {
                (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
            }
        }
    }
}

/// That of an empty table.
const FIRST_GENERATION: u64 = 1;

/// More purges than one life sees.
const LIFE_GENERATIONS: u64 = 1 << 32;

/// More than all lives see: a larger number was not written by us, and might leave none above it.
const GENERATION_MAX: u64 = 1 << 63;

/// Purges of each kind that are told apart. They are looked at, the prefixes one by one, when an object of an earlier
/// generation is opened.
const TAGS_MAX: usize = 65_536;
const PREFIXES_MAX: usize = 1_024;
const KEYS_MAX: usize = 16_384;

/// The longest prefix or tag.
const TEXT_BYTES_MAX: usize = 8 * 1_024;
