//! Which of many rules may fit a path: found by what the path is, begins with or ends with, at the same cost for ten and for ten
//! thousand.
//!
//! A rule is any thing with a number: a route, a redirect, a pattern. The index only leaves out rules that cannot fit. Its user
//! holds the path against each candidate in the order of their numbers, so that the first rule decides, of whatever kind it is.

use std::cmp::Ordering;
use std::collections::HashMap;

/// The form of the paths that a rule fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKey<'k> {
    /// It is this text.
    Whole(&'k str),
    /// It begins and ends so; each may be empty.
    Ends {
        /// The beginning.
        begins: &'k str,
        /// The end.
        ends: &'k str,
    },
}

impl<'k> PathKey<'k> {
    /// Whatever it is.
    pub const ANY: Self = Self::begins("");

    /// It begins so.
    #[must_use]
    pub const fn begins(begins: &'k str) -> Self {
        Self::Ends { begins, ends: "" }
    }
}

/// An index of rules, numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleIndex {
    rules: u32,
    /// None where there are so few rules that all are candidates.
    found: Option<Box<Found>>,
}

/// Each rule stands in one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    by_whole: Texts,
    by_beginning: Texts,
    /// By texts that are written backwards.
    by_end: Texts,
    others: Box<[u32]>,
}

impl RuleIndex {
    /// The index of rules with these keys, in the order of their numbers.
    #[must_use]
    pub fn new<'k>(keys: impl IntoIterator<Item = PathKey<'k>>) -> Self {
        let keys: Vec<PathKey<'k>> = keys.into_iter().collect();
        let rules = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        Self { rules, found: (keys.len() > FEW_RULES).then(|| Box::new(Found::of(&keys))) }
    }

    /// The number of the first rule that may fit and does. Nothing is allocated.
    pub fn first(&self, path: &str, mut fits: impl FnMut(usize) -> bool) -> Option<usize> {
        match &self.found {
            // The short way of most sites, which have a route or two.
            None => (0..self.rules as usize).find(|number| fits(*number)),
            Some(_) => self.candidates(path).find(|number| fits(*number)),
        }
    }

    /// The numbers of all rules that may fit a path, in order.
    #[must_use]
    pub fn candidates<'i>(&'i self, path: &str) -> Candidates<'i> {
        let sources = self.found.as_ref().map(|found| {
            let forwards = Reading::forwards(path);
            let backwards = Reading::backwards(path);
            let beginning = &found.by_beginning;
            let end = &found.by_end;
            Sources {
                lists: [found.by_whole.equal(&forwards), &found.others],
                chains: [
                    Chain { texts: beginning, deepest: beginning.deepest(&forwards) },
                    Chain { texts: end, deepest: end.deepest(&backwards) },
                ],
            }
        });
        Candidates { rules: self.rules, from: 0, sources }
    }

    /// The numbers of the most rules, in order, that one path may have to be held against. Those that are a whole text count
    /// nothing, because the first of them fits.
    #[must_use]
    pub fn largest_crowd(&self) -> Vec<usize> {
        let Some(found) = &self.found else { return Vec::new() };
        let mut crowd = found.others.to_vec();
        for texts in [&found.by_beginning, &found.by_end] {
            let chain = Chain { texts, deepest: texts.most_crowded() };
            crowd.extend(chain.groups().flatten());
        }
        crowd.sort_unstable();
        crowd.into_iter().map(|number| number as usize).collect()
    }
}

/// The candidates of a path. Each step looks for the lowest number that was not given yet.
#[derive(Clone, Debug)]
pub struct Candidates<'i> {
    rules: u32,
    /// The lowest number that may come next.
    from: u32,
    /// None where all rules are candidates.
    sources: Option<Sources<'i>>,
}

