//! Names as sites have them, in the order in which they are found: exact, with stars in front, with a star at the end, by a regular
//! expression. SNI and `Host` are looked up in the same table.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::ops::Range;
use std::sync::Arc;

use regex::bytes::Regex;

/// The value of each name. A name that was there first stays with what it had. Trees: to compare a few names costs less than a keyed
/// hash of one.
#[derive(Clone, Debug)]
pub struct Names<T> {
    /// By whole name, in lower case.
    exact: BTreeMap<Box<[u8]>, T>,
    /// By what follows the star of `*.example.org`.
    below: BTreeMap<Box<[u8]>, T>,
    /// By what follows the stars of `**.example.org`.
    far_below: BTreeMap<Box<[u8]>, T>,
    /// By what stands before `.*` in `example.*`.
    beginnings: BTreeMap<Box<[u8]>, T>,
    /// In the order in which they are asked.
    patterns: Vec<(Arc<Regex>, T)>,
}

/// The finding for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'n, T> {
    /// The value that belongs to it.
    pub value: &'n T,
    /// By which kind of name.
    pub rank: Rank,
}

/// The rank of a site's name: how exactly it says for which names it stands. The greater is the more exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A regular expression.
    Pattern,
    /// `example.*`, with so many bytes before the star.
    Beginning(usize),
    /// `**.example.org`, with so many bytes behind the stars.
    FarBelow(usize),
    /// `*.example.org`.
    Below,
    /// The name itself.
    Exact,
}

/// The texts for which the groups of a regular expression stand in a name.
#[derive(Clone, Debug)]
pub struct NameCaptures {
    name: String,
    groups: Vec<(Box<str>, Range<usize>)>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            exact: BTreeMap::new(),
            below: BTreeMap::new(),
            far_below: BTreeMap::new(),
            beginnings: BTreeMap::new(),
            patterns: Vec::new(),
        }
    }
}

impl<T> Names<T> {
    /// Adds a name: exact, or a domain behind `*.` for the names one level below, or behind `**.` for all below. The name of the default belongs to nobody here.
    pub fn add(&mut self, name: &str, value: T) {
        let name = asked_name(name);
        let (names, name) = match (name.strip_prefix("**"), name.strip_prefix('*')) {
            _ if name == ANY_NAME => return,
            (Some(behind), _) => (&mut self.far_below, behind),
            (None, Some(behind)) => (&mut self.below, behind),
            (None, None) => (&mut self.exact, name.as_str()),
        };
        names.entry(name.as_bytes().into()).or_insert(value);
    }

    /// Adds all names that have at least one label behind this one.
    pub fn add_beginning(&mut self, beginning: &str, value: T) {
        let beginning = beginning.to_ascii_lowercase().into_bytes();
        self.beginnings.entry(beginning.into()).or_insert(value);
    }

    /// Adds all names that a regular expression fits, and that none fits which was added before.
    pub fn add_pattern(&mut self, pattern: &Arc<Regex>, value: T) {
        self.patterns.push((Arc::clone(pattern), value));
    }

