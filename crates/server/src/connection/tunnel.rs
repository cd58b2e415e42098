//! A connection that is carried on: from accept, or from a response that changes the protocol, to the client's side of a tunnel.
//!
//! | listener | what comes first | who says where it goes |
//! |---|---|---|
//! | `tls` | the dialogue before TLS, the handshake | the name the client asks for, the protocol agreed on |
//! | `tcp` | nothing | the listener |
//! | `passthrough` | a look at the ClientHello | the name in it, the protocols it offers |
//! | `https`, `http` | a request for another protocol | the route, whose server agreed |

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kettle_config::{Listener, StartTls, Truncation, TunnelPathChoice, TxPathChoice};
use kettle_exchange::response::Upgraded;
use kettle_kernel::socket;
use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::deadlines::{Deadline, Stage};
use kettle_runtime::rate_limit::Counted;
use kettle_tls::hello::{ClientHello, Peeked, peek};
use kettle_tls::names::NAME_BYTES_MAX;
use kettle_tls::stream::Stream;
use kettle_upstream::backend::Slot;
use kettle_upstream::{Link, Upstream};
use tokio::net::TcpStream;

use super::plain::poll_read;
use super::{Connection, LINGER};
use crate::relay::Side;
use crate::tunnel::{ClientSide, Opened, Peers, Tunnel};
use crate::tunnel_routes::{TunnelRoutes, TunnelSettings, TunnelStart};
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
    /// Carries the connection to a backend and back, to its end. `received` is what it said already, `peer` who
    /// connected to us.
    pub(super) async fn tunnel(
        self: Box<Self>,
        socket: TcpStream,
        received: Vec<u8>,
        peer: ClientAddress,
    ) {
        let Some(routes) = self.snapshot.served.tunnels.get(self.listener).cloned().flatten()
        else {
            return;
        };
        let Some(peers) = self.peers(self.remote, peer) else { return };
        let found = Box::pin(self.client_side(socket, received, &routes)).await;
        let Some((client, settings)) = found else { return };
        let Self { worker, open, deadline, snapshot, number, accepted, .. } = *self;
        // A tunnel may outlive many configurations.
        drop((snapshot, routes));
        let worker = (worker, Some(open));
        Tunnel::new(worker, deadline, settings, peers, number, accepted).carry(client).await;
    }

    /// Returns the peers of a tunnel, of a client that came over a connection of `socket`.
    pub(super) fn peers(&self, client: ClientAddress, socket: ClientAddress) -> Option<Peers> {
        Some(Peers {
            client,
            socket,
            listener: self.listener()?.address.value.clone(),
            destination: self.destination,
            header: self.proxy_header,
        })
    }

    /// Carries what both sides say from now on, to its end. The bytes that the client sent behind its request go first.
    pub(super) async fn upgraded(
        self: Box<Self>,
        stream: Box<Stream>,
        upgraded: Upgraded,
        peer: ClientAddress,
    ) {
        let Some(ends) = self.tunnel_ends(upgraded, peer) else { return };
        // A client may stop to read in a tunnel, and look after that it is there is the tunnel's. A socket that refuses has failed.
        let _ = socket::bound_delivery(stream.socket(), None);
        let Self { worker, open, deadline, snapshot, number, .. } = *self;
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

    async fn client_side(
        &self,
        mut socket: TcpStream,
        received: Vec<u8>,
        routes: &TunnelRoutes,
    ) -> Option<(ClientSide, Arc<TunnelSettings>)> {
        match &routes.start {
            TunnelStart::Tls { acceptors, starttls } => {
                let received = self.answer_starttls(&mut socket, received, *starttls).await?;
                // Nothing is left of a dialogue: a client that has sent something already began TLS without one. PostgreSQL 17 takes
                // that only from clients that say what they speak (ALPACA), and so do we.
                let is_direct = *starttls == StartTls::Postgres && !received.is_empty();
                let demanding = is_direct.then(|| acceptors.demanding_protocol());
                let acceptors = demanding.as_ref().unwrap_or(acceptors);
                let stage = match starttls {
                    StartTls::Off => self.stage(&received),
                    _ => Stage::Begun,
                };
                let stream = self.handshake(socket, received, acceptors, stage).await?;
                let session = stream.session()?;
                let agreed = session.alpn.as_ref().map(|alpn| alpn.as_bytes());
                let ways = routes.find(session.server_name.as_deref());
                // The acceptor agrees on nothing that has no way.
                let settings = Arc::clone(ways.find(agreed.into_iter())?);
                let side = Side::from(stream);
                Some((ClientSide { side, received: Vec::new(), server_name: None }, settings))
            }
            TunnelStart::Tcp => {
                let settings = Arc::clone(routes.find(None).find(std::iter::empty())?);
                let side = Side::from(socket);
                Some((ClientSide { side, received, server_name: None }, settings))
            }
            TunnelStart::Passthrough => self.read_hello(socket, received, routes).await,
        }
    }

    /// Reads the name that a client asks for and the protocols it offers, and keeps all it said.
    async fn read_hello(
        &self,
        mut socket: TcpStream,
        mut received: Vec<u8>,
        routes: &TunnelRoutes,
    ) -> Option<(ClientSide, Arc<TunnelSettings>)> {
        self.deadline.extend(self.handshake_time_left());
        // Looked at again only when it may be whole: single bytes must not each cost a look at all before them.
        let mut whole_bytes = 0;
        let outcome = loop {
            let peeked = match received.len() < whole_bytes {
                true => Peeked::More(whole_bytes - received.len()),
                false => peek(&received),
            };
            match peeked {
                Peeked::More(_) if received.len() > PEEKED_BYTES_MAX => {
                    break Err(("no_hello", UNEXPECTED_MESSAGE));
                }
                Peeked::More(missing_bytes) => whole_bytes = received.len() + missing_bytes,
                Peeked::Hello(message) => match ClientHello::parse(&message) {
                    Some(hello) => break find(routes, &hello),
                    None => break Err(("malformed", DECODE_ERROR)),
                },
                Peeked::NotTls => break Err(("not_tls", UNEXPECTED_MESSAGE)),
                Peeked::NoHello => break Err(("no_hello", UNEXPECTED_MESSAGE)),
            }
            let stage = self.stage(&received);
            let read =
                self.deadline.wait(stage, |context| poll_read(&mut socket, &mut received, context));
            let failure = match read.await {
                Ok(Ok(1..)) => continue,
                Ok(_) => "hello_incomplete",
                Err(interrupt) => interrupt.as_str(),
            };
            self.worker.metrics.handshake_failed(failure);
            return None;
        };
        let (reason, alert) = match outcome {
            Ok((server_name, settings)) => {
                let side = Side::from(socket);
                return Some((ClientSide { side, received, server_name }, settings));
            }
            Err(refused) => refused,
        };
        self.worker.metrics.handshake_failed(reason);
        self.say_last(socket, &alert, LINGER).await;
        None
    }
}

