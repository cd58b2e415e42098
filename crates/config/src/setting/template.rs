//! Addresses and paths that a request fills in: `https://example.org/new{rest}`; and the patterns of paths beside them.

use std::sync::Arc;

use super::field_template::{FieldPart, FieldTemplate, NamedWord, RequestWord};
use super::rules::{self, Guess, TextRule, Wrong};
use super::text::Read;
use crate::glob;
pub use crate::glob::PathPattern;

/// A text with names in braces that a request fills in. Copies share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Arc<[Piece]>,
}

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Itself.
    Text(Box<str>),
    /// `{path}`: the path of the request.
    Path,
    /// `{asked_path}`: the path that the client asked for, also where a rewrite led elsewhere since.
    Asked,
    /// `{rest}`: what of it follows the route's prefix; nothing, or a slash and more.
    Rest,
    /// `{host}`: the host that was asked for; `www.{host}` is a name below it.
    Host,
    /// `{1}` to `{9}`: what this star of a pattern, or this group of a regular expression, stands for, counted from 0.
    Capture(usize),
    /// `{name}`: what the group of this name stands for.
    Named(Box<str>),
    /// `{scheme}`, `{port}`, `{header:x}`, `{map:x}` and the like.
    Word(FieldPart),
    /// `?` of a rewrite: its query follows. A second one is at its end: the client's query is dropped.
    Query,
}

impl Template {
    /// Its parts in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// True if a redirect may lead to what this text says.
    pub fn is_destination(text: &str) -> bool {
        read_destination(text).is_ok()
    }

    /// The template of a path to try; `None` if this text is none.
    pub fn of_try(text: &str) -> Option<Self> {
        read_try(text).ok()
    }

    /// True if a rewrite may look for what this text says.
    pub fn is_rewritten_path(text: &str) -> bool {
        read_rewritten_path(text).is_ok()
    }

