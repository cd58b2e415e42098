//! The tunnels that are open on a worker, for the operator to look at (`kettle ctl tunnels`).
//!
//! A tunnel leaves what can be seen of it in cells of its own worker. A caller that wants to see it asks the worker: what nobody
//! looks at costs a few stores.

use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kettle_runtime::client_address::ClientAddress;
use kettle_runtime::deadlines::TICK;
use kettle_runtime::tx_path::Flow;
use kettle_upstream::backend::{Backend, Server};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use kettle_config::ListenAddress;

/// Which tunnels come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunnelOrder {
    /// Those that began last.
    Newest,
    /// Those that began first.
    Oldest,
    /// Those that carried most, both ways together.
    Bytes,
    /// Those that have carried nothing for the longest time.
    Idle,
}

/// A question about the tunnels of a worker.
#[derive(Debug)]
pub struct TunnelsQuestion {
    /// The number of those to be told one by one.
    pub top: usize,
    /// Which ones.
    pub order: TunnelOrder,
    /// The channel of the answer.
    pub answer: oneshot::Sender<TunnelsStatus>,
}

/// Open tunnels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelsStatus {
    /// The number of them.
    pub open: u64,
    /// The bytes that all of them have carried to backends.
    pub to_backend_bytes: u64,
    /// The bytes that all of them have carried to clients.
    pub to_client_bytes: u64,
    /// Workers that did not answer in time, whose tunnels are missing here.
    pub silent_workers: usize,
    /// Some of them one by one, in the order asked for.
    pub tunnels: Vec<TunnelStatus>,
}

/// An open tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelStatus {
    /// Its number, which stands in the access log as `connection`.
    pub connection: u64,
    /// Since the connection was accepted.
    pub age_seconds: u64,
    /// Since something was carried in either direction.
    pub idle_seconds: u64,
    /// The client, by its PROXY header where it came with one.
    pub client: String,
    /// The listener that accepted it.
    pub listener: String,
    /// The name that the client asked for.
    pub server_name: Option<String>,
    /// The backend that gets it.
    pub backend: String,
    /// The server, once there is one.
    pub server: Option<String>,
    /// The flow to the backend.
    pub to_backend: FlowStatus,
    /// The flow to the client.
    pub to_client: FlowStatus,
}

/// One direction of an open tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Plaintext that the other side took.
    pub bytes: u64,
    /// The path of its last bytes, once there is a server.
    pub path: Option<String>,
    /// Why that is not the preferred way.
    pub reason: Option<String>,
}

/// The view of a tunnel while it is open.
pub(crate) struct OpenTunnel {
    pub(crate) number: u64,
    pub(crate) accepted: Instant,
    pub(crate) client: ClientAddress,
    pub(crate) listener: ListenAddress,
    pub(crate) backend: Arc<Backend>,
    pub(crate) server_name: OnceCell<Box<str>>,
    pub(crate) server: OnceCell<Arc<Server>>,
    flows: Cell<Option<[Flow; 2]>>,
    /// The tick in which something was last carried.
    active: Cell<u32>,
}

/// A connection's number, and which of its tunnels it is: streams of HTTP/2 may be several.
type TunnelKey = (u64, usize);

/// The open tunnels of a worker, by their numbers: the newest is the last.
#[derive(Default)]
pub(crate) struct OpenTunnels {
    by_number: RefCell<BTreeMap<TunnelKey, Rc<OpenTunnel>>>,
}

impl OpenTunnel {
    pub(crate) fn new(
        number: u64,
        accepted: Instant,
        (client, listener): (ClientAddress, ListenAddress),
        backend: Arc<Backend>,
        tick: u32,
    ) -> Self {
        Self {
            number,
            accepted,
            client,
            listener,
            backend,
            server_name: OnceCell::new(),
            server: OnceCell::new(),
            flows: Cell::new(None),
            active: Cell::new(tick),
        }
    }

    /// Something was carried in this tick: so much in all, to the backend and to the client.
    pub(crate) fn carried(&self, flows: [Flow; 2], tick: u32) {
        self.flows.set(Some(flows));
        self.active.set(tick);
    }

    /// Where it lies is nobody else's place as long as it is open.
    fn key(&self) -> TunnelKey {
        (self.number, std::ptr::from_ref(self).addr())
    }

    fn bytes(&self) -> [u64; 2] {
        self.flows.get().map_or([0; 2], |flows| flows.map(|flow| flow.bytes))
    }

    /// The higher, the earlier it comes.
    fn rank(&self, order: TunnelOrder, tick: u32) -> u64 {
        match order {
            TunnelOrder::Newest | TunnelOrder::Oldest => order.rank_of_number(self.number),
            TunnelOrder::Bytes => self.bytes().iter().sum(),
            TunnelOrder::Idle => self.idle(tick).as_secs(),
        }
    }

