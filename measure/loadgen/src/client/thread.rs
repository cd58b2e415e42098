//! One thread of the client: pinned to its processor, with its own runtime, connections and counts.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use kettle_kernel::process;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};

use super::error::LoadError;
use super::load_thread::{LoadThread, Opened, SharedLoad};
use super::model;
use super::recorder::{Live, Recorder};

pub(super) enum Report {
    /// The connections that must be open before the load begins are open.
    Opened(Opened),
    Live(usize, Live),
}

pub(super) struct Ended {
    pub(super) recorder: Recorder,
    /// The share of its processor it used while counting.
    pub(super) busy: f64,
}

/// Carries out the part of the thread `index`; `begin` gives the common beginning once all threads are ready.
pub(super) fn run(
    shared: Arc<SharedLoad>,
    index: usize,
    reports: &SyncSender<Report>,
    begin: oneshot::Receiver<Instant>,
) -> Result<Ended, LoadError> {
    if let Some(cpu) = shared.load.cpus.get(index) {
        process::pin_to_cpu(*cpu).map_err(LoadError::of_thread)?;
    }
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build_local(LocalOptions::default())
        .map_err(LoadError::of_thread)?;
    let meter = Cell::new(Meter::new());
    let thread = runtime.block_on(async {
        let thread = Rc::new(LoadThread::new(shared, index)?);
        tokio::select! {
            () = model::run(&thread) => {}
            () = attend(&thread, reports, begin) => {}
            () = watch(&thread, reports, &meter) => {}
            ended = thread.pacer.drive() => ended.map_err(LoadError::of_thread)?,
        }
        Ok::<_, LoadError>(thread)
    })?;
    read(&thread, &meter);
    let recorder = thread.recorder.borrow().clone();
    Ok(Ended { recorder, busy: meter.get().busy() })
}

/// Tells when this thread is ready, and begins when all are.
async fn attend(
    thread: &LoadThread,
    reports: &SyncSender<Report>,
    begin: oneshot::Receiver<Instant>,
) {
    let opened = thread.until_opened().await;
    if reports.send(Report::Opened(opened)).is_err() {
        return;
    }
    // Nobody left to say so means that the load is over.
    let Ok(start) = begin.await else { return };
    thread.begin(start);
    std::future::pending().await
}

/// Tells how far this thread is, and returns when the load is halted.
async fn watch(thread: &LoadThread, reports: &SyncSender<Report>, meter: &Cell<Meter>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut tick = 0_u32;
    while !thread.shared.is_halted() {
        ticks.tick().await;
        read(thread, meter);
        if tick.is_multiple_of(TICKS_PER_REPORT) {
            // One that does not fit is made up for by the next.
            let _ = reports.try_send(Report::Live(thread.index, thread.recorder.borrow().live));
        }
        tick = tick.wrapping_add(1);
    }
}

fn read(thread: &LoadThread, meter: &Cell<Meter>) {
    let now = Instant::now();
    let is_counting = thread.counted_from().is_some_and(|from| now >= from);
    if !thread.is_over_at(now) {
        let mut reading = meter.get();
        reading.read(now, is_counting);
        meter.set(reading);
    }
}

/// The thread's processor time between the beginning and the end of counting.
#[derive(Clone, Copy)]
struct Meter {
    first: (Instant, Duration),
    last: (Instant, Duration),
    is_counting: bool,
}

impl Meter {
    fn new() -> Self {
        let now = (Instant::now(), process::thread_cpu_time());
        Self { first: now, last: now, is_counting: false }
    }

    fn read(&mut self, now: Instant, is_counting: bool) {
        self.last = (now, process::thread_cpu_time());
        if is_counting && !self.is_counting {
            self.is_counting = true;
            self.first = self.last;
        }
    }

    fn busy(&self) -> f64 {
        let elapsed = self.last.0.saturating_duration_since(self.first.0).as_secs_f64();
        let used = self.last.1.saturating_sub(self.first.1).as_secs_f64();
        if elapsed > 0.0 { used / elapsed } else { 0.0 }
    }
}

/// Between two looks at sockets and timers this many tasks may run: with handshakes of 0.1 ms each, more would make
/// everything else late.
const EVENT_INTERVAL: u32 = 7;

const TICK: Duration = Duration::from_millis(50);
const TICKS_PER_REPORT: u32 = 5;
