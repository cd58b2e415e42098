//! The settings of a route: headers, types, compressed siblings, what a cache may keep.

use std::collections::BTreeMap;

use kettle_config::{Origin, RUN_EXTENSIONS, is_own_header, media_type, quoted};

use super::Writer;
use super::place::Spot;
use super::route::{Setting, spoken};
use crate::nginx::measure;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;

impl Writer<'_> {
    pub(super) fn route_settings<'t>(
        &mut self,
        scope: &Scope<'t>,
        spot: &Spot<'t>,
        origin: &Origin,
    ) -> Vec<Setting> {
        let mut settings: Vec<Setting> = Vec::new();
        if let Some(index) = scope.find("index") {
            let names = self.index(index);
            let names = list(names.iter().map(String::as_str));
            settings.push(("index", names, index.origin.clone()));
        }
        if scope.is_on("autoindex") {
            settings.push(("listing", "true".to_owned(), origin.clone()));
        }
        let mut set = |key, value: String, origin: &Origin| {
            settings.push((key, value, origin.clone()));
        };
        let (symlinks, place) = match scope.find("disable_symlinks") {
            Some(it) if it.word(0) == "on" => ("never", &it.origin),
            Some(it) if it.word(0) == "if_not_owner" => {
                let help = "no link is followed, since nobody compares their owners";
                self.output.lose(
                    &it.origin,
                    format!("`{}` is not carried over as it is", spoken(it)),
                    help,
                );
                ("never", &it.origin)
            }
            _ => ("follow", origin),
        };
        set("symlinks", quoted(symlinks), place);
        set("dotfiles", "true".to_owned(), origin);
        let codings = self.codings(scope);
        if !codings.is_empty() {
            set("precompressed", list(codings.iter().copied()), origin);
        }
        settings.extend(self.compression(scope));
        let mut set = |key, value: String, origin: &Origin| {
            settings.push((key, value, origin.clone()));
        };
        let charset = scope.find("charset").filter(|charset| !charset.word(0).contains('$'));
        let place = charset.map_or(origin, |charset| &charset.origin);
        let charset = charset.map_or("off", |charset| charset.word(0));
        set("charset", quoted(charset), place);
        settings.extend(self.header_settings(scope, origin));
        let mut set = |key, value: String, origin: &Origin| {
            settings.push((key, value, origin.clone()));
        };
        let types = self.types(scope);
        if !types.is_empty() {
            set("mime", mime(&types), origin);
        }
        settings.extend(self.route_log(scope));
        self.own_indexes(&mut settings, spot);
        settings
    }

    /// What is compressed on the way.
    pub(super) fn compression(&mut self, scope: &Scope<'_>) -> Vec<Setting> {
        let coders = [("brotli", "br"), ("zstd", "zstd"), ("gzip", "gzip")];
        let on: Vec<_> = coders.into_iter().filter(|(name, _)| scope.is_on(name)).collect();
        let Some((first, is_on)) = on.first().and_then(|it| Some((it.0, scope.find(it.0)?))) else {
            return Vec::new();
        };
        let mut settings = Vec::new();
        let mut set = |key, value, it: &Directive| settings.push((key, value, it.origin.clone()));
        set("compress", list(on.iter().map(|(_, coding)| *coding)), is_on);
        // HTML is compressed in any case, and nothing else unless it is named.
        let named = scope.all(&format!("{first}_types"));
        let words = named.iter().flat_map(|it| it.words.iter());
        let mut types = vec!["text/html".to_owned()];
        for word in words {
            let kind = if word == "*" { "*/*".to_owned() } else { word.to_ascii_lowercase() };
            let is_type = kind.split_once('/').is_some_and(|(_, it)| !it.is_empty());
            if is_type && (kind == "*/*" || !kind.contains('*')) && !types.contains(&kind) {
                types.push(kind);
            }
        }
        let place = named.first().copied().unwrap_or(is_on);
        set("compress_types", list(types.iter().map(String::as_str)), place);
        let shortest = scope.find(&format!("{first}_min_length"));
        let bytes = shortest.and_then(|it| measure::bytes(it.word(0))).unwrap_or(LENGTH_MIN);
        set("compress_min", bytes.to_string(), shortest.unwrap_or(is_on));
        if let Some(gzip) = scope.find("gzip").filter(|_| scope.is_on("gzip")) {
            let proxied = scope.find("gzip_proxied");
            if proxied.is_none_or(|it| it.word(0) != "any") {
                set("compress_for_proxies", "false".to_owned(), proxied.unwrap_or(gzip));
            }
            if let Some(it) = proxied.filter(|it| !["any", "off"].contains(&it.word(0))) {
                let help = "clients behind proxies get nothing compressed: `any` lets all of them";
                self.output.warn(&it.origin, format!("`{}`", spoken(it)), help);
            }
        }
        settings
    }

    /// What responses say beside what they are.
    pub(super) fn header_settings(&mut self, scope: &Scope<'_>, origin: &Origin) -> Vec<Setting> {
        let headers = self.headers(scope);
        self.said_of(scope, headers, origin)
    }

    /// The same where a backend answers, some of whose fields are taken away.
    pub(super) fn headers_of_backend(
        &mut self,
        scope: &Scope<'_>,
        origin: &Origin,
    ) -> Vec<Setting> {
        let mut headers = self.headers(scope);
        headers.retain(|added| !is_cache_control(&added.name));
        for directive in
            scope.all("add_header").into_iter().filter(|it| is_cache_control(it.word(0)))
        {
            let message = format!("`{}` is not carried over", spoken(directive));
            let help = "a backend says it itself; `headers` of the route would say it in its place";
            self.output.warn(&directive.origin, message, help);
        }
        for hidden in scope.all("proxy_hide_header") {
            let name = hidden.word(0);
            let is_known = headers.iter().any(|known| known.name.eq_ignore_ascii_case(name));
            // What kettle writes itself is not the backend's.
            let is_ours = is_own_header(name)
                || ["server", "date"].iter().any(|it| name.eq_ignore_ascii_case(it));
            if !is_known && !is_ours {
                headers.push(Added { name: name.to_owned(), values: Vec::new(), always: true });
            }
        }
        self.said_of(scope, headers, origin)
    }

    fn said_of(&mut self, scope: &Scope<'_>, headers: Vec<Added>, origin: &Origin) -> Vec<Setting> {
        let mut settings = Vec::new();
        if !headers.is_empty() {
            let entries = headers.iter().map(|it| (it.name.as_str(), values(&it.values)));
            settings.push(("headers", table(entries), origin.clone()));
        }
        if headers.iter().any(|it| !it.always) {
            let always = headers.iter().filter(|it| it.always).map(|it| it.name.as_str());
            settings.push(("always", list(always), origin.clone()));
        }
        if let Some(directive) = scope.find("expires") {
            let value = self.expires(directive);
            settings.extend(value.map(|it| ("expires", quoted(&it), directive.origin.clone())));
        }
        settings
    }

    /// Says that a field takes the place of a backend's, where nginx adds a line and clients look at all of them.
    pub(super) fn tell_of_replacing(&mut self, scope: &Scope<'_>) {
        let is_one = |it: &&Directive| {
            let of_lines = OF_LINES.iter().any(|name| it.word(0).eq_ignore_ascii_case(name));
            of_lines && !it.word(1).contains('$') && !it.word(1).trim().is_empty()
        };
        for directive in scope.all("add_header").into_iter().filter(is_one) {
            let message = format!("`{}` takes the place of the backend's", spoken(directive));
            let help = "nginx adds it to what the backend sends: let one of both say all of it";
            self.output.warn(&directive.origin, message, help);
        }
    }

    fn index(&mut self, index: &Directive) -> Vec<String> {
        let is_name = |word: &String| !word.contains(['/', '$']) && !word.is_empty();
        let names: Vec<String> = index.words.iter().filter(|word| is_name(word)).cloned().collect();
        if names.len() < index.words.len() {
            let help = "an index is the name of a file in its folder";
            self.output.warn(&index.origin, format!("not all of `{}`", spoken(index)), help);
        }
        names
    }

    fn codings(&mut self, scope: &Scope<'_>) -> Vec<&'static str> {
        let all = [("brotli_static", "br"), ("zstd_static", "zstd"), ("gzip_static", "gzip")];
        let mut codings = Vec::new();
        for (name, coding) in all {
            let Some(directive) = scope.find(name) else { continue };
            if directive.word(0) == "always" {
                let help = "compressed files go to clients that take them";
                self.output.warn(&directive.origin, format!("`{}`", spoken(directive)), help);
            }
            if directive.word(0) != "off" {
                codings.push(coding);
            }
        }
        codings
    }

    fn expires(&mut self, expires: &Directive) -> Option<String> {
        let (word, is_modified) = match expires.word(0) {
            "modified" => (expires.word(1), true),
            word => (word, false),
        };
        let value = match word {
            "off" => return None,
            "epoch" => Some("epoch".to_owned()),
            "max" => Some(format!("{EXPIRES_MAX}s")),
            time if time.starts_with('-') => Some("epoch".to_owned()),
            time => measure::seconds(time).map(|it| format!("{}s", it.min(EXPIRES_MAX))),
        };
        if value.is_none() || is_modified {
            let help = "`expires` of a route is a time from its answer on, or `epoch`";
            let message = format!("`{}` is not carried over as it is", spoken(expires));
            self.output.warn(&expires.origin, message, help);
        }
        value
    }

    /// Those of the innermost block that has any.
    fn headers(&mut self, scope: &Scope<'_>) -> Vec<Added> {
        let mut headers: Vec<Added> = Vec::new();
        for directive in scope.all("add_header") {
            let (name, value) = (directive.word(0), directive.word(1).trim());
            let always = directive.word(2) == "always";
            let message = format!("`{}` is not carried over", spoken(directive));
            if value.contains('$') {
                let help = "a header's value is the same in every response";
                self.output.warn(&directive.origin, message, help);
            } else if is_own_header(name) {
                let help = "kettle writes that header itself, to fit each response";
                self.output.warn(&directive.origin, message, help);
            } else if is_for_quic(directive) {
                self.output.warn(&directive.origin, message, NO_QUIC);
            } else if value.is_empty() {
            } else if let Some(added) =
                headers.iter_mut().find(|other| other.name.eq_ignore_ascii_case(name))
            {
                added.values.push(value.replace('{', "{{"));
                added.always |= always;
            } else {
                let values = vec![value.replace('{', "{{")];
                headers.push(Added { name: name.to_owned(), values, always });
            }
        }
        headers
    }

    /// Types that kettle would name otherwise: those of `types`, and of what browsers run nothing else.
    fn types(&mut self, scope: &Scope<'_>) -> BTreeMap<String, String> {
        let default = scope.find("default_type");
        if let Some(default) = default.filter(|it| it.word(0) != "application/octet-stream") {
            let help = "a file whose extension nobody knows is application/octet-stream; `mime` of the route names types \
                           by extension";
            let message = format!("`{}` is not carried over", spoken(default));
            self.output.warn(&default.origin, message, help);
        }
        types_of(scope)
    }
}

