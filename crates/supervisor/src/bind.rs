//! Listening sockets: one per worker and address, so that the kernel spreads connections.
//!
//! A reload keeps the sockets of the addresses that stay: no connection waiting in one is lost.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use kettle_config::{Addresses, Config, Diagnostic, Listener, ListenerKind};
use kettle_kernel::{keeper, socket};
use socket2::{Domain, Socket, Type};

use super::port_owner::port_owner;

/// The sockets of one configured address.
#[derive(Clone, Debug)]
pub struct BoundAddress {
    configured: SocketAddr,
    /// What the kernel bound: it chooses the port if port 0 is configured.
    pub actual: SocketAddr,
    /// One for each worker.
    pub sockets: Vec<Arc<TcpListener>>,
}

#[cfg(test)]
impl BoundAddress {
    /// One that no worker listens on.
    pub fn without_sockets(address: SocketAddr) -> Self {
        Self { configured: address, actual: address, sockets: Vec::new() }
    }
}

/// Binds every address of the configuration that is not held already, and listens on none: who connected would be reset if the
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
    let kept: HashMap<SocketAddr, &BoundAddress> =
        held.iter().rev().map(|held| (held.configured, held)).collect();
    // An address that our own sockets give up is not tested: they still hold it. One that stays is tested against, since both must
    // fit at the next start.
    let stay: HashSet<SocketAddr> = config.listeners.iter().map(|it| it.address.value).collect();
    let given_up = held.iter().filter(|held| !stay.contains(&held.configured));
    let mut own = Addresses::default();
    for address in given_up.map(|held| &held.actual).chain(leaving) {
        own.add(*address, ());
    }
    for listener in &config.listeners {
        let address = listener.address.value;
        if let Some(kept) = kept.get(&address) {
            bound.push(BoundAddress::clone(kept));
            continue;
        }
        let is_own = own.colliding(address).is_some();
        let is_free = if is_own { Ok(()) } else { refuse_used_port(address) };
        match is_free.and_then(|()| bind_address(address, workers)) {
            Ok(sockets) => bound.push(sockets),
            Err(error) => diagnostics.push(diagnostic(config, listener, &error)),
        }
    }
    if diagnostics.is_empty() { Ok(bound) } else { Err(diagnostics) }
}

/// Listens on every address: at a start at once, before another server takes a port that nobody listens on.
///
/// # Errors
///
/// Returns one diagnostic for each address that cannot be listened on.
pub fn listen(config: &Config, bound: &[BoundAddress]) -> Result<(), Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    for (listener, address) in config.listeners.iter().zip(bound) {
        let mut sockets = address.sockets.iter();
        if let Err(error) =
            sockets.try_for_each(|it| socket::set_backlog(it.as_fd(), listener.backlog))
        {
            diagnostics.push(diagnostic(config, listener, &error));
        }
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// Listens, and sets what sockets that were held before can be told anew, so this belongs to a commit: how many may wait in them, and
/// what accepted ones inherit.
pub fn configure(config: &Config, bound: &[BoundAddress]) {
    for diagnostic in listen(config, bound).err().into_iter().flatten() {
        tracing::error!("{diagnostic}");
    }
    for (listener, address) in config.listeners.iter().zip(bound) {
        for socket in &address.sockets {
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

/// How long the kernel sends to a client that acknowledges nothing, where it is to ask for those that are silent. One that only
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
    Ok(BoundAddress { configured: address, actual, sockets })
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

fn diagnostic(config: &Config, listener: &Listener, error: &io::Error) -> Diagnostic {
    let address = listener.address.value;
    let (message, help) = explain(address, error);
    config.diagnostic(listener.address.at, &address.to_string(), message, Some(help))
}

/// What went wrong and what to do next.
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
        // What the keeper says has words of its own.
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
