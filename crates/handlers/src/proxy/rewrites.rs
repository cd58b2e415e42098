//! The rewrites of a server's answer for clients: where its redirects lead, and of its cookies paths, domains and flags.

use std::borrow::Cow;

use kettle_config::{AnswerRewrite, CookieFlag, CookieFlags, Expression, FieldTemplate, Route};

use crate::words::Words;

/// The rules of a route.
#[derive(Debug)]
pub(super) struct Rewrites {
    /// None if a server is known by `backend_host` alone.
    redirects: Option<Vec<Rule>>,
    paths: Vec<Rule>,
    domains: Vec<Rule>,
    flags: Vec<CookieFlags>,
}

/// Another text for what fits.
#[derive(Debug)]
struct Rule {
    from: Fitting,
    to: FieldTemplate,
}

#[derive(Debug)]
enum Fitting {
    All,
    Text(FieldTemplate),
    Expression(Expression),
}

/// The part of what a server says for which a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Beginning,
    /// All, in any case, whether or not a dot stands before it.
    Domain,
}

impl Rewrites {
    /// Those of a route; none if it has none.
    pub(super) fn of(route: &Route) -> Option<Self> {
        let rules = |all: &[AnswerRewrite]| all.iter().map(Rule::of).collect::<Vec<_>>();
        let rewrites = Self {
            redirects: route.backend_redirect.as_deref().map(rules),
            paths: rules(&route.cookie_path),
            domains: rules(&route.cookie_domain),
            flags: route.cookie_flags.clone(),
        };
        let Self { redirects, paths, domains, flags } = &rewrites;
        let has_any =
            redirects.is_some() || !paths.is_empty() || !domains.is_empty() || !flags.is_empty();
        has_any.then_some(rewrites)
    }

    /// True if they say what becomes of redirects.
    pub(super) fn has_redirects(&self) -> bool {
        self.redirects.is_some()
    }

    /// Where a redirect leads in place of this; `None` if it stays. A path begins with one slash: two would name a host.
    pub(super) fn location(&self, location: &[u8], words: &Words<'_>) -> Option<Vec<u8>> {
        let rules = self.redirects.as_deref().unwrap_or_default();
        let turned = rewritten(rules, location, Extent::Beginning, words)?;
        Some(match behind_slashes(&turned) {
            Some(rest) => [b"/", rest].concat(),
            None => turned,
        })
    }

    /// A cookie as clients get it; `None` if it stays.
    pub(super) fn cookie(&self, cookie: &[u8], words: &Words<'_>) -> Option<Vec<u8>> {
        let mut parts: Vec<Part<'_>> = cookie.split(|byte| *byte == b';').map(Part::of).collect();
        let (first, rest) = parts.split_first_mut()?;
        let mut has_changed = false;
        for Part { name, value } in rest {
            let Some(value) = value else { continue };
            let (rules, extent) = match () {
                () if name.eq_ignore_ascii_case(b"path") => (&self.paths, Extent::Beginning),
                () if name.eq_ignore_ascii_case(b"domain") => (&self.domains, Extent::Domain),
                () => continue,
            };
            if let Some(other) = rewritten(rules, value, extent, words) {
                *value = Cow::Owned(other);
                has_changed = true;
            }
        }
        let is_for = |it: &&CookieFlags| match (&it.name, &it.regex) {
            (Some(name), _) => first.name.eq_ignore_ascii_case(name.as_bytes()),
            (None, Some(regex)) => regex.fits(first.name),
            (None, None) => true,
        };
        if let Some(entry) = self.flags.iter().find(is_for) {
            entry.flags.iter().for_each(|flag| set_flag(&mut parts, *flag));
            has_changed = true;
        }
        has_changed.then(|| parts.iter().map(Part::written).collect::<Vec<_>>().join(&b"; "[..]))
    }
}

impl Rule {
    fn of(entry: &AnswerRewrite) -> Self {
        let from = match (&entry.from, &entry.regex) {
            (Some(from), _) => Fitting::Text(from.clone()),
            (None, Some(regex)) => Fitting::Expression(regex.clone()),
            (None, None) => Fitting::All,
        };
        // A valid configuration names no group that is not there.
        Self { from, to: entry.filled().unwrap_or_default() }
    }

