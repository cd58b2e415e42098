//! The operator's fields: those of every response, of errors, and those that each request fills in.

use bytes::Bytes;
use kettle_config::{FieldTemplate, Route, Site};
use kettle_http::h1::write::write_field;

/// The operator's fields, and the name of the server unless they name another, as ready lines.
#[derive(Debug)]
pub struct ConfiguredFields {
    all: Bytes,
    without_caching: Bytes,
    for_errors: Bytes,
    for_redirects: Bytes,
    /// Of all lines, in lower case, but for those that stand beside a server's own.
    names: Vec<String>,
    /// Names in lower case.
    removed: Vec<String>,
    /// The beginnings of lines that follow a server's own, in lower case.
    beside: Vec<String>,
    /// Those that each request fills in, by names in lower case; most have none.
    by_words: Vec<(String, Vec<FieldTemplate>)>,
    /// Those of them that errors have, too.
    by_words_for_errors: Vec<(String, Vec<FieldTemplate>)>,
}

impl ConfiguredFields {
    /// A site's fields, except those the route has too, then the route's. A header that has no values is taken away.
    pub fn new(
        site: &[(String, Vec<FieldTemplate>)],
        route: &[(String, Vec<FieldTemplate>)],
    ) -> Self {
        Self::with_always((site, route), None, &[])
    }

    /// Those of a route of a site.
    pub fn of(site: &Site, route: &Route) -> Self {
        let all = (&*site.headers, &*route.headers);
        Self::with_always(all, route.always.as_deref(), &route.beside)
    }

    /// Of the names that are `always` sent, if there is such a list, errors have no others.
    fn with_always(
        (site, route): (Headers<'_>, Headers<'_>),
        always: Option<&[String]>,
        beside: &[String],
    ) -> Self {
        let mut all = Vec::new();
        let mut without_caching = Vec::new();
        let mut for_errors = Vec::new();
        let mut for_redirects = Vec::new();
        let mut names = Vec::new();
        let mut removed = Vec::new();
        let mut by_words = Vec::new();
        let is_always = |name: &str| {
            name == "server"
                || always.is_none_or(|all| all.iter().any(|it| it.eq_ignore_ascii_case(name)))
        };
        let mut add = |name: &str, value: &str| {
            let name = name.to_ascii_lowercase();
            let is_always = is_always(&name);
            write_field(&mut all, &name, value.as_bytes());
            match name.as_str() {
                CACHE_CONTROL => {
                    if let Some(value) = forbidding(value) {
                        write_field(&mut for_redirects, &name, value.as_bytes());
                        if is_always {
                            write_field(&mut for_errors, &name, value.as_bytes());
                        }
                    }
                }
                EXPIRES => {}
                _ => {
                    write_field(&mut without_caching, &name, value.as_bytes());
                    write_field(&mut for_redirects, &name, value.as_bytes());
                    if is_always {
                        write_field(&mut for_errors, &name, value.as_bytes());
                    }
                }
            }
            names.push(name);
        };
        if !has(site, "server") && !has(route, "server") {
            add("server", "kettle");
        }
        for (name, values) in site.iter().filter(|(name, _)| !has(route, name)).chain(route) {
            let plain: Option<Vec<&str>> = values.iter().map(FieldTemplate::plain).collect();
            match plain {
                Some(plain) => plain.into_iter().for_each(|value| add(name, value)),
                None => by_words.push((name.to_ascii_lowercase(), values.clone())),
            }
            if values.is_empty() {
                removed.push(name.to_ascii_lowercase());
            }
        }
        names.extend(by_words.iter().map(|(name, _)| name.clone()));
        names.retain(|name| !beside.iter().any(|it| it.eq_ignore_ascii_case(name)));
        Self {
            all: all.into(),
            without_caching: without_caching.into(),
            for_errors: for_errors.into(),
            for_redirects: for_redirects.into(),
            names,
            removed,
            beside: beside.iter().map(|name| format!("{}:", name.to_ascii_lowercase())).collect(),
            by_words_for_errors: by_words
                .iter()
                .filter(|(name, _)| is_always(name))
                .cloned()
                .collect(),
            by_words,
        }
    }

    /// The fields that each request fills in. They are added to a response on its way to the client, so that no file and no store
    /// remembers them.
    pub fn by_words(&self, status: u16) -> &[(String, Vec<FieldTemplate>)] {
        match status {
            101 | 400.. => &self.by_words_for_errors,
            _ => &self.by_words,
        }
    }

    /// The beginnings of lines that are sent behind a server's own of the same name.
    pub fn beside(&self) -> &[String] {
        &self.beside
    }

    /// True if the operator takes fields of this name, which is in lower case, away.
    pub fn removes(&self, name: impl AsRef<[u8]>) -> bool {
        self.removed.iter().any(|removed| removed.as_bytes() == name.as_ref())
    }

    /// The names that [`removes`](Self::removes) is true of.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        self.removed.iter().map(String::as_str)
    }

    /// True if the operator sends a field of this name, which is in lower case.
    pub fn has(&self, name: impl AsRef<[u8]>) -> bool {
        self.names.iter().any(|own| own.as_bytes() == name.as_ref())
    }

    /// The names that [`has`](Self::has) is true of.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The lines that stand beside a server's own, each with its end.
    pub fn lines_beside(&self) -> impl Iterator<Item = &str> {
        let all = std::str::from_utf8(&self.all).unwrap_or_default().split_inclusive('\n');
        all.filter(|line| self.beside.iter().any(|name| line.starts_with(name.as_str())))
    }

    /// For successful responses whose caching nothing else decides.
    pub fn all(&self) -> &Bytes {
        &self.all
    }

    /// For responses whose caching something else decides: a pattern that files fit, or the server of an error.
    pub fn without_caching(&self) -> &Bytes {
        &self.without_caching
    }

    /// For redirects, as for errors, but with what only errors do not have.
    pub fn for_redirects(&self) -> &Bytes {
        &self.for_redirects
    }

    /// For errors and answers to OPTIONS: of what the operator says of caching only what forbids it. The time something
    /// may be kept is meant for what was asked for.
    pub fn for_errors(&self) -> &Bytes {
        &self.for_errors
    }
}

impl Default for ConfiguredFields {
    fn default() -> Self {
        Self::new(&[], &[])
    }
}

type Headers<'h> = &'h [(String, Vec<FieldTemplate>)];

fn has(fields: Headers<'_>, name: &str) -> bool {
    fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// Of a `Cache-Control` the directives that keep caches from a response; `None` if there is none. One with names of fields, as in
/// `private="x"`, is about these and not about the response.
pub fn forbidding(value: &str) -> Option<String> {
    let forbids = |said: &&str| FORBIDDING.iter().any(|one| said.eq_ignore_ascii_case(one));
    let said: Vec<_> = value.split(',').map(str::trim).filter(forbids).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// The fields that say how long a response may be kept.
pub const CACHE_CONTROL: &str = "cache-control";
const EXPIRES: &str = "expires";

const FORBIDDING: [&str; 3] = ["no-store", "no-cache", "private"];
