//! Walks the parsed document, collects every mistake and goes on after each.
//!
//! A setting that cannot be read gets its default, so that the ones after it are still looked at;
//! the configuration is only handed out when nothing was found.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::{Diagnostic, Help};
use crate::located::Located;
use crate::origin::Origins;
use crate::source::{Places, Source};

/// A value of the document, with the names it is known by.
pub(crate) struct Item<'i> {
    /// Keys and list indexes from the top to here: `site.0.route.2.prefix`.
    trail: String,
    /// The last key that is no number, as it is written: `prefix`, `"*.css"`.
    name: String,
    value: &'i DeValue<'i>,
    span: Range<usize>,
}

impl<'i> Item<'i> {
    /// The document as a whole.
    pub(crate) fn document(value: &'i DeValue<'i>) -> Self {
        Self { trail: String::new(), name: "the file".to_owned(), value, span: 0..0 }
    }

    /// Returns the value in it, under the name `step`.
    pub(crate) fn below(&self, step: &str, value: &'i Spanned<DeValue<'i>>) -> Self {
        let dot = if self.trail.is_empty() { "" } else { "." };
        let trail = format!("{}{dot}{step}", self.trail);
        let name = if is_index(step) { self.name.clone() } else { as_written(step) };
        Self { trail, name, value: value.get_ref(), span: value.span() }
    }

    /// The key of the setting; for an element of a list the key of the list.
    pub(crate) fn name(&self) -> &str {
        &self.name
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

/// A key with the quotes it needs.
fn as_written(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { format!("{key:?}") }
}

/// The key of an entry and where it stands.
pub(crate) struct Key<'i> {
    pub(crate) text: &'i str,
    pub(crate) span: Range<usize>,
}

/// Collects diagnostics, and the places of settings for the checks across settings.
pub(crate) struct Reader<'s> {
    source: &'s Source,
    origins: &'s Origins,
    diagnostics: Vec<Diagnostic>,
    places: Places,
    /// Settings that are written but could not be read: they have their default.
    unread: BTreeSet<String>,
    /// True if values are read only for their mistakes.
    pub(crate) is_rehearsal: bool,
    /// True if broken statements were left out, so that nothing can be called missing.
    pub(crate) is_partial: bool,
    /// The headers of the tables that have a setting of this name.
    pub(crate) tables_with: fn(&str) -> Vec<String>,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(
        source: &'s Source,
        origins: &'s Origins,
        is_partial: bool,
        tables_with: fn(&str) -> Vec<String>,
    ) -> Self {
        Self {
            source,
            origins,
            diagnostics: Vec::new(),
            places: Places::new(),
            unread: BTreeSet::new(),
            is_rehearsal: false,
            is_partial,
            tables_with,
        }
    }

    pub(crate) fn source(&self) -> &'s Source {
        self.source
    }

    /// Returns the name of a line in a message.
    pub(crate) fn line(&self, line: usize) -> String {
        self.origins.line(line)
    }

    /// Records a mistake in a value.
    pub(crate) fn report(&mut self, item: &Item<'_>, message: String, help: Help) {
        self.report_at(item.span(), message, help);
    }

    /// Records a mistake at any place.
    pub(crate) fn report_at(&mut self, span: &Range<usize>, message: String, help: Help) {
        self.diagnostics.push(self.source.diagnostic(span, message, help));
    }

    /// Records a mistake in a value that was read before.
    pub(crate) fn report_located<T>(&mut self, located: &Located<T>, message: String, help: Help) {
        self.diagnostics.push(self.source.finding_at(
            located.at,
            "",
            message,
            Some(help.into_text()),
        ));
    }

    /// Records that something the whole file needs is missing.
    pub(crate) fn report_missing(&mut self, message: String, help: Help) {
        let mut diagnostic = self.source.diagnostic(&(0..0), message, help);
        diagnostic.source_line = None;
        self.diagnostics.push(diagnostic);
    }

    /// Records a value of the wrong type; `takes` says which one is right.
    pub(crate) fn wrong_type(&mut self, item: &Item<'_>, takes: &str, help: Help) {
        let found = type_name(item.value());
        self.report(item, format!("`{}` takes {takes}, not {found}", item.name()), help);
    }

    /// Returns the place of the setting with this trail, if it is written and could be read.
    pub(crate) fn place(&self, trail: &str) -> Option<Range<usize>> {
        self.places.get(trail).filter(|_| !self.unread.contains(trail)).cloned()
    }

    /// Says whether the setting with this trail is written, rightly or not.
    pub(crate) fn is_written(&self, trail: &str) -> bool {
        self.places.contains_key(trail)
    }

    pub(crate) fn remember(&mut self, item: &Item<'_>) {
        if !self.is_rehearsal {
            self.places.insert(item.trail.clone(), item.span.clone());
        }
    }

    /// Records that a setting is written but could not be read.
    pub(crate) fn remember_unread(&mut self, item: &Item<'_>) {
        self.unread.insert(item.trail.clone());
    }

    /// True if what is written there could not be read.
    pub(crate) fn is_unread(&self, item: &Item<'_>) -> bool {
        self.unread.contains(&item.trail)
    }

    /// A path of the file: relative ones start from the file's folder.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.source.folder().join(path)
    }

    /// Drops what was found in parts of the file that belong to no known table.
    pub(crate) fn forget(&mut self, parts: &[Range<usize>]) {
        let lines: Vec<_> = parts
            .iter()
            .map(|part| self.source.position(part.start)..self.source.position(part.end))
            .collect();
        self.diagnostics
            .retain(|diagnostic| lines.iter().all(|part| !part.contains(&diagnostic.position())));
    }

    /// Everything found, in the order of the file, or the places of all settings.
    pub(crate) fn finish(mut self) -> Result<Places, Vec<Diagnostic>> {
        if self.diagnostics.is_empty() {
            return Ok(self.places);
        }
        self.diagnostics.sort_by_key(Diagnostic::position);
        self.diagnostics.dedup();
        Err(self.diagnostics)
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
