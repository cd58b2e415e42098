//! A route of a site: where its files are, and how it is written.

use std::path::{Path, PathBuf};

use kettle_config::{Origin, quoted, written_prefix};

use super::Writer;
use crate::nginx::location::{Location, LocationKind, kind_of};
use crate::nginx::redirect::{Rule, RuleKind};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;

/// A key, its value in TOML, and where it came from.
pub(super) type Setting = (&'static str, String, Origin);

/// A route before it is written.
pub(super) struct Route {
    /// Without its last slash.
    pub(super) prefix: String,
    pub(super) files: Option<PathBuf>,
    /// The path below `prefix` that is looked for whatever is asked for: a location for one path.
    pub(super) alone: Option<String>,
    /// The name of the backend that requests are passed to.
    pub(super) backend: Option<String>,
    /// Whether nobody may ask it: what nginx has there was not carried over.
    pub(super) is_closed: bool,
    /// Who may ask it.
    pub(super) access: Vec<Setting>,
    pub(super) rules: Vec<Rule>,
    /// Patterns of paths that it refuses.
    pub(super) denied: Vec<String>,
    /// Patterns of paths that its fallback is not for.
    pub(super) excepted: Vec<String>,
    pub(super) settings: Vec<Setting>,
    pub(super) origin: Origin,
}

impl Route {
    pub(super) fn new(prefix: &str, origin: &Origin) -> Self {
        Self {
            prefix: prefix.to_owned(),
            files: None,
            alone: None,
            backend: None,
            is_closed: false,
            access: Vec::new(),
            rules: Vec::new(),
            denied: Vec::new(),
            excepted: Vec::new(),
            settings: Vec::new(),
            origin: origin.clone(),
        }
    }

    /// Refuses what a pattern stands for.
    pub(super) fn deny(&mut self, pattern: String) {
        if !self.denied.contains(&pattern) {
            self.denied.push(pattern);
        }
    }

    /// Looks for what lies below the prefix from further up, where its folders are no part of the route.
    pub(super) fn look_from(&mut self, below: &str) {
        self.rules.push(Rule {
            from: None,
            to: format!("{below}{{path}}"),
            kind: RuleKind::Rewrite { keeps_query: true },
            origin: self.origin.clone(),
            is_wider: false,
            spared: Vec::new(),
        });
        self.settings.retain(|(key, ..)| !OF_FOLDERS.contains(key));
    }

    /// Keeps the fallback from what patterns stand for.
    pub(super) fn except(&mut self, patterns: &[String]) {
        for pattern in
            patterns.iter().filter(|it| !self.excepted.contains(it)).cloned().collect::<Vec<_>>()
        {
            self.excepted.push(pattern);
        }
    }

    /// Where the file of a path lies.
    pub(super) fn file(&self, path: &str) -> Option<PathBuf> {
        let below = path.strip_prefix(self.prefix.as_str())?;
        let below = self.alone.as_deref().unwrap_or(below).trim_start_matches('/');
        Some(self.files.as_ref()?.join(below))
    }

    /// The files that answer for their folders.
    pub(super) fn indexes(&self) -> Vec<String> {
        let written = self.settings.iter().find(|(key, ..)| *key == "index");
        let names = written.map_or("[\"index.html\"]", |(_, names, _)| names.as_str());
        let names = names.trim_matches(['[', ']']).split(", ");
        names.map(|it| it.trim_matches('"').to_owned()).filter(|it| !it.is_empty()).collect()
    }

    /// Whether a file of this name answers for its folder.
    pub(super) fn has_index(&self, name: &str) -> bool {
        self.indexes().iter().any(|index| index == name)
    }

    pub(super) fn falls_back_to(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.prefix.as_str()).map(quoted);
        self.settings
            .iter()
            .any(|(key, value, _)| *key == "fallback" && Some(value) == below.as_ref())
    }

    pub(super) fn is_above(&self, prefix: &str) -> bool {
        let below = prefix.strip_prefix(self.prefix.as_str());
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    /// Whether a route below this one changes nothing.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let told = |settings: &[Setting]| -> Vec<(&str, String)> {
            settings.iter().map(|(key, value, _)| (*key, value.clone())).collect()
        };
        told(&self.settings) == told(&other.settings)
            && told(&self.access) == told(&other.access)
            && self.rules == other.rules
            && self.backend == other.backend
            && other.files == self.file(&other.prefix)
            && !self.is_closed
    }

    /// Whether another route of this prefix would answer with the same files, of the same types.
    pub(super) fn finds_the_same(&self, other: &Self) -> bool {
        let is_alike = |key: &&str| {
            let of = |route: &'_ Self| {
                let value = route.settings.iter().find(|(own, ..)| own == key);
                value.map(|(_, value, _)| value.clone())
            };
            of(self) == of(other)
        };
        self.files == other.files
            && self.alone == other.alone
            && self.rules == other.rules
            && OF_FOLDERS.iter().chain(&["mime", "symlinks"]).all(is_alike)
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        let text = &mut writer.output.text;
        let origin = Some(&self.origin);
        text.table("[[site.route]]", origin);
        if !self.prefix.is_empty() {
            text.set("prefix", quoted(&written_prefix(&self.prefix)), origin);
        }
        if let Some(files) = &self.files {
            text.set("root", quoted(&files.display().to_string()), origin);
        }
        if let Some(backend) = &self.backend {
            text.set("backend", quoted(backend), origin);
        }
        if self.is_closed {
            text.set("deny", EVERYBODY, origin);
        }
        for (key, value, origin) in &self.access {
            text.set(key, value, Some(origin));
        }
        if !self.denied.is_empty() {
            text.set("deny_files", list(self.denied.iter().map(String::as_str)), origin);
        }
        for (key, is_redirect) in [("redirect", true), ("rewrite", false)] {
            let rules = self.rules.iter().filter(|rule| rule.is_redirect() == is_redirect);
            let tables: Vec<String> = rules.clone().map(Rule::text).collect();
            if let Some(first) = rules.clone().next() {
                text.set(key, format_args!("[{}]", tables.join(", ")), Some(&first.origin));
            }
        }
        for (key, value, origin) in &self.settings {
            text.set(key, value, Some(origin));
            if *key == "fallback" && !self.excepted.is_empty() {
                let excepted = list(self.excepted.iter().map(String::as_str));
                text.set("fallback_except", excepted, Some(origin));
            }
        }
    }
}