    /// Returns the text in the place of another, if it fits.
    fn apply(&self, text: &[u8], extent: Extent, words: &Words<'_>) -> Option<Vec<u8>> {
        let to = || words.text_with(&self.to, |_| &[]);
        match &self.from {
            Fitting::All => Some(to()),
            Fitting::Text(from) => {
                let from = words.text_with(from, |_| &[]);
                match extent {
                    Extent::Beginning => {
                        let rest = text.strip_prefix(&*from)?;
                        Some([&*to(), rest].concat())
                    }
                    Extent::Domain => {
                        let bare =
                            |it: &[u8]| it.strip_prefix(b".").unwrap_or(it).to_ascii_lowercase();
                        (bare(text) == bare(&from)).then(to)
                    }
                }
            }
            Fitting::Expression(expression) => {
                let groups = expression.groups_in(text);
                let group = |name: &str| expression.group_of(&groups, name);
                (!groups.is_empty()).then(|| words.text_with(&self.to, group))
            }
        }
    }
}

/// Returns the text of the first rule that fits.
fn rewritten(rules: &[Rule], text: &[u8], extent: Extent, words: &Words<'_>) -> Option<Vec<u8>> {
    rules.iter().find_map(|rule| rule.apply(text, extent, words))
}

/// Returns the text behind the slashes at the beginning of a path; `None` of one that begins otherwise. Browsers read `\` as
/// `/`, leave out tabs and ends of lines, and begin at none of the controls and spaces in front.
pub(super) fn behind_slashes(location: &[u8]) -> Option<&[u8]> {
    let begun = location.iter().position(|byte| *byte > b' ')?;
    let (_, path) = location.split_at_checked(begun)?;
    let is_rest = |byte: &u8| !matches!(byte, b'/' | b'\\' | b'\t' | b'\r' | b'\n');
    let slashes = path.iter().position(is_rest).unwrap_or(path.len());
    path.get(slashes..).filter(|_| slashes > 0)
}

/// Where the URL begins in a `refresh`.
pub(super) fn url_of_refresh(value: &[u8]) -> Option<usize> {
    let at = value.windows(URL.len()).position(|it| it.eq_ignore_ascii_case(URL))?;
    Some(at + URL.len())
}

/// A part of a cookie between two semicolons: its name and value, or one of its attributes.
struct Part<'c> {
    name: &'c [u8],
    value: Option<Cow<'c, [u8]>>,
}

impl<'c> Part<'c> {
    fn of(part: &'c [u8]) -> Self {
        match part.iter().position(|byte| *byte == b'=') {
            Some(at) => {
                let (name, value) = part.split_at(at);
                let value = value.get(1..).unwrap_or_default().trim_ascii();
                Self { name: name.trim_ascii(), value: Some(Cow::Borrowed(value)) }
            }
            None => Self { name: part.trim_ascii(), value: None },
        }
    }

    fn written(&self) -> Vec<u8> {
        match &self.value {
            Some(value) => [self.name, b"=", value].concat(),
            None => self.name.to_vec(),
        }
    }
}

/// Gives a cookie a flag, or takes one away. One that is there stays where it is.
fn set_flag(parts: &mut Vec<Part<'_>>, flag: CookieFlag) {
    let (name, value): (&[u8], Option<&[u8]>) = match flag {
        CookieFlag::Secure | CookieFlag::NoSecure => (b"Secure", None),
        CookieFlag::HttpOnly | CookieFlag::NoHttpOnly => (b"HttpOnly", None),
        CookieFlag::SameSiteStrict => (b"SameSite", Some(b"Strict")),
        CookieFlag::SameSiteLax => (b"SameSite", Some(b"Lax")),
        CookieFlag::SameSiteNone => (b"SameSite", Some(b"None")),
        CookieFlag::NoSameSite => (b"SameSite", None),
    };
    let is_it = |part: &Part<'_>| part.name.eq_ignore_ascii_case(name);
    use CookieFlag::{NoHttpOnly, NoSameSite, NoSecure};
    if matches!(flag, NoSecure | NoHttpOnly | NoSameSite) {
        let mut number = 0;
        // The first is the cookie itself.
        parts.retain(|part| {
            number += 1;
            number == 1 || !is_it(part)
        });
        return;
    }
    let value = value.map(Cow::Borrowed);
    match parts.iter_mut().skip(1).find(|part| is_it(part)) {
        Some(part) if value.is_some() => *part = Part { name, value },
        Some(_) => {}
        None => parts.push(Part { name, value }),
    }
}

const URL: &[u8] = b"url=";

#[cfg(test)]
mod tests;
