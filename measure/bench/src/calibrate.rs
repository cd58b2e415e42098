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

use std::path::Path;
use std::thread;
use std::time::Duration;

use kettle_tls::{Cipher, Version};

pub use crossover::{CostRow, CrossoverVerdict};

#[derive(Clone, Debug)]
pub struct Calibration {
    pub kernel_release: String,
    pub kernel_refusal: Option<String>,
    /// The processor time of moving one connection into the kernel.
    pub switch_cost: Option<Duration>,
    pub rounds: usize,
    pub elapsed: Duration,
    /// The figures, smallest body first.
    pub rows: Vec<CostRow>,
    pub verdict: CrossoverVerdict,
}

/// Told after each round: the rounds over all sizes and paths that are complete, and the time they took.
pub type Progress<'p> = &'p (dyn Fn(usize, Duration) + Sync);

/// Measures for this time. The folder of the file that is sent should be on the file system that will be served.
///
/// # Errors
/// A sentence for the user: there is no room for the file to send, loopback does not carry the connections, this kernel's
/// clock is too coarse, or the kernel sent none of the records it took keys for.
pub fn run(
    time: Duration,
    directory: &Path,
    progress: Progress<'_>,
) -> Result<Calibration, String> {
    // In a thread of its own, since it stays on one processor.
    let measure = || rounds::measure(time, directory, progress);
    let measured = thread::scope(|scope| scope.spawn(measure).join());
    measured.map_err(|_| "this is a bug in kettle: the measuring thread panicked".to_owned())?
}

const VERSION: Version = Version::Tls13;
const CIPHER: Cipher = Cipher::Aes128Gcm;
/// Bodies up to this size come from memory, as the server keeps small hot files there.
const HOT_FILE_BYTES: u64 = 64 * 1024;

#[cfg(test)]
mod tests;
