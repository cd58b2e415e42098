//! Getting a connection: a slot on a server, waited for where all are full; the connection; the next server where that
//! fails, each at most once.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use kettle_runtime::client_address::ClientHost;
use tokio::time::{Instant, timeout_at};

use super::failure::{ConnectError, Failure, Outcome};
use super::slot::{Choice, Slot};
use super::socket::{self, Socket};
use super::{Backend, Server};

/// A connection to a server of a backend.
#[derive(Debug)]
pub struct Connected<S = Socket> {
    /// The connection, or what was made of it.
    pub socket: S,
    /// Whose it is.
    pub server: Arc<Server>,
    /// Counts it for as long as it is kept.
    pub slot: Slot,
    /// The time the server took.
    pub connect_time: Duration,
}

/// The tries of one client.
#[derive(Debug)]
pub struct Attempts {
    backend: Arc<Backend>,
    client: ClientHost,
    /// The key that chooses its server, where its request does.
    key: Option<NonZero<u64>>,
    /// The server that its cookie names.
    asked: Option<u64>,
    /// Servers that failed this client, by index.
    tried: Vec<usize>,
    last_failure: Option<Failure>,
    /// The slot for the next try.
    kept: Option<Slot>,
    /// True if the client has an answer already, with its slot: those that wait for each other's slot would wait in vain.
    has_answer: bool,
    /// The end of all waiting in the queue together.
    queue_deadline: Option<Instant>,
}

/// A try of one server, with a slot on it. Dropped without an outcome, it counts as abandoned.
#[derive(Debug)]
pub struct Attempt {
    slot: Slot,
    started: Instant,
    deadline: Instant,
    record: Record,
}

/// Counts what came of a try, whatever becomes of it.
#[derive(Debug)]
struct Record {
    server: Arc<Server>,
    /// `None` where none was tried.
    outcome: Option<Outcome>,
}

impl Backend {
    /// The servers to try for a client, one after the other.
    #[must_use]
    pub fn attempts(self: &Arc<Self>, client: ClientHost) -> Attempts {
        Attempts {
            backend: Arc::clone(self),
            client,
            key: None,
            asked: None,
            tried: Vec::new(),
            last_failure: None,
            kept: None,
            has_answer: false,
            queue_deadline: None,
        }
    }
}

impl Attempts {
    /// Tries the server first that a cookie names.
    pub fn beginning_with(self, asked: Option<u64>) -> Self {
        Self { asked, ..self }
    }

    /// Has this choose the servers, where the backend goes by it.
    pub fn by_key(self, key: Option<NonZero<u64>>) -> Self {
        Self { key, ..self }
    }

    fn take(&self, now: Instant) -> Choice {
        let named = self.asked.and_then(|it| self.backend.take_named(it, &self.tried, now));
        named.unwrap_or_else(|| {
            self.backend.take((self.client, self.key.map(NonZero::get)), &self.tried, now)
        })
    }

    /// Waits for a slot. The server that a cookie names is waited for as others are, and no longer: then another one has to do.
    async fn wait_or_leave(
        &mut self,
        successor: impl Fn() -> Option<Arc<Backend>>,
    ) -> Result<Slot, ConnectError> {
        let waited = self.wait(successor).await;
        if waited.is_err()
            && self.asked.take().is_some()
            && let Choice::Taken(slot) = self.choose(Instant::now())
        {
            return Ok(slot);
        }
        waited
    }

