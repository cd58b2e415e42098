//! Addresses that collide, and servers of backends that are listeners' own.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::diagnostic::Help;
use crate::located::Located;
use crate::model::{
    Backend, BackendServer, Config, ListenAddress, Listener, ListenerKind, Reach, Route,
    ServerAddress,
};
use crate::read::Reader;

/// The advice about an address that is taken.
const REMOVE_OR_MOVE: &str = "remove one of both, or write another port";

/// Records missing and repeated listeners.
pub(crate) fn check(config: &Config, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    if config.listeners.is_empty() && !reader.is_written("listener") {
        let message = "no listener is declared, so nothing could connect".to_owned();
        let help = "[[listener]] with address = \"0.0.0.0:443\"";
        reader.report_missing(message, Help::write(help));
    }
    check_collisions(config, reader);
    for (index, listener) in config.listeners.iter().enumerate() {
        check_trust(index, listener, reader);
        match &listener.address.value {
            ListenAddress::Socket(_) => refuse_of_unix(index, reader),
            ListenAddress::Unix(_) => check_unix(index, listener, reader),
        }
    }
    check_ways_out(config, reach, reader);
    check_metrics(config, reader);
}

fn check_collisions(config: &Config, reader: &mut Reader<'_>) {
    let mut taken = Addresses::default();
    let mut paths: HashMap<&Path, &Located<ListenAddress>> = HashMap::new();
    for listener in config.listeners.iter().filter(|listener| listener.address.at.is_written()) {
        let address = &listener.address;
        let (other, advice) = match &address.value {
            ListenAddress::Socket(socket) => {
                let other = taken.same(*socket);
                if other.is_none() {
                    taken.add(*socket, address);
                }
                (other, REMOVE_OR_MOVE)
            }
            ListenAddress::Unix(path) => {
                (paths.insert(path, address), "remove one of both, or write another path")
            }
        };
        if let Some(other) = other {
            reader.report_located(address, is_taken(other, reader), Help::act(advice));
        }
    }
    if let (Some(admin), Some(place)) = (&config.admin.socket, reader.place("admin.socket"))
        && let Some(other) = paths.get(admin.as_path())
    {
        reader.report_at(&place, is_taken(other, reader), Help::act("write another path"));
    }
}

/// Rights belong to files, and clients with addresses are believed by these.
fn refuse_of_unix(index: usize, reader: &mut Reader<'_>) {
    for name in ["mode", "owner", "group"] {
        if let Some(place) = reader.place(&format!("listener.{index}.{name}")) {
            let message = format!("`{name}` is about the file of a Unix socket, and this is none");
            let help = "remove it, or write address = \"unix:/run/kettle/app.sock\"";
            reader.report_at(&place, message, Help::act(help));
        }
    }
}

/// Clients of a Unix socket have no address.
fn check_unix(index: usize, listener: &Listener, reader: &mut Reader<'_>) {
    if !listener.accept_proxy.networks.is_empty()
        && let Some(place) = reader.place(&format!("listener.{index}.accept_proxy"))
    {
        let message = "nobody connects to a Unix socket from a network".to_owned();
        reader.report_at(&place, message, Help::write("[\"unix:\"]"));
    }
}

/// A connection that a listener carries must not come in at it again, for ever. If TLS ends and begins anew it could be for
/// another site.
fn check_ways_out(config: &Config, reach: &Reach<'_>, reader: &mut Reader<'_>) {
    let mut back: HashMap<ListenAddress, Vec<(&Backend, &BackendServer)>> = HashMap::new();
    for backend in &config.backends {
        for server in backend.servers.iter().filter(|server| server.address.at.is_written()) {
            for address in ways_in(&server.address) {
                back.entry(address).or_default().push((backend, server));
            }
        }
    }
    for listener in config.listeners.iter().filter(|listener| listener.address.at.is_written()) {
        let Some(back) = back.get(&plain(&listener.address)) else { continue };
        let reached = reach.sites(listener).flat_map(|(_, site)| site.backends());
        let named: HashSet<_> =
            listener.backends().chain(reached).map(|name| name.value.as_str()).collect();
        let passed = passed_on(listener, reach);
        let is_tls = matches!(listener.kind, ListenerKind::Tls(_));
        for (backend, server) in back {
            let name = backend.name.value.as_str();
            let has_tls = backend.tls.is_some();
            let carries = match () {
                () if named.contains(name) && !(is_tls && has_tls) => "carries connections",
                () if passed.contains(name) && !has_tls => "passes requests on",
                () => continue,
            };
            let line = reader.line(listener.address.at.line);
            let message = format!(
                "{line} listens on {} and {carries} to this server: they would come back",
                listener.address
            );
            let help = Help::act("write the address of another server, or another port");
            reader.report_located(&server.address, message, help);
        }
    }
}

/// The backends that get requests of a listener without TLS under the names that clients ask for: to whom these lead there, they
/// lead again.
fn passed_on<'c>(listener: &Listener, reach: &Reach<'c>) -> HashSet<&'c str> {
    if listener.http().is_none() {
        return HashSet::new();
    }
    let routes = reach.served(listener).into_iter().flat_map(|(_, site)| &site.routes);
    let asked = |route: &'c Route| {
        let own = route.backend.as_ref().filter(|_| route.backend_host.is_none());
        let auth = route.forward_auth.as_ref().filter(|it| it.backend_host.is_none());
        own.into_iter().chain(auth.map(|it| &it.backend))
    };
    routes.flat_map(asked).map(|name| name.value.as_str()).collect()
}

