//! Tables of settings: one, or several under the same name; and kinds made of others: settings that may be absent, must be written,
//! keep their places or are kept as something else.

use std::marker::PhantomData;

use super::{DefaultText, Section, Setting, Table, ValueShape, ValueType};
use crate::diagnostic::Help;
use crate::located::Located;
use crate::read::{Item, Reader};

/// A struct declared with `settings!`.
pub(crate) trait Settings: Default {
    /// Documentation, kinds and defaults of the settings.
    fn describe() -> Section;

    /// Reads the settings out of a table that may hold others besides.
    fn take(table: &Table<'_>, reader: &mut Reader<'_>) -> Self;

    /// Reads the table, or records that it is none.
    fn read(item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let mut names: Vec<_> = Vec::new();
        for setting in Self::describe().settings {
            if !names.contains(&setting.name) {
                names.push(setting.name);
            }
        }
        let table = Table::open(item, &names, reader)?;
        Some(Self::take(&table, reader))
    }
}

/// A table that is seldom there takes no room in the one that has it.
impl<S: Settings> Settings for Box<S> {
    fn describe() -> Section {
        S::describe()
    }

    fn take(table: &Table<'_>, reader: &mut Reader<'_>) -> Self {
        Self::new(S::take(table, reader))
    }
}

/// An enumeration declared with `variants!`: one word in the table decides which other settings it may hold.
pub(crate) trait Variants: Default {
    /// The setting that holds the word, then the settings of all variants, each once.
    fn describe() -> Vec<Setting>;

    /// Reads the word and the settings of its variant. Settings of other variants are mistakes.
    fn take(table: &Table<'_>, reader: &mut Reader<'_>) -> Self;
}

/// The settings of all variants, each once, with the words under which it may be written. One that means something else
/// under another word is another setting.
pub(crate) fn settings_by_word(variants: Vec<(&'static str, Section)>) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for (word, section) in variants {
        for mut setting in section.settings {
            let is_same =
                |other: &&mut Setting| (other.name, other.doc) == (setting.name, setting.doc);
            match settings.iter_mut().find(is_same) {
                Some(same) => same.only_with.push(word),
                None => {
                    setting.only_with.push(word);
                    settings.push(setting);
                }
            }
        }
    }
    settings
}

/// A table that may be left out.
pub(crate) fn section<S: Settings>() -> OneSection<S> {
    OneSection(PhantomData)
}

pub(crate) struct OneSection<S>(PhantomData<S>);

impl<S: Settings> ValueType for OneSection<S> {
    type Value = S;

    fn default_value(&self) -> S {
        S::default()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Table(S::describe)
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("the defaults of its settings")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<S> {
        S::read(item, reader)
    }
}

/// Any number of tables, `[[name]]`.
pub(crate) fn sections<S: Settings>() -> Sections<S> {
    Sections(PhantomData)
}

pub(crate) struct Sections<S>(PhantomData<S>);

impl<S: Settings> ValueType for Sections<S> {
    type Value = Vec<S>;

    fn default_value(&self) -> Vec<S> {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Tables(S::describe)
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("none")
    }

    /// An element that cannot be read leaves an empty one, so that indexes stay true.
    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Vec<S>> {
        if let Some(elements) = item.elements() {
            let mut sections = Vec::new();
            for element in &elements {
                reader.remember(element);
                let section = S::read(element, reader);
                if section.is_none() {
                    reader.remember_unread(element);
                }
                sections.push(section.unwrap_or_default());
            }
            return Some(sections);
        }
        let header = item.header();
        if item.value().is_table() {
            let message = format!("there may be several {header}, so its header has two brackets");
            reader.report(item, message, Help::write(format!("[{header}]")));
            return S::read(item, reader).map(|section| vec![section]);
        }
        reader.wrong_type(item, "tables", Help::write(format!("[{header}]")));
        None
    }
}

/// A setting that may be absent; `meaning` says what then holds.
pub(crate) fn optional<K: ValueType>(kind: K, meaning: &'static str) -> Optional<K> {
    Optional { kind, meaning }
}

pub(crate) struct Optional<K> {
    kind: K,
    meaning: &'static str,
}

impl<K: ValueType> ValueType for Optional<K> {
    type Value = Option<K::Value>;

    fn default_value(&self) -> Option<K::Value> {
        None
    }

    fn shape(&self) -> ValueShape {
        self.kind.shape()
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset(self.meaning)
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Option<K::Value>> {
        self.kind.read(item, reader).map(Some)
    }
}

/// A setting that must be written.
pub(crate) fn required<K: ValueType>(kind: K) -> Required<K> {
    Required { kind }
}

pub(crate) struct Required<K> {
    kind: K,
}

impl<K: ValueType> ValueType for Required<K> {
    type Value = K::Value;

    fn default_value(&self) -> K::Value {
        self.kind.default_value()
    }

    fn shape(&self) -> ValueShape {
        self.kind.shape()
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Required
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<K::Value> {
        self.kind.read(item, reader)
    }
}

/// A setting that must be written and keeps its place.
pub(crate) fn located<K: ValueType>(kind: K) -> WithPlace<K> {
    WithPlace { kind }
}

pub(crate) struct WithPlace<K> {
    kind: K,
}

impl<K: ValueType> ValueType for WithPlace<K> {
    type Value = Located<K::Value>;

    fn default_value(&self) -> Self::Value {
        Located::not_written(self.kind.default_value())
    }

    fn shape(&self) -> ValueShape {
        self.kind.shape()
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Required
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let value = self.kind.read(item, reader)?;
        Some(Located::new(value, reader.source().position(item.span().start)))
    }
}

/// A setting that is kept as what its value means.
pub(crate) fn meaning<K: ValueType, T>(kind: K, means: fn(K::Value) -> T) -> Meaning<K, T> {
    Meaning { kind, means }
}

pub(crate) struct Meaning<K: ValueType, T> {
    kind: K,
    means: fn(K::Value) -> T,
}

impl<K: ValueType, T> ValueType for Meaning<K, T> {
    type Value = T;

    fn default_value(&self) -> T {
        (self.means)(self.kind.default_value())
    }

    fn shape(&self) -> ValueShape {
        self.kind.shape()
    }

    fn default_text(&self) -> DefaultText {
        self.kind.default_text()
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<T> {
        self.kind.read(item, reader).map(self.means)
    }
}