    /// A slot on the next server, waited for where all are full. If a reload has replaced the backend, `successor` says
    /// whose servers come next, if the client may go on there; a waiter keeps its place in the queue, and its deadline.
    ///
    /// # Errors
    /// [`ConnectError`]: nothing is left to try.
    pub async fn next(
        &mut self,
        successor: impl Fn() -> Option<Arc<Backend>>,
    ) -> Result<Attempt, ConnectError> {
        self.follow(&successor);
        let now = Instant::now();
        let choice = match self.take_kept() {
            Some(slot) => Choice::Taken(slot),
            None => self.choose(now),
        };
        let (slot, started) = match choice {
            Choice::Taken(slot) => (slot, now),
            Choice::Full if !self.has_answer => {
                // Boxed: most requests wait for no slot.
                (Box::pin(self.wait_or_leave(&successor)).await?, Instant::now())
            }
            Choice::Full | Choice::Nobody | Choice::Drained => return Err(self.exhausted()),
        };
        let server = Arc::clone(slot.server());
        let deadline = started + self.backend.settings.connect_timeout;
        Ok(Attempt {
            slot,
            started,
            deadline,
            record: Record { server, outcome: Some(Outcome::Abandoned) },
        })
    }

    /// The next try is to be one of the same server, by its slot: what is sent again has had its turn.
    pub fn keep(&mut self, slot: Slot) {
        self.kept = Some(slot);
    }

    /// The next try is to be one of another server: this one has refused the request.
    pub(crate) fn pass_over(&mut self, slot: Slot) {
        self.tried.push(slot.index());
    }

    /// The next try is to be one of another server than this slot's, if one is left that is well; false if none is. From the first
    /// answer on that is held meanwhile (`has_answer`), full servers are waited for no more.
    pub fn go_on(&mut self, slot: &Slot, has_answer: bool) -> bool {
        self.tried.push(slot.index());
        let now = Instant::now();
        let is_held = self.has_answer || has_answer;
        let goes_on = self.backend.has_well(&self.tried, now)
            && (!is_held || {
                let taken = self.take(now);
                self.kept = match taken {
                    Choice::Taken(slot) => Some(slot),
                    _ => None,
                };
                self.kept.is_some()
            });
        self.has_answer |= has_answer && goes_on;
        if !goes_on {
            self.tried.pop();
        }
        goes_on
    }

    /// The try led to a connection.
    #[must_use]
    pub fn succeeded<S>(&self, attempt: Attempt, socket: S) -> Connected<S> {
        let Attempt { slot, started, mut record, .. } = attempt;
        record.outcome = Some(Outcome::Connected);
        let server = Arc::clone(&record.server);
        let connect_time = started.elapsed();
        self.backend.shared.connect_times.observe(connect_time);
        if server.state.connect_succeeded() {
            tracing::info!(backend = %self.backend.name, server = %server.name, "a server takes connections again");
            self.backend.shared.queue.call_front();
        }
        Connected { socket, server, slot, connect_time }
    }

    /// The try led to nothing.
    pub fn failed(&mut self, mut attempt: Attempt, failure: Failure) {
        attempt.record.outcome = Some(failure.outcome);
        self.tried.push(attempt.slot.index());
        let backend = &self.backend;
        let server = &attempt.record.server;
        let now = Instant::now();
        // An application whose processes are all busy takes connections late, and is well.
        let is_busy =
            failure.outcome == Outcome::TimedOut && backend.settings.protocol.runs_programs();
        let is_out = !is_busy
            && failure.outcome.is_against_server()
            && server.state.connect_failed(&failure, backend.tolerance(), now);
        if is_out {
            tracing::warn!(backend = %backend.name, server = %server.name, %failure, "a server is out: it takes no connections");
        } else if server.state.tells_failure(now) {
            tracing::warn!(backend = %backend.name, server = %server.name, %failure, "a server took no connection; said once a minute at most");
        } else {
            tracing::debug!(backend = %backend.name, server = %server.name, %failure, "a server took no connection");
        }
        self.last_failure = Some(failure);
    }

    /// Goes on with the backend that has taken this one's place.
    fn follow(&mut self, successor: impl Fn() -> Option<Arc<Backend>>) {
        if !self.backend.is_replaced() {
            return;
        }
        let Some(next) = successor() else { return };
        let failed = |server: &Arc<Server>| {
            let mut tried = self.tried.iter().filter_map(|index| self.backend.servers.get(*index));
            tried.any(|tried| Arc::ptr_eq(&tried.state, &server.state))
        };
        let servers = next.servers.iter().enumerate();
        let tried = servers.filter(|(_, server)| failed(server)).map(|(index, _)| index).collect();
        (self.tried, self.backend) = (tried, next);
    }

