//! `proxy_pass` of a location as a route with a backend.

use kettle_config::{Expression, Origin, Template, is_own_header, is_own_request_header, quoted};

use super::Writer;
use super::answer::{Known, rewritten_to};
use super::place::Spot;
use super::route::{Answer, Place, Route, Rule, Setting};
use super::target::Kind;
use super::tls::laxer_backend;
use crate::nginx::location::Shut;
use crate::nginx::measure;
use crate::nginx::scope::{Scope, WHOLE_PATH, of_backends};
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, field, parts, with_said};
use crate::offer::{table, values};

pub(super) struct Pass<'t> {
    pub(super) is_tls: bool,
    /// A host with or without a port, an `upstream`, or `unix:` and a path.
    pub(super) to: &'t str,
    /// The text by which the location's path is replaced; empty if it stays.
    pub(super) path: &'t str,
}

impl Writer<'_> {
    /// Gives a route a backend, to which a `proxy_pass` leads.
    pub(super) fn pass<'t>(
        &mut self,
        scope: &Scope<'t>,
        directive: &'t Directive,
        mut route: Route,
        spot: &Spot<'t>,
    ) -> Result<Route, Shut<'t>> {
        let is_tls = directive.word(0).starts_with("https://");
        let shut = by_file(scope).or_else(|| altered(scope)).or_else(|| hosted(scope));
        if let Some(shut) = shut.or_else(|| laxer_backend(scope).filter(|_| is_tls)) {
            return Err(shut);
        }
        let target = self.pass_target(directive).ok_or(Shut { directive, why: VARIABLES })?;
        let host = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
        if host.is_some_and(|it| {
            it.is_empty() || it.starts_with('/') || it.starts_with("$request_uri")
        }) {
            let answer = Answer::Text("{ status = 500 }".to_owned());
            return Ok(Route { answer, ..route });
        }
        let pass = read(&target).ok_or(Shut { directive, why: VARIABLES })?;
        let is_moved = route.rules.iter().any(|rule| rule.status.is_none());
        let whole = whole_path(&pass, directive, &route, spot)?;
        let path = match whole {
            Some(_) => None,
            None => replaced(&pass, directive, &route, spot)?,
        };
        if (path.is_some() || whole.is_some()) && is_moved {
            return Err(Shut { directive, why: PATHS });
        }
        let kind = if pass.is_tls { Kind::Https } else { Kind::Http };
        route.answer = Answer::Backend(self.backend_of(scope, pass.to, kind, &directive.origin));
        route.origin = directive.origin.clone();
        let origin = &directive.origin;
        route.settings = Vec::new();
        let copied = self.copied(scope, &mut route);
        let keeps_path = path.is_none() && whole.is_none();
        route.rules.extend(whole);
        if let Some((strips, added)) = path {
            let strips = strips.then(|| ("strip_prefix", "true".to_owned(), origin.clone()));
            route.settings.extend(strips);
            route.settings.extend(added.map(|it| ("add_prefix", quoted(&it), origin.clone())));
        }
        if !is_moved && keeps_path {
            route.settings.push(("encoded_slashes", "true".to_owned(), origin.clone()));
        }
        route.settings.extend(self.changed(scope, &pass, spot)?);
        route.settings.extend(self.replaced_parts(scope, is_moved)?);
        route.settings.extend(self.request_settings(scope, &pass, origin, (is_moved, &copied)));
        route.settings.extend(accel_redirect(scope));
        route.settings.extend(self.headers_of_backend(scope, &directive.origin));
        route.settings.extend(self.rate_settings(scope));
        route.settings.extend(self.compression(scope));
        route.settings.extend(self.route_log(scope));
        Ok(route)
    }

    /// Returns the target of a `proxy_pass`, with the values of `set` in it.
    fn pass_target(&self, directive: &Directive) -> Option<String> {
        let written = directive.word(0);
        let is_said =
            |part: &Part<'_>| matches!(part, Part::Variable(name) if self.said.contains_key(*name));
        if !parts(written).iter().any(is_said) {
            return Some(written.to_owned());
        }
        let mut target = with_said(written, &self.said)?.replace("${request_uri}", "$request_uri");
        // nginx asks for `/` where the client's query stands right behind the server.
        if let Some((server, "${args}" | "${query_string}")) = target.split_once('?')
            && server.matches('/').count() == 2
        {
            target = format!("{server}/?$args");
        }
        let has_path = target.split("://").nth(1).is_some_and(|it| it.contains('/'));
        if has_path && !target.ends_with("$request_uri") {
            target.push_str(WHOLE_PATH);
        }
        Some(target)
    }

    /// Writes the backend behind all sites, once; its name.
    pub(super) fn backend_of(
        &mut self,
        scope: &Scope<'_>,
        to: &str,
        kind: Kind,
        origin: &Origin,
    ) -> String {
        let is_it = |it: &Directive| it.name == "upstream" && it.word(0).eq_ignore_ascii_case(to);
        let block = scope.settings().find(|block| block.iter().any(is_it)).unwrap_or_default();
        let target = self.target(scope, block, to, kind);
        let name = target.name.clone();
        let sites = std::mem::take(&mut self.output.text);
        let backends = std::mem::take(&mut self.backends);
        self.output.text = backends;
        self.backend(scope, target, origin);
        self.backends = std::mem::replace(&mut self.output.text, sites);
        name
    }

    /// Returns the parts that servers get in place of the client's method, headers and body.
    fn replaced_parts<'t>(
        &self,
        scope: &Scope<'t>,
        is_moved: bool,
    ) -> Result<Vec<Setting>, Shut<'t>> {
        let mut settings: Vec<Setting> = Vec::new();
        for (name, setting) in PASSED {
            if let Some(directive) = scope.find(name).filter(|it| it.word(0) == "off") {
                settings.push((setting, "false".to_owned(), directive.origin.clone()));
            }
        }
        if let Some(directive) =
            scope.find("proxy_method").filter(|it| it.word(0) != "$request_method")
        {
            let method = directive.word(0).to_ascii_uppercase();
            if !METHODS.contains(&&*method) {
                return Err(Shut { directive, why: METHOD });
            }
            settings.push(("backend_method", quoted(&method), directive.origin.clone()));
        }
        if let Some(directive) = scope.find("proxy_set_body") {
            let said = self.words(directive.word(0), scope, is_moved);
            let said = said.ok_or(Shut { directive, why: BODY })?;
            settings.push(("backend_body", quoted(&said), directive.origin.clone()));
        }
        Ok(settings)
    }

    /// Writes the settings of a request to a server.
    fn request_settings(
        &mut self,
        scope: &Scope<'_>,
        pass: &Pass<'_>,
        origin: &Origin,
        (is_moved, copied): (bool, &[String]),
    ) -> Vec<Setting> {
        let mut settings: Vec<Setting> = Vec::new();
        let mut headers: Vec<(String, Vec<String>)> = Vec::new();
        let mut host = None;
        let mut place = None;
        for directive in scope.all("proxy_set_header") {
            let name = directive.word(0);
            let value = directive.word(1);
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "host" => host = Some(directive),
                // Sent empty, it takes clients the change to another protocol.
                "upgrade" if value.is_empty() || !settings.is_empty() => {}
                "upgrade" => {
                    settings.push(("websocket", "true".to_owned(), directive.origin.clone()));
                }
                "connection" => {}
                _ if copied.contains(&lower) => {}
                _ if is_usual(&lower, value) => {}
                "forwarded" => {
                    let help = "kettle writes it itself: it says who asks, and for which host";
                    self.tell_of(directive, help);
                }
                // It reaches no backend anyway.
                _ if is_own_request_header(&lower) && value.is_empty() => {}
                _ if is_own_header(name) || is_own_request_header(&lower) => {
                    let help = "kettle writes that header itself, to fit each request";
                    self.tell_of(directive, help);
                }
                _ => {
                    let said = self.words(value.trim(), scope, is_moved);
                    if said.is_none() {
                        let help = "servers get none of that name, so that no client says it in nginx's place";
                        self.tell_of_loss(directive, help);
                    }
                    add_line(&mut headers, name, &said.unwrap_or_default());
                    place = place.or(Some(&directive.origin));
                }
            }
        }
        settings.extend(self.backend_host(host, pass, origin));
        // kettle would give requests a number.
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(REQUEST_ID)) {
            let passes =
                scope.find("proxy_pass_request_headers").is_none_or(|it| it.word(0) != "off");
            let own = field("$http_x_request_id").filter(|_| passes).unwrap_or_default();
            add_line(&mut headers, REQUEST_ID, &own);
        }
        if !headers.is_empty() {
            let entries = headers.iter().map(|(name, all)| (name.as_str(), values(all)));
            let place = place.unwrap_or(origin).clone();
            settings.push(("request_headers", table(entries), place));
        }
        settings.extend(bounds(scope, "proxy", origin));
        // As nginx does, which takes a whole body before it asks, and leaves interim responses out.
        let is_off = |name| scope.find(name).is_some_and(|it| it.word(0) == "off");
        let buffering = scope.find("proxy_request_buffering").filter(|it| it.word(0) == "off");
        let place = buffering.map_or(origin, |it| &it.origin);
        let buffering = if buffering.is_some() { "off" } else { "all" };
        settings.push(("request_buffering", quoted(buffering), place.clone()));
        // A server that expects one client at a time is one that counts on it.
        if !is_off("proxy_buffering") {
            settings.push(("response_buffering", "true".to_owned(), origin.clone()));
        }
        settings.extend(self.retry_on(scope, "proxy_next_upstream", pass.to, origin));
        settings.push(("early_hints", quoted("off"), origin.clone()));
        settings
    }

    /// nginx asks servers for the name in `proxy_pass` where nothing else is said; kettle for the client's.
    pub(super) fn backend_host(
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

/// True if kettle says the same by itself.
pub(super) fn is_usual(name: &str, value: &str) -> bool {
    let usual: &[&str] = match name {
        "x-forwarded-for" => &["$remote_addr"],
        "x-forwarded-proto" => &["$scheme"],
        "x-forwarded-host" => &["$http_host", "$host"],
        _ => &[],
    };
    usual.contains(&value)
}

/// Adds a line to those of its name. An empty one is none, and without any the client's are taken away.
pub(super) fn add_line(headers: &mut Vec<(String, Vec<String>)>, name: &str, value: &str) {
    let value = (!value.is_empty()).then(|| value.to_owned());
    match headers.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name)) {
        None => headers.push((name.to_owned(), value.into_iter().collect())),
        Some((_, all)) => all.extend(value),
    }
}

