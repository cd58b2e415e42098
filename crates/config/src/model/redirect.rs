//! `[[site.route.redirect]]` and `[[site.route.rewrite]]`: other addresses and other paths for some paths.

use crate::rule_index::PathKey;
use crate::setting::{
    Expression, PathPattern, Template, destination, expression, flag, one_number, optional,
    path_pattern, required, rewritten_path, settings,
};

settings! {
    /// Another address for some paths of a route.
    pub struct Redirect {
        /// The paths it is for, each as a whole: `*` stands for any characters but `/`, `**` for any characters, `?` for one
        /// but `/`.
        pub from: Option<PathPattern> = optional(path_pattern(), "all paths of the route"),
        /// In place of `from`: a regular expression that a part of the path fits. `{1}` is then what its first group stands for,
        /// `{name}` its group of that name; without `from` and this the groups are those of the route's `regex`.
        pub regex: Option<Expression> = expression("`from` decides"),
        /// The target of the redirect: a URL, or a path on the same host. `{path}` is the whole path that was asked for,
        /// `{rest}` what of it follows the route's prefix, `{1}` what the first star of `from` stands for, `{host}` the host
        /// that was asked for. `{scheme}`, `{port}`, `{header:NAME}`, `{cookie:NAME}`, `{query:NAME}` and `{map:NAME}` are
        /// those of `request_headers`. Values are percent-encoded, but for those that a `[[map]]` has without words, and
        /// behind a `?` for `{query}` and `{asked_uri}`, which are as the client sent them. `"{map:NAME}"` alone may be
        /// a whole URL; where the map says nothing, the redirect does not hold.
        pub to: Template = required(destination()),
        /// The status: 301 and 308 for ever, 302 and 307 for now, 303 for the answer to a form. With 307 and 308 clients keep
        /// the method and send the body again.
        pub status: u16 = one_number(302, &[301, 302, 303, 307, 308]),
        /// Sends what stands behind the `?` of the request along.
        pub keep_query: bool = flag(true),
    }
}

settings! {
    /// Another path to look for. Clients see nothing of it.
    pub struct Rewrite {
        /// The paths it is for, as with `redirect`.
        pub from: Option<PathPattern> = optional(path_pattern(), "all paths of the route"),
        /// As with `redirect`.
        pub regex: Option<Expression> = expression("`from` decides"),
        /// The path to look for, with `{path}`, `{rest}` and `{1}` as with `redirect`, `{query:NAME}` and `{map:NAME}`, which stand
        /// there as they are. If it is another route's, that one answers
        /// and asks what it asks of every request; after ten such steps the answer is 500. Behind a `?` it may say a query, in which
        /// what is filled in is percent-encoded, but for `{query}` and `{query:NAME}` of the client's: all of that follows, behind a
        /// `&`. A `?` at its end drops the client's. A path that begins with a group is 404 where that says no slash.
        pub to: Template = required(rewritten_path()),
        /// This route answers for that path, whatever route it is of: nginx's `break`. Not with `cache`, whose responses are found by
        /// paths, and not before routes.
        pub stay: bool = flag(false),
    }
}

/// The paths that a redirect or a rewrite is for.
#[derive(Clone, Copy, Debug)]
pub enum PathChoice<'c> {
    /// All of its route.
    All,
    /// Those that fit a pattern.
    Pattern(&'c PathPattern),
    /// Those that fit a regular expression.
    Expression(&'c Expression),
}

impl<'c> PathChoice<'c> {
    fn of(from: &'c Option<PathPattern>, regex: &'c Option<Expression>) -> Self {
        match (from, regex) {
            (Some(from), _) => Self::Pattern(from),
            (None, Some(regex)) => Self::Expression(regex),
            (None, None) => Self::All,
        }
    }

    /// Returns the key by which an index finds the paths.
    #[must_use]
    pub fn key(self) -> PathKey<'c> {
        match self {
            Self::Pattern(pattern) => PathPattern::key_of(Some(pattern)),
            Self::All | Self::Expression(_) => PathKey::ANY,
        }
    }

    /// True if it is for this path.
    #[must_use]
    pub fn fits(self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Pattern(pattern) => pattern.fits(path),
            Self::Expression(expression) => expression.fits(path),
        }
    }
}

impl Redirect {
    /// The paths it is for.
    #[must_use]
    pub fn choice(&self) -> PathChoice<'_> {
        PathChoice::of(&self.from, &self.regex)
    }
}

impl Rewrite {
    /// The paths it is for.
    #[must_use]
    pub fn choice(&self) -> PathChoice<'_> {
        PathChoice::of(&self.from, &self.regex)
    }
}
