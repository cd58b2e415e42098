//! `return` and `rewrite`: where clients are sent, which other path is looked for, and what is answered.

use kettle_config::{Expression, Template, quoted};

use super::route::{Answer, Place, Rule};
use super::types::{BY_PATH, type_of, with_charset};
use crate::nginx::regex::{is_of_all, translated};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, field_at, is_group, parts, with_said};

pub(super) enum Returned<'t> {
    Redirect(Rule),
    Answer(Answer),
    /// An `error_page` for its status leads to this location without a path.
    Named(&'t Directive),
}

/// The values for which variables stand.
pub(super) struct Known<'k> {
    pub(super) said: &'k Said,
    /// The scheme, where it is the same for all requests.
    pub(super) scheme: Option<&'static str>,
    /// Whose groups `$1` and its like are.
    pub(super) expression: Option<&'k Expression>,
    /// True if the first of them is the whole path.
    pub(super) is_path: bool,
}

/// The act of a `rewrite` with a path that fits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    Redirect,
    /// Another location is looked for.
    Last,
    /// The same one answers.
    Break,
    /// The next directives are asked, too.
    None,
}

/// Reads a `return`; why it cannot be said. Before routes there is no place.
pub(super) fn returned<'t>(
    directive: &'t Directive,
    scope: &Scope<'t>,
    place: Option<&Place>,
    known: &Known<'_>,
) -> Result<Returned<'t>, &'static str> {
    let (status, text) = match directive.words.as_slice() {
        [target] if target.contains("://") || target.starts_with('$') => (302, Some(target)),
        [status] => (status.parse().map_err(|_| UNKNOWN)?, None),
        [status, text] => (status.parse().map_err(|_| UNKNOWN)?, Some(text)),
        _ => return Err(UNKNOWN),
    };
    let mut said = known.said.clone();
    said.entry("status".to_owned()).or_insert_with(|| Some(status.to_string()));
    let text = text.map(|text| with_said(text, &said).ok_or(VARIABLES)).transpose()?;
    if let (301 | 302 | 303 | 307 | 308, Some(text)) = (status, &text) {
        let rule = redirect(text, status, None, directive, known).ok_or(TARGET)?;
        return Ok(Returned::Redirect(rule));
    }
    // A status with a text is no error for nginx.
    if let Some(named) = named(status, scope).filter(|_| text.is_none()) {
        return Ok(Returned::Named(named));
    }
    let body = text.clone().unwrap_or_default();
    if body.contains('$') {
        let kind = with_charset(scope, fixed_type(scope, place));
        let text = answer_text(&body, &kind, scope, known).ok_or(VARIABLES)?;
        let has_body = (200..600).contains(&status) && ![204, 205, 304, 444].contains(&status);
        let table =
            format!("{{ status = {status}, text = {}, type = {} }}", quoted(&text), quoted(&kind));
        return has_body.then_some(Returned::Answer(Answer::Text(table))).ok_or(UNKNOWN);
    }
    let table = match status {
        444 => "{ close = true }".to_owned(),
        200..=299 if body.is_empty() && ![204, 205].contains(&status) => {
            format!("{{ status = {status}, {} }}", type_of_answer(scope, place))
        }
        // nginx has no page for it.
        400..=599 if body.is_empty() && (text.is_some() || !has_page(status, scope)) => {
            format!("{{ status = {status}, body = \"\" }}")
        }
        200..=599 if body.is_empty() || [204, 205, 304].contains(&status) => {
            format!("{{ status = {status} }}")
        }
        200..=599 if body.len() <= BODY_BYTES_MAX => {
            let kind = type_of_answer(scope, place);
            format!("{{ status = {status}, body = {}, {kind} }}", quoted(&body))
        }
        _ => return Err(UNKNOWN),
    };
    Ok(Returned::Answer(Answer::Text(table)))
}

