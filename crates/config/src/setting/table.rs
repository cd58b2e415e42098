//! A table of the file, matched with the settings it may hold.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{DefaultText, Setting, ValueType, quoted};
use crate::diagnostic::Help;
use crate::nearest;
use crate::read::{Item, Reader};

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
            let elsewhere = nearest::elsewhere(key.text)
                .map(str::to_owned)
                .or_else(|| belongs_elsewhere(key.text, names, reader));
            let closest = nearest::closest(key.text, names).filter(|_| elsewhere.is_none());
            let mut message = format!("`{}` is not a setting of {}", key.text, item.header());
            if closest.is_none() && elsewhere.is_none() {
                message.push_str(&format!(", which has: {}", names.join(", ")));
            }
            let advice = elsewhere.unwrap_or_else(|| "remove it".to_owned());
            let help = closest.map_or_else(|| Help::act(advice), Help::write);
            reader.report_at(&key.span, message, help);
            if let (Some(name), Some(value)) = (closest, spanned(item.value(), key.text)) {
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
        let value = kind.read(item, reader);
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

/// Where a setting belongs that is in the wrong table, unless it is a word for one of this table.
fn belongs_elsewhere(key: &str, names: &[&str], reader: &Reader<'_>) -> Option<String> {
    if nearest::synonym(key, names).is_some() {
        return None;
    }
    let tables = (reader.tables_with)(key);
    (1..=TABLES_SHOWN_MAX)
        .contains(&tables.len())
        .then(|| format!("write it below {}", tables.join(" or ")))
}

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
            reader.report(item, message, Help::act("remove it here"));
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
