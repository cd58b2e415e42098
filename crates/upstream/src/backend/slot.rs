//! A slot on a server, counted for as long as it is held, and which connection gets the next one.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use kettle_config::Balance;
use kettle_runtime::client_address::ClientHost;
use tokio::time::Instant;

use super::balance::{self, Candidate};
use super::state::Standing;
use super::{Backend, BackendShared, Server};

/// A slot on a server. When it is dropped, the next waiter gets it.
#[derive(Debug)]
pub struct Slot {
    server: Arc<Server>,
    shared: Arc<BackendShared>,
    index: usize,
}

/// The outcome of asking for a slot.
#[derive(Debug)]
pub(super) enum Choice {
    /// Here it is.
    Taken(Slot),
    /// There will be one: its holder gives it back, or a name is being looked up.
    Full,
    /// There may be one again: the operator lets those that are left have no new connections.
    Drained,
    /// No server is left that may be tried.
    Nobody,
}

impl Slot {
    /// Whose it is.
    #[must_use]
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Its server's index in the backend.
    pub(super) fn index(&self) -> usize {
        self.index
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.server.state.release();
        self.shared.queue.call_front();
    }
}

impl Backend {
    /// Takes a slot on one of the servers that were not tried yet.
    pub(super) fn take(
        &self,
        (client, key): (ClientHost, Option<u64>),
        tried: &[usize],
        now: Instant,
    ) -> Choice {
        // Round again only if another worker took the last slot in between. A connection that loses so often may as well wait.
        for _ in 0..ROUNDS_MAX {
            let group = self.group(tried, now);
            match group {
                Group::Nobody => return Choice::Nobody,
                Group::Drained => return Choice::Drained,
                Group::In { .. } | Group::Out { .. } | Group::Later => {}
            }
            let candidate = |(index, server): (usize, &Arc<Server>)| {
                server.candidate(&group, tried.contains(&index), now)
            };
            // One is most often all there is, and needs no list.
            let (one, several);
            let candidates = match &*self.servers {
                [server] => {
                    one = [candidate((0, server))];
                    &one[..]
                }
                servers => {
                    several = servers.iter().enumerate().map(candidate).collect::<Vec<_>>();
                    &several
                }
            };
            let Some((index, server)) = self
                .choose(candidates, client, key)
                .and_then(|index| Some((index, self.servers.get(index)?)))
            else {
                return Choice::Full;
            };
            if let Some(slot) = self.take_of(index, server) {
                if matches!(group, Group::Out { .. }) {
                    self.shared.forced.add_many(1);
                }
                return Choice::Taken(slot);
            }
        }
        Choice::Full
    }

    pub(super) fn take_of(&self, index: usize, server: &Arc<Server>) -> Option<Slot> {
        let server = Arc::clone(server);
        let shared = Arc::clone(&self.shared);
        let is_taken = server.state.reserve(server.connections_max);
        is_taken.then(|| Slot { server, shared, index })
    }

    /// True if there is no server to wait for.
    pub(super) fn has_nobody(&self, now: Instant) -> bool {
        matches!(self.group(&[], now), Group::Nobody | Group::Drained)
    }

    /// True if a server that was not tried is well.
    pub(super) fn has_well(&self, tried: &[usize], now: Instant) -> bool {
        matches!(self.group(tried, now), Group::In { .. })
    }

    /// When the next of the servers that failed connects keep out is back.
    pub(super) fn next_return(&self) -> Option<Instant> {
        let now = Instant::now();
        let returns = self.servers.iter().filter_map(|server| server.state.back_at());
        returns.filter(|back| *back > now).min()
    }

    /// Which servers are considered: the best there are, full or not.
    fn group(&self, tried: &[usize], now: Instant) -> Group {
        let untried = self.servers.iter().enumerate().filter(|(at, _)| !tried.contains(at));
        untried.fold(Group::Nobody, |best, (_, server)| {
            let group = match server.state.standing(now) {
                Standing::In => Group::In { is_backup: server.is_backup },
                // One that is out and full is not chosen: of the others, the one with the fewest failures is.
                Standing::Out { bad_in_a_row } if server.has_room() => {
                    Group::Out { bad_in_a_row, is_backup: server.is_backup }
                }
                Standing::Out { .. } | Standing::Pending => Group::Later,
                Standing::Unusable if server.state.is_draining() => Group::Drained,
                Standing::Unusable => Group::Nobody,
            };
            best.min(group)
        })
    }

    fn choose(
        &self,
        candidates: &[Candidate],
        client: ClientHost,
        key: Option<u64>,
    ) -> Option<usize> {
        let turn = || self.shared.turns.fetch_add(1, Relaxed);
        match (self.settings.balance, key) {
            (Balance::Hash, Some(key)) => balance::keyed(candidates, key),
            (Balance::LeastConnections | Balance::Cookie | Balance::Hash, _) => {
                balance::least_connections(candidates, turn())
            }
            (Balance::RoundRobin, _) => {
                let mut credits = self.credits.lock().unwrap_or_else(PoisonError::into_inner);
                balance::round_robin(candidates, &mut credits)
            }
            (Balance::RandomTwo, _) => balance::random_two(candidates, balance::mix(turn() as u64)),
            (Balance::SourceHash, _) => balance::source_hash(candidates, client),
            (Balance::NetworkHash, _) => {
                balance::source_hash(candidates, balance::network_of(client))
            }
            (Balance::First, _) => balance::first(candidates),
        }
    }
}

impl Server {
    /// The server as the choice of one in this group sees it.
    fn candidate(&self, group: &Group, is_tried: bool, now: Instant) -> Candidate {
        let is_of_group = match (group, self.state.standing(now)) {
            (Group::In { is_backup }, Standing::In) => *is_backup == self.is_backup,
            (Group::Out { bad_in_a_row, is_backup }, Standing::Out { bad_in_a_row: bad }) => {
                bad <= *bad_in_a_row && *is_backup == self.is_backup
            }
            _ => false,
        };
        Candidate {
            weight: self.weight,
            connections: self.state.connections(),
            is_eligible: is_of_group && self.has_room() && !is_tried,
            key: self.key,
        }
    }
}

/// Servers that are as good as each other; the lesser the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// They are well.
    In { is_backup: bool },
    /// They are not, but nobody else is better.
    Out { bad_in_a_row: u32, is_backup: bool },
    /// There will be one.
    Later,
    /// There will be one if the operator says so.
    Drained,
    /// There is none.
    Nobody,
}

/// Last slots that one client may lose to others.
const ROUNDS_MAX: usize = 16;
