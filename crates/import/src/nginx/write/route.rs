//! A route of a site, and what a site asks before its routes: how they are written.

use std::path::{Path, PathBuf};

use kettle_config::{Origin, quoted, written_prefix};

use super::Writer;
use crate::nginx::syntax::Directive;
use crate::toml_text::TomlText;

/// A key, its value in TOML, and where it came from.
pub(super) type Setting = (&'static str, String, Origin);

/// The paths of a route, its expression apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Those whose expression fits.
    Any,
    /// Whole segments, without a slash at its end: what `root` replaces.
    Prefix(String),
    Text(String),
    Exact(String),
}

/// Which requests come to a route, by their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) place: Place,
    pub(super) regex: Option<String>,
    /// True if expressions of the site are not asked there.
    pub(super) is_first: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The answer of the route's rules.
    Rules,
    /// A folder, and the backend for what is not in it.
    Files(PathBuf, Option<String>),
    Backend(String),
    /// Programs that a backend runs: files of this folder, or others.
    Programs(Option<PathBuf>, String),
    /// A table in braces.
    Text(String),
    /// Nobody is let in: what nginx has there was not carried over.
    Closed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The paths it is for; all of the route if there is none.
    pub(super) regex: Option<String>,
    pub(super) to: String,
    pub(super) status: Option<u16>,
    pub(super) keeps_query: bool,
    /// True if no other place is looked for.
    pub(super) stays: bool,
    pub(super) origin: Origin,
}

impl Rule {
    /// A table in braces.
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(regex) = &self.regex {
            text.push_str(&format!("regex = {}, ", quoted(regex)));
        }
        text.push_str(&format!("to = {}", quoted(&self.to)));
        if let Some(status) = self.status {
            text.push_str(&format!(", status = {status}"));
        }
        if self.stays {
            text.push_str(", stay = true");
        }
        if !self.keeps_query {
            text.push_str(", keep_query = false");
        }
        format!("{{ {text} }}")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) key: Key,
    /// Conditions, each a table in braces.
    pub(super) when: Vec<String>,
    pub(super) answer: Answer,
    pub(super) access: Vec<Setting>,
    pub(super) rules: Vec<Rule>,
    /// The text in place of its text in the path that is looked for.
    pub(super) replaced: Option<String>,
    pub(super) settings: Vec<Setting>,
    /// True if its settings say which pages errors have.
    pub(super) has_pages: bool,
    pub(super) origin: Origin,
}

impl Route {
    pub(super) fn new(key: &Key, answer: Answer, origin: &Origin) -> Self {
        Self {
            key: key.clone(),
            when: Vec::new(),
            answer,
            access: Vec::new(),
            rules: Vec::new(),
            replaced: None,
            settings: Vec::new(),
            has_pages: false,
            origin: origin.clone(),
        }
    }

    /// One for all paths that nobody may ask.
    pub(super) fn closed(origin: &Origin) -> Self {
        Self::new(&Key::whole(), Answer::Closed, origin)
    }

    /// Says of a redirect that leads below its own place that it is meant: nginx finds another location there.
    pub(super) fn break_circles(&mut self) {
        let (Place::Text(own) | Place::Prefix(own) | Place::Exact(own)) = &self.key.place else {
            return;
        };
        for rule in
            self.rules.iter_mut().filter(|it| it.regex.is_none() && self.key.regex.is_none())
        {
            let beginning = rule.to.split('{').next().unwrap_or_default();
            if beginning.starts_with('/') && beginning.starts_with(own.as_str()) {
                rule.regex = Some("^".to_owned());
            }
        }
    }

    /// Writes it below `table`.
    pub(super) fn write(&self, table: &str, text: &mut TomlText) {
        let origin = Some(&self.origin);
        text.table(table, origin);
        match &self.key.place {
            Place::Any => {}
            Place::Prefix(prefix) if prefix.is_empty() => {
                if self.key.regex.is_some() {
                    text.set("prefix", quoted("/"), origin);
                }
            }
            Place::Prefix(prefix) => text.set("prefix", quoted(&written_prefix(prefix)), origin),
            Place::Text(prefix) => text.set("text_prefix", quoted(prefix), origin),
            Place::Exact(path) => text.set("exact", quoted(path), origin),
        }
        if let Some(regex) = &self.key.regex {
            text.set("regex", quoted(regex), origin);
        }
        if self.key.is_first && self.key.regex.is_none() {
            text.set("first", "true", origin);
        }
        if !self.when.is_empty() {
            text.set("when", format_args!("[{}]", self.when.join(", ")), origin);
        }
        match &self.answer {
            Answer::Rules => {}
            Answer::Files(files, missing) => {
                text.set("root", quoted(&files.display().to_string()), origin);
                if let Some(backend) = missing {
                    text.set("backend", quoted(backend), origin);
                    text.set("missing", quoted("backend"), origin);
                }
            }
            Answer::Backend(backend) => text.set("backend", quoted(backend), origin),
            Answer::Programs(files, backend) => {
                if let Some(files) = files {
                    text.set("root", quoted(&files.display().to_string()), origin);
                }
                text.set("backend", quoted(backend), origin);
            }
            Answer::Text(table) => text.set("respond", table, origin),
            Answer::Closed => text.set("deny", EVERYBODY, origin),
        }
        for (key, value, origin) in &self.access {
            text.set(key, value, Some(origin));
        }
        for (key, is_redirect) in [("redirect", true), ("rewrite", false)] {
            let rules = self.rules.iter().filter(|rule| rule.status.is_some() == is_redirect);
            let tables: Vec<String> = rules.clone().map(Rule::text).collect();
            if let Some(first) = rules.clone().next() {
                text.set(key, format_args!("[{}]", tables.join(", ")), Some(&first.origin));
            }
        }
        for (key, value, origin) in &self.settings {
            text.set(key, value, Some(origin));
        }
    }
}

impl Key {
    /// All paths.
    pub(super) fn whole() -> Self {
        Self { place: Place::Prefix(String::new()), regex: None, is_first: false }
    }
}

impl Writer<'_> {
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

/// The list from which nobody is left out.
pub(super) const EVERYBODY: &str = "[\"0.0.0.0/0\", \"::/0\"]";
const SPOKEN_MAX: usize = 60;
