//! The place of a client: at an address, or at the other end of a Unix socket, whose clients have none.
//!
//! In limits, rates and balance all clients of Unix sockets are one client. No network holds it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The place of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// At this address and port. Port 0: its port is not known.
    Ip(SocketAddr),
    /// At the other end of a Unix socket.
    Unix,
}

/// The place of a client, without its port: limits tell clients apart by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientHost {
    /// At this address.
    Ip(IpAddr),
    /// At the other end of a Unix socket.
    Unix,
}

impl ClientAddress {
    /// The same without its port.
    #[must_use]
    pub fn host(self) -> ClientHost {
        match self {
            Self::Ip(address) => ClientHost::Ip(address.ip()),
            Self::Unix => ClientHost::Unix,
        }
    }

    /// Its address and port, if it has these.
    #[must_use]
    pub fn socket(self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(address),
            Self::Unix => None,
        }
    }

    /// Its port, if that is known.
    #[must_use]
    pub fn port(self) -> Option<u16> {
        self.socket().map(|address| address.port()).filter(|port| *port > 0)
    }
}

impl ClientHost {
    /// The address, if it has one.
    #[must_use]
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) => Some(address),
            Self::Unix => None,
        }
    }

    /// The same; an IPv4 address that is written as IPv6 is IPv4.
    #[must_use]
    pub fn to_canonical(self) -> Self {
        match self {
            Self::Ip(address) => Self::Ip(address.to_canonical()),
            Self::Unix => Self::Unix,
        }
    }

    /// The network that counts as one client: one subscriber has as many addresses as fit into a /64.
    #[must_use]
    pub fn network(self) -> Self {
        match self.to_canonical() {
            Self::Ip(IpAddr::V6(address)) => {
                Self::Ip(IpAddr::V6((address.to_bits() >> 64 << 64).into()))
            }
            client => client,
        }
    }
}

/// As kernel's `accept` has it: none is a client of a Unix socket.
impl From<Option<SocketAddr>> for ClientAddress {
    fn from(address: Option<SocketAddr>) -> Self {
        address.map_or(Self::Unix, Self::Ip)
    }
}

impl From<SocketAddr> for ClientAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl From<IpAddr> for ClientHost {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(formatter),
            Self::Unix => formatter.write_str(UNIX),
        }
    }
}

impl fmt::Display for ClientHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(formatter),
            Self::Unix => formatter.write_str(UNIX),
        }
    }
}

/// As nginx writes it.
const UNIX: &str = "unix:";
