//! Text written as for a shell, another server or a word processor: variables, and curly quotes.

use crate::diagnostic::Diagnostic;

/// The variable that a text names: `$HOME`, `${HOME}`, `$1`.
pub(crate) fn variable(text: &str) -> Option<&str> {
    text.match_indices('$').find_map(|(at, _)| {
        let rest = text.get(at..)?;
        let name = rest.get(1..)?;
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let end = match name.strip_prefix('{') {
            Some(inner) => 2 + inner.find('}').filter(|end| *end > 0)? + 1,
            None => 1 + name.find(|it| !is_name(it)).unwrap_or(name.len()),
        };
        rest.get(..end).filter(|found| found.len() > 1)
    })
}

/// Returns the advice about a variable.
pub(crate) fn about_variable(variable: &str) -> String {
    match variable.strip_prefix('$').and_then(|number| number.parse::<u8>().ok()) {
        Some(number) => format!(
            "variables such as `{variable}` are not filled in; what a star of `from` stands for is `{{{number}}}`"
        ),
        None => format!("write the value itself: variables such as `{variable}` are not filled in"),
    }
}

/// A value with straight quotes in place of curly ones, if it has some.
pub(crate) fn straight(value: &str) -> Option<String> {
    let inner = value.trim_start_matches(['"', '\'', '[', ' ']);
    inner.starts_with(CURLY).then(|| {
        let text = value.trim().trim_matches(['"', '\'']).replace(CURLY, "\"");
        match text.starts_with(['"', '[', '{']) {
            true => text,
            false => format!("\"{}\"", text.trim_matches('"')),
        }
    })
}

/// A mistake with better help, where its text is written as for something else.
pub(crate) fn with_hint(mistake: Diagnostic) -> Diagnostic {
    let variable = variable(&mistake.offending).map(about_variable);
    let help = variable.or_else(|| Some(format!("write {}", straight(&mistake.offending)?)));
    Diagnostic { help: help.or(mistake.help), ..mistake }
}

/// Those that word processors and web pages make of straight ones.
pub(crate) const CURLY: [char; 10] = ['“', '”', '„', '‟', '«', '»', '‘', '’', '‚', '‛'];
