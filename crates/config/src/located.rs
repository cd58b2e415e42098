//! The place in the configuration file at which a value was written.
//!
//! Later stages (opening files, reading certificates) find mistakes the parser cannot see. They
//! need the place of the value, so such values travel as [`Located`].

use std::fmt;
use std::ops::Deref;

/// A place in the configuration file. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, or 0 when the value was not written in the file.
    pub line: usize,
    /// The column of the value's first character, or 0 when the value was not written in the file.
    pub column: usize,
}

impl Position {
    /// The place of values that come from a default or from the command line.
    pub const NOT_WRITTEN: Self = Self { line: 0, column: 0 };

    /// True if the value stands in the file at all.
    pub fn is_written(self) -> bool {
        self.line > 0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// A value together with the place it was written at.
///
/// Two located values are equal when their values are: moving a setting to another line changes
/// nothing about the configuration.
#[derive(Clone, Debug, Default)]
pub struct Located<T> {
    /// The value itself.
    pub value: T,
    /// The position at which it was written.
    pub at: Position,
}

impl<T> Located<T> {
    /// A value written at `at`.
    pub fn new(value: T, at: Position) -> Self {
        Self { value, at }
    }

    /// A value that was not written in a file: a default, or one from the command line.
    pub fn not_written(value: T) -> Self {
        Self { value, at: Position::NOT_WRITTEN }
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

impl<T: fmt::Display> fmt::Display for Located<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}