/// A text with kettle's words for nginx's variables; nothing where one has none, or where a client would say what browsers may take
/// for a page.
fn answer_text(text: &str, kind: &str, scope: &Scope<'_>, known: &Known<'_>) -> Option<String> {
    let is_harmless = ["text/plain", "application/octet-stream"]
        .contains(&kind.split(';').next().unwrap_or_default());
    let mut out = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => out.push_str(&text.replace('{', "{{")),
            Part::Variable(name) if !is_harmless && !HARMLESS.contains(&name) => return None,
            // There is no answer yet that has one.
            Part::Variable("status") => return None,
            Part::Variable(name) => {
                let group = known.expression.and_then(|it| it.group_number(name));
                match group.filter(|number| *number > 0) {
                    Some(_) => out.push_str(&format!("{{{name}}}")),
                    None => out.push_str(&field_at(&format!("${{{name}}}"), scope, false)?),
                }
            }
        }
    }
    (out.len() <= BODY_BYTES_MAX).then_some(out)
}

/// True if nginx has a page for an error, of its own or by `error_page`.
fn has_page(status: u16, scope: &Scope<'_>) -> bool {
    PAGES.contains(&status) || page_of(status, scope).is_some()
}

/// Returns the `error_page` that is for a status.
fn page_of<'t>(status: u16, scope: &Scope<'t>) -> Option<&'t Directive> {
    let status = status.to_string();
    scope.all("error_page").into_iter().find(|it| it.words.contains(&status))
}

/// The location without a path that an `error_page` leads to.
fn named<'t>(status: u16, scope: &Scope<'t>) -> Option<&'t Directive> {
    let page = page_of(status, scope)?;
    // Elsewhere the status stays, and its answer is a page.
    page.words.iter().find(|it| it.starts_with('='))?;
    let name = page.words.last().filter(|it| it.starts_with('@'))?;
    let is_it = |it: &&Directive| it.name == "location" && it.words.as_slice() == [name.as_str()];
    scope.settings().flatten().find(is_it)
}

/// Returns the directive for the type of an answer: nginx goes by the path.
fn type_of_answer(scope: &Scope<'_>, place: Option<&Place>) -> String {
    match place {
        None | Some(Place::Exact(_)) => {
            format!("type = {}", quoted(&with_charset(scope, fixed_type(scope, place))))
        }
        Some(_) => BY_PATH.to_owned(),
    }
}

/// The type that nginx names for the path of a place.
fn fixed_type(scope: &Scope<'_>, place: Option<&Place>) -> String {
    let Some(Place::Text(path) | Place::Exact(path)) = place else { return default_type(scope) };
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.and_then(|it| type_of(scope, &it)).unwrap_or_else(|| default_type(scope))
}

fn default_type(scope: &Scope<'_>) -> String {
    let kind = scope.find("default_type").map(|it| it.word(0).to_owned());
    kind.filter(|it| it.contains('/')).unwrap_or_else(|| "text/plain".to_owned())
}

