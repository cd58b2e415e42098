//! The state that all connections of a worker share.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kettle_config::Limits;
use kettle_handlers::files::handler::Files;
use kettle_handlers::guard::Guards;
use kettle_handlers::respond::Responder;
use kettle_http::h2::WindowBudget;
use kettle_kernel::bug;
use kettle_kernel::probe::Capabilities;
use kettle_runtime::access_log::WorkerLog;
use kettle_runtime::clock::{Clock, CoarseClock, DATE_LINE_BYTES, DateLine};
use kettle_runtime::deadlines::{DUE_TIME, Deadlines};
use kettle_runtime::head_buffers::HeadBuffers;
use kettle_runtime::metrics::WorkerMetrics;
use kettle_runtime::offloads::Offloads;
use kettle_runtime::pipes::Pipes;
use kettle_runtime::turns::{HandshakeTurns, SendTurns};
use kettle_runtime::tx_path::switch::TxPathSwitch;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{timeout, timeout_at};

use crate::open_tunnels::OpenTunnels;
use crate::setup::{Budgets, Snapshot};

/// The state that all connections of a worker share.
pub(crate) struct WorkerState {
    pub(crate) clock: CoarseClock,
    pub(crate) handshake_turns: HandshakeTurns,
    pub(crate) log: WorkerLog,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) offloads: Rc<Offloads>,
    pub(crate) open_tunnels: OpenTunnels,
    pub(crate) pipes: Rc<Pipes>,
    pub(crate) responder: Responder,
    pub(crate) send_turns: SendTurns,
    /// The bytes by which windows of HTTP/2 may grow, in the whole process.
    pub(crate) window_budget: Arc<WindowBudget>,
    pub(crate) deadlines: Deadlines,
    date_line: DateLine,
    snapshot: RefCell<Arc<Snapshot>>,
    connections: Cell<usize>,
    /// Accepted, and not begun yet for want of room.
    waiting: Cell<usize>,
    /// Told when a connection ends and when a tick passes: a task that waits for room looks again.
    room: Notify,
    /// Told when the last connection has ended, and none waits.
    emptied: Notify,
    pub(crate) heads: Rc<HeadBuffers>,
    /// True if the log's notes of each answer are lost on their way: all but the log must stay as it is.
    #[cfg(test)]
    pub(crate) forgets_notes: Cell<bool>,
}

/// The place of a connection among those of its worker, which counts it for as long as this is kept.
pub(crate) struct OpenConnection(Rc<WorkerState>);

impl OpenConnection {
    pub(crate) fn new(worker: Rc<WorkerState>) -> Self {
        worker.connection_opened();
        Self(worker)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connection_closed();
    }
}

/// A connection that was accepted and not begun, counted as such for as long as this is kept.
pub(crate) struct WaitingConnection(Rc<WorkerState>);

impl Drop for WaitingConnection {
    fn drop(&mut self) {
        match self.0.waiting.get().checked_sub(1) {
            Some(left) => self.0.waiting.set(left),
            None => _ = bug!("a connection that waited was counted"),
        }
        self.0.tell_if_empty();
    }
}

