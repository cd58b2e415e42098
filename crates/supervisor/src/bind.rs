//! Listening sockets: one per worker and address, so that the kernel spreads connections. Of a Unix socket there is one for all
//! workers, and so it is of a socket that was there at the start.
//!
//! A reload keeps the sockets of the addresses that stay: no connection waiting in one is lost.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use kettle_config::{Addresses, Config, Diagnostic, ListenAddress, Listener, ListenerKind};
use kettle_kernel::socket::inherited::Inherited;
use kettle_kernel::socket::unix::{Place, Rights};
use kettle_kernel::{keeper, socket};
use kettle_server::setup::Sharing;
use socket2::{Domain, Socket, Type};

use super::port_owner::port_owner;
use super::prepare::socket_rights;
pub use inherited::inherited;

mod inherited;
mod unix;

/// The sockets of one configured address.
#[derive(Clone, Debug)]
pub struct BoundAddress {
    configured: ListenAddress,
    /// The address that the kernel bound: it chooses the port if port 0 is configured.
    pub actual: ListenAddress,
    /// One for each worker.
    pub sockets: Vec<Arc<TcpListener>>,
    held: Held,
}

/// The way it is held.
#[derive(Clone, Debug)]
enum Held {
    /// Each worker has a socket of its own.
    Ports,
    /// They share one, whose file goes with the last who holds it.
    Unix { place: Arc<Place>, rights: Rights, workers: Arc<AtomicUsize> },
    /// They share one that was there at the start.
    Inherited,
}

impl BoundAddress {
    /// Returns which workers accept from its sockets.
    pub fn sharing(&self) -> Sharing {
        match &self.held {
            Held::Ports => Sharing::Own,
            Held::Unix { workers, .. } => Sharing::Shared(Arc::clone(workers)),
            Held::Inherited => Sharing::Inherited,
        }
    }

