//! The way to the server: its addresses, and a TCP connection to one of them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};

use super::failure::Failure;
use super::target::Target;

/// Why there is nothing to say about a server.
#[derive(Debug)]
pub enum Unreachable {
    /// The name stands for no address.
    Unresolved {
        /// The name.
        host: String,
        /// The error of the system.
        error: io::Error,
    },
    /// No TCP connection.
    Refused {
        /// The target of the connection.
        target: Target,
        /// The address that was tried last.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// No handshake comes to an end, whatever is offered.
    NoTls {
        /// With whom.
        target: Target,
        /// The address.
        address: SocketAddr,
        /// The failure of the last one.
        failure: Box<Failure>,
    },
    /// This machine cannot look.
    Here(io::Error),
}

/// A server that answered, and how long that took: one round trip.
pub(super) struct Reached {
    pub(super) address: SocketAddr,
    pub(super) socket: TcpStream,
    pub(super) round_trip: Duration,
}

/// Connects to the first address that answers.
pub(super) async fn reach(target: &Target) -> Result<Reached, Unreachable> {
    let unresolved = |error| Unreachable::Unresolved { host: target.host.clone(), error };
    let found = timeout(CONNECT_MAX, lookup_host((target.host.as_str(), target.port))).await;
    let addresses = found.map_err(|_| unresolved(io::ErrorKind::TimedOut.into()))?;
    let mut last = unresolved(io::ErrorKind::NotFound.into());
    for address in addresses.map_err(unresolved)?.take(ADDRESSES_MAX) {
        match connect(address).await {
            Ok(reached) => return Ok(reached),
            Err(error) => {
                last = Unreachable::Refused { target: target.clone(), address, error };
            }
        }
    }
    Err(last)
}

/// Connects within the deadline.
pub(super) async fn connect(address: SocketAddr) -> io::Result<Reached> {
    let started = Instant::now();
    let connected = timeout(CONNECT_MAX, TcpStream::connect(address)).await;
    let socket = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    // Pieces are to leave as they are written.
    socket.set_nodelay(true)?;
    Ok(Reached { address, socket, round_trip: started.elapsed() })
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved { host, error } if error.kind() == io::ErrorKind::TimedOut => {
                write!(f, "nobody says within {} s which address {host} has", CONNECT_MAX.as_secs())
            }
            Self::Unresolved { host, error } => {
                write!(f, "{host} has no address ({error}); look at the spelling and at DNS")
            }
            Self::Refused { target, address, error } => match error.kind() {
                io::ErrorKind::ConnectionRefused => write!(
                    f,
                    "{target} ({address}) refuses connections: nothing listens there, or a firewall says so"
                ),
                io::ErrorKind::TimedOut => write!(
                    f,
                    "{target} ({address}) does not answer within {} s: no such machine, or a firewall drops what is sent",
                    CONNECT_MAX.as_secs()
                ),
                _ => write!(f, "no connection to {target} ({address}): {error}"),
            },
            Self::NoTls { target, address, failure } if **failure == Failure::NotTls => write!(
                f,
                "{target} ({address}) does not answer in TLS; is it a port for plain HTTP, or for STARTTLS first?"
            ),
            Self::NoTls { target, address, failure } => write!(
                f,
                "{target} ({address}) takes connections, and no TLS 1.2 or 1.3 handshake comes to its end: {failure}"
            ),
            Self::Here(error) => write!(f, "this machine cannot look: {error}"),
        }
    }
}

impl std::error::Error for Unreachable {}

/// For a name, and for each connection.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A name may have any number of addresses.
const ADDRESSES_MAX: usize = 4;
