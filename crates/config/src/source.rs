//! The text of a configuration file, and the way from a byte offset to a line and column.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Excerpt, Help, SHOWN_LINE_CHARACTERS_MAX};
use crate::located::Position;

/// The place of each setting, by keys and indexes from the top: `site.0.route.2.prefix`.
pub(crate) type Places = BTreeMap<String, Range<usize>>;

/// The beginning of each setting, by a hash of its keys: what is left of [`Places`] once all is read. A name would take ten
/// times as much, and ten thousand redirects have thirty thousand. Two settings of a million have the same hash once in 30
/// million files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginnings(Arc<[(u64, u32)]>);

impl From<Places> for Beginnings {
    fn from(places: Places) -> Self {
        let all = places.into_iter();
        // Nobody writes 4 GiB.
        let begun = all.filter_map(|(name, at)| Some((hash(&name), u32::try_from(at.start).ok()?)));
        let mut beginnings: Vec<_> = begun.collect();
        beginnings.sort_unstable();
        Self(beginnings.into())
    }
}

impl Beginnings {
    /// That of one setting, if it is written.
    pub(crate) fn get(&self, setting: &str) -> Option<usize> {
        let at = self.0.binary_search_by_key(&hash(setting), |(known, _)| *known).ok()?;
        self.0.get(at).and_then(|(_, start)| usize::try_from(*start).ok())
    }
}

fn hash(setting: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    setting.hash(&mut hasher);
    hasher.finish()
}

/// A configuration file: where it is, what it says and where its lines begin.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Source {
    path: PathBuf,
    text: Arc<str>,
    line_starts: Arc<[usize]>,
}

impl Source {
    pub(crate) fn new(text: &str, path: &Path) -> Self {
        let after_newlines = text.match_indices('\n').map(|(offset, _)| offset + 1);
        Self {
            path: path.to_path_buf(),
            text: text.into(),
            line_starts: std::iter::once(0).chain(after_newlines).collect(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The folder that relative paths in the file start from.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The line and column of a byte offset. Offsets beyond the end mean the end.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = floor_char_boundary(&self.text, offset);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position { line, column: before.chars().count() + 1 }
    }

    /// A diagnostic about a range of bytes; the text in it is the offending text.
    pub(crate) fn diagnostic(
        &self,
        range: &Range<usize>,
        message: String,
        help: Help,
    ) -> Diagnostic {
        let start = floor_char_boundary(&self.text, range.start);
        let end = floor_char_boundary(&self.text, range.end).max(start);
        let offending = self.text.get(start..end).unwrap_or_default();
        self.new_diagnostic(self.position(start), offending, message, Some(help.into_text()))
    }

    /// A diagnostic about the value at a position kept in a [`Located`](crate::Located). The text
    /// of the file is shown; `offending` only where the value was not written in the file.
    pub(crate) fn finding_at(
        &self,
        at: Position,
        offending: &str,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let written = self.value_at(at).unwrap_or(offending);
        self.new_diagnostic(at, written, message, help)
    }

    fn new_diagnostic(
        &self,
        at: Position,
        offending: &str,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        Diagnostic {
            path: self.path.clone(),
            line: at.line,
            column: at.column,
            offending: offending.to_owned(),
            message,
            help,
            source_line: self.offset(at).map(|offset| Excerpt::around(&self.text, offset)),
        }
    }

    /// The value that begins at a position: a string with its quotes, a bare word, or the line
    /// of a header, list or table.
    fn value_at(&self, at: Position) -> Option<&str> {
        let value = self.text.get(self.offset(at)?..)?.split('\n').next()?.trim_end_matches('\r');
        if value.is_empty() {
            return None;
        }
        if value.starts_with(['[', '{']) {
            let end = value.char_indices().nth(SHOWN_LINE_CHARACTERS_MAX);
            let shown = end.and_then(|(end, _)| value.get(..end)).unwrap_or(value);
            return shown.split(" #").next().map(str::trim_end);
        }
        let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
        let mut is_escaped = false;
        let end = value.char_indices().skip(1).find_map(|(offset, character)| {
            let ends = match quote {
                Some(quote) => character == quote && !is_escaped,
                None => character.is_whitespace() || ",]}#".contains(character),
            };
            is_escaped = character == '\\' && quote == Some('"') && !is_escaped;
            ends.then_some(offset + quote.map_or(0, char::len_utf8))
        });
        value.get(..end.unwrap_or(value.len()))
    }

    /// The byte that a position means; behind a line's end, that end.
    fn offset(&self, at: Position) -> Option<usize> {
        let start = *self.line_starts.get(at.line.checked_sub(1)?)?;
        let line = self.text.get(start..)?.split('\n').next()?;
        let inside = line.char_indices().nth(at.column.saturating_sub(1));
        Some(start + inside.map_or(line.len(), |(offset, _)| offset))
    }
}

/// The text may be long; only its place is worth printing.
impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Source({})", self.path.display())
    }
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|candidate| text.is_char_boundary(*candidate)).unwrap_or(0)
}
