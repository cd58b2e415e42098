//! A worker: one thread, one runtime, its own listening sockets, and the connections it accepts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::{Arc, Once};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use kettle_kernel::process;
use kettle_kernel::socket::{self, Held};
use kettle_runtime::clock::OnceASecond;
use kettle_runtime::deadlines::TICK;
use kettle_runtime::disk;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinError, JoinSet, LocalSet, spawn_local, yield_now};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::connection::Connection;
use crate::setup::{Listening, Sharing, Shutdown, Snapshot, WorkerSetup};
use crate::worker_state::WorkerState;

/// Makes the runtime of a worker.
///
/// # Errors
/// If there are no descriptors left for it.
pub fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(disk::THREADS_MAX)
        .thread_name("kettle-disk")
        .build()
}

/// Serves until told to stop. Runs on its own thread, with signals blocked.
///
/// # Errors
/// If a listener cannot be registered with the runtime.
pub fn run(runtime: Runtime, setup: WorkerSetup) -> io::Result<()> {
    // An interrupted send aborted kTLS connections before Linux 6.1.187 and 6.12.105.
    process::block_signals()?;
    if let Some(cpu) = setup.cpu
        && let Err(error) = process::pin_to_cpu(cpu)
    {
        UNPINNED.call_once(|| {
            tracing::warn!(
                %error,
                "workers stay unpinned; where a unit or a container filters system calls, let it allow sched_setaffinity"
            );
        });
    }
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

pub(crate) async fn serve(setup: WorkerSetup) -> io::Result<()> {
    let mut snapshot = setup.snapshot;
    let mut shutdown = setup.shutdown;
    let first = Arc::clone(&snapshot.borrow_and_update());
    let state = WorkerState::new(
        Arc::clone(&first),
        setup.metrics,
        setup.log,
        setup.tx_path_switch,
        setup.capabilities,
        setup.budgets,
    );
    let worker = Rc::new(state);
    let mut duties = JoinSet::new();
    duties.spawn_local(tick(Rc::clone(&worker)));
    let state = Rc::clone(&worker);
    duties.spawn_local(async move { state.handshake_turns.run().await });
    let state = Rc::clone(&worker);
    let questions = setup.questions;
    duties.spawn_local(async move {
        state.open_tunnels.answer(questions, || state.deadlines.ticks()).await;
    });
    // Where nobody is left to say so, the loop below ends at once.
    let _ = shutdown.wait_for(|state| *state != Shutdown::Starting).await;
    let mut accepting = Listeners::default();
    accepting.follow(&worker, &first, &mut duties).await?;
    drop(first);
    loop {
        tokio::select! {
            // A stop that comes with a reload finds its listeners followed, and can end them: nobody would accept from them for
            // as long as connections drain.
            biased;
            changed = snapshot.changed() => {
                if changed.is_err() {
                    break;
                }
                let next = Arc::clone(&snapshot.borrow_and_update());
                worker.adopt(Arc::clone(&next));
                if let Err(error) = accepting.follow(&worker, &next, &mut duties).await {
                    tracing::error!(%error, "a listening socket cannot be used");
                }
            }
            stopping = shutdown.wait_for(|state| *state != Shutdown::Running) => {
                let deadline = match stopping.as_deref() {
                    Ok(Shutdown::Draining { deadline }) => *deadline,
                    _ => Instant::now(),
                };
                drop(stopping);
                accepting.stop(&worker, deadline);
                // Connections that arrived before the stop are not lost: the runtime looks at the sockets once
                // more before those with nothing to do are let go.
                yield_now().await;
                let connections = worker.drain(deadline, accepting.retired()).await;
                accepting.retired().await;
                if connections > 0 {
                    tracing::warn!(connections, "the time to drain is over: connections are cut off");
                    worker.cut_off().await;
                }
                break;
            }
            // Without them nothing would ever be given up, no handshake go on, and nobody be accepted.
            panic = first_panic(&mut duties) => return Err(io::Error::other(panic)),
        }
    }
    Ok(())
}

/// Waits for a task that panics. That others end, as they do when nobody is left to ask them or a reload ends them, is no matter.
async fn first_panic(tasks: &mut JoinSet<()>) -> JoinError {
    loop {
        match tasks.join_next().await {
            Some(Err(error)) if error.is_panic() => return error,
            Some(_) => {}
            None => pending().await,
        }
    }
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
pub(crate) struct Listeners {
    sources: Vec<AcceptLoop>,
    /// The tasks that end listeners which are listened on no more.
    retiring: JoinSet<()>,
}

struct AcceptLoop {
    listening: Listening,
    snapshot: Arc<Snapshot>,
    socket: Rc<ListeningSocket>,
    task: AbortHandle,
}

/// Registered with the runtime once and for as long as it is listened on, under the descriptor that there is: a worker that
/// is out of them must be able to follow a reload.
type ListeningSocket = AsyncFd<Arc<std::net::TcpListener>>;

impl Listeners {
    /// Accepts from a snapshot's listeners, and from no others, by tasks among these. One that cannot be used keeps none of the
    /// others from following. There may be ten thousand, and connections go on meanwhile.
    ///
    /// # Errors
    /// If a new listener cannot be registered with the runtime.
    pub(crate) async fn follow(
        &mut self,
        worker: &Rc<WorkerState>,
        snapshot: &Arc<Snapshot>,
        tasks: &mut JoinSet<()>,
    ) -> io::Result<()> {
        let mut outcome = Ok(());
        let key = |it: &Listening| Arc::as_ptr(&it.socket);
        let before = std::mem::take(&mut self.sources).into_iter();
        let mut before: HashMap<_, _> = before.map(|it| (key(&it.listening), it)).collect();
        for missed in snapshot.take_missed() {
            for listening in &missed.listeners {
                let Entry::Vacant(place) = before.entry(key(listening)) else { continue };
                let begin = |socket| AcceptLoop::begin(worker, &missed, listening, socket, tasks);
                match register(listening).map(begin) {
                    Ok(begun) => _ = place.insert(begun),
                    Err(error) => outcome = Err(error),
                }
            }
        }
        for (number, listening) in snapshot.listeners.iter().enumerate() {
            if number % FOLLOWED_A_TURN == FOLLOWED_A_TURN - 1 {
                yield_now().await;
            }
            // A socket that stays keeps the connections that wait in it; only its settings may have changed.
            let socket = match before.remove(&key(listening)) {
                Some(kept) => {
                    kept.task.abort();
                    Ok(kept.socket)
                }
                None => register(listening),
            };
            match socket {
                Ok(socket) => {
                    self.sources.push(AcceptLoop::begin(worker, snapshot, listening, socket, tasks))
                }
                Err(error) => outcome = Err(error),
            }
        }
        while self.retiring.try_join_next().is_some() {}
        for gone in before.into_values() {
            gone.retire(worker, BEGUN_TIME, &mut self.retiring);
        }
        outcome
    }

    /// Accepts nothing new, and by the deadline nothing at all.
    pub(crate) fn stop(&mut self, worker: &Rc<WorkerState>, deadline: Instant) {
        let time = deadline.saturating_duration_since(Instant::now()).min(BEGUN_TIME);
        for source in self.sources.drain(..) {
            source.retire(worker, time, &mut self.retiring);
        }
    }

    /// Waits until nothing can wait any more in a socket that is listened on no more.
    pub(crate) async fn retired(&mut self) {
        while self.retiring.join_next().await.is_some() {}
    }
}

#[allow(
    deprecated,
    reason = "sound with a listener that is shared as it is; its successor is `unsafe` because of types whose descriptor may change"
)]
fn register(listening: &Listening) -> io::Result<Rc<ListeningSocket>> {
    let socket = AsyncFd::with_interest(Arc::clone(&listening.socket), Interest::READABLE);
    // Its clients are for the other workers.
    if socket.is_err() && matches!(listening.sharing, Sharing::Own) {
        let _ = socket::stop_listening(listening.socket.as_fd());
    }
    socket.map(Rc::new)
}

