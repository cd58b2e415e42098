//! Giving up, for good, what this process and all that it starts from then on will never need: opening files, making system
//! calls. Which files those are is decided elsewhere.

mod calls;
mod files;
#[cfg(test)]
mod tests;

pub use calls::{Confined, confine_calls, seccomp_here};
pub use files::{Files, confine_files, landlock_version};

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use rustix::thread::set_no_new_privs;

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

/// Whatever is executed gains no rights by it. Both parts of a sandbox ask for that.
fn gain_nothing() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
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
