//! The life of a tunnel: a server for a client, the bytes both ways, and what is told of it at its end.

mod introduction;
mod open;
mod time;
mod watch;

use std::cell::Cell;
use std::future::pending;
use std::mem::replace;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use kettle_config::ListenAddress;
use kettle_preamble::proxy;
use kettle_runtime::access_log::TunnelEntry;
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::clock::Clock;
use kettle_runtime::deadlines::Deadline;
use kettle_upstream::backend::{
    Attempt, ConnectError, Connected, Failure, Outcome, Server, Slot, Socket,
};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::open_tunnels::OpenTunnel;
use crate::relay::{Party, Relay, Side, TunnelEnd};
use crate::tunnel_routes::{TunnelRoutes, TunnelSettings};
use crate::worker_state::{OpenConnection, WorkerState};
use introduction::introduction;
pub(crate) use open::{Opened, line_protocol};
use time::{Time, goes_on_lingering, run};
pub use watch::BackendWatch;

/// Between whom a tunnel is.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    /// The client, by its PROXY header where it came with one.
    pub(crate) client: ClientAddress,
    /// The peer that connected to us.
    pub(crate) socket: ClientAddress,
    /// Where it listens.
    pub(crate) listener: ListenAddress,
    /// The address to which the client connected, by its PROXY header where that says so.
    pub(crate) destination: Option<SocketAddr>,
    /// In which version a load balancer said so, if one did.
    pub(crate) header: Option<proxy::Version>,
}

/// The client's side of a tunnel.
pub(crate) struct ClientSide {
    pub(crate) side: Side,
    /// The bytes it said already that the server is to have.
    pub(crate) received: Vec<u8>,
    /// The name it asked for, in TLS that goes on.
    pub(crate) server_name: Option<Box<str>>,
}

/// A tunnel, from the moment that the client's side stands. The facts on it at its end are logged, whatever ends it.
pub(crate) struct Tunnel {
    worker: Rc<WorkerState>,
    /// The connection's place among those of its worker, if the tunnel has it to itself.
    _open: Option<OpenConnection>,
    deadline: Rc<Deadline>,
    settings: Arc<TunnelSettings>,
    peers: Peers,
    /// The view of the operator while it is open.
    shown: Rc<OpenTunnel>,
    /// Until there is a server.
    client: Side,
    carried: Option<Carried>,
    end: &'static str,
    /// Why no server could be had, or what the server ended with.
    failure: Option<Box<str>>,
    is_recorded: bool,
}

/// The bytes both ways, and the server that was found.
struct Carried {
    relay: Relay,
    /// Where it was connected for this tunnel.
    connect_time: Option<Duration>,
    /// Counts the connection on its server, until it is over.
    slot: Option<Slot>,
}

impl ClientSide {
    /// The name it asked for.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.side.session().map_or(self.server_name.as_deref(), |it| it.server_name.as_deref())
    }
}

impl Tunnel {
    pub(crate) fn new(
        (worker, open): (Rc<WorkerState>, Option<OpenConnection>),
        deadline: Rc<Deadline>,
        settings: Arc<TunnelSettings>,
        peers: Peers,
        number: u64,
        accepted: Instant,
    ) -> Self {
        worker.metrics.tunnel_opened();
        let ends = (peers.client, peers.listener.clone());
        let backend = Arc::clone(&settings.upstream.backend);
        let tick = worker.deadlines.ticks();
        let shown = Rc::new(OpenTunnel::new(number, accepted, ends, backend, tick));
        worker.open_tunnels.add(&shown);
        Self {
            worker,
            _open: open,
            deadline,
            settings,
            peers,
            shown,
            client: Side::Closed,
            carried: None,
            end: TunnelEnd::Draining.as_str(),
            failure: None,
            is_recorded: false,
        }
    }

    /// Finds a server and carries the bytes until both sides have ended.
    pub(crate) async fn carry(mut self, client: ClientSide) {
        if let Some(name) = client.server_name() {
            // Nobody has set it before.
            let _ = self.shown.server_name.set(name.into());
        }
        self.client = client.side;
        // A TLS 1.2 client waits for our Finished before it says a word.
        let flush = |context: &mut Context<'_>| self.client.poll_flush_handshake(context);
        if self.deadline.within(LINGER, flush).await.is_err() {
            self.end = TunnelEnd::ClientReset.as_str();
            return;
        }
        // Boxed: connecting is over soon, and idle tunnels are many.
        let is_silent = self.client.is_silent() && client.received.is_empty();
        let connected = match Box::pin(self.connect(is_silent)).await {
            Ok(connected) => connected,
            // Nobody is there for whom a server would be had.
            Err(NoServer::Disconnected(end)) => {
                self.end = end.as_str();
                self.record();
                self.client = Side::Closed;
                return;
            }
            Err(NoServer::Refused) => {
                self.end = SESSION_REFUSED;
                return;
            }
            Err(NoServer::Failed(error)) => {
                let backend = &self.settings.upstream.backend.name;
                tracing::debug!(%backend, %error, "no server for a client");
                self.end = error.reason();
                self.failure = Some(error.to_string().into());
                return;
            }
        };
        let Connected { socket, slot, connect_time, .. } = connected;
        self.carry_on(client.received, socket, slot, Some(connect_time)).await;
    }