impl AcceptLoop {
    fn begin(
        worker: &Rc<WorkerState>,
        snapshot: &Arc<Snapshot>,
        listening: &Listening,
        socket: Rc<ListeningSocket>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let listening = listening.clone();
        let snapshot = Arc::clone(snapshot);
        let accept =
            accept(Rc::clone(worker), Arc::clone(&snapshot), listening.index, Rc::clone(&socket));
        let task = tasks.spawn_local(accept);
        Self { listening, snapshot, socket, task }
    }

    /// Ends listening so that no client is reset. A client that waits in the socket when it ends is reset, and so is one whose
    /// TCP handshake has begun. So new clients are held off, and the others are accepted for some time.
    fn retire(self, worker: &Rc<WorkerState>, time: Duration, retiring: &mut JoinSet<()>) {
        // The process that started this one with a socket goes on listening on it.
        let is_inherited = matches!(self.listening.sharing, Sharing::Inherited);
        if matches!(self.listening.sharing, Sharing::Own) {
            match socket::take_no_new(self.listening.socket.as_fd()) {
                Ok(Held::ByFilter) => {}
                // A connection accepted by it would not hear its client.
                Ok(Held::ByHops) => self.task.abort(),
                Err(error) => tracing::warn!(%error, "clients that connect just now may be reset"),
            }
        }
        if is_inherited || time.is_zero() {
            return self.end(worker);
        }
        let worker = Rc::clone(worker);
        retiring.spawn_local(async move {
            sleep(time).await;
            self.end(&worker);
        });
    }

