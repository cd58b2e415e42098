//! Patterns in the order of the file, found by an index: those of `deny_files` and those of `cache_control`.

use super::Glob;
use crate::rule_index::RuleIndex;

/// Patterns that are held against the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Patterns {
    globs: Box<[Glob]>,
    index: RuleIndex,
}

impl Patterns {
    fn new<'t>(patterns: impl Iterator<Item = &'t str>) -> Self {
        let globs: Box<[Glob]> = patterns.map(Glob::new).collect();
        let index = RuleIndex::new(globs.iter().map(Glob::key));
        Self { globs, index }
    }

    /// The number of the first that a text fits.
    fn first(&self, text: &str) -> Option<usize> {
        self.index.first(text, |number| self.globs.get(number).is_some_and(|glob| glob.fits(text)))
    }

    fn crowd(&self) -> usize {
        self.index.largest_crowd().len()
    }
}

/// The patterns of `deny_files`. The case of ASCII letters does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenyPatterns {
    of_segments: Patterns,
    of_paths: Patterns,
}

impl DenyPatterns {
    /// Reads patterns: those with a slash are held against whole paths, others against each segment.
    #[must_use]
    pub fn new(patterns: &[String]) -> Self {
        let lower: Vec<String> = patterns.iter().map(|it| it.to_ascii_lowercase()).collect();
        let of = |has_slash: bool| {
            let such = lower.iter().filter(|pattern| pattern.contains('/') == has_slash);
            Patterns::new(such.map(String::as_str))
        };
        Self { of_segments: of(false), of_paths: of(true) }
    }

    /// True if one of them fits `path`, which begins with a slash. A slash at its end changes nothing.
    #[must_use]
    pub fn fit(&self, path: &str) -> bool {
        let path = path.to_ascii_lowercase();
        let plain = path.strip_suffix('/').filter(|plain| !plain.is_empty()).unwrap_or(&path);
        let fits_whole = |path: &str| self.of_paths.first(path).is_some();
        let fits_segment = |segment: &str| self.of_segments.first(segment).is_some();
        fits_whole(&path)
            || (plain != path && fits_whole(plain))
            || plain.split('/').skip(1).any(fits_segment)
    }

    /// Returns how many of them a path, and each of its segments, may have to be held against.
    pub(crate) fn crowd(&self) -> usize {
        self.of_segments.crowd() + self.of_paths.crowd()
    }
}

/// A `Cache-Control` value for the files whose name or path fits a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRule {
    /// A pattern of `*`, `**` and `?`. With a `/` in it, it is held against the whole path below
    /// the site, otherwise against the file's name.
    pub pattern: String,
    /// The value of the header.
    pub value: String,
}

/// The rules of `cache_control`. The first in the order of the file that a file fits decides.
#[derive(Clone, Debug, Default)]
pub struct CacheControl {
    of_names: Rules,
    of_paths: Rules,
}

/// Rules whose patterns are held against the same text.
#[derive(Clone, Debug, Default)]
struct Rules {
    patterns: Patterns,
    /// Their values, each with the number of its rule among all.
    values: Box<[(usize, Box<str>)]>,
}

impl CacheControl {
    /// Reads rules: patterns with a slash are held against whole paths, others against the name of a file.
    #[must_use]
    pub fn new(rules: &[CacheRule]) -> Self {
        let of = |has_slash: bool| {
            let such = || rules.iter().enumerate();
            let such = || such().filter(|(_, rule)| rule.pattern.contains('/') == has_slash);
            Rules {
                patterns: Patterns::new(such().map(|(_, rule)| rule.pattern.as_str())),
                values: such().map(|(number, rule)| (number, rule.value.as_str().into())).collect(),
            }
        };
        Self { of_names: of(false), of_paths: of(true) }
    }

    /// The value for a file, by its path on the site, which begins with a slash.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<&str> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let first = [self.of_names.first(name), self.of_paths.first(path)];
        let (_, value) = first.into_iter().flatten().min_by_key(|(number, _)| *number)?;
        Some(value)
    }

    /// The number of patterns a path and its name may have to be held against.
    pub(crate) fn crowd(&self) -> usize {
        self.of_names.patterns.crowd() + self.of_paths.patterns.crowd()
    }
}

impl Rules {
    fn first(&self, text: &str) -> Option<&(usize, Box<str>)> {
        self.values.get(self.patterns.first(text)?)
    }
}
