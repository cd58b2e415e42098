//! Advice on a configuration that works as it is written, and should be looked at all the same.

mod acme;
mod guards;

use std::collections::{HashMap, HashSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::check::named_backends;
use crate::diagnostic::Diagnostic;
use crate::foreign::spelling::{about_variable, variable};
use crate::model::{
    BackendChoices, Config, FieldTemplate, Listener, ListenerKind, PathPattern, Place, Reach, Site,
};

/// Looks over a valid configuration. A setting made of another program's follows that program's way, and gets no advice.
pub fn advice(config: &Config) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    if config.is_made() {
        return diagnostics;
    }
    about_variables(config, &mut diagnostics);
    let seen = Seen::of(config);
    for listener in 0..config.listeners.len() {
        for setting in ["accept_proxy", "trusted_proxies"] {
            diagnostics.extend(about_strangers(config, listener, setting));
        }
        diagnostics.extend(about_http2(config, &seen, listener));
        diagnostics.extend(about_sendfile(config, &seen, listener));
        diagnostics.extend(about_kernel(config, listener));
        diagnostics.extend(about_redirect_port(config, &seen, listener));
        diagnostics.extend(about_plain(config, &seen, listener));
    }
    for site in 0..config.sites.len() {
        diagnostics.extend(about_reach(config, &seen, site));
        about_patterns(config, site, &mut diagnostics);
        guards::about_guards(config, site, &mut diagnostics);
        if seen.behind_proxies.contains(&site) {
            diagnostics.extend(guards::about_marks(config, site));
        }
        about_certificates(config, site, &mut diagnostics);
    }
    for backend in 0..config.backends.len() {
        diagnostics.extend(about_use(config, &seen, backend));
        diagnostics.extend(about_pins(config, backend));
    }
    acme::about_acme(config, &mut diagnostics);
    diagnostics
}

/// Facts asked of all sites, listeners or backends for each listener or backend: looked for once.
struct Seen<'c> {
    reach: Reach<'c>,
    /// Those that a listener, a site or a route names.
    named: HashSet<&'c str>,
    /// Those that routes name, in the order of the routes.
    asked: HashMap<&'c str, usize>,
    /// The ports where TLS is spoken: the first port, and all.
    tls_port: Option<u16>,
    tls_ports: HashSet<u16>,
    /// For each listener.
    asks_for_sendfile: Vec<bool>,
    /// The sites that proxies ask for their clients.
    behind_proxies: HashSet<usize>,
    /// The sites that listeners serve, where there is a listener that serves.
    served: Option<HashSet<usize>>,
}

impl<'c> Seen<'c> {
    fn of(config: &'c Config) -> Self {
        let routes = config.sites.iter().flat_map(|site| &site.routes);
        let mut asked = HashMap::new();
        let choices = BackendChoices::of(config);
        for (order, backend) in routes.flat_map(|route| choices.backends(route)).enumerate() {
            asked.entry(backend).or_insert(order);
        }
        let spoken = config.listeners.iter().filter(|it| speaks_tls(&it.kind));
        let mut ports = spoken.filter_map(|it| it.address.port());
        let tls_port = ports.next();
        let reach = Reach::of(config);
        let served = served(config, &reach);
        let proxied = config.listeners.iter().filter(|it| !it.trusted_proxies.is_empty());
        let behind_proxies = proxied.flat_map(|it| reach.served(it)).map(|(site, _)| site);
        Self {
            behind_proxies: behind_proxies.collect(),
            reach,
            served,
            named: named_backends(config)
                .map(|name| name.value.as_str())
                .chain(choices.chosen())
                .collect(),
            asked,
            tls_port,
            tls_ports: ports.chain(tls_port).collect(),
            asks_for_sendfile: config.asks_for_sendfile(),
        }
    }
}

