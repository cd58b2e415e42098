//! Backends: services that connections are carried to, and the servers that offer them.
//!
//! They are made from the configuration, at the start and at each reload. The state of a server is kept over a reload
//! for as long as its backend's name and its address stay ([`ServerState`]); connections keep what they need of it alive.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex};

use kettle_config::{BackendServer, ServerAddress};
use kettle_runtime::metrics::{Count, Durations};

mod attempts;
pub mod balance;
mod check;
mod failure;
mod names;
mod queue;
mod render;
mod slot;
mod socket;
mod state;
mod status;
mod sticky;
mod tasks;
mod upstream_counts;

pub use attempts::{Attempt, Attempts, Connected};
pub use check::{Handshake, ServerStream};
pub use failure::{ConnectError, Failure, Outcome};
pub use slot::Slot;
pub use socket::Socket;
pub(crate) use state::PeerAddress;
pub use state::ServerState;
pub use status::{BackendStatus, Health, ServerStatus, UnknownServer};
pub use sticky::asked_by;
pub use tasks::BackendTasks;
pub use upstream_counts::UseCount;

use queue::SlotQueue;
use state::Tolerance;
use upstream_counts::UpstreamCounts;

/// The backends of a configuration.
#[derive(Debug, Default)]
pub struct Backends {
    backends: Vec<Arc<Backend>>,
    /// Their numbers.
    by_name: HashMap<Arc<str>, usize>,
}

/// A service, and the servers that offer it.
#[derive(Debug)]
pub struct Backend {
    /// The name that listeners and sites call it by.
    pub name: Arc<str>,
    /// Its settings, as they stand in the configuration.
    pub settings: kettle_config::Backend,
    /// Its servers, in the order of the configuration.
    pub servers: Vec<Arc<Server>>,
    /// Whose turn it is, for [`balance::round_robin`].
    credits: Mutex<Vec<i64>>,
    generation: u64,
    shared: Arc<BackendShared>,
}

/// The state that backends of the same name share over reloads.
#[derive(Debug, Default)]
struct BackendShared {
    queue: SlotQueue,
    turns: AtomicUsize,
    /// Which [`Backend`] is in force.
    generation: AtomicU64,
    connect_times: Durations,
    /// Places taken on servers that are out, because all are.
    forced: Count,
    upstream: UpstreamCounts,
}

/// A server as the configuration has it.
#[derive(Debug)]
pub struct Server {
    /// The name in log, metrics and commands.
    pub name: Arc<str>,
    /// Its address.
    pub address: ServerAddress,
    /// Its state.
    pub state: Arc<ServerState>,
    weight: u32,
    connections_max: Option<u32>,
    is_backup: bool,
    key: u64,
    /// The key by which cookies name it: the same on all hosts that call it and its backend so.
    cookie_key: u64,
}

/// A server by the configuration in force, and how TLS is spoken to it.
struct Watched<H> {
    backend: Arc<Backend>,
    server: Arc<Server>,
    handshake: Rc<H>,
}

impl Backends {
    /// The backends of a configuration. The state of their servers `before` is kept. Until [`put_in_force`](Self::put_in_force)
    /// nothing changes for those that serve.
    #[must_use]
    pub fn new(config: &[kettle_config::Backend], before: Option<&Self>) -> Self {
        let backend = |settings: &kettle_config::Backend| {
            let before = before.and_then(|before| before.find(&settings.name));
            Arc::new(Backend::new(settings, before.map(Arc::as_ref)))
        };
        let backends: Vec<_> = config.iter().map(backend).collect();
        let named = backends.iter().enumerate().map(|(at, it)| (Arc::clone(&it.name), at));
        Self { by_name: named.collect(), backends }
    }

    /// Takes the place of those they were made from. Requests that wait there go on here, or, where nothing leads here any
    /// more, by what was in force before; then it lets those pass that came later and find room.
    pub fn put_in_force(&self) {
        self.iter().for_each(|backend| backend.put_in_force());
    }

    /// Lets those that wait look again: their worker has seen this configuration.
    pub fn call_waiters(&self) {
        self.iter().for_each(|backend| backend.shared.queue.call_front());
    }

    /// The backend of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Backend>> {
        self.backends.get(*self.by_name.get(name)?)
    }

    /// All of them, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.backends.iter()
    }
}

