//! A connection that has changed to another protocol: from here on it is a tunnel to the server that agreed.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kettle_config::{Listener, Truncation, TunnelPathChoice, TxPathChoice};
use kettle_exchange::response::Upgraded;
use kettle_kernel::socket;
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::deadlines::Deadline;
use kettle_runtime::rate_limit::Counted;
use kettle_tls::stream::Stream;
use kettle_upstream::backend::Slot;
use kettle_upstream::{Link, Upstream};

use super::Connection;
use crate::relay::Side;
use crate::tunnel::{ClientSide, Opened, Peers, Tunnel};
use crate::tunnel_routes::TunnelSettings;
use crate::worker_state::{OpenConnection, WorkerState};

/// The parts of a tunnel, but for its client's side.
pub(super) struct TunnelEnds {
    settings: TunnelSettings,
    peers: Peers,
    server: Opened,
    slot: Slot,
    /// The place among the requests of its client, until it ends.
    client_place: Option<Rc<Counted>>,
}

impl TunnelEnds {
    /// Carries what both sides say from now on, to its end.
    pub(super) async fn carry(
        self,
        (client, received): (Side, Vec<u8>),
        worker: (Rc<WorkerState>, Option<OpenConnection>),
        deadline: Rc<Deadline>,
        number: u64,
    ) {
        let Self { settings, peers, server, slot, client_place } = self;
        let client = ClientSide { side: client, received, server_name: None };
        // Its time begins here: how long its client had been connected says nothing.
        let began = Instant::now();
        let tunnel = Tunnel::new(worker, deadline, Arc::new(settings), peers, number, began);
        tunnel.carry_between(client, server, slot).await;
        drop(client_place);
    }
}

impl Connection {
    /// Carries what both sides say from now on, to its end. The bytes that the client sent behind its request go first.
    pub(super) async fn upgraded(
        self,
        stream: Box<Stream>,
        upgraded: Upgraded,
        peer: ClientAddress,
    ) {
        let Some(ends) = self.tunnel_ends(upgraded, peer) else { return };
        // A client may stop to read in a tunnel, and look after that it is there is the tunnel's. A socket that refuses has failed.
        let _ = socket::bound_delivery(stream.socket(), None);
        let Self { worker, open, deadline, snapshot, number, .. } = self;
        // A tunnel may outlive many configurations.
        drop(snapshot);
        let worker = (worker, Some(open));
        let client = match stream.into_plain() {
            Ok((socket, received)) => (Side::from(socket), received.bytes().to_vec()),
            Err(stream) => (Side::from(stream), Vec::new()),
        };
        ends.carry(client, worker, deadline, number).await;
    }

    /// The server's side of a tunnel, and whom it is between.
    pub(super) fn tunnel_ends(
        &self,
        upgraded: Upgraded,
        peer: ClientAddress,
    ) -> Option<TunnelEnds> {
        let Upgraded { link, received, slot, backend, client_place, path, log, client } = upgraded;
        let peers = self.peers(client, peer)?;
        let path = match path {
            TxPathChoice::User => TunnelPathChoice::User,
            _ => TunnelPathChoice::Auto,
        };
        let https = self.listener().and_then(Listener::https);
        // Without TLS the kernel has nothing to do but to move the bytes.
        let of_plain = if self.listener().is_some_and(|it| it.http().is_some()) {
            CROSSOVER
        } else {
            u64::MAX
        };
        let crossover = https.map_or(of_plain, |https| https.crossover.max(CROSSOVER));
        let upstream = Arc::new(Upstream::new(backend, None));
        let settings =
            TunnelSettings::new(upstream, path, crossover, Truncation::Fin).logged_to(log);
        let side = match link {
            Link::Tls(stream) => Side::from(stream),
            Link::Plain(socket) => Side::from(socket),
        };
        let server = Opened { side, greeting: received };
        Some(TunnelEnds { settings, peers, server, slot, client_place })
    }
}

/// A tunnel has no bodies: less than this of its bytes do not pay for the kernel's help.
const CROSSOVER: u64 = 256 * 1_024;
