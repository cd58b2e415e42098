//! The parts that the supervisor hands to a worker: once when it starts, and again at each reload.
//!
//! It lies below both, so that workers and connections know nothing of the supervisor.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{fmt, mem};

use kettle_config::Config;
use kettle_handlers::route::Router;
use kettle_http::h2::WindowBudget;
use kettle_kernel::probe::Capabilities;
use kettle_runtime::access_log::WorkerLog;
use kettle_runtime::encoder::EncoderPermits;
use kettle_runtime::metrics::WorkerMetrics;
use kettle_runtime::spool::Spool;
use kettle_runtime::tx_path::switch::TxPathSwitch;
use kettle_tls::{Acceptors, Challenges};
use kettle_upstream::Upstreams;
use kettle_upstream::backend::Backends;
use tokio::sync::{mpsc, watch};

use crate::open_tunnels::TunnelsQuestion;
use crate::tunnel_routes::TunnelRoutes;

/// Everything a worker needs, handed over once when its thread starts.
#[derive(Debug)]
pub struct WorkerSetup {
    /// Which worker this is, from 0.
    pub index: usize,
    /// The CPU to stay on.
    pub cpu: Option<usize>,
    /// The configuration in force and this worker's listeners; changes at a reload.
    pub snapshot: watch::Receiver<Arc<Snapshot>>,
    /// The metrics of this worker.
    pub metrics: Arc<WorkerMetrics>,
    /// The log of this worker's responses.
    pub log: WorkerLog,
    /// Changes twice, when all is ready to serve and when the server stops.
    pub shutdown: watch::Receiver<Shutdown>,
    /// The switch that says whether further connections may move into the kernel.
    pub tx_path_switch: Arc<TxPathSwitch>,
    /// The capabilities of this kernel.
    pub capabilities: Arc<Capabilities>,
    /// The bounds of all workers together.
    pub budgets: Budgets,
    /// Questions about its tunnels.
    pub questions: mpsc::Receiver<TunnelsQuestion>,
}

/// Bounds of the whole process, which its workers share, or have equal parts of.
#[derive(Clone, Debug)]
pub struct Budgets {
    /// The permits of encoders.
    pub encoders: EncoderPermits,
    /// The bytes that windows of HTTP/2 may grow by.
    pub windows: Arc<WindowBudget>,
    /// The folder, and the room in it, for bodies of requests.
    pub spool: Arc<Spool>,
    /// The bytes that may wait to be written to one disk, of each worker.
    pub unwritten_bytes: usize,
}

/// The sites and routes of a configuration, with all that they take: made once, and shared by the workers.
pub struct Served {
    /// The settings.
    pub config: Arc<Config>,
    /// Which site and handler answer at https listeners that name no sites.
    pub router: Arc<Router>,
    /// Certificates and TLS settings of these listeners.
    pub tls: Acceptors,
    /// The same for those that offer HTTP/2.
    pub tls_with_http2: Acceptors,
    /// For each listener that names its sites: what is reached there.
    pub own_sites: Vec<Option<Arc<OwnSites>>>,
    /// For each listener that carries connections on: where they go.
    pub tunnels: Vec<Option<Arc<TunnelRoutes>>>,
    /// The services that connections are carried to.
    pub backends: Arc<Backends>,
    /// The same for routes that pass requests.
    pub upstreams: Arc<Upstreams>,
    /// The answers to authorities that validate names, where certificates are fetched.
    pub challenges: Option<Challenges>,
}

/// The sites of a listener that names them.
pub struct OwnSites {
    /// Which site and handler answer.
    pub router: Arc<Router>,
    /// Certificates and TLS settings; plain HTTP has none.
    pub tls: Option<Acceptors>,
}

impl Served {
    /// Which site and handler answer at this listener.
    pub fn router(&self, listener: usize) -> &Arc<Router> {
        self.own_sites_of(listener).map_or(&self.router, |own| &own.router)
    }

    /// Returns the acceptors of this listener, if it speaks HTTPS.
    #[must_use]
    pub fn acceptors(&self, listener: usize) -> Option<&Acceptors> {
        let https = self.config.listeners.get(listener)?.https()?;
        match self.own_sites_of(listener) {
            Some(own) => own.tls.as_ref(),
            None if https.http2 == Some(true) => Some(&self.tls_with_http2),
            None => Some(&self.tls),
        }
    }

