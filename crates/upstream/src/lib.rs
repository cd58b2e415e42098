//! Requests to the servers of backends, as a client of HTTP/1.1 or FastCGI: a connection, kept or new, one request and its response.
//!
//! Nothing here knows a client of ours: what is fetched belongs to its caller, which may be a task of its own. A
//! connection is kept for the next request only if the response was read to its end, its length was beyond doubt, and
//! nothing came behind it; it counts against its server's limits only while it is in use.
//!
//! ```text
//! fetch(&upstream, &pool, &request, &mut trace, |_| {}).await?  ─►  UpstreamResponse { head, body }
//! while let Some(bytes) = response.body.chunk().await? { … }
//! ```
#![forbid(unsafe_code)]

mod application;
pub mod backend;
mod body;
mod error;
mod fetch;
mod in_flight;
mod link;
mod origin;
mod outgoing;
mod pool;
mod retry;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kettle_runtime::access_log::UpstreamEntry;
use kettle_tls::connector::Connector;

use crate::backend::{Backend, Backends, Failure, Outcome, Server};

pub use body::{UpstreamBody, UpstreamResponse};
pub use error::UpstreamError;
pub use fetch::{Answered, Sent, Tries, fetch};
pub use in_flight::InFlight;
pub use link::Link;
pub use link::UNTAKEN_BYTES_MAX;
pub use origin::BodyCoding;
pub use outgoing::{CONNECTION_OPTIONS_MAX, binds_connection};
pub use outgoing::{OutgoingRequest, Reuse};
pub use pool::{Pool, SharedRequest};
pub use retry::Retries;

/// A backend that requests are passed to, and how TLS is spoken to its servers.
pub struct Upstream {
    /// The backend.
    pub backend: Arc<Backend>,
    /// One for each server, in their order; none where the servers are spoken to in plain text.
    connectors: Option<Arc<[Connector]>>,
}

/// The backends of a configuration as routes see them, by their names.
#[derive(Default)]
pub struct Upstreams(HashMap<String, Arc<Upstream>>);

/// The facts known of a fetch, for the log, whatever comes of it.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The backend.
    pub backend: Option<Arc<Backend>>,
    /// The server that was asked last.
    pub server: Option<Arc<Server>>,
    /// The status that came from there, before anything was made of it.
    pub status: Option<u16>,
    /// The time that it took to connect; nothing where the connection was there already.
    pub connect_time: Option<Duration>,
    /// The time from the request to the first byte of its response.
    pub first_byte: Option<Duration>,
    /// True if the connection had served a request before.
    pub is_reused: bool,
    /// The number of times the request was sent again.
    pub retries: u32,
    /// Why there is no response of a server's.
    pub failure: Option<&'static str>,
}

impl Trace {
    /// The same for the log.
    #[must_use]
    pub fn entry(&self) -> UpstreamEntry<'_> {
        UpstreamEntry {
            backend: self.backend.as_ref().map(|backend| &*backend.name),
            server: self.server.as_ref().map(|server| &*server.name),
            status: self.status,
            connect_time: self.connect_time,
            first_byte: self.first_byte,
            is_reused: self.is_reused,
            retries: self.retries,
            failure: self.failure,
        }
    }
}

impl Upstream {
    /// A backend, with one connector for each server if TLS is spoken to them.
    #[must_use]
    pub fn new(backend: Arc<Backend>, connectors: Option<Arc<[Connector]>>) -> Self {
        Self { backend, connectors }
    }

    /// Returns the connector that speaks TLS to one of the servers, if it is spoken.
    ///
    /// # Errors
    /// TLS is spoken here, and nothing says how to this server: never in plain text for that.
    pub fn connector(&self, server: &Server) -> Result<Option<&Connector>, Failure> {
        let Some(connectors) = &self.connectors else { return Ok(None) };
        let servers = &self.backend.servers;
        let index = servers.iter().position(|known| std::ptr::eq(known.as_ref(), server));
        let connector = index.and_then(|index| connectors.get(index)).map(Some);
        connector.ok_or_else(|| Failure::new(Outcome::Tls, "the server is none of this backend's"))
    }

    /// True if connections are kept.
    #[must_use]
    pub fn keeps_connections(&self) -> bool {
        self.backend.settings.connections_kept() > 0
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Upstream").field(&self.backend.name).finish()
    }
}

impl Upstreams {
    /// Those of all backends, with the connectors of those that speak TLS.
    #[must_use]
    pub fn new(backends: &Backends, connectors: &HashMap<String, Arc<[Connector]>>) -> Self {
        let upstream = |backend: &Arc<Backend>| {
            let connectors = connectors.get(&*backend.name).cloned();
            let upstream = Upstream::new(Arc::clone(backend), connectors);
            (backend.name.to_string(), Arc::new(upstream))
        };
        Self(backends.iter().map(upstream).collect())
    }

    /// The one of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.0.get(name)
    }

    /// Returns the connector that speaks TLS to a server of these backends.
    pub fn connector(&self, backend: &Backend, server: &Server) -> Option<&Connector> {
        let upstream = self.find(&backend.name)?;
        upstream.connector(server).ok()?.filter(|_| std::ptr::eq(&*upstream.backend, backend))
    }
}