/// Whether a field sends clients to QUIC, which nobody speaks here.
fn is_for_quic(added: &Directive) -> bool {
    let value = added.word(1).to_ascii_lowercase();
    let names = |name: &str| added.word(0).eq_ignore_ascii_case(name);
    names("alt-svc") && (value.contains("h3") || value.contains("quic"))
        || names("alternate-protocol") && value.contains("quic")
}

fn types_of(scope: &Scope<'_>) -> BTreeMap<String, String> {
    let other = scope.find("default_type").map_or("text/plain", |it| it.word(0));
    let tables = scope.all("types");
    let mut named: BTreeMap<String, &str> = BTreeMap::new();
    for entry in tables.iter().flat_map(|table| table.inner()) {
        let kind = entry.name.as_str();
        named.extend(entry.words.iter().map(|it| (it.to_ascii_lowercase(), kind)));
    }
    if tables.is_empty() {
        named.extend(OF_NGINX.map(|(extension, kind)| (extension.to_owned(), kind)));
    }
    for extension in RUN_EXTENSIONS {
        named.entry((*extension).to_owned()).or_insert(other);
    }
    let differs = |(extension, kind): &(String, &str)| {
        media_type(extension).unwrap_or("application/octet-stream") != *kind
    };
    let named = named.into_iter().filter(differs);
    named.map(|(extension, kind)| (extension, kind.to_owned())).collect()
}

