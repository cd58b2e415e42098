//! `[[site.before]]`: what a site does before it looks for a route.

use super::condition::Condition;
use super::place::Place;
use super::redirect::{Redirect, Rewrite};
use super::respond::Respond;
use crate::rule_index::PathKey;
use crate::setting::{Expression, expression, optional, rules, section, sections, settings, text};

settings! {
    /// The steps of a site before it looks for a route, in the order of the file. The first answer decides. A path that a
    /// rewrite has changed is what the rest is held against, and what a route is looked for by. Which requests it is for is
    /// said as in a route; without a place it is for all.
    pub struct Before {
        /// As in a route.
        pub prefix: Option<String> = optional(text(&rules::PREFIX, "/"), "all paths"),
        /// As in a route.
        pub text_prefix: Option<String> = optional(text(&rules::PATH_TEXT, "/"), "all paths"),
        /// As in a route.
        pub exact: Option<String> = optional(text(&rules::PATH_TEXT, "/"), "all paths"),
        /// As in a route.
        pub regex: Option<Expression> = expression("all paths"),
        /// Conditions on a request, all of which must hold.
        pub when: Vec<Condition> = sections(),
        /// Redirects of clients.
        pub redirects: Vec<Redirect> as "redirect" = sections(),
        /// Paths that are taken for the one that was asked for.
        pub rewrites: Vec<Rewrite> as "rewrite" = sections(),
        /// The answer.
        pub respond: Option<Respond> = optional(section(), "the rest of the site is asked"),
    }
}

impl Before {
    /// The paths it is for, its `regex` apart.
    pub fn place(&self) -> Place<'_> {
        Place::of(&self.prefix, &self.text_prefix, &self.exact).unwrap_or(Place::Prefix(""))
    }

    /// Returns the key by which an index finds it.
    #[must_use]
    pub fn key(&self) -> PathKey<'_> {
        self.place().key()
    }
}