    /// Carries the bytes between two connections that stand, until both sides have ended.
    pub(crate) async fn carry_between(mut self, client: ClientSide, server: Opened, slot: Slot) {
        if let Some(name) = client.server_name() {
            let _ = self.shown.server_name.set(name.into());
        }
        self.client = client.side;
        self.carry_on(client.received, server, slot, None).await;
    }

    async fn carry_on(
        &mut self,
        received: Vec<u8>,
        server: Opened,
        slot: Slot,
        connect_time: Option<Duration>,
    ) {
        let _ = self.shown.server.set(Arc::clone(slot.server()));
        let client_side = replace(&mut self.client, Side::Closed);
        let relay = Relay::new(
            client_side,
            server.side,
            [received, server.greeting],
            self.settings.relay(),
            &self.worker.pipes,
            &self.worker.offloads,
        );
        let carried = self.carried.insert(Carried { relay, connect_time, slot: Some(slot) });
        let backend = &self.settings.upstream.backend.settings;
        let time = Time {
            idle: backend.idle_timeout,
            end: backend.total_timeout.map(|total| self.shown.accepted + total),
        };
        let end = run(carried, &self.deadline, &time, &self.shown).await;
        self.end = end.as_str();
        // The alert mostly refuses our certificate: a server of TLS 1.3 says so behind the handshake.
        if let (Some(alert), Some(server)) =
            (carried.relay.backend_alert(), self.shown.server.get())
        {
            server.state.note(Failure::new(Outcome::Tls, format!("TLS: {alert}")));
            self.failure = Some(alert.into());
        }
        self.record();
        self.linger(end, &time).await;
    }

