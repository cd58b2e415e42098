//! Which processor each worker is pinned to: one hardware thread of every core first. Two workers on the threads of one
//! core slow each other down while another core has nothing to do.

use std::collections::BTreeSet;
use std::fs;

use kettle_kernel::process;

/// The processors that workers are pinned to, in the order in which they get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinning {
    processors: Vec<Processor>,
}

/// A processor as Linux counts them: a hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Processor {
    number: usize,
    /// The lowest number among the threads of its core, which need not be one that may be used.
    core: usize,
}

impl Pinning {
    /// To the processors that this process may use.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::new(&process::cpus_allowed(), |cpu| {
            let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
            fs::read_to_string(format!("{folder}/thread_siblings_list")).ok()
        })
    }

    /// `siblings` says which threads are of one core, as the kernel writes it: `0,4` or `0-1`. If it says nothing, the
    /// processor is a core of its own.
    fn new(allowed: &[usize], siblings: impl Fn(usize) -> Option<String>) -> Self {
        let core = |number| {
            let list = siblings(number)?;
            list.trim().split([',', '-']).next()?.parse().ok()
        };
        let mut processors: Vec<_> = allowed
            .iter()
            .map(|&number| Processor { number, core: core(number).unwrap_or(number) })
            .collect();
        let all = processors.clone();
        // The first threads of all cores, then the second ones.
        processors.sort_by_key(|it| {
            let before =
                all.iter().filter(|other| other.core == it.core && other.number < it.number);
            (before.count(), it.number)
        });
        Self { processors }
    }

    /// The processor of a worker. If there are more workers than processors, some get the same one.
    #[must_use]
    pub fn processor(&self, worker: usize) -> Option<usize> {
        Some(self.nth(worker)?.number)
    }

    fn nth(&self, worker: usize) -> Option<Processor> {
        self.processors.get(worker % self.processors.len().max(1)).copied()
    }

    /// Says in one line what it does with this many workers.
    #[must_use]
    pub fn line(&self, workers: usize) -> String {
        let pinned: Vec<_> = (0..workers).filter_map(|worker| self.nth(worker)).collect();
        let cores = pinned.iter().map(|it| it.core).collect::<BTreeSet<_>>().len();
        let numbers: Vec<_> = pinned.iter().map(|it| it.number.to_string()).collect();
        let cores = match cores {
            1 if workers == 1 => String::new(),
            1 => ", all on one core".to_owned(),
            _ if cores == workers => ", each on a core of its own".to_owned(),
            _ => format!(", on {cores} cores"),
        };
        let (s, s_of_cpus) = if workers == 1 { ("", "") } else { ("s", "s") };
        format!("{workers} worker{s} pinned to processor{s_of_cpus} {}{cores}", numbers.join(" "))
    }
}

#[cfg(test)]
mod tests;
