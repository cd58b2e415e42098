//! The finding of one check: a verdict, a sentence, and the commands that would change it.

use serde::Serialize;

/// The verdict of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing to do.
    Good,
    /// It works, and could work better.
    Warning,
    /// It does not work.
    Bad,
}

/// One line of the report, with what belongs beneath it.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The subject: a few words, the same on every machine.
    pub check: &'static str,
    /// The verdict.
    pub state: State,
    /// The finding in a sentence.
    pub message: String,
    /// Lines that keep their form, such as a table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<String>,
    /// The advice, one command or step a line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fix: Vec<String>,
}

impl Finding {
    /// Nothing to do.
    pub(crate) fn good(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, State::Good, message)
    }

    /// It works, and could work better.
    pub(crate) fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, State::Warning, message)
    }

    /// It does not work.
    pub(crate) fn bad(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(check, State::Bad, message)
    }

    /// Adds one step of the way out.
    pub(crate) fn fix(mut self, step: impl Into<String>) -> Self {
        self.fix.push(step.into());
        self
    }

    /// Sets the lines beneath the message that keep their form.
    pub(crate) fn table(mut self, lines: Vec<String>) -> Self {
        self.table = lines;
        self
    }

    fn new(check: &'static str, state: State, message: impl Into<String>) -> Self {
        Self { check, state, message: message.into(), table: Vec::new(), fix: Vec::new() }
    }
}
