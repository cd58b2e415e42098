//! The operator's view of servers, and the order to drain one.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::state::Standing;
use super::{Backend, Backends, Server};

/// A backend as `kettle ctl backends` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendStatus {
    /// Its name.
    pub name: String,
    /// The number of connections that wait for a slot.
    pub waiting: usize,
    /// Its servers, in the order of the configuration.
    pub servers: Vec<ServerStatus>,
}

/// A server as `kettle ctl backends` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its address, as the configuration says.
    pub address: String,
    /// Its addresses now: a name may have several.
    pub addresses: Vec<SocketAddr>,
    /// The health: whether it gets connections.
    pub health: Health,
    /// True if it gets connections only when no other server can be reached.
    pub is_backup: bool,
    /// Its connections now.
    pub connections: u32,
    /// The most it may have.
    pub connections_max: Option<u32>,
    /// The reason that was last wrong with it, also where it is well by now.
    pub last_failure: Option<String>,
}

/// The health of a server: whether it gets connections, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It does.
    Up,
    /// Checks say that it is down.
    Down,
    /// Too many connects failed.
    Failing,
    /// The operator wants none there.
    Draining,
    /// Its name is being looked up for the first time.
    Resolving,
    /// Its name has no address.
    NoAddress,
}

impl Health {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Failing => "failing",
            Self::Draining => "draining",
            Self::Resolving => "resolving",
            Self::NoAddress => "no_address",
        }
    }
}

/// No server is called so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownServer;

impl fmt::Display for UnknownServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("there is no such server: write BACKEND/SERVER")
    }
}

impl std::error::Error for UnknownServer {}

impl Backends {
    /// Returns the state of the backends and their servers, in the order of the configuration.
    #[must_use]
    pub fn status(&self) -> Vec<BackendStatus> {
        let status = |backend: &Arc<Backend>| BackendStatus {
            name: backend.name.to_string(),
            waiting: backend.waiting(),
            servers: backend.status(),
        };
        self.iter().map(status).collect()
    }

    /// Lets a server have no new connections, or have them again. It stays so over reloads.
    ///
    /// # Errors
    /// [`UnknownServer`].
    pub fn set_draining(
        &self,
        backend: &str,
        server: &str,
        is_draining: bool,
    ) -> Result<(), UnknownServer> {
        let backend = self.find(backend).ok_or(UnknownServer)?;
        let mut named = backend.servers.iter().filter(|it| *it.name == *server).peekable();
        named.peek().ok_or(UnknownServer)?;
        named.for_each(|it| it.state.set_draining(is_draining));
        backend.shared.queue.call_front();
        Ok(())
    }
}

impl Backend {
    /// Returns the state of its servers, in the order of the configuration.
    #[must_use]
    pub fn status(&self) -> Vec<ServerStatus> {
        let now = Instant::now();
        self.servers.iter().map(|server| server.status(now)).collect()
    }
}

impl Server {
    fn status(&self, now: Instant) -> ServerStatus {
        ServerStatus {
            name: self.name.to_string(),
            address: self.address.to_string(),
            addresses: self.state.addresses().to_vec(),
            health: self.health(now),
            is_backup: self.is_backup,
            connections: self.state.connections(),
            connections_max: self.connections_max,
            last_failure: self.state.last_failure().map(|failure| failure.detail),
        }
    }

    /// Returns whether it gets connections, or why not.
    pub(super) fn health(&self, now: Instant) -> Health {
        match self.state.standing(now) {
            Standing::In => Health::Up,
            Standing::Out { .. } if self.state.is_down() => Health::Down,
            Standing::Out { .. } => Health::Failing,
            Standing::Pending => Health::Resolving,
            Standing::Unusable if self.state.is_draining() => Health::Draining,
            Standing::Unusable => Health::NoAddress,
        }
    }
}
