//! The bounds of the machine for a load: descriptors and ports. A scenario refuses what is beyond it, with the number that is
//! missing.

pub use kettle_kernel::process::cpus_allowed;
use rustix::process::{Resource, getrlimit};

/// Returns the message if so many connections at once are more than this process and a server started by it may have open.
pub fn refuse(connections: u32, sockets_each: u64) -> Option<String> {
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    too_many(connections, sockets_each, limit)
}

fn too_many(connections: u32, sockets_each: u64, limit: u64) -> Option<String> {
    let needed = u64::from(connections) * sockets_each + DESCRIPTORS_BESIDE;
    (needed > limit).then(|| {
        format!(
            "{connections} connections need {needed} open files and a process may have {limit} here, {} fewer; \
             `ulimit -Hn {needed}` as root mends it",
            needed - limit
        )
    })
}

/// Returns how many source addresses are needed for so many connections at once and so many new ones a second.
///
/// A closed connection keeps its pair of ports for a minute. All of 127.0.0.0/8 is this machine, so there are always enough.
pub fn sources(connections: u32, new_per_second: f64) -> u8 {
    let ports = f64::from(connections) + new_per_second.max(0.0) * TIME_WAIT_SECONDS;
    // A cast of a float saturates.
    ((ports / PORTS_PER_SOURCE).ceil() as u8).clamp(1, SOURCES_MAX)
}

/// Listening sockets, logs, pipes, libraries, and a file being served.
const DESCRIPTORS_BESIDE: u64 = 200;

/// Linux gives out ports 32768 to 60999. Half of them, since finding a free one slows down when few are left.
const PORTS_PER_SOURCE: f64 = 14_000.0;

/// TCP_TIMEWAIT_LEN.
const TIME_WAIT_SECONDS: f64 = 60.0;

const SOURCES_MAX: u8 = 250;

#[cfg(test)]
mod tests;
