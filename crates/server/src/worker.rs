//! A worker: one thread, one runtime, its own listening sockets, and the connections it accepts.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kettle_kernel::probe::Capabilities;
use kettle_kernel::process;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval, timeout_at};

use crate::access_log::WorkerLog;
use crate::answerer::Answerer;
use crate::clock::CoarseClock;
use crate::connection::Connection;
use crate::kill_switch::KillSwitch;
use crate::limits::{HandshakeTurns, TICK, Watches};
use crate::metrics::WorkerMetrics;
use crate::setup::{Listening, Shutdown, Snapshot, WorkerSetup};

/// What all connections of a worker share.
pub(crate) struct Worker {
    pub(crate) answerer: Answerer,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) clock: CoarseClock,
    pub(crate) handshake_turns: HandshakeTurns,
    pub(crate) kill_switch: Arc<KillSwitch>,
    pub(crate) log: WorkerLog,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) watches: Watches,
    snapshot: RefCell<Arc<Snapshot>>,
    connections: Cell<usize>,
    /// Told when a connection ends and when a tick passes: whoever waits for room looks again.
    room: Notify,
    /// Told when the last connection ends.
    emptied: Notify,
    heads: RefCell<Vec<Vec<u8>>>,
}

impl Worker {
    /// The configuration in force.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Whether this is the configuration in force.
    pub(crate) fn is_current(&self, snapshot: &Arc<Snapshot>) -> bool {
        Arc::ptr_eq(&self.snapshot.borrow(), snapshot)
    }