    /// The number of stars of a pattern it takes.
    pub(crate) fn captures(&self) -> usize {
        let captures = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Capture(number) => Some(number + 1),
            _ => None,
        });
        captures.max().unwrap_or(0)
    }

    /// The names of groups that it takes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Named(name) => Some(&**name),
            _ => None,
        })
    }

    /// The names of the maps in it.
    pub(crate) fn maps(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Word(FieldPart::Named(NamedWord::Map, name)) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The map whose text is all of it.
    #[must_use]
    pub fn whole_map(&self) -> Option<&str> {
        match &*self.pieces {
            [Piece::Word(FieldPart::Named(NamedWord::Map, name))] => Some(name),
            _ => None,
        }
    }

    /// True if it is nothing but what the service of `forward_auth` says.
    fn is_said_by_service(&self) -> bool {
        matches!(&*self.pieces, [Piece::Word(FieldPart::Named(NamedWord::Auth, _))])
    }

    /// Returns the text with which it begins, whatever the request.
    pub(crate) fn beginning(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }

    /// Reads a text whose names are right.
    fn read(text: &str) -> Result<Self, Wrong> {
        Self::read_with(text, &["scheme", "port"])
    }

    /// The same, in which these words stand for themselves, and not for groups.
    fn read_with(text: &str, words: &[&str]) -> Result<Self, Wrong> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((name, after)) = behind.split_once('}') else {
                return wrong("a brace is not closed");
            };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.into()));
            }
            pieces.push(match (name, name.as_bytes()) {
                ("path", _) => Piece::Path,
                ("asked_path", _) => Piece::Asked,
                ("rest", _) => Piece::Rest,
                ("host", _) => Piece::Host,
                (_, [digit @ b'1'..=b'9']) => Piece::Capture(usize::from(digit - b'1')),
                _ if name.contains(':') || words.contains(&name) => {
                    let word = FieldTemplate::parse(&format!("{{{name}}}"));
                    let word = word.map_err(|why| Wrong { why, help: Guess::None })?;
                    pieces.extend(word.parts().iter().cloned().map(Piece::Word));
                    rest = after;
                    continue;
                }
                _ if (rules::GROUP_NAME.read)(name).is_ok() => Piece::Named(name.into()),
                _ => {
                    let why = format!(
                        "{{{name}}} is none of {{path}}, {{rest}}, {{host}}, {{1}} to {{9}} and the name of a group"
                    );
                    return wrong(&why);
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Ok(Self { pieces: pieces.into() })
    }
}

/// A path below a folder, of a request's own path and of the groups of an expression.
fn read_try(text: &str) -> Result<Template, Wrong> {
    let template = Template::read(text)?;
    let is_other =
        |piece: &Piece| matches!(piece, Piece::Host | Piece::Rest | Piece::Asked | Piece::Word(_));
    if template.pieces.iter().any(is_other) {
        return wrong("its words are {path}, {1} to {9} and the names of groups");
    }
    if text.starts_with('=') {
        return wrong("404 is the answer without it");
    }
    if !text.starts_with('/') && !text.starts_with("{path}") {
        return wrong("it begins with a slash or with {path}");
    }
    if text.contains(['?', '#', '\\']) || text.chars().any(char::is_control) {
        return wrong("it is a path alone, written as it is decoded");
    }
    Ok(template)
}

/// A URL, or a path on the same host, that no request can turn into one of another host.
fn read_destination(text: &str) -> Result<Template, Wrong> {
    let template = Template::read_with(text, &["scheme", "port", "query", "asked_uri"])?;
    let before_query = text.split('?').next().unwrap_or_default();
    if ["{query}", "{asked_uri}"].iter().any(|word| before_query.contains(word)) {
        return wrong("{query} and {asked_uri} stand behind a ?: the path is {path}");
    }
    if text.contains('#') {
        return wrong("a fragment stays with the client");
    }
    if !text.bytes().all(is_of_url) {
        return wrong("other characters are percent-encoded in a URL");
    }
    if template.whole_map().is_some() || template.is_said_by_service() {
        return Ok(template);
    }
    if text.starts_with("//") {
        let suggestion = format!("https:{text}");
        return Err(Wrong { why: "it names no scheme".to_owned(), help: Guess::Text(suggestion) });
    }
    let Some((scheme, behind)) = text.split_once("://").filter(|_| !text.starts_with('/')) else {
        return match text.starts_with('/') {
            true => Ok(template),
            false => wrong("it begins with https://, http:// or a slash"),
        };
    };
    if !matches!(scheme, "https" | "http" | "{scheme}") {
        return wrong("it begins with https://, http:// or a slash");
    }
    let end = behind.find(['/', '?']).unwrap_or(behind.len());
    let end =
        ["{path}", "{rest}"].iter().filter_map(|name| behind.find(name)).fold(end, usize::min);
    let authority = behind.get(..end).unwrap_or_default();
    let authority = authority.strip_suffix(":{port}").unwrap_or(authority);
    // A name of the site's own may stand before the host: `www.{host}`.
    let above = authority.split_once("{host}");
    let host = above
        .filter(|(labels, port)| is_above(labels) && (port.is_empty() || port.starts_with(':')))
        .map(|(_, port)| port);
    if authority.is_empty() || host.unwrap_or(authority).contains(['{', '@']) {
        return wrong("the host stands there in full, or is {host}: no request decides about it");
    }
    Ok(template)
}

/// True for nothing, or labels of a name, each with its dot.
fn is_above(labels: &str) -> bool {
    let is_label = |it: &str| {
        !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    labels.is_empty() || labels.strip_suffix('.').is_some_and(|it| it.split('.').all(is_label))
}

fn read_rewritten_path(text: &str) -> Result<Template, Wrong> {
    let (text, drops_query) = match text.strip_suffix('?') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, drops_query.then_some("")),
    };
    let of_path = Template::read(path)?;
    let of_query = Template::read_with(query.unwrap_or_default(), &["query"])?;
    let is_taken = |piece: &Piece| match piece {
        Piece::Host => false,
        Piece::Word(FieldPart::Named(word, _)) => matches!(word, NamedWord::Query | NamedWord::Map),
        Piece::Word(_) => false,
        _ => true,
    };
    // A path that begins with no slash once it is filled in is 404.
    let may_begin = path.starts_with('/')
        || matches!(
            of_path.pieces.first(),
            Some(Piece::Path | Piece::Capture(_) | Piece::Named(_))
        );
    if !may_begin || !of_path.pieces.iter().all(is_taken) {
        let why = "it is a path that begins with a slash, a group or {path}, with {path}, {rest}, {query:NAME}, {map:NAME} and groups";
        return wrong(why);
    }
    let is_query = |piece: &Piece| *piece == Piece::Word(FieldPart::Word(RequestWord::Query));
    if !of_query.pieces.iter().all(|piece| is_taken(piece) || is_query(piece)) {
        return wrong("its query has {path}, {rest}, {query}, {query:NAME}, {map:NAME} and groups");
    }
    if path.contains(['#', '\\']) || path.chars().any(char::is_control) {
        return wrong("its path is written as it is decoded, without a fragment");
    }
    if !query.unwrap_or_default().bytes().all(is_of_url) || query.is_some_and(|it| it.contains('?'))
    {
        return wrong("other characters are percent-encoded in a query");
    }
    let mut pieces = of_path.pieces().to_vec();
    if query.is_some() {
        pieces.push(Piece::Query);
        pieces.extend_from_slice(of_query.pieces());
    }
    pieces.extend(drops_query.then_some(Piece::Query));
    Ok(Template { pieces: pieces.into() })
}