    /// Takes the connections that wait in the socket, then ends its listening. Closing our descriptor
    /// would not do: a snapshot that an old connection keeps still holds it, and what the kernel went
    /// on to queue there nobody would accept. Those that there is no room for wait here from now on.
    fn end(self, worker: &Rc<WorkerState>) {
        self.task.abort();
        if matches!(self.listening.sharing, Sharing::Inherited) {
            return;
        }
        let socket = self.listening.socket.as_fd();
        let heard = |(client, _): &(std::net::TcpStream, _)| _ = socket::hear_all(client.as_fd());
        let (waiting, end) = take_waiting(|| socket::accept(socket).inspect(heard));
        if let Some(error) = end {
            tracing::warn!(%error, "connections that wait in a socket that retires are lost");
            worker.metrics.connection_rejected(ACCEPT_FAILED);
        }
        let begun = |accepted| (accepted, worker.waits_for_room());
        let waiting: Vec<_> = waiting.into_iter().map(begun).collect();
        let worker = Rc::clone(worker);
        let snapshot = Arc::clone(&self.snapshot);
        let index = self.listening.index;
        let mut begin_all = Box::pin(async move {
            for (accepted, place) in waiting {
                worker.room_for_waiting().await;
                if let Err(error) = begin(&worker, &snapshot, index, accepted) {
                    tracing::warn!(%error, "a waiting connection is lost");
                    worker.metrics.connection_rejected(ACCEPT_FAILED);
                }
                drop(place);
            }
        });
        // Most often there is room for all of them.
        if begin_all.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            spawn_local(begin_all);
        }
        if self.listening.sharing.is_left_last()
            && let Err(error) = socket::stop_listening(socket)
        {
            tracing::warn!(%error, "a listening socket stays open");
        }
    }
}

