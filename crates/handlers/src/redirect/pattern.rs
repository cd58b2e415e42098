//! Other addresses for some paths of a route, and other paths to look for.
//!
//! Whatever a request fills in stays a path on the host that the configuration names: it is encoded,
//! and a reference never begins with two slashes.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};

use kettle_config::{
    Before, Captures, Expression, FieldPart, NamedWord, PathChoice, Piece, Redirect, Rewrite,
    Route, RuleIndex, Template,
};
use kettle_exchange::error_page::HttpError;
use kettle_exchange::response::{ConfiguredFields, Response};
use kettle_http::target::{Target, can_name};
use kettle_http::uri::{percent_encode_path, percent_encode_segments};

use super::redirect;
use crate::words::{Asked, WordSource, Words, argument};

/// The work of a place on paths before it looks for an answer.
#[derive(Debug)]
pub struct Paths {
    /// The beginning of all its paths; without its last slash where that stands for whole segments.
    beginning: String,
    /// The expression that chose the place.
    regex: Option<Expression>,
    redirects: Rules<Redirect>,
    rewrites: Rules<Rewrite>,
}

/// Rules for paths, in the order of the file. There may be ten thousand.
#[derive(Debug)]
struct Rules<R> {
    rules: Box<[R]>,
    index: RuleIndex,
    choice: fn(&R) -> PathChoice<'_>,
}

/// The path that is looked for in place of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The path.
    pub path: String,
    /// The query; `None` if the client's stays. An empty one is none.
    pub query: Option<String>,
    /// True if no other route is looked for.
    pub stays: bool,
}

/// The values that a request fills in.
struct Filling<'f> {
    path: &'f str,
    /// That of the request, whatever rewrites made of it.
    asked: &'f str,
    beginning: &'f str,
    captured: Captured<'f>,
    host: Option<&'f str>,
}

/// The texts for which stars or groups stand.
enum Captured<'f> {
    Nothing,
    Stars(Vec<&'f str>),
    Groups(Captures<'f>),
}

impl<'f> Captured<'f> {
    fn of(choice: PathChoice<'_>, own: Option<&Expression>, path: &'f str) -> Self {
        let groups =
            |expression: &Expression| expression.captures(path).map_or(Self::Nothing, Self::Groups);
        match choice {
            PathChoice::Pattern(pattern) => Self::Stars(pattern.captures(path).unwrap_or_default()),
            PathChoice::Expression(expression) => groups(expression),
            PathChoice::All => own.map_or(Self::Nothing, groups),
        }
    }

    /// That of this number, counted from 0.
    fn numbered(&self, number: usize) -> Option<&'f str> {
        match self {
            Self::Nothing => None,
            Self::Stars(stars) => stars.get(number).copied(),
            Self::Groups(groups) => groups.get(number + 1),
        }
    }

    fn named(&self, name: &str) -> Option<&'f str> {
        match self {
            Self::Groups(groups) => groups.named(name),
            Self::Nothing | Self::Stars(_) => None,
        }
    }
}

impl Paths {
    /// Those of a route; none if it has none.
    pub fn of(route: &Route) -> Option<Self> {
        let beginning = route.place().map_or("", |place| place.text());
        Self::new(beginning, route.regex.as_ref(), &route.redirects, &route.rewrites)
    }

    /// Those of what is asked before a route is looked for.
    pub fn before(before: &Before) -> Option<Self> {
        let beginning = before.place().text();
        Self::new(beginning, before.regex.as_ref(), &before.redirects, &before.rewrites)
    }

    fn new(
        beginning: &str,
        regex: Option<&Expression>,
        redirects: &[Redirect],
        rewrites: &[Rewrite],
    ) -> Option<Self> {
        let has_any = !redirects.is_empty() || !rewrites.is_empty();
        has_any.then(|| Self {
            beginning: beginning.to_owned(),
            regex: regex.cloned(),
            redirects: Rules::of(redirects, Redirect::choice),
            rewrites: Rules::of(rewrites, Rewrite::choice),
        })
    }

