//! The settings of a route: headers, types, compressed siblings, what a cache may keep.

use kettle_config::{Origin, is_own_header, quoted};

use super::Writer;
use super::guard::NO_USERS;
use super::place::Spot;
use super::route::{Answer, Route, Setting, spoken};
use super::types::type_settings;
use super::validation::validation;
use crate::nginx::location::Shut;
use crate::nginx::map::Map;
use crate::nginx::measure;
use crate::nginx::scope::{Scope, of_backends};
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, parts, said_by_service};
use crate::offer::{list, table, values};

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
        set("answer_options", "false".to_owned(), origin);
        set("symlinks", quoted(symlinks), place);
        set("dotfiles", "true".to_owned(), origin);
        let codings = self.codings(scope);
        if !codings.is_empty() {
            set("precompressed", list(codings.iter().copied()), origin);
        }
        settings.extend(validation(scope, origin));
        settings.extend(self.compression(scope));
        settings.extend(self.header_settings(scope, origin));
        settings.extend(type_settings(scope, origin));
        settings.extend(self.rate_settings(scope));
        settings.extend(self.route_log(scope));
        self.own_indexes(&mut settings, spot);
        settings
    }

    /// Writes what is compressed on the way.
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

    /// Writes the headers of responses.
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
        let hidden = of_backends("hide_header");
        let hidden: Vec<_> = hidden.iter().flat_map(|name| scope.all(name)).collect();
        // nginx adds a line to what the server sends.
        let is_beside = |added: &&Added| {
            let is_hidden = hidden.iter().any(|it| it.word(0).eq_ignore_ascii_case(&added.name));
            !is_hidden && !added.values.is_empty()
        };
        let beside = headers.iter().filter(is_beside).map(|it| it.name.as_str());
        let beside = list(beside);
        for hidden in hidden {
            let name = hidden.word(0);
            let is_known = headers.iter().any(|known| known.name.eq_ignore_ascii_case(name));
            // A header that kettle writes itself is not the backend's.
            let is_ours = is_own_header(name)
                || ["server", "date"].iter().any(|it| name.eq_ignore_ascii_case(it));
            if !is_known && !is_ours {
                headers.push(Added { name: name.to_owned(), values: Vec::new(), always: true });
            }
        }
        let mut settings = self.said_of(scope, headers, origin);
        if beside != "[]" {
            settings.push(("beside", beside, origin.clone()));
        }
        settings
    }

    /// The route for those who show no password where nobody has one: nginx asks them for it.
    pub(super) fn asked_in_vain(&mut self, spot: &Spot<'_>, shut: &Shut<'_>) -> Option<Route> {
        let realm = spot.scope.find("auth_basic").filter(|_| shut.why == NO_USERS)?.word(0);
        let origin = &shut.directive.origin;
        let mut asked = Route::new(&spot.key, Answer::Text("{ status = 401 }".to_owned()), origin);
        // A file without users lets nobody in, and one that is not there is an error.
        if self.is_missing(&self.folder.join(shut.directive.word(0))) {
            asked.when = vec![NO_PASSWORD.to_owned()];
        }
        let mut headers = self.headers(&spot.scope);
        let values = vec![format!("Basic realm=\"{}\"", realm.replace('{', "{{"))];
        headers.push(Added { name: "WWW-Authenticate".to_owned(), values, always: true });
        asked.settings.extend(self.said_of(&spot.scope, headers, origin));
        Some(asked)
    }

    pub(super) fn said_of(
        &mut self,
        scope: &Scope<'_>,
        headers: Vec<Added>,
        origin: &Origin,
    ) -> Vec<Setting> {
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

    /// Fits the redirects of a route: nginx sends a page with them, by whose type some maps go.
    pub(super) fn as_page(&mut self, route: &mut Route) {
        if route.answer != Answer::Rules || route.rules.iter().all(|it| it.status.is_none()) {
            return;
        }
        for (_, value, _) in &mut route.settings {
            let maps = self.maps.iter().filter(|it| value.contains(&it.word()));
            let pages: Vec<_> = maps.filter_map(|it| Some((it.word(), it.of_page()?))).collect();
            for (word, page) in pages {
                *value = value.replace(&word, &page.word());
                if !self.maps.iter().any(|it| it.name == page.name) {
                    self.maps.push(page);
                }
            }
        }
    }

    /// Writes the rates of responses.
    pub(super) fn rate_settings(&mut self, scope: &Scope<'_>) -> Vec<Setting> {
        let mut settings = Vec::new();
        for name in ["limit_rate", "limit_rate_after"] {
            let Some(directive) = scope.find(name) else { break };
            match measure::bytes(directive.word(0)) {
                // As fast as a client takes it.
                Some(0) => break,
                Some(bytes) => {
                    let bytes = bytes.min(RATE_MAX).to_string();
                    settings.push((name, bytes, directive.origin.clone()));
                }
                None => {
                    let help = "a rate is the same for all requests of a route: write it, or a route with `when`";
                    self.tell_of(directive, help);
                    break;
                }
            }
        }
        settings
    }

    fn index(&mut self, index: &Directive) -> Vec<String> {
        let is_name = |word: &String| !word.contains(['/', '$']) && !word.is_empty();
        let names: Vec<String> = index.words.iter().filter(|word| is_name(word)).cloned().collect();
        if names.len() < elsewhere_of(index).unwrap_or(index.words.len()) {
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
        let value = self.expires_by_map(word).or_else(|| expires_of(word));
        if value.is_none() || is_modified {
            let help =
                "`expires` of a route is a time from its answer on, `epoch`, or a map of times";
            self.tell_of_change(expires, help);
        }
        value.filter(|it| !it.is_empty())
    }

    /// The word of a map that says for each of the texts of a map of nginx how long that is.
    fn expires_by_map(&mut self, word: &str) -> Option<String> {
        let is_it = |it: &&Map| word.strip_prefix('$') == Some(&it.word());
        let map = self.maps.iter().find(is_it)?;
        // No variable of nginx has a point.
        let name = format!("until.{}", map.name);
        let of_times = map.renamed(name.clone(), expires_of)?;
        let said = of_times.word();
        if !self.maps.iter().any(|it| it.name == name) {
            self.maps.push(of_times);
        }
        Some(said)
    }

    /// Those of the innermost block that has any.
    fn headers(&mut self, scope: &Scope<'_>) -> Vec<Added> {
        self.added(scope, false)
    }

    /// The same, with its types where these are carried over.
    pub(super) fn added(&mut self, scope: &Scope<'_>, has_types: bool) -> Vec<Added> {
        let mut headers: Vec<Added> = Vec::new();
        for directive in scope.all("add_header") {
            let name = directive.word(0);
            let value = directive.word(1).trim();
            let always = directive.word(2) == "always";
            let said = self.words(&with_status(value, scope), scope, false);
            let said = said.filter(|it| !is_of_expiry(name) || !it.contains('{'));
            let by_service = said_by_service(scope, value).as_deref() == Some("set-cookie");
            if by_service && name.eq_ignore_ascii_case("set-cookie") {
                // They are added to the answer anyway.
            } else if has_types && is_type(name) && said.as_ref().is_some_and(|it| is_plain(it)) {
                let values = said.into_iter().collect();
                headers.push(Added { name: name.to_owned(), values, always });
            } else if is_own_header(name) && !value.is_empty() {
                let help = "kettle writes that header itself, to fit each response";
                self.tell_of(directive, help);
            } else if is_for_quic(directive) {
                self.tell_of(directive, NO_QUIC);
            } else if value.is_empty() {
            } else if let Some(said) = said {
                let known = headers.iter_mut().find(|other| other.name.eq_ignore_ascii_case(name));
                if let Some(added) = known {
                    added.values.push(said);
                    added.always |= always;
                    continue;
                }
                let values = vec![said];
                headers.push(Added { name: name.to_owned(), values, always });
            } else {
                let help = "a header says what requests say, as far as kettle has words for it";
                self.tell_of(directive, help);
            }
        }
        headers
    }
}

/// A text of an answer's field with the word for its status, which is that of the server where one was asked.
fn with_status(text: &str, scope: &Scope<'_>) -> String {
    let is_passed = scope.own().iter().any(|it| it.name.ends_with("_pass"))
        && !scope.is_on("proxy_intercept_errors");
    let mut out = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Variable("upstream_status") if !is_passed => out.push_str("${upstream_status}"),
            Part::Variable("status" | "upstream_status") => out.push_str("${status}"),
            Part::Variable(name) => out.push_str(&format!("${{{name}}}")),
        }
    }
    out
}