/// Numbers of candidates, each in one place.
#[derive(Clone, Debug)]
struct Sources<'i> {
    lists: [&'i [u32]; 2],
    chains: [Chain<'i>; 2],
}

impl Candidates<'_> {
    /// Those behind this number.
    #[must_use]
    pub fn behind(mut self, number: usize) -> Self {
        self.from = u32::try_from(number).map_or(u32::MAX, |number| number.saturating_add(1));
        self
    }
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let next = match &self.sources {
            None => Some(self.from).filter(|from| *from < self.rules),
            Some(Sources { lists, chains }) => {
                let groups = chains.iter().flat_map(Chain::groups).chain(*lists);
                groups.filter_map(|numbers| first_from(numbers, self.from)).min()
            }
        }?;
        self.from = next + 1;
        Some(next as usize)
    }
}

/// The first of these numbers, which are in order, that is not below another.
fn first_from(numbers: &[u32], from: u32) -> Option<u32> {
    let below = numbers.partition_point(|number| *number < from);
    numbers.get(below).copied()
}

impl Found {
    fn of(keys: &[PathKey<'_>]) -> Self {
        let mut begin = HashMap::new();
        let mut end = HashMap::new();
        for key in keys {
            if let PathKey::Ends { begins, ends } = key {
                *begin.entry(*begins).or_insert(0_usize) += 1;
                *end.entry(*ends).or_insert(0_usize) += 1;
            }
        }
        let mut whole = Vec::new();
        let mut beginnings = Vec::new();
        let mut endings = Vec::new();
        let mut others = Vec::new();
        for (number, key) in (0..).zip(keys) {
            match *key {
                PathKey::Whole(text) => whole.push((Reading::forwards(text), number)),
                PathKey::Ends { begins: "", ends: "" } => others.push(number),
                // The one that fewer rules share.
                PathKey::Ends { begins, ends } => {
                    let is_rarer = begin.get(begins) <= end.get(ends);
                    match ends.is_empty() || (is_rarer && !begins.is_empty()) {
                        true => beginnings.push((Reading::forwards(begins), number)),
                        false => endings.push((Reading::backwards(ends), number)),
                    }
                }
            }
        }
        Self {
            by_whole: Texts::of(whole),
            by_beginning: Texts::of(beginnings),
            by_end: Texts::of(endings),
            others: others.into(),
        }
    }
}

/// A text as it is read: from the front, or from the back.
#[derive(Clone, Copy, Debug)]
struct Reading<'t> {
    text: &'t [u8],
    is_backwards: bool,
}

impl<'t> Reading<'t> {
    fn forwards(text: &'t str) -> Self {
        Self { text: text.as_bytes(), is_backwards: false }
    }

    fn backwards(text: &'t str) -> Self {
        Self { text: text.as_bytes(), is_backwards: true }
    }

    fn bytes(&self) -> Vec<u8> {
        let bytes = self.text.iter().copied();
        if self.is_backwards { bytes.rev().collect() } else { bytes.collect() }
    }

    fn cmp(&self, key: &[u8]) -> Ordering {
        match self.is_backwards {
            true => self.text.iter().rev().cmp(key),
            false => self.text.cmp(key),
        }
    }

    /// The number of bytes it has in common with a key, from where both begin.
    fn common(&self, key: &[u8]) -> usize {
        let is_same = |(one, other): &(&u8, &u8)| one == other;
        match self.is_backwards {
            true => self.text.iter().rev().zip(key).take_while(is_same).count(),
            false => self.text.iter().zip(key).take_while(is_same).count(),
        }
    }
}

/// Texts in order, each once, with the numbers of the rules that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Texts {
    entries: Box<[Entry]>,
    bytes: Box<[u8]>,
    numbers: Box<[u32]>,
}

/// A text. It and its numbers end where they say, and begin where those of the entry before end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    bytes_end: u32,
    numbers_end: u32,
    /// The longest other text that it begins with, which stands further to the front.
    enclosing: Option<Place>,
}

/// The place of an entry.
type Place = u32;

