//! Regular expressions: of paths, and of what a request says.
//!
//! As PCRE reads them in nginx where both can: they are looked for anywhere in a text, letters are as written, classes such as `\w` are
//! of ASCII, and `.` is no line end. A text takes time in proportion to its length, whatever the expression.

use std::fmt;
use std::ops::Range;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::ValueType;
use super::fault::Fault;
use super::rules::{Guess, TextRule, Wrong};
use super::section::{meaning, optional};
use super::text::text;

/// A regular expression. Copies share what it was compiled to.
#[derive(Clone)]
pub struct Expression {
    compiled: Regex,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The fault of it, for a person.
    pub fn new(text: &str) -> Result<Self, String> {
        compile(text).map(|compiled| Self { compiled }).map_err(|wrong| wrong.why)
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        self.compiled.as_str()
    }

    /// True if a part of the text fits.
    pub fn fits(&self, text: impl AsRef<[u8]>) -> bool {
        self.compiled.is_match(text.as_ref())
    }

    /// The groups of the first part that fits; `None` if none does.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        let captures = self.compiled.captures(text.as_bytes())?;
        let range = |number| captures.get(number).map(|group| group.range());
        let groups = (0..captures.len()).map(range).collect();
        let names = self.compiled.capture_names().enumerate();
        let names = names.filter_map(|(number, name)| Some((name?.into(), number))).collect();
        Some(Captures { text, groups, names })
    }

    /// The number of groups it has, the whole not counted.
    pub fn groups(&self) -> usize {
        self.compiled.captures_len().saturating_sub(1)
    }

    /// True if it has a group of this name.
    pub fn has_group(&self, name: &str) -> bool {
        self.compiled.capture_names().flatten().any(|own| own == name)
    }

    /// The number of the group of this name, or of this number as digits. The whole is 0.
    pub fn group_number(&self, name: &str) -> Option<usize> {
        match name.parse::<usize>() {
            Ok(number) => (number <= self.groups()).then_some(number),
            Err(_) => self.compiled.capture_names().position(|own| own == Some(name)),
        }
    }

    /// Returns the text of a group of this name, or of this number, among what [`groups_in`](Self::groups_in) found; nothing if
    /// there is none.
    pub fn group_of<'t>(&self, groups: &[&'t [u8]], name: &str) -> &'t [u8] {
        let number = self.group_number(name);
        number.and_then(|number| groups.get(number)).copied().unwrap_or_default()
    }

    /// Returns the texts of its groups in any bytes, the whole first. One that took no part stands for nothing.
    pub fn groups_in<'t>(&self, text: &'t [u8]) -> Vec<&'t [u8]> {
        let captures = self.compiled.captures(text);
        let captures = captures.iter().flat_map(|captures| captures.iter());
        captures.map(|group| group.map_or(&b""[..], |group| group.as_bytes())).collect()
    }
}

/// The texts of the groups of an expression in a text.
#[derive(Clone, Debug)]
pub struct Captures<'t> {
    text: &'t str,
    groups: Vec<Option<Range<usize>>>,
    names: Vec<(Box<str>, usize)>,
}

impl<'t> Captures<'t> {
    /// Returns the text of a group: the whole is 0. A group that took no part stands for nothing, as in nginx. `None` if there
    /// is no such group, or if it ends within a character.
    pub fn get(&self, number: usize) -> Option<&'t str> {
        match self.groups.get(number)? {
            Some(range) => self.text.get(range.clone()),
            None => Some(""),
        }
    }

    /// Returns the text of the group of this name.
    pub fn named(&self, name: &str) -> Option<&'t str> {
        let (_, number) = self.names.iter().find(|(own, _)| &**own == name)?;
        self.get(*number)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Expression").field(&self.as_str()).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Expression {}

/// Expressions that a text is held against all at once.
#[derive(Clone, Debug, Default)]
pub struct Expressions {
    set: Option<RegexSet>,
}

impl Expressions {
    /// Compiles a set.
    ///
    /// # Errors
    /// They are larger together than a set may be.
    pub fn new<'e>(all: impl Iterator<Item = &'e Expression>) -> Result<Self, TooLarge> {
        let all: Vec<&str> = all.map(Expression::as_str).collect();
        if all.is_empty() {
            return Ok(Self::default());
        }
        let set = RegexSetBuilder::new(all)
            .unicode(false)
            .size_limit(SET_BYTES_MAX)
            .dfa_size_limit(LAZY_BYTES_MAX)
            .build();
        Ok(Self { set: Some(set.map_err(|_| TooLarge)?) })
    }

    /// The numbers of those that a part of the text fits, in order.
    pub fn fitting<T: AsRef<[u8]>>(&self, text: T) -> impl Iterator<Item = usize> + use<T> {
        let matches = self.set.as_ref().map(|set| set.matches(text.as_ref()));
        matches.into_iter().flatten()
    }
}

/// Expressions are larger together than a set may be.
#[derive(Clone, Copy, Debug)]
pub struct TooLarge;

/// An expression that may be absent; `absent` says what then holds.
pub(crate) fn expression(absent: &'static str) -> impl ValueType<Value = Option<Expression>> {
    meaning(optional(text(&EXPRESSION, ""), absent), |text| Expression::new(&text?).ok())
}

fn compile(text: &str) -> Result<Regex, Wrong> {
    if text.is_empty() {
        return Err(Wrong { why: "an empty one fits everything".to_owned(), help: Guess::None });
    }
    if text.len() > TEXT_BYTES_MAX {
        let why = format!("it is longer than {TEXT_BYTES_MAX} bytes");
        return Err(Wrong { why, help: Guess::Advice("write several shorter ones".to_owned()) });
    }
    let compiled = RegexBuilder::new(text)
        .unicode(false)
        .size_limit(ONE_BYTES_MAX)
        .dfa_size_limit(LAZY_BYTES_MAX)
        .build();
    compiled.map_err(|error| why(text, &error))
}

fn why(text: &str, error: &regex::Error) -> Wrong {
    let fault = Fault::of(text, error);
    let help = fault
        .help("write a route for each of both cases, the one that is kept out before the other");
    let why = match fault {
        Fault::TooLarge(kibibytes) => format!("it takes more than {kibibytes} KiB"),
        Fault::LooksAround => "it looks around, which takes time without a bound".to_owned(),
        Fault::Other(said) => said,
    };
    Wrong { why, help: Guess::Advice(help.to_owned()) }
}

pub(super) static EXPRESSION: TextRule = TextRule {
    what: "a regular expression",
    example: r"\.(jpg|png)$",
    read: |text| compile(text).map(|_| text.to_owned()),
};

/// Longest text of an expression.
const TEXT_BYTES_MAX: usize = 16 * 1_024;
/// The largest size to which one may be compiled.
const ONE_BYTES_MAX: usize = 1_024 * 1_024;
/// The largest size to which those of a site may be compiled together.
const SET_BYTES_MAX: usize = 1_024 * 1_024;
/// The memory of a worker for one, or for a set, so that it need not find out anew.
const LAZY_BYTES_MAX: usize = 256 * 1_024;

#[cfg(test)]
mod tests;
