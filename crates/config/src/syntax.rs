//! TOML syntax: finds every broken statement, and reads the rest of the document around them.
//!
//! After an error the parser's own recovery takes the text that follows for part of the broken
//! value. So the broken statement is blanked out instead and the text is parsed again.

use std::ops::Range;

use toml::de::{DeTable, Error};

use crate::diagnostic::Help;
use crate::foreign::spelling;
use crate::model::Config;
use crate::setting::{Settings, ValueShape, quoted};

/// Statements blanked out before the rest of a file is given up.
const BROKEN_STATEMENTS_MAX: usize = 50;

/// Lines that look like statements and may yet belong to one value.
const JOINED_PIECES_MAX: usize = 64;

/// A document without its broken statements.
pub(crate) struct Document {
    /// The text, with spaces in place of the broken statements.
    pub(crate) readable: String,
    /// The syntax errors.
    pub(crate) mistakes: Vec<Mistake>,
    /// Text below a broken header, whose settings belong to no known table.
    pub(crate) homeless: Vec<Range<usize>>,
}

/// One broken statement.
pub(crate) struct Mistake {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Help,
}

/// Parses a document; byte offsets in the result are those of `text`.
pub(crate) fn read(text: &str) -> Document {
    let mut mistakes = Vec::new();
    let mut homeless = Vec::new();
    let mut left = text.to_owned();
    for _ in 0..BROKEN_STATEMENTS_MAX {
        let (_, errors) = DeTable::parse_recoverable(&left);
        let place = |error: &Error| error.span().map_or(0, |span| span.start);
        let Some(error) = errors.into_iter().min_by_key(place) else {
            return Document { readable: left, mistakes, homeless };
        };
        let broken = broken_statement(&left, &error);
        let statement = left.get(broken.clone()).unwrap_or_default();
        let is_consequence = is_duplicate(&error)
            && homeless.iter().any(|part: &Range<usize>| part.contains(&broken.start));
        let part = if is_duplicate(&error) { part_before(&left, &broken) } else { None };
        match &part {
            Some(part) => mistakes.push(explain_order(statement, &broken, left.get(part.clone()))),
            None if is_consequence => {}
            None => mistakes.push(explain(statement, &broken, &error)),
        }
        homeless.extend(part);
        if statement.bytes().all(|byte| byte == b' ' || byte == b'\n') {
            break;
        }
        if is_header(statement) {
            homeless.push(broken.start..end_of_table(&left, broken.end));
        }
        left = blank_out(&left, &broken);
    }
    let given_up_at = mistakes.last().map_or(0, |mistake: &Mistake| mistake.span.end);
    mistakes.push(Mistake {
        span: given_up_at..given_up_at,
        message: "the rest of the file was not read, because too much is broken".to_owned(),
        help: Help::act("mend what is above and check again"),
    });
    Document { readable: String::new(), mistakes, homeless }
}

/// Replaces all but line ends with spaces, so that what follows keeps its offsets.
fn blank_out(text: &str, range: &Range<usize>) -> String {
    let is_blanked = |offset: usize, byte: u8| range.contains(&offset) && byte != b'\n';
    let bytes = text.bytes().enumerate();
    let blanked = bytes.map(|(offset, byte)| if is_blanked(offset, byte) { b' ' } else { byte });
    String::from_utf8(blanked.collect()).unwrap_or_default()
}

fn is_duplicate(error: &Error) -> bool {
    error.message().contains("duplicate key")
}