    /// The slot that was kept, if its server is still one for a new connection.
    fn take_kept(&mut self) -> Option<Slot> {
        let kept = self.kept.take()?;
        let servers = &self.backend.servers;
        let is_ours = servers.get(kept.index()).is_some_and(|it| Arc::ptr_eq(it, kept.server()));
        (is_ours && !kept.server().state.is_draining()).then_some(kept)
    }

    /// A slot without waiting, as far as those that wait let this client have one.
    fn choose(&self, now: Instant) -> Choice {
        let take = || self.take(now);
        match self.backend.shared.queue.waiting() {
            0 => take(),
            // It came before all that wait.
            _ if !self.tried.is_empty() => take(),
            // To wait for nobody would only keep others from waiting.
            _ if self.backend.has_nobody(now) => Choice::Nobody,
            // The waiters were here first.
            _ => Choice::Full,
        }
    }

    async fn wait(
        &mut self,
        successor: impl Fn() -> Option<Arc<Backend>>,
    ) -> Result<Slot, ConnectError> {
        let settings = &self.backend.settings;
        let deadline =
            *self.queue_deadline.get_or_insert_with(|| Instant::now() + settings.queue_timeout);
        // The queue is its successor's, too.
        let shared = Arc::clone(&self.backend.shared);
        let queue = &shared.queue;
        let Some(waiter) = queue.join(settings.queue, self.tried.is_empty()) else {
            return Err(ConnectError::QueueFull);
        };
        loop {
            // The end of a server's time out wakes no waiter, so waiters look at the clock.
            let until = self.backend.next_return().map_or(deadline, |back| back.min(deadline));
            match timeout_at(until, waiter.called()).await {
                Ok(()) => {}
                Err(_) if until == deadline => return Err(ConnectError::QueueTimeout),
                Err(_) => {
                    queue.call_front();
                    continue;
                }
            }
            self.follow(&successor);
            match self.take(Instant::now()) {
                Choice::Taken(slot) => return Ok(slot),
                // Its successor may have some as soon as this worker sees it.
                Choice::Nobody if self.backend.is_replaced() => waiter.pass_on(),
                // A request that waits has a place before a server that is only ready again in a moment, and its time to wait
                // for that.
                Choice::Drained => waiter.pass_on(),
                Choice::Nobody => return Err(self.exhausted()),
                // Others may use what those cannot who have tried it, or whose configuration does not have it.
                Choice::Full
                    if !self.tried.is_empty()
                        || self.asked.is_some()
                        || self.backend.is_replaced() =>
                {
                    waiter.pass_on();
                }
                Choice::Full => {}
            }
        }
    }

    fn exhausted(&self) -> ConnectError {
        self.last_failure.clone().map_or(ConnectError::NoServer, ConnectError::AllFailed)
    }
}

impl Attempt {
    /// The server tried.
    #[must_use]
    pub fn server(&self) -> &Arc<Server> {
        &self.record.server
    }

    /// When it began: with its slot.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// When `connect_timeout` ends, for all that belongs to connecting.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The slot for a connection that is there already.
    #[must_use]
    pub fn without_connecting(mut self) -> Slot {
        self.record.outcome = None;
        self.slot
    }

    /// Connects and makes of the connection what is wanted, all before the deadline. Of a name's addresses the next is tried
    /// where either fails.
    ///
    /// # Errors
    /// [`Failure`], to be reported by [`Attempts::failed`].
    pub async fn connect_with<S>(
        &self,
        make: impl AsyncFn(Socket, &Server) -> Result<S, Failure>,
    ) -> Result<S, Failure> {
        let server = self.server();
        let make = async |socket| make(socket, server).await;
        socket::connect(server, self.deadline, make).await
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome {
            self.server.state.connects.add_many(outcome, 1);
        }
    }
}
