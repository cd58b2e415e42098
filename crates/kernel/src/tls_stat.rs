//! The kernel's own count of what kernel TLS did, from `/proc/net/tls_stat`: the proof that a path was really taken.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// The counters of this network namespace by the kernel's names, such as `TlsTxSw`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsStat {
    counters: BTreeMap<String, u64>,
}

impl TlsStat {
    /// One counter; zero for a name this kernel does not have.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Every counter, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counters.iter().map(|(name, count)| (name.as_str(), *count))
    }

    fn parse(text: &str) -> Self {
        let counters = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
            })
            .collect();
        Self { counters }
    }
}

/// Reads the counters. `None` when this kernel has no kernel TLS or the module is not loaded. Linux 5.7.
#[must_use]
pub fn read() -> Option<TlsStat> {
    std::fs::read_to_string("/proc/net/tls_stat").ok().map(|text| TlsStat::parse(&text))
}