    pub(crate) fn next_connection_number(&self) -> u64 {
        self.connections.set(self.connections.get() + 1);
        NEXT_CONNECTION_NUMBER.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn connection_closed(&self) {
        self.metrics.connection_closed();
        self.connections.set(self.connections.get().saturating_sub(1));
        self.room.notify_one();
        if self.connections.get() == 0 {
            self.emptied.notify_one();
        }
    }

    /// An empty buffer for a response's head.
    pub(crate) fn head_buffer(&self) -> Vec<u8> {
        self.heads.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives a head's buffer back for the next response.
    pub(crate) fn recycle(&self, mut head: Vec<u8>) {
        let mut heads = self.heads.borrow_mut();
        if heads.len() < HEADS_KEPT_MAX && head.capacity() <= HEAD_BYTES_KEPT_MAX {
            head.clear();
            heads.push(head);
        }
    }
}

/// Serves until told to stop. Runs on its own thread, with signals blocked.
///
/// # Errors
/// If the runtime cannot be built or a listener not be registered with it.
pub fn run(setup: WorkerSetup) -> io::Result<()> {
    // An interrupted send aborted kTLS connections before Linux 6.1.187 and 6.12.105.
    process::block_signals()?;
    if let Some(cpu) = setup.cpu {
        process::pin_to_cpu(cpu)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(DISK_THREADS_MAX)
        .thread_name("kettle-disk")
        .build()?;
    let local = LocalSet::new();
    let outcome = local.block_on(&runtime, serve(setup));
    // Connections past the deadline are dropped with the set, disk reads are not waited for.
    drop(local);
    runtime.shutdown_background();
    outcome
}

async fn serve(setup: WorkerSetup) -> io::Result<()> {
    let WorkerSetup { mut snapshot, mut shutdown, metrics, .. } = setup;
    let first = Arc::clone(&snapshot.borrow_and_update());
    let limits = &first.config.limits;
    let worker = Rc::new(Worker {
        answerer: Answerer::new(limits, Arc::clone(&metrics)),
        capabilities: setup.capabilities,
        clock: CoarseClock,
        handshake_turns: HandshakeTurns::new(limits.handshakes_per_turn),
        kill_switch: setup.kill_switch,
        log: setup.log,
        metrics,
        watches: Watches::default(),
        snapshot: RefCell::new(Arc::clone(&first)),
        connections: Cell::new(0),
        room: Notify::new(),
        emptied: Notify::new(),
        heads: RefCell::default(),
    });
    let ticking = spawn_local(tick(Rc::clone(&worker)));
    let mut accepting = Accepting::default();
    accepting.follow(&worker, &first)?;
    drop(first);
    loop {
        tokio::select! {
            changed = snapshot.changed() => {
                if changed.is_err() {
                    break;
                }
                let next = Arc::clone(&snapshot.borrow_and_update());
                worker.snapshot.replace(Arc::clone(&next));
                worker.answerer.forget_files();
                accepting.follow(&worker, &next)?;
            }
            stopping = shutdown.wait_for(|state| *state != Shutdown::Running) => {
                let deadline = match stopping.as_deref() {
                    Ok(Shutdown::Draining { deadline }) => *deadline,
                    _ => Instant::now(),
                };
                drop(stopping);
                accepting.stop();
                drain(&worker, deadline).await;
                break;
            }
        }
    }
    ticking.abort();
    Ok(())
}

/// Lets requests in flight finish, until the deadline.
async fn drain(worker: &Worker, deadline: Instant) {
    worker.watches.drain();
    let emptied = async {
        while worker.connections.get() > 0 {
            worker.emptied.notified().await;
        }
    };
    if timeout_at(deadline.into(), emptied).await.is_err() {
        tracing::warn!(
            connections = worker.connections.get(),
            "the time to drain is over: connections are cut off"
        );
    }
}

/// The worker's clock for deadlines, and the witness of turns that took too long.
async fn tick(worker: Rc<Worker>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let due = ticks.tick().await;
        let late = due.elapsed();
        if late >= STALL_MIN {
            worker.metrics.stall(late);
        }
        worker.watches.tick();
        worker.room.notify_one();
    }
}

/// The tasks that accept, one for each listening socket.
#[derive(Default)]
struct Accepting {
    tasks: Vec<(Listening, AbortHandle)>,
}

impl Accepting {
    /// Starts and stops accepting so that it fits a snapshot's listeners.
    fn follow(&mut self, worker: &Rc<Worker>, snapshot: &Arc<Snapshot>) -> io::Result<()> {
        // A socket that stays keeps its backlog; only its settings may have moved.
        self.stop();
        for listening in &snapshot.listeners {
            let socket = TcpListener::from_std(listening.socket.try_clone()?)?;
            let accept = accept(Rc::clone(worker), Arc::clone(snapshot), listening.index, socket);
            self.tasks.push((listening.clone(), spawn_local(accept).abort_handle()));
        }
        Ok(())
    }

    fn stop(&mut self) {
        for (_, task) in self.tasks.drain(..) {
            task.abort();
        }
    }
}

/// Accepts for ever, as long as there is room for another connection.
async fn accept(worker: Rc<Worker>, snapshot: Arc<Snapshot>, index: usize, socket: TcpListener) {
    let connections_max = snapshot.config.limits.connections_per_worker;
    loop {
        while worker.connections.get() >= connections_max {
            worker.room.notified().await;
        }
        match socket.accept().await {
            Ok((socket, remote)) => {
                let snapshot = Arc::clone(&snapshot);
                let connection = Connection::new(Rc::clone(&worker), snapshot, index, remote);
                spawn_local(connection.serve(socket));
            }
            // The client is gone again already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Out of descriptors or memory: trying again at once would only burn the CPU.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                worker.metrics.connection_rejected("accept_failed");
                worker.room.notified().await;
            }
        }
    }
}

static NEXT_CONNECTION_NUMBER: AtomicU64 = AtomicU64::new(1);

/// Threads of a worker that may wait for a disk.
const DISK_THREADS_MAX: usize = 4;

/// A tick this late means that other connections waited as long.
const STALL_MIN: std::time::Duration = std::time::Duration::from_millis(50);

/// Buffers for heads that a worker keeps, and how large one may have grown.
const HEADS_KEPT_MAX: usize = 64;
const HEAD_BYTES_KEPT_MAX: usize = 16 * 1_024;