/// Those that some listener serves; `None` where none serves any.
fn served(config: &Config, reach: &Reach<'_>) -> Option<HashSet<usize>> {
    // Those that name no sites all serve the same.
    let all = |it: &&Listener| it.https().is_some_and(|https| https.sites.is_empty());
    let serving = config.listeners.iter().filter(|it| it.serves());
    let serve_some = serving.clone().filter(|it| !all(it));
    let serving: Vec<_> = serving.clone().find(all).into_iter().chain(serve_some).collect();
    let served = serving.iter().flat_map(|listener| reach.served(listener));
    (!serving.is_empty()).then(|| served.map(|(site, _)| site).collect())
}

/// Texts that name a variable, which stands for itself.
fn about_variables(config: &Config, diagnostics: &mut Vec<Diagnostic>) {
    let text = config.source.text();
    if !text.contains('$') {
        return;
    }
    let (table, _) = DeTable::parse_recoverable(text);
    let mut values: Vec<&Spanned<DeValue<'_>>> = table.get_ref().values().collect();
    let mut found: Vec<(usize, &str)> = Vec::new();
    while let Some(value) = values.pop() {
        match value.get_ref() {
            DeValue::Table(inner) => values.extend(inner.values()),
            DeValue::Array(inner) => values.extend(inner.iter()),
            DeValue::String(text) => {
                found.extend(variable(text).map(|name| (value.span().start, name)));
            }
            _ => {}
        }
    }
    found.sort_unstable();
    for (start, name) in found {
        let message = format!("`{name}` stands for itself here");
        let help = Some(about_variable(name));
        let at = config.source.position(start);
        diagnostics.push(config.diagnostic(at, "", message, help));
    }
}

/// The client that a header names is believed.
fn about_strangers(config: &Config, index: usize, setting: &str) -> Option<Diagnostic> {
    let listener = config.listeners.get(index)?;
    let believed = match setting {
        "accept_proxy" => &listener.accept_proxy,
        _ => &listener.trusted_proxies,
    };
    let is_everybody = believed.networks.iter().any(|network| network.prefix_bits() == 0);
    let is_for_others = listener.address.socket().is_some_and(|it| !it.ip().is_loopback());
    if !is_everybody || !is_for_others {
        return None;
    }
    let message = "whoever can connect may say here which address it comes from";
    let help = "write the networks of your load balancers";
    Some(at(config, &format!("listener.{index}.{setting}"), message, help))
}

/// Tunnels carry what was agreed on as it is, and routes speak HTTP/1.1.
fn about_http2(config: &Config, seen: &Seen<'_>, index: usize) -> Option<Diagnostic> {
    let listener = config.listeners.get(index)?;
    let spoken = &listener.tls()?.alpn;
    if !spoken.iter().any(|protocol| protocol == HTTP2) {
        return None;
    }
    let reached = seen.reach.sites(listener).map(|(_, site)| Some(site));
    let carried = reached.chain([None]).filter_map(|site| {
        let routes = listener.alpn_routes(site);
        let is_own = routes.by_alpn.iter().any(|(protocol, _)| *protocol == HTTP2);
        routes.others.filter(|_| !is_own)
    });
    let (_, both) = carried.filter_map(|name| Some((*seen.asked.get(name)?, name))).min()?;
    let message = format!("\"{both}\" gets HTTP/2 from here, and HTTP/1.1 from a route");
    let help = "leave it if its servers take both; else remove \"h2\", or give the route another [[backend]]";
    Some(at(config, &format!("listener.{index}.alpn"), &message, help))
}

/// Kernel TLS is for TCP.
fn about_kernel(config: &Config, index: usize) -> Option<Diagnostic> {
    let listener = config.listeners.get(index)?;
    let path = listener.path().filter(|path| path.starts_with("kernel-"))?;
    // The bytes that a `tcp` listener encrypts go to its servers.
    let carries = matches!(listener.kind, ListenerKind::Tcp(_));
    if listener.address.unix().is_none() || carries {
        return None;
    }
    let message =
        format!("\"{path}\" is for TCP: what goes over a Unix socket is encrypted in user space");
    let help = "remove `path`, or write \"user\"";
    Some(at(config, &format!("listener.{index}.path"), &message, help))
}

