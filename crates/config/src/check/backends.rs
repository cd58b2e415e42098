//! Backends that nobody has, and servers that could not be reached as written.

use std::collections::{BTreeSet, HashMap};

use super::names::{Names, find_repeated};
use crate::diagnostic::Help;
use crate::located::Located;
use crate::model::{
    Backend, BackendServer, BackendTls, Balance, CheckKind, ClientAuth, Config, FieldPart,
    FieldTemplate, Listener, ListenerKind, NamedWord, Reach, RequestWord, Route, ServerAddress,
    Site, Truncation,
};
use crate::read::Reader;

/// Records every mistake between backends and those that name them.
pub(crate) fn check(config: &Config, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let mut names = Names::of("backend", config.backends.iter().map(|backend| &backend.name));
    for named in named_backends(config) {
        names.check(named, reader);
    }
    find_repeated(config.backends.iter().map(|backend| &backend.name), "backend", reader);
    for (index, backend) in config.backends.iter().enumerate() {
        check_servers(index, backend, reader);
        check_tls(index, backend, reader);
    }
    let mut sites = Names::of("site", config.sites.iter().flat_map(|site| &site.names));
    for (index, listener) in config.listeners.iter().enumerate() {
        for name in listener.tls().iter().flat_map(|tls| &tls.sites) {
            check_taken(name, listener, (reach, &mut sites), reader);
        }
        check_listener(index, listener, reach, reader);
        check_resets(index, listener, (config, reach, &names), reader);
        check_protocols(index, listener, reach, reader);
    }
    for (index, site) in config.sites.iter().enumerate() {
        check_pinned(&format!("site.{index}"), site.client_auth.as_ref(), reader);
    }
    for (index, tls) in config.listeners.iter().map(Listener::tls).enumerate() {
        for (number, own) in tls.iter().flat_map(|tls| &tls.certificates).enumerate() {
            let owner = format!("listener.{index}.certificate.{number}");
            check_pinned(&owner, own.client_auth.as_ref(), reader);
        }
    }
    check_open_doors(config, reach, reader);
    let reached = reach.of_any(config.listeners.iter());
    let in_tls = reach.of_any(config.listeners.iter().filter(|it| it.tls().is_some()));
    let serves = config.listeners.iter().any(|listener| listener.https().is_some());
    for (number, site) in config.sites.iter().enumerate().filter(|_| !config.listeners.is_empty()) {
        let ends_tls = in_tls.contains(&number) || (serves && !site.routes.is_empty());
        check_site(site, reached.contains(&number), ends_tls, reader);
    }
}

/// Where certificates are known one by one, nothing is said of authorities.
fn check_pinned(owner: &str, auth: Option<&ClientAuth>, reader: &mut Reader<'_>) {
    for (setting, message, help) in [
        (
            "crl",
            "authorities revoke certificates, and with `pinned` none is asked",
            "remove it, and take what is revoked out of `roots`",
        ),
        (
            "depth",
            "`depth` counts authorities, and with `pinned` none is asked",
            "remove one of both",
        ),
    ] {
        if let Some(place) = reader.place(&format!("{owner}.client_auth.{setting}"))
            && auth.is_some_and(|it| it.pinned)
        {
            reader.report_at(&place, message.to_owned(), Help::act(help));
        }
    }
}

/// Every place that names a backend.
pub(crate) fn named_backends(config: &Config) -> impl Iterator<Item = &Located<String>> {
    let of_listeners = config.listeners.iter().flat_map(Listener::backends);
    let of_routes = config.sites.iter().flat_map(|site| &site.routes);
    let of_routes = of_routes.flat_map(Route::backends);
    of_listeners.chain(config.sites.iter().flat_map(Site::backends)).chain(of_routes)
}

/// A cookie must not say where a server is, not even to those who try all addresses.
fn check_cookie(index: usize, backend: &Backend, reader: &mut Reader<'_>) {
    if backend.balance == Balance::Cookie {
        let nameless = backend.servers.iter().filter(|it| it.name.is_none());
        for server in nameless.filter(|it| it.address.at.is_written()) {
            let message = "cookies know servers by their `name`, and this one has none".to_owned();
            reader.report_located(
                &server.address,
                message,
                Help::act("write one, such as name = \"app-1\""),
            );
        }
    } else if let Some(place) = reader.place(&format!("backend.{index}.cookie")) {
        let message = "`cookie` is about `balance = \"cookie\"`".to_owned();
        reader.report_at(&place, message, Help::act("write that as well, or remove this"));
    }
}

