//! The connections to servers that a worker keeps for the next request, bounded for each server by number and by time.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use kettle_config::{BackendProtocol, ServerAddress};
use kettle_kernel::bug;
use kettle_tls::connector::Connector;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Link, Upstream, UpstreamError, Upstreams};
use crate::backend::{Backend, PeerAddress, Server, ServerState, Slot, UseCount};

/// A worker's idle connections.
#[derive(Default)]
pub struct Pool {
    /// By where they lead to, the one that was used longest ago first.
    idle: RefCell<BTreeMap<Place, VecDeque<Idle>>>,
    /// Those of the configuration in force, after the first reload.
    upstreams: RefCell<Option<Arc<Upstreams>>>,
    /// Memory that the last response was received into, for the next one.
    spare: Cell<Option<BytesMut>>,
    /// Requests whose response is for more than the one who asked.
    shared: Cell<usize>,
    shared_ended: Notify,
    is_draining: Cell<bool>,
    is_drain_over: Cell<bool>,
    drain_over: Notify,
}

/// A request under way whose response is for several clients.
pub struct SharedRequest(Rc<Pool>);

impl SharedRequest {
    /// True if the worker ends and only finishes what is under way.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.is_draining.get()
    }
}

impl Drop for SharedRequest {
    fn drop(&mut self) {
        match self.0.shared.get().checked_sub(1) {
            Some(left) => self.0.shared.set(left),
            None => _ = bug!("a shared request that ends was counted"),
        }
        self.0.shared_ended.notify_one();
    }
}

/// Which server a connection leads to, and by which connectors. After a reload that changed the connectors it is not reused,
/// nor after a lookup that did not find its address again.
#[derive(Clone)]
pub(super) struct LinkKey {
    server: Arc<ServerState>,
    connectors: Option<Arc<[Connector]>>,
    /// The protocol in which it is spoken to.
    protocol: BackendProtocol,
    /// Of a connection whose server has a name.
    peer: Option<PeerAddress>,
}

/// The lease that a connection holds as long as it is in use.
pub(super) struct Lease {
    pub(super) pool: Rc<Pool>,
    pub(super) destination: LinkKey,
    pub(super) backend: Arc<Backend>,
    pub(super) slot: Slot,
    pub(super) count: UseCount,
}

/// The place in memory of a key's addresses: as long as one of its connections is kept, no other key has the same.
type Place = (usize, usize);

struct Idle {
    link: Link,
    destination: LinkKey,
    until: Instant,
    _count: UseCount,
}

impl LinkKey {
    /// That of a connection that was just made.
    pub(super) fn new(upstream: &Upstream, server: &Server, link: &Link) -> Self {
        let has_name = matches!(server.address, ServerAddress::Name(..));
        let peer = if has_name { link.peer_address() } else { None };
        let server = Arc::clone(&server.state);
        let connectors = upstream.connectors.clone();
        let protocol = upstream.backend.settings.protocol;
        Self { server, connectors, protocol, peer: peer.map(PeerAddress::from) }
    }

    fn leads_there_still(&mut self) -> bool {
        self.peer.as_mut().is_none_or(|peer| self.server.is_at(peer))
    }

    fn place(&self) -> Place {
        place(&self.server, self.connectors.as_ref())
    }

    /// True if requests to this backend may take the connection.
    fn is_of(&self, upstream: &Upstream) -> bool {
        let mut servers = upstream.backend.servers.iter();
        self.protocol == upstream.backend.settings.protocol
            && self.goes_by(upstream.connectors.as_ref())
            && servers.any(|server| Arc::ptr_eq(&self.server, &server.state))
    }

    fn goes_by(&self, connectors: Option<&Arc<[Connector]>>) -> bool {
        match (&self.connectors, connectors) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            _ => false,
        }
    }
}

fn place(server: &Arc<ServerState>, connectors: Option<&Arc<[Connector]>>) -> Place {
    (Arc::as_ptr(server).addr(), connectors.map_or(0, |it| Arc::as_ptr(it).addr()))
}

impl Lease {
    /// Keeps its connection for the next request.
    pub(super) fn keep(self, link: Link) {
        let Self { pool, destination, backend, slot, count } = self;
        drop(count);
        pool.give(link, destination, &backend);
        // Only now: the request that waits for the slot is to find the connection in the pool.
        drop(slot);
    }
}

impl Pool {
    /// Follows a reload: connections that no backend has a use for any more are closed, and none is kept for longer from now on
    /// than its backend says.
    pub fn adopt(&self, upstreams: Arc<Upstreams>) {
        let now = Instant::now();
        self.retain(|idle| {
            let mut all = upstreams.0.values();
            let Some(upstream) = all.find(|upstream| idle.destination.is_of(upstream)) else {
                return false;
            };
            idle.until = idle.until.min(now + upstream.backend.settings.keep_alive_timeout);
            upstream.keeps_connections()
        });
        self.upstreams.replace(Some(upstreams));
    }

    /// Returns the upstream that has taken the place of a backend, if a reload has left it there.
    pub(super) fn successor(&self, upstream: &Upstream) -> Option<Arc<Upstream>> {
        let upstreams = self.upstreams.borrow();
        let next = upstreams.as_ref()?.find(&upstream.backend.name)?;
        let own = &upstream.backend;
        let other = &next.backend;
        // A request is written for one protocol.
        let is_next =
            other.is_successor_of(own) && own.settings.protocol == other.settings.protocol;
        is_next.then(|| Arc::clone(next))
    }

