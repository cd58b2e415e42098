//! The path that servers are sent in place of the one that clients ask for, and the way back.

use std::borrow::Cow;

use kettle_config::{BackendHost, Place, Route};
use kettle_exchange::request::as_read_otherwise;

use super::rewrites::behind_slashes;

/// The part of a path that servers are not sent, and what they are sent before it.
#[derive(Debug)]
pub(super) struct PrefixChange {
    /// The beginning that is taken off.
    stripped: String,
    /// The beginning that is put before.
    added: String,
    /// True if whole segments follow both.
    is_whole: bool,
}

impl PrefixChange {
    /// That of a route; none if servers are sent what clients ask for.
    pub(super) fn of(route: &Route) -> Option<Self> {
        let place = route.place().filter(|_| route.strip_prefix && route.regex.is_none());
        let stripped = place.map_or("", |place| place.text()).to_owned();
        let mut added = route.add_prefix.as_deref().unwrap_or_default();
        let is_whole = matches!(place, None | Some(Place::Prefix(_)));
        if is_whole {
            added = added.trim_end_matches('/');
        }
        let added = added.to_owned();
        (!stripped.is_empty() || !added.is_empty()).then_some(Self { stripped, added, is_whole })
    }

    /// The path for servers; `None` if it could lead them above what is put before (`/static..` without `/static`).
    pub(super) fn there<'p>(&self, path: &'p str) -> Option<Cow<'p, str>> {
        let rest = path.strip_prefix(&*self.stripped).unwrap_or(path);
        let there = match self.added.is_empty() && rest.starts_with('/') {
            true => Cow::Borrowed(rest),
            false => Cow::Owned(joined(&self.added, rest)),
        };
        let is_plain = |segment: &str| !matches!(segment.split(';').next(), Some("." | ".."));
        let is_safe = there.split('/').all(is_plain) && as_read_otherwise(&there).is_some();
        is_safe.then_some(there)
    }

    /// The path for clients that a server's path stands for; `None` if servers are never sent it.
    fn back(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(&*self.added)?;
        let goes_on = self.is_whole && !rest.is_empty() && !rest.starts_with(ENDS);
        if goes_on {
            return None;
        }
        Some(joined(&self.stripped, rest))
    }
}

/// The signs that may follow whole segments, as browsers read it: they take a backslash for a slash, and leave tabs and line
/// ends out.
const ENDS: [char; 7] = ['/', '?', '#', '\\', '\t', '\n', '\r'];

/// Two parts of a path, which begins with one slash.
fn joined(beginning: &str, rest: &str) -> String {
    let slash = match (beginning.ends_with('/'), rest.starts_with('/')) {
        (true, true) => return format!("{beginning}{}", rest.trim_start_matches('/')),
        (false, false) if beginning.is_empty() => "/",
        _ => "",
    };
    format!("{beginning}{slash}{rest}")
}

/// The `location` for clients of one that a server says of itself, by the name that it is called by; `None` if it leads elsewhere.
/// nginx does the same unless it is told otherwise (`proxy_redirect default`).
pub(super) fn turned_back(
    location: &[u8],
    host: Option<&BackendHost>,
    change: Option<&PrefixChange>,
) -> Option<String> {
    let BackendHost::Fixed(host) = host? else { return None };
    let location = std::str::from_utf8(location).ok()?;
    let behind = location.strip_prefix("http://").or_else(|| location.strip_prefix("https://"))?;
    let reference = behind.get(host.len()..).filter(|reference| {
        reference.starts_with('/')
            && behind.get(..host.len()).is_some_and(|own| own.eq_ignore_ascii_case(host))
    })?;
    // A path that begins with two slashes would name another host.
    let reference = format!("/{}", reference.trim_start_matches('/'));
    let back = match change {
        Some(change) => change.back(&reference)?,
        None => reference,
    };
    // As browsers read it.
    let rest = behind_slashes(back.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok())?;
    Some(format!("/{rest}"))
}

#[cfg(test)]
mod tests;
