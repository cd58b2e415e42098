//! `proxy_pass` of a location as a route with a backend.

use kettle_config::{Origin, Template, is_own_header, is_own_request_header, quoted};

use super::route::{Route, Setting, spoken};
use super::settings::{OF_SITES, table, values};
use super::target::Kind;
use super::tls::laxer_backend;
use super::{Writer, moved};
use crate::nginx::location::{self, Location, LocationKind, Shut};
use crate::nginx::measure;
use crate::nginx::redirect::{self, Rule, RuleKind};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

/// What a `proxy_pass` says.
struct Pass<'t> {
    is_tls: bool,
    /// A host with or without a port, an `upstream`, or `unix:` and a path.
    to: &'t str,
    /// What the location's path is replaced by; empty if it stays.
    path: &'t str,
}

impl Writer<'_> {
    /// The route of a location for a prefix whose requests are passed on.
    pub(super) fn passed<'t>(
        &mut self,
        location: &Location<'t>,
        directive: &'t Directive,
    ) -> Result<Route, Shut<'t>> {
        let scope = &location.scope;
        if let Some(shut) = kept_from_passing(scope) {
            return Err(shut);
        }
        let pass = read(directive.word(0)).ok_or(Shut { directive, why: VARIABLES })?;
        let mut access = self.access(scope)?;
        let prefix = location.path.trim_end_matches('/');
        let mut rules = self.rules_below(location, prefix, None)?;
        let rewrite = lengthened(&location.path, &pass, directive)?;
        if let Some(rule) = rules.iter().find(|rule| rule.changes_query()) {
            let directive = moved::written(scope, rule).unwrap_or(directive);
            return Err(Shut { directive, why: moved::QUERY });
        }
        if rewrite.is_some() && rules.iter().any(|rule| !rule.is_redirect()) {
            return Err(Shut { directive, why: PATHS });
        }
        rules.extend(rewrite);
        // nginx asks nobody for the name without its slash.
        if let Some(folder) = without_slash(location) {
            let rule = slash_added(location, folder).ok_or(Shut { directive, why: PATHS })?;
            rules.insert(0, rule);
        }
        self.tell(location.directive.inner());
        self.tell_of_lost(scope, &["error_page"], OF_SITES);
        self.tell_of_keeping(scope);
        if access.iter().any(|(key, ..)| *key == "basic_auth") {
            self.tell_of_users(scope);
        }
        access.extend(self.rate_limit(scope));
        let backend = Some(self.http_backend(scope, &pass, &directive.origin));
        let origin = &directive.origin;
        let mut settings = self.request_settings(scope, &pass, origin);
        settings.extend(self.headers_of_backend(scope, origin));
        self.tell_of_replacing(scope);
        settings.extend(self.route_log(scope));
        Ok(Route { backend, access, rules, settings, ..Route::new(prefix, origin) })
    }

    /// Writes the backend behind all sites, once; its name.
    fn http_backend(&mut self, scope: &Scope<'_>, pass: &Pass<'_>, origin: &Origin) -> String {
        let is_it =
            |it: &Directive| it.name == "upstream" && it.word(0).eq_ignore_ascii_case(pass.to);
        let block = scope.outwards().find(|block| block.iter().any(is_it)).unwrap_or_default();
        let kind = if pass.is_tls { Kind::Https } else { Kind::Http };
        let target = self.target(scope, block, pass.to, kind);
        let name = target.name.clone();
        let sites = std::mem::take(&mut self.output.text);
        let backends = std::mem::take(&mut self.backends);
        self.output.text = backends;
        self.backend(scope, target, origin);
        self.backends = std::mem::replace(&mut self.output.text, sites);
        name
    }

    /// What a server is sent, and how long it has.
    fn request_settings(
        &mut self,
        scope: &Scope<'_>,
        pass: &Pass<'_>,
        origin: &Origin,
    ) -> Vec<Setting> {
        let mut settings: Vec<Setting> = Vec::new();
        let mut headers: Vec<(String, Vec<String>)> = Vec::new();
        let (mut host, mut place) = (None, None);
        for directive in scope.all("proxy_set_header") {
            let (name, value) = (directive.word(0), directive.word(1));
            let lower = name.to_ascii_lowercase();
            let message = format!("`{}` is not carried over", spoken(directive));
            match lower.as_str() {
                "host" => host = Some(directive),
                // Sent empty, it takes clients the change to another protocol.
                "upgrade" if value.is_empty() || !settings.is_empty() => {}
                "upgrade" => {
                    settings.push(("websocket", "true".to_owned(), directive.origin.clone()));
                }
                "connection" | "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host" => {}
                "forwarded" => {
                    let help = "kettle writes it itself: it says who asks, and for which host";
                    self.output.warn(&directive.origin, message, help);
                }
                // It reaches no backend anyway.
                _ if is_own_request_header(&lower) && value.is_empty() => {}
                _ if is_own_header(name) || is_own_request_header(&lower) => {
                    let help = "kettle writes that header itself, to fit each request";
                    self.output.warn(&directive.origin, message, help);
                }
                _ => {
                    let said = translated(value.trim(), scope);
                    if said.is_none() {
                        let help = "servers get none of that name, so that no client says it in nginx's place";
                        self.output.lose(&directive.origin, message, help);
                    }
                    add_line(&mut headers, name, &said.unwrap_or_default());
                    place = place.or(Some(&directive.origin));
                }
            }
        }
        settings.extend(self.backend_host(host, pass, origin));
        if !headers.is_empty() {
            let entries = headers.iter().map(|(name, all)| (name.as_str(), values(all)));
            let place = place.unwrap_or(origin).clone();
            settings.push(("request_headers", table(entries), place));
        }
        let time = scope.find("proxy_read_timeout");
        let seconds = time.map_or(Some(60), |it| measure::seconds(it.word(0)));
        let seconds = seconds.unwrap_or(60).clamp(1, 24 * 3600);
        settings.push(("timeout", quoted(&format!("{seconds}s")), origin.clone()));
        let size = scope.find("client_max_body_size");
        let bytes = size.map_or(Some(1024 * 1024), |it| measure::bytes(it.word(0)));
        let bytes = match bytes.unwrap_or(1024 * 1024) {
            0 => BODY_BYTES_MAX,
            bytes => bytes.min(BODY_BYTES_MAX),
        };
        settings.push(("request_body", bytes.to_string(), origin.clone()));
        // As nginx does, which takes a whole body before it asks, and leaves interim responses out.
        let buffering = scope.find("proxy_request_buffering").filter(|it| it.word(0) == "off");
        let place = buffering.map_or(origin, |it| &it.origin);
        let buffering = if buffering.is_some() { "off" } else { "all" };
        settings.push(("request_buffering", quoted(buffering), place.clone()));
        settings.push(("early_hints", quoted("off"), origin.clone()));
        settings
    }

    /// nginx asks servers for the name in `proxy_pass` where nothing else is said; kettle for the client's.
    fn backend_host(
        &mut self,
        said: Option<&Directive>,
        pass: &Pass<'_>,
        origin: &Origin,
    ) -> Option<Setting> {
        let value = said.map_or("$proxy_host", |directive| directive.word(1));
        let origin = said.map_or(origin, |directive| &directive.origin);
        let value = match value {
            "$http_host" => return None,
            "$host" => "{host}",
            "$host:$server_port" => "{host}:{port}",
            "$proxy_host" if pass.to.starts_with("unix:") => "localhost",
            "$proxy_host" => pass.to,
            value => value,
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
        if value.starts_with('{') || value.bytes().all(is_name) && !value.is_empty() {
            return Some(("backend_host", quoted(value), origin.clone()));
        }
        let message = format!("servers are not asked for the host `{value}`");
        let help =
            "they are asked for the one that the client asks for; `backend_host` names another";
        self.output.warn(origin, message, help);
        None
    }
}

