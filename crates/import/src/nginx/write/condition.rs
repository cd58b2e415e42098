//! `if` as conditions of a route.

use std::path::Path;

use kettle_config::{Expression, Template, quoted};

use super::referer;
use super::settings::symlinks_of;
use super::there::Folder;
use crate::nginx::regex::{ALL, of_condition, translated, wider};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, field, parts, with_said};
use crate::offer::list;

pub(super) enum Asked {
    /// Nothing that depends on a request.
    Constant(bool),
    /// Conditions of kettle, all of which hold.
    When(Vec<String>),
}

/// Reads an `if`; why it cannot be said.
pub(super) fn read(
    condition: &Directive,
    said: &Said,
    scope: &Scope<'_>,
    root: Option<&Path>,
) -> Result<Asked, &'static str> {
    let words = inside(condition);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["$invalid_referer"] | ["$invalid_referer", "=", "1"] => {
            referer::invalid(scope).map(Asked::When).ok_or(UNKNOWN)
        }
        [operator @ ("-f" | "!-f" | "-d" | "!-d" | "-e" | "!-e"), path] => {
            let path = with_said(path, said).ok_or(FILES)?;
            there(operator, &path, scope, root.ok_or(FILES)?).map(|it| Asked::When(vec![it]))
        }
        [variable] => truth(variable, said),
        [variable, operator @ ("=" | "!="), value] => {
            let value = with_said(value, said).filter(|it| !it.contains('$')).ok_or(VALUE)?;
            equal(variable, &value, *operator == "=", said)
        }
        [variable, operator @ ("~" | "~*" | "!~" | "!~*"), pattern] => {
            let ignores_case = operator.ends_with('*');
            fits(variable, pattern, ignores_case, !operator.starts_with('!'), said)
        }
        _ => Err(UNKNOWN),
    }
}

/// A condition that holds wherever an `if` may that [`read`] cannot say; nothing where none is known.
pub(super) fn weaker(condition: &Directive, said: &Said) -> Option<String> {
    let words = inside(condition);
    let [variable, operator, pattern] = words.as_slice() else { return None };
    let asks = ["~", "~*"].contains(&operator.as_str());
    let text = asked_text(subject(variable, said).ok()?).filter(|_| asks)?;
    let regex = Some(wider(pattern)).filter(|it| it != ALL)?;
    Some(turned(&format!("{text}, regex = {}", quoted(&regex)), true))
}

/// The file that an `if` asks for by a path that is the same for all requests.
pub(super) fn file_of(condition: &Directive) -> Option<String> {
    let words = inside(condition);
    let [operator, path] = words.as_slice() else { return None };
    let asks = ["-f", "!-f", "-e", "!-e"].contains(&operator.as_str());
    (asks && !path.contains('$')).then(|| path.clone())
}

/// The path of which an `if` asks that no file is there.
pub(super) fn missing(condition: &Directive) -> Option<String> {
    match inside(condition).as_slice() {
        [operator, path] if operator == "!-f" => Some(path.clone()),
        _ => None,
    }
}

/// A file below the root of the place, or elsewhere.
fn there(
    operator: &str,
    path: &str,
    scope: &Scope<'_>,
    root: &Path,
) -> Result<String, &'static str> {
    let kind = match operator.trim_start_matches('!') {
        "-f" => "file",
        "-d" => "folder",
        _ => "any",
    };
    let own = ["$document_root", "${document_root}", "$realpath_root", "${realpath_root}"];
    let below = own.into_iter().find_map(|it| path.strip_prefix(it));
    let path = match path {
        "$request_filename" | "${request_filename}" => "{path}".to_owned(),
        _ => {
            let below = below.or(path.strip_prefix(&*root.display().to_string()));
            let below = below.ok_or(FILES)?;
            let mut text = String::new();
            for part in parts(below) {
                match part {
                    Part::Text(own) if own.contains(['{', '}']) => return Err(FILES),
                    Part::Text(own) => text.push_str(own),
                    Part::Variable("uri" | "document_uri") => text.push_str("{path}"),
                    Part::Variable(_) => return Err(FILES),
                }
            }
            text
        }
    };
    let is_known = Template::of_try(&path).is_some();
    let folder = Folder { path: root, prefix: String::new(), symlinks: symlinks_of(scope) };
    let condition = folder.condition(kind, &path, !operator.starts_with('!'));
    is_known.then_some(condition).ok_or(FILES)
}