/// Accepts for ever, as long as there is room for another connection.
async fn accept(
    worker: Rc<WorkerState>,
    snapshot: Arc<Snapshot>,
    index: usize,
    socket: Rc<ListeningSocket>,
) {
    let connections_max = snapshot.served.config.limits.connections_per_worker;
    let complaint = OnceASecond::default();
    let is_awaited = async || {
        let look = |socket: &Arc<std::net::TcpListener>| socket::is_waited_at(socket.as_fd());
        // An error shows in accepting.
        let _ = socket.async_io(Interest::READABLE, look).await;
    };
    loop {
        worker.room_for(connections_max, &is_awaited).await;
        let accepted = socket.async_io(Interest::READABLE, |socket| socket::accept(socket.as_fd()));
        match accepted.await.and_then(|accepted| begin(&worker, &snapshot, index, accepted)) {
            Ok(()) => {}
            Err(error) if is_of_client(&error) => {}
            // Out of descriptors or memory: trying again at once would only burn the CPU.
            Err(error) => {
                if complaint.is_due(Instant::now()) {
                    tracing::warn!(%error, "cannot accept a connection");
                }
                worker.metrics.connection_rejected(ACCEPT_FAILED);
                is_awaited().await;
                worker.make_room().await;
            }
        }
    }
}

/// Takes the connections that wait in a socket, up to the first error that is not of one connection alone, and returns it, too.
fn take_waiting<T>(mut accept: impl FnMut() -> io::Result<T>) -> (Vec<T>, Option<io::Error>) {
    let mut waiting = Vec::new();
    for _ in 0..BACKLOG_TAKEN_MAX {
        match accept() {
            Ok(accepted) => waiting.push(accepted),
            Err(error) if is_of_client(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return (waiting, Some(error)),
        }
    }
    (waiting, None)
}

/// True if a client is gone again before it was accepted.
fn is_of_client(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::NotConnected)
}

fn begin(
    worker: &Rc<WorkerState>,
    snapshot: &Arc<Snapshot>,
    listener: usize,
    (socket, remote): (std::net::TcpStream, Option<SocketAddr>),
) -> io::Result<()> {
    let socket = TcpStream::from_std(socket)?;
    let connection =
        Connection::new(Rc::clone(worker), Arc::clone(snapshot), listener, remote.into());
    spawn_local(Box::new(connection).serve(socket));
    Ok(())
}

/// Connections that may wait in a socket when it retires: the largest backlog there is.
const BACKLOG_TAKEN_MAX: usize = 65_535;

/// The time a TCP handshake that has begun is waited for: longer than most ways there and back, and half of what a stop leaves to requests
/// that are due.
const BEGUN_TIME: Duration = Duration::from_millis(250);

/// Listeners that a worker follows before others have a turn: a tenth of a millisecond.
const FOLLOWED_A_TURN: usize = 128;

/// That workers stay unpinned is said once: what hinders one hinders all.
static UNPINNED: Once = Once::new();

/// Why a connection came to nothing, in the metrics.
const ACCEPT_FAILED: &str = "accept_failed";

/// A tick this late means that other connections waited as long.
const STALL_MIN: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use io::ErrorKind::{ConnectionAborted, NotConnected, WouldBlock};

    use super::*;

    #[test]
    fn clients_that_are_gone_leave_none_behind_them_in_a_socket_that_retires() {
        let no_descriptor = io::Error::from(rustix::io::Errno::MFILE);
        for (last, is_said) in [(WouldBlock.into(), false), (no_descriptor, true)] {
            let gone = [ConnectionAborted, NotConnected].map(|it| Err(it.into()));
            let waiting = [Ok(1)].into_iter().chain(gone).chain([Ok(2), Err(last), Ok(3)]);
            let mut waiting = waiting.into_iter();
            let (taken, error) = take_waiting(|| waiting.next().unwrap());
            assert_eq!((taken, error.is_some()), (vec![1, 2], is_said));
        }
        let never_ends = || Err::<(), _>(ConnectionAborted.into());
        assert!(matches!(take_waiting(never_ends), (none, None) if none.is_empty()));
    }

    #[tokio::test]
    async fn a_task_that_panics_is_noticed_behind_those_that_end_or_are_ended() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async {});
        tasks.spawn(pending()).abort();
        tasks.spawn(async {
            yield_now().await;
            panic!("as a test wants it");
        });
        assert!(first_panic(&mut tasks).await.is_panic());
    }
}