/// Adds a line to those of its name. An empty one is none, and without any the client's are taken away.
fn add_line(headers: &mut Vec<(String, Vec<String>)>, name: &str, value: &str) {
    let value = (!value.is_empty()).then(|| value.to_owned());
    match headers.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name)) {
        None => headers.push((name.to_owned(), value.into_iter().collect())),
        Some((_, all)) => all.extend(value),
    }
}

/// A value with kettle's words for nginx's variables; nothing where one has no word.
fn translated(value: &str, scope: &Scope<'_>) -> Option<String> {
    let plain = |text: &str| text.replace('{', "{{");
    let mut parts = value.split('$');
    let mut out = plain(parts.next()?);
    for part in parts {
        let (name, behind) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some(named) => named,
            None => {
                let ends = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
                part.split_at(part.find(ends).unwrap_or(part.len()))
            }
        };
        match WORDS.iter().find(|(variable, _)| *variable == name) {
            Some((_, word)) => out.push_str(word),
            None if name == "server_port" => out.push_str(&sole_port(scope)?.to_string()),
            None => return None,
        }
        out.push_str(&plain(behind));
    }
    Some(out)
}

/// The port of a server that speaks TLS on one alone.
fn sole_port(scope: &Scope<'_>) -> Option<u16> {
    let listens = |it: &&Directive| it.name == "listen" && it.words.iter().any(|it| it == "ssl");
    let port = |it: &Directive| it.word(0).rsplit(':').next()?.parse::<u16>().ok();
    let mut ports = scope.outwards().flatten().filter(listens).map(port);
    let first = ports.next()??;
    ports.all(|other| other == Some(first)).then_some(first)
}

