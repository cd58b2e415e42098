//! The costs of a load for the server and the machine, read from the kernel's own counters on one clock: processor time,
//! memory, context switches, kernel TLS, retransmits; and what disturbed the measurement.

mod background;
pub mod calls;
pub mod cores;
pub mod machine;
pub mod memory;
pub mod noise;
mod process;
pub mod server;
mod system;
mod throttled;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use background::BackgroundProcess;
pub use throttled::Throttled;

/// Why something could not be measured.
#[derive(Debug)]
pub enum MeasureError {
    /// A process of the server is not there any more: it has crashed, or was replaced by another.
    Gone { process: u32 },
    /// The kernel does not let this file be read.
    Unreadable { path: PathBuf, error: io::Error },
    /// A file of the kernel reads differently from what is known.
    Odd {
        path: PathBuf,
        /// The gap in it.
        lacks: &'static str,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { process } => {
                write!(f, "process {process} of the server is gone; its log says why")
            }
            Self::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Odd { path, lacks } => write!(f, "{}: no {lacks} in it", path.display()),
        }
    }
}

impl std::error::Error for MeasureError {}

/// The text of one of the kernel's files. Names of processes may be any bytes, so odd ones are replaced.
fn text(path: impl AsRef<Path>) -> Result<String, MeasureError> {
    let path = path.as_ref();
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(MeasureError::Unreadable { path: path.to_owned(), error }),
    }
}

/// The first line of a file, if it is there: most of what `/sys` says.
fn line(path: impl AsRef<Path>) -> Option<String> {
    text(path).ok()?.lines().next().map(|line| line.trim().to_owned())
}

/// A line such as `Slab:             442348 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