    /// Returns where a client is sent that asks for this target, if it is.
    ///
    /// # Errors
    /// 400 if that takes the host asked for and there is none.
    pub fn redirect(
        &self,
        target: Target<'_>,
        asked: Asked<'_>,
        source: &WordSource,
        configured: &ConfiguredFields,
    ) -> Result<Option<Response>, HttpError> {
        let words = OnceCell::new();
        let words = || words.get_or_init(|| asked.words(source));
        let holds = |rule: &Redirect| leads_somewhere(&rule.to, words);
        let Some(rule) = self.redirects.first(target.path, holds) else { return Ok(None) };
        let filling = self.filling(rule.choice(), target.path, asked.head.host());
        // Nobody knows then which slashes of a text were encoded.
        let is_unclear = Cell::new(false);
        let word = |word: &FieldPart| {
            let (text, is_own) = words().in_location(word);
            is_unclear.set(is_unclear.get() || !is_own);
            text
        };
        let encode = |text, before: &str| {
            is_unclear.set(is_unclear.get() || target.has_lookalike_slash);
            in_location(target, text, before)
        };
        let mut location = filling.fill(rule.to.pieces(), encode, word).ok_or(400_u16)?;
        if target.has_encoded_slash && is_unclear.get() {
            return Err(400.into());
        }
        if location.starts_with("//") {
            location = format!("/{}", location.trim_start_matches('/'));
        }
        if let Some(query) = target.query.filter(|_| rule.keep_query) {
            location.push(if location.contains('?') { '&' } else { '?' });
            location.push_str(query);
        }
        Ok(Some(redirect(rule.status, &location, configured)))
    }

    /// Returns what to look for in place of this target; none if there is nothing.
    ///
    /// # Errors
    /// 404 if what was filled in makes it a path that no file can have, 414 if one that grew too long: each rule may say it twice;
    /// 400 if a slash that stays encoded would get into its query.
    pub fn rewritten(
        &self,
        target: Target<'_>,
        asked_path: &str,
        asked: Asked<'_>,
        source: &WordSource,
    ) -> Result<Option<Rewritten>, HttpError> {
        let Some(rule) = self.rewrites.first(target.path, |_| true) else { return Ok(None) };
        let stays = rule.stay;
        let filling =
            Filling { asked: asked_path, ..self.filling(rule.choice(), target.path, None) };
        let words = OnceCell::new();
        let words = || words.get_or_init(|| asked.words(source));
        // As nginx has it: nothing is decoded once more.
        let as_said = |word: &FieldPart| words().said(word);
        let mut parts = rule.to.pieces().split(|piece| *piece == Piece::Query);
        let as_it_is = |text, _: &str| Cow::Borrowed(text);
        let path = filling.fill(parts.next().unwrap_or_default(), as_it_is, as_said);
        let path = path.filter(|path| is_normal(path)).ok_or(404_u16)?;
        if path.len() > REWRITTEN_BYTES_MAX {
            return Err(414.into());
        }
        let Some(own) = parts.next() else {
            return Ok(Some(Rewritten { path, query: None, stays }));
        };
        let is_filled = own.iter().any(|it| !matches!(it, Piece::Text(_) | Piece::Word(_)));
        if target.has_encoded_slash && is_filled {
            return Err(400.into());
        }
        // As nginx has it, but for what would divide an argument again.
        let encoded = |text, _: &str| Cow::Owned(percent_encode_segments(text).replace('=', "%3D"));
        let sent = target.query.unwrap_or_default();
        let of_query = |word: &FieldPart| match word {
            FieldPart::Word(_) => sent.to_owned(),
            FieldPart::Named(NamedWord::Map, _) => words().in_url(word).0,
            FieldPart::Named(_, name) => {
                String::from_utf8_lossy(argument(sent, name).unwrap_or_default()).into_owned()
            }
            FieldPart::Text(_) | FieldPart::Group(_) => String::new(),
        };
        let mut query = filling.fill(own, encoded, of_query).ok_or(404_u16)?;
        if parts.next().is_none() && !sent.is_empty() {
            query.push_str(if query.is_empty() { "" } else { "&" });
            query.push_str(sent);
        }
        if query.len() > REWRITTEN_BYTES_MAX {
            return Err(414.into());
        }
        Ok(Some(Rewritten { path, query: Some(query), stays }))
    }

    fn filling<'f>(
        &'f self,
        choice: PathChoice<'_>,
        path: &'f str,
        host: Option<&'f str>,
    ) -> Filling<'f> {
        let captured = Captured::of(choice, self.regex.as_ref(), path);
        Filling { path, asked: path, beginning: &self.beginning, captured, host }
    }
}

