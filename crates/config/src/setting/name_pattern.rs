//! Names of sites by regular expressions: `"~^(?<sub>[^.]+)\\.example\\.org$"`, as nginx's `server_name` has them.

use std::fmt;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder, RegexSetBuilder};

use super::fault::Fault;

/// A regular expression for names. It fits wherever in a name something fits; the case of letters does not matter, since
/// names have none, and classes such as `\w` are those of ASCII. Copies share what it was compiled to.
#[derive(Clone)]
pub struct NamePattern(Arc<Regex>);

/// The fault of a regular expression, and what to do about it.
pub(crate) struct PatternMistake {
    pub(crate) why: String,
    pub(crate) help: &'static str,
}

impl NamePattern {
    /// True if a name of a site is meant as one.
    pub(crate) fn is_one(name: &str) -> bool {
        name.starts_with(MARK)
    }

    /// Compiles a name as it is written, with the `~` that it begins with.
    pub(crate) fn read(name: &str) -> Result<Self, PatternMistake> {
        let text = name.strip_prefix(MARK).unwrap_or(name);
        if text.is_empty() {
            let why = "behind `~` stands a regular expression";
            let help = "write \"_\" for names that no other site has";
            return Err(PatternMistake { why: why.to_owned(), help });
        }
        let compiled = RegexBuilder::new(text)
            .unicode(false)
            .case_insensitive(true)
            .size_limit(ONE_BYTES_MAX)
            .dfa_size_limit(LAZY_BYTES_MAX)
            .build();
        compiled.map(|regex| Self(Arc::new(regex))).map_err(|error| mistake(text, &error))
    }

    /// Returns the expression to which it was compiled.
    pub fn regex(&self) -> &Arc<Regex> {
        &self.0
    }

    /// True if it stands for this name.
    pub fn fits(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

/// True if these are compiled to less than the patterns of a site may take.
pub(crate) fn are_patterns_small_enough<'p>(
    patterns: impl ExactSizeIterator<Item = &'p NamePattern>,
) -> bool {
    // Most sites have one, or none.
    patterns.len() * ONE_BYTES_MAX <= PATTERN_BYTES_OF_SITE_MAX
        || RegexSetBuilder::new(patterns.map(|pattern| pattern.0.as_str()))
            .unicode(false)
            .case_insensitive(true)
            .size_limit(PATTERN_BYTES_OF_SITE_MAX)
            .build()
            .is_ok()
}

fn mistake(text: &str, error: &regex::Error) -> PatternMistake {
    let fault = Fault::of(text, error);
    let help = fault.help(
        "write the names that are meant otherwise as those of another site: exact names and those with a star come \
         first, then regular expressions in the order of the file",
    );
    let why = match fault {
        Fault::TooLarge(kibibytes) => {
            format!("this regular expression takes more than {kibibytes} KiB")
        }
        Fault::LooksAround => {
            "this regular expression looks around, which takes time without a bound".to_owned()
        }
        Fault::Other(said) => format!("in this regular expression: {said}"),
    };
    PatternMistake { why, help }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("NamePattern").field(&self.0.as_str()).finish()
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for NamePattern {}

/// The first character of such a name.
const MARK: char = '~';
/// The largest size to which one may be compiled.
const ONE_BYTES_MAX: usize = 64 * 1_024;
/// The largest size to which those of a site may be compiled together.
pub(crate) const PATTERN_BYTES_OF_SITE_MAX: usize = 1_024 * 1_024;
/// The memory of a worker for one, so that it need not find out anew.
const LAZY_BYTES_MAX: usize = 32 * 1_024;

#[cfg(test)]
mod tests;
