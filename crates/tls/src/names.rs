//! Server names as sites have them: exact, or a wildcard for one label.

use std::collections::HashMap;

/// What belongs to each name. A name that was there first stays with what it had.
#[derive(Clone, Debug)]
pub struct Names<T> {
    exact: HashMap<Box<str>, T>,
    /// Keyed by what follows `*.`.
    wildcard: HashMap<Box<str>, T>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), wildcard: HashMap::new() }
    }
}

impl<T> Names<T> {
    /// Adds a name: exact, or `*.` and a parent domain. The name of the default belongs to nobody here.
    pub fn add(&mut self, name: &str, value: T) {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        match name.strip_prefix("*.") {
            _ if name == ANY_NAME => {}
            Some(parent) => _ = self.wildcard.entry(parent.into()).or_insert(value),
            None => _ = self.exact.entry(name.into()).or_insert(value),
        }
    }

    /// All that belongs to any name, in no order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.exact.values().chain(self.wildcard.values())
    }

    /// What belongs to a name that a client asks for: exact first, then by one label of a wildcard.
    pub fn find(&self, name: &str) -> Option<&T> {
        let name = name.strip_suffix('.').unwrap_or(name);
        // Lower case on the stack: no name is longer.
        let mut buffer = [0; NAME_BYTES_MAX];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        let name = std::str::from_utf8(lower).ok()?;

        self.exact.get(name).or_else(|| {
            let (label, parent) = name.split_once('.')?;
            (!label.is_empty()).then(|| self.wildcard.get(parent))?
        })
    }
}

/// Stands for every name that no site has; the word is the configuration's, which this crate does not know.
pub(crate) const ANY_NAME: &str = "_";

/// The longest name that anybody can have (RFC 1035 §2.3.4).
pub const NAME_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_exact_or_a_wildcard_for_one_label() {
        let mut names = Names::default();
        for (index, name) in ["a.test", "*.A.test.", "A.test", ANY_NAME].into_iter().enumerate() {
            names.add(name, index);
        }
        for (asked, found) in [
            ("a.test", Some(&0)),
            ("A.TEST.", Some(&0)),
            ("b.a.test", Some(&1)),
            ("c.b.a.test", None),
            (".a.test", None),
            ("test", None),
            (ANY_NAME, None),
            ("", None),
            (&"a".repeat(NAME_BYTES_MAX + 2), None),
        ] {
            assert_eq!(names.find(asked), found, "{asked}");
        }
        let mut values: Vec<_> = names.values().copied().collect();
        values.sort_unstable();
        assert_eq!(values, [0, 1]);
    }
}