fn is_of_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?&=+,;@!$'()*%[]{}".contains(&byte)
}

fn wrong<T>(why: &str) -> Result<T, Wrong> {
    Err(Wrong { why: why.to_owned(), help: Guess::None })
}

/// The target of a redirect.
pub(crate) fn destination() -> Read<Template> {
    Read { rule: &DESTINATION, read: |text| read_destination(text).ok(), none: Template::default }
}

/// The path that is looked for in place of what was asked for.
pub(crate) fn rewritten_path() -> Read<Template> {
    let read = |text: &str| read_rewritten_path(text).ok();
    Read { rule: &REWRITTEN_PATH, read, none: Template::default }
}

/// A pattern for whole paths.
pub(crate) fn path_pattern() -> Read<PathPattern> {
    let read = |text: &str| Some(PathPattern::new(text));
    Read { rule: &PATH_PATTERN, read, none: || PathPattern::new("/**") }
}

static DESTINATION: TextRule = TextRule {
    what: "a URL, or a path that begins with a slash",
    example: "https://example.org{path}",
    read: |text| read_destination(text).map(|_| text.to_owned()),
};
pub(crate) static TRY_PATH: TextRule = TextRule {
    what: "a path below `root`",
    example: "{path}.html",
    read: |text| read_try(text).map(|_| text.to_owned()),
};
static REWRITTEN_PATH: TextRule = TextRule {
    what: "a path that begins with a slash, with a query or without",
    example: "/index.html",
    read: |text| read_rewritten_path(text).map(|_| text.to_owned()),
};
static PATH_PATTERN: TextRule = TextRule {
    what: "a pattern of `*`, `**` and `?` that begins with a slash",
    example: "/old/**",
    read: |text| match glob::check(text) {
        Ok(()) if text.starts_with('/') => Ok(text.to_owned()),
        Ok(()) => {
            let why = "it is held against the whole path".to_owned();
            Err(Wrong { why, help: Guess::Text(format!("/{text}")) })
        }
        Err(bad_pattern) => wrong(bad_pattern.why),
    },
};

#[cfg(test)]
mod tests;
