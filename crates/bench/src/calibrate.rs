//! `kettle calibrate`: from which body size the kernel sends a response for less processor time
//! than this process, on this machine.
//!
//! One thread sends responses over loopback by each path in turn, as the server would, and throws
//! them away at the other end. What counts is the processor time of sending.

mod body;
mod connection;
mod crossover;
mod paths;
mod report;
mod rounds;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kettle_tls::records::ProtectionError;
use kettle_tls::{Cipher, Version};

pub use crossover::{Row, Verdict};

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    pub time: Duration,
    /// Where the file that is sent lies; it should be on the file system that will be served.
    pub directory: PathBuf,
    pub version: Version,
    pub cipher: Cipher,
    /// Bodies up to this size come from memory, as the server keeps small hot files there.
    pub hot_file_bytes: u64,
}

impl Default for Options {
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
pub struct Progress {
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
    pub rows: Vec<Row>,
    pub verdict: Verdict,
}

/// Measures; `progress` is called after each round, on the calling thread.
pub fn run(
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Calibration, CalibrateError> {
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
    measured.map_err(|_| CalibrateError::Bug("the measuring thread panicked"))?
}

#[derive(Debug)]
pub enum CalibrateError {
    /// The file to send could not be made.
    File {
        directory: PathBuf,
        source: io::Error,
    },
    /// Loopback connections do not work.
    Loopback(io::Error),
    Keys(ProtectionError),
    /// The kernel took the keys and then sent no records with them.
    NotEncrypted,
    /// This machine counts processor time in steps longer than what is measured.
    CoarseClock {
        step: Duration,
    },
    Bug(&'static str),
}

impl fmt::Display for CalibrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { directory, source } => write!(
                f,
                "cannot make the file to send in {}: {source}; name a directory with 32 MiB to \
                 spare by --directory",
                directory.display()
            ),
            Self::Loopback(source) => {
                write!(f, "cannot send over loopback: {source}; check that `lo` is up")
            }
            Self::Keys(source) => write!(f, "cannot make keys: {source}"),
            Self::NotEncrypted => {
                f.write_str("the kernel took the keys but counts no records sent with them")
            }
            Self::CoarseClock { step } => write!(
                f,
                "this kernel counts processor time in steps of {} µs, which are too coarse to \
                 measure single responses with; calibrate on the machine itself, not under \
                 emulation",
                step.as_micros()
            ),
            Self::Bug(what) => write!(f, "this is a bug in kettle: {what}"),
        }
    }
}

impl std::error::Error for CalibrateError {}

/// Steps that nobody has looked at yet; more are dropped.
const PROGRESS_QUEUED_MAX: usize = 16;

#[cfg(test)]
mod tests;