    /// Takes leave of both sides, and gives them the time to receive what was sent to them, as long as they do.
    async fn linger(&mut self, end: TunnelEnd, time: &Time) {
        let Self { carried: Some(Carried { relay, slot, .. }), deadline, worker, .. } = self else {
            return;
        };
        *slot = None;
        let mut unacknowledged_bytes = relay.unacknowledged_bytes();
        loop {
            let leave = |context: &mut Context<'_>| match relay.poll_linger(context) {
                // A server that stops waits for what was sent, not for goodbyes.
                Poll::Pending
                    if worker.deadlines.is_draining() && relay.unacknowledged_bytes() == 0 =>
                {
                    Poll::Ready(())
                }
                polled => polled,
            };
            let is_left = deadline.within(LINGER, leave).await.is_ok();
            let before = replace(&mut unacknowledged_bytes, relay.unacknowledged_bytes());
            if is_left || !goes_on_lingering(end, time, before, unacknowledged_bytes) {
                return;
            }
        }
    }

    /// Waits until a client is gone: it was reset, or, where it `is_silent`, ended before it said anything.
    async fn disconnect(&self, is_silent: bool) -> TunnelEnd {
        let Some(socket) = self.client_socket() else { return pending().await };
        if is_silent {
            // Priority, because that is also "its side is closed", without "there is something to read".
            let ready = socket.ready(Interest::PRIORITY | Interest::ERROR).await;
            let is_reset = ready.is_ok_and(|ready| ready.is_error());
            let mut seen = [0; CLOSE_NOTIFY_BYTES_MAX + 1];
            if !is_reset
                && let Ok(bytes) = socket.peek(&mut seen).await
                && self.client.ends_silently(seen.get(..bytes).unwrap_or_default())
            {
                return TunnelEnd::closed_by(Party::Client);
            }
        }
        let _ = socket.ready(Interest::ERROR).await;
        TunnelEnd::ClientReset
    }

    fn client_socket(&self) -> Option<&TcpStream> {
        match &self.client {
            Side::Tls(stream) => Some(stream.tcp()),
            Side::Plain(Socket::Tcp(socket)) => Some(socket),
            Side::Plain(Socket::Unix(_)) | Side::Stream(_) | Side::Closed => None,
        }
    }

    /// Returns the address to which the client connected, if it is one.
    fn destination(&self) -> Option<SocketAddr> {
        let listener = self.peers.listener.socket();
        let ask = || self.client_socket()?.local_addr().ok();
        let is_any = listener.is_some_and(|listener| listener.ip().is_unspecified());
        let asked = || if is_any { ask() } else { None };
        self.peers.destination.or_else(asked).or(listener)
    }

    /// Its listener by the configuration in force, if that has it.
    fn routes(&self) -> Option<Arc<TunnelRoutes>> {
        let snapshot = self.worker.snapshot();
        let mut routes = snapshot.served.tunnels.iter().flatten();
        routes.find(|routes| routes.address == self.peers.listener).cloned()
    }

    /// Where this client goes by the configuration in force, if that is still the same backend.
    fn successor(&self) -> Option<Arc<TunnelSettings>> {
        self.routes()?.successor_of(&self.settings).cloned()
    }

    /// True if a reload has shut the client out since it came. A listener that is gone shuts out nobody.
    fn is_refused(&self) -> bool {
        self.routes().is_some_and(|routes| !routes.lets_in(self.client.session()))
    }

    /// Connects to a server, unless the client is gone before. One that ends before it says anything may wait for a server
    /// that speaks first; as long as it waits in a queue it is taken for one that has given up.
    async fn connect(&mut self, is_silent: bool) -> Result<Connected<Opened>, NoServer> {
        let mut attempts = self.settings.upstream.backend.attempts(self.peers.client.host());
        loop {
            let followed = Cell::new(None);
            let successor = || {
                let settings = self.successor()?;
                let backend = Arc::clone(&settings.upstream.backend);
                followed.set(Some(settings));
                Some(backend)
            };
            let attempt = tokio::select! {
                biased;
                attempt = attempts.next(successor) => attempt.map_err(NoServer::Failed)?,
                end = self.disconnect(is_silent) => return Err(NoServer::Disconnected(end)),
            };
            // It came in by what was in force then, and its certificate may be revoked since.
            if self.is_refused() {
                drop(attempt.without_connecting());
                return Err(NoServer::Refused);
            }
            if let Some(settings) = followed.take() {
                self.settings = settings;
            }
            let opened = tokio::select! {
                biased;
                opened = self.open(&attempt) => opened,
                end = self.disconnect(false) => return Err(NoServer::Disconnected(end)),
            };
            match opened {
                Ok(opened) => {
                    let connected = attempts.succeeded(attempt, opened);
                    // Servers may take their time, too: one of SMTP minutes.
                    return if self.is_refused() { Err(NoServer::Refused) } else { Ok(connected) };
                }
                Err(failure) => attempts.failed(attempt, failure),
            }
        }
    }

    async fn open(&self, attempt: &Attempt) -> Result<Opened, Failure> {
        let introduction = introduction(
            &self.settings.upstream.backend.settings,
            &self.peers,
            || self.destination(),
            self.client.session(),
            self.shown.server_name.get().map(|name| &**name),
            self.shown.number,
        );
        let open = async |socket: Socket, server: &Server| {
            socket.keep_alive()?;
            open::open(socket, server, &self.settings, self.client.session(), &introduction).await
        };
        attempt.connect_with(&open).await
    }

    /// Counts the tunnel and writes its line.
    fn record(&mut self) {
        if replace(&mut self.is_recorded, true) {
            return;
        }
        self.worker.open_tunnels.remove(&self.shown);
        let duration = self.shown.accepted.elapsed();
        let (flows, [client, server]) = match &self.carried {
            Some(carried) => (carried.relay.flows().map(Some), carried.relay.sides()),
            None => ([None; 2], [&self.client, &Side::Closed]),
        };
        let [to_backend, to_client] = flows;
        let metrics = &self.worker.metrics;
        let carried = flows.map(|flow| flow.map(|flow| (flow.path, flow.bytes)));
        metrics.tunnel_ended(self.end, carried, duration);
        for side in [client, server] {
            if let Side::Tls(stream) = side {
                self.worker.offloads.keys_changed(stream.session(), stream.key_changes());
            }
        }
        if !self.worker.log.is_on(self.settings.log()) {
            return;
        }
        let now = self.worker.clock.wall();
        let entry = TunnelEntry {
            time: now.checked_sub(duration).unwrap_or(now),
            remote: self.peers.client,
            peer: self.peers.socket,
            listener: &self.peers.listener,
            backend: &self.settings.upstream.backend.name,
            server: self.shown.server.get().map(|server| &*server.name),
            connect_time: self.carried.as_ref().and_then(|carried| carried.connect_time),
            to_backend,
            to_client,
            end: self.end,
            failure: self.failure.as_deref(),
            session: client.session(),
            server_name: self.shown.server_name.get().map(|name| &**name),
            server_session: server.session(),
            duration,
            connection: self.shown.number,
        };
        self.worker.log.record_tunnel(self.settings.log(), &entry);
    }
}

/// Without a server the client has not had what it came for, and must not take nothing for all: TLS ends without a
/// close_notify, what has no TLS by a reset.
impl Drop for Tunnel {
    fn drop(&mut self) {
        self.record();
        if matches!(self.client, Side::Plain(_)) {
            self.client.reset();
        }
    }
}

/// Why a client has no server.
enum NoServer {
    /// None could be had.
    Failed(ConnectError),
    /// It would not be let in any more.
    Refused,
    /// The client left before.
    Disconnected(TunnelEnd),
}

/// The end of a tunnel whose client a reload has shut out before there was a server for it.
const SESSION_REFUSED: &str = "session_refused";

/// A close_notify in a record: header, alert, and what TLS 1.2 and 1.3 add to it (24 and 17 bytes).
const CLOSE_NOTIFY_BYTES_MAX: usize = 31;

/// The time that peers may take to receive our last words and to close their sides.
const LINGER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