    /// By whole ticks: the one in which something was carried may have been over the moment after.
    fn idle(&self, tick: u32) -> Duration {
        (TICK * tick.saturating_sub(self.active.get())).min(self.accepted.elapsed())
    }

    fn status(&self, tick: u32) -> TunnelStatus {
        let [to_backend, to_client] = match self.flows.get() {
            Some(flows) => flows.map(FlowStatus::from),
            None => Default::default(),
        };
        TunnelStatus {
            connection: self.number,
            idle_seconds: self.idle(tick).as_secs(),
            age_seconds: self.accepted.elapsed().as_secs(),
            client: self.client.to_string(),
            listener: self.listener.to_string(),
            server_name: self.server_name.get().map(|name| name.chars().take(NAME_MAX).collect()),
            backend: self.backend.name.to_string(),
            server: self.server.get().map(|server| server.name.to_string()),
            to_backend,
            to_client,
        }
    }
}

impl From<Flow> for FlowStatus {
    fn from(flow: Flow) -> Self {
        let reason = flow.reason.map(|reason| reason.as_str().to_owned());
        Self { bytes: flow.bytes, path: Some(flow.path.as_str().to_owned()), reason }
    }
}

impl OpenTunnels {
    pub(crate) fn add(&self, tunnel: &Rc<OpenTunnel>) {
        self.by_number.borrow_mut().insert(tunnel.key(), Rc::clone(tunnel));
    }

    pub(crate) fn remove(&self, tunnel: &OpenTunnel) {
        self.by_number.borrow_mut().remove(&tunnel.key());
    }

    /// Answers each question in its turn. `tick` says which tick it is.
    pub(crate) async fn answer(
        &self,
        mut questions: mpsc::Receiver<TunnelsQuestion>,
        tick: impl Fn() -> u32,
    ) {
        while let Some(TunnelsQuestion { top, order, answer }) = questions.recv().await {
            let status = self.status(top, order, &tick).await;
            // The caller may be gone.
            let _ = answer.send(status);
        }
    }

    /// Looks at all of them, a few in each turn.
    async fn status(
        &self,
        top: usize,
        order: TunnelOrder,
        tick: impl Fn() -> u32,
    ) -> TunnelsStatus {
        let mut status = TunnelsStatus::default();
        let mut first: Vec<(u64, Rc<OpenTunnel>)> = Vec::new();
        let mut next = (0, 0);
        loop {
            let now = tick();
            let mut seen = 0;
            for ((number, which), tunnel) in
                self.by_number.borrow().range(next..).take(LOOKED_AT_MAX)
            {
                seen += 1;
                next = (*number, which + 1);
                let [to_backend, to_client] = tunnel.bytes();
                status.open += 1;
                status.to_backend_bytes += to_backend;
                status.to_client_bytes += to_client;
                first.push((tunnel.rank(order, now), Rc::clone(tunnel)));
            }
            first.sort_by_key(|(rank, _)| Reverse(*rank));
            first.truncate(top);
            if seen < LOOKED_AT_MAX {
                break;
            }
            yield_now().await;
        }
        let now = tick();
        status.tunnels = first.iter().map(|(_, tunnel)| tunnel.status(now)).collect();
        status
    }
}

impl FromStr for TunnelOrder {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "newest" => Ok(Self::Newest),
            "oldest" => Ok(Self::Oldest),
            "bytes" => Ok(Self::Bytes),
            "idle" => Ok(Self::Idle),
            _ => Err("the order is `newest`, `oldest`, `bytes` or `idle`"),
        }
    }
}

impl TunnelOrder {
    fn rank_of_number(self, number: u64) -> u64 {
        if self == Self::Oldest { u64::MAX - number } else { number }
    }

    fn rank(self, tunnel: &TunnelStatus) -> u64 {
        match self {
            Self::Newest | Self::Oldest => self.rank_of_number(tunnel.connection),
            Self::Bytes => tunnel.to_backend.bytes + tunnel.to_client.bytes,
            Self::Idle => tunnel.idle_seconds,
        }
    }
}

impl TunnelsStatus {
    /// Puts together what several workers say, and lists at most this many one by one.
    pub fn of_all(parts: impl IntoIterator<Item = Self>, top: usize, order: TunnelOrder) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.open += part.open;
            all.to_backend_bytes += part.to_backend_bytes;
            all.to_client_bytes += part.to_client_bytes;
            all.silent_workers += part.silent_workers;
            all.tunnels.extend(part.tunnels);
        }
        all.tunnels.sort_by_key(|tunnel| Reverse(order.rank(tunnel)));
        all.tunnels.truncate(top);
        all
    }
}

/// Characters of a name that are shown: DNS has no longer ones, but anything may stand in a ClientHello.
const NAME_MAX: usize = 255;

/// The number of tunnels that are looked at before the worker's connections have their turn.
const LOOKED_AT_MAX: usize = 1_024;