/// Reads a `rewrite`: its rule, what it does with a path that fits, and whether all do; why it cannot be said.
pub(super) fn rewritten(
    directive: &Directive,
    known: &Known<'_>,
) -> Result<(Rule, Flag, bool), &'static str> {
    let ([pattern, target] | [pattern, target, _]) = directive.words.as_slice() else {
        return Err(UNKNOWN);
    };
    let is_whole = is_of_all(pattern);
    let outside = slash_outside(pattern, target).filter(|_| !is_whole);
    let (pattern, target) = outside.as_ref().map_or((pattern, target), |(it, to)| (it, to));
    let regex = translated(pattern, false).ok_or(EXPRESSION)?;
    let expression = Expression::new(&regex).map_err(|_| EXPRESSION)?;
    let is_path = is_whole && ["^(.*)$", "^(.*)", "(.*)", "^(/.*)$"].contains(&pattern.as_str());
    let has_own = !is_whole || expression.groups() > 0 && !is_path;
    let known = Known {
        expression: if has_own { Some(&expression) } else { known.expression },
        is_path,
        ..*known
    };
    let mut said = known.said.clone();
    // Its own expression has been asked last, whatever groups that has.
    said.retain(|name, _| !is_group(name));
    let others = expression.groups() + 1..=GROUPS_MAX;
    said.extend(others.map(|number| (number.to_string(), Some(String::new()))));
    let target = with_said(target, &said).ok_or(VARIABLES)?;
    let (target, drops_query) = match target.strip_suffix('?') {
        Some(target) => (target.to_owned(), true),
        None => (target, false),
    };
    let is_elsewhere = ["http://", "https://", "${scheme}"].iter().any(|it| target.starts_with(it));
    let (flag, status) = match directive.word(2) {
        "permanent" => (Flag::Redirect, 301),
        "redirect" => (Flag::Redirect, 302),
        _ if is_elsewhere => (Flag::Redirect, 302),
        "last" => (Flag::Last, 0),
        "break" => (Flag::Break, 0),
        _ => (Flag::None, 0),
    };
    let regex = has_own.then_some(regex);
    if flag == Flag::Redirect {
        let mut rule = redirect(&target, status, regex, directive, &known).ok_or(TARGET)?;
        rule.keeps_query |= !drops_query;
        return Ok((rule, flag, is_whole));
    }
    let to = rewritten_to(&target, drops_query, &known)?;
    let origin = directive.origin.clone();
    let rule = Rule { regex, to, status: None, keeps_query: true, stays: false, origin };
    Ok((rule, flag, is_whole))
}

/// The same rewrite with the slash outside of the group with which its target begins: a path of kettle begins with one.
fn slash_outside(pattern: &str, target: &str) -> Option<(String, String)> {
    let (before, rest) = pattern.split_once('(')?;
    let (inner, behind) = rest.split_once(')')?;
    let is_plain = !pattern.contains(['[', '|', '\\']) && !rest.contains('(');
    let is_repeated = behind.starts_with(['?', '*', '+', '{']);
    if !is_plain || is_repeated || !target.starts_with("$1") || target.matches('$').count() != 1 {
        return None;
    }
    let inner = match inner.strip_prefix('/') {
        Some(inner) if !inner.starts_with(['?', '*', '+', '{']) => inner,
        // Each path begins with a slash.
        None if before == "^" && inner == ".+" => ".*",
        _ => return None,
    };
    Some((format!("{before}/({inner}){behind}"), format!("/{target}")))
}

/// Returns the path that replaces a request's, with the query that goes before the client's; a `?` at its end drops that.
pub(super) fn rewritten_to(
    target: &str,
    drops_query: bool,
    known: &Known<'_>,
) -> Result<String, &'static str> {
    let (mut to, keeps_query) = words(target, known, true).ok_or(TARGET)?;
    // A target that adds the client's query at the end adds it once here.
    if to.contains('?') && keeps_query {
        return Err(QUERY);
    }
    if drops_query && !keeps_query {
        to.push('?');
    }
    if Template::is_rewritten_path(&to) { Ok(to) } else { Err(TARGET) }
}

/// Returns where a directive leads all requests, and with which status.
pub(super) fn redirect_of(directive: &Directive) -> Option<(String, u16)> {
    let said = Said::new();
    let known = Known { said: &said, scheme: None, expression: None, is_path: false };
    let rule = match (directive.name.as_str(), directive.words.as_slice()) {
        ("return", [status, target]) => {
            redirect(target, status.parse().ok()?, None, directive, &known)?
        }
        ("return", [target]) => redirect(target, 302, None, directive, &known)?,
        ("rewrite", _) => match rewritten(directive, &known).ok()? {
            (rule, Flag::Redirect, true) => rule,
            _ => return None,
        },
        _ => return None,
    };
    let is_all = rule.keeps_query
        && (rule.to.ends_with("{path}") || rule.regex.is_some() && rule.to.ends_with("/{1}"));
    let to = rule.to.strip_suffix("/{1}").map(|host| format!("{host}{{path}}")).unwrap_or(rule.to);
    is_all.then_some((to, rule.status?))
}

