//! The patterns that choose files: what they may hold, and whether a path fits one.
//!
//! `*` stands for any characters but `/`, `**` for any characters at all, `?` for one character
//! but `/`. Everything else stands for itself.

mod automaton;
mod list;

use std::sync::Arc;

use crate::rule_index::PathKey;
use automaton::{Automaton, tokens};
pub use list::{CacheControl, CacheRule, DenyPatterns};

/// Longest pattern.
const PATTERN_BYTES_MAX: usize = 256;

/// The fault of a pattern, and the patterns that were probably meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadPattern {
    pub(crate) why: &'static str,
    pub(crate) suggestions: Vec<String>,
}

/// Says what is wrong with a pattern.
pub(crate) fn check(pattern: &str) -> Result<(), BadPattern> {
    let bad_pattern = |why, suggestions: Vec<String>| Err(BadPattern { why, suggestions });
    if pattern.is_empty() {
        return bad_pattern("an empty pattern fits no file", vec!["*".to_owned()]);
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return bad_pattern("it has more than 256 bytes", Vec::new());
    }
    if pattern.contains(['[', ']', '{', '}', '\\']) {
        return bad_pattern("sets in [ ] or { } and \\ are not known", alternatives(pattern));
    }
    if pattern.contains("***") {
        let suggestions = pattern.split("***").collect::<Vec<_>>().join("**");
        return bad_pattern("more than two stars in a row mean nothing", vec![suggestions]);
    }
    if pattern.contains("//") || pattern.chars().any(char::is_control) {
        return bad_pattern("no path of a request holds this", Vec::new());
    }
    if pattern.contains('/') && !pattern.starts_with(['/', '*', '?']) {
        let why = "one with a slash is held against the whole path, which begins with a slash";
        return bad_pattern(why, vec![format!("/{pattern}")]);
    }
    Ok(())
}

/// The patterns a set in braces stands for: `*.{css,js}` is `*.css` and `*.js`.
fn alternatives(pattern: &str) -> Vec<String> {
    let set = pattern.split_once('{').and_then(|(before, rest)| {
        let (set, after) = rest.split_once('}')?;
        Some((before, set, after))
    });
    let Some((before, set, after)) = set else {
        return Vec::new();
    };
    // The rest of a second set is not looked into.
    let suggestions = set.split(',').map(|one| format!("{before}{}{after}", one.trim()));
    suggestions.filter(|pattern| !pattern.contains(['[', ']', '{', '}', '\\'])).collect()
}

/// A pattern that is held against whole paths, and says what its stars stand for. Copies share one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern(Arc<Glob>);

impl PathPattern {
    /// Reads a pattern that begins with a slash.
    pub(crate) fn new(text: &str) -> Self {
        Self(Arc::new(Glob::new(text)))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the key by which an index finds the paths that fit a pattern, or all of them.
    #[must_use]
    pub fn key_of(pattern: Option<&Self>) -> PathKey<'_> {
        pattern.map_or(PathKey::ANY, |pattern| pattern.0.key())
    }

    /// Returns the text with which each path begins that fits.
    pub(crate) fn beginning(&self) -> &str {
        self.0.ends().0
    }

    /// The number of stars it has.
    pub fn stars(&self) -> usize {
        tokens(&self.0.text).iter().filter(|token| token.is_star()).count()
    }

    /// True if a path fits it.
    #[must_use]
    pub fn fits(&self, path: &str) -> bool {
        self.0.fits(path)
    }

    /// Returns the text for which each star stands for in `path`, the first as much as it can; nothing if the path does not
    /// fit.
    pub fn captures<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let mut captures = Vec::new();
        self.0.capture(path, &mut captures)?;
        Some(captures)
    }
}

/// A pattern, ready to be held against paths: in time of the path's length, however many stars it has. There may be ten thousand, most
/// of them without a star or with one: those are little more than their text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Glob {
    text: Box<str>,
    /// Bytes at its beginning and at its end that stand for themselves.
    begin_bytes: u16,
    end_bytes: u16,
    middle: Middle,
}

/// The part of a pattern between its beginning and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Middle {
    Nothing,
    /// `*`
    WithinSegment,
    /// `**`
    Anything,
    /// More than one token, of which most patterns have few.
    Few(Box<Automaton<1>>),
    Many(Box<Automaton<WORDS>>),
}

impl Glob {
    fn new(pattern: &str) -> Self {
        let bytes = |bytes| u16::try_from(bytes).unwrap_or(u16::MAX);
        let is_token = |character| matches!(character, '*' | '?');
        let begin = pattern.find(is_token).unwrap_or(pattern.len());
        let end = pattern.rfind(is_token).map_or(pattern.len(), |last| last + 1);
        let middle = match pattern.get(begin..end).unwrap_or_default() {
            "" => Middle::Nothing,
            "*" => Middle::WithinSegment,
            "**" => Middle::Anything,
            several => match tokens(several) {
                few if few.len() < 64 => Middle::Few(Box::new(Automaton::new(few))),
                many => Middle::Many(Box::new(Automaton::new(many))),
            },
        };
        let begin_bytes = bytes(begin);
        let end_bytes = bytes(pattern.len() - end);
        Self { text: pattern.into(), begin_bytes, end_bytes, middle }
    }

    /// Returns the texts with which each path begins and ends that fits.
    fn ends(&self) -> (&str, &str) {
        let end = self.text.len() - usize::from(self.end_bytes);
        let begins = self.text.get(..usize::from(self.begin_bytes));
        (begins.unwrap_or_default(), self.text.get(end..).unwrap_or_default())
    }

    fn key(&self) -> PathKey<'_> {
        let (begins, ends) = self.ends();
        match self.middle {
            Middle::Nothing => PathKey::Whole(&self.text),
            _ => PathKey::Ends { begins, ends },
        }
    }

    /// The part of a path that its middle has to fit. Most paths have none, and that shows at once.
    fn between<'p>(&self, path: &'p str) -> Option<&'p str> {
        let (begins, ends) = self.ends();
        path.strip_prefix(begins)?.strip_suffix(ends)
    }

    fn fits(&self, path: &str) -> bool {
        self.between(path).is_some_and(|between| match &self.middle {
            Middle::Nothing => between.is_empty(),
            Middle::WithinSegment => !between.contains('/'),
            Middle::Anything => true,
            Middle::Few(automaton) => automaton.fits(between),
            Middle::Many(automaton) => automaton.fits(between),
        })
    }

    fn capture<'p>(&self, path: &'p str, captures: &mut Vec<&'p str>) -> Option<()> {
        let between = self.between(path).filter(|_| self.fits(path))?;
        match &self.middle {
            Middle::Nothing => {}
            Middle::WithinSegment | Middle::Anything => captures.push(between),
            Middle::Few(automaton) => automaton.capture(between, captures)?,
            Middle::Many(automaton) => automaton.capture(between, captures)?,
        }
        Some(())
    }
}

/// Words of bits for all places of the longest pattern and its end.
const WORDS: usize = PATTERN_BYTES_MAX / 64 + 1;

#[cfg(test)]
mod tests;
