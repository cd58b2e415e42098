//! The memory of a server: its own, and the kernel's for it.

use std::path::PathBuf;

use super::{gone, kibibytes, lacks, text};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The server's processes, what they share divided among those that share it.
    pub pss_bytes: u64,
    /// The kernel's structures (sockets, files, kernel TLS contexts) and what TCP has queued, whose bookkeeping is among the
    /// structures too, so idle connections are the ones to compare. The whole machine's, both ends of a loopback connection
    /// among them, so only the difference of two moments says something.
    pub kernel_bytes: u64,
    /// Descriptors the server's processes have open; none where they may not be seen.
    pub descriptors: u64,
}

impl Memory {
    /// Reads it now. It takes milliseconds for each GiB a process has mapped.
    ///
    /// # Errors
    /// A sentence: a process has ended or `/proc` does not show its memory.
    pub fn read(processes: &[u32]) -> Result<Self, String> {
        let mut pss_bytes = 0_u64;
        let mut descriptors = 0;
        for process in processes {
            pss_bytes = pss_bytes.saturating_add(pss(*process)?);
            let open = std::fs::read_dir(format!("/proc/{process}/fd"));
            descriptors += open.map_or(0, |open| open.count() as u64);
        }
        let slab = kibibytes(&text(MEMINFO)?, "Slab:");
        let slab_bytes = slab.ok_or_else(|| lacks(MEMINFO, "line `Slab:`"))?;
        // A kernel without TCP has no such file, and then no such memory either.
        let pages = text(SOCKSTAT).ok().and_then(|text| tcp_pages(&text)).unwrap_or(0);
        let kernel_bytes = slab_bytes.saturating_add(pages.saturating_mul(page_bytes()));
        Ok(Self { pss_bytes, kernel_bytes, descriptors })
    }
}

fn pss(process: u32) -> Result<u64, String> {
    let folder = PathBuf::from(format!("/proc/{process}"));
    let path = folder.join("smaps_rollup");
    match text(&path) {
        Ok(content) => kibibytes(&content, "Pss:").ok_or_else(|| lacks(path, "line `Pss:`")),
        Err(_) if !folder.exists() => Err(gone(process)),
        Err(error) => Err(error),
    }
}

/// `mem` of the line `TCP:` in `/proc/net/sockstat`: pages of what is queued, of all network namespaces.
fn tcp_pages(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace();
    words.find(|word| *word == "mem")?;
    words.next()?.parse().ok()
}

/// The kernel says its page size with each mapping; the first will do.
fn page_bytes() -> u64 {
    let maps = text("/proc/self/smaps").ok();
    maps.and_then(|maps| kibibytes(&maps, "KernelPageSize:")).unwrap_or(PAGE_BYTES)
}

const MEMINFO: &str = "/proc/meminfo";
const SOCKSTAT: &str = "/proc/net/sockstat";
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests;