/// The table above a header `[[name]]` that is a part of it: `[[name.part]]`. All below belong to what comes too late.
fn part_before(text: &str, broken: &Range<usize>) -> Option<Range<usize>> {
    let name = header_name(text.get(broken.clone())?)?;
    let above = statements(text).into_iter().filter(|statement| statement.end <= broken.start);
    let headers = above.filter_map(|it| Some((header_name(text.get(it.clone())?)?, it)));
    let mut of_name = headers.filter(|(header, _)| {
        header.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    let (first, at) = of_name.next()?;
    (first != name && is_repeatable(name)).then_some(at.start..broken.start)
}

/// The dotted name in a header.
fn header_name(statement: &str) -> Option<&str> {
    let line = statement.trim_start().lines().next().filter(|line| is_header(line))?;
    line.split('#').next().map(|name| name.trim().trim_matches(['[', ']']).trim())
}

fn explain_order(statement: &str, broken: &Range<usize>, part: Option<&str>) -> Mistake {
    let header = statement.trim().lines().next().unwrap_or_default();
    let part = part.and_then(header_name).unwrap_or_default();
    let start = broken.start + statement.len() - statement.trim_start().len();
    Mistake {
        span: start..start + header.len(),
        message: format!("{header} stands below [[{part}]], which is a part of it"),
        help: Help::act(format!("move {header} and its settings above [[{part}]]")),
    }
}

/// The statement to blame: usually the one the error is in, but a value that is not closed is
/// only noticed in the statements after it.
fn broken_statement(text: &str, error: &Error) -> Range<usize> {
    let error_at = error.span().map_or(0, |span| span.start);
    let until_error = statements(text).into_iter().filter(|statement| statement.start <= error_at);
    let mut until_error: Vec<Range<usize>> = until_error.collect();
    let own = until_error.pop().unwrap_or(0..text.len());
    if is_duplicate(error) {
        return own;
    }
    let is_open = |statement: &Range<usize>| {
        let statement = text.get(statement.clone()).unwrap_or_default();
        !is_header(statement)
            && (unclosed(statement).is_some() || unclosed_text(statement).is_some())
    };
    until_error.into_iter().find(is_open).unwrap_or(own)
}

/// The document cut before each line that looks like a header or `key = value`, except in a
/// value that is closed further down.
fn statements(text: &str) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let end = offset + line.len();
        let follows_header =
            pieces.last().and_then(|piece| text.get(piece.clone())).is_some_and(is_header);
        match pieces.last_mut() {
            Some(last) if !begins_statement(line) && !follows_header => last.end = end,
            _ => pieces.push(offset..end),
        }
        offset = end;
    }
    join_open_values(text, pieces)
}

fn join_open_values(text: &str, pieces: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut statements: Vec<Range<usize>> = Vec::new();
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        let within = |end: usize| text.get(piece.start..end).unwrap_or_default();
        let is_open =
            |end: usize| unclosed(within(end)).is_some() || unclosed_text(within(end)).is_some();
        let mut end = piece.end;
        if !is_header(within(end)) && is_open(end) {
            let closed_at = pieces
                .clone()
                .take(JOINED_PIECES_MAX)
                .take_while(|next| !text.get(next.clone()).is_some_and(is_header))
                .map(|next| next.end)
                .find(|end| !is_open(*end));
            end = closed_at.unwrap_or(end);
        }
        while pieces.peek().is_some_and(|next| next.start < end) {
            pieces.next();
        }
        statements.push(piece.start..end);
    }
    statements
}

fn begins_statement(line: &str) -> bool {
    let is_key = |key: &str| {
        let is_part =
            |character: char| character.is_alphanumeric() || "_-.\"' ".contains(character);
        !key.trim().is_empty() && key.chars().all(is_part)
    };
    is_header(line) || line.split_once('=').is_some_and(|(key, _)| is_key(key.trim_start()))
}

/// `[name` or `[[name`, closed or not; not a line of an array.
fn is_header(statement: &str) -> bool {
    let line = statement.trim_start().lines().next().unwrap_or_default();
    let line = line.split('#').next().unwrap_or_default();
    let Some(name) = line.strip_prefix('[') else {
        return false;
    };
    let name = name.trim_start_matches('[').trim_start();
    name.starts_with(|first: char| first.is_alphabetic() || first == '_') && !name.contains(',')
}

/// Returns the end of the table that begins before `from`.
fn end_of_table(text: &str, from: usize) -> usize {
    let mut after = statements(text).into_iter().filter(|statement| statement.start >= from);
    let next = after.find(|statement| text.get(statement.clone()).is_some_and(is_header));
    next.map_or(text.len(), |statement| statement.start)
}

/// The first bracket of a statement that nothing closes, with its offset.
fn unclosed(statement: &str) -> Option<(usize, char)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut quote: Option<char> = None;
    let mut is_comment = false;
    for (offset, character) in statement.char_indices() {
        match (quote, character) {
            (_, '\n') => (quote, is_comment) = (None, false),
            _ if is_comment => {}
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '#') => is_comment = true,
            (None, '[' | '{') => open.push((offset, character)),
            (None, ']' | '}') => {
                open.pop();
            }
            _ => {}
        }
    }
    open.first().copied()
}

