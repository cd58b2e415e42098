//! The words of other servers' configurations are here: one table, by setting and by value, for mistakes in a kettle.toml,
//! for options of command lines, and for what importers leave out.

pub(crate) mod shape;
pub(crate) mod spelling;
mod table;

use crate::nearest::plain;
use table::{SETTINGS, VALUES};

/// The meaning here of another server's word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Here {
    /// One of these words, the first that may stand where it was written.
    Called(&'static [&'static str]),
    /// The advice.
    Do(&'static str),
    /// It is not here, and why.
    Not(&'static str),
}

/// The name of another server's setting among those that are known.
pub(crate) fn called<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    first_known(find(SETTINGS, written)?, known)
}

/// The names that another server's setting may have here, wherever they stand.
pub(crate) fn names(written: &str) -> &'static [&'static str] {
    match find(SETTINGS, written) {
        Some(Here::Called(names)) => names,
        _ => &[],
    }
}

/// Returns what to write in place of another server's setting, or why it is not here.
pub(crate) fn advice(written: &str) -> Option<String> {
    find(SETTINGS, written)?.advice()
}

/// The word for another server's value among those that are known.
pub(crate) fn value<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    first_known(find(VALUES, written)?, known)
}

/// Why another server's value is not here.
pub(crate) fn value_advice(written: &str) -> Option<String> {
    match find(VALUES, written)? {
        Here::Not(why) => Some(format!("it is not here: {why}")),
        here => here.advice(),
    }
}

/// Why another server's setting is not here, in the words that importers have for it, too. Empty if the table does not say it.
#[must_use]
pub const fn not_here(name: &str) -> &'static str {
    let mut rest = SETTINGS;
    while let [(word, here), behind @ ..] = rest {
        if let Here::Not(why) = here
            && is_same(word.as_bytes(), name.as_bytes())
        {
            return why;
        }
        rest = behind;
    }
    ""
}

impl Here {
    fn advice(self) -> Option<String> {
        match self {
            Self::Called(_) => None,
            Self::Do(advice) => Some(advice.to_owned()),
            Self::Not(why) => Some(format!("remove it, it is not here: {why}")),
        }
    }
}

fn first_known<'k>(here: Here, known: &[&'k str]) -> Option<&'k str> {
    let Here::Called(names) = here else { return None };
    names.iter().find_map(|name| known.iter().find(|word| *word == name)).copied()
}

fn find(table: &[(&str, Here)], written: &str) -> Option<Here> {
    let plain = plain(written);
    table.iter().find(|(word, _)| *word == plain).map(|(_, here)| *here)
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, behind @ ..], [also, rest @ ..]) = (one, other) {
        if *first != *also {
            return false;
        }
        (one, other) = (behind, rest);
    }
    one.is_empty() && other.is_empty()
}

#[cfg(test)]
mod tests;