/// The names of a server that an `if` about the host fits which has groups: conditions for each, and what its groups are. Nothing
/// where it is about something else, or where the names are not told one by one.
pub(super) fn hosts(condition: &Directive, scope: &Scope<'_>) -> Option<Vec<(String, Said)>> {
    let words = inside(condition);
    let [variable, operator, pattern] = words.as_slice() else { return None };
    if !["$host", "$http_host", "${host}"].contains(&&**variable)
        || !["~", "~*"].contains(&&**operator)
    {
        return None;
    }
    let expression =
        Expression::new(&translated(pattern, true)?).ok().filter(|it| it.groups() > 0)?;
    let names = scope.all("server_name").into_iter().flat_map(|it| &it.words);
    let names: Vec<String> = names.map(|it| it.to_ascii_lowercase()).collect();
    if names.is_empty() || !names.iter().all(|it| is_host(it)) {
        return None;
    }
    let fitting = |name: &String| {
        let captures = expression.captures(name)?;
        let number = |at: usize| Some((at.to_string(), captures.get(at).map(str::to_owned)));
        let groups: Said = (1..=expression.groups()).filter_map(number).collect();
        Some((format!("{{ host = [{}] }}", quoted(name)), groups))
    };
    Some(names.iter().filter_map(fitting).collect())
}

/// Returns the subject of an `if` with an expression, in kettle's words, with that expression; nothing of any other.
pub(super) fn grouped(condition: &Directive, said: &Said) -> Option<(String, Expression)> {
    let words = inside(condition);
    let [variable, operator, pattern] = words.as_slice() else { return None };
    let ignores_case = match operator.as_str() {
        "~" => false,
        "~*" => true,
        _ => return None,
    };
    let regex = of_condition(pattern, ignores_case)?;
    Some((field(&with_said(variable, said)?)?, Expression::new(&regex).ok()?))
}

/// Returns the words between its brackets, however they are spaced.
fn inside(condition: &Directive) -> Vec<String> {
    let mut words = condition.words.clone();
    if let Some(first) = words.first_mut() {
        *first = first.strip_prefix('(').unwrap_or(first).to_owned();
    }
    if words.first().is_some_and(String::is_empty) {
        words.remove(0);
    }
    match words.last_mut() {
        Some(last) if last == ")" => _ = words.pop(),
        Some(last) => *last = last.strip_suffix(')').unwrap_or(last).to_owned(),
        None => {}
    }
    words
}

enum Subject {
    Method,
    Host,
    Scheme,
    Address,
    /// The beginning of a condition about a text.
    Text(String),
    Constant(String),
}

fn subject(variable: &str, said: &Said) -> Result<Subject, &'static str> {
    // A variable that is set once is put in already.
    let Some(name) = variable.strip_prefix('$') else {
        return Ok(Subject::Constant(variable.to_owned()));
    };
    let name = name.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(name);
    if let Some(value) = said.get(name) {
        let value = value.as_deref().ok_or(UNKNOWN)?;
        return match value.contains('$') {
            false => Ok(Subject::Constant(value.to_owned())),
            true => Ok(Subject::Text(of(&field(value).ok_or(UNKNOWN)?))),
        };
    }
    let named = |key: &str, name: &str| Subject::Text(format!("{key} = {}", quoted(name)));
    Ok(match name {
        "request_method" => Subject::Method,
        "host" => Subject::Host,
        "scheme" => Subject::Scheme,
        "remote_addr" => Subject::Address,
        "content_type" => named("header", "content-type"),
        _ => match name.split_once('_') {
            Some(("http", name)) => named("header", &name.replace('_', "-")),
            Some(("cookie", name)) => named("cookie", name),
            Some(("arg", name)) => named("query", name),
            _ => Subject::Text(of(&field(&format!("${{{name}}}")).ok_or(UNKNOWN)?)),
        },
    })
}

fn of(words: &str) -> String {
    format!("of = {}", quoted(words))
}

/// True for all but nothing and `0`.
fn truth(variable: &str, said: &Said) -> Result<Asked, &'static str> {
    match subject(variable, said)? {
        Subject::Constant(value) => Ok(Asked::Constant(!value.is_empty() && value != "0")),
        Subject::Text(text) => Ok(Asked::When(vec![
            format!("{{ {text} }}"),
            format!("{{ {text}, text = \"0\", not = true }}"),
        ])),
        _ => Ok(Asked::Constant(true)),
    }
}