    /// All that belongs to any name, in no order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let by_star = [&self.below, &self.far_below, &self.beginnings];
        let by_star = by_star.into_iter().flat_map(BTreeMap::values);
        let by_text = self.exact.values().chain(by_star);
        by_text.chain(self.patterns.iter().map(|(_, value)| value))
    }

    /// Returns the value for a name that a client asks for: the exact one first, then the longest with stars in front, then the
    /// longest with a star at its end, then the first regular expression that fits.
    pub fn find(&self, name: impl AsRef<[u8]>) -> Option<Named<'_, T>> {
        let mut buffer = [0; NAME_BYTES_MAX];
        let name = in_lower_case(name.as_ref(), &mut buffer)?;
        self.find_by_text(name).or_else(|| {
            let (_, value) = self.fitting(name)?;
            Some(Named { value, rank: Rank::Pattern })
        })
    }

    /// The groups of the regular expression by which a name is found, with what they stand for; `None` where another kind of name is
    /// found, or none.
    pub fn captures(&self, name: impl AsRef<[u8]>) -> Option<NameCaptures> {
        let mut buffer = [0; NAME_BYTES_MAX];
        let name = in_lower_case(name.as_ref(), &mut buffer)?;
        if self.patterns.is_empty() || self.find_by_text(name).is_some() {
            return None;
        }
        let (pattern, _) = self.fitting(name)?;
        let found = pattern.captures(name)?;
        let range = |number| found.get(number).map_or(0..0, |group| group.range());
        let groups = pattern.capture_names().enumerate();
        Some(NameCaptures {
            name: std::str::from_utf8(name).ok()?.to_owned(),
            groups: groups
                .filter_map(|(number, group)| Some((group?.into(), range(number))))
                .collect(),
        })
    }

    fn find_by_text(&self, name: &[u8]) -> Option<Named<'_, T>> {
        if let Some(value) = self.exact.get(name) {
            return Some(Named { value, rank: Rank::Exact });
        }
        // No label is empty.
        let dot = name.iter().position(|byte| *byte == b'.').filter(|dot| *dot > 0)?;
        if let Some(value) = self.below.get(name.get(dot..)?) {
            return Some(Named { value, rank: Rank::Below });
        }
        self.find_far_below(name, dot).or_else(|| self.find_beginning(name))
    }

    /// The longest that all of these stand for, `dot` being the first of a name.
    fn find_far_below(&self, name: &[u8], dot: usize) -> Option<Named<'_, T>> {
        if self.far_below.is_empty() {
            return None;
        }
        let dots = (dot..name.len()).filter(|dot| name.get(*dot) == Some(&b'.'));
        let behind = dots.filter_map(|dot| name.get(dot..));
        let mut found = behind.filter_map(|it| Some((self.far_below.get(it)?, it.len())));
        found.next().map(|(value, bytes)| Named { value, rank: Rank::FarBelow(bytes) })
    }

    fn find_beginning(&self, name: &[u8]) -> Option<Named<'_, T>> {
        // Behind the last dot stands a label.
        if self.beginnings.is_empty() || name.ends_with(b".") {
            return None;
        }
        let mut beginning = name;
        while let Some(dot) = beginning.iter().rposition(|byte| *byte == b'.') {
            beginning = beginning.get(..dot)?;
            if let Some(value) = self.beginnings.get(beginning) {
                return Some(Named { value, rank: Rank::Beginning(dot) });
            }
        }
        None
    }

    fn fitting(&self, name: &[u8]) -> Option<&(Arc<Regex>, T)> {
        self.patterns.iter().find(|(pattern, _)| pattern.is_match(name))
    }
}

impl NameCaptures {
    /// Returns the text of a group, in lower case. One that took no part stands for nothing. `None` if there is no group of
    /// this name.
    #[must_use]
    pub fn get(&self, group: &str) -> Option<&str> {
        let (_, range) = self.groups.iter().find(|(own, _)| &**own == group)?;
        self.name.get(range.clone())
    }
}

/// A site's name as clients ask for it: in lower case, without a dot at its end, an IPv6 address in brackets (RFC 3986 §3.2.2).
#[must_use]
pub fn asked_name(name: &str) -> String {
    match name.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => name.trim_end_matches('.').to_ascii_lowercase(),
    }
}

/// The name as the table has it; `None` if no site has one so long.
fn in_lower_case<'b>(name: &[u8], buffer: &'b mut [u8; NAME_BYTES_MAX]) -> Option<&'b [u8]> {
    let address = one_spelling(name);
    let name = address.as_deref().map_or(name, str::as_bytes);
    let name = name.strip_suffix(b".").unwrap_or(name);
    let lower = buffer.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    Some(lower)
}

/// An IPv6 address in brackets, as [`asked_name`] spells it; `None` for everything else.
fn one_spelling(host: &[u8]) -> Option<String> {
    let address = host.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let address = std::str::from_utf8(address).ok()?.parse::<Ipv6Addr>().ok()?;
    Some(format!("[{address}]"))
}

/// Stands for every name that no site has; the word is the configuration's, which this crate does not know.
pub(crate) const ANY_NAME: &str = "_";

/// The longest name that anybody can have (RFC 1035 §2.3.4).
pub const NAME_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests;