/// The same, to be changed.
pub(super) fn nearest_mut<'r>(routes: &'r mut [Route], path: &str) -> Option<&'r mut Route> {
    let above = routes.iter_mut().filter(|route| route.is_above(path));
    above.max_by_key(|route| route.prefix.len())
}

/// The route that a path belongs to.
pub(super) fn nearest<'r>(routes: &'r [Route], path: &str) -> Option<&'r Route> {
    let above = routes.iter().filter(|route| route.is_above(path));
    above.max_by_key(|route| route.prefix.len())
}

/// What holds for all routes of a server.
#[derive(Default)]
pub(super) struct Common<'t> {
    pub(super) cached: Vec<Cached<'t>>,
    /// What expressions refuse.
    pub(super) denied: Vec<Denied<'t>>,
    /// Of the server, and of places whose paths belong to several routes or to a part of one.
    pub(super) rules: Vec<Rule>,
    /// Those among them of locations that expressions come before.
    pub(super) yielding: Vec<Rule>,
    /// Where expressions stand that send clients elsewhere, or refuse them.
    pub(super) ruling: Vec<&'t [Directive]>,
}

/// What an expression refuses.
pub(super) struct Denied<'t> {
    pub(super) patterns: Vec<String>,
    pub(super) location: &'t Directive,
    /// Where it stands.
    pub(super) block: &'t [Directive],
    /// Whether it is for names with a dot, but for `/.well-known`.
    pub(super) spares_well_known: bool,
}

impl Denied<'_> {
    pub(super) fn is_of(&self, location: &Location<'_>) -> bool {
        std::ptr::eq(self.location, location.directive)
    }
}

