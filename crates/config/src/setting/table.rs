//! A table of the file, matched with the settings it may hold.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{DefaultText, Setting, ValueShape, ValueType, quoted};
use crate::diagnostic::Help;
use crate::read::{Item, Reader};
use crate::{foreign, nearest};

/// A table whose settings are about to be read.
pub(crate) struct Table<'i> {
    header: String,
    span: Range<usize>,
    entries: Vec<(&'static str, Item<'i>)>,
}

impl<'i> Table<'i> {
    /// Matches the entries of a table with the settings it may hold. A misspelt key is a
    /// finding, but its value is still read as the setting that was meant.
    pub(crate) fn open(
        item: &Item<'i>,
        names: &[&'static str],
        reader: &mut Reader<'_>,
    ) -> Option<Self> {
        let Some(found) = item.entries() else {
            reader.wrong_type(item, "a table", Help::write(item.header()));
            return None;
        };
        let mut entries: Vec<(&'static str, Item<'i>)> = Vec::new();
        let mut misspelt: Vec<(&'static str, Item<'i>)> = Vec::new();
        for (key, value) in found {
            if let Some(name) = names.iter().copied().find(|name| *name == key.text) {
                entries.push((name, value));
                continue;
            }
            let meant = Meant::by(key.text, names, reader);
            let mut message = format!("`{}` is not a setting of {}", key.text, item.header());
            if matches!(meant, Meant::Nothing) {
                message.push_str(&format!(", which has: {}", names.join(", ")));
            }
            let help = match &meant {
                Meant::Setting(name) => Help::write(*name),
                Meant::Else(advice) => Help::act(advice.as_str()),
                Meant::Nothing => Help::act("remove it"),
            };
            reader.report_at(&key.span, message, help);
            if let (Meant::Setting(name), Some(value)) = (meant, spanned(item.value(), key.text)) {
                misspelt.push((name, item.below(name, value)));
            }
        }
        entries.extend(misspelt);
        Some(Self { header: item.header(), span: item.span().clone(), entries })
    }

    /// Reads one setting, or gives its default.
    pub(crate) fn setting<K: ValueType>(
        &self,
        name: &'static str,
        kind: &K,
        reader: &mut Reader<'_>,
    ) -> K::Value {
        let mut written = self.entries.iter().filter(|(key, _)| *key == name);
        let Some((_, item)) = written.next() else {
            if !reader.is_partial
                && let DefaultText::Required = kind.default_text()
            {
                let message = format!("{} needs the setting `{name}`", self.header);
                let help = format!("{name} = {}", kind.shape().example());
                reader.report_at(&self.span, message, Help::write(help));
            }
            return kind.default_value();
        };
        reader.remember(item);
        let value = match left_out(item, kind) {
            Some((message, help)) => {
                reader.report(item, message, Help::act(help));
                None
            }
            None => kind.read(item, reader),
        };
        if value.is_none() {
            reader.remember_unread(item);
        }
        let was_rehearsal = std::mem::replace(&mut reader.is_rehearsal, true);
        for (_, misspelt) in written {
            kind.read(misspelt, reader);
        }
        reader.is_rehearsal = was_rehearsal;
        value.unwrap_or_else(|| kind.default_value())
    }
}

/// Returns the advice on a value by which other servers leave a number to themselves: here its line is left out.
fn left_out<K: ValueType>(item: &Item<'_>, kind: &K) -> Option<(String, String)> {
    let written = item.as_str()?.to_ascii_lowercase();
    let is_left = LEFT_OUT.contains(&written.as_str());
    if !is_left && !NONE.contains(&written.as_str()) {
        return None;
    }
    let (ValueShape::Number { .. } | ValueShape::Size { .. } | ValueShape::Duration { .. }) =
        kind.shape()
    else {
        return None;
    };
    let without = match kind.default_text() {
        DefaultText::Unset(meaning) => format!("without it: {meaning}"),
        DefaultText::Value(value) if is_left => format!("without it, it is {value}"),
        DefaultText::Value(_) | DefaultText::Required => return None,
    };
    let message = format!("`{}` takes no \"{written}\"", item.name());
    Some((message, format!("remove the line; {without}")))
}

/// The meaning of a key that is not one of the table's.
enum Meant {
    Setting(&'static str),
    Else(String),
    Nothing,
}

impl Meant {
    fn by(key: &str, names: &[&'static str], reader: &Reader<'_>) -> Self {
        if let Some(name) = foreign::called(key, names) {
            return Self::Setting(name);
        }
        let advice = foreign::advice(key).or_else(|| {
            let own = belongs(key, "it", reader).into_iter();
            let mut foreign = foreign::names(key).iter();
            let foreign = foreign.find_map(|name| belongs(name, &format!("`{name}`"), reader));
            let places: Vec<String> = own.chain(foreign).collect();
            (!places.is_empty()).then(|| format!("write {}", places.join(", or ")))
        });
        match advice {
            Some(advice) => Self::Else(advice),
            None => nearest::closest(key, names).map_or(Self::Nothing, Self::Setting),
        }
    }
}

/// Returns the table to which a setting belongs that is in the wrong table.
fn belongs(name: &str, called: &str, reader: &Reader<'_>) -> Option<String> {
    let tables = (reader.tables_with)(name);
    (1..=TABLES_SHOWN_MAX)
        .contains(&tables.len())
        .then(|| format!("{called} below {}", tables.join(" or ")))
}

const LEFT_OUT: [&str; 3] = ["auto", "automatic", "default"];
const NONE: [&str; 5] = ["off", "none", "no", "never", "unlimited"];

/// More than so many tables are no advice.
const TABLES_SHOWN_MAX: usize = 4;

impl Table<'_> {
    /// Records the settings that are written and belong to another variant than that of `word`, the value of `key`.
    pub(crate) fn refuse_other_variants(
        &self,
        key: &str,
        word: &str,
        settings: &[Setting],
        reader: &mut Reader<'_>,
    ) {
        // A word that could not be read may have been meant for any of them.
        let is_unread =
            self.entries.iter().any(|(name, item)| *name == key && reader.is_unread(item));
        for (name, item) in &self.entries {
            let same = settings.iter().filter(|setting| setting.name == *name);
            let owners: Vec<&str> = same.flat_map(|setting| &setting.only_with).copied().collect();
            if is_unread || owners.is_empty() || owners.contains(&word) {
                continue;
            }
            let owners: Vec<String> = owners.into_iter().map(quoted).collect();
            let message = format!(
                "only a {} with {key} = {} uses `{name}`",
                self.header,
                owners.join(" or ")
            );
            // Those of a backend are about its servers.
            let mut others = (reader.tables_with)(name);
            others.retain(|table| *table != self.header && !table.contains("backend"));
            reader.report(
                item,
                message,
                Help::act(match others.as_slice() {
                    [] => "remove it here".to_owned(),
                    others => format!("remove it here, or write it below {}", others.join(" or ")),
                }),
            );
        }
    }
}

/// The value of a key as it stands in the document.
fn spanned<'i>(table: &'i DeValue<'i>, key: &str) -> Option<&'i Spanned<DeValue<'i>>> {
    let table: &'i DeTable<'i> = table.as_table()?;
    let mut entries = table.iter();
    let found = entries.find(|(name, _): &(&Spanned<DeString<'i>>, _)| name.get_ref() == key);
    found.map(|(_, value)| value)
}