/// A tunnel has no bodies: less than this of its bytes do not pay for the kernel's help.
const CROSSOVER: u64 = 256 * 1_024;

/// The name that a hello asks for, and where it goes by it; else why it goes nowhere, and what its client is told.
fn find(routes: &TunnelRoutes, hello: &ClientHello<'_>) -> Result<Routed, (&'static str, [u8; 7])> {
    let server_name = hello.server_name();
    // It is kept for as long as the tunnel, and stands in its line. Of two the server could take the other.
    if server_name.is_some_and(|name| name.len() > NAME_BYTES_MAX) || hello.asks_for_two_names() {
        return Err(("malformed", DECODE_ERROR));
    }
    if hello.repeats_extension() {
        return Err(("malformed", ILLEGAL_PARAMETER));
    }
    let ways = routes.find(server_name);
    match ways.find(hello.alpn()) {
        Some(settings) => Ok((server_name.map(Box::from), Arc::clone(settings))),
        None if ways.is_empty() => Err(("unrecognized_name", UNRECOGNIZED_NAME)),
        // No protocol was agreed on yet: to its client, nobody is here by that name.
        None => Err(("no_application_protocol", UNRECOGNIZED_NAME)),
    }
}

type Routed = (Option<Box<str>>, Arc<TunnelSettings>);

/// The longest hello that is carried, the heads of its records among it.
const PEEKED_BYTES_MAX: usize = 64 * 1_024;

/// Fatal alerts in records of their own (RFC 8446 §6), for clients with whom nothing is agreed on.
pub(super) const UNEXPECTED_MESSAGE: [u8; 7] = [21, 3, 1, 0, 2, 2, 10];
const ILLEGAL_PARAMETER: [u8; 7] = [21, 3, 1, 0, 2, 2, 47];
const DECODE_ERROR: [u8; 7] = [21, 3, 1, 0, 2, 2, 50];
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 1, 0, 2, 2, 112];
