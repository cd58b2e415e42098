//! How many workers there are and how much memory they keep, where the operator leaves that to kettle: as many and as
//! much as the processors and the control groups of this process allow.

use kettle_config::Config;
use kettle_kernel::cgroup::Limits;
use kettle_kernel::process;

/// What this process may use, as it was when the server started.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    processors: usize,
    limits: Limits,
}

impl Resources {
    /// Those of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self { processors: process::cpus_allowed().len(), limits: Limits::of_this_process() }
    }

    /// Fills in what the configuration leaves open. The memory is shared by the workers that run, where there are any:
    /// another number of them takes effect at the next start.
    pub fn fill_in(&self, config: &mut Config, workers_running: Option<usize>) {
        let is_open = |setting: &str| !config.position_of(setting).is_written();
        let (keeps_files, keeps_memory) =
            (is_open("limits.open_files"), is_open("limits.hot_memory"));
        let share_bytes = self.limits.memory_bytes.map(|bytes| bytes / MEMORY_SHARE);
        let workers = *config.server.workers.get_or_insert_with(|| {
            let fitting = share_bytes.map_or(u64::MAX, |bytes| bytes / WORKER_BYTES_MIN);
            let processors = self.processors_granted();
            processors.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
        });
        let workers = workers_running.unwrap_or(workers);
        let Some(share_bytes) = share_bytes else { return };
        let worker_bytes = usize::try_from(share_bytes).unwrap_or(usize::MAX) / workers.max(1);
        let limits = &mut config.limits;
        if keeps_files {
            limits.open_files = limits.open_files.min(worker_bytes / 4 / OPEN_FILE_BYTES);
        }
        if keeps_memory {
            let others_bytes = BUFFER_BYTES + limits.open_files * OPEN_FILE_BYTES;
            let left_bytes = worker_bytes.saturating_sub(others_bytes);
            limits.hot_memory_bytes = limits.hot_memory_bytes.min(left_bytes);
        }
    }

    /// How many processors are worth a worker.
    fn processors_granted(&self) -> usize {
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a quota is above zero, and larger ones than fit are no limit"
        )]
        let granted = self.limits.processors.map_or(usize::MAX, |quota| quota.ceil() as usize);
        self.processors.min(granted).max(1)
    }

    /// What came of it, in one line, where a control group limits this process.
    #[must_use]
    pub fn line(&self, config: &Config) -> Option<String> {
        let Limits { processors, memory_bytes } = self.limits;
        let mut limits = Vec::new();
        if let Some(quota) = processors {
            limits.push(format!("the time of {quota} of {} processors", self.processors));
        }
        if let Some(bytes) = memory_bytes {
            limits.push(format!("{} MiB of memory", bytes / MIB));
        }
        if limits.is_empty() {
            return None;
        }
        let workers = config.server.workers.unwrap_or(1);
        let limits = limits.join(" and ");
        let (files, memory) = (config.limits.open_files, config.limits.hot_memory_bytes as u64);
        Some(format!(
            "the control group allows {limits}: {workers} worker{}, each with up to {files} open files and {} MiB of files \
             in memory",
            if workers == 1 { "" } else { "s" },
            memory / MIB,
        ))
    }
}

/// By default, all that workers keep takes at most the memory the control group allows divided by this: the rest
/// is for connections, and for the page cache, which counts as well.
const MEMORY_SHARE: u64 = 2;

/// A worker's idle buffers, when it has as many as it keeps (`kettle_tls::buffers`).
const BUFFER_BYTES: usize = 6 << 20;

/// What an open file takes in this process and in the kernel, about.
const OPEN_FILE_BYTES: usize = 4 << 10;

/// Less is not worth a worker.
const WORKER_BYTES_MIN: u64 = 16 << 20;

const MIB: u64 = 1 << 20;

#[cfg(test)]
mod tests;