pub(super) fn read(text: &str) -> Option<Pass<'_>> {
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
        None => {
            let end = rest.find('/').or_else(|| rest.find("$request_uri"));
            rest.split_at_checked(end.unwrap_or(rest.len()))?
        }
    };
    let has_braces = text.trim_end_matches(WHOLE_PATH).contains(['{', '}']);
    let is_plain = !has_braces && !to.contains('$') && !to.is_empty();
    is_plain.then_some(Pass { is_tls, to, path })
}

/// The rule for a path in which variables stand: it takes the place of all that was asked for, the query as well.
fn whole_path<'t>(
    pass: &Pass<'_>,
    directive: &'t Directive,
    route: &Route,
    spot: &Spot<'_>,
) -> Result<Option<Rule>, Shut<'t>> {
    let path = pass.path.strip_suffix(WHOLE_PATH);
    let is_plain = path.is_none() && !pass.path.contains('$');
    let path = path.unwrap_or(pass.path);
    if is_plain || route.replaced.is_some() || path.ends_with("$request_uri") {
        return Ok(None);
    }
    let said = Said::new();
    let expression = spot.key.regex.as_ref();
    let expression = expression.and_then(|it| Expression::new(it).ok());
    let known =
        Known { said: &said, scheme: None, expression: expression.as_ref(), is_path: false };
    let to = rewritten_to(path, true, &known).map_err(|_| Shut { directive, why: PATHS })?;
    let origin = directive.origin.clone();
    let rule = Rule { regex: None, to, status: None, keeps_query: true, stays: true, origin };
    Ok(Some(rule))
}