fn read(text: &str) -> Option<Pass<'_>> {
    let (rest, is_tls) = match text.strip_prefix("https://") {
        Some(rest) => (rest, true),
        None => (text.strip_prefix("http://")?, false),
    };
    let (to, path) = match rest.strip_prefix("unix:") {
        Some(socket) => {
            let socket = socket.split_once(':').map_or(socket.len(), |(socket, _)| socket.len());
            let (to, path) = rest.split_at_checked("unix:".len() + socket)?;
            (to, path.strip_prefix(':').unwrap_or(path))
        }
        None => rest.split_at_checked(rest.find('/').unwrap_or(rest.len()))?,
    };
    let is_plain = !text.contains(['$', '{', '}']) && !to.is_empty();
    is_plain.then_some(Pass { is_tls, to, path })
}

/// What becomes of the path: it stays, or gets longer at its beginning.
fn lengthened<'t>(
    from: &str,
    pass: &Pass<'_>,
    directive: &'t Directive,
) -> Result<Option<Rule>, Shut<'t>> {
    if pass.path.is_empty() || pass.path == from {
        return Ok(None);
    }
    let is_longer = pass.path.starts_with(from) && from.ends_with('/') && pass.path.ends_with('/');
    if !is_longer || pass.path.contains(['?', '#', '%']) || from.contains(['*', '?']) {
        return Err(Shut { directive, why: PATHS });
    }
    let origin = directive.origin.clone();
    let (from, to) = (Some(format!("{from}**")), format!("{}{{1}}", pass.path));
    Ok(Some(Rule {
        from,
        to,
        kind: RuleKind::Rewrite { keeps_query: true },
        origin,
        is_wider: false,
        spared: Vec::new(),
    }))
}

/// The path of a location for what lies below a folder, without its slash.
fn without_slash<'l>(location: &'l Location<'_>) -> Option<&'l str> {
    let folder = location.path.strip_suffix('/').filter(|it| !it.is_empty())?;
    (location.kind == LocationKind::Prefix).then_some(folder)
}

/// What nginx answers there to who asks for the folder itself.
fn slash_added(location: &Location<'_>, folder: &str) -> Option<Rule> {
    redirect::exactly(folder)?;
    let (from, to) = (Some(folder.to_owned()), location.path.clone());
    let kind = RuleKind::Redirect { status: 301, keeps_query: true };
    let origin = location.directive.origin.clone();
    Some(Rule { from, to, kind, origin, is_wider: false, spared: Vec::new() })
        .filter(|rule| Template::is_destination(&rule.to))
}

