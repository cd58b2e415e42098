//! The load generator: a thread a core, each with its own connections, all on one clock.
//!
//! Transactions count by the time they are due, so those that are under way at the end of the warm-up or of the load are
//! neither lost nor counted twice; those under way at the end are waited for. Rates are of the answers that came in time.

mod capacity;
mod deadline;
pub mod error;
mod failure;
mod head;
mod http2;
mod load_thread;
mod mix;
mod model;
pub mod outcome;
mod pacer;
mod recorder;
mod response;
mod schedule;
mod thread;
mod transport;
mod virtual_user;
mod websocket;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub use error::LoadError;
pub use failure::{Failure, WRONG_STATUS};
pub use outcome::Outcome;

use crate::load::{Load, LoadModel};
use load_thread::{Opened, SharedLoad};
use recorder::Live;
use thread::{Ended, Report};

/// The progress of a load; counts are from its beginning, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since the connections were open.
    pub elapsed: Duration,
    pub attempted: u64,
    /// Those that ended well.
    pub succeeded: u64,
    /// Those that did not.
    pub failed: u64,
    /// The mean latency of those that ended well since the last report, in microseconds.
    pub mean_us: f64,
    pub open_connections: u64,
}

/// Carries out a load and waits for its end.
///
/// # Errors
/// [`LoadError`] if it cannot be carried out at all; what goes wrong within is counted in the outcome.
pub fn run(load: &Load, on_progress: &mut dyn FnMut(&Progress)) -> Result<Outcome, LoadError> {
    run_with(load, &AtomicBool::new(false), on_progress)
}

/// As [`run`], but ends when `stop` becomes true, and keeps what was measured until then.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    load: &Load,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Outcome, LoadError> {
    let mut threads = Threads::start(load, false)?;
    let start = threads.open_and_begin(stop, on_progress)?;
    threads.wait(start, None, stop, on_progress);
    threads.finish(start)
}

/// Carries out a load for as long as `during` takes. `during` is called once every connection is open, its first requests
/// are made (idle connections) and the warm-up is over; the load's own end does not matter.
///
/// # Errors
/// As [`run`].
pub fn hold<T>(load: &Load, during: impl FnOnce() -> T) -> Result<(Outcome, T), LoadError> {
    let never = AtomicBool::new(false);
    let mut threads = Threads::start(load, true)?;
    let start = threads.open_and_begin(&never, &mut |_| {})?;
    let Some(begun) = start else {
        threads.finish(start)?;
        return Err(LoadError::Bug("a client thread ended before the load began"));
    };
    threads.wait(start, Some(begun + load.warm_up), &never, &mut |_| {});
    let value = during();
    threads.halt();
    Ok((threads.finish(start)?, value))
}

/// The running threads of a load. Dropped, they are halted.
struct Threads {
    shared: Arc<SharedLoad>,
    handles: Vec<JoinHandle<Result<Ended, LoadError>>>,
    reports: Receiver<Report>,
    beginnings: Vec<oneshot::Sender<Instant>>,
    live: Vec<Live>,
    /// When progress was last told, and what had succeeded by then, with the sum of its latencies.
    reported: Option<(Instant, u64, f64)>,
    halted: Option<Instant>,
}

impl Threads {
    fn start(load: &Load, is_held: bool) -> Result<Self, LoadError> {
        capacity::check(load)?;
        let shared = Arc::new(SharedLoad::new(load, is_held));
        let count = load.cpus.len();
        let (sender, reports) = sync_channel(count * REPORTS_PER_THREAD);
        let mut threads = Self {
            shared,
            handles: Vec::with_capacity(count),
            reports,
            beginnings: Vec::with_capacity(count),
            live: vec![Live::default(); count],
            reported: None,
            halted: None,
        };
        for index in 0..count {
            let (begin, beginning) = oneshot::channel();
            let shared = Arc::clone(&threads.shared);
            let sender = sender.clone();
            let work = move || thread::run(shared, index, &sender, beginning);
            let builder = std::thread::Builder::new().name(format!("load-{index}"));
            threads.handles.push(builder.spawn(work).map_err(LoadError::of_thread)?);
            threads.beginnings.push(begin);
        }
        Ok(threads)
    }