fn equal(variable: &str, value: &str, is_equal: bool, said: &Said) -> Result<Asked, &'static str> {
    let one = |text: String| Ok(Asked::When(vec![turned(&text, is_equal)]));
    match subject(variable, said)? {
        Subject::Constant(constant) => Ok(Asked::Constant((constant == value) == is_equal)),
        Subject::Method => one(format!("method = [{}]", quoted(value))),
        Subject::Host if is_host(value) => one(format!("host = [{}]", quoted(value))),
        Subject::Host => one(format!("of = \"{{host}}\", text = {}", quoted(value))),
        Subject::Scheme if ["http", "https"].contains(&value) => {
            one(format!("scheme = {}", quoted(value)))
        }
        Subject::Scheme => Ok(Asked::Constant(!is_equal)),
        Subject::Address if value.parse::<std::net::IpAddr>().is_ok() => {
            one(format!("network = [{}]", quoted(value)))
        }
        Subject::Address => Ok(Asked::Constant(!is_equal)),
        // Without `text` it is there, and not empty.
        Subject::Text(text) if value.is_empty() => Ok(Asked::When(vec![turned(&text, !is_equal)])),
        Subject::Text(text) => one(format!("{text}, text = {}", quoted(value))),
    }
}

fn fits(
    variable: &str,
    pattern: &str,
    ignores_case: bool,
    is_fitting: bool,
    said: &Said,
) -> Result<Asked, &'static str> {
    let expression = of_condition(pattern, ignores_case).ok_or(EXPRESSION)?;
    let one = |text: &str| {
        let text = format!("{text}, regex = {}", quoted(&expression));
        Ok(Asked::When(vec![turned(&text, is_fitting)]))
    };
    match subject(variable, said)? {
        Subject::Constant(constant) => {
            let expression = Expression::new(&expression).map_err(|_| EXPRESSION)?;
            Ok(Asked::Constant(expression.fits(&constant) == is_fitting))
        }
        Subject::Method => match methods(pattern).filter(|_| !ignores_case) {
            Some(methods) => {
                let methods = list(methods.into_iter());
                Ok(Asked::When(vec![turned(&format!("method = {methods}"), is_fitting)]))
            }
            None => one(&asked_text(Subject::Method).ok_or(UNKNOWN)?),
        },
        text => one(&asked_text(text).ok_or(UNKNOWN)?),
    }
}

/// The beginning of a condition about the text of a subject, if that depends on a request.
fn asked_text(subject: Subject) -> Option<String> {
    Some(match subject {
        Subject::Method => of(&field("$request_method")?),
        Subject::Host => of("{host}"),
        Subject::Scheme => of("{scheme}"),
        Subject::Address => of("{client_ip}"),
        Subject::Text(text) => text,
        Subject::Constant(_) => return None,
    })
}

/// A condition that holds where this one does not.
pub(super) fn negated(condition: &str) -> String {
    match condition.strip_suffix(NOT) {
        Some(positive) => format!("{positive} }}"),
        None => condition.strip_suffix(" }").map_or_else(String::new, |it| format!("{it}{NOT}")),
    }
}

fn turned(text: &str, holds: bool) -> String {
    match holds {
        true => format!("{{ {text} }}"),
        false => format!("{{ {text}, not = true }}"),
    }
}

/// The methods of an expression that is nothing but a list of them.
fn methods(pattern: &str) -> Option<Vec<&str>> {
    let pattern = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let inner = match pattern.strip_prefix('(') {
        Some(group) => group.strip_suffix(')')?,
        None => Some(pattern).filter(|it| !it.contains('|'))?,
    };
    let all: Vec<&str> = inner.strip_prefix("?:").unwrap_or(inner).split('|').collect();
    let is_name = |it: &&str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_uppercase());
    all.iter().all(is_name).then_some(all)
}

fn is_host(value: &str) -> bool {
    let is_of_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    value.starts_with(|it: char| it.is_ascii_alphanumeric())
        && value.ends_with(|it: char| it.is_ascii_alphanumeric())
        && value.bytes().all(is_of_name)
        && !value.contains("..")
}

const NOT: &str = ", not = true }";
const UNKNOWN: &str = "no condition of kettle asks that";
const FILES: &str = "files are looked for by their path below the root of the place, which has no variables and is there";
const VALUE: &str = "a condition of kettle has a value that is the same for all requests";
const EXPRESSION: &str = "kettle's regular expressions have nothing like it";
