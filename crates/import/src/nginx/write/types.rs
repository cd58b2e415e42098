//! Types of answers: the table of files, what an answer without a file says, and charsets.

use std::collections::BTreeMap;

use kettle_config::{Origin, nginx_extensions, nginx_media_type, quoted};

use super::Writer;
use super::route::{Answer, Route, Setting};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::{list, table};

impl Writer<'_> {
    /// Adds what a `return` says beside its body: headers, and types in lines of their own.
    pub(super) fn say_of_answer(&mut self, scope: &Scope<'_>, status: u16, route: &mut Route) {
        let origin = route.origin.clone();
        let headers = self.added(scope, matches!(route.answer, Answer::Text(_)));
        let (types, headers): (Vec<_>, Vec<_>) = headers.into_iter().partition(|it| it.is_type());
        if let Answer::Text(table) = &mut route.answer {
            let types = types.iter().filter(|it| it.always || ADDED_TO.contains(&status));
            let types: Vec<&str> = types.flat_map(|it| &it.values).map(String::as_str).collect();
            // Others have a page, and no clients' words may come as one.
            let has_own = status < 400 || table.contains(" body = ") || table.contains(" text = ");
            let is_text = |it: &&str| it.starts_with("text/plain");
            let fits = !table.contains(" text = ") || types.iter().all(is_text);
            if has_own && fits && !types.is_empty() {
                let types = format!(", more_types = {} }}", list(types.into_iter()));
                table.replace_range(table.len().saturating_sub(2).., &types);
            }
            if table.contains(BY_PATH) {
                route.settings.extend(type_settings(scope, &origin));
            }
        }
        let headers = self.said_of(scope, headers, &origin);
        route.settings.extend(headers);
    }
}

/// The statuses that `add_header` is for, unless it says `always`.
const ADDED_TO: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];
/// The setting of an answer whose type goes by its path.
pub(super) const BY_PATH: &str = "type_by_path = true";

/// Returns the directive that names a charset.
fn charset_of<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    let charset = scope.find("charset")?;
    (charset.word(0) != "off" && !charset.word(0).contains('$')).then_some(charset)
}

fn charset_types<'t>(scope: &Scope<'t>) -> Vec<&'t str> {
    scope.find("charset_types").map_or(CHARSET_TYPES.to_vec(), |it| {
        let own = it.words.iter().map(String::as_str).filter(|it| it.contains('/'));
        own.chain(["text/html"]).collect()
    })
}

/// A type with the charset that is named for it.
pub(super) fn with_charset(scope: &Scope<'_>, kind: String) -> String {
    match charset_of(scope).filter(|_| charset_types(scope).contains(&kind.as_str())) {
        Some(charset) => format!("{kind}; charset={}", charset.word(0)),
        None => kind,
    }
}

/// The charset, the table of types, what is named otherwise than there, and the type of all else.
pub(super) fn type_settings(scope: &Scope<'_>, origin: &Origin) -> Vec<Setting> {
    let tables = scope.all("types");
    let mut named: BTreeMap<String, &str> = BTreeMap::new();
    for entry in tables.iter().flat_map(|table| table.inner()) {
        let kind = entry.name.as_str();
        named.extend(entry.words.iter().map(|it| (it.to_ascii_lowercase(), kind)));
    }
    if tables.is_empty() {
        named.extend(OF_NGINX.map(|(extension, kind)| (extension.to_owned(), kind)));
    }
    let has_table = nginx_extensions().filter(|it| !named.contains_key(*it)).count() <= LACKS_MAX;
    let default = scope.find("default_type").map_or("text/plain", |it| it.word(0));
    let default = if default.contains('/') { default } else { "application/octet-stream" };
    if has_table {
        for extension in nginx_extensions() {
            named.entry(extension.to_owned()).or_insert(default);
        }
        named.retain(|extension, kind| nginx_media_type(extension) != Some(*kind));
    }
    let mut settings = Vec::new();
    let charset = charset_of(scope);
    let place = charset.map_or(origin, |charset| &charset.origin);
    let name = charset.map_or("off", |charset| charset.word(0));
    settings.push(("charset", quoted(name), place.clone()));
    if charset.is_some() {
        settings.push(("charset_types", list(charset_types(scope).into_iter()), place.clone()));
    }
    let table_of_types = if has_table { "nginx" } else { "none" };
    settings.push(("types", quoted(table_of_types), origin.clone()));
    if !named.is_empty() {
        let named = named.iter().map(|(name, kind)| (name.as_str(), quoted(kind)));
        settings.push(("mime", table(named), origin.clone()));
    }
    if default != "application/octet-stream" {
        settings.push(("default_type", quoted(default), origin.clone()));
    }
    settings
}

/// The type that nginx names for an extension; nothing where that is the default one.
pub(super) fn type_of(scope: &Scope<'_>, extension: &str) -> Option<String> {
    let tables = scope.all("types");
    let mut entries = tables.iter().flat_map(|table| table.inner());
    let is_it = |it: &&Directive| it.words.iter().any(|word| word.eq_ignore_ascii_case(extension));
    if tables.is_empty() {
        let own = OF_NGINX.iter().find(|(known, _)| *known == extension);
        return own.map(|(_, kind)| (*kind).to_owned());
    }
    entries.find(is_it).map(|entry| entry.name.clone())
}

/// The number of extensions of nginx's own table a file may lack that has it.
const LACKS_MAX: usize = 20;
/// nginx's own.
const CHARSET_TYPES: [&str; 6] = [
    "text/html",
    "text/xml",
    "text/plain",
    "text/vnd.wap.wml",
    "application/javascript",
    "application/rss+xml",
];

/// The types that nginx names where no `types` does.
const OF_NGINX: [(&str, &str); 3] =
    [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];