/// The text to hash is written where something is hashed.
fn check_hash(index: usize, backend: &Backend, reader: &mut Reader<'_>) {
    let is_hash = backend.balance == Balance::Hash;
    if is_hash && backend.hash.is_none() && !reader.is_written(&format!("backend.{index}.hash")) {
        if let Some(place) = reader.place(&format!("backend.{index}.balance")) {
            let message = "nothing says which text of a request decides".to_owned();
            let help = "write `hash` as well, such as hash = \"{uri}\"";
            reader.report_at(&place, message, Help::act(help));
        }
    } else if let Some(said) = backend.hash.iter().flat_map(FieldTemplate::parts).find(is_later)
        && let Some(place) = reader.place(&format!("backend.{index}.hash"))
    {
        let message = format!("{said} says nothing yet where a server is chosen");
        reader.report_at(&place, message, Help::act("write another word, such as {uri}"));
    } else if !is_hash && let Some(place) = reader.place(&format!("backend.{index}.hash")) {
        let message = "`hash` is about `balance = \"hash\"`".to_owned();
        reader.report_at(&place, message, Help::act("write that as well, or remove this"));
    }
}

/// True for what a response or a service says: a server is chosen before there is any.
fn is_later(part: &&FieldPart) -> bool {
    matches!(
        part,
        FieldPart::Word(RequestWord::Status)
            | FieldPart::Named(NamedWord::Answer | NamedWord::Auth, _)
    )
}

fn check_servers(index: usize, backend: &Backend, reader: &mut Reader<'_>) {
    let list = format!("backend.{index}.server");
    let is_unread = reader.is_written(&list) && reader.place(&list).is_none();
    if backend.servers.is_empty() && !is_unread && !reader.is_written(&format!("{list}.0")) {
        let message = "the backend has no server".to_owned();
        let help = "[[backend.server]] with address = \"127.0.0.1:8080\"";
        reader.report_located(&backend.name, message, Help::write(help));
    }
    check_cookie(index, backend, reader);
    check_hash(index, backend, reader);
    let mut first: HashMap<String, usize> = HashMap::new();
    for (number, server) in backend.servers.iter().enumerate() {
        let address = &server.address;
        if !address.at.is_written() {
            continue;
        }
        let called = server.name.clone().unwrap_or_else(|| address.to_string());
        match first.get(&called) {
            Some(line) => {
                let message =
                    format!("the server on {} is called {called} already", reader.line(*line));
                let place = reader.place(&format!("backend.{index}.server.{number}.name"));
                let help = Help::act("remove one of both, or give one another `name`");
                match place {
                    Some(place) => reader.report_at(&place, message, help),
                    None => reader.report_located(address, message, help),
                }
            }
            None => _ = first.insert(called, address.at.line),
        }
    }
    let is_backup = backend.servers.iter().all(|server| server.backup);
    if let Some(place) = reader.place(&format!("backend.{index}.server.0.backup"))
        && is_backup
    {
        let message = "every server of the backend is a backup".to_owned();
        reader.report_at(&place, message, Help::write("false"));
    }
}