    /// Begins a request whose response is for several clients.
    #[must_use]
    pub fn share(self: &Rc<Self>) -> SharedRequest {
        self.shared.set(self.shared.get() + 1);
        SharedRequest(Rc::clone(self))
    }

    /// From now on only what is under way is finished, and no connection is kept.
    pub fn stop(&self) {
        self.is_draining.set(true);
        self.retain(|_| false);
    }

    /// Waits until nothing is under way here that clients of other workers may be reading.
    pub async fn drain(&self) {
        while self.shared.get() > 0 {
            self.shared_ended.notified().await;
        }
    }

    /// From now on nobody waits for a server.
    pub fn end_drain(&self) {
        self.is_drain_over.set(true);
        self.drain_over.notify_waiters();
    }

    /// Waits for a server, but not when the time to drain is over. The work is pinned where it is, so that the wait has no room for it.
    ///
    /// # Errors
    /// Those of `work`, or [`UpstreamError::Stopping`].
    pub async fn until_drained<T>(
        &self,
        work: Pin<&mut impl Future<Output = Result<T, UpstreamError>>>,
    ) -> Result<T, UpstreamError> {
        let over = async {
            while !self.is_drain_over.get() {
                self.drain_over.notified().await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = over => Err(UpstreamError::Stopping),
        }
    }

    /// The connection to a server that was used last, of those that are still good.
    pub(super) fn take(
        &self,
        upstream: &Upstream,
        server: &Server,
        now: Instant,
    ) -> Option<(Link, LinkKey)> {
        let mut idle = self.idle.borrow_mut();
        let kept = idle.get_mut(&place(&server.state, upstream.connectors.as_ref()))?;
        loop {
            let mut last = kept.pop_back()?;
            if last.is_good(now) {
                return Some((last.link, last.destination));
            }
            last.link.say_goodbye();
        }
    }

    /// Keeps a connection for the next request. Those of a burst that are too many to be kept stay for a moment: the next burst takes
    /// them, and needs no new ones.
    pub(super) fn give(&self, mut link: Link, destination: LinkKey, backend: &Arc<Backend>) {
        let in_force = self.in_force(&destination, backend).filter(|_| !self.is_draining.get());
        let Some(backend) = in_force.filter(|backend| backend.settings.connections_kept() > 0)
        else {
            return link.say_goodbye();
        };
        let settings = &backend.settings;
        let now = Instant::now();
        let until = now + settings.keep_alive_timeout;
        let count = UseCount::idle(&backend);
        let mut idle = self.idle.borrow_mut();
        let kept = idle.entry(destination.place()).or_default();
        kept.push_back(Idle { link, destination, until, _count: count });
        let beyond = kept.len().checked_sub(settings.connections_kept() + 1);
        if let Some(beyond) = beyond.and_then(|at| kept.get_mut(at)) {
            beyond.until = beyond.until.min(now + BURST_STAYS);
        }
        if kept.len() > settings.connections_kept().saturating_mul(BURST_FACTOR)
            && let Some(mut oldest) = kept.pop_front()
        {
            oldest.link.say_goodbye();
        }
    }

    /// Memory to receive the beginning of a response into. Memory of which somebody still holds a part is not written over.
    pub(super) fn take_spare(&self) -> BytesMut {
        self.spare.take().unwrap_or_else(|| BytesMut::with_capacity(FIRST_BYTES_USUAL))
    }

    /// Keeps the memory that a response was received into. A large one would be held for the sake of a small one.
    pub(super) fn give_spare(&self, received: BytesMut) {
        if received.is_empty() && received.capacity() <= FIRST_BYTES_USUAL {
            self.spare.set(Some(received));
        }
    }

    /// Drops those whose time is over, and those whose server has closed them.
    pub fn sweep(&self) {
        let now = Instant::now();
        self.retain(|idle| idle.is_good(now));
    }

    /// The backend of the configuration in force that has a use for a connection of this one's.
    fn in_force(&self, destination: &LinkKey, backend: &Arc<Backend>) -> Option<Arc<Backend>> {
        let upstreams = self.upstreams.borrow();
        let Some(upstreams) = &*upstreams else { return Some(Arc::clone(backend)) };
        let upstream = upstreams.find(&backend.name).filter(|it| destination.is_of(it))?;
        Some(Arc::clone(&upstream.backend))
    }

    /// Takes leave of all connections but these.
    fn retain(&self, stays: impl Fn(&mut Idle) -> bool) {
        self.idle.borrow_mut().retain(|_, kept| {
            kept.retain_mut(|idle| {
                let stays = stays(idle);
                if !stays {
                    idle.link.say_goodbye();
                }
                stays
            });
            !kept.is_empty()
        });
    }
}

impl Idle {
    fn is_good(&mut self, now: Instant) -> bool {
        self.until > now && self.destination.leads_there_still() && self.link.is_quiet()
    }
}

/// Room that most heads find enough with what comes along with them.
const FIRST_BYTES_USUAL: usize = 4 * 1_024;

/// The time for which connections stay that are too many to be kept,
const BURST_STAYS: Duration = Duration::from_secs(1);
/// and how many of a server, as a multiple of those that are kept.
const BURST_FACTOR: usize = 8;

#[cfg(test)]
mod tests;
