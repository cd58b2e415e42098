//! Texts with variables of nginx as texts with words of kettle.

use std::collections::BTreeMap;

use kettle_config::FieldTemplate;

use super::scope::Scope;
use super::syntax::Directive;

/// The values that `set` gave variables so far; nothing where that depends on a request.
pub(super) type Said = BTreeMap<String, Option<String>>;

pub(super) enum Part<'t> {
    Text(&'t str),
    Variable(&'t str),
}

pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut all = Vec::new();
    let mut pieces = text.split('$');
    all.extend(pieces.next().filter(|it| !it.is_empty()).map(Part::Text));
    for piece in pieces {
        let (name, behind) = match piece.strip_prefix('{').and_then(|it| it.split_once('}')) {
            Some(named) => named,
            None => {
                let is_of = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let end =
                    if is_group(piece) { Some(1) } else { piece.find(|letter| !is_of(letter)) };
                piece.split_at_checked(end.unwrap_or(piece.len())).unwrap_or((piece, ""))
            }
        };
        all.push(match name {
            // At the end of an expression, say.
            "" => Part::Text("$"),
            name => Part::Variable(name),
        });
        all.extend(Some(behind).filter(|it| !it.is_empty()).map(Part::Text));
    }
    all
}

/// True if a variable is a group of an expression, by its number.
pub(super) fn is_group(name: &str) -> bool {
    name.starts_with(|it: char| it.is_ascii_digit())
}

/// A text with what `set` said in place of its variables; nothing where that is not known.
pub(super) fn with_said(text: &str, said: &Said) -> Option<String> {
    let mut out = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Variable(name) => match said.get(name) {
                Some(value) => out.push_str(value.as_ref()?),
                None => out.push_str(&format!("${{{name}}}")),
            },
        }
        if out.len() > TEXT_BYTES_MAX {
            return None;
        }
    }
    Some(out)
}

/// A text of a field or of a condition; nothing where a variable has no word.
pub(super) fn field(text: &str) -> Option<String> {
    field_with(text, |_| None)
}

/// The same where some variables are groups of an expression, those that it has not among them.
pub(super) fn field_with(text: &str, group: impl Fn(&str) -> Option<bool>) -> Option<String> {
    let mut out = String::new();
    let mut without_groups = String::new();
    for part in parts(text) {
        let said = match part {
            Part::Text(text) => text.replace('{', "{{"),
            Part::Variable(name) => match group(name) {
                Some(is_there) => {
                    out.extend(is_there.then(|| format!("{{{name}}}")));
                    continue;
                }
                None => word(name)?,
            },
        };
        out.push_str(&said);
        without_groups.push_str(&said);
    }
    FieldTemplate::parse(&without_groups).is_ok().then_some(out)
}

/// A value with kettle's words for nginx's variables; nothing where one has no word. If the path is rewritten, `{path}` is what
/// the server gets.
pub(super) fn field_at(value: &str, scope: &Scope<'_>, is_moved: bool) -> Option<String> {
    let mut out = String::new();
    for part in parts(value) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Variable("server_name") => out.push_str(own_name(scope)?),
            Part::Variable("document_root") => out.push_str(sole_root(scope)?),
            Part::Variable("server_port") => out.push_str(&sole_port(scope)?.to_string()),
            Part::Variable("uri" | "document_uri") if is_moved => return None,
            Part::Variable(name) => out.push_str(&format!("${{{name}}}")),
        }
    }
    field(&out)
}

/// The first name of a server, where that is one.
fn own_name<'t>(scope: &Scope<'t>) -> Option<&'t str> {
    let name = scope.settings().flatten().find(|it| it.name == "server_name");
    let name = name.map_or("", |it| it.word(0));
    (!name.starts_with(['~', '.', '*']) && !name.ends_with(".*")).then_some(name)
}

/// The folder of files, where that is the same for all requests.
fn sole_root<'t>(scope: &Scope<'t>) -> Option<&'t str> {
    let root = scope.any_of(&["root", "alias"]).first().map(|it| it.word(0));
    root.filter(|it| it.starts_with('/') && !it.contains('$')).map(|it| it.trim_end_matches('/'))
}

/// The port of a server that listens on one alone.
pub(super) fn sole_port(scope: &Scope<'_>) -> Option<u16> {
    let listens = |it: &&Directive| it.name == "listen";
    let port = |it: &Directive| it.word(0).rsplit(':').next()?.parse::<u16>().ok();
    let mut ports = scope.settings().flatten().filter(listens).map(port);
    let first = ports.next()??;
    ports.all(|other| other == Some(first)).then_some(first)
}

/// The header of the service's answer, in lower case, that a text is; nothing where it is anything else.
pub(super) fn said_by_service(scope: &Scope<'_>, text: &str) -> Option<String> {
    let sole = |text: &str| match parts(text).as_slice() {
        [Part::Variable(name)] => Some((*name).to_owned()),
        _ => None,
    };
    let name = sole(text.trim())?;
    let set = scope.all("auth_request_set");
    let set = set.iter().rfind(|it| sole(it.word(0)).as_deref() == Some(name.as_str()))?;
    let said = sole(set.word(1))?;
    let header = said.strip_prefix("upstream_http_").filter(|it| !it.is_empty())?;
    Some(header.replace('_', "-").to_ascii_lowercase())
}

/// The word for a variable.
fn word(name: &str) -> Option<String> {
    let fixed = WORDS.iter().find(|(variable, _)| *variable == name).map(|(_, word)| *word);
    let named = || {
        let kinds = [
            ("http_", "header"),
            ("cookie_", "cookie"),
            ("arg_", "query"),
            ("sent_http_", "answer"),
            ("upstream_http_", "answer"),
        ];
        let kinds = kinds.into_iter().chain([("map:", "map"), ("name:", "name")]);
        let (own, kind) =
            kinds.into_iter().find_map(|(begin, kind)| Some((name.strip_prefix(begin)?, kind)))?;
        let own = if ["header", "answer"].contains(&kind) {
            own.replace('_', "-")
        } else {
            own.to_owned()
        };
        Some(format!("{{{kind}:{own}}}"))
    };
    fixed.map(str::to_owned).or_else(named)
}

/// nginx's variables that kettle has a word for.
const WORDS: [(&str, &str); 22] = [
    ("host", "{host}"),
    ("remote_addr", "{client_ip}"),
    ("remote_port", "{client_port}"),
    ("scheme", "{scheme}"),
    ("ssl_client_s_dn", "{client_subject}"),
    ("request_uri", "{asked_uri}"),
    ("uri", "{path}"),
    ("document_uri", "{path}"),
    ("args", "{query}"),
    ("query_string", "{query}"),
    ("request_method", "{method}"),
    ("request_id", "{request_id}"),
    ("server_protocol", "{protocol}"),
    ("request", "{method} {asked_uri} {protocol}"),
    ("content_type", "{header:content-type}"),
    ("content_length", "{header:content-length}"),
    ("status", "{status}"),
    // There is no early data here.
    ("ssl_early_data", ""),
    // Maps of ours.
    ("https", "{map:https}"),
    ("is_args", "{map:is_args}"),
    ("proxy_add_x_forwarded_for", "{map:proxy_add_x_forwarded_for}"),
    ("ssl_client_verify", "{map:ssl_client_verify}"),
];
const TEXT_BYTES_MAX: usize = 64 * 1024;