/// What decides that no request of a place is passed on, but for networks and passwords.
pub(super) fn kept_from_passing<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let mut own = scope.own().iter();
    let is_tls = own.any(|it| it.name == "proxy_pass" && it.word(0).starts_with("https://"));
    location::shut_but_for_passing(scope)
        .or_else(|| by_method(scope))
        .or_else(|| by_file(scope))
        .or_else(|| altered(scope))
        .or_else(|| hosted(scope))
        .or_else(|| laxer_backend(scope).filter(|_| is_tls))
}

/// What servers are sent, or clients get of their answers, where nginx takes something out of it.
fn altered<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let is_off = |it: &Directive| it.word(0) == "off";
    let (taken_out, switched_off): (Vec<_>, Vec<_>) =
        (scope_of(scope, &TAKEN_OUT), scope_of(scope, &SWITCHED_OFF));
    let taken_out = taken_out.into_iter().find(|it| !is_off(it));
    let directive = taken_out.or(switched_off.into_iter().find(|it| is_off(it)))?;
    Some(Shut { directive, why: ALTERED })
}

/// The host that servers are asked for, where it is neither the client's nor written.
fn hosted<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let is_host = |it: &&Directive| it.word(0).eq_ignore_ascii_case("host");
    let directive = scope.all("proxy_set_header").into_iter().rfind(is_host)?;
    let value = directive.word(1);
    // With another port it is the client's all the same.
    let is_client = HOSTS.iter().any(|it| {
        value.strip_prefix(it).is_some_and(|port| port.is_empty() || port.starts_with(':'))
    });
    let is_known = is_client || value == "$proxy_host" || !value.contains('$');
    (!is_known).then_some(Shut { directive, why: OTHER_HOST })
}

fn scope_of<'t>(scope: &Scope<'t>, names: &[&str]) -> Vec<&'t Directive> {
    names.iter().filter_map(|name| scope.find(name)).collect()
}

/// Where files are tried first, backends are asked for those that are there, and for others another place is.
fn by_file<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let directive = scope.own().iter().find(|it| it.name == "try_files")?;
    Some(Shut { directive, why: THERE })
}

/// Backends are asked with all methods, and for what is no file: conditions that leave GET of a file alone hold for others.
fn by_method<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let is_about = |it: &&Directive| match it.name.as_str() {
        "limit_except" => true,
        "if" => location::turns_away(it),
        _ => false,
    };
    let directive = scope.outwards().flatten().find(is_about)?;
    Some(Shut { directive, why: THERE })
}

/// nginx's variables that kettle has a word for.
const WORDS: [(&str, &str); 5] = [
    ("host", "{host}"),
    ("remote_addr", "{client_ip}"),
    ("remote_port", "{client_port}"),
    ("scheme", "{scheme}"),
    ("ssl_client_s_dn", "{client_subject}"),
];
/// Directives that take something out of requests or answers, or put something in its place.
const TAKEN_OUT: [&str; 7] = [
    "more_clear_input_headers",
    "more_set_input_headers",
    "proxy_cookie_domain",
    "proxy_cookie_flags",
    "proxy_cookie_path",
    "proxy_method",
    "proxy_set_body",
];
const SWITCHED_OFF: [&str; 2] = ["proxy_pass_request_body", "proxy_pass_request_headers"];
/// The host that the client asks for.
const HOSTS: [&str; 4] = ["$http_host", "${http_host}", "$host", "${host}"];
const OTHER_HOST: &str = "a variable says which host servers are asked for, and the client would choose it: write the host";
const ALTERED: &str =
    "what it takes away would go through: requests and answers are passed on as they come";
const THERE: &str = "methods, and what there is, are the backend's matter";
const VARIABLES: &str = "`backend` of a route has a name, and no variables";
const PATHS: &str =
    "a backend is asked for the path that the client asks for, or for one below the same prefix";
/// As kettle has it.
const BODY_BYTES_MAX: u64 = 1 << 40;