impl Backend {
    fn new(settings: &kettle_config::Backend, before: Option<&Self>) -> Self {
        let shared = before.map_or_else(Arc::default, |before| Arc::clone(&before.shared));
        let known = before.map_or(&[][..], |before| &before.servers);
        // Several may have one address: those keep their states by their names, and new ones get what is left.
        let names: Vec<_> = settings.servers.iter().map(name_of).collect();
        let mut left: HashMap<(&ServerAddress, Option<&str>), VecDeque<usize>> = HashMap::new();
        for (number, server) in known.iter().enumerate() {
            for name in [Some(&*server.name), None] {
                left.entry((&server.address, name)).or_default().push_back(number);
            }
        }
        let mut taken = HashSet::new();
        let mut take = |key| {
            let left = left.get_mut(&key)?;
            std::iter::from_fn(|| left.pop_front()).find(|number| taken.insert(*number))
        };
        let all = || settings.servers.iter().zip(&names);
        let same: Vec<_> =
            all().map(|(it, name)| take((&it.address.value, Some(name.as_str())))).collect();
        let rest =
            all().zip(same).map(|((it, _), same)| same.or_else(|| take((&it.address.value, None))));
        let same: Vec<_> = rest.collect();
        let mut at_address: HashMap<&ServerAddress, usize> = HashMap::new();
        for it in &settings.servers {
            *at_address.entry(&it.address.value).or_default() += 1;
        }
        let server = |((it, name), same): ((&BackendServer, &String), Option<usize>)| {
            let same = same.and_then(|number| known.get(number));
            // A key by which clients know the server through its address alone stays theirs; of two with one key, one would
            // have all.
            let key = match at_address.get(&it.address.value) {
                Some(1) => it.address.value.to_string(),
                _ => format!("{} {name}", it.address.value),
            };
            let known = same.map(Arc::as_ref);
            Arc::new(Server::new(it, &settings.name.value, &key, known, settings.check.is_some()))
        };
        let servers: Vec<_> = all().zip(same).map(server).collect();
        Self {
            name: settings.name.value.as_str().into(),
            settings: settings.clone(),
            credits: Mutex::new(vec![0; servers.len()]),
            servers,
            generation: before.map_or(0, |before| before.generation + 1),
            shared,
        }
    }

    fn put_in_force(&self) {
        let is_checked = self.settings.check.is_some();
        self.servers.iter().for_each(|server| server.state.set_checked(is_checked));
        // A task that sees this sees the configuration that was sent before.
        self.shared.generation.store(self.generation, Release);
        // Those that wait may find that there is more room now.
        self.shared.queue.call_front();
    }

    /// The number of connections that wait for a slot.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.queue.waiting()
    }

    /// True if a reload made another backend of this name.
    fn is_replaced(&self) -> bool {
        self.shared.generation.load(Acquire) != self.generation
    }

    /// True if it is the same backend after one reload or more.
    pub fn is_successor_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.generation > other.generation
    }

    fn tolerance(&self) -> Tolerance {
        Tolerance { fails: self.settings.fails, fail_time: self.settings.fail_time }
    }
}

impl Server {
    fn new(
        settings: &BackendServer,
        backend: &str,
        key: &str,
        known: Option<&Self>,
        is_checked: bool,
    ) -> Self {
        let name = name_of(settings);
        let address = settings.address.value.clone();
        let state = match known {
            Some(known) => Arc::clone(&known.state),
            None => Arc::new(ServerState::new(&address, is_checked)),
        };
        Self {
            cookie_key: balance::mix(balance::key_of(&format!("{backend} {name}"))),
            name: name.into(),
            key: balance::key_of(key),
            address,
            state,
            weight: settings.weight,
            connections_max: settings.connections,
            is_backup: settings.backup,
        }
    }

    /// True if it can be tried at all.
    fn has_address(&self) -> bool {
        matches!(self.address, ServerAddress::Unix(_)) || !self.state.addresses().is_empty()
    }

    fn has_room(&self) -> bool {
        self.connections_max.is_none_or(|most| self.state.connections() < most)
    }
}

impl<H> Clone for Watched<H> {
    fn clone(&self) -> Self {
        Self {
            backend: Arc::clone(&self.backend),
            server: Arc::clone(&self.server),
            handshake: Rc::clone(&self.handshake),
        }
    }
}

/// Returns the name of a server; one without a name by its address.
fn name_of(settings: &BackendServer) -> String {
    settings.name.clone().unwrap_or_else(|| settings.address.value.to_string())
}

#[cfg(test)]
pub(crate) mod tests;
