//! `kettle calibrate`: from which body size the kernel sends a response for less processor time
//! than this process, on this machine.
//!
//! One thread sends responses over loopback by each path in turn, as the server would, and throws
//! them away at the other end. The figure is the processor time of sending.

mod body;
mod connection;
mod crossover;
mod paths;
mod report;
mod rounds;

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kettle_tls::{Cipher, Version};

pub use crossover::{CostRow, CrossoverVerdict};

/// The subject and the length of a measurement.
#[derive(Clone, Debug)]
pub struct CalibrateOptions {
    pub time: Duration,
    /// The folder of the file that is sent; it should be on the file system that will be served.
    pub directory: PathBuf,
    pub version: Version,
    pub cipher: Cipher,
    /// Bodies up to this size come from memory, as the server keeps small hot files there.
    pub hot_file_bytes: u64,
}

impl Default for CalibrateOptions {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(15),
            directory: std::env::temp_dir(),
            version: Version::Tls13,
            cipher: Cipher::Aes128Gcm,
            hot_file_bytes: 64 * 1024,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CalibrationProgress {
    /// Rounds over all sizes and paths that are complete.
    pub rounds: usize,
    pub elapsed: Duration,
    /// The time it will take.
    pub total: Duration,
}

#[derive(Clone, Debug)]
pub struct Calibration {
    pub kernel_release: String,
    pub version: Version,
    pub cipher: Cipher,
    /// Bodies up to this size came from memory.
    pub hot_file_bytes: u64,
    pub kernel_refusal: Option<String>,
    /// The processor time of moving one connection into the kernel.
    pub switch_cost: Option<Duration>,
    pub rounds: usize,
    pub elapsed: Duration,
    /// The figures, smallest body first.
    pub rows: Vec<CostRow>,
    pub verdict: CrossoverVerdict,
}

/// Measures; `progress` is called after each round, on the calling thread.
///
/// # Errors
/// A sentence for the user: there is no room for the file to send, loopback does not carry the connections, this kernel's
/// clock is too coarse, or the kernel sent none of the records it took keys for.
pub fn run(
    options: &CalibrateOptions,
    progress: &mut dyn FnMut(CalibrationProgress),
) -> Result<Calibration, String> {
    let (sender, receiver) = mpsc::sync_channel(PROGRESS_QUEUED_MAX);
    let measured = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let report = move |step| _ = sender.try_send(step);
            rounds::measure(options, &report)
        });
        for step in receiver {
            progress(step);
        }
        thread.join()
    });
    measured.map_err(|_| "this is a bug in kettle: the measuring thread panicked".to_owned())?
}

/// Steps that nobody has looked at yet; more are dropped.
const PROGRESS_QUEUED_MAX: usize = 16;

#[cfg(test)]
mod tests;
