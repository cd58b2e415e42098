//! The usage of a server between two moments, on the clocks the kernel keeps for its processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kettle_kernel::process::cpu_time_of;

use super::background::{BackgroundProcess, Census};
use super::process::{Stat, switches};
use super::system::{Counters, ticks};
use super::throttled::Throttled;
use super::{gone, lacks, text};

/// The processes of a server. The client is this process with all its children that are not the server's.
#[derive(Clone, Debug)]
pub struct SystemUnderTest {
    processes: Vec<u32>,
}

#[derive(Clone, Debug)]
pub struct Snapshot {
    at: Instant,
    cpu: Duration,
    user: Duration,
    system: Duration,
    switches: u64,
    counters: Counters,
    census: Census,
    throttled: Throttled,
}

#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub elapsed: Duration,
    /// Processor time of the server: all its threads, those that ended included.
    pub cpu: Duration,
    /// The part of it in user space, from 0 to 1. It is sampled at ticks, so it needs a second of processor time or so.
    pub user_share: f64,
    /// The number of times the server's threads waited, or had to give way.
    pub switches: u64,
    /// Softirqs of the whole machine, both ends of the loopback among them, sampled at ticks.
    pub softirq: Duration,
    /// The time that the hypervisor gave to others while a processor had work.
    pub steal: Duration,
    /// Processor time of this process and its children that are no servers.
    pub client: Duration,
    /// Processor time of everything else but the kernel's own threads.
    pub others: Duration,
    /// The busiest of these, if they are still there; at most three.
    pub background: Vec<BackgroundProcess>,
    pub throttled: Throttled,
    /// TCP segments sent again, machine-wide.
    pub retransmits: u64,
    /// Connections the kernel encrypts for since; `None` without kernel TLS.
    pub kernel_connections: Option<u64>,
}

impl SystemUnderTest {
    /// A server of these processes: those that do the work, each with all its threads.
    pub fn of(processes: &[u32]) -> Self {
        Self { processes: processes.to_vec() }
    }

    /// Reads everything. It takes some milliseconds on a machine with hundreds of processes.
    ///
    /// # Errors
    /// A sentence: a process has ended, or a counter of the kernel cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, String> {
        let at = Instant::now();
        let cpu = self.cpu()?;
        let mut user = Duration::ZERO;
        let mut system = Duration::ZERO;
        let mut switches = 0;
        for process in &self.processes {
            let path = PathBuf::from(format!("/proc/{process}/stat"));
            let content = text(&path).map_err(|_| gone(*process))?;
            let stat = Stat::parse(&content).ok_or_else(|| lacks(path, "times"))?;
            user += stat.user;
            system += stat.system;
            switches += switches_of_threads(*process);
        }
        Ok(Snapshot {
            at,
            cpu,
            user,
            system,
            switches,
            counters: Counters::read()?,
            census: Census::take(&self.processes, std::process::id()),
            throttled: Throttled::read(Path::new("/")),
        })
    }

    /// Processor time of all its threads so far, those that ended included.
    ///
    /// # Errors
    /// A sentence: a process has ended.
    pub fn cpu(&self) -> Result<Duration, String> {
        self.processes.iter().map(|it| cpu_time_of(*it).map_err(|_| gone(*it))).sum()
    }

    /// Waits until the server has done what was still to do: its clocks stand still. False when the time is over first.
    ///
    /// # Errors
    /// A sentence: a process has ended.
    #[allow(
        clippy::disallowed_methods,
        reason = "another process' clock gives no event to wait for"
    )]
    pub fn settle(&self, at_most: Duration) -> Result<bool, String> {
        let deadline = Instant::now() + at_most;
        let mut last = self.cpu()?;
        while Instant::now() < deadline {
            std::thread::sleep(SETTLE_STEP);
            let now = self.cpu()?;
            if now.saturating_sub(last) <= IDLE_IN_STEP {
                return Ok(true);
            }
            last = now;
        }
        Ok(false)
    }
}

impl Snapshot {
    /// Returns the usage from the earlier snapshot to this one. No counter can go back; where one seems to, it counts as zero.
    pub fn since(&self, earlier: &Self) -> Usage {
        let user = self.user.saturating_sub(earlier.user).as_secs_f64();
        let system = self.system.saturating_sub(earlier.system).as_secs_f64();
        let counted = |now: u64, then: u64| now.saturating_sub(then);
        let now = &self.counters;
        let then = &earlier.counters;
        let cpu = self.cpu.saturating_sub(earlier.cpu);
        let shares = self.census.since(&earlier.census);
        let seen: Duration = shares.background.iter().map(|process| process.cpu).sum();
        // Compilers and shells come and go between two looks. Only the machine's ticks saw them; ticks that fall into an
        // interrupt are missing there, so this is never too much by more than a tick or two.
        let all = ticks(counted(now.times.of_processes(), then.times.of_processes()));
        let unseen = [cpu, shares.client, shares.kernel, TICKS_ROUNDED]
            .iter()
            .fold(all, |rest, it| rest.saturating_sub(*it));
        Usage {
            elapsed: self.at.saturating_duration_since(earlier.at),
            cpu,
            user_share: if user + system > 0.0 { user / (user + system) } else { 0.0 },
            switches: counted(self.switches, earlier.switches),
            softirq: ticks(counted(now.times.softirq, then.times.softirq)),
            steal: ticks(counted(now.times.steal, then.times.steal)),
            client: shares.client,
            others: seen.max(unseen),
            background: shares.background.into_iter().take(BACKGROUND_NAMED).collect(),
            throttled: self.throttled.since(earlier.throttled),
            retransmits: counted(now.retransmits, then.retransmits),
            kernel_connections: now
                .kernel_connections
                .map(|count| counted(count, then.kernel_connections.unwrap_or(0))),
        }
    }
}

/// A thread that ends takes its counts along; servers keep theirs.
fn switches_of_threads(process: u32) -> u64 {
    let threads =
        std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| switches(&text(thread.path().join("status")).ok()?)).sum()
}

const SETTLE_STEP: Duration = Duration::from_millis(20);
/// A server's own timers (a worker of kettle looks at its deadlines once a second) are no unfinished work.
const IDLE_IN_STEP: Duration = Duration::from_micros(50);
const TICKS_ROUNDED: Duration = Duration::from_millis(20);
const BACKGROUND_NAMED: usize = 3;

#[cfg(test)]
mod tests;
