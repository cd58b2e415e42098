//! Servers that run while something is measured: a start, signals, an end, and what the kernel says they cost.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use crate::files::at;
use crate::process;

/// A server with all processes that come of it. It is ended when dropped.
pub struct Daemon(Child);

impl Daemon {
    /// Starts one with its output in a file, and waits until it can be connected to.
    pub fn start(command: &mut Command, log: &Path, place: (&str, u16)) -> Result<Self, String> {
        let output = File::create(log).map_err(|error| at(log, &error))?;
        let errors = output.try_clone().map_err(|error| at(log, &error))?;
        let child = command.stdout(output).stderr(errors).spawn();
        let child = child.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut daemon = Self(child);
        let is_there = wait_until(START_TIME_MAX, Duration::from_millis(1), || {
            TcpStream::connect(place).is_ok() || !daemon.runs()
        });
        if is_there && daemon.runs() {
            return Ok(daemon);
        }
        let said = fs::read_to_string(log).unwrap_or_default();
        let said: Vec<&str> = said.lines().take(5).collect();
        Err(format!("{}: it does not listen: {}", log.display(), said.join(" / ")))
    }

    pub fn signal(&self, name: &str) -> Result<(), String> {
        signal(name, &[self.0.id()])
    }

    /// Ends all its processes as the kernel does where memory is short.
    pub fn kill(&mut self) {
        // Some of them end by themselves as the first one does, and are not there any more.
        let _ = signal("KILL", &tree(self.0.id()));
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Processor time of its processes, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        let stats = tree(self.0.id()).into_iter().filter_map(stat);
        stats.map(|it| it.ticks).sum::<f64>() * 1e6 / TICKS_PER_SECOND
    }

    /// Memory of its processes in bytes by a line of smaps_rollup that counts what they share once, such as `Pss:` (proc(5)).
    pub fn memory_bytes(&self, kind: &str) -> f64 {
        let each = tree(self.0.id()).into_iter().filter_map(|pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
            line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
        });
        each.sum::<f64>() * 1024.0
    }

    pub fn descriptors(&self) -> usize {
        let count = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        tree(self.0.id()).into_iter().map(count).sum()
    }

    fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let all = tree(self.0.id());
        let _ = self.signal("TERM");
        if !wait_until(STOP_TIME_MAX, Duration::from_millis(10), || !self.runs()) {
            let _ = signal("KILL", &all);
            let _ = self.0.wait();
        }
    }
}

/// Looks again and again until something is so; false if it is not in time.
pub fn wait_until(limit: Duration, pause: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        park_timeout(pause);
    }
}

/// A command that ends with this process, however that ends; the program and its arguments follow.
pub fn ending_with_us() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]);
    command
}

pub fn signal(name: &str, pids: &[u32]) -> Result<(), String> {
    let pids = pids.iter().map(u32::to_string);
    process::run_quietly(Command::new("kill").arg(format!("-{name}")).args(pids))
}

struct Stat {
    parent: u32,
    ticks: f64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The parent of a process, and its processor time with that of the children it has waited for (proc(5)).
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(Stat { parent: fields.get(1)?.parse().ok()?, ticks })
}

/// A process and those that come of it.
fn tree(root: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(parents.iter().filter(|(_, its)| *its == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    tree
}

/// `getconf CLK_TCK`, which is 100 on every Linux of today.
const TICKS_PER_SECOND: f64 = 100.0;
const START_TIME_MAX: Duration = Duration::from_secs(180);
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    #[test]
    fn processor_time_is_that_of_children_too() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0";
        let stat = super::parse_stat(text).unwrap();
        assert_eq!((stat.parent, stat.ticks), (3, 100.0));
        assert!(super::parse_stat("").is_none());
    }
}
