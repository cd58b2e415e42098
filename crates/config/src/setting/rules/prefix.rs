//! The prefix of a route: a text that paths are compared with. Patterns of other servers are mistakes in it.

use super::{BEGINS_WITH_SLASH, Wrong, without_dots};

pub(super) fn prefix(text: &str) -> Result<String, Wrong> {
    refuse_patterns(text)?;
    let path = path(text)?;
    decoded(&path)
}

/// A path that begins with a slash, as requests are compared with it.
pub(super) fn path(text: &str) -> Result<String, Wrong> {
    if !text.starts_with('/') {
        return Err(Wrong::suggesting(BEGINS_WITH_SLASH, format!("/{text}")));
    }
    if text.contains(['?', '#']) || text.chars().any(char::is_control) {
        let why = "a prefix holds neither query, fragment nor control characters";
        let is_beyond = |character: char| "?#".contains(character) || character.is_control();
        return Err(Wrong::suggesting(why, text.split(is_beyond).next().unwrap_or("/")));
    }
    if text.contains("//") || text.split('/').any(|segment| segment == "." || segment == "..") {
        let why = "requests are compared after `//`, `.` and `..` are removed";
        return Err(Wrong::suggesting(why, without_dots(text)));
    }
    Ok(text.to_owned())
}

/// A pattern that was taken for a text would let all pass that it is to keep out.
fn refuse_patterns(text: &str) -> Result<(), Wrong> {
    let rest = text.trim_start_matches(['^', '~', '=', '*']).trim_start();
    let is_plain = rest.starts_with('/') && !has_pattern(rest);
    let advice = |why: &str| Wrong::advice(why, NO_PATTERNS);
    if let Some(before) = text.strip_suffix('*').filter(|_| text.starts_with('/')) {
        let before = before.trim_end_matches('*');
        return Err(match has_pattern(before) {
            false => Wrong::suggesting("a prefix needs no `*` at its end", before),
            true => advice("it is a text, no pattern"),
        });
    }
    // As nginx writes them: `^~ /a/`, `= /a`; `^/a`.
    if text.starts_with(['^', '=']) && is_plain {
        let why = "the longest prefix that fits decides, and takes what is below it, too";
        return Err(Wrong::suggesting(why, rest));
    }
    match text.starts_with(['^', '=', '~', '*']) && text != "*" || has_pattern(text) {
        true => Err(advice("it is a text, no pattern")),
        false => Ok(()),
    }
}

fn has_pattern(text: &str) -> bool {
    text.contains(PATTERN) || text.ends_with('$')
}

/// Requests are compared after decoding. Only what would be taken for a pattern may be written as `%XX`.
fn decoded(path: &str) -> Result<String, Wrong> {
    let mut pieces = path.split('%');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let byte = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let character = byte.map(char::from).filter(|it| is_escaped(*it));
        let (Some(character), Some(rest)) = (character, piece.get(2..)) else {
            let why = "requests are compared after decoding";
            return Err(Wrong::advice(why, "write the character itself in place of each %XX"));
        };
        text.push(character);
        text.push_str(rest);
    }
    Ok(text)
}

fn is_escaped(character: char) -> bool {
    PATTERN.contains(&character) || "$~%".contains(character)
}

/// A path as it is written for a prefix that means its characters.
#[must_use]
pub fn written_prefix(path: &str) -> String {
    let written = |it: char| match is_escaped(it) && it != '~' {
        true => format!("%{:02X}", u32::from(it)),
        false => it.to_string(),
    };
    path.chars().map(written).collect()
}

const PATTERN: [char; 6] = ['*', '^', '|', '(', ')', '\\'];
const NO_PATTERNS: &str = "write the beginning that all its paths have; `from` of a redirect or a rewrite and \
                           `cache_control` take patterns, and %2A is a `*` itself";