    /// Waits until everything is open, then begins on all threads at once. Returns when that was; `None` if it never was.
    fn open_and_begin(
        &mut self,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&Progress),
    ) -> Result<Option<Instant>, LoadError> {
        let mut waiting = self.handles.len();
        let mut all = Opened::default();
        while waiting > 0 {
            // A thread that ended before its time has an error to tell, which `finish` does.
            let is_broken = self.handles.iter().any(JoinHandle::is_finished);
            if is_broken || stop.load(Ordering::Relaxed) {
                self.halt();
                return Ok(None);
            }
            match self.reports.recv_timeout(PATIENCE) {
                Ok(Report::Opened(opened)) => {
                    all.add(opened);
                    waiting -= 1;
                }
                Ok(Report::Live(index, live)) => self.note(index, live),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.progress(None, on_progress);
        }
        let is_idle = matches!(self.shared.load.model, LoadModel::Idle { .. });
        if let Some(failure) = all.failure.filter(|_| all.opened == 0 && !is_idle) {
            return Err(LoadError::Unreachable { target: self.shared.load.target, failure });
        }
        let start = Instant::now();
        for begin in self.beginnings.drain(..) {
            // A thread that is gone already says so when it is joined.
            let _ = begin.send(start);
        }
        Ok(Some(start))
    }

    /// Passes on what the threads tell until they have ended, until `until`, or until it is to stop; and tells how far the load
    /// is at the end of its warm-up and at its own end, whether or not anything happens there.
    fn wait(
        &mut self,
        start: Option<Instant>,
        until: Option<Instant>,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&Progress),
    ) {
        let mut edges = self.edges(start).into_iter().peekable();
        loop {
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                return;
            }
            if stop.load(Ordering::Relaxed) {
                return self.halt();
            }
            let next = until.into_iter().chain(edges.peek().copied()).min();
            let left = next.map_or(PATIENCE, |next| next.saturating_duration_since(now));
            let report = self.reports.recv_timeout(left.min(PATIENCE));
            if edges.next_if(|edge| Instant::now() >= *edge).is_some() {
                self.tell(start, on_progress);
            }
            match report {
                Ok(Report::Live(index, live)) => self.note(index, live),
                Ok(Report::Opened(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.progress(start, on_progress);
        }
    }

    /// The moments between which transactions count.
    fn edges(&self, start: Option<Instant>) -> Vec<Instant> {
        let Some(start) = start else { return Vec::new() };
        let warm_up = self.shared.load.warm_up;
        let end = self.shared.planned_end(start);
        (!warm_up.is_zero()).then(|| start + warm_up).into_iter().chain(end).collect()
    }

    fn note(&mut self, index: usize, live: Live) {
        if let Some(known) = self.live.get_mut(index) {
            *known = live;
        }
    }

    /// Tells how far the load is, but not too often.
    fn progress(&mut self, start: Option<Instant>, on_progress: &mut dyn FnMut(&Progress)) {
        let last = self.reported.map_or(Duration::MAX, |(when, ..)| when.elapsed());
        if last >= PROGRESS_EVERY {
            self.tell(start, on_progress);
        }
    }

    fn tell(&mut self, start: Option<Instant>, on_progress: &mut dyn FnMut(&Progress)) {
        let now = Instant::now();
        let (_, succeeded_before, latency_us_before) = self.reported.unwrap_or((now, 0, 0.0));
        let mut progress = Progress {
            elapsed: start.map_or(Duration::ZERO, |start| now.saturating_duration_since(start)),
            ..Progress::default()
        };
        let mut latency_us = 0.0;
        for live in &self.live {
            progress.attempted += live.attempted;
            progress.succeeded += live.succeeded;
            progress.failed += live.failed;
            progress.open_connections += live.open_connections;
            latency_us += live.latency_us;
        }
        let ended = progress.succeeded.saturating_sub(succeeded_before);
        progress.mean_us = (latency_us - latency_us_before) / ended.max(1) as f64;
        on_progress(&progress);
        self.reported = Some((now, progress.succeeded, latency_us));
    }

    fn halt(&mut self) {
        self.shared.halt.store(true, Ordering::Relaxed);
        self.halted.get_or_insert_with(Instant::now);
    }

    /// Waits for all threads and adds up what they counted.
    fn finish(mut self, start: Option<Instant>) -> Result<Outcome, LoadError> {
        let mut recorders = Vec::with_capacity(self.handles.len());
        let mut busy = Vec::with_capacity(self.handles.len());
        for handle in self.handles.drain(..) {
            let ended = handle.join().map_err(|_| LoadError::Bug("a client thread panicked"))??;
            recorders.push(ended.recorder);
            busy.push(ended.busy);
        }
        let load = &self.shared.load;
        let from = match (start, load.model) {
            (_, LoadModel::Idle { .. }) => self.shared.created,
            (Some(start), _) => start + load.warm_up,
            (None, _) => self.halted.unwrap_or(self.shared.created),
        };
        let planned = start.and_then(|start| self.shared.planned_end(start));
        // Objects that were due and come late are fetched, and counted, behind the end: the load lasted until then.
        let planned = match load.model {
            LoadModel::Streaming { .. } => planned.max(recorder::last_end(&recorders)),
            _ => planned,
        };
        let until = match (planned, self.halted) {
            (Some(planned), Some(halted)) => Some(planned.min(halted)),
            (planned, halted) => planned.or(halted),
        };
        recorder::outcome(&recorders, busy, from, until, load.timeout)
            .map_err(|_| LoadError::senseless("its timeout"))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.halt();
        for handle in self.handles.drain(..) {
            // The caller that drops this has a result, or an error, already.
            let _ = handle.join();
        }
    }
}

/// The time a report is waited for before looking whether to stop.
const PATIENCE: Duration = Duration::from_millis(50);
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
const REPORTS_PER_THREAD: usize = 8;