fn mime(types: &BTreeMap<String, String>) -> String {
    table(types.iter().map(|(name, kind)| (name.as_str(), quoted(kind))))
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

fn is_cache_control(name: &str) -> bool {
    name.eq_ignore_ascii_case("cache-control")
}

/// A header that is added, with its lines; without one it is taken away.
struct Added {
    name: String,
    values: Vec<String>,
    /// Whether errors have it as well.
    always: bool,
}

/// The longest that kettle lets a response be kept: ten years, as `expires max` says.
const EXPIRES_MAX: u32 = 3650 * 24 * 3600;

/// What nginx compresses by default.
const LENGTH_MIN: u64 = 20;

const NO_QUIC: &str = "nobody answers QUIC here, and clients would look for it in vain";

/// What nginx names where no `types` does.
const OF_NGINX: [(&str, &str); 3] =
    [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];

/// Fields of which a response often has several, each of which counts.
const OF_LINES: [&str; 8] = [
    "access-control-allow-origin",
    "content-security-policy",
    "content-security-policy-report-only",
    "link",
    "server-timing",
    "set-cookie",
    "www-authenticate",
    "x-robots-tag",
];

/// The value of a field, or those of its lines.
pub(super) fn values(all: &[String]) -> String {
    match all {
        [one] => quoted(one),
        all => list(all.iter().map(String::as_str)),
    }
}

/// A table in braces.
pub(super) fn table<'e>(entries: impl Iterator<Item = (&'e str, String)>) -> String {
    let entries: Vec<String> =
        entries.map(|(key, value)| format!("{} = {value}", quoted(key))).collect();
    format!("{{ {} }}", entries.join(", "))
}