/// Only what reads requests can read who they are for.
fn check_trust(index: usize, listener: &Listener, reader: &mut Reader<'_>) {
    let is_unix = listener.address.unix().is_some();
    for (name, believed) in
        [("accept_proxy", &listener.accept_proxy), ("trusted_proxies", &listener.trusted_proxies)]
    {
        if believed.unix
            && !is_unix
            && let Some(place) = reader.place(&format!("listener.{index}.{name}"))
        {
            let message = "\"unix:\" is who connects to a Unix socket, and this is none".to_owned();
            reader.report_at(&place, message, Help::act("write networks, or remove it"));
        }
    }
    let reads = listener.serves() || matches!(listener.kind, ListenerKind::Redirect(_));
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
    let mut taken = Addresses::default();
    for listener in &config.listeners {
        if let Some(socket) = listener.address.socket() {
            taken.add(socket, &listener.address);
        }
    }
    if let Some(other) = taken.colliding(listen) {
        reader.report_at(&place, is_taken(other, reader), Help::act(REMOVE_OR_MOVE));
    }
}

fn is_taken(other: &Located<ListenAddress>, reader: &Reader<'_>) -> String {
    format!("{} listens on {other} already", reader.line(other.at.line))
}

/// True if a socket without `SO_REUSEPORT` has one of two addresses for itself: they are the same, or one is the other's port on
/// all addresses of the machine. IPv6 sockets take IPv6 only. Two listeners may stand beside each other so: Linux gives a connection
/// to the one that names its address (`__inet_lookup_listener`).
#[must_use]
pub fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let are_on_one_port = (one.port(), one.is_ipv4()) == (other.port(), other.is_ipv4());
    one == other || are_on_one_port && (one.ip().is_unspecified() || other.ip().is_unspecified())
}

/// Addresses among which those are found that [`collide`] with another: there may be ten thousand. Of several the first is found.
pub struct Addresses<T> {
    each: HashMap<SocketAddr, T>,
    /// By port and family: the first that names an address, and the first that is all addresses of the machine.
    of_port: HashMap<(u16, bool), (Option<T>, Option<T>)>,
}

impl<T> Default for Addresses<T> {
    fn default() -> Self {
        Self { each: HashMap::new(), of_port: HashMap::new() }
    }
}

impl<T: Copy> Addresses<T> {
    /// Adds one.
    pub fn add(&mut self, address: SocketAddr, value: T) {
        self.each.entry(address).or_insert(value);
        let of_port = (address.port(), address.is_ipv4());
        let (named, all) = self.of_port.entry(of_port).or_insert((None, None));
        if address.ip().is_unspecified() { all } else { named }.get_or_insert(value);
    }

    /// Returns the listener that has the same address.
    #[must_use]
    pub fn same(&self, address: SocketAddr) -> Option<T> {
        self.each.get(&address).copied()
    }

    /// Returns the listener that collides with this address and has another one.
    #[must_use]
    pub fn beside(&self, address: SocketAddr) -> Option<T> {
        let (named, all) = self.of_port.get(&(address.port(), address.is_ipv4()))?;
        if address.ip().is_unspecified() { *named } else { *all }
    }

    /// Returns the listener that collides with this address.
    #[must_use]
    pub fn colliding(&self, address: SocketAddr) -> Option<T> {
        self.same(address).or_else(|| self.beside(address))
    }
}

/// True if connections to a server would come in at this address of ours, as far as the addresses alone tell.
#[must_use]
pub fn leads_back(listen: SocketAddr, to: &ServerAddress) -> bool {
    ways_in(to).contains(&plain(&listen.into()))
}

/// The addresses at which connections to a server would come in if they were ours.
fn ways_in(to: &ServerAddress) -> Vec<ListenAddress> {
    let (ips, port) = match to {
        ServerAddress::Socket(address) => (vec![address.ip().to_canonical()], address.port()),
        ServerAddress::Name(name, port) if name.eq_ignore_ascii_case("localhost") => {
            (vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], *port)
        }
        ServerAddress::Unix(path) => return vec![ListenAddress::Unix(path.clone())],
        ServerAddress::Name(..) => return Vec::new(),
    };
    let ways = ips.into_iter().flat_map(|ip| {
        let (all, loopback): (IpAddr, IpAddr) = match ip {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()),
        };
        // Linux takes "all addresses" for this machine where a connection is made.
        let ip = if ip.is_unspecified() { loopback } else { ip };
        std::iter::once(ip).chain(ip.is_loopback().then_some(all))
    });
    ways.map(|ip| SocketAddr::new(ip, port).into()).collect()
}

/// Without what only an IPv6 address has besides.
fn plain(address: &ListenAddress) -> ListenAddress {
    match address {
        ListenAddress::Socket(address) => SocketAddr::new(address.ip(), address.port()).into(),
        unix @ ListenAddress::Unix(_) => unix.clone(),
    }
}
