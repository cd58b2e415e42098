//! The description of settings, from which the reference page and the schema are written.

use std::time::Duration;

use super::rules::TextRule;

/// A table of settings.
pub(crate) struct Section {
    /// The subject of the table.
    pub(crate) about: &'static str,
    /// Its settings in the order of declaration.
    pub(crate) settings: Vec<Setting>,
}

/// One setting of a table.
pub(crate) struct Setting {
    /// Its key in the file.
    pub(crate) name: &'static str,
    /// Its documentation.
    pub(crate) doc: &'static str,
    /// The values it takes.
    pub(crate) shape: ValueShape,
    /// The value when it is not written.
    pub(crate) default_value: DefaultText,
    /// The words of its table's `kind` under which it may be written; none if under all.
    pub(crate) only_with: Vec<&'static str>,
}

/// The value when a setting is not written.
#[derive(Clone)]
pub(crate) enum DefaultText {
    /// It must be written.
    Required,
    /// This value, as it would be written in the file.
    Value(String),
    /// No value; the text says what that means.
    Unset(&'static str),
}

/// The values a setting takes.
pub(crate) enum ValueShape {
    Flag,
    Number {
        min: u64,
        max: u64,
        unit: &'static str,
    },
    /// One of a few numbers.
    OneNumber(&'static [u16]),
    Size {
        min: u64,
        max: u64,
    },
    Duration {
        min: Duration,
        max: Duration,
    },
    Word(Vec<(&'static str, &'static str)>),
    Text(&'static TextRule),
    Address {
        example: &'static str,
    },
    Path,
    List {
        of: Box<ValueShape>,
        may_be_empty: bool,
    },
    /// A table whose keys the operator chooses, such as header names.
    Map {
        keys: &'static TextRule,
        values: Box<ValueShape>,
    },
    Table(fn() -> Section),
    Tables(fn() -> Section),
    /// Either of two forms.
    Either(Box<ValueShape>, Box<ValueShape>),
}