/// Returns the text for servers in place of the path: whether the text of the place is taken off, and what is put before;
/// nothing where the path stays.
fn replaced<'t>(
    pass: &Pass<'_>,
    directive: &'t Directive,
    route: &Route,
    spot: &Spot<'_>,
) -> Result<Option<(bool, Option<String>)>, Shut<'t>> {
    let shut = Shut { directive, why: PATHS };
    // The path of the directive does not count behind a `rewrite`.
    let by = route.replaced.as_deref().unwrap_or(pass.path);
    if by.is_empty() || by == spot.path && route.replaced.is_none() && spot.key.regex.is_none() {
        return Ok(None);
    }
    if let Some(added) = by.strip_suffix("$request_uri").filter(|_| route.replaced.is_none()) {
        let is_plain = Template::is_rewritten_path(added) && !added.ends_with('/');
        return match added.is_empty() || is_plain && !added.contains(['$', '%', '?']) {
            true => Ok((!added.is_empty()).then(|| (false, Some(added.to_owned())))),
            false => Err(shut),
        };
    }
    if by.contains(['$', '%', '{', '}', '?']) || !Template::is_rewritten_path(by) {
        return Err(shut);
    }
    let added = Some(by.to_owned()).filter(|it| it != "/");
    match &route.key.place {
        _ if route.key.regex.is_some() => Err(shut),
        Place::Text(_) | Place::Exact(_) => Ok(Some((true, added))),
        // Whole segments follow.
        Place::Prefix(prefix) if prefix.is_empty() && by.ends_with('/') => {
            Ok(added.map(|added| (false, Some(added))))
        }
        Place::Prefix(_) | Place::Any => Err(shut),
    }
}

