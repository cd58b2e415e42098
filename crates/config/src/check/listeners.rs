//! Addresses that collide, and servers of backends that are listeners' own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::diagnostic::Help;
use crate::model::{Config, Listener, ListenerKind, ServerAddress, Site};
use crate::read::Reader;

/// The advice about an address that is taken.
const REMOVE_OR_MOVE: &str = "remove one of both, or write another port";

/// Records missing and repeated listeners.
pub(crate) fn check(config: &Config, reader: &mut Reader<'_>) {
    if config.listeners.is_empty() && !reader.is_written("listener") {
        let message = "no listener is declared, so nothing could connect".to_owned();
        let help = "[[listener]] with address = \"0.0.0.0:443\"";
        reader.report_missing(message, Help::write(help));
    }
    let written = config.listeners.iter().filter(|listener| listener.address.at.is_written());
    let mut earlier: Vec<&Listener> = Vec::new();
    for listener in written {
        let address = &listener.address;
        match earlier.iter().find(|other| collide(other.address.value, address.value)) {
            Some(other) => {
                let line = reader.line(other.address.at.line);
                let message = format!("{line} listens on {} already", other.address);
                reader.report_located(address, message, Help::act(REMOVE_OR_MOVE));
            }
            None => earlier.push(listener),
        }
    }
    for (index, listener) in config.listeners.iter().enumerate() {
        check_ways_out(listener, config, reader);
        check_trust(index, listener, reader);
    }
    check_metrics(config, reader);
}

/// What a listener carries must not come in at it again, for ever. Where TLS ends and begins anew it could be for another site.
fn check_ways_out(listener: &Listener, config: &Config, reader: &mut Reader<'_>) {
    if !listener.address.at.is_written() {
        return;
    }
    let reached = config.sites.iter().filter(|site| site.is_reached(listener));
    let named: Vec<_> = listener.backends().chain(reached.flat_map(Site::backends)).collect();
    for backend in config.backends.iter().filter(|it| named.contains(&&it.name)) {
        if matches!(listener.kind, ListenerKind::Tls(_)) && backend.tls.is_some() {
            continue;
        }
        let written = backend.servers.iter().filter(|server| server.address.at.is_written());
        for server in written.filter(|it| leads_back(listener.address.value, &it.address)) {
            let line = reader.line(listener.address.at.line);
            let message = format!(
                "{line} listens on {} and carries connections to this server: they would come back",
                listener.address
            );
            let help = Help::act("write the address of another server, or another port");
            reader.report_located(&server.address, message, help);
        }
    }
}

/// Only what reads requests can read who they are for.
fn check_trust(index: usize, listener: &Listener, reader: &mut Reader<'_>) {
    let reads = matches!(listener.kind, ListenerKind::Https(_) | ListenerKind::Redirect(_));
    for name in ["trusted_proxies", "client_ip_header"] {
        let Some(place) = reader.place(&format!("listener.{index}.{name}")) else { continue };
        let (message, help) = if !reads {
            let kind = listener.kind.as_str();
            let message = format!("`{name}` is about requests, and kind = \"{kind}\" reads none");
            (message, "remove it: a load balancer names clients by `accept_proxy`")
        } else if name == "client_ip_header" && listener.trusted_proxies.is_empty() {
            let message = "nobody is believed here, so this header is never read".to_owned();
            (message, "write `trusted_proxies`, or remove it")
        } else {
            continue;
        };
        reader.report_at(&place, message, Help::act(help));
    }
}

fn check_metrics(config: &Config, reader: &mut Reader<'_>) {
    let (Some(listen), Some(place)) = (config.metrics.listen, reader.place("metrics.listen"))
    else {
        return;
    };
    if !listen.ip().is_loopback() && !config.metrics.allow_remote {
        let message = format!(
            "other machines could read the metrics on {listen}; \
             set allow_remote = true if they should"
        );
        let help = format!("\"127.0.0.1:{}\"", listen.port());
        reader.report_at(&place, message, Help::write(help));
    }
    let mut listeners = config.listeners.iter();
    if let Some(other) = listeners.find(|other| collide(other.address.value, listen)) {
        let line = reader.line(other.address.at.line);
        let message = format!("{line} listens on {} already", other.address);
        reader.report_at(&place, message, Help::act(REMOVE_OR_MOVE));
    }
}

/// Whether only one of two addresses can be listened on: they are the same, or one is the other's port on all addresses of the
/// machine. IPv6 sockets take IPv6 only.
#[must_use]
pub fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port()
        && one.is_ipv4() == other.is_ipv4()
        && (one == other || one.ip().is_unspecified() || other.ip().is_unspecified())
}

/// Whether connections to a server would come in at this address of ours, as far as the addresses alone tell.
#[must_use]
pub fn leads_back(listen: SocketAddr, to: &ServerAddress) -> bool {
    let (ips, port) = match to {
        ServerAddress::Socket(address) => (vec![address.ip().to_canonical()], address.port()),
        ServerAddress::Name(name, port) if name.eq_ignore_ascii_case("localhost") => {
            (vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], *port)
        }
        ServerAddress::Name(..) | ServerAddress::Unix(_) => return false,
    };
    let is_own = |ip: IpAddr| {
        // Linux takes "all addresses" for this machine where a connection is made.
        let ip = match ip {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let is_all = listen.ip().is_unspecified() && listen.is_ipv4() == ip.is_ipv4();
        ip == listen.ip() || (is_all && ip.is_loopback())
    };
    port == listen.port() && ips.into_iter().any(is_own)
}
