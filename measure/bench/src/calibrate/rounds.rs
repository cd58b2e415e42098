//! Takes the samples: rounds over all sizes, each size by each path in a changing order, so that
//! whatever slows the machine for a while touches all of them alike.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use kettle_kernel::ktls::{self, RecordDirection};
use kettle_kernel::process;
use tokio::runtime::Builder;

use super::body::BodySource;
use super::connection::Loopback;
use super::crossover::{self, CostRow, CrossoverVerdict};
use super::paths::{ResponsePath, move_into_kernel};
use super::{CIPHER, Calibration, HOT_FILE_BYTES, Progress, VERSION};
use crate::stats::Estimate;

/// Measures on the calling thread, which stays on one processor from then on.
pub(super) fn measure(
    time: Duration,
    directory: &Path,
    progress: Progress<'_>,
) -> Result<Calibration, String> {
    // A refusal only makes for more noise, which shows in the figures.
    _ = process::pin_to_cpu(process::cpus_allowed().last().copied().unwrap_or(0));
    let start = Instant::now();
    check_clock()?;
    let source = BodySource::new(directory).map_err(|error| {
        let directory = directory.display();
        format!(
            "cannot make the file to send in {directory}: {error}; name a directory with 32 MiB to spare by --directory"
        )
    })?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(not_over_loopback)?;
    runtime.block_on(measure_paths(time, source, start, progress))
}

async fn measure_paths(
    time: Duration,
    source: BodySource,
    start: Instant,
    progress: Progress<'_>,
) -> Result<Calibration, String> {
    let connection = async || Loopback::new().await.map_err(not_over_loopback);
    let mut paths = vec![(connection().await?, ResponsePath::User)];

    let mut kernel_refusal = None;
    for path in [ResponsePath::kernel_write(), ResponsePath::KernelSendfile] {
        let mut connection = connection().await?;
        match move_into_kernel(&mut connection).await.map_err(not_over_loopback)? {
            Ok(()) => paths.push((connection, path)),
            Err(refusal) => kernel_refusal = Some(refusal.in_words()),
        }
    }
    let mut switch_cost = None;
    if kernel_refusal.is_none() {
        switch_cost = measure_switch().await?;
    }

    let mut sampler = Sampler::new(paths, source);
    let rounds = sampler.run(start, time, progress).await.map_err(not_over_loopback)?;
    for (connection, _) in sampler.paths.iter().skip(1) {
        let records =
            ktls::sequence(connection.sender.socket(), RecordDirection::Tx, VERSION, CIPHER);
        if records.map_err(not_over_loopback)? < rounds as u64 {
            return Err("the kernel took the keys but counts no records sent with them".to_owned());
        }
    }
    let rows = sampler.rows();
    let verdict = match kernel_refusal {
        Some(_) => CrossoverVerdict::NoKernelTls,
        None => crossover::find(&rows, rounds, HOT_FILE_BYTES),
    };
    Ok(Calibration {
        kernel_release: process::kernel_release(),
        kernel_refusal,
        switch_cost,
        rounds,
        elapsed: start.elapsed(),
        rows,
        verdict,
    })
}

/// Refuses a clock whose steps would decide what is measured. Kernels without a fine scheduler
/// clock (User Mode Linux among them) count whole timer ticks.
fn check_clock() -> Result<(), String> {
    let start = Instant::now();
    let mut step = CLOCK_WAIT_MAX;
    let mut last = process::thread_cpu_time();
    let mut steps = 0;
    while steps < CLOCK_STEPS && start.elapsed() < CLOCK_WAIT_MAX {
        let now = process::thread_cpu_time();
        if now > last {
            step = step.min(now - last);
            last = now;
            steps += 1;
        }
    }
    if step <= CLOCK_STEP_MAX {
        return Ok(());
    }
    Err(format!(
        "this kernel counts processor time in steps of {} µs, which are too coarse to measure single responses with; calibrate \
         on the machine itself, not under emulation",
        step.as_micros()
    ))
}

fn not_over_loopback(error: impl Display) -> String {
    format!("cannot send over loopback: {error}; check that `lo` is up")
}

