//! One violation of one rule: where, and what to do about it.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, relative to the repository.
    pub path: String,
    /// The line, counted from 1; 1 where the whole file is meant.
    pub line: usize,
    /// The rule's name, as exceptions use it.
    pub rule: &'static str,
    pub message: String,
}

impl Violation {
    pub fn at(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, message: message.into() }
    }

    pub fn in_file(path: &str, rule: &'static str, message: impl Into<String>) -> Self {
        Self::at(path, 1, rule, message)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, message } = self;
        write!(f, "{path}:{line}: {rule}: {message}")
    }
}
