//! Settings written as one word or a list of words, and the words `true` and `false`.

use toml::de::DeValue;

use super::quote::quoted;
use super::section::meaning;
use super::{DefaultText, ValueShape, ValueType};
use crate::diagnostic::Help;
use crate::read::{Item, Reader};
use crate::word::Word;
use crate::{foreign, nearest};

/// `true` or `false`.
pub(crate) fn flag(default: bool) -> Flag {
    Flag { default }
}

pub(crate) struct Flag {
    default: bool,
}

impl ValueType for Flag {
    type Value = bool;

    fn default_value(&self) -> bool {
        self.default
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Flag
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(self.default.to_string())
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<bool> {
        if let DeValue::Boolean(value) = item.value() {
            return Some(*value);
        }
        let number = item.value().as_integer().map(|number| number.as_str().to_owned());
        let written = item.as_str().map(str::to_ascii_lowercase).or(number);
        let suggestion = match written.as_deref() {
            Some("on" | "yes" | "true" | "1") => "true",
            Some("off" | "no" | "false" | "0") => "false",
            _ if self.default => "false",
            _ => "true",
        };
        reader.wrong_type(item, "true or false", Help::write(suggestion));
        None
    }
}

/// One word of an enumeration.
pub(crate) fn word<W: Word>(default: W) -> OneWord<W> {
    OneWord { default }
}

pub(crate) struct OneWord<W> {
    default: W,
}

impl<W: Word> ValueType for OneWord<W> {
    type Value = W;

    fn default_value(&self) -> W {
        self.default
    }

    fn shape(&self) -> ValueShape {
        word_form::<W>()
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted(self.default.word()))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<W> {
        read_word(item, self.default.word(), reader)
    }
}

fn word_form<W: Word>() -> ValueShape {
    ValueShape::Word(W::ALL.iter().map(|value| (value.word(), value.meaning())).collect())
}

fn read_word<W: Word>(item: &Item<'_>, default: &str, reader: &mut Reader<'_>) -> Option<W> {
    let known: Vec<&'static str> = W::ALL.iter().map(|value| value.word()).collect();
    let index = read_known(&known, default, item, reader)?;
    W::ALL.get(index).copied()
}

/// Reads one of `known` and gives its index. `default` is the advice where nothing is similar.
fn read_known(
    known: &[&'static str],
    default: &str,
    item: &Item<'_>,
    reader: &mut Reader<'_>,
) -> Option<usize> {
    let takes = format!("one of {}", one_of(known));
    let Some(text) = item.as_str() else {
        reader.wrong_type(item, &takes, Help::write(quoted(default)));
        return None;
    };
    let index = known.iter().position(|word| *word == text);
    if index.is_none() {
        let help = match (meant(text, known), foreign::value_advice(text)) {
            (None, Some(advice)) => Help::act(advice),
            (word, _) => Help::write(quoted(word.unwrap_or(default))),
        };
        reader.report(item, format!("`{}` takes {takes}", item.name()), help);
    }
    index
}

/// The known word that was meant by another.
fn meant<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let foreign = foreign::value(written, known);
    foreign.or_else(|| match foreign::value_advice(written) {
        Some(_) => None,
        None => nearest::closest(written, known),
    })
}

fn one_of(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ")
}

/// A list of different words. It may be empty only if its default is.
pub(crate) fn word_list<W: Word>(default: &'static [W]) -> WordList<W> {
    WordList { default, may_be_empty: default.is_empty() }
}

/// A list of different words that may be empty, whatever its default.
pub(crate) fn word_list_or_none<W: Word>(default: &'static [W]) -> WordList<W> {
    WordList { default, may_be_empty: true }
}

pub(crate) struct WordList<W: 'static> {
    default: &'static [W],
    may_be_empty: bool,
}

impl<W: Word> WordList<W> {
    fn default_text(&self) -> String {
        list_of(self.default)
    }

    /// The list that was most likely meant by something else.
    fn meant_by(&self, item: &Item<'_>) -> String {
        let known: Vec<&str> = W::ALL.iter().map(|value| value.word()).collect();
        let off = matches!(item.value(), DeValue::Boolean(false));
        match item.as_str().and_then(|text| meant(text, &known)) {
            Some(word) => format!("[{}]", quoted(word)),
            None if self.default.is_empty() && !off => list_of(W::ALL),
            None => self.default_text(),
        }
    }
}

fn list_of<W: Word>(values: &[W]) -> String {
    let words: Vec<&str> = values.iter().map(|value| value.word()).collect();
    format!("[{}]", one_of(&words))
}

impl<W: Word> ValueType for WordList<W> {
    type Value = Vec<W>;

    fn default_value(&self) -> Vec<W> {
        self.default.to_vec()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::List { of: Box::new(word_form::<W>()), may_be_empty: self.may_be_empty }
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(self.default_text())
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Vec<W>> {
        let Some(elements) = item.elements() else {
            reader.wrong_type(item, "a list", Help::write(self.meant_by(item)));
            return None;
        };
        if elements.is_empty() && !self.may_be_empty {
            let message = format!("`{}` needs at least one entry", item.name());
            reader.report(item, message, Help::write(self.default_text()));
        }
        let first = W::ALL.first().map_or("", |word| word.word());
        let mut words = Vec::new();
        for element in &elements {
            reader.remember(element);
            let Some(word) = read_word::<W>(element, first, reader) else {
                continue;
            };
            if words.contains(&word) {
                let word = quoted(word.word());
                let message = format!("{word} stands twice in `{}`", item.name());
                reader.report(element, message, Help::act("remove one of both"));
            }
            words.push(word);
        }
        Some(words)
    }
}

/// The levels of the program's own messages.
const LEVELS: [(&str, &str); 5] = [
    ("error", "Errors that stop kettle from doing its work."),
    ("warn", "Events at which an operator should look."),
    ("info", "Starts, reloads and stops."),
    ("debug", "The events of each connection."),
    ("trace", "Everything."),
];

/// The level of the program's own messages.
pub(crate) fn level(default: &'static str) -> impl ValueType<Value = String> {
    meaning(KnownWord { words: &LEVELS, default }, str::to_owned)
}

/// One of a few words with their meanings; the first is the default.
pub(crate) fn known_word(words: &'static [(&'static str, &'static str)]) -> KnownWord {
    KnownWord { words, default: words.first().map_or("", |(word, _)| word) }
}

pub(crate) struct KnownWord {
    words: &'static [(&'static str, &'static str)],
    default: &'static str,
}

impl ValueType for KnownWord {
    type Value = &'static str;

    fn default_value(&self) -> &'static str {
        self.default
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Word(self.words.to_vec())
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted(self.default))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<&'static str> {
        let known: Vec<&'static str> = self.words.iter().map(|(word, _)| *word).collect();
        let index = read_known(&known, self.default, item, reader)?;
        known.get(index).copied()
    }
}
