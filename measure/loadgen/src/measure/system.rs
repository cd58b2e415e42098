//! The machine's own counters: where all its processor time went, and what TCP sent again.

use std::time::Duration;

use kettle_kernel::tls_stat;

use super::{lacks, text};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) times: Times,
    /// TCP segments sent again, in this network namespace.
    pub(super) retransmits: u64,
    /// Connections whose sending side the kernel took over; `None` without kernel TLS.
    pub(super) kernel_connections: Option<u64>,
}

impl Counters {
    pub(super) fn read() -> Result<Self, String> {
        let times = Times::parse(&text(STAT)?);
        Ok(Self {
            times: times.ok_or_else(|| lacks(STAT, "line `cpu`"))?,
            // A network namespace without TCP has nothing to say, which is no reason to measure nothing.
            retransmits: text(SNMP).ok().and_then(|text| retransmits(&text)).unwrap_or(0),
            kernel_connections: kernel_connections(),
        })
    }
}

/// Sending sides the kernel has taken over in this network namespace, in software or a network card; `None` without kernel TLS.
pub fn kernel_connections() -> Option<u64> {
    tls_stat::read().map(|stat| stat.count("TlsTxSw") + stat.count("TlsTxDevice"))
}

/// The kinds of the time of all processors went, in [`TICK`]s since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// In user space, nice or not.
    pub(super) user: u64,
    /// In the kernel for processes.
    pub(super) system: u64,
    pub(super) softirq: u64,
    /// The time that the hypervisor gave to others while a processor had work.
    pub(super) steal: u64,
}

impl Times {
    /// The first line of `/proc/stat`. Kernels have added fields at its end, never taken one away.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> =
            line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, _irq, softirq, steal, ..] = fields.as_slice()
        else {
            return None;
        };
        Some(Self {
            user: user.saturating_add(*nice),
            system: *system,
            softirq: *softirq,
            steal: *steal,
        })
    }

    /// Returns the time that processes used, as far as ticks can tell.
    pub(super) fn of_processes(&self) -> u64 {
        self.user.saturating_add(self.system)
    }
}

/// `RetransSegs` of `/proc/net/snmp`, where a line of names goes before each line of values.
fn retransmits(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let names = lines.next()?;
    let values = lines.next()?;
    let place = names.split_ascii_whitespace().position(|name| name == "RetransSegs")?;
    values.split_ascii_whitespace().nth(place)?.parse().ok()
}

pub(super) fn ticks(count: u64) -> Duration {
    TICK.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

/// `USER_HZ` is 100 on every architecture kettle runs on, whatever the kernel's own clock does.
const TICK: Duration = Duration::from_millis(10);
const STAT: &str = "/proc/stat";
const SNMP: &str = "/proc/net/snmp";

#[cfg(test)]
mod tests;
