//! Walks the parsed document, collects every mistake and goes on after each.
//!
//! A setting that cannot be read gets its default, so that the ones after it are still looked at;
//! the configuration is only handed out when nothing was found.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::finding::Finding;
use crate::nearest;
use crate::setting::{Fallback, Kind};
use crate::source::Source;

/// A value of the document, with the names it is known by.
pub(crate) struct Item<'i> {
    /// Keys and list indexes from the top to here: `site.0.route.2.prefix`.
    trail: String,
    value: &'i DeValue<'i>,
    span: Range<usize>,
}

impl<'i> Item<'i> {
    /// The document as a whole.
    pub(crate) fn document(value: &'i DeValue<'i>) -> Self {
        Self { trail: String::new(), value, span: 0..0 }
    }

    fn below(&self, step: &str, value: &'i Spanned<DeValue<'i>>) -> Self {
        let dot = if self.trail.is_empty() { "" } else { "." };
        let trail = format!("{}{dot}{step}", self.trail);
        Self { trail, value: value.get_ref(), span: value.span() }
    }

    /// The key of the setting; for an element of a list the key of the list.
    pub(crate) fn name(&self) -> &str {
        let mut steps = self.trail.rsplit('.');
        steps.find(|step| !is_index(step)).unwrap_or("the file")
    }

    /// The table as the operator writes its header: `[[site.route]]`.
    pub(crate) fn header(&self) -> String {
        let keys: Vec<&str> = self.trail.split('.').filter(|step| !is_index(step)).collect();
        let is_element = self.trail.rsplit('.').next().is_some_and(is_index);
        match (self.trail.is_empty(), is_element) {
            (true, _) => "the top level".to_owned(),
            (false, true) => format!("[[{}]]", keys.join(".")),
            (false, false) => format!("[{}]", keys.join(".")),
        }
    }

    pub(crate) fn value(&self) -> &'i DeValue<'i> {
        self.value
    }

    pub(crate) fn span(&self) -> &Range<usize> {
        &self.span
    }

    pub(crate) fn as_str(&self) -> Option<&'i str> {
        self.value.as_str()
    }

    /// The elements of a list, or nothing if this is none.
    pub(crate) fn elements(&self) -> Option<Vec<Item<'i>>> {
        let array = self.value.as_array()?;
        let elements = array.iter().enumerate();
        Some(elements.map(|(index, value)| self.below(&index.to_string(), value)).collect())
    }

    /// The entries of a table in the order of the file, or nothing if this is none.
    pub(crate) fn entries(&self) -> Option<Vec<(Key<'i>, Item<'i>)>> {
        let mut entries: Vec<_> = self.value.as_table()?.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let with_names = entries.into_iter().map(|(key, value)| {
            let key = Key { text: key.get_ref(), span: key.span() };
            let item = self.below(key.text, value);
            (key, item)
        });
        Some(with_names.collect())
    }
}

fn is_index(step: &str) -> bool {
    !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit())
}

/// The key of an entry and where it stands.
pub(crate) struct Key<'i> {
    pub(crate) text: &'i str,
    pub(crate) span: Range<usize>,
}

/// Collects findings, and the places of settings for the checks across settings.
pub(crate) struct Reader<'s> {
    source: &'s Source,
    findings: Vec<(usize, Finding)>,
    places: BTreeMap<String, Range<usize>>,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, findings: Vec::new(), places: BTreeMap::new() }
    }

    pub(crate) fn source(&self) -> &'s Source {
        self.source
    }

    /// Records a mistake in a value.
    pub(crate) fn find(&mut self, item: &Item<'_>, message: String, instead: Option<String>) {
        self.find_at(item.span(), message, instead);
    }

    /// Records a mistake at any place.
    pub(crate) fn find_at(
        &mut self,
        span: &Range<usize>,
        message: String,
        instead: Option<String>,
    ) {
        self.findings.push((span.start, self.source.finding(span, message, instead)));
    }

    /// Records that something the whole file needs is missing.
    pub(crate) fn find_missing(&mut self, message: String, instead: Option<String>) {
        let mut finding = self.source.finding(&(0..0), message, instead);
        finding.source_line = None;
        self.findings.push((0, finding));
    }

    /// Records a value of the wrong type; `takes` says which one is right.
    pub(crate) fn wrong_type(&mut self, item: &Item<'_>, takes: &str, instead: Option<String>) {
        let found = type_name(item.value());
        self.find(item, format!("`{}` takes {takes}, not {found}", item.name()), instead);
    }

    /// Where the setting with this trail is written, if it is.
    pub(crate) fn place(&self, trail: &str) -> Option<Range<usize>> {
        self.places.get(trail).cloned()
    }

    pub(crate) fn remember(&mut self, item: &Item<'_>) {
        self.places.insert(item.trail.clone(), item.span.clone());
    }

    /// A path of the file: relative ones start from the file's folder.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.source.folder().join(path)
    }

    /// Everything found, in the order of the file.
    pub(crate) fn into_findings(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|(start, _)| *start);
        self.findings.into_iter().map(|(_, finding)| finding).collect()
    }
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

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
            reader.wrong_type(item, "a table", None);
            return None;
        };
        let is_written = |name: &str| found.iter().any(|(key, _)| key.text == name);
        let missing: Vec<&'static str> =
            names.iter().copied().filter(|name| !is_written(name)).collect();
        let mut entries: Vec<(&'static str, Item<'i>)> = Vec::new();
        for (key, value) in item.entries()? {
            if let Some(name) = names.iter().copied().find(|name| *name == key.text) {
                entries.push((name, value));
                continue;
            }
            let meant = nearest::meant(key.text, names);
            let header = item.header();
            let message = match meant {
                Some(_) => format!("`{}` is not a setting of {header}", key.text),
                None => format!(
                    "`{}` is not a setting of {header}, which has: {}",
                    key.text,
                    names.join(", ")
                ),
            };
            reader.find_at(&key.span, message, meant.map(str::to_owned));
            let unread = meant.filter(|name| {
                missing.contains(name) && entries.iter().all(|(taken, _)| taken != name)
            });
            if let Some(name) = unread {
                entries.push((name, item.below(name, spanned(item.value(), key.text)?)));
            }
        }
        Some(Self { header: item.header(), span: item.span().clone(), entries })
    }

    /// Reads one setting, or gives its default.
    pub(crate) fn setting<K: Kind>(
        &self,
        name: &'static str,
        kind: &K,
        reader: &mut Reader<'_>,
    ) -> K::Value {
        let Some((_, item)) = self.entries.iter().find(|(key, _)| *key == name) else {
            if let Fallback::Required = kind.fallback_text() {
                let message = format!("{} needs the setting `{name}`", self.header);
                let instead = format!("{name} = {}", kind.form().example());
                reader.find_at(&self.span, message, Some(instead));
            }
            return kind.fallback();
        };
        reader.remember(item);
        kind.read(item, reader).unwrap_or_else(|| kind.fallback())
    }
}

/// The value of a key as it stands in the document.
fn spanned<'i>(table: &'i DeValue<'i>, key: &str) -> Option<&'i Spanned<DeValue<'i>>> {
    let table: &'i DeTable<'i> = table.as_table()?;
    let mut entries = table.iter();
    let found = entries.find(|(name, _): &(&Spanned<DeString<'i>>, _)| name.get_ref() == key);
    found.map(|(_, value)| value)
}
