//! The files of a place: conditions about them, and locations that answer for what is missing.

use std::path::Path;

use kettle_config::{quoted, written_prefix};

use super::root::Root;
use super::route::{Place, Route};
use crate::nginx::map::Map;
use crate::nginx::scope::{Scope, of_backends};

/// The folder in which conditions look for the files of a place.
#[derive(Clone, Debug)]
pub(super) struct Folder<'f> {
    pub(super) path: &'f Path,
    /// The beginning of a request's path in whose place it stands; empty where it is for the whole of it.
    pub(super) prefix: String,
    pub(super) symlinks: &'static str,
}

impl Folder<'_> {
    /// Conditions of which one holds not where any of these paths is there.
    pub(super) fn none_of(&self, paths: &[String]) -> Vec<String> {
        self.each_of(paths, false)
    }

    /// Conditions of which each holds where its path is there.
    pub(super) fn there_of(&self, paths: &[String]) -> Vec<String> {
        self.each_of(paths, true)
    }

    fn each_of(&self, paths: &[String], is_there: bool) -> Vec<String> {
        let condition = |path: &String| {
            let kind = if path.ends_with('/') { "folder" } else { "file" };
            self.condition(kind, path, is_there)
        };
        paths.iter().map(condition).collect()
    }

    /// A condition about a file, as nginx looks for it.
    pub(super) fn condition(&self, kind: &str, path: &str, is_there: bool) -> String {
        let folder = quoted(&self.path.display().to_string());
        let path = quoted(path);
        let prefix = match self.prefix.as_str() {
            "" => String::new(),
            prefix => format!(", file_prefix = {}", quoted(&written_prefix(prefix))),
        };
        let symlinks = self.symlinks;
        let not = if is_there { "" } else { NOT };
        format!(
            "{{ file = \"{kind}\", file_path = {path}, file_root = {folder}{prefix}, file_symlinks = \"{symlinks}\", file_dotfiles = true{not} }}"
        )
    }
}

/// The beginning of a path that is none of a file's below the folder of a place; nothing where conditions look for other paths than a
/// route does.
pub(super) fn prefix_of(route: &Route, root: &Root<'_>) -> Option<String> {
    if !route.rules.is_empty() || route.replaced.is_some() || root.path.is_some() {
        return None;
    }
    match &route.key.place {
        _ if route.key.regex.is_some() => (!root.strips).then(String::new),
        Place::Prefix(prefix) => Some(prefix.clone()),
        Place::Text(text) if root.strips => Some(text.trim_end_matches('/').to_owned()),
        _ => (!root.strips).then(String::new),
    }
}

/// True if the files of a route lie where a condition finds them by the whole path.
pub(super) fn is_asked_whole(route: &Route) -> bool {
    let is_whole = !matches!(&route.key.place, Place::Prefix(prefix) if !prefix.is_empty());
    is_whole && route.rules.is_empty() && route.replaced.is_none()
}

/// True if answers say the same in both scopes: what one route can say of files and of a backend.
pub(super) fn say_alike(files: &Scope<'_>, backend: &Scope<'_>) -> bool {
    let is_same = |name: &&str| {
        let one = files.all(name);
        let other = backend.all(name);
        one.len() == other.len()
            && one.iter().zip(&other).all(|(one, other)| std::ptr::eq(*one, *other))
    };
    let hides = of_backends("hide_header").iter().find_map(|it| backend.find(it));
    ANSWERS.iter().all(is_same) && (hides.is_none() || files.all("add_header").is_empty())
}

/// The directives on answers by files and by backends.
const ANSWERS: [&str; 12] = [
    "add_header",
    "expires",
    "limit_rate",
    "limit_rate_after",
    "access_log",
    "gzip",
    "gzip_types",
    "gzip_min_length",
    "gzip_proxied",
    "brotli",
    "error_page",
    "proxy_intercept_errors",
];

/// True if conditions that go by the path may hold of a folder and not of the index in it, or the other way round. nginx asks them of
/// both.
pub(super) fn asks_again(when: &[String], maps: &[Map]) -> bool {
    asks_by_path(when, maps) && !is_of_missing(when)
}

/// True if some of these conditions go by the path.
pub(super) fn asks_by_path(when: &[String], maps: &[Map]) -> bool {
    let words: Vec<String> = maps.iter().filter(|it| it.is_of_path(maps)).map(Map::word).collect();
    let is_of_path =
        |it: &String| it.contains("{path}") || words.iter().any(|word| it.contains(word));
    when.iter().any(is_of_path)
}

/// True if conditions do not hold where a file is there by the path that is asked for.
pub(super) fn is_of_missing(when: &[String]) -> bool {
    when.iter().any(|it| {
        let is_folder = it.contains("file = \"folder\"");
        it.contains("file_path = \"{path}\"") && it.contains(NOT) != is_folder
    })
}

/// The setting that turns a condition round.
const NOT: &str = ", not = true";
