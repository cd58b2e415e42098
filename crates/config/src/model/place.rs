//! The paths that a route, or what comes before routes, is for.

use crate::rule_index::PathKey;

/// The paths that a route is for, its `regex` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place<'r> {
    /// All that begin with these whole segments. Without its last slash; empty for all paths.
    Prefix(&'r str),
    /// All that begin with this text.
    TextPrefix(&'r str),
    /// This one.
    Exact(&'r str),
}

impl<'r> Place<'r> {
    /// The one that is written, if any.
    pub(super) fn of(
        prefix: &'r Option<String>,
        text_prefix: &'r Option<String>,
        exact: &'r Option<String>,
    ) -> Option<Self> {
        let prefix = prefix.as_ref().map(|it| Self::Prefix(it.trim_end_matches('/')));
        let text_prefix = || text_prefix.as_deref().map(Self::TextPrefix);
        prefix.or_else(text_prefix).or_else(|| exact.as_deref().map(Self::Exact))
    }

    /// True if it is for this path.
    #[must_use]
    pub fn has(self, path: &str) -> bool {
        match self {
            Self::Prefix(prefix) => {
                let below = path.strip_prefix(prefix);
                below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
            }
            Self::TextPrefix(text) => path.starts_with(text),
            Self::Exact(exact) => path == exact,
        }
    }

    /// Returns the key by which an index finds its paths.
    pub(crate) fn key(self) -> PathKey<'r> {
        match self {
            Self::Exact(text) => PathKey::Whole(text),
            Self::Prefix(text) | Self::TextPrefix(text) => PathKey::begins(text),
        }
    }

    /// Returns the text with which all its paths begin.
    #[must_use]
    pub fn text(self) -> &'r str {
        match self {
            Self::Prefix(text) | Self::TextPrefix(text) | Self::Exact(text) => text,
        }
    }
}

/// The place of a route, and the expression within it or of the whole site.
pub type PlaceKey<'r> = (Option<Place<'r>>, Option<&'r str>);
