//! Other addresses for some paths of a route, and other paths to look for.
//!
//! Whatever a request fills in stays a path on the host that the configuration names: it is encoded,
//! and a reference never begins with two slashes.

use std::borrow::Cow;
use std::cell::Cell;

use kettle_config::{PathPattern, Piece, Redirect, Rewrite, Route, RuleIndex, Template};
use kettle_http::target::{Target, can_name};
use kettle_http::uri::percent_encode_path;

use super::redirect;
use crate::error_page::HttpError;
use crate::request::Head;
use crate::response::{ConfiguredFields, Response};

/// What a route does with paths before it looks for files.
#[derive(Debug)]
pub struct Paths {
    /// Without its last slash.
    prefix: String,
    redirects: Rules<Redirect>,
    rewrites: Rules<Rewrite>,
}

/// Rules for paths, in the order of the file. There may be ten thousand.
#[derive(Debug)]
struct Rules<R> {
    rules: Box<[R]>,
    index: RuleIndex,
    from: fn(&R) -> Option<&PathPattern>,
}

/// What a request fills in.
struct Filling<'f> {
    path: &'f str,
    prefix: &'f str,
    captures: Vec<&'f str>,
    host: Option<&'f str>,
}

impl Paths {
    /// Those of a route; none if it has none.
    #[must_use]
    pub fn of(route: &Route) -> Option<Self> {
        let has_any = !route.redirects.is_empty() || !route.rewrites.is_empty();
        has_any.then(|| Self {
            prefix: route.prefix.trim_end_matches('/').to_owned(),
            redirects: Rules::of(&route.redirects, |rule| rule.from.as_ref()),
            rewrites: Rules::of(&route.rewrites, |rule| rule.from.as_ref()),
        })
    }

    /// Where a client is sent that asks for this target, if it is.
    ///
    /// # Errors
    /// 400 if that takes the host asked for and there is none.
    pub fn redirect(
        &self,
        target: Target<'_>,
        head: &Head,
        configured: &ConfiguredFields,
    ) -> Result<Option<Response>, HttpError> {
        let Some((rule, captures)) = self.redirects.first(target.path) else { return Ok(None) };
        let filling =
            Filling { path: target.path, prefix: &self.prefix, captures, host: head.host() };
        // Where a slash stays encoded, only the target knows which text was: encoded anew it would name something else.
        let is_filled = Cell::new(false);
        let encode = |text| {
            is_filled.set(true);
            Cow::Owned(percent_encode_path(text))
        };
        let mut location = filling.fill(&rule.to, encode).ok_or(400_u16)?;
        if target.has_encoded_slash && is_filled.get() {
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

    /// The path to look for in place of this one; none if there is none.
    ///
    /// # Errors
    /// 404 if what was filled in makes it a path that no file can have.
    pub fn rewritten(&self, path: &str) -> Result<Option<String>, HttpError> {
        let Some((rule, captures)) = self.rewrites.first(path) else { return Ok(None) };
        let filling = Filling { path, prefix: &self.prefix, captures, host: None };
        let rewritten = filling.fill(&rule.to, Cow::Borrowed).ok_or(404_u16)?;
        let names = rewritten.strip_prefix('/').unwrap_or_default();
        let names = names.strip_suffix('/').unwrap_or(names);
        let is_normal = rewritten == "/" || names.split('/').all(|name| can_name(name.as_bytes()));
        if is_normal { Ok(Some(rewritten)) } else { Err(404.into()) }
    }
}

impl<R: Clone> Rules<R> {
    fn of(rules: &[R], from: fn(&R) -> Option<&PathPattern>) -> Self {
        let index = RuleIndex::new(rules.iter().map(|rule| PathPattern::key_of(from(rule))));
        Self { rules: rules.into(), index, from }
    }

    /// The first rule for a path, with what the stars of its pattern stand for there.
    fn first<'p>(&self, path: &'p str) -> Option<(&R, Vec<&'p str>)> {
        let from = |number: usize| self.rules.get(number).and_then(self.from);
        let fits = |number: usize| from(number).is_none_or(|from| from.fits(path));
        let number = self.index.first(path, fits)?;
        let captures = from(number).and_then(|from| from.captures(path)).unwrap_or_default();
        Some((self.rules.get(number)?, captures))
    }
}

impl<'f> Filling<'f> {
    /// The text of a template; none if something is not there to fill it in.
    fn fill(
        &self,
        template: &Template,
        encode: impl Fn(&'f str) -> Cow<'f, str>,
    ) -> Option<String> {
        let mut text = String::new();
        for piece in template.pieces() {
            match piece {
                Piece::Text(written) => text.push_str(written),
                Piece::Path => text.push_str(&encode(self.path)),
                Piece::Rest => text.push_str(&encode(self.path.strip_prefix(self.prefix)?)),
                Piece::Host => text.push_str(self.host?),
                Piece::Capture(number) => text.push_str(&encode(self.captures.get(*number)?)),
            }
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests;