fn check_tls(index: usize, backend: &Backend, reader: &mut Reader<'_>) {
    let Some(tls) = &backend.tls else {
        let is_tls = backend.check.as_ref().is_some_and(|check| check.kind == CheckKind::Tls);
        if let Some(place) = reader.place(&format!("backend.{index}.check.kind"))
            && is_tls
        {
            let message =
                "a TLS handshake needs [backend.tls], which says whom to trust".to_owned();
            reader.report_at(&place, message, Help::write("\"tcp\""));
        }
        return;
    };
    for server in &backend.servers {
        if matches!(server.address.value, ServerAddress::Unix(_)) {
            let message = "TLS is not spoken over Unix sockets".to_owned();
            let help = Help::act("remove [backend.tls], or write an address with a port");
            reader.report_located(&server.address, message, help);
        }
    }
    check_trust(index, tls, reader);
    if let Some(place) = reader.place(&format!("backend.{index}.tls.certificate.ocsp")) {
        let message = "kettle is the client here, and clients send no OCSP response".to_owned();
        let help = "remove it: servers send one, by `ocsp` of a [[site.certificate]] or a [[listener.certificate]]";
        reader.report_at(&place, message, Help::act(help));
    }
    let other = tls.alpn.iter().find(|protocol| !protocol.starts_with("http/1."));
    if let (Some(check), Some(other)) = (&backend.check, other)
        && check.kind == CheckKind::Http
        && let Some(place) = reader.place(&format!("backend.{index}.check.kind"))
    {
        let message =
            format!("the check speaks HTTP/1.1, and by `alpn` the server may agree on \"{other}\"");
        reader.report_at(&place, message, Help::write("\"tls\""));
    }
}

fn check_trust(index: usize, tls: &BackendTls, reader: &mut Reader<'_>) {
    let roots = reader.place(&format!("backend.{index}.tls.roots"));
    if let Some(place) = roots.filter(|_| !tls.pins.is_empty()) {
        let message = "with `pins` no authority is asked".to_owned();
        reader.report_at(&place, message, Help::act("remove `roots` or `pins`"));
    }
}

/// A listener must be able to carry somebody somewhere, and to show somebody's certificate.
fn check_listener(index: usize, listener: &Listener, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    if listener.tls().is_some() {
        check_own_certificates(index, listener, reader);
    }
    let names_backend = listener.backends().next().is_some();
    let is_carried = reach.sites(listener).next().is_some();
    let address = &listener.address;
    let (message, help) = match &listener.kind {
        ListenerKind::Tls(tls) if !is_carried && names_backend && !tls.has_own_certificates() => (
            "no site has a certificate for this listener",
            "[[site]] with names = [\"_\"] and a [[site.certificate]]",
        ),
        ListenerKind::Tls(_) | ListenerKind::Passthrough(_) if !is_carried && !names_backend => {
            ("nothing says where connections go", "backend = \"…\" here, or in a [[site]]")
        }
        _ => return,
    };
    reader.report_located(address, message.to_owned(), Help::write(help));
}

/// A listener that asks for resets must be able to have them.
fn check_resets(
    index: usize,
    listener: &Listener,
    (config, reach, names): (&Config, &Reach<'_>, &Names<'_>),
    reader: &mut Reader<'_>,
) {
    let resets = listener.tls().is_some_and(|tls| tls.truncation == Truncation::Reset);
    let Some(place) = reader.place(&format!("listener.{index}.truncation")).filter(|_| resets)
    else {
        return;
    };
    let reached = reach.sites(listener).flat_map(|(_, site)| site.backends());
    let named: BTreeSet<usize> =
        listener.backends().chain(reached).filter_map(|name| names.find(name)).collect();
    let is_unix = |it: &BackendServer| matches!(it.address.value, ServerAddress::Unix(_));
    let mut backends = named.into_iter().filter_map(|number| config.backends.get(number));
    if let Some(backend) = backends.find(|it| it.servers.iter().any(is_unix)) {
        let message = format!(
            "a Unix socket cannot be reset: a server of \"{}\" would take the cut for an end",
            backend.name
        );
        let help = Help::act("write \"fin\", or an address with a port for the server");
        reader.report_at(&place, message, help);
    }
}

