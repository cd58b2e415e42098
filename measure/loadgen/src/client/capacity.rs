//! Checks whether this machine can hold a load at all: descriptors, ports, and a load that makes sense. Asked before it starts.

use std::fs;
use std::net::IpAddr;

use kettle_kernel::process;

use super::error::LoadError;
use crate::load::{Load, LoadModel};
use crate::offer::ResumeBy;

/// Refuses what cannot be carried out, and raises the limit on open files to what is allowed.
pub(super) fn check(load: &Load) -> Result<(), LoadError> {
    check_sense(load)?;
    let connections = connections_max(load);
    check_descriptors(connections, load.cpus.len() as u64)?;
    check_ports(load, connections)
}

/// The number of connections that may be open at the same time.
fn connections_max(load: &Load) -> u64 {
    u64::from(match load.model {
        LoadModel::Closed { connections }
        | LoadModel::Streaming { connections, .. }
        | LoadModel::Idle { connections, .. } => connections,
        LoadModel::Open { transactions_max, .. } => transactions_max,
    })
}

fn check_sense(load: &Load) -> Result<(), LoadError> {
    let refuse = |what: &'static str| Err(LoadError::senseless(what));
    if load.cpus.is_empty() {
        return refuse("no processor for the client");
    }
    if connections_max(load) == 0 {
        return refuse("no connections");
    }
    if load.reuse.connections_per_session == 0 || load.reuse.requests_per_connection == Some(0) {
        return refuse("a session without a connection, or a connection without a request");
    }
    let resumes = load.tls.is_none_or(|offer| offer.resume_by != ResumeBy::Nothing);
    if load.reuse.connections_per_session > 1 && !resumes {
        return refuse("sessions of several connections, and nothing to resume them by");
    }
    if load.timeout.is_zero() {
        return refuse("no time for a transaction");
    }
    if load.end.at_most() <= load.warm_up {
        return refuse("it ends before its warm-up does");
    }
    match load.model {
        LoadModel::Open { arrivals, .. } if !arrivals.is_sound() => refuse("a rate that is none"),
        LoadModel::Streaming { interval, spread, .. }
            if interval.is_zero() || spread > interval =>
        {
            refuse("an interval of nothing, or one that is shorter than its spread")
        }
        _ => Ok(()),
    }
}

fn check_descriptors(connections: u64, threads: u64) -> Result<(), LoadError> {
    let limit = process::raise_open_files_limit().map_err(|error| {
        LoadError::Impossible(format!("the limit on open files cannot be raised: {error}"))
    })?;
    let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let needed = connections + open + threads * DESCRIPTORS_PER_THREAD;
    if needed > limit {
        return Err(LoadError::Impossible(format!(
            "the load needs {needed} open files and this process may have {limit}; raise it with `ulimit -Hn {needed}` as root, or \
             use fewer connections"
        )));
    }
    Ok(())
}

fn check_ports(load: &Load, connections: u64) -> Result<(), LoadError> {
    let Some(per_source) = ports_per_source() else { return Ok(()) };
    let sources = u64::from(sources(load));
    // A port may be used again a second after its connection ended, on loopback.
    let resting = match load.model {
        LoadModel::Open { arrivals, .. } => arrivals.per_second_max().ceil() as u64,
        _ => 0,
    };
    let needed = connections + resting;
    let available = per_source * sources;
    if needed > available {
        return Err(LoadError::Impossible(format!(
            "the load needs {needed} ports and has {available} with {sources} source addresses; use more source addresses or widen \
             net.ipv4.ip_local_port_range"
        )));
    }
    Ok(())
}

/// Returns how many source addresses are in use: only loopback has more than one that is surely ours.
pub(super) fn sources(load: &Load) -> u8 {
    match load.target.ip() {
        IpAddr::V4(address) if address.is_loopback() => load.sources.clamp(1, SOURCES_MAX),
        _ => 1,
    }
}

fn ports_per_source() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut words = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let first = words.next()??;
    let last = words.next()??;
    Some((last + 1).saturating_sub(first))
}

/// 127.0.0.2 to 127.0.0.254.
const SOURCES_MAX: u8 = 253;

/// The thread's epoll, eventfd and timers.
const DESCRIPTORS_PER_THREAD: u64 = 8;

#[cfg(test)]
mod tests;
