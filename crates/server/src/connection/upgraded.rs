//! A connection that has changed to another protocol: from here on it is a tunnel to the server that agreed.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kettle_config::{Truncation, TunnelPathChoice, TxPathChoice};
use kettle_tls::stream::TlsStream;

use super::Connection;
use crate::backend::Connected;
use crate::relay::Side;
use crate::response::Upgraded;
use crate::tunnel::{ClientSide, Opened, Peers, Tunnel};
use crate::tunnel_routes::TunnelSettings;
use crate::upstream::{Link, Upstream};

/// What a tunnel is made of, but for its client's side.
pub(super) struct TunnelEnds {
    pub(super) settings: TunnelSettings,
    pub(super) peers: Peers,
    pub(super) connected: Connected<Opened>,
    /// The place among the requests of its client, until it ends.
    pub(super) in_use: Option<Rc<dyn fmt::Debug>>,
}

impl Connection {
    /// Carries what both sides say from now on, to its end. What the client said behind its request goes first.
    pub(super) async fn upgraded(
        self,
        stream: Box<TlsStream>,
        upgraded: Upgraded,
        peer: SocketAddr,
    ) {
        let Some(ends) = self.tunnel_ends(upgraded, peer) else { return };
        let TunnelEnds { settings, peers, connected, in_use } = ends;
        let client =
            ClientSide { side: Side::from(stream), received: Vec::new(), server_name: None };
        let Self { worker, deadline, snapshot, number, .. } = self;
        // A tunnel may outlive many configurations.
        drop(snapshot);
        // Its time begins here: how long its client had been connected says nothing.
        let began = Instant::now();
        let worker = (worker.shared(), Some(worker));
        let tunnel = Tunnel::new(worker, deadline, Arc::new(settings), peers, number, began);
        tunnel.carry_between(client, connected).await;
        drop(in_use);
    }

    /// The server's side of a tunnel, and whom it is between.
    pub(super) fn tunnel_ends(&self, upgraded: Upgraded, peer: SocketAddr) -> Option<TunnelEnds> {
        let Upgraded { link, received, slot, backend, in_use, path, log } = upgraded;
        let listener = self.listener()?;
        let address = listener.address.value;
        let path = match path {
            TxPathChoice::User => TunnelPathChoice::User,
            _ => TunnelPathChoice::Auto,
        };
        let crossover = listener.https().map_or(u64::MAX, |https| https.crossover.max(CROSSOVER));
        let upstream = Arc::new(Upstream::new(backend, None));
        let settings =
            TunnelSettings::new(upstream, path, crossover, Truncation::Fin).logged_to(log);
        let peers = Peers {
            client: self.remote,
            socket: peer,
            listener: address,
            destination: self.destination,
            header: self.proxy_header,
        };
        let side = match link {
            Link::Tls(stream) => Side::from(stream),
            Link::Plain(socket) => Side::from(socket),
        };
        let opened = Opened { side, greeting: received };
        let server = Arc::clone(slot.server());
        let connected = Connected { socket: opened, server, slot, connect_time: Duration::ZERO };
        Some(TunnelEnds { settings, peers, connected, in_use })
    }
}

/// A tunnel has no bodies: less than this of its bytes do not pay for the kernel's help.
const CROSSOVER: u64 = 256 * 1_024;
