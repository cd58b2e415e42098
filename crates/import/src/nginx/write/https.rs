//! The servers of `http`: which of them become sites, where they listen, and which one is the default.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use kettle_config::{Origin, collide, quoted};

use super::challenge::is_about_challenges;
use super::route::spoken;
use super::site::{Redirect, ServerBlock, default_of};
use super::{Writer, trust_alike};
use crate::nginx::listen::Listen;
use crate::nginx::location::{self, LocationKind};
use crate::nginx::redirect::is_redirect;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

/// A way in, the same for IPv4 and IPv6 where it is for all addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    Any(u16),
    One(SocketAddr),
}

fn door(listen: &Listen) -> Door {
    match listen.address.ip().is_unspecified() {
        true => Door::Any(listen.address.port()),
        false => Door::One(listen.address),
    }
}

fn doors(server: &ServerBlock<'_>) -> BTreeSet<Door> {
    server.listens.iter().filter(|listen| listen.is_tls).map(door).collect()
}

impl Writer<'_> {
    pub(super) fn https(&mut self, servers: &mut [ServerBlock<'_>]) {
        self.output.places.all += servers.iter().map(ServerBlock::places).sum::<usize>();
        let is_lost = |it: &&ServerBlock<'_>| !it.ends_tls() && it.redirect().is_none();
        self.output.places.closed +=
            servers.iter().filter(is_lost).map(ServerBlock::places).sum::<usize>();
        let chosen = self.choose(servers);
        let taken = |listen: &&Listen| listen.is_tls && chosen.contains(&door(listen));
        let mut listens: Vec<Listen> = Vec::new();
        for server in servers.iter().filter(|server| server.is_kept) {
            for listen in server.listens.iter().filter(taken) {
                match listens.iter_mut().find(|other| other.address == listen.address) {
                    Some(other) => {
                        other.takes_proxy |= listen.takes_proxy;
                        other.has_http2 |= listen.has_http2;
                        other.backlog = other.backlog.or(listen.backlog);
                    }
                    None => listens.push(listen.clone()),
                }
            }
        }
        let defaults = listens.iter().filter_map(|it| default_of(servers, it.address));
        let defaults: Vec<usize> = defaults.collect();
        for listen in &listens {
            self.tell_of_reach(servers, listen, defaults.first().copied());
            self.https_listener(servers, listen);
        }
        self.redirects(servers, &listens);
        let reached = servers.iter().enumerate().filter(|(_, it)| !chosen.is_disjoint(&doors(it)));
        let reached: Vec<usize> = reached.map(|(number, _)| number).collect();
        self.sites(servers, &reached, &defaults);
        for server in servers.iter().filter(|server| server.redirect().is_some()) {
            self.tell_of_others(server);
        }
    }

    /// kettle serves every site on every https listener, so those stay together that are reached by the same doors.
    fn choose(&mut self, servers: &mut [ServerBlock<'_>]) -> BTreeSet<Door> {
        let all: BTreeSet<BTreeSet<Door>> =
            servers.iter().filter(|it| it.ends_tls()).map(|it| doors(it)).collect();
        let kept = |chosen: &BTreeSet<Door>| {
            servers.iter().filter(|server| chosen.is_subset(&doors(server))).count()
        };
        let port = |door: &Door| match door {
            Door::Any(port) => *port,
            Door::One(address) => address.port(),
        };
        let rank = |chosen: &&BTreeSet<Door>| {
            let has_own = chosen.iter().any(|door| port(door) == HTTPS_PORT);
            let least = chosen.iter().map(port).min();
            (kept(chosen), chosen.len(), has_own, Reverse(least))
        };
        let best = all.iter().max_by_key(rank);
        let chosen = best.cloned().unwrap_or_default();
        for server in servers.iter_mut().filter(|server| server.ends_tls()) {
            let own = doors(server);
            server.is_kept = chosen.is_subset(&own);
            if !server.is_kept {
                let help =
                    "kettle serves every site on every https listener: give it a kettle of its own";
                let message = "this server listens elsewhere than the others, and is left out";
                self.output.places.closed += server.places();
                self.output.lose(server.origin, message, help);
            }
            for listen in server.listens.iter().filter(|it| it.is_tls && server.is_kept) {
                if !chosen.contains(&door(listen)) {
                    let message = format!("nobody listens on {}", listen.address);
                    let help = "kettle serves every site on every https listener, and not all servers are to be reached there";
                    self.output.lose(&listen.origin, message, help);
                }
            }
        }
        chosen
    }

    fn tell_of_reach(
        &mut self,
        servers: &[ServerBlock<'_>],
        listen: &Listen,
        default: Option<usize>,
    ) {
        for server in servers.iter().filter(|server| server.is_kept) {
            if !server.listens.iter().any(|own| own.address == listen.address) {
                let message = format!("this server is reached on {} as well", listen.address);
                let help = "kettle serves every site on every https listener";
                self.output.warn(server.origin, message, help);
            }
        }
        if default_of(servers, listen.address) != default {
            let message = format!("{} has another default server", listen.address);
            self.output.warn(&listen.origin, message, "kettle has one for all listeners");
        }
    }

    fn https_listener(&mut self, servers: &[ServerBlock<'_>], listen: &Listen) {
        let origin = Some(&listen.origin);
        self.output.text.table("[[listener]]", origin);
        self.output.text.set("address", quoted(&listen.address.to_string()), origin);
        self.listener_settings(listen);
        let listening = |server: &&ServerBlock<'_>| {
            server.is_kept && server.listens.iter().any(|own| own.address == listen.address)
        };
        let first = servers.iter().find(listening);
        self.http2(&servers.iter().filter(listening).collect::<Vec<_>>(), listen);
        if listen.takes_proxy {
            let scopes = servers.iter().filter(listening).map(|server| &server.scope);
            let scopes: Vec<&Scope<'_>> = scopes.collect();
            self.takes_any_header |= !trust_alike(&scopes);
            self.accept_proxy(&scopes, listen);
        }
        let scopes = servers.iter().filter(listening).map(|server| &server.scope);
        self.trusted_proxies(&scopes.collect::<Vec<_>>());
        let refused = first.and_then(|server| ktls_option(&server.scope.all("ssl_conf_command")));
        if let Some(origin) = refused {
            self.output.text.set("path", quoted("user"), Some(&origin));
        }
    }

    /// `listen … http2` is for all servers on an address, `http2` for each of them.
    fn http2(&mut self, servers: &[&ServerBlock<'_>], listen: &Listen) {
        let is_on = |server: &&&ServerBlock<'_>| server.scope.is_on("http2");
        let on = servers.iter().find(is_on).and_then(|server| server.scope.find("http2"));
        if on.is_none() && !listen.has_http2 {
            // It is off in nginx, and on in kettle.
            self.output.text.set("http2", "false", Some(&listen.origin));
            return;
        }
        let origin = on.map_or(&listen.origin, |directive| &directive.origin);
        self.output.text.set("http2", "true", Some(origin));
        if !listen.has_http2 {
            for server in servers.iter().filter(|server| !is_on(server)) {
                let message = format!("this server speaks HTTP/2 on {} as well", listen.address);
                self.output.warn(server.origin, message, "it is a matter of the whole listener");
            }
        }
    }

    /// Plain HTTP leads to HTTPS.
    fn redirects(&mut self, servers: &[ServerBlock<'_>], https: &[Listen]) {
        let mut done: Vec<SocketAddr> = Vec::new();
        for server in servers {
            for listen in server.listens.iter().filter(|listen| !listen.is_tls) {
                if !done.contains(&listen.address) {
                    done.push(listen.address);
                    self.redirect(servers, listen, https);
                }
            }
        }
    }

    fn redirect(&mut self, servers: &[ServerBlock<'_>], listen: &Listen, https: &[Listen]) {
        if https.iter().any(|other| gets_all_of(other.address, listen.address)) {
            let message = format!("nobody serves plain HTTP on {}", listen.address);
            self.output.warn(&listen.origin, message, "TLS is spoken there by another server");
            return;
        }
        let here = |server: &&ServerBlock<'_>| {
            server.listens.iter().any(|own| own.address == listen.address && !own.is_tls)
        };
        let mut target: Option<(u16, u16)> = None;
        for server in servers.iter().filter(here) {
            match server.redirect() {
                Some(redirect) => {
                    self.tell_of_redirect(server, &redirect, target);
                    target = target.or(Some((redirect.status, redirect.port)));
                }
                None if server.ends_tls() && server.is_kept => {
                    let message = format!("{} speaks plain HTTP", listen.address);
                    self.output.warn(
                        &listen.origin,
                        message,
                        "kettle serves by HTTPS: it leads there",
                    );
                }
                None => {
                    let message = "this server speaks plain HTTP, and is left out";
                    let help = "kettle serves by HTTPS: it leads there; add an `ssl` listener and a certificate";
                    self.output.lose(server.origin, message, help);
                }
            }
        }
        let mut plain = servers.iter().flat_map(|server| &server.listens).filter(|it| !it.is_tls);
        let is_wider =
            |it: &&Listen| it.address != listen.address && gets_all_of(it.address, listen.address);
        if let Some(wider) = plain.find(is_wider) {
            let message = format!("{} has no listener of its own", listen.address);
            let help = format!("that of {} is for it as well", wider.address);
            return self.output.warn(&listen.origin, message, &help);
        }
        let origin = Some(&listen.origin);
        let own_port = https.first().map_or(HTTPS_PORT, |listen| listen.address.port());
        let (status, port) = target.unwrap_or((308, own_port));
        self.output.text.table("[[listener]]", origin);
        self.output.text.set("address", quoted(&listen.address.to_string()), origin);
        self.output.text.set("kind", quoted("redirect"), origin);
        self.output.text.set("redirect_status", status, origin);
        if port != HTTPS_PORT {
            self.output.text.set("redirect_port", port, origin);
        }
        self.listener_settings(listen);
        let scopes: Vec<_> = servers.iter().filter(here).map(|server| &server.scope).collect();
        if listen.takes_proxy {
            self.accept_proxy(&scopes, listen);
        }
        self.trusted_proxies(&scopes);
    }

    /// Says what of a redirect a listener does not do, which has the status and the port of `first`.
    fn tell_of_redirect(
        &mut self,
        server: &ServerBlock<'_>,
        redirect: &Redirect<'_>,
        first: Option<(u16, u16)>,
    ) {
        let is_asked = |host: &&String| match server.names.as_slice() {
            [] => *host == "$server_name",
            [one] => *host == one || *host == "$server_name",
            _ => false,
        };
        if let Some(host) = redirect.host.as_ref().filter(|host| !is_asked(host)) {
            let host = if host.is_empty() { "a host of variables" } else { host };
            let message = format!("clients are not sent to {host}");
            let help = "a redirect leads to the name that the client asked for";
            self.output.warn(server.origin, message, help);
        }
        let origin = &redirect.directive.origin;
        let message = format!("`{}` is not carried over as it is", spoken(redirect.directive));
        if !redirect.keeps_path {
            let help = "plain HTTP leads to the path and the query that the client asks for";
            self.output.warn(origin, &message, help);
        }
        if let Some((status, port)) = first.filter(|it| *it != (redirect.status, redirect.port)) {
            let help =
                format!("all names on one address are led to port {port} with status {status}");
            self.output.warn(origin, message, &help);
        }
    }

    /// Says which places of a server that leads elsewhere do something else.
    fn tell_of_others(&mut self, server: &ServerBlock<'_>) {
        let Some(redirect) = server.redirect().filter(|_| !server.ends_tls()) else { return };
        let told = &redirect.directive.origin;
        let leads = |it: &Directive| it.origin == *told || server.leads_alike(it);
        let leads_away = |it: &Directive| ["rewrite", "return"].contains(&&*it.name) && !leads(it);
        let own = server.scope.own();
        for directive in own.iter().take_while(|it| it.origin != *told) {
            let is_lost = match directive.name.as_str() {
                "rewrite" => !leads(directive),
                "return" => is_redirect(directive) && !leads(directive),
                "if" => directive.inner().iter().any(leads_away),
                _ => false,
            };
            if is_lost {
                let message = format!("`{}` is not carried over", spoken(directive));
                self.output.warn(&directive.origin, message, ALL_LEADS);
            }
        }
        if own.iter().any(|it| it.origin == *told) {
            return;
        }
        for location in location::all(&server.scope) {
            let (directive, origin) = (location.directive, &location.directive.origin);
            let is_left =
                location.kind != LocationKind::Named && !directive.inner().iter().any(leads);
            if is_left && !self.challenges.contains(origin) {
                let message = format!("`{}` is not carried over", spoken(directive));
                let help = match is_about_challenges(&location) {
                    true => CHALLENGES_LOST,
                    false => ALL_LEADS,
                };
                self.output.warn(origin, message, help);
            }
        }
    }

    /// Where nothing speaks TLS yet, files are served by HTTPS all the same, under a certificate made here.
    pub(super) fn plain_alone(&mut self, servers: &mut [ServerBlock<'_>]) {
        for server in servers.iter_mut().filter(|server| server.redirect().is_none()) {
            let message = "this server speaks plain HTTP only";
            let help = "kettle serves by HTTPS: with a certificate that it makes, which no client trusts by itself; write \
                           [[site.certificate]]";
            self.output.warn(server.origin, message, help);
            server.is_self_signed = true;
            let mut more = Vec::new();
            for listen in &mut server.listens {
                // Port 80 leads to 443; on others TLS is spoken instead.
                match listen.address.port() {
                    HTTP_PORT => {
                        let address = (listen.address.ip(), HTTPS_PORT).into();
                        more.push(Listen { address, is_tls: true, ..listen.clone() });
                    }
                    _ => listen.is_tls = true,
                }
            }
            server.listens.extend(more);
        }
    }
}

/// Whether a listener gets all connections to another address, which nobody else can listen on then.
fn gets_all_of(listener: SocketAddr, address: SocketAddr) -> bool {
    listener == address || listener.ip().is_unspecified() && collide(listener, address)
}

/// Where kernel TLS was turned off by name.
fn ktls_option(commands: &[&Directive]) -> Option<Origin> {
    let options = commands.iter().find(|command| command.word(0) == "Options")?;
    let is_off = options.word(1).split(',').any(|option| option.trim() == "-KTLS");
    is_off.then(|| options.origin.clone())
}

const ALL_LEADS: &str = "all of plain HTTP leads to HTTPS";
const CHALLENGES_LOST: &str = "all of plain HTTP leads to HTTPS, and certificates are not renewed unless a route of the site with \
                               prefix = \"/.well-known/acme-challenge\" answers there";
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
