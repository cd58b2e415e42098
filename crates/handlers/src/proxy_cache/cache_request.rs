//! The common part of a request and others: the key, and the fields that distinguish its variants.

use std::fmt::Write as _;

use kettle_exchange::request::{Head, Request};
use kettle_http::caching::vary;
use kettle_http::field;

use super::CachedRoute;
use crate::proxy::SharedTarget;

/// A request as the store knows it.
#[derive(Debug)]
pub(super) struct CacheRequest {
    pub(super) target: SharedTarget,
    /// Its key and what it says in the fields that the backend sees, if there are such fields.
    variant: Option<String>,
    /// The fields that the backend sees, as they tell variants apart.
    pub(super) seen: Vec<(String, Vec<u8>)>,
    /// All fields of the request, by names in lower case.
    fields: Vec<(String, Vec<u8>)>,
    /// True if it says who asks.
    pub(super) has_credentials: bool,
}

impl CacheRequest {
    /// `None` if it names no host. Without those of its fields that no backend sees: [`with_fields`](Self::with_fields).
    pub(super) fn new(route: &CachedRoute, path: &str, request: &Request<'_>) -> Option<Self> {
        let target = route.proxy.shared_target(path, request)?;
        let head = &request.head;
        let seen = route.vary.iter().map(|name| {
            let value = vary::value(name, head.header_values(name));
            (name.clone(), value)
        });
        let seen: Vec<_> = seen.collect();
        let has = |name: &str| head.header_values(name).next().is_some();
        Some(Self {
            variant: (!seen.is_empty()).then(|| variant(target.uri(), &seen)),
            target,
            seen,
            fields: Vec::new(),
            has_credentials: has("authorization") || (has("cookie") && !route.ignores_cookies),
        })
    }

    /// The whole URI: what objects are purged by.
    pub(super) fn key(&self) -> &str {
        self.target.uri()
    }

    /// Returns the key by which an object is fetched once, however many ask, and by which a worker remembers it.
    pub(super) fn fetch_key(&self) -> &str {
        self.variant.as_deref().unwrap_or(self.key())
    }

    /// With all fields of the request, for threads that do not have it.
    pub(super) fn with_fields(mut self, head: &Head) -> Self {
        let fields = head.headers().map(|(name, value)| {
            (String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec())
        });
        self.fields = fields.collect();
        self
    }

    /// Returns the value of this request in a field by which responses vary.
    pub(super) fn value(&self, name: &str) -> Vec<u8> {
        match self.seen(name) {
            Some(value) => value.to_vec(),
            None => {
                let lines = self.fields.iter().filter(|(field, _)| field == name);
                vary::value(name, lines.map(|(_, value)| value.as_slice()))
            }
        }
    }

    /// The same, if backends see that field.
    fn seen(&self, name: &str) -> Option<&[u8]> {
        let seen = self.seen.iter().find(|(seen, _)| seen == name);
        seen.map(|(_, value)| value.as_slice())
    }

    /// True if it has one of the fields that tell variants apart which no backend sees, and so no object that is kept was made
    /// for it.
    pub(super) fn is_others(&self, names: Vec<String>) -> bool {
        let is_unseen = |name: &str| self.seen(name).is_none() && !self.value(name).is_empty();
        self.telling_apart(names).any(|name| is_unseen(&name))
    }

    /// The same of this request, which has this head.
    pub(super) fn value_in(&self, head: &Head, name: &str) -> Vec<u8> {
        let seen = self.seen(name).map(<[u8]>::to_vec);
        seen.unwrap_or_else(|| vary::value(name, head.header_values(name)))
    }

    /// True if an object that varies so was made for this request, which has this head.
    pub(super) fn fits(&self, head: &Head, vary: &[(String, Vec<u8>)]) -> bool {
        vary.iter().all(|(name, value)| match self.seen(name) {
            Some(seen) => seen == value,
            None => vary::value(name, head.header_values(name)) == *value,
        })
    }

    /// Those of the fields named by a response that do tell variants apart: none does that servers are told by us alone.
    pub(super) fn telling_apart(&self, names: Vec<String>) -> impl Iterator<Item = String> {
        // A backend that saw no codings answers in the one that all clients take.
        let sees_codings = self.seen(CODINGS).is_some();
        names.into_iter().filter(move |name| match name.as_str() {
            CODINGS => sees_codings,
            "host" => false,
            name => {
                let name = name.as_bytes();
                !field::is_of_proxies(name) && !field::is_known_hop_by_hop(name)
            }
        })
    }

    /// By what a response differs that came for this request, with what this request says: what it names itself, and each
    /// field that its backend saw.
    pub(super) fn vary_of(&self, names: Vec<String>, has_coding: bool) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<String> = self.telling_apart(names).collect();
        let seen = self.seen.iter().map(|(name, _)| name);
        all.extend(seen.filter(|name| *name != CODINGS || has_coding).cloned());
        all.sort_unstable();
        all.dedup();
        let with_value = |name: String| {
            let value = self.seen(&name).unwrap_or_default().to_vec();
            (name, value)
        };
        all.into_iter().map(with_value).collect()
    }
}

fn variant(key: &str, seen: &[(String, Vec<u8>)]) -> String {
    let seen_bytes: usize = seen.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    let mut text = String::with_capacity(key.len() + seen_bytes);
    text.push_str(key);
    for (name, value) in seen {
        // Neither a key nor a value has line ends.
        let _ = write!(text, "\n{name}:{}", value.escape_ascii());
    }
    text
}

const CODINGS: &str = "accept-encoding";