impl WorkerState {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        metrics: Arc<WorkerMetrics>,
        log: WorkerLog,
        tx_path_switch: Arc<TxPathSwitch>,
        capabilities: Arc<Capabilities>,
        budgets: Budgets,
    ) -> Self {
        let limits: &Limits = &snapshot.served.config.limits;
        let responder = Responder {
            files: Files::new(limits, Arc::clone(&metrics), budgets.encoders),
            guards: Guards::default(),
            pool: Rc::default(),
            spool: budgets.spool,
        };
        responder.files.disks().bound_unwritten(budgets.unwritten_bytes);
        Self {
            clock: CoarseClock,
            date_line: DateLine::new(),
            handshake_turns: HandshakeTurns::new(HANDSHAKES_PER_TURN),
            log,
            offloads: Rc::new(Offloads::new(capabilities, tx_path_switch, Arc::clone(&metrics))),
            metrics,
            open_tunnels: OpenTunnels::default(),
            pipes: Rc::default(),
            responder,
            send_turns: SendTurns::default(),
            window_budget: budgets.windows,
            deadlines: Deadlines::default(),
            snapshot: RefCell::new(snapshot),
            connections: Cell::new(0),
            waiting: Cell::new(0),
            room: Notify::new(),
            emptied: Notify::new(),
            heads: Rc::default(),
            #[cfg(test)]
            forgets_notes: Cell::default(),
        }
    }

    /// The configuration in force.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// True if this is the configuration in force.
    pub(crate) fn is_current(&self, snapshot: &Arc<Snapshot>) -> bool {
        Arc::ptr_eq(&self.snapshot.borrow(), snapshot)
    }

    fn connection_opened(&self) {
        self.metrics.connection_opened();
        self.connections.set(self.connections.get() + 1);
    }

    fn connection_closed(&self) {
        self.metrics.connection_closed();
        match self.connections.get().checked_sub(1) {
            Some(left) => self.connections.set(left),
            None => _ = bug!("a connection that ends was counted"),
        }
        // Each of them: the one that it wakes first may have no client.
        self.room.notify_waiters();
        self.tell_if_empty();
    }

    fn tell_if_empty(&self) {
        if self.connections.get() + self.waiting.get() == 0 {
            self.emptied.notify_one();
        }
    }

    /// Puts a new configuration in force.
    pub(crate) fn adopt(&self, snapshot: Arc<Snapshot>) {
        self.snapshot.replace(Arc::clone(&snapshot));
        self.responder.files.forget();
        self.responder.pool.adopt(Arc::clone(&snapshot.served.upstreams));
        self.responder.spool.set_bytes_max(snapshot.served.config.limits.request_spool_bytes);
        snapshot.served.backends.call_waiters();
    }

    /// True if as many connections are open as may be, or wait to be.
    pub(crate) fn is_full(&self, connections_max: usize) -> bool {
        self.connections.get() + self.waiting.get() >= connections_max
    }

    /// Waits until there is room for another connection, behind those that were accepted before. From when on a client waits for
    /// it (`is_awaited`), connections that are idle make it.
    pub(crate) async fn room_for(&self, connections_max: usize, is_awaited: impl AsyncFn()) {
        while self.is_full(connections_max) {
            is_awaited().await;
            if self.is_full(connections_max) {
                self.make_room().await;
            }
        }
    }

    /// Ends a connection that is idle, and waits until something is freed: a connection ends, or a tick passes.
    pub(crate) async fn make_room(&self) {
        self.deadlines.end_idle();
        self.room.notified().await;
    }

    /// Waits until there is room, by the configuration in force, for a connection that was accepted.
    pub(crate) async fn room_for_waiting(&self) {
        let is_full = |limits: &Limits| self.connections.get() >= limits.connections_per_worker;
        while is_full(&self.snapshot.borrow().served.config.limits) {
            self.room.notified().await;
        }
    }

    /// Notes that a connection was accepted that there may be no room for.
    pub(crate) fn waits_for_room(self: &Rc<Self>) -> WaitingConnection {
        self.waiting.set(self.waiting.get() + 1);
        WaitingConnection(Rc::clone(self))
    }

    /// Lets a tick pass.
    pub(crate) fn tick(&self) {
        self.deadlines.tick();
        self.responder.pool.sweep();
        self.responder.files.release();
        self.room.notify_waiters();
    }

    /// Lets requests in flight finish, until the deadline; says how many connections are left. Further ones come until `no_more` has.
    pub(crate) async fn drain(
        &self,
        deadline: Instant,
        no_more: impl Future<Output = ()>,
    ) -> usize {
        self.deadlines.drain();
        self.responder.pool.stop();
        let emptied = async {
            no_more.await;
            self.emptied().await;
            self.responder.pool.drain().await;
            self.responder.files.disks().have_run_all().await;
        };
        let emptied = async {
            let mut emptied = pin!(emptied);
            if timeout(DUE_TIME, emptied.as_mut()).await.is_err() {
                self.deadlines.end_due();
                emptied.await;
            }
        };
        // The number shows if it was in time.
        let _ = timeout_at(deadline.into(), emptied).await;
        self.connections.get() + self.waiting.get()
    }

    /// Interrupts what the drain left, so that it is logged as what it is: a response that was cut off.
    pub(crate) async fn cut_off(&self) {
        // A client that waits for a server or a disk has time for an answer that says so.
        self.responder.pool.end_drain();
        self.responder.files.disks().end_drain();
        for _ in 0..ANSWER_TURNS {
            yield_now().await;
        }
        self.deadlines.end_drain();
        let _ = timeout(CUT_TIME_MAX, self.emptied()).await;
    }

    /// Waits until there are no connections, and none that was accepted waits.
    async fn emptied(&self) {
        while self.connections.get() + self.waiting.get() > 0 {
            self.emptied.notified().await;
        }
    }

    /// The `date` line of now.
    pub(crate) fn date_line(&self) -> [u8; DATE_LINE_BYTES] {
        self.date_line.at(self.clock.wall())
    }
}

/// A number that no other connection of this process has.
pub(crate) fn next_connection_number() -> u64 {
    NEXT_CONNECTION_NUMBER.fetch_add(1, Ordering::Relaxed)
}

static NEXT_CONNECTION_NUMBER: AtomicU64 = AtomicU64::new(1);

/// The time that connections that are cut off have to take notice. It is within what the main thread leaves to workers.
const CUT_TIME_MAX: Duration = Duration::from_secs(1);

/// In how many turns of the runtime a request notices, answers, and has its answer written.
const ANSWER_TURNS: u32 = 8;

/// Handshake steps before established connections have their turn again.
const HANDSHAKES_PER_TURN: usize = 8;
