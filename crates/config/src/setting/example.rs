//! A value of each form as it could be written in the file.

use super::describe::ValueShape;
use super::duration::duration_text;
use super::number::size_text;
use super::quote::{bare_key, quoted};

impl ValueShape {
    /// A value as it could be written in the file.
    pub(crate) fn example(&self) -> String {
        match self {
            Self::Flag => "true".to_owned(),
            Self::Number { min, .. } => min.to_string(),
            Self::OneNumber(numbers) => numbers.first().map(u16::to_string).unwrap_or_default(),
            Self::Size { min, .. } => quoted(&size_text(*min)),
            Self::Duration { min, .. } => quoted(&duration_text(*min)),
            Self::Word(words) => quoted(words.first().map_or("", |(word, _)| word)),
            Self::Text(rule) => quoted(rule.example),
            Self::Address { example } => quoted(example),
            Self::Path => quoted("/path/to/it"),
            Self::List { of, .. } => format!("[{}]", of.example()),
            Self::Either(first, _) => first.example(),
            Self::Map { .. } => {
                self.example_entry().map_or_else(String::new, |entry| format!("{{ {entry} }}"))
            }
            Self::Table(_) | Self::Tables(_) => "{ }".to_owned(),
        }
    }

    /// An entry of a table whose keys the operator chooses.
    pub(crate) fn example_entry(&self) -> Option<String> {
        let Self::Map { keys, values } = self else {
            return None;
        };
        Some(format!("{} = {}", bare_key(keys.example), values.example()))
    }
}
