//! Configurations that were made from another file: what is wrong with them is shown where the operator wrote it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Excerpt};
use crate::located::Position;

/// The place of something in the other file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file; empty for a command line.
    pub path: PathBuf,
    /// The beginning; not written for a command line.
    pub at: Position,
    /// The text there.
    pub written: String,
    /// The line, as far as it is shown.
    pub source_line: Option<Excerpt>,
}

impl Origin {
    /// A mistake there.
    #[must_use]
    pub fn diagnostic(&self, message: impl Into<String>, help: Option<String>) -> Diagnostic {
        Diagnostic {
            path: self.path.clone(),
            line: self.at.line,
            column: self.at.column,
            offending: self.written.clone(),
            message: message.into(),
            help,
            source_line: self.source_line.clone(),
        }
    }
}

/// The origin of each line of a configuration's text, if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Arc<[Option<Origin>]>);

impl Origins {
    /// Takes the origins of all lines in their order.
    #[must_use]
    pub fn new(lines: Vec<Option<Origin>>) -> Self {
        Self(lines.into())
    }

    /// Returns the name of a line of the text before operators, who may never have seen the text.
    pub(crate) fn line(&self, line: usize) -> String {
        if self.0.is_empty() {
            return format!("line {line}");
        }
        match line.checked_sub(1).and_then(|line| self.0.get(line)?.as_ref()) {
            Some(origin) if origin.at.is_written() => {
                format!("line {} of {}", origin.at.line, origin.path.display())
            }
            Some(origin) => format!("`{}`", origin.written),
            None => "a line that nobody wrote".to_owned(),
        }
    }

    /// True if there was another file.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Brings a diagnostic about the text to where it came from. A line that nobody wrote has no place.
    pub(crate) fn trace(&self, diagnostic: Diagnostic) -> Diagnostic {
        if self.0.is_empty() {
            return diagnostic;
        }
        let line = diagnostic.line.checked_sub(1).and_then(|line| self.0.get(line)?.as_ref());
        match line {
            Some(origin) => origin.diagnostic(diagnostic.message, diagnostic.help),
            None => Diagnostic { line: 0, column: 0, source_line: None, ..diagnostic },
        }
    }
}