fn redirect(
    target: &str,
    status: u16,
    regex: Option<String>,
    directive: &Directive,
    known: &Known<'_>,
) -> Option<Rule> {
    let (to, keeps_query) = words(target, known, false)?;
    let origin = directive.origin.clone();
    let stays = false;
    let rule = Rule { regex, to, status: Some(status), keeps_query, stays, origin };
    Template::is_destination(&rule.to).then_some(rule)
}

/// An address with kettle's words for nginx's variables, and whether the client's query follows it. The query of a rewrite has more
/// of them.
fn words(text: &str, known: &Known<'_>, is_rewrite: bool) -> Option<(String, bool)> {
    let behind = QUERIES.iter().find_map(|end| text.strip_suffix(end));
    let mut keeps_query = behind.is_some();
    let text = behind.unwrap_or(text);
    let mut to = String::new();
    let all = parts(text);
    // A slash behind all that was asked for stands behind its path.
    let adds_slash = !is_rewrite && matches!(all.last(), Some(Part::Text("/")));
    let last = all.len().checked_sub(1 + usize::from(adds_slash));
    for (number, part) in all.into_iter().enumerate() {
        match part {
            Part::Text(text) if text.contains(['{', '}']) => return None,
            Part::Text(text) => to.push_str(text),
            Part::Variable("host" | "http_host") => to.push_str("{host}"),
            Part::Variable("scheme") => to.push_str(known.scheme?),
            Part::Variable("uri" | "document_uri") => to.push_str("{path}"),
            Part::Variable("1") if known.is_path => to.push_str("{path}"),
            Part::Variable("request_uri") if Some(number) == last && !to.contains('?') => {
                to.push_str(if is_rewrite { "{asked_path}" } else { "{path}" });
                keeps_query = true;
            }
            Part::Variable("args" | "query_string") if is_rewrite && to.contains('?') => {
                to.push_str("{query}");
            }
            Part::Variable(name) if name.starts_with("map:") => {
                to.push_str(&format!("{{{name}}}"));
            }
            Part::Variable(name) if name.starts_with("arg_") => {
                to.push_str(&format!("{{query:{}}}", name.trim_start_matches("arg_")));
            }
            Part::Variable(name) => {
                let expression = known.expression?;
                let is_group =
                    name.parse().is_ok_and(|it: usize| (1..=expression.groups()).contains(&it));
                if !is_group && !expression.has_group(name) {
                    return None;
                }
                to.push_str(&format!("{{{name}}}"));
            }
        }
    }
    Some((to, keeps_query))
}

/// The forms that add the query of the client.
pub(super) const QUERIES: [&str; 8] = [
    "${is_args}${args}",
    "$is_args$args",
    "${is_args}${query_string}",
    "$is_args$query_string",
    "?${args}",
    "?$args",
    "?${query_string}",
    "?$query_string",
];
/// The highest number that a variable for a group has.
const GROUPS_MAX: usize = 9;
const UNKNOWN: &str = "kettle has no such answer";
const VARIABLES: &str = "what is answered is the same for all requests";
const TARGET: &str = "a redirect or a rewrite of kettle cannot say that";
const EXPRESSION: &str = "kettle's regular expressions have nothing like it";
const QUERY: &str =
    "the query that a rewrite says is followed by the client's, and by nothing else";
/// Variables that browsers take for nothing but text.
const HARMLESS: [&str; 5] = ["scheme", "remote_addr", "remote_port", "server_port", "server_name"];
/// Errors of which nginx has a page.
const PAGES: [u16; 25] = [
    400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 416, 421, 429, 500,
    501, 502, 503, 504, 505, 507,
];
/// As kettle has it.
const BODY_BYTES_MAX: usize = 64 * 1024;