/// The number of the path that answers for folders which have none of the names before it.
pub(super) fn elsewhere_of(index: &Directive) -> Option<usize> {
    let at = index.words.iter().position(|word| word.starts_with('/'))?;
    let names = index.words.get(..at)?;
    names.iter().all(|name| !name.contains(['/', '$', '{']) && !name.is_empty()).then_some(at)
}

/// Returns the treatment of symbolic links.
pub(super) fn symlinks_of(scope: &Scope<'_>) -> &'static str {
    match scope.find("disable_symlinks") {
        Some(it) if ["on", "if_not_owner"].contains(&it.word(0)) => "never",
        _ => "follow",
    }
}

/// True if a field sends clients to QUIC, which nobody speaks here.
fn is_for_quic(added: &Directive) -> bool {
    let value = added.word(1).to_ascii_lowercase();
    let names = |name: &str| added.word(0).eq_ignore_ascii_case(name);
    names("alt-svc") && (value.contains("h3") || value.contains("quic"))
        || names("alternate-protocol") && value.contains("quic")
}

fn is_of_expiry(name: &str) -> bool {
    name.eq_ignore_ascii_case("expires")
}

/// A header that is added, with its lines; without one it is taken away.
pub(super) struct Added {
    name: String,
    pub(super) values: Vec<String>,
    /// True if errors have it as well.
    pub(super) always: bool,
}

impl Added {
    pub(super) fn is_type(&self) -> bool {
        is_type(&self.name)
    }
}

fn is_type(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-type")
}

fn is_plain(text: &str) -> bool {
    !text.contains('{')
}

const NO_PASSWORD: &str =
    "{ header = \"authorization\", regex = \"(?i)^basic +[^ ]\", not = true }";
/// As kettle has it.
const RATE_MAX: u64 = 1 << 40;
/// The longest that kettle lets a response be kept: ten years, as `expires max` says.
const EXPIRES_MAX: u32 = 3650 * 24 * 3600;

/// The length from which nginx compresses by default.
const LENGTH_MIN: u64 = 20;

const NO_QUIC: &str = "nobody answers QUIC here, and clients would look for it in vain";

/// Returns the meaning of a word of `expires`; empty for none.
fn expires_of(word: &str) -> Option<String> {
    match word {
        "off" | "" => Some(String::new()),
        "epoch" => Some("epoch".to_owned()),
        "max" => Some(format!("{EXPIRES_MAX}s")),
        time if time.starts_with('-') => Some("epoch".to_owned()),
        time => {
            let seconds = measure::seconds(time.strip_prefix('+').unwrap_or(time));
            seconds.map(|it| format!("{}s", it.min(EXPIRES_MAX)))
        }
    }
}
