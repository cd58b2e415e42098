//! Takes the samples: rounds over all sizes, each size by each path in a changing order, so that
//! whatever slows the machine for a while touches all of them alike.

use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use kettle_kernel::process;
use kettle_tls::{Cipher, Version};

use super::body::BodySource;
use super::connection;
use super::crossover::Row;
use super::paths::{
    KernelSendfilePath, KernelWritePath, ResponsePath, UserPath, kernel_records, move_into_kernel,
};
use super::processors::Processors;
use super::{CalibrateError, Options, Progress};
use crate::stats::Estimate;

/// The samples of a run, judged.
pub(super) struct Measured {
    pub(super) kernel_refusal: Option<String>,
    pub(super) switch_cost: Option<Duration>,
    pub(super) rounds: usize,
    pub(super) elapsed: Duration,
    pub(super) rows: Vec<Row>,
}

/// Measures on the calling thread, which is pinned to a processor.
pub(super) fn measure(
    options: &Options,
    processors: &Processors,
    progress: &dyn Fn(Progress),
) -> Result<Measured, CalibrateError> {
    processors.pin_sender();
    let start = Instant::now();
    let source = BodySource::new(&options.directory)
        .map_err(|source| CalibrateError::File { directory: options.directory.clone(), source })?;
    let pairs = [connection::pair(), connection::pair(), connection::pair()];
    let [user, write, sendfile] = pairs.map(|pair| pair.map_err(CalibrateError::Loopback));
    let ((user, a), (write, b), (sendfile, c)) = (user?, write?, sendfile?);

    thread::scope(|scope| {
        for receiver in [a, b, c] {
            scope.spawn(move || {
                processors.pin_receiver();
                // Its end shows on the sending side, where it is reported.
                _ = connection::discard(&receiver);
            });
        }
        let sockets = Sockets { user: &user, write: &write, sendfile: &sendfile };
        let outcome = measure_over(options, &sockets, source, start, progress);
        for socket in [&user, &write, &sendfile] {
            connection::end(socket);
        }
        outcome
    })
}

struct Sockets<'s> {
    user: &'s TcpStream,
    write: &'s TcpStream,
    sendfile: &'s TcpStream,
}

fn measure_over(
    options: &Options,
    sockets: &Sockets<'_>,
    source: BodySource,
    start: Instant,
    progress: &dyn Fn(Progress),
) -> Result<Measured, CalibrateError> {
    let (version, cipher) = (options.version, options.cipher);
    let mut refusal = None;
    for socket in [sockets.write, sockets.sendfile] {
        if let Err(refused) =
            move_into_kernel(socket, version, cipher).map_err(CalibrateError::Keys)?
        {
            refusal = Some(refused.to_string());
        }
    }
    let mut paths: Vec<Box<dyn ResponsePath + '_>> =
        vec![Box::new(UserPath::new(sockets.user, version, cipher).map_err(CalibrateError::Keys)?)];
    let mut switch_cost = None;
    if refusal.is_none() {
        paths.push(Box::new(KernelWritePath::new(sockets.write)));
        paths.push(Box::new(KernelSendfilePath::new(sockets.sendfile)));
        switch_cost = measure_switch(version, cipher)?;
    }

    let mut sampler = Sampler::new(paths, source, options.hot_file_bytes);
    let rounds = sampler.run(start, options.time, progress).map_err(CalibrateError::Loopback)?;
    if refusal.is_none() {
        for socket in [sockets.write, sockets.sendfile] {
            let records =
                kernel_records(socket, version, cipher).map_err(CalibrateError::Loopback)?;
            if records < rounds as u64 {
                return Err(CalibrateError::NotEncrypted);
            }
        }
    }
    let rows = sampler.rows();
    Ok(Measured { kernel_refusal: refusal, switch_cost, rounds, elapsed: start.elapsed(), rows })
}

/// The median processor time of attaching kernel TLS and handing over a key.
fn measure_switch(version: Version, cipher: Cipher) -> Result<Option<Duration>, CalibrateError> {
    let mut samples = Vec::with_capacity(SWITCHES);
    for _ in 0..SWITCHES {
        let (sender, _receiver) = connection::pair().map_err(CalibrateError::Loopback)?;
        let before = process::thread_cpu_time();
        let moved = move_into_kernel(&sender, version, cipher).map_err(CalibrateError::Keys)?;
        let cost = process::thread_cpu_time().saturating_sub(before);
        if moved.is_ok() {
            samples.push(cost.as_secs_f64());
        }
    }
    Ok(Estimate::of(&samples).map(|estimate| Duration::from_secs_f64(estimate.median)))
}

/// The paths with the samples taken of them.
struct Sampler<'s> {
    paths: Vec<Box<dyn ResponsePath + 's>>,
    source: BodySource,
    hot_file_bytes: u64,
    /// For each size, for each path: seconds of processor time a response.
    samples: Vec<Vec<Vec<f64>>>,
}

impl<'s> Sampler<'s> {
    fn new(
        paths: Vec<Box<dyn ResponsePath + 's>>,
        source: BodySource,
        hot_file_bytes: u64,
    ) -> Self {
        let samples = vec![vec![Vec::new(); paths.len()]; BODY_BYTES.len()];
        Self { paths, source, hot_file_bytes, samples }
    }

    /// Runs whole rounds until the time is over; returns how many. The first, in which buffers
    /// and windows grow, is not counted.
    fn run(
        &mut self,
        start: Instant,
        time: Duration,
        progress: &dyn Fn(Progress),
    ) -> io::Result<usize> {
        let mut longest = Duration::ZERO;
        for round in 0..=ROUNDS_MAX {
            let round_start = Instant::now();
            self.round(round)?;
            if round == 0 {
                for path_samples in self.samples.iter_mut().flatten() {
                    path_samples.clear();
                }
            }
            longest = longest.max(round_start.elapsed());
            let elapsed = start.elapsed();
            progress(Progress { rounds: round, elapsed, total: time });
            if elapsed + longest > time {
                return Ok(round);
            }
        }
        Ok(ROUNDS_MAX)
    }

    fn round(&mut self, round: usize) -> io::Result<()> {
        let paths = self.paths.len();
        for (bytes, samples) in BODY_BYTES.into_iter().zip(&mut self.samples) {
            let responses = (BATCH_BYTES / bytes).clamp(1, BATCH_RESPONSES_MAX);
            let is_hot = bytes as u64 <= self.hot_file_bytes;
            for step in 0..paths {
                let index = (round + step) % paths;
                let (Some(path), Some(samples)) =
                    (self.paths.get_mut(index), samples.get_mut(index))
                else {
                    continue;
                };
                let before = process::thread_cpu_time();
                for _ in 0..responses {
                    let body = self.source.next(bytes, is_hot);
                    path.respond(&self.source, body)?;
                }
                let cost = process::thread_cpu_time().saturating_sub(before);
                samples.push(cost.as_secs_f64() / responses as f64);
            }
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let of = |samples: &[Vec<f64>], path: usize| {
            samples.get(path).and_then(|samples| Estimate::of(samples))
        };
        let row = |(bytes, samples): (usize, &Vec<Vec<f64>>)| {
            Some(Row {
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
/// Beyond this, more samples say nothing new.
const ROUNDS_MAX: usize = 2000;
const SWITCHES: usize = 32;
