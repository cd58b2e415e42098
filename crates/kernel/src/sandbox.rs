//! Giving up, for good, what this process and all that it starts from then on will never need: which files may be opened,
//! and how. Which those are is decided elsewhere.

mod files;
#[cfg(test)]
mod tests;

pub use files::{Files, confine_files, landlock_version};

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use crate::process;

/// Why rights were not given up.
#[derive(Debug)]
pub enum SandboxError {
    /// The kernel cannot do it, for this reason.
    NotHere(&'static str),
    /// It would hold for one thread, and this process has others.
    OtherThreads,
    /// The kernel refused.
    Refused(String),
}

impl fmt::Display for SandboxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHere(reason) => out.write_str(reason),
            Self::OtherThreads => out.write_str("this process has other threads already"),
            Self::Refused(reason) => write!(out, "the kernel refuses: {reason}"),
        }
    }
}

impl std::error::Error for SandboxError {}

impl From<io::Error> for SandboxError {
    fn from(error: io::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// A thread that was joined may still be about to vanish.
fn refuse_other_threads() -> Result<(), SandboxError> {
    let began = Instant::now();
    while !process::has_one_thread()? {
        if began.elapsed() > VANISH_TIME_MAX {
            return Err(SandboxError::OtherThreads);
        }
        std::thread::yield_now();
    }
    Ok(())
}

const VANISH_TIME_MAX: Duration = Duration::from_millis(200);