/// Returns where a redirect leads that is for all paths; `None` if something is not there to fill it in.
pub fn location_of(to: &Template, asked: Asked<'_>, source: &WordSource) -> Option<String> {
    let target = asked.head.target().ok()?;
    let captured = Captured::Nothing;
    let host = asked.head.host();
    let filling = Filling { path: target.path, asked: target.path, beginning: "", captured, host };
    let words = asked.words(source);
    if !leads_somewhere(to, || &words) {
        return None;
    }
    let encode = |text, before: &str| in_location(target, text, before);
    let location = filling.fill(to.pieces(), encode, |word| words.in_location(word).0);
    location.filter(|location| !location.is_empty() && !location.starts_with("//"))
}

/// Fills a value in as a URL has it behind what is before it: in a path as it may stand there, in a query so that it ends no
/// argument and begins none. A slash that stays encoded in the target is not encoded once more.
fn in_location<'f>(target: Target<'_>, text: &'f str, before: &str) -> Cow<'f, str> {
    let encoded = match before.contains('?') {
        true => percent_encode_path(text),
        false => percent_encode_segments(text),
    };
    Cow::Owned(match target.has_encoded_slash {
        true => encoded.replace("%252F", "%2F"),
        false => encoded,
    })
}

/// False where a redirect is a word alone, and its map says nothing, or a client nothing that is a path.
fn leads_somewhere<'w>(to: &Template, words: impl Fn() -> &'w Words<'w>) -> bool {
    match to.pieces() {
        [Piece::Word(word)] => match words().in_location(word) {
            (text, true) => !text.is_empty(),
            (text, false) => text.starts_with('/'),
        },
        _ => true,
    }
}

fn ends_with_host(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, behind)| !behind.contains(['/', '?']))
}

/// True if a path could be a file's, or a folder's.
pub(super) fn is_normal(path: &str) -> bool {
    let Some(names) = path.strip_prefix('/') else { return false };
    let names = names.strip_suffix('/').unwrap_or(names);
    path == "/" || names.split('/').all(|name| can_name(name.as_bytes()))
}

impl<R: Clone> Rules<R> {
    fn of(rules: &[R], choice: fn(&R) -> PathChoice<'_>) -> Self {
        let index = RuleIndex::new(rules.iter().map(|rule| choice(rule).key()));
        Self { rules: rules.into(), index, choice }
    }

    fn first(&self, path: &str, holds: impl Fn(&R) -> bool) -> Option<&R> {
        let fits = |number: usize| {
            let rule = self.rules.get(number);
            rule.is_some_and(|rule| (self.choice)(rule).fits(path) && holds(rule))
        };
        self.rules.get(self.index.first(path, fits)?)
    }
}

impl<'f> Filling<'f> {
    /// The text of a template; none if something is not there to fill it in. `encode` gets what is filled in, and what is before it.
    fn fill(
        &self,
        pieces: &[Piece],
        encode: impl Fn(&'f str, &str) -> Cow<'f, str>,
        word: impl Fn(&FieldPart) -> String,
    ) -> Option<String> {
        let mut text = String::new();
        for piece in pieces {
            let filled = match piece {
                Piece::Text(written) => {
                    text.push_str(written);
                    continue;
                }
                Piece::Path => self.path,
                Piece::Asked => self.asked,
                Piece::Rest => {
                    let rest = self.path.strip_prefix(self.beginning)?;
                    // Right behind a host it would go on with the host.
                    if ends_with_host(&text) && !rest.is_empty() && !rest.starts_with('/') {
                        return None;
                    }
                    rest
                }
                Piece::Host => {
                    text.push_str(self.host?);
                    continue;
                }
                Piece::Capture(number) => self.captured.numbered(*number)?,
                Piece::Word(part) => {
                    text.push_str(&word(part));
                    continue;
                }
                Piece::Named(name) => self.captured.named(name)?,
                // Both of its sides are filled by themselves.
                Piece::Query => return None,
            };
            let encoded = encode(filled, &text);
            text.push_str(&encoded);
        }
        Some(text)
    }
}

/// Longest path that a rewrite makes.
const REWRITTEN_BYTES_MAX: usize = 64 * 1_024;

#[cfg(test)]
mod tests;