fn explain(statement: &str, broken: &Range<usize>, error: &Error) -> Mistake {
    let within = |offset: usize, bytes: usize| broken.start + offset..broken.start + offset + bytes;
    let key_offset = statement.len() - statement.trim_start().len();
    let first_line = statement.trim().lines().next().unwrap_or_default();
    if is_duplicate(error) {
        return explain_duplicate(first_line, within(key_offset, first_line.len()));
    }
    if is_header(statement) {
        let name = first_line.split('#').next().unwrap_or_default();
        let name = name.trim().trim_matches(['[', ']']).trim();
        let help = if is_repeatable(name) { format!("[[{name}]]") } else { format!("[{name}]") };
        let message = "this is no header of a table".to_owned();
        let span = within(key_offset, first_line.len());
        return Mistake { span, message, help: Help::write(help) };
    }
    if let Some((offset, bracket)) = unclosed(statement) {
        let closing = if bracket == '[' { ']' } else { '}' };
        let message = format!("this `{bracket}` is not closed");
        let help = Help::write(format!("{closing} at the end of the value"));
        return Mistake { span: within(offset, 1), message, help };
    }
    if let Some((offset, quotes)) = unclosed_text(statement) {
        let message = "this text is not closed".to_owned();
        let help = Help::write(format!("{quotes} at its end"));
        return Mistake { span: within(offset, quotes.len()), message, help };
    }
    let error_span = error.span().unwrap_or_default();
    let equals = statement.find('=').unwrap_or(statement.len());
    let is_in_value = error_span.start > broken.start + equals;
    if is_in_value && first_line.ends_with('=') {
        let message = "no value follows this key".to_owned();
        return Mistake {
            span: within(key_offset, first_line.len()),
            message,
            help: Help::act("write a value, or remove the line"),
        };
    }
    let value = statement.get(equals..).unwrap_or_default().trim_start_matches('=').trim();
    if let Some(straight) = spelling::straight(value).filter(|_| is_in_value) {
        let offset = statement.find(value).unwrap_or_default();
        let message = "curly quotes are no quotes of TOML".to_owned();
        return Mistake { span: within(offset, value.len()), message, help: Help::write(straight) };
    }
    if let Some((offset, value)) = bare_text(statement).filter(|_| is_in_value) {
        let message = "a text must stand in quotes";
        let span = within(offset, value.len());
        return Mistake {
            span,
            message: message.to_owned(),
            help: Help::write(meant_value(value)),
        };
    }
    let message = format!("this is not valid TOML: {}", error.message());
    let advice = match error.message().contains("escape") {
        true => "write \\\\ for a backslash, or put the text in single quotes",
        false => "write one `key = value` a line",
    };
    Mistake { span: error_span, message, help: Help::act(advice) }
}

fn explain_duplicate(first_line: &str, span: Range<usize>) -> Mistake {
    if !is_header(first_line) {
        let key = first_line.split('=').next().unwrap_or_default().trim();
        let message = format!("`{key}` is set above already");
        let span = span.start..span.start + key.len();
        return Mistake { span, message, help: Help::act("remove one of both") };
    }
    let header = first_line.split('#').next().unwrap_or_default().trim();
    let name = header.trim_matches(['[', ']']);
    let span = span.start..span.start + header.len();
    match is_repeatable(name) && !header.starts_with("[[") {
        true => {
            let message = format!("there may be several {header}, each with two brackets");
            Mistake { span, message, help: Help::write(format!("[{header}]")) }
        }
        false => {
            let message = format!("{header} stands above already");
            Mistake { span, message, help: Help::act("write its settings there") }
        }
    }
}

/// A bare value as it should be written.
fn meant_value(value: &str) -> String {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" => "true".to_owned(),
        "no" | "off" | "false" => "false".to_owned(),
        _ => quoted(value.trim_matches(['"', '\''])),
    }
}

/// The opening quotes of a text over several lines that never ends, with their offset.
fn unclosed_text(statement: &str) -> Option<(usize, &'static str)> {
    ["\"\"\"", "'''"].into_iter().find_map(|quotes| {
        let mut found = statement.match_indices(quotes);
        let (offset, _) = found.next()?;
        found.next().is_none().then_some((offset, quotes))
    })
}

/// The value of a one-line statement if it has no quotes, or only one of both, with its offset.
fn bare_text(statement: &str) -> Option<(usize, &str)> {
    let (key, value) = statement.split_once('=')?;
    let value_offset = key.len() + 1 + (value.len() - value.trim_start().len());
    let value = value.trim_start().lines().next()?.trim_end();
    let value = value.split(" #").next().unwrap_or(value).trim_end();
    let is_plain = |character: char| !"\"'[]{}=,".contains(character);
    let inner = value.trim_matches(['"', '\'']);
    let quotes = value.len() - inner.len();
    (quotes < 2 && !inner.is_empty() && inner.chars().all(is_plain))
        .then_some((value_offset, value))
}

/// True if the table with this dotted name is one of several, `[[name]]`.
fn is_repeatable(name: &str) -> bool {
    let mut section = Config::describe();
    let mut is_repeatable = false;
    for step in name.split('.') {
        let setting = section.settings.into_iter().find(|setting| setting.name == step.trim());
        (section, is_repeatable) = match setting.map(|setting| setting.shape) {
            Some(ValueShape::Tables(describe)) => (describe(), true),
            Some(ValueShape::Table(describe)) => (describe(), false),
            _ => return false,
        };
    }
    is_repeatable
}

#[cfg(test)]
mod tests;
