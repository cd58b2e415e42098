//! One mistake in the configuration, and how it is shown to the operator.
//!
//! The text is plain: no colours, so it reads the same in a terminal, a log and an editor.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use crate::located::Position;

/// Longer source lines are cut around the caret so that one diagnostic stays readable.
pub(crate) const SHOWN_LINE_CHARACTERS_MAX: usize = 120;
/// The length of a cut line that is shown before the caret.
const SHOWN_BEFORE_CARET: usize = 40;

/// One mistake: where it stands, the text that is wrong, why, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// The configuration file.
    pub path: PathBuf,
    /// The line, counted from 1; 0 when the mistake belongs to no line.
    pub line: usize,
    /// The column in characters, counted from 1; 0 when the mistake belongs to no line.
    pub column: usize,
    /// The text that is wrong, as it stands in the file.
    pub offending: String,
    /// The mistake.
    pub message: String,
    /// The advice, where there is a good guess: `write "64 KiB"`.
    pub help: Option<String>,
    /// The line the offending text stands on, as far as it is shown.
    pub source_line: Option<Excerpt>,
}

impl Diagnostic {
    /// A mistake that belongs to no line of this file.
    pub fn without_place(
        path: impl Into<PathBuf>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Self {
        Self {
            path: path.into(),
            line: 0,
            column: 0,
            offending: String::new(),
            message: message.into(),
            help,
            source_line: None,
        }
    }

    /// Returns the position of the mistake.
    pub fn position(&self) -> Position {
        Position { line: self.line, column: self.column }
    }
}

/// The part of a line that is shown around a place. No more is kept of it: a file may be one long line with many such places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Excerpt {
    text: String,
    /// Characters in front of the place.
    before: usize,
}

impl Excerpt {
    /// Takes what stands around a byte of a text, on the same line.
    #[must_use]
    pub fn around(text: &str, offset: usize) -> Self {
        let (front, behind) = text.split_at_checked(offset).unwrap_or((text, ""));
        let front = front.chars().rev().take_while(|letter| *letter != '\n');
        let in_front: Vec<_> = front.take(SHOWN_LINE_CHARACTERS_MAX + 1).collect();
        let behind = behind.chars().take_while(|letter| *letter != '\n');
        let behind: String = behind.take(SHOWN_LINE_CHARACTERS_MAX + 1).collect();
        let is_long =
            in_front.len() + behind.trim_end().chars().count() > SHOWN_LINE_CHARACTERS_MAX;
        let before = in_front.len().min(if is_long { SHOWN_BEFORE_CARET } else { usize::MAX });
        let shown = in_front.into_iter().take(before).rev().chain(behind.chars());
        let text: String = shown.take(SHOWN_LINE_CHARACTERS_MAX).collect();
        Self { text: text.trim_end().to_owned(), before }
    }
}

/// The advice to an operator about a mistake.
pub(crate) enum Help {
    /// Write this text in place of the offending one.
    Write(String),
    /// Something else than replacing the offending text.
    Do(String),
}

impl Help {
    pub(crate) fn write(text: impl Into<String>) -> Self {
        Self::Write(text.into())
    }

    pub(crate) fn act(advice: impl Into<String>) -> Self {
        Self::Do(advice.into())
    }

    /// The advice as a [`Diagnostic`] shows it.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Write(text) => format!("write {text}"),
            Self::Do(advice) => advice,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.as_os_str().is_empty() {
            write!(formatter, "{}", self.path.display())?;
            if self.line > 0 {
                write!(formatter, ":{}", self.position())?;
            }
            formatter.write_str(": ")?;
        }
        write_visible(formatter, &self.message)?;
        if let Some(source) = &self.source_line {
            write_source(formatter, self, source)?;
        }
        if let Some(help) = &self.help {
            formatter.write_str("\nhelp: ")?;
            write_visible(formatter, help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

/// Writes the source line and under it the carets below the offending text.
fn write_source(
    formatter: &mut fmt::Formatter<'_>,
    diagnostic: &Diagnostic,
    Excerpt { text, before }: &Excerpt,
) -> fmt::Result {
    let indent: String =
        text.chars().map(visible_space).chain(std::iter::repeat(' ')).take(*before).collect();
    let first_line = diagnostic.offending.lines().next().unwrap_or_default();
    let room = text.chars().count().saturating_sub(*before);
    let carets = first_line.chars().take(room).count().max(1);
    let gutter = diagnostic.line.to_string();
    let shown: String = text.chars().map(visible).collect();
    write!(formatter, "\n {gutter} | {shown}")?;
    write!(formatter, "\n {:width$} | {indent}{}", "", "^".repeat(carets), width = gutter.len())
}

/// Keeps tabs, so that the caret line is indented exactly like the source line.
fn visible_space(character: char) -> char {
    if character == '\t' { '\t' } else { ' ' }
}

fn write_visible(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().map(visible).try_for_each(|character| formatter.write_char(character))
}

/// Control characters of the file must not reach the operator's terminal.
fn visible(character: char) -> char {
    if character.is_control() && character != '\t' { '\u{fffd}' } else { character }
}