/// `cache_control` of a pattern.
pub(super) struct Cached<'t> {
    pub(super) pattern: String,
    pub(super) control: String,
    /// Where the expression stands that it was made of.
    pub(super) block: Option<&'t [Directive]>,
}

impl Writer<'_> {
    /// The route of a place with files.
    pub(super) fn route(
        &mut self,
        scope: &Scope<'_>,
        prefix: &str,
        own: &[Directive],
        common: &Common<'_>,
    ) -> Option<Route> {
        let (files, origin) = self.files(scope, prefix)?;
        let settings = self.route_settings(scope, prefix, own, common, &origin);
        let mut access = self.access(scope).unwrap_or_default();
        if access.iter().any(|(key, ..)| *key == "basic_auth") {
            self.tell_of_users(scope);
        }
        access.extend(self.rate_limit(scope));
        Some(Route { files: Some(files), settings, access, ..Route::new(prefix, &origin) })
    }

    /// `root` goes before the whole path; `alias` stands for the prefix.
    fn files(&mut self, scope: &Scope<'_>, prefix: &str) -> Option<(PathBuf, Origin)> {
        let written = scope.any_of(&["root", "alias"]).into_iter().next()?;
        let alias = (written.name == "alias").then_some(written);
        let (text, place) = (written.word(0), &written.origin);
        if text.contains('$') {
            let message = "the server is left out: its files lie where a variable says";
            self.output.warn(place, message, "write one server for each folder");
            return None;
        }
        let folder = self.below_prefix(text, place);
        // An alias stands for the prefix of its own location.
        let outer = if alias.is_some() { aliased(scope, written, prefix) } else { Some("") };
        let Some(outer) = outer else {
            let message = "the server is left out: inner locations have the files of an alias for an expression";
            self.output.warn(place, message, "write a prefix");
            return None;
        };
        let below = prefix.strip_prefix(outer).unwrap_or_default().trim_start_matches('/');
        let folder = if alias.is_some() && !below.is_empty() { folder.join(below) } else { folder };
        Some(match alias {
            None if !below.is_empty() => (folder.join(below), place.clone()),
            _ => (folder, place.clone()),
        })
    }

    /// A path that starts from nginx's prefix, which its program knows and its configuration does not.
    pub(super) fn below_prefix(&mut self, text: &str, origin: &Origin) -> PathBuf {
        if !Path::new(text).is_absolute() {
            let message =
                format!("`{text}` starts from nginx's prefix, taken for {}", self.prefix.display());
            self.output.warn(origin, message, "`nginx -V` tells it; write the whole path");
        }
        let path = self.prefix.join(text);
        // One slash at the end more or less is the same folder.
        path.components().collect()
    }
}

/// The prefix of the location whose own an alias is; nothing where it has none.
fn aliased<'p>(scope: &Scope<'_>, alias: &Directive, prefix: &'p str) -> Option<&'p str> {
    let is_own = |it: &&Directive| {
        it.name == "location" && it.inner().iter().any(|inner| std::ptr::eq(inner, alias))
    };
    // That of the innermost location is in none of the blocks around it but its own.
    let Some(location) = scope.outwards().flatten().find(is_own) else { return Some(prefix) };
    let (kind, path) = kind_of(&location.words);
    let path = path.trim_end_matches('/');
    let is_path = kind != LocationKind::Pattern;
    prefix.get(..path.len()).filter(|beginning| is_path && *beginning == path)
}

/// A directive as it is named in a comment.
pub(super) fn spoken(directive: &Directive) -> String {
    let mut text = directive.name.clone();
    for word in &directive.words {
        text.push(' ');
        text.push_str(word);
    }
    match text.char_indices().nth(SPOKEN_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// What a route says that has folders.
pub(super) const OF_FOLDERS: [&str; 4] = ["index", "listing", "fallback", "fallback_for_folders"];
pub(super) const OF_FALLBACK: [&str; 2] = ["fallback", "fallback_for_folders"];
/// Whom nobody is left of.
const EVERYBODY: &str = "[\"0.0.0.0/0\", \"::/0\"]";
const SPOKEN_MAX: usize = 60;
