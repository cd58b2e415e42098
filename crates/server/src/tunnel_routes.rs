//! The backends of a listener's connections, and the way to them.

use std::sync::Arc;

use kettle_config::{ListenAddress, Site, StartTls, Truncation, TunnelPathChoice};
use kettle_handlers::site_names::add_names;
use kettle_runtime::access_log::Destination;
use kettle_tls::names::Names;
use kettle_tls::{Acceptors, Session};
use kettle_upstream::Upstream;

use crate::relay::RelaySettings;

/// The backends of the connections of one listener.
pub struct TunnelRoutes {
    /// The address at which it listens.
    pub address: ListenAddress,
    /// The bytes before anybody knows where a connection goes.
    pub start: TunnelStart,
    by_name: Names<Arc<TunnelAlpnRoutes>>,
    others: TunnelAlpnRoutes,
}

/// The backends of the connections that ask for one name.
#[derive(Default)]
pub struct TunnelAlpnRoutes {
    /// Those that offer a protocol (ALPN): the first that is offered decides.
    pub by_alpn: Vec<(Box<[u8]>, Arc<TunnelSettings>)>,
    /// All others.
    pub others: Option<Arc<TunnelSettings>>,
}

/// The bytes before anybody knows where a connection goes.
pub enum TunnelStart {
    /// A handshake, and perhaps a dialogue before it.
    Tls {
        /// The acceptors that make it.
        acceptors: Acceptors,
        /// The dialogue.
        starttls: StartTls,
    },
    /// Nothing.
    Tcp,
    /// A look at the ClientHello.
    Passthrough,
}

/// The way connections are carried to one backend. All that a tunnel keeps of a configuration.
pub struct TunnelSettings {
    /// The upstream that gets them, with the TLS that is spoken there.
    pub upstream: Arc<Upstream>,
    client_starttls: StartTls,
    relay: RelaySettings,
    log: Destination,
}

impl TunnelRoutes {
    /// Routes of a listener that lead nowhere yet, but for connections that `others` takes: those without a name, or with
    /// one that nobody has.
    pub fn new(address: ListenAddress, start: TunnelStart, others: TunnelAlpnRoutes) -> Self {
        Self { address, start, by_name: Names::default(), others }
    }

    /// Says where connections for the names of a site go. A name that has its routes keeps them.
    pub fn add(&mut self, site: &Site, routes: TunnelAlpnRoutes) {
        add_names(&mut self.by_name, site, &Arc::new(routes));
    }

    /// Returns the backends of connections whose clients ask for this name.
    pub fn find(&self, server_name: Option<&str>) -> &TunnelAlpnRoutes {
        let named = server_name.and_then(|name| self.by_name.find(name));
        named.map_or(&self.others, |own| own.value)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<TunnelSettings>> {
        let routes = self.by_name.values().map(|routes| &**routes).chain([&self.others]);
        routes.flat_map(|routes| {
            routes.by_alpn.iter().map(|(_, settings)| settings).chain(&routes.others)
        })
    }

    /// True if a client that made this session, or none, would be let in as it was.
    pub(crate) fn lets_in(&self, session: Option<&Session>) -> bool {
        match (&self.start, session) {
            (TunnelStart::Tls { acceptors, .. }, Some(session)) => acceptors.takes(session),
            (TunnelStart::Tcp | TunnelStart::Passthrough, None) => true,
            _ => false,
        }
    }

    /// The way of a client that was on another one to the same backend when these came.
    pub(crate) fn successor_of(&self, before: &TunnelSettings) -> Option<&Arc<TunnelSettings>> {
        let is_same = |settings: &&Arc<TunnelSettings>| {
            settings.upstream.backend.is_successor_of(&before.upstream.backend)
                && settings.client_starttls == before.client_starttls
        };
        let mut same = self.all().filter(is_same);
        let first = same.next();
        // Another site's log is not for its line.
        let likest = same.find(|settings| settings.log == before.log);
        let likest = first.filter(|it| it.log == before.log).or(likest);
        likest.or(first)
    }
}

impl TunnelAlpnRoutes {
    /// Returns the backend of a connection whose client offers these protocols.
    pub fn find<'a>(
        &self,
        offered: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<&Arc<TunnelSettings>> {
        let is_offered = |protocol: &[u8]| offered.clone().any(|it| it == protocol);
        let own = self.by_alpn.iter().find(|(protocol, _)| is_offered(protocol));
        own.map(|(_, settings)| settings).or(self.others.as_ref())
    }

    /// True if they lead anywhere.
    pub fn is_empty(&self) -> bool {
        self.by_alpn.is_empty() && self.others.is_none()
    }
}

impl TunnelSettings {
    /// Carries connections to a backend.
    pub fn new(
        upstream: Arc<Upstream>,
        path: TunnelPathChoice,
        crossover: u64,
        truncation: Truncation,
    ) -> Self {
        let relay = RelaySettings { path, crossover, truncation };
        let client_starttls = StartTls::Off;
        let log = Destination::Common;
        Self { upstream, client_starttls, relay, log }
    }

    /// The same for clients that have had this dialogue before TLS.
    #[must_use]
    pub fn behind_starttls(self, client_starttls: StartTls) -> Self {
        Self { client_starttls, ..self }
    }

    /// The same with another log than that of the process.
    #[must_use]
    pub fn logged_to(self, log: Destination) -> Self {
        Self { log, ..self }
    }

    /// Which log has their lines.
    pub(crate) fn log(&self) -> &Destination {
        &self.log
    }

    /// Returns the settings that the relay has to know.
    pub(crate) fn relay(&self) -> &RelaySettings {
        &self.relay
    }

    /// The dialogue in which the client has had a server's greeting already.
    pub(crate) fn greeted_in(&self) -> Option<StartTls> {
        Some(self.client_starttls).filter(|it| !matches!(it, StartTls::Off | StartTls::Postgres))
    }

    /// The dialogue before TLS to the servers.
    pub(crate) fn starttls(&self) -> StartTls {
        self.upstream.backend.settings.starttls()
    }
}