impl Texts {
    fn of(rules: Vec<(Reading<'_>, u32)>) -> Self {
        let mut rules: Vec<(Vec<u8>, u32)> =
            rules.into_iter().map(|(text, number)| (text.bytes(), number)).collect();
        rules.sort_unstable();
        let (mut entries, mut numbers): (Vec<Entry>, Vec<u32>) = Default::default();
        let mut bytes: Vec<u8> = Vec::new();
        // The texts that the last one begins with, and itself.
        let mut open: Vec<(Place, &[u8])> = Vec::new();
        for (text, number) in &rules {
            numbers.push(*number);
            let numbers_end = end(numbers.len());
            if let (Some((_, last)), Some(entry)) = (open.last(), entries.last_mut())
                && *last == text.as_slice()
            {
                entry.numbers_end = numbers_end;
                continue;
            }
            while open.last().is_some_and(|(_, other)| !text.starts_with(other)) {
                open.pop();
            }
            bytes.extend_from_slice(text);
            let enclosing = open.last().map(|(place, _)| *place);
            open.push((end(entries.len()), text));
            entries.push(Entry { bytes_end: end(bytes.len()), numbers_end, enclosing });
        }
        Self { entries: entries.into(), bytes: bytes.into(), numbers: numbers.into() }
    }

    fn entry(&self, place: usize) -> Entry {
        self.entries.get(place).copied().unwrap_or_default()
    }

    fn before(&self, place: usize) -> Entry {
        place.checked_sub(1).map_or_else(Entry::default, |before| self.entry(before))
    }

    fn text(&self, place: usize) -> &[u8] {
        let start = self.before(place).bytes_end;
        let end = self.entry(place).bytes_end;
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    fn numbers(&self, place: usize) -> &[u32] {
        let start = self.before(place).numbers_end;
        let end = self.entry(place).numbers_end;
        self.numbers.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The place behind all texts that are not greater.
    fn behind(&self, path: &Reading<'_>) -> usize {
        let mut low = 0;
        let mut high = self.entries.len();
        while low < high {
            let middle = low.midpoint(high);
            match path.cmp(self.text(middle)) {
                Ordering::Less => high = middle,
                Ordering::Equal | Ordering::Greater => low = middle + 1,
            }
        }
        low
    }

    fn equal(&self, path: &Reading<'_>) -> &[u32] {
        let found = self.behind(path).checked_sub(1);
        let found = found.filter(|place| path.cmp(self.text(*place)) == Ordering::Equal);
        found.map_or(&[], |place| self.numbers(place))
    }

    /// The longest text that the path begins with. Of the texts that are not greater than the path the last one begins with all
    /// that the path begins with, since whatever lies between one of them and the path begins with it, too.
    fn deepest(&self, path: &Reading<'_>) -> Option<Place> {
        let last = self.behind(path).checked_sub(1)?;
        let common = path.common(self.text(last));
        let mut place = Some(end(last));
        while let Some(longer) = place.filter(|it| self.text(*it as usize).len() > common) {
            place = self.entry(longer as usize).enclosing;
        }
        place
    }

    /// The text for which a path has the most candidates.
    fn most_crowded(&self) -> Option<Place> {
        let mut crowds: Vec<usize> = Vec::with_capacity(self.entries.len());
        for (place, entry) in self.entries.iter().enumerate() {
            let around = entry.enclosing.and_then(|it| crowds.get(it as usize)).copied();
            crowds.push(self.numbers(place).len() + around.unwrap_or(0));
        }
        (0..).zip(&crowds).max_by_key(|(_, crowd)| **crowd).map(|(place, _)| place)
    }
}

/// A text, and all that it begins with.
#[derive(Clone, Copy, Debug)]
struct Chain<'i> {
    texts: &'i Texts,
    deepest: Option<Place>,
}

impl<'i> Chain<'i> {
    /// The numbers of each text in it.
    fn groups(&self) -> impl Iterator<Item = &'i [u32]> + use<'i> {
        let texts = self.texts;
        let enclosing = move |place: &Place| texts.entry(*place as usize).enclosing;
        std::iter::successors(self.deepest, enclosing)
            .map(move |place| texts.numbers(place as usize))
    }
}

/// A configuration file has fewer bytes than this can count.
fn end(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// To hold a path against so few rules costs less than to look for candidates.
const FEW_RULES: usize = 8;

#[cfg(test)]
mod tests;
