//! The grammar of hitch.conf: `key = value`, and blocks in braces.

use std::path::Path;

use kettle_config::{Diagnostic, Excerpt, Origin, Position, closest};

use super::vocabulary::{Context, Takes, Term};
use super::{Statement, Value};
use crate::Surroundings;

pub(super) fn read(
    path: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Vec<Statement>, Vec<Diagnostic>> {
    let text = surroundings.read(path).map_err(|error| {
        let origin = Origin { path: path.to_path_buf(), ..Origin::default() };
        vec![origin.diagnostic(format!("the configuration cannot be read: {error}"), None)]
    })?;
    parse(path, &text)
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Statement>, Vec<Diagnostic>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser { tokens: Vec::new(), next: 0, diagnostics: Vec::new() };
    for (index, line) in text.lines().enumerate() {
        parser.split(path, index + 1, line);
    }
    let statements = parser.statements(Context::Top, None);
    if parser.diagnostics.is_empty() {
        return Ok(statements);
    }
    parser.diagnostics.sort_by_key(Diagnostic::position);
    Err(parser.diagnostics)
}

struct Token {
    kind: TokenKind,
    origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TokenKind {
    Open,
    Close,
    Equals,
    Word,
    /// Without its quotes.
    Quoted(String),
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    diagnostics: Vec<Diagnostic>,
}

impl Parser {
    /// Splits a line into its tokens.
    fn split(&mut self, path: &Path, number: usize, line: &str) {
        let origin = |column: usize, rest: &str, written: &str| Origin {
            path: path.to_path_buf(),
            at: Position { line: number, column },
            written: written.to_owned(),
            source_line: Some(Excerpt::around(line, line.len() - rest.len())),
        };
        let mut rest = line;
        let mut column = 1;
        while let Some(first) = rest.chars().next() {
            let (kind, bytes) = match first {
                '#' => return,
                // hitch takes one behind a value.
                ';' => (None, 1),
                space if space.is_whitespace() => (None, space.len_utf8()),
                '{' => (Some(TokenKind::Open), 1),
                '}' => (Some(TokenKind::Close), 1),
                '=' => (Some(TokenKind::Equals), 1),
                '"' => match rest.get(1..).and_then(|text| text.find('"')) {
                    Some(bytes) => {
                        let text = rest.get(1..bytes + 1).unwrap_or_default().to_owned();
                        (Some(TokenKind::Quoted(text)), bytes + 2)
                    }
                    None => {
                        let help = Some("write a `\"` at the end of the value".to_owned());
                        let message = "this text does not end on its line";
                        self.diagnostics.push(origin(column, rest, rest).diagnostic(message, help));
                        return;
                    }
                },
                _ => {
                    let ends = |letter: char| letter.is_whitespace() || "{}=#\";".contains(letter);
                    (Some(TokenKind::Word), rest.find(ends).unwrap_or(rest.len()))
                }
            };
            let (written, behind) = rest.split_at_checked(bytes).unwrap_or((rest, ""));
            if let Some(kind) = kind {
                self.tokens.push(Token { kind, origin: origin(column, rest, written) });
            }
            column += written.chars().count();
            rest = behind;
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn is_next(&self, kind: &TokenKind) -> bool {
        self.peek().is_some_and(|token| token.kind == *kind)
    }

    fn take(&mut self, kind: &TokenKind) -> bool {
        let is_next = self.is_next(kind);
        self.next += usize::from(is_next);
        is_next
    }

    /// Statements to the end of the file, or of the block that began at `opened`.
    fn statements(&mut self, context: Context, opened: Option<&Origin>) -> Vec<Statement> {
        let mut statements = Vec::new();
        while let Some(token) = self.peek() {
            let kind = token.kind.clone();
            let origin = token.origin.clone();
            if kind == TokenKind::Close {
                self.next += 1;
                if opened.is_some() {
                    return statements;
                }
                self.diagnostics
                    .push(origin.diagnostic("no block is open here", Some(REMOVE.into())));
                continue;
            }
            self.next += 1;
            statements.extend(self.statement(context, kind, origin));
        }
        if let Some(opened) = opened {
            let help = Some("write a `}` behind its last setting".to_owned());
            self.diagnostics.push(opened.diagnostic("this block is never closed", help));
        }
        statements
    }

    fn statement(&mut self, context: Context, kind: TokenKind, key: Origin) -> Option<Statement> {
        if kind != TokenKind::Word {
            let message = format!("here the name of a setting should stand, not `{}`", key.written);
            self.diagnostics.push(key.diagnostic(message, None));
            self.skip_line(&key);
            return None;
        }
        let name = key.written.clone();
        if !self.take(&TokenKind::Equals) {
            let message = format!("behind `{name}` a `=` is missing");
            self.diagnostics.push(key.diagnostic(message, Some(format!("write {name} = …"))));
            self.skip_line(&key);
            return None;
        }
        let term = Term::find(&name);
        let Some(term) = term.filter(|found| found.contexts.contains(&context)) else {
            self.unknown(context, &key);
            self.skip_value();
            return None;
        };
        let takes_block = match term.takes {
            Takes::TextOr(inner) => Some(inner),
            _ => None,
        };
        if self.is_next(&TokenKind::Open) {
            let opened = self.peek()?.origin.clone();
            self.next += 1;
            let Some(inner) = takes_block else {
                let message = format!("`{name}` takes no block");
                let help = format!("write its value behind `{name} =`, without braces");
                self.diagnostics.push(opened.diagnostic(message, Some(help)));
                self.next -= 1;
                self.skip_value();
                return None;
            };
            let block = self.statements(inner, Some(&opened));
            return Some(Statement { key: term.name, value: Value::Block(block), origin: key });
        }
        let (text, origin) = self.value(term, &key)?;
        match check(term, &text) {
            Ok(()) => Some(Statement { key: term.name, value: Value::Text(text), origin }),
            Err((message, help)) => {
                self.diagnostics.push(origin.diagnostic(message, help));
                None
            }
        }
    }

    /// The text behind `=`. Of versions there may be several words.
    fn value(&mut self, term: &Term, key: &Origin) -> Option<(String, Origin)> {
        let Some(token) = self.peek() else {
            let message = format!("`{}` has no value", term.name);
            self.diagnostics.push(key.diagnostic(message, None));
            return None;
        };
        let mut origin = token.origin.clone();
        let mut text = match &token.kind {
            TokenKind::Quoted(text) => text.clone(),
            // A word before `=` is the next setting.
            TokenKind::Word if !self.is_setting(self.next) => origin.written.clone(),
            _ => {
                let message = format!("`{}` has no value", term.name);
                self.diagnostics.push(key.diagnostic(message, None));
                return None;
            }
        };
        self.next += 1;
        while term.takes == Takes::Protocols
            && self.is_next(&TokenKind::Word)
            && !self.is_setting(self.next)
        {
            let word = self.peek()?.origin.written.clone();
            text = format!("{text} {word}");
            self.next += 1;
        }
        if term.takes == Takes::Protocols {
            origin.written.clone_from(&text);
        }
        Some((text, origin))
    }

    fn is_setting(&self, index: usize) -> bool {
        self.tokens.get(index + 1).is_some_and(|token| token.kind == TokenKind::Equals)
    }

    fn unknown(&mut self, context: Context, key: &Origin) {
        let name = &key.written;
        let known = Term::names(context);
        let message = format!("`{name}` is not a setting of {}", context.name());
        let help = match Term::find(name).map(|found| found.contexts) {
            Some([Context::Frontend, ..]) => Some("write it in a frontend's block".to_owned()),
            Some([Context::PemFile, ..]) => Some("write it in a pem-file's block".to_owned()),
            Some(_) => Some("write it outside of the block".to_owned()),
            None => closest(name, &known).map(|closest| format!("write {closest}")),
        };
        let help = help.or_else(|| Some(REMOVE.to_owned()));
        self.diagnostics.push(key.diagnostic(message, help));
    }

    fn skip_line(&mut self, origin: &Origin) {
        let is_there = |token: &Token| token.origin.at.line == origin.at.line;
        while self.peek().is_some_and(is_there) && !self.is_next(&TokenKind::Close) {
            self.next += 1;
        }
    }

    /// Skips what stands behind the `=` of a setting that nobody knows.
    fn skip_value(&mut self) {
        if !self.take(&TokenKind::Open) {
            self.next += usize::from(!self.is_next(&TokenKind::Close) && self.peek().is_some());
            return;
        }
        let mut depth = 1_usize;
        while depth > 0 && self.next < self.tokens.len() {
            depth += usize::from(self.is_next(&TokenKind::Open));
            depth -= usize::from(self.is_next(&TokenKind::Close));
            self.next += 1;
        }
    }
}

/// The fault of a value, and what to do instead.
pub(super) type Wrong = (String, Option<String>);

/// Checks whether a setting takes a value of this form.
pub(super) fn check(term: &Term, text: &str) -> Result<(), Wrong> {
    let name = term.name;
    let wrong = |takes: &str, help: &str| {
        Err((format!("`{name}` takes {takes}, not `{text}`"), Some(format!("write {help}"))))
    };
    match term.takes {
        Takes::Text | Takes::TextOr(_) => Ok(()),
        Takes::Flag if flag(text).is_none() => wrong("on or off", "on or off"),
        Takes::Number if text.parse::<u32>().is_err() => wrong("a number", "a number"),
        Takes::Workers if text != "auto" && text.parse::<u32>().is_err() => {
            wrong("a number or auto", "auto")
        }
        Takes::Verify if !["none", "optional", "required"].contains(&text) => {
            wrong("none, optional or required", "required")
        }
        Takes::Protocols => {
            let unknown = protocols(text).find(|word| !PROTOCOLS.contains(word));
            match (unknown, protocols(text).next()) {
                (None, Some(_)) => Ok(()),
                _ => wrong(&format!("some of {}", PROTOCOLS.join(", ")), "TLSv1.2 TLSv1.3"),
            }
        }
        Takes::Flag | Takes::Number | Takes::Workers | Takes::Verify => Ok(()),
    }
}

pub(super) fn protocols(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t', ',', ':']).filter(|word| !word.is_empty())
}

/// The ways in which yes and no are written.
pub(super) fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "yes" | "y" | "true" | "t" | "1" => Some(true),
        "off" | "no" | "n" | "false" | "f" | "0" => Some(false),
        _ => None,
    }
}

const PROTOCOLS: [&str; 5] = ["SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

const REMOVE: &str = "remove it";