/// HTTP/2 is written to the kernel in frames.
fn about_sendfile(config: &Config, seen: &Seen<'_>, index: usize) -> Option<Diagnostic> {
    let https = config.listeners.get(index)?.https()?;
    if !*seen.asks_for_sendfile.get(index)? || https.http2 != Some(true) {
        return None;
    }
    let message = "a \"path\" asks for sendfile, by which nothing goes over HTTP/2";
    let help = "leave it if sendfile is for clients of HTTP/1.1 only; else write false";
    Some(at(config, &format!("listener.{index}.http2"), message, help))
}

/// Clients are sent to 443 unless the listener says otherwise, wherever HTTPS is spoken here.
fn about_redirect_port(config: &Config, seen: &Seen<'_>, index: usize) -> Option<Diagnostic> {
    let redirect_port = match &config.listeners.get(index)?.kind {
        ListenerKind::Redirect(redirect) => redirect.redirect_port,
        ListenerKind::Http(http) => http.redirect_port,
        _ => return None,
    };
    let setting = format!("listener.{index}.redirect_port");
    if config.position_of(&setting).is_written() {
        return None;
    }
    let port = seen.tls_port.filter(|_| !seen.tls_ports.contains(&redirect_port))?;
    let sent = redirect_port;
    let message = format!("clients are sent to port {sent}, and HTTPS is spoken on port {port}");
    let help = format!("write redirect_port = {port}, or {sent} if that is where clients find it");
    Some(at(config, &format!("listener.{index}.kind"), &message, &help))
}

/// Without TLS all that goes over a network can be read and changed there.
fn about_plain(config: &Config, seen: &Seen<'_>, index: usize) -> Option<Diagnostic> {
    let listener = config.listeners.get(index)?;
    listener.http()?;
    // The mode of a Unix socket says whom it lets in.
    if listener.address.socket().is_none_or(|address| address.ip().is_loopback()) {
        return None;
    }
    let served = seen.reach.served(listener);
    let has_secret = |site: &Site| {
        let mut routes = site.routes.iter();
        routes.any(|route| route.basic_auth.is_some() || route.signed_urls.is_some())
    };
    let secret = served.iter().find(|(_, site)| has_secret(site));
    let (message, help) = match secret.and_then(|(_, site)| site.names.first()) {
        Some(name) => (
            format!("passwords and signed URLs of \"{name}\" go over this address without TLS"),
            "serve the site by https only, or listen on an address that only this machine reaches",
        ),
        None => (
            "other machines reach this address, and what goes over it can be read and changed on the way".to_owned(),
            "leave it if that is meant; else listen on 127.0.0.1, or write kind = \"https\"",
        ),
    };
    Some(at(config, &format!("listener.{index}.kind"), &message, help))
}

fn speaks_tls(kind: &ListenerKind) -> bool {
    matches!(kind, ListenerKind::Https(_) | ListenerKind::Tls(_) | ListenerKind::Passthrough(_))
}

/// Requests of a route lie below its prefix.
fn about_patterns(config: &Config, index: usize, diagnostics: &mut Vec<Diagnostic>) {
    let routes = config.sites.get(index).map_or(&[][..], |site| &site.routes);
    for (number, route) in routes.iter().enumerate() {
        // Of the others each is for paths that no prefix says.
        let Some(Place::Prefix(prefix)) = route.place().filter(|_| route.regex.is_none()) else {
            continue;
        };
        let redirects = route.redirects.iter().map(|it| &it.from).enumerate();
        let rewrites = route.rewrites.iter().map(|it| &it.from).enumerate();
        let rules = redirects.map(|it| ("redirect", it)).chain(rewrites.map(|it| ("rewrite", it)));
        for (name, (rule, from)) in rules {
            if from.as_ref().is_none_or(|from| may_fit_below(from, prefix)) {
                continue;
            }
            let message = format!("no path below {prefix} fits, and this route gets no other");
            let help =
                "write a pattern of its paths, or move the rule to the route of those it is about";
            let setting = format!("site.{index}.route.{number}.{name}.{rule}.from");
            diagnostics.push(at(config, &setting, &message, help));
        }
    }
}

