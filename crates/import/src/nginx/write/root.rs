//! The folder of a place: what `root` and `alias` say, as far as a request says no more of it than a path below.

use std::path::PathBuf;

use kettle_config::Template;

use super::place::{Spot, aliased};
use super::route::Place;
use crate::nginx::location::Shut;
use crate::nginx::regex::{is_one_group, literal};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, parts};

/// The folder in which the files of a place lie.
pub(super) struct Root<'t> {
    pub(super) folder: PathBuf,
    pub(super) directive: &'t Directive,
    /// The path below the folder, where a request says a part of it.
    pub(super) path: Option<String>,
    /// True if the prefix of the place is no part of the path there.
    pub(super) strips: bool,
}

/// True if what the client sent stands in a path.
pub(super) fn is_as_sent(path: &str) -> bool {
    parts(path).iter().any(|it| matches!(it, Part::Variable("request_uri")))
}

/// A path that is tried; nothing where a request would say more of it than kettle lets it.
pub(super) fn path_of(word: &str, spot: &Spot<'_>) -> Option<String> {
    let mut path = String::new();
    for part in parts(word) {
        match part {
            Part::Text(text) if text.contains(['{', '}']) => return None,
            Part::Text(text) => path.push_str(text),
            Part::Variable("uri" | "document_uri" | "request_uri") => path.push_str("{path}"),
            Part::Variable(name) if spot.has_group(name) => path.push_str(&format!("{{{name}}}")),
            Part::Variable(_) => return None,
        }
    }
    Some(path)
}

/// The folder that a route looks into; nothing where nobody names one.
pub(super) fn root_of<'t>(
    spot: &Spot<'t>,
    scope: &Scope<'t>,
) -> Result<Option<Root<'t>>, Shut<'t>> {
    let Some(directive) = scope.any_of(&["root", "alias"]).first().copied() else {
        return Ok(None);
    };
    let shut = |why| Shut { directive, why };
    let text = directive.word(0);
    let is_alias = directive.name == "alias";
    let root = |folder: &str| Root { folder: folder.into(), directive, path: None, strips: false };
    let is_prefix = matches!(&spot.key.place, Place::Prefix(prefix) if !prefix.is_empty());
    let is_own_alias = is_alias && spot.scope.own().iter().any(|it| std::ptr::eq(it, directive));
    if is_own_alias && spot.key.regex.is_some() && !text.contains('$') {
        // All of its paths are this one.
        return Err(shut(ELSEWHERE));
    }
    if let Some((folder, strips)) = same_names(spot, text).filter(|_| is_own_alias) {
        return Ok(Some(Root { strips, ..root(folder) }));
    }
    if text.contains('$') {
        let fixed = text.split('$').next().and_then(|it| it.rsplit_once('/')).map(|(it, _)| it);
        let fixed = fixed.filter(|it| !it.is_empty() && !is_prefix).ok_or(shut(VARIABLE))?;
        let rest = text.get(fixed.len()..).filter(|it| !is_as_sent(it));
        let rest = rest.and_then(|it| path_of(it, spot)).ok_or(shut(VARIABLE))?;
        let path = if is_alias { rest } else { rest + "{path}" };
        let is_known = Template::of_try(&path).is_some()
            && (!is_alias || is_own_alias && spot.key.regex.is_some());
        return is_known
            .then(|| Some(Root { path: Some(path), ..root(fixed) }))
            .ok_or(shut(VARIABLE));
    }
    if let (true, Place::Exact(path), None) = (is_own_alias, &spot.key.place, &spot.key.regex)
        && let Some((folder, name)) = text.rsplit_once('/')
        && !text.ends_with(path.as_str())
        && !folder.is_empty()
        && !name.is_empty()
    {
        let path = format!("/{name}");
        let is_known = Template::of_try(&path).is_some();
        return is_known
            .then(|| Some(Root { path: Some(path), ..root(folder) }))
            .ok_or(shut(GLUED));
    }
    if !is_alias {
        // The place was made for an alias.
        let is_whole = !is_prefix || spot.key.regex.is_some();
        return is_whole.then(|| Some(root(text))).ok_or(shut(ELSEWHERE));
    }
    let path = match (&spot.key.regex, &spot.key.place) {
        (Some(_), Place::Any) => return Err(shut(ELSEWHERE)),
        (Some(_), Place::Prefix(path) | Place::Text(path) | Place::Exact(path)) => path.as_str(),
        (None, _) => spot.path.as_str(),
    };
    let file = aliased(scope, path).ok_or(shut(ELSEWHERE))?;
    if let Some(folder) = file.strip_suffix(path) {
        return Ok(Some(root(if folder.is_empty() { "/" } else { folder })));
    }
    let is_text = matches!(&spot.key.place, Place::Text(text) if text.ends_with('/'));
    let strips = spot.key.regex.is_some() || !is_prefix;
    match (is_prefix || is_text && file.ends_with('/'), &spot.key.regex) {
        (true, _) => Ok(Some(Root { strips, ..root(&file) })),
        (false, Some(_)) => Err(shut(ELSEWHERE)),
        (false, None) => Err(shut(GLUED)),
    }
}

/// The folder of an alias like `/srv/b/$1` whose group is all that follows the beginning of the expression `^/a/(.+\.php)$`, where its
/// files have the same names as below the place, or below the folder with that beginning; true if the place is to be taken off them.
fn same_names<'a>(spot: &Spot<'_>, alias: &'a str) -> Option<(&'a str, bool)> {
    let folder = alias.strip_suffix("/$1").filter(|it| !it.contains(['$', '{', '}']))?;
    let (begin, group) = spot.key.regex.as_ref()?.strip_prefix('^')?.split_once("/(")?;
    let begin = literal(begin).filter(|_| group.strip_suffix(")$").is_some_and(is_one_group))?;
    let (folder, strips) = match &spot.key.place {
        Place::Prefix(prefix) if *prefix == begin => (folder, true),
        Place::Text(text) if text.strip_suffix('/') == Some(&*begin) => (folder, true),
        _ => (folder.strip_suffix(&*begin)?, false),
    };
    (!folder.is_empty()).then_some((folder, strips))
}

const VARIABLE: &str =
    "files lie below one folder, and a group of the location's expression says the rest";
pub(super) const ELSEWHERE: &str =
    "its files lie elsewhere than below a folder with the same names";
const GLUED: &str = "its alias has no slash at its end, or is for one path of another name: write `root`, or the slash if that is meant";