/// The median processor time of attaching kernel TLS and handing over a key.
async fn measure_switch() -> Result<Option<Duration>, String> {
    let mut samples = Vec::with_capacity(SWITCHES);
    for _ in 0..SWITCHES {
        let mut connection = Loopback::new().await.map_err(not_over_loopback)?;
        connection.start_clock();
        let moved = move_into_kernel(&mut connection).await;
        let cost = connection.stop_clock();
        if moved.map_err(not_over_loopback)?.is_ok() {
            samples.push(cost.as_secs_f64());
        }
    }
    Ok(Estimate::of(&samples).map(|estimate| Duration::from_secs_f64(estimate.median)))
}

type ConnectedPath = (Loopback, ResponsePath);

/// The paths with the samples taken of them.
struct Sampler {
    paths: Vec<ConnectedPath>,
    source: BodySource,
    /// For each size, for each path: seconds of processor time a response.
    samples: Vec<Vec<Vec<f64>>>,
}

impl Sampler {
    fn new(paths: Vec<ConnectedPath>, source: BodySource) -> Self {
        let samples = vec![vec![Vec::new(); paths.len()]; BODY_BYTES.len()];
        Self { paths, source, samples }
    }

    /// Runs whole rounds until the time is over; returns how many. The first, in which buffers
    /// and windows grow, is not counted.
    async fn run(
        &mut self,
        start: Instant,
        time: Duration,
        progress: Progress<'_>,
    ) -> io::Result<usize> {
        let mut longest = Duration::ZERO;
        for round in 0..=ROUNDS_MAX {
            let round_start = Instant::now();
            self.round(round).await?;
            if round == 0 {
                for path_samples in self.samples.iter_mut().flatten() {
                    path_samples.clear();
                }
            }
            longest = longest.max(round_start.elapsed());
            let elapsed = start.elapsed();
            progress(round, elapsed);
            if elapsed + longest > time {
                return Ok(round);
            }
        }
        Ok(ROUNDS_MAX)
    }

    async fn round(&mut self, round: usize) -> io::Result<()> {
        let paths = self.paths.len();
        for (bytes, samples) in BODY_BYTES.into_iter().zip(&mut self.samples) {
            let responses = (BATCH_BYTES / bytes).clamp(1, BATCH_RESPONSES_MAX);
            let is_hot = bytes as u64 <= HOT_FILE_BYTES;
            for step in 0..paths {
                let index = (round + step) % paths;
                let (Some((connection, path)), Some(samples)) =
                    (self.paths.get_mut(index), samples.get_mut(index))
                else {
                    continue;
                };
                connection.start_clock();
                let mut unread_bytes = 0;
                for _ in 0..responses {
                    let body = self.source.next(bytes, is_hot);
                    path.respond(connection, &self.source, body).await?;
                    unread_bytes += bytes;
                    if unread_bytes >= UNREAD_BYTES_MAX {
                        connection.discard()?;
                        unread_bytes = 0;
                    }
                }
                let cost = connection.stop_clock();
                samples.push(cost.as_secs_f64() / responses as f64);
            }
        }
        Ok(())
    }

    fn rows(&self) -> Vec<CostRow> {
        let of = |samples: &[Vec<f64>], path: usize| {
            samples.get(path).and_then(|samples| Estimate::of(samples))
        };
        let row = |(bytes, samples): (usize, &Vec<Vec<f64>>)| {
            Some(CostRow {
                body_bytes: bytes as u64,
                user: of(samples, 0)?,
                kernel_write: of(samples, 1),
                kernel_sendfile: of(samples, 2),
            })
        };
        BODY_BYTES.into_iter().zip(&self.samples).filter_map(row).collect()
    }
}

/// From a small page to a large picture; two sizes each octave where crossovers tend to lie would
/// not say more than the noise allows.
pub(super) const BODY_BYTES: [usize; 11] = [
    1 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    4 << 20,
];

/// One sample sends about this much: long beside the clock's grain, short beside a disturbance.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_RESPONSES_MAX: usize = 128;
/// Little enough that even a small window takes it at once: what waits for the window would be
/// sent while the clock is stopped.
const UNREAD_BYTES_MAX: usize = 32 << 10;
/// Beyond this, more samples say nothing new.
const ROUNDS_MAX: usize = 2000;
const SWITCHES: usize = 32;
/// A hundredth of the shortest batch.
const CLOCK_STEP_MAX: Duration = Duration::from_micros(5);
const CLOCK_STEPS: usize = 100;
const CLOCK_WAIT_MAX: Duration = Duration::from_millis(200);
