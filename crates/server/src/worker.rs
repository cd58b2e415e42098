//! A worker: one thread, one runtime, its own listening sockets, and the connections it accepts.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kettle_kernel::{process, socket};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, LocalSet, spawn_local, yield_now};
use tokio::time::{MissedTickBehavior, interval};

use crate::connection::Connection;
use crate::disk;
use crate::limits::TICK;
use crate::setup::{Listening, Shutdown, Snapshot, WorkerSetup};
use crate::worker_state::WorkerState;

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
        .max_blocking_threads(disk::THREADS_MAX)
        .thread_name("kettle-disk")
        .build()?;
    let local = LocalSet::new();
    let outcome = local.block_on(&runtime, serve(setup));
    // Connections past the deadline are dropped with the set, disk reads are not waited for. Inside the runtime: what
    // they leave on slow disks is closed by its threads.
    {
        let _inside = runtime.enter();
        drop(local);
    }
    runtime.shutdown_background();
    outcome
}

async fn serve(setup: WorkerSetup) -> io::Result<()> {
    let (mut snapshot, mut shutdown) = (setup.snapshot, setup.shutdown);
    let first = Arc::clone(&snapshot.borrow_and_update());
    let state = WorkerState::new(
        Arc::clone(&first),
        setup.metrics,
        setup.log,
        setup.kill_switch,
        setup.capabilities,
    );
    let worker = Rc::new(state);
    let ticking = spawn_local(tick(Rc::clone(&worker)));
    let state = Rc::clone(&worker);
    let turning = spawn_local(async move { state.handshake_turns.run().await });
    let (state, questions) = (Rc::clone(&worker), setup.questions);
    let answering = spawn_local(async move {
        state.open_tunnels.answer(questions, || state.deadlines.ticks()).await;
    });
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
                worker.adopt(Arc::clone(&next));
                if let Err(error) = accepting.follow(&worker, &next) {
                    tracing::error!(%error, "a listening socket cannot be used");
                }
            }
            stopping = shutdown.wait_for(|state| *state != Shutdown::Running) => {
                let deadline = match stopping.as_deref() {
                    Ok(Shutdown::Draining { deadline }) => *deadline,
                    _ => Instant::now(),
                };
                drop(stopping);
                accepting.stop(&worker);
                // What arrived before the stop is not lost: the runtime looks at the sockets once
                // more before those with nothing to do are let go.
                yield_now().await;
                let connections = worker.drain(deadline).await;
                if connections > 0 {
                    tracing::warn!(connections, "the time to drain is over: connections are cut off");
                }
                break;
            }
        }
    }
    ticking.abort();
    turning.abort();
    answering.abort();
    Ok(())
}

/// The worker's clock for deadlines, and the witness of turns that took too long.
async fn tick(worker: Rc<WorkerState>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let due = ticks.tick().await;
        let late = due.elapsed();
        if late >= STALL_MIN {
            worker.metrics.stall(late);
        }
        worker.tick();
    }
}

/// The sockets a worker listens on, each with the task that accepts from it.
#[derive(Default)]
pub(crate) struct Accepting {
    tasks: Vec<(Listening, Arc<Snapshot>, AbortHandle)>,
}

impl Accepting {
    /// Accepts from a snapshot's listeners, and from no others; on an error, from those before.
    ///
    /// # Errors
    /// If a listener cannot be registered with the runtime.
    pub(crate) fn follow(
        &mut self,
        worker: &Rc<WorkerState>,
        snapshot: &Arc<Snapshot>,
    ) -> io::Result<()> {
        // What can fail comes first: whoever accepts now goes on until all others can.
        let sockets =
            snapshot.listeners.iter().map(|it| TcpListener::from_std(it.socket.try_clone()?));
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        let before = std::mem::take(&mut self.tasks);
        for (listening, socket) in snapshot.listeners.iter().zip(sockets) {
            let accept = accept(Rc::clone(worker), Arc::clone(snapshot), listening.index, socket);
            let task = spawn_local(accept).abort_handle();
            self.tasks.push((listening.clone(), Arc::clone(snapshot), task));
        }
        for (listening, old, task) in before {
            // A socket that stays keeps its backlog; only its settings may have changed.
            task.abort();
            let stays = |kept: &Listening| Arc::ptr_eq(&kept.socket, &listening.socket);
            if !snapshot.listeners.iter().any(stays) {
                retire(worker, &old, &listening);
            }
        }
        Ok(())
    }

    /// Accepts nothing more.
    pub(crate) fn stop(&mut self, worker: &Rc<WorkerState>) {
        for (listening, snapshot, task) in self.tasks.drain(..) {
            task.abort();
            retire(worker, &snapshot, &listening);
        }
    }
}

/// Takes the connections that wait in a socket, then ends its listening. Closing our descriptor
/// would not do: a snapshot that an old connection keeps still holds one, and what the kernel went
/// on to queue there nobody would accept.
fn retire(worker: &Rc<WorkerState>, snapshot: &Arc<Snapshot>, listening: &Listening) {
    for _ in 0..BACKLOG_TAKEN_MAX {
        let Ok((socket, remote)) = socket::accept(listening.socket.as_fd()) else {
            break;
        };
        match TcpStream::from_std(socket) {
            Ok(socket) => begin(worker, snapshot, listening.index, socket, remote),
            Err(error) => tracing::warn!(%error, "a waiting connection is lost"),
        }
    }
    if let Err(error) = socket::stop_listening(listening.socket.as_fd()) {
        tracing::warn!(%error, "a listening socket stays open");
    }
}

/// Accepts for ever, as long as there is room for another connection.
async fn accept(
    worker: Rc<WorkerState>,
    snapshot: Arc<Snapshot>,
    index: usize,
    listener: TcpListener,
) {
    let connections_max = snapshot.config.limits.connections_per_worker;
    loop {
        worker.room_for(connections_max).await;
        match listener.accept().await {
            Ok((socket, remote)) => begin(&worker, &snapshot, index, socket, remote),
            // The client is gone again already.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Out of descriptors or memory: trying again at once would only burn the CPU.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                worker.metrics.connection_rejected("accept_failed");
                worker.something_freed().await;
            }
        }
    }
}

fn begin(
    worker: &Rc<WorkerState>,
    snapshot: &Arc<Snapshot>,
    listener: usize,
    socket: TcpStream,
    remote: SocketAddr,
) {
    let connection = Connection::new(Rc::clone(worker), Arc::clone(snapshot), listener, remote);
    spawn_local(connection.serve(socket));
}

/// Connections that may wait in a socket when it retires: the largest backlog there is.
const BACKLOG_TAKEN_MAX: usize = 65_535;

/// A tick this late means that other connections waited as long.
const STALL_MIN: Duration = Duration::from_millis(50);