/// The time a server has that is asked by this protocol, and how much it is sent.
pub(super) fn bounds(scope: &Scope<'_>, protocol: &str, origin: &Origin) -> [Setting; 2] {
    let time = scope.find(&format!("{protocol}_read_timeout"));
    let seconds = time.map_or(Some(60), |it| measure::seconds(it.word(0)));
    let seconds = seconds.unwrap_or(60).clamp(1, 24 * 3600);
    let size = scope.find("client_max_body_size");
    let bytes = size.map_or(Some(1024 * 1024), |it| measure::bytes(it.word(0)));
    let bytes = match bytes.unwrap_or(1024 * 1024) {
        0 => BODY_BYTES_MAX,
        bytes => bytes.min(BODY_BYTES_MAX),
    };
    [
        ("timeout", quoted(&format!("{seconds}s")), origin.clone()),
        ("request_body", bytes.to_string(), origin.clone()),
    ]
}

/// Headers of clients that nginx takes out of requests, or puts in their place.
fn altered<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let directive = INPUT_HEADERS.iter().find_map(|it| scope.find(it))?;
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

/// Returns the places to which servers may lead by `X-Accel-Redirect`: in nginx all, which matters if one of them is for that.
pub(super) fn accel_redirect(scope: &Scope<'_>) -> Option<Setting> {
    fn internal(block: &[Directive]) -> Option<&Directive> {
        block
            .iter()
            .find_map(|it| if it.name == "internal" { Some(it) } else { internal(it.inner()) })
    }

    let ignored = of_backends("ignore_headers").map(|it| scope.find(&it));
    let is_named =
        |it: &&Directive| it.words.iter().any(|word| word.eq_ignore_ascii_case("x-accel-redirect"));
    let (word, directive) = match ignored.into_iter().flatten().find(is_named) {
        Some(directive) => ("ignore", directive),
        None => ("any", internal(scope.server().own())?),
    };
    Some(("accel_redirect", quoted(word), directive.origin.clone()))
}

/// If files are tried first, backends are asked for those that are there, and for others another place is.
fn by_file<'t>(scope: &Scope<'t>) -> Option<Shut<'t>> {
    let directive = scope.own().iter().find(|it| it.name == "try_files")?;
    Some(Shut { directive, why: THERE })
}

/// Directives that take headers out of requests, or put others in their place.
pub(super) const INPUT_HEADERS: [&str; 2] = ["more_clear_input_headers", "more_set_input_headers"];
const REQUEST_ID: &str = "X-Request-Id";
/// The parts that nginx passes on unless it is told not to, and the settings for that.
const PASSED: [(&str, &str); 2] =
    [("proxy_pass_request_headers", "pass_headers"), ("proxy_pass_request_body", "pass_body")];
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const METHOD: &str =
    "servers are asked by GET, POST, PUT, PATCH, DELETE or OPTIONS, or by the client's method";
const BODY: &str = "no word of kettle says what stands in that body";
/// The host that the client asks for.
const HOSTS: [&str; 4] = ["$http_host", "${http_host}", "$host", "${host}"];
const OTHER_HOST: &str = "a variable says which host servers are asked for, and the client would choose it: write the host";
const ALTERED: &str =
    "what it takes away would go through: requests and answers are passed on as they come";
const THERE: &str = "methods, and what there is, are the backend's matter";
const VARIABLES: &str = "`backend` of a route has a name, and no variables";
const PATHS: &str =
    "a backend is asked for the path that the client asks for, or with another beginning";
/// As kettle has it.
const BODY_BYTES_MAX: u64 = 1 << 40;
