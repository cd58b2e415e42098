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

use std::path::Path;

pub use background::BackgroundProcess;
pub use system::kernel_connections;
pub use throttled::Throttled;

/// The text of one of the kernel's files. Names of processes may be any bytes, so odd ones are replaced.
fn text(path: impl AsRef<Path>) -> Result<String, String> {
    let read = std::fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    read.map_err(|error| format!("{}: {error}", path.as_ref().display()))
}

/// A process has crashed, or was replaced by another.
fn gone(process: u32) -> String {
    format!("process {process} of the server is gone; its log says why")
}

/// A file of the kernel reads differently from what is known.
fn lacks(path: impl AsRef<Path>, what: &str) -> String {
    format!("{}: no {what} in it", path.as_ref().display())
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
