//! The number of bytes the machine moved to and from memory, where its processor counts them and
//! the kernel shows it (resctrl). If it does not, there is no figure: nothing here estimates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct MemoryTraffic {
    counters: Vec<PathBuf>,
}

impl MemoryTraffic {
    /// Finds the counters below where resctrl is mounted.
    ///
    /// # Errors
    /// A sentence for the user on what is missing, resctrl or its counters, and what would mend it.
    pub fn find(resctrl: &Path) -> Result<Self, String> {
        let monitors = resctrl.join("mon_data");
        let entries = fs::read_dir(&monitors).map_err(|error| missing(resctrl, &error))?;
        let counter = |entry: fs::DirEntry| entry.path().join("mbm_total_bytes");
        let counters: Vec<_> =
            entries.filter_map(Result::ok).map(counter).filter(|path| path.exists()).collect();
        if counters.is_empty() {
            return Err(
                "this processor does not count memory traffic (no mbm_total_bytes)".to_owned()
            );
        }
        let traffic = Self { counters };
        traffic.bytes()?;
        Ok(traffic)
    }

    /// Bytes moved since the machine started, by everyone on it; only differences mean something.
    ///
    /// # Errors
    /// A sentence that names the counter which cannot be read.
    pub fn bytes(&self) -> Result<u64, String> {
        let read = |path: &PathBuf| {
            let text =
                fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            // The kernel writes `Unavailable` or `Error` here when the hardware has nothing to say.
            text.trim().parse::<u64>().map_err(|_| format!("{}: {}", path.display(), text.trim()))
        };
        self.counters.iter().map(read).sum()
    }
}

fn missing(resctrl: &Path, error: &io::Error) -> String {
    format!(
        "n/a: {} has no counters ({error}); a processor with memory bandwidth monitoring shows them after \
         `mount -t resctrl resctrl {}`",
        resctrl.display(),
        resctrl.display()
    )
}

/// The folder where resctrl is mounted, by convention.
pub const RESCTRL: &str = "/sys/fs/resctrl";

#[cfg(test)]
mod tests;
