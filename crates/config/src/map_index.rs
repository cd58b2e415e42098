//! The value of a `[[map]]` for a text, as nginx finds it: by the whole text, by names with a star, by regular expressions.

use std::collections::HashMap;

use crate::model::{Expression, Expressions, FieldTemplate, Map, TooLarge};

/// The maps of a configuration, by their names.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    all: HashMap<Box<str>, MapIndex>,
}

impl Maps {
    /// Those of a configuration.
    #[must_use]
    pub fn new(maps: &[Map]) -> Self {
        let indexed = |map: &Map| {
            // A valid configuration has no expressions that are too large.
            Some((map.name.value.as_str().into(), MapIndex::new(map).ok()?))
        };
        Self { all: maps.iter().filter_map(indexed).collect() }
    }

    /// The map of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&MapIndex> {
        self.all.get(name)
    }
}

/// A map. A text is found in it in the same time, however many values it has.
#[derive(Clone, Debug)]
pub struct MapIndex {
    /// The text by which it chooses.
    pub of: FieldTemplate,
    /// All in small letters.
    whole: HashMap<Box<[u8]>, FieldTemplate>,
    /// `*.x` as `x`.
    below: HashMap<Box<[u8]>, FieldTemplate>,
    /// `x.*` as `x`.
    beginning: HashMap<Box<[u8]>, FieldTemplate>,
    is_of_hostnames: bool,
    set: Expressions,
    expressions: Vec<(Expression, FieldTemplate)>,
    default: FieldTemplate,
}

/// The value of a map.
#[derive(Clone, Debug)]
pub struct Chosen<'m, 't> {
    /// A text, with words and groups.
    pub text: &'m FieldTemplate,
    expression: Option<&'m Expression>,
    groups: Vec<&'t [u8]>,
}

/// A key of `values`, as it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MapKey<'k> {
    /// The whole text.
    Whole(&'k str),
    /// A name with others before it.
    Below(&'k str),
    /// A name with others behind it.
    Beginning(&'k str),
}

impl<'k> MapKey<'k> {
    /// Returns the patterns meant by a key; `.x` means two. `None` for a star where no name begins or ends.
    pub(crate) fn of(key: &'k str, is_of_hostnames: bool) -> Option<[Option<Self>; 2]> {
        if !is_of_hostnames {
            return Some([Some(Self::Whole(key)), None]);
        }
        let found = match (key.strip_prefix("*."), key.strip_suffix(".*"), key.strip_prefix('.')) {
            (Some(name), _, _) => (name, [Some(Self::Below(name)), None]),
            (_, Some(name), _) => (name, [Some(Self::Beginning(name)), None]),
            (_, _, Some(name)) => (name, [Some(Self::Whole(name)), Some(Self::Below(name))]),
            _ => return (!key.contains('*')).then_some([Some(Self::Whole(key)), None]),
        };
        let (name, keys) = found;
        (!name.is_empty() && !name.contains('*')).then_some(keys)
    }
}

impl MapIndex {
    /// That of a map.
    ///
    /// # Errors
    /// Its expressions are larger together than a set may be.
    pub fn new(map: &Map) -> Result<Self, TooLarge> {
        let mut whole = HashMap::new();
        let mut below = HashMap::new();
        let mut beginning = HashMap::new();
        for (key, said) in &map.values {
            let key = key.to_ascii_lowercase();
            for key in MapKey::of(&key, map.hostnames).into_iter().flatten().flatten() {
                let (table, name) = match key {
                    MapKey::Whole(name) => (&mut whole, name),
                    MapKey::Below(name) => (&mut below, name),
                    MapKey::Beginning(name) => (&mut beginning, name),
                };
                table.entry(name.as_bytes().into()).or_insert_with(|| said.clone());
            }
        }
        Ok(Self {
            of: map.of.clone(),
            whole,
            below,
            beginning,
            is_of_hostnames: map.hostnames,
            set: Expressions::new(map.regex.iter().map(|(expression, _)| expression))?,
            expressions: map.regex.clone(),
            default: map.default.clone(),
        })
    }

    /// Returns the value for a text.
    #[must_use]
    pub fn find<'t>(&self, text: &'t [u8]) -> Chosen<'_, 't> {
        let text = match self.is_of_hostnames {
            true => text.strip_suffix(b".").unwrap_or(text),
            false => text,
        };
        let lower = text.to_ascii_lowercase();
        if let Some(text) = self.whole.get(&*lower).or_else(|| self.by_star(&lower)) {
            return Chosen { text, expression: None, groups: Vec::new() };
        }
        let first = match text.is_empty() {
            true => None,
            false => self.set.fitting(text).next(),
        };
        match first.and_then(|first| self.expressions.get(first)) {
            Some((expression, said)) => {
                let groups = expression.groups_in(text);
                Chosen { text: said, expression: Some(expression), groups }
            }
            None => Chosen { text: &self.default, expression: None, groups: Vec::new() },
        }
    }

    /// By the longest name that others may stand before, or else behind.
    fn by_star(&self, name: &[u8]) -> Option<&FieldTemplate> {
        // Each dot is looked at, so that a text that is no name would take time by the square of its length.
        if !self.is_of_hostnames || name.len() > HOST_NAME_BYTES_MAX {
            return None;
        }
        let dots = || (0..name.len()).filter(|at| name.get(*at) == Some(&b'.'));
        let below = dots().find_map(|at| self.below.get(name.get(at + 1..)?));
        below.or_else(|| dots().rev().find_map(|at| self.beginning.get(name.get(..at)?)))
    }
}

impl<'t> Chosen<'_, 't> {
    /// Returns the text for which the group of this number or name stands.
    #[must_use]
    pub fn group(&self, name: &str) -> &'t [u8] {
        let number = self.expression.and_then(|expression| expression.group_number(name));
        number.and_then(|number| self.groups.get(number)).copied().unwrap_or_default()
    }
}

/// Longest host name (RFC 1035 §2.3.4).
const HOST_NAME_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests;