    /// The sockets behind those of the workers: one where they share it.
    fn told(&self) -> &[Arc<TcpListener>] {
        match self.held {
            Held::Ports => &self.sockets,
            Held::Unix { .. } | Held::Inherited => self.sockets.get(..1).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
impl BoundAddress {
    /// One that no worker listens on.
    pub fn without_sockets(address: ListenAddress) -> Self {
        let sockets = Vec::new();
        let held = Held::Ports;
        Self { configured: address.clone(), actual: address, sockets, held }
    }
}

/// Binds every address of a configuration at the start, but for those that the process was started with, and listens at once,
/// before another server takes a port that nobody listens on.
///
/// # Errors
///
/// As for [`bind`], and one diagnostic for each address that cannot be listened on.
pub fn bind_first(
    config: &Config,
    workers: usize,
    inherited: Vec<Inherited>,
) -> Result<Vec<BoundAddress>, Vec<Diagnostic>> {
    let bound = bind(config, workers, &inherited::held(inherited, workers), &[])?;
    match listen(config, &bound) {
        diagnostics if diagnostics.is_empty() => Ok(bound),
        diagnostics => Err(diagnostics),
    }
}

/// Binds every address of the configuration that is not held already, and listens on no port: who connected would be reset if the
/// configuration came to nothing. The result is in the order of `config.listeners`; what `held` has and it has not may be closed.
/// Workers may not have left those in `leaving` yet.
///
/// # Errors
///
/// Returns one diagnostic for each address that cannot be bound.
pub fn bind(
    config: &Config,
    workers: usize,
    held: &[BoundAddress],
    leaving: &[SocketAddr],
) -> Result<Vec<BoundAddress>, Vec<Diagnostic>> {
    let mut bound = Vec::with_capacity(config.listeners.len());
    let mut diagnostics = Vec::new();
    let kept: HashMap<&ListenAddress, &BoundAddress> =
        held.iter().rev().map(|held| (&held.configured, held)).collect();
    // An address that our own sockets give up is not tested: they still hold it. Of those that stay the same one is tested, since
    // both must fit at the next start; one that is all addresses of its port fits beside each of them.
    let stay: HashSet<&ListenAddress> =
        config.listeners.iter().map(|it| &it.address.value).collect();
    let mut given_up = Addresses::default();
    let mut staying = Addresses::default();
    leaving.iter().for_each(|address| given_up.add(*address, ()));
    for held in held {
        let kind = if stay.contains(&held.configured) { &mut staying } else { &mut given_up };
        held.actual.socket().into_iter().for_each(|address| kind.add(address, ()));
    }
    let is_own = |address: SocketAddr| {
        let is_beside = staying.beside(address).is_some() && staying.same(address).is_none();
        is_beside || given_up.colliding(address).is_some()
    };
    // All are tested before any is bound, which the others could not be told from.
    let is_free = |listener: &Listener| match listener.address.socket() {
        Some(address) if !kept.contains_key(&listener.address.value) && !is_own(address) => {
            refuse_used_port(address)
        }
        _ => Ok(()),
    };
    let free: Vec<io::Result<()>> = config.listeners.iter().map(is_free).collect();
    for (listener, is_free) in config.listeners.iter().zip(free) {
        let kept = kept.get(&listener.address.value).map(|kept| BoundAddress::clone(kept));
        match bind_listener(config, listener, kept, workers, is_free) {
            Ok(address) => bound.push(address),
            Err(mistakes) => diagnostics.extend(mistakes),
        }
    }
    diagnostics.extend(inherited::left_over(config, held));
    if diagnostics.is_empty() { Ok(bound) } else { Err(diagnostics) }
}

/// Listens on every address. Returns one diagnostic for each that cannot be listened on.
fn listen(config: &Config, bound: &[BoundAddress]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (listener, address) in config.listeners.iter().zip(bound) {
        let mut sockets = address.told().iter();
        let told = sockets.try_for_each(|it| socket::set_backlog(it.as_fd(), listener.backlog));
        if let Err(error) = told {
            let named = &listener.address;
            let (message, help) = match &named.value {
                ListenAddress::Socket(address) => explain(*address, &error),
                ListenAddress::Unix(path) => unix::explain(path, &error),
            };
            diagnostics.push(config.diagnostic(named.at, &named.to_string(), message, Some(help)));
        }
    }
    diagnostics
}

fn bind_listener(
    config: &Config,
    listener: &Listener,
    kept: Option<BoundAddress>,
    workers: usize,
    is_free: io::Result<()>,
) -> Result<BoundAddress, Vec<Diagnostic>> {
    let refused = |(message, help)| {
        let address = &listener.address;
        vec![config.diagnostic(address.at, &address.to_string(), message, Some(help))]
    };
    match (&listener.address.value, kept) {
        (ListenAddress::Socket(_), Some(kept)) => Ok(kept),
        (ListenAddress::Socket(address), None) => {
            let made = is_free.and_then(|()| bind_address(*address, workers));
            made.map_err(|error| refused(explain(*address, &error)))
        }
        (ListenAddress::Unix(path), Some(mut kept)) => {
            if let Held::Unix { place, rights, .. } = &mut kept.held {
                *rights = socket_rights(config, listener)?;
                // Nobody finds the one that is held. If there can be no other, all else goes on, and the commit says so.
                if place.is_lost()
                    && let Ok(other) = unix::bind(path, *rights, listener.backlog, workers)
                {
                    return Ok(other);
                }
            }
            Ok(kept)
        }
        (ListenAddress::Unix(path), None) => {
            let rights = socket_rights(config, listener)?;
            let made = unix::bind(path, rights, listener.backlog, workers);
            made.map_err(|error| refused(unix::explain(path, &error)))
        }
    }
}

/// Listens, and sets what sockets that were held before can be told anew, so this belongs to a commit: how many may wait in them,
/// what accepted ones inherit, and who may connect.
pub fn configure(config: &Config, bound: &[BoundAddress]) {
    for diagnostic in listen(config, bound) {
        tracing::error!("{diagnostic}");
    }
    for (listener, address) in config.listeners.iter().zip(bound) {
        if let Held::Unix { place, rights, .. } = &address.held
            && let Err(error) = place.set_rights(rights)
        {
            let address = &address.actual;
            let message = match place.is_lost() {
                true => "nobody can connect any more: reload once its place is free",
                false => "who may connect cannot be changed: restart kettle",
            };
            tracing::warn!(%address, %error, "{message}");
        }
        if address.actual.socket().is_none() {
            continue;
        }
        for socket in address.told() {
            if let Err(error) = socket::keep_alive(socket.as_fd(), listener.keepalive) {
                tracing::warn!(%error, "whether clients are still there cannot be asked");
            }
            if let Err(error) =
                socket::bound_delivery(socket.as_fd(), delivery_limit(config, listener))
            {
                tracing::warn!(%error, "how long clients may acknowledge nothing cannot be bounded");
            }
        }
    }
}

/// The time the kernel sends to a client that acknowledges nothing, where it is to ask for those that are silent. One that only
/// takes nothing has `write_timeout` all the same, and in a tunnel its own time: tunnels look after lost clients themselves.
fn delivery_limit(config: &Config, listener: &Listener) -> Option<Duration> {
    let speaks_http = listener.serves() || matches!(listener.kind, ListenerKind::Redirect(_));
    let silence = listener.keepalive.filter(|_| speaks_http)?;
    Some(socket::lost_after(silence).max(config.limits.write_timeout))
}

fn bind_address(address: SocketAddr, workers: usize) -> io::Result<BoundAddress> {
    let first = socket::bind(address)?;
    let actual = first.local_addr()?;
    let mut sockets = vec![Arc::new(first)];
    for _ in 1..workers {
        sockets.push(Arc::new(socket::bind(actual)?));
    }
    let configured = address.into();
    let actual = actual.into();
    Ok(BoundAddress { configured, actual, sockets, held: Held::Ports })
}

/// With `SO_REUSEPORT` a second kettle of the same user would silently share the port, and each
/// would get half of the connections. Without it the kernel says that the port is taken.
fn refuse_used_port(address: SocketAddr) -> io::Result<()> {
    let domain = Domain::for_address(address);
    let trial = Socket::new(domain, Type::STREAM, None)?;
    trial.set_reuse_address(true)?;
    if domain == Domain::IPV6 {
        trial.set_only_v6(true)?;
    }
    keeper::bind(trial.as_fd(), address)
}

/// Says what went wrong and what to do next.
pub(super) fn explain(address: SocketAddr, error: &io::Error) -> (String, String) {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let owner = port_owner(port);
            let own = format!("(process {})", std::process::id());
            if owner.as_ref().is_some_and(|owner| owner.ends_with(&own)) {
                let message = format!(
                    "cannot listen on {address}: port {port} is in use by this server itself"
                );
                return (message, "name one of both, or restart kettle if this address is to take the place of another".to_owned());
            }
            let owner = owner.map_or(String::new(), |owner| format!(" by {owner}"));
            let message = format!("cannot listen on {address}: port {port} is in use{owner}");
            (message, format!("stop that program, or listen on another port than {port}"))
        }
        // A message of the keeper has words of its own.
        io::ErrorKind::PermissionDenied
            if port < FIRST_UNPRIVILEGED_PORT && error.raw_os_error().is_some() =>
        (
            format!("cannot listen on {address}: ports below 1024 need a permission"),
            "run `sudo setcap cap_net_bind_service=+ep \"$(command -v kettle)\"`, start kettle as \
             root with `[server] user`, or listen on a port from 1024 up, such as 8443"
                .to_owned(),
        ),
        io::ErrorKind::AddrNotAvailable => (
            format!("cannot listen on {address}: no network card of this machine has this address"),
            "choose one that `ip address` shows, or 0.0.0.0 for all of them".to_owned(),
        ),
        _ if error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error()) => (
            format!("cannot listen on {address}: IPv6 is turned off on this machine"),
            "listen on an IPv4 address such as 0.0.0.0".to_owned(),
        ),
        _ => (format!("cannot listen on {address}: {error}"), "choose another address".to_owned()),
    }
}

/// Below it, the kernel asks for `CAP_NET_BIND_SERVICE` (`net.ipv4.ip_unprivileged_port_start`).
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;