/// A protocol that is agreed on must be somebody's.
fn check_protocols(index: usize, listener: &Listener, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let Some(tls) = listener.tls() else { return };
    let routes = || {
        let sites = reach.sites(listener).map(|(_, site)| Some(site));
        sites.chain([None]).map(|site| listener.alpn_routes(site))
    };
    for protocol in &tls.alpn {
        let own = protocol.as_str();
        let is_carried =
            routes().any(|routes| routes.protocols(std::iter::once(own)).contains(&own));
        if let Some(place) = reader.place(&format!("listener.{index}.alpn"))
            && !is_carried
            && routes().any(|routes| !routes.by_alpn.is_empty())
        {
            let message = format!("no backend takes connections that speak \"{protocol}\"");
            let help = "remove it, or give it one in `backend_by_alpn`";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// Certificates of a listener's own take the place of sites.
fn check_own_certificates(index: usize, listener: &Listener, reader: &mut Reader<'_>) {
    let has_none = listener.tls().is_some_and(|tls| !tls.has_own_certificates());
    let place = reader.place(&format!("listener.{index}.unknown_names"));
    if let Some(place) = place.filter(|_| has_none) {
        let message = "this is about the certificates of a listener's own, and there is none";
        let help = "remove it, and `backend` here: then only names that sites have are served";
        reader.report_at(&place, message.to_owned(), Help::act(help));
    }
    let own = listener.tls().filter(|tls| tls.has_own_certificates());
    if let Some(site) = own.and_then(|tls| tls.sites.first()) {
        let message = "a listener with certificates of its own reaches no site".to_owned();
        reader.report_located(site, message, Help::act("remove `sites` or the certificates"));
    }
}

/// A client that asks for a name that no site has must not come, without a certificate, to a backend that others need one for.
fn check_open_doors(config: &Config, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    // If TLS only passes through, nobody is asked for a certificate here.
    let listeners = || config.listeners.iter().filter(|listener| listener.tls().is_some());
    let mut carriers: HashMap<usize, Vec<&Listener>> = HashMap::new();
    for listener in listeners() {
        let led = |site: &Site| site.client_auth.is_some() && site.backend.is_none();
        for (number, _) in reach.sites(listener).filter(|(_, site)| led(site)) {
            carriers.entry(number).or_default().push(listener);
        }
    }
    // The first that asks, and the first that asks for something else: one of both asks for what another site does not.
    let mut asking: HashMap<&str, Vec<&Site>> = HashMap::new();
    for (number, site) in config.sites.iter().enumerate().filter(|(_, it)| it.client_auth.is_some())
    {
        let of_listeners = carriers.get(&number).into_iter().flatten();
        for backend in site.backends().chain(of_listeners.flat_map(|it| it.backends())) {
            let known = asking.entry(backend).or_default();
            if known.len() < 2 && known.iter().all(|it| it.client_auth != site.client_auth) {
                known.push(site);
            }
        }
    }
    for listener in listeners() {
        let demanded = reach.default_site(listener).and_then(|(_, site)| site.client_auth.as_ref());
        for backend in listener.backends() {
            let mut known = asking.get(backend.value.as_str()).into_iter().flatten();
            let Some(site) = known.find(|it| it.client_auth.as_ref() != demanded) else { continue };
            let name = site.names.first().map_or("a site", |name| name.value.as_str());
            let message = format!(
                "clients that ask for another name, or none, would reach \"{backend}\" without the certificate that \
                 \"{name}\" demands"
            );
            let help = format!("remove it here and write `backend` in the site \"{name}\"");
            reader.report_located(backend, message, Help::act(help));
        }
    }
}

fn check_taken(
    name: &Located<String>,
    listener: &Listener,
    (reach, sites): (&Reach<'_>, &mut Names<'_>),
    reader: &mut Reader<'_>,
) {
    let Some(site) = reach.named(name) else {
        let message = format!("no site is named \"{name}\"");
        let add = || Help::act(format!("add [[site]] with names = [\"{name}\"]"));
        let help = sites.guess(name).unwrap_or_else(add);
        return reader.report_located(name, message, help);
    };
    if !site.names_backend() && listener.backends().next().is_none() {
        let message = format!("neither the site \"{name}\" nor this listener names a backend");
        reader.report_located(name, message, Help::act("write `backend` in one of both"));
    }
}

fn check_site(site: &Site, is_reached: bool, ends_tls: bool, reader: &mut Reader<'_>) {
    let Some(backend) = site.backends().next() else { return };
    if let Some(client_auth) = site.client_auth.as_ref().filter(|_| !ends_tls) {
        let message =
            "no listener ends TLS for this site, so nobody is asked for a certificate".to_owned();
        let help = Help::act("remove client_auth, or write a [[listener]] with kind = \"tls\"");
        reader.report_located(&client_auth.roots, message, help);
    }
    if !is_reached {
        let message = "no listener carries connections for this site to a backend".to_owned();
        let help = "[[listener]] with kind = \"tls\", or remove `backend`";
        reader.report_located(backend, message, Help::write(help));
    }
}
