//! What is there for a place: conditions about files, and locations that answer for what is missing.

use std::path::Path;

use kettle_config::quoted;

use super::route::{Place, Route};
use crate::nginx::map::Map;
use crate::nginx::scope::Scope;

/// Conditions of which one holds not where any of these paths is there, below a folder.
pub(super) fn none_of(paths: &[String], folder: &Path, symlinks: &str) -> Vec<String> {
    each_of(paths, folder, symlinks, false)
}

/// Conditions of which each holds where its path is there, below a folder.
pub(super) fn there_of(paths: &[String], folder: &Path, symlinks: &str) -> Vec<String> {
    each_of(paths, folder, symlinks, true)
}

fn each_of(paths: &[String], folder: &Path, symlinks: &str, is_there: bool) -> Vec<String> {
    let condition = |path: &String| {
        let kind = if path.ends_with('/') { "folder" } else { "file" };
        file_condition(kind, path, folder, symlinks, is_there)
    };
    paths.iter().map(condition).collect()
}

/// A condition about a file, as nginx looks for it.
pub(super) fn file_condition(
    kind: &str,
    path: &str,
    folder: &Path,
    symlinks: &str,
    is_there: bool,
) -> String {
    let folder = quoted(&folder.display().to_string());
    let path = quoted(path);
    let not = if is_there { "" } else { ", not = true" };
    format!(
        "{{ file = \"{kind}\", file_path = {path}, file_root = {folder}, file_symlinks = \"{symlinks}\", file_dotfiles = true{not} }}"
    )
}

/// True if the files of a route lie where a condition finds them, which looks for whole paths.
pub(super) fn is_asked_whole(route: &Route) -> bool {
    let is_whole = !matches!(&route.key.place, Place::Prefix(prefix) if !prefix.is_empty());
    is_whole && route.rules.is_empty() && route.replaced.is_none()
}

/// True if answers say the same in both scopes: what one route can say of files and of a backend.
pub(super) fn say_alike(files: &Scope<'_>, backend: &Scope<'_>) -> bool {
    let is_same = |name: &&str| {
        let (one, other) = (files.all(name), backend.all(name));
        one.len() == other.len()
            && one.iter().zip(&other).all(|(one, other)| std::ptr::eq(*one, *other))
    };
    let hides = backend.find("proxy_hide_header").or(backend.find("fastcgi_hide_header"));
    ANSWERS.iter().all(is_same) && (hides.is_none() || files.all("add_header").is_empty())
}

/// What is said of answers by files and by backends.
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
        it.contains("file_path = \"{path}\"") && it.ends_with(NOT) != is_folder
    })
}

/// How a condition ends that is turned round.
const NOT: &str = ", not = true }";
