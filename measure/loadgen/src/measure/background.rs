//! The processes that were at work: every process of the machine is looked at before and after, and what is neither server nor
//! client nor kernel is a background process.

use std::collections::BTreeMap;
use std::time::Duration;

use kettle_kernel::process::cpu_time_of;

use super::process::Stat;
use super::text;

/// The processes of one name that are neither server nor client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundProcess {
    pub name: String,
    pub cpu: Duration,
}

/// All processes at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    processes: BTreeMap<u32, Process>,
    /// The time that children of the client used that have ended: a command-line client runs as one.
    ended_clients: Duration,
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    started: u64,
    cpu: Duration,
    kind: ProcessKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessKind {
    Server,
    Client,
    Kernel,
    Other,
}

/// The time that each kind used between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) client: Duration,
    pub(super) kernel: Duration,
    /// The name that used most first.
    pub(super) background: Vec<BackgroundProcess>,
}

impl Census {
    /// Looks at every process this one can see. Those that end meanwhile are left out.
    pub(super) fn take(server: &[u32], client: u32) -> Self {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let stat = text(entry.path().join("stat")).ok().and_then(|text| Stat::parse(&text));
            if let (Some(stat), Ok(cpu)) = (stat, cpu_time_of(process)) {
                found.insert(process, (stat, cpu));
            }
        }
        Self::of(&found, server, client)
    }

    fn of(found: &BTreeMap<u32, (Stat, Duration)>, server: &[u32], client: u32) -> Self {
        let kind = |process: u32, stat: &Stat| {
            if stat.is_kernel {
                return ProcessKind::Kernel;
            }
            // Bounded, because a table read while processes come and go may hold a circle.
            let mut ancestor = process;
            for _ in 0..GENERATIONS_MAX {
                if server.contains(&ancestor) {
                    return ProcessKind::Server;
                }
                if ancestor == client {
                    return ProcessKind::Client;
                }
                match found.get(&ancestor) {
                    Some((stat, _)) => ancestor = stat.parent,
                    None => break,
                }
            }
            ProcessKind::Other
        };
        let processes = found.iter().map(|(process, (stat, cpu))| {
            let entry = Process {
                name: stat.name.clone(),
                started: stat.started,
                cpu: *cpu,
                kind: kind(*process, stat),
            };
            (*process, entry)
        });
        Self {
            processes: processes.collect(),
            ended_clients: found.get(&client).map(|(stat, _)| stat.children).unwrap_or_default(),
        }
    }

    /// Returns the time that each kind used since an earlier census. A process that came in between counts whole; one that left
    /// is not seen.
    pub(super) fn since(&self, earlier: &Self) -> Shares {
        let mut shares = Shares {
            client: self.ended_clients.saturating_sub(earlier.ended_clients),
            ..Shares::default()
        };
        let mut others: BTreeMap<&str, Duration> = BTreeMap::new();
        for (process, entry) in &self.processes {
            let before = earlier
                .processes
                .get(process)
                .filter(|before| before.started == entry.started)
                .map(|before| before.cpu);
            let cpu = entry.cpu.saturating_sub(before.unwrap_or_default());
            let sum = match entry.kind {
                ProcessKind::Server => continue,
                ProcessKind::Client => &mut shares.client,
                ProcessKind::Kernel => &mut shares.kernel,
                ProcessKind::Other => others.entry(&entry.name).or_default(),
            };
            *sum = sum.saturating_add(cpu);
        }
        let others = others.into_iter().filter(|(_, cpu)| !cpu.is_zero());
        let others = others.map(|(name, cpu)| BackgroundProcess { name: name.to_owned(), cpu });
        shares.background = others.collect();
        shares.background.sort_by_key(|process| std::cmp::Reverse(process.cpu));
        shares
    }
}

const GENERATIONS_MAX: usize = 64;

#[cfg(test)]
mod tests;
