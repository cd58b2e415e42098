//! The content of `/proc/PID` for one process, taken apart.

use std::time::Duration;

use super::system::ticks;

/// `/proc/PID/stat`, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) parent: u32,
    pub(super) is_kernel: bool,
    pub(super) user: Duration,
    pub(super) system: Duration,
    /// The time that children that ended and were waited for have used.
    pub(super) children: Duration,
    /// Ticks from the boot to its start: together with its number this names a process for good.
    pub(super) started: u64,
}

impl Stat {
    /// `None` for what is no such file. The name stands in parentheses and may hold some itself, hence the last one counts.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        // Field 3 of proc_pid_stat(5), the state, is the first here.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = |number| Some(ticks(field(number)?));
        Some(Self {
            name: name.to_owned(),
            parent: u32::try_from(field(4)?).ok()?,
            is_kernel: field(9)? & KERNEL_THREAD != 0,
            user: ticks(14)?,
            system: ticks(15)?,
            children: ticks(16)?.saturating_add(ticks(17)?),
            started: field(22)?,
        })
    }
}

/// The number of times a thread gave up its processor, or had it taken away, out of `/proc/PID/task/TID/status`; `None` where
/// the lines are missing.
pub(super) fn switches(text: &str) -> Option<u64> {
    let count = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}

/// `PF_KTHREAD` of include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[cfg(test)]
mod tests;