/// A site that all listeners leave out, which most often was forgotten in one of them.
fn about_reach(config: &Config, seen: &Seen<'_>, index: usize) -> Option<Diagnostic> {
    let site = config.sites.get(index).filter(|site| site.is_served() && !site.names_backend())?;
    if seen.served.as_ref()?.contains(&index) {
        return None;
    }
    let name = site.names.first()?;
    let message = format!("no listener serves the site \"{name}\"");
    let help = match site.has_certificate() {
        true => "write its name in `sites` of a [[listener]], or remove it",
        false => "write its name in `sites` of a [[listener]] with kind = \"http\", or remove it",
    };
    Some(config.diagnostic(name.at, &format!("\"{name}\""), message, Some(help.to_owned())))
}

/// If clients are asked for no certificate, there is nothing to say of one.
fn about_certificates(config: &Config, index: usize, diagnostics: &mut Vec<Diagnostic>) {
    let site = config.sites.get(index).filter(|site| site.client_auth.is_none());
    let routes = site.map_or(&[][..], |site| &site.routes);
    for (number, route) in routes.iter().enumerate() {
        let headers = route.request_headers.iter().map(|it| ("request_headers", it));
        let programs = route.fastcgi.iter().flat_map(|it| &it.params);
        for (table, (name, values)) in headers.chain(programs.map(|it| ("fastcgi.params", it))) {
            let mut words = values.iter().flat_map(FieldTemplate::words);
            let Some(word) = words.find(|word| word.is_of_certificate()) else { continue };
            let message = format!("{{{word}}} is empty: this site asks for no certificates");
            let help = "add [site.client_auth], or write [] if backends are to get no such header";
            let setting = format!("site.{index}.route.{number}.{table}.{name}");
            diagnostics.push(at(config, &setting, &message, help));
        }
    }
}

fn may_fit_below(pattern: &PathPattern, prefix: &str) -> bool {
    let beginning = pattern.beginning();
    let below = format!("{prefix}/");
    let is_whole = beginning == pattern.as_str();
    beginning == prefix
        || beginning.starts_with(&below)
        || (!is_whole && below.starts_with(beginning))
}

/// Its names are looked up and its servers checked for as long as it stands there.
fn about_use(config: &Config, seen: &Seen<'_>, index: usize) -> Option<Diagnostic> {
    let name = &config.backends.get(index)?.name;
    if seen.named.contains(name.value.as_str()) {
        return None;
    }
    let message = format!("no listener, site or route names \"{name}\"");
    let help = "remove it, or write it where connections or requests are to go there";
    Some(config.diagnostic(name.at, &format!("\"{name}\""), message, Some(help.to_owned())))
}

/// A server gets a new key one day, and then nobody gets through.
fn about_pins(config: &Config, index: usize) -> Option<Diagnostic> {
    let setting = format!("backend.{index}.tls.pins");
    let [_] = config.backends.get(index)?.tls.as_ref()?.pins.as_slice() else { return None };
    let message = "there is no spare: once the server has another key, nobody gets through";
    let written = config.position_of(&setting).is_written();
    written.then(|| at(config, &setting, message, "write the pin of its next key, too"))
}

fn at(config: &Config, setting: &str, message: &str, help: &str) -> Diagnostic {
    config.diagnostic(config.position_of(setting), "", message, Some(help.to_owned()))
}

/// As ALPN has it (RFC 9113 §3.1).
const HTTP2: &str = "h2";
