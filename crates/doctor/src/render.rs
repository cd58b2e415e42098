//! The report as text: one screen, at most 80 columns, one line a check with its fix beneath it.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;

use crate::finding::{Finding, State};

/// The choice whether the text may carry colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    Plain,
    /// ANSI colours.
    Colour,
}

impl Style {
    /// Colour for a terminal whose user has not set `NO_COLOR` to something.
    #[must_use]
    pub fn choose(is_terminal: bool, no_color: Option<&OsStr>) -> Self {
        let is_refused = no_color.is_some_and(|value| !value.is_empty());
        if is_terminal && !is_refused { Style::Colour } else { Style::Plain }
    }
}

/// One finding as lines, each with its end.
pub(crate) fn finding(finding: &Finding, style: Style) -> String {
    let (mark, colour) = match finding.state {
        State::Good => ("✓", GREEN),
        State::Warning => ("!", YELLOW),
        State::Bad => ("✗", RED),
    };
    let message = wrap(&printable(&finding.message), COLUMNS_MAX - MESSAGE_COLUMN);
    let mut text = String::new();
    for (index, line) in message.iter().enumerate() {
        if index == 0 {
            let check = format!("{:<width$}", finding.check, width = MESSAGE_COLUMN - 2);
            text += &format!("{} {check}{line}\n", painted(mark, colour, style));
        } else {
            text += &format!("{:MESSAGE_COLUMN$}{line}\n", "");
        }
    }
    for line in &finding.table {
        text += &format!("{:MESSAGE_COLUMN$}{}\n", "", printable(line));
    }
    for step in &finding.fix {
        for (index, line) in wrap(&printable(step), COLUMNS_MAX - FIX_COLUMN).iter().enumerate() {
            let mark = if index == 0 { "→ " } else { "  " };
            let line = painted(&format!("{mark}{line}"), CYAN, style);
            text += &format!("{:width$}{line}\n", "", width = FIX_COLUMN - 2);
        }
    }
    text
}

/// Breaks text at spaces into lines of at most `columns` characters; a longer word keeps a line of its own.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if used > 0 && used + 1 + width > columns {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += width;
        }
    }
    lines
}

/// The front of a text that has to fit into a table.
pub(crate) fn shorten(text: &str, columns: usize) -> String {
    match text.char_indices().nth(columns) {
        None => text.to_owned(),
        Some(_) => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Names of interfaces and the like come from outside; they must not move the cursor, nor turn the line around.
pub(crate) fn printable(text: &str) -> String {
    let is_seen = |character: &char| character.escape_debug().len() <= ESCAPED_QUOTE_CHARACTERS;
    text.chars().filter(|character| !character.is_control() && is_seen(character)).collect()
}

fn painted(text: &str, colour: &str, style: Style) -> String {
    match style {
        Style::Plain => text.to_owned(),
        Style::Colour => format!("\x1b[{colour}m{text}\x1b[0m"),
    }
}

/// The width the whole report keeps to.
pub(crate) const COLUMNS_MAX: usize = 80;
/// The column at which messages start: a mark, a space, the longest name of a check and a space.
const MESSAGE_COLUMN: usize = 18;
/// The columns that a line of a table may have.
pub(crate) const TABLE_COLUMNS_MAX: usize = COLUMNS_MAX - MESSAGE_COLUMN;
const FIX_COLUMN: usize = 6;
/// Quotes and backslashes are escaped by one more character, and may stay.
const ESCAPED_QUOTE_CHARACTERS: usize = 2;
const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";
const CYAN: &str = "36";