    fn own_sites_of(&self, listener: usize) -> Option<&OwnSites> {
        self.own_sites.get(listener)?.as_deref()
    }
}

/// One configuration in force. The newest one answers each request, or there is a 421. A connection whose listener or limits
/// a reload changed keeps the one it started with for these, and to refuse what is no request. Both are consistent in themselves.
pub struct Snapshot {
    /// The part of it that all workers share.
    pub served: Arc<Served>,
    /// This worker's sockets. After a reload a socket that stays is the same `Arc` as before; one
    /// that is missing is to be emptied of connections waiting in it and dropped.
    pub listeners: Vec<Listening>,
    missed: Mutex<Vec<Arc<Snapshot>>>,
}

impl Snapshot {
    /// One before which its worker missed none.
    #[must_use]
    pub fn new(served: Arc<Served>, listeners: Vec<Listening>) -> Self {
        Self { served, listeners, missed: Mutex::default() }
    }

    /// Puts it in force for a worker. Where the worker has not taken the one before, as it had no time between two reloads, it will
    /// have to leave that one's sockets all the same: clients may wait in them by now.
    pub fn put_in_force(self, of_worker: &watch::Sender<Arc<Self>>) {
        of_worker.send_modify(|current| {
            let before = mem::replace(current, Arc::new(self));
            if let Some(missed) = Arc::into_inner(before) {
                current.note_missed(missed);
            }
        });
    }

    fn note_missed(&self, missed: Self) {
        let mut all = missed.take_missed();
        all.push(Arc::new(missed));
        let stay: HashSet<_> = self.listeners.iter().map(|it| Arc::as_ptr(&it.socket)).collect();
        let is_left = |it: &Listening| !stay.contains(&Arc::as_ptr(&it.socket));
        all.retain(|it| it.listeners.iter().any(is_left));
        all.drain(..all.len().saturating_sub(MISSED_MAX));
        *self.missed.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Takes those that were in force before and that the worker missed, with sockets that are not here.
    pub fn take_missed(&self) -> Vec<Arc<Self>> {
        mem::take(&mut *self.missed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reloads in a row that change addresses while a worker has no time at all.
const MISSED_MAX: usize = 64;

impl fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Snapshot")
            .field("listeners", &self.listeners)
            .finish_non_exhaustive()
    }
}

/// A socket that a worker accepts from.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The non-blocking listening socket: of TCP, or a Unix socket that is used as one.
    pub socket: Arc<std::net::TcpListener>,
    /// The other workers that accept from it.
    pub sharing: Sharing,
    /// Its settings: an index into `config.listeners` of the same snapshot.
    pub index: usize,
}

/// The configuration that answers a request, and what of it its connection reaches.
pub(crate) struct Answering {
    pub(crate) snapshot: Arc<Snapshot>,
    /// Its listener; `None` if that is gone, and was one of those that name no sites.
    pub(crate) listener: Option<usize>,
}

impl Answering {
    /// Which site and handler answer.
    pub(crate) fn router(&self) -> &Router {
        let served = &self.snapshot.served;
        self.listener.map_or(&served.router, |listener| served.router(listener))
    }
}

/// The workers that accept from a socket, and so its fate when one leaves it.
#[derive(Clone, Debug)]
pub enum Sharing {
    /// One worker, on an address that it shares with the other workers' sockets. The worker ends it.
    Own,
    /// As many workers as are counted here. The last that leaves it ends it: in one that is ended, all others would always see
    /// something to accept, and never anything.
    Shared(Arc<AtomicUsize>),
    /// All workers, and whoever started this process and listens on: those who wait in it wait for the next one.
    Inherited,
}

impl Sharing {
    /// Counts a worker that leaves. True if nobody is to listen any more.
    pub(crate) fn is_left_last(&self) -> bool {
        match self {
            Self::Own => true,
            Self::Shared(workers) => workers.fetch_sub(1, Ordering::AcqRel) == 1,
            Self::Inherited => false,
        }
    }
}

/// The signal whether the server is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Accept nothing yet: connections could take the descriptors that other threads begin with.
    Starting,
    /// Serve.
    Running,
    /// Accept nothing more, finish the requests in flight, be gone by the deadline.
    Draining {
        /// When what is still in flight is cut off.
        deadline: Instant,
    },
}
