//! The number of workers there are, how much memory they keep and how many connections they accept,
//! where the operator leaves that to kettle: as the processors, the control groups and the limit of
//! open files of this process allow.

use std::collections::HashSet;

use kettle_config::Config;
use kettle_kernel::cgroup::Limits;
use kettle_kernel::process;
use kettle_runtime::disk::UNWRITTEN_BYTES_MAX;
use kettle_runtime::encoder::{ENCODER_BYTES_MAX, EncoderPermits};

/// The resources that this process may use, as they were when the server started.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    processors: usize,
    limits: Limits,
    descriptors: Option<u64>,
}

impl Resources {
    /// Those of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self {
            processors: process::cpus_allowed().len(),
            limits: Limits::of_this_process(),
            descriptors: process::open_files_limit().current,
        }
    }

    /// Fills in what the configuration leaves open. Memory and descriptors are shared by the workers that run, where there are any:
    /// another number of them takes effect at the next start.
    pub fn fill_in(&self, config: &mut Config, workers_running: Option<usize>) {
        let share_bytes = self.limits.memory_bytes.map(|bytes| bytes / MEMORY_SHARE);
        let workers = *config.server.workers.get_or_insert_with(|| {
            let fitting = share_bytes.map_or(u64::MAX, |bytes| bytes / WORKER_BYTES_MIN);
            let processors = self.processors_granted();
            processors.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
        });
        let workers = workers_running.unwrap_or(workers).max(1);
        if let Some(share_bytes) = share_bytes {
            let share_bytes = usize::try_from(share_bytes).unwrap_or(usize::MAX);
            let encoders_bytes = self.encoders() * ENCODER_BYTES_MAX;
            share_memory(config, share_bytes.saturating_sub(encoders_bytes) / workers);
        }
        if let Some(descriptors) = self.descriptors {
            let taken = DESCRIPTORS_KEPT
                + workers * (WORKER_DESCRIPTORS + config.listeners.len())
                + config.backends.len()
                + if config.stores_bodies() { self.spooled_files() } else { 0 }
                + kept_open(config);
            let left = usize::try_from(descriptors).unwrap_or(usize::MAX).saturating_sub(taken);
            share_descriptors(config, left / workers);
        }
    }

    /// The permits of all workers' encoders.
    #[must_use]
    pub fn encoder_permits(&self) -> EncoderPermits {
        let stream_bytes =
            self.memory_share(STREAM_ENCODERS_SHARE).unwrap_or(STREAM_ENCODERS_BYTES);
        EncoderPermits::new(self.encoders(), stream_bytes.min(STREAM_ENCODERS_BYTES))
    }

    /// The number of encoders that may be at work at once: one for each processor, as far as their
    /// memory is but a part of the share.
    fn encoders(&self) -> usize {
        let share_bytes = self.limits.memory_bytes.map(|bytes| bytes / MEMORY_SHARE);
        let fitting =
            share_bytes.map_or(u64::MAX, |it| it / ENCODERS_SHARE / ENCODER_BYTES_MAX as u64);
        self.processors_granted().min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
    }

    /// The number of processors that are worth a worker.
    fn processors_granted(&self) -> usize {
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a quota is above zero, and larger ones than fit are no limit"
        )]
        let granted = self.limits.processors.map_or(usize::MAX, |quota| quota.ceil() as usize);
        self.processors.min(granted).max(1)
    }

    /// Returns the bytes by which windows of HTTP/2 may grow, all together.
    #[must_use]
    pub fn window_bytes(&self) -> usize {
        self.memory_share(WINDOW_SHARE).unwrap_or(WINDOW_BYTES)
    }

    /// Returns the memory of stored bodies of requests, all together.
    #[must_use]
    pub fn spooled_memory_bytes(&self) -> usize {
        self.memory_share(SPOOL_MEMORY_SHARE).unwrap_or(usize::MAX).min(SPOOLED_MEMORY_BYTES_MAX)
    }

    /// Returns the bytes that may wait to be written to a disk that is behind, of each worker.
    #[must_use]
    pub fn unwritten_bytes(&self, workers: usize) -> usize {
        let share_bytes = self.memory_share(UNWRITTEN_SHARE);
        let worker_bytes = share_bytes.map_or(usize::MAX, |bytes| bytes / workers.max(1));
        worker_bytes.clamp(UNWRITTEN_BYTES_MIN, UNWRITTEN_BYTES_MAX)
    }

    /// One of so many parts of the memory that the control group allows, if it says how much.
    fn memory_share(&self, parts: u64) -> Option<usize> {
        let bytes = self.limits.memory_bytes? / parts;
        Some(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// The number of bodies of requests that may be in files, all together.
    #[must_use]
    pub fn spooled_files(&self) -> usize {
        let descriptors =
            self.descriptors.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
        (descriptors / SPOOL_SHARE).clamp(SPOOLED_FILES_MIN, SPOOLED_FILES_MAX)
    }

    /// Says in one line what came of it, where something limits this process.
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
        let most = Config::default().limits.connections_per_worker;
        if let Some(descriptors) = self.descriptors
            && (!is_open(config, FILES)
                || is_open(config, CONNECTIONS) && config.limits.connections_per_worker < most)
        {
            limits.push(format!("{descriptors} descriptors (ulimit -n)"));
        }
        if limits.is_empty() {
            return None;
        }
        let workers = config.server.workers.unwrap_or(1);
        let limits = limits.join(" and ");
        let files = config.limits.open_files;
        let memory = config.limits.hot_memory_bytes as u64;
        let connections = config.limits.connections_per_worker;
        Some(format!(
            "this process may use {limits}: {workers} worker{}, each with up to {connections} connections, {files} open \
             files and {} MiB of files in memory; {} compressed at a time",
            if workers == 1 { "" } else { "s" },
            memory / MIB,
            match self.encoders() {
                1 => "1 file is".to_owned(),
                encoders => format!("{encoders} files are"),
            },
        ))
    }
}

fn share_memory(config: &mut Config, worker_bytes: usize) {
    if is_open(config, FILES) {
        let most = worker_bytes / 4 / OPEN_FILE_BYTES;
        config.limits.open_files = config.limits.open_files.min(most);
    }
    if is_open(config, "limits.hot_memory") {
        let others_bytes = BUFFER_BYTES + config.limits.open_files * OPEN_FILE_BYTES;
        let left_bytes = worker_bytes.saturating_sub(others_bytes);
        config.limits.hot_memory_bytes = config.limits.hot_memory_bytes.min(left_bytes);
    }
}

/// Returns the descriptors that the configuration itself keeps open: a descriptor for each folder that is a root, logs and
/// caches. In large steps, because a reload that changes a limit ends connections, and one more site should not; what a step
/// leaves is for the folders of a configuration that takes the place of another.
fn kept_open(config: &Config) -> usize {
    let of_conditions = config.sites.iter().flat_map(kettle_config::Site::roots_of_conditions);
    let routes = config.sites.iter().flat_map(|site| &site.routes);
    let roots = routes.filter_map(|route| route.root.as_ref()).chain(of_conditions);
    let roots: HashSet<_> = roots.map(|it| &it.value).collect();
    let open = roots.len() + config.own_access_logs().len() + config.caches.len();
    if open <= DESCRIPTORS_KEPT / 2 {
        return 0;
    }
    let step = open.next_power_of_two() / 4;
    (open + step / 2).next_multiple_of(step)
}

/// A connection needs a second descriptor where it may get a server, and four of them one for a file (`Limits::files_in_use`).
fn share_descriptors(config: &mut Config, worker_descriptors: usize) {
    // A descriptor that is kept open goes for nobody: more of it than there are descriptors would leave none to any request.
    let share = if is_open(config, FILES) { 4 } else { 2 };
    config.limits.open_files = config.limits.open_files.min(worker_descriptors / share);
    if is_open(config, CONNECTIONS) {
        let left = worker_descriptors.saturating_sub(config.limits.open_files);
        let most = left * 4 / if config.backends.is_empty() { 5 } else { 9 };
        let connections = &mut config.limits.connections_per_worker;
        *connections = (*connections).min(most).max(1);
    }
}

fn is_open(config: &Config, setting: &str) -> bool {
    !config.position_of(setting).is_written()
}

const FILES: &str = "limits.open_files";
const CONNECTIONS: &str = "limits.connections_per_worker";

/// Descriptors that are kept from connections: for what every process has, for `kettle ctl` and scrapes, for what a reload reads
/// and the roots of a few routes,
const DESCRIPTORS_KEPT: usize = 64;

/// and for a worker, beside its listening sockets: its runtime, and pipes for splicing.
const WORKER_DESCRIPTORS: usize = 8;

/// By default, all that workers keep takes at most the memory the control group allows divided by this: the rest
/// is for connections, and for the page cache, which counts as well.
const MEMORY_SHARE: u64 = 2;

/// Of that, all encoders together take at most this part.
const ENCODERS_SHARE: u64 = 8;
/// Encoders of bodies on their way take at most the memory the control group allows divided by this, and no more than so much.
const STREAM_ENCODERS_SHARE: u64 = 16;
const STREAM_ENCODERS_BYTES: usize = 64 << 20;
/// Windows of HTTP/2 grow by at most the memory the control group allows divided by this; by so much where it says nothing.
const WINDOW_SHARE: u64 = 16;
const WINDOW_BYTES: usize = 64 << 20;

/// Bodies in memory take at most the memory the control group allows divided by this, and no more than so much.
const SPOOL_MEMORY_SHARE: u64 = 16;
const SPOOLED_MEMORY_BYTES_MAX: usize = 16 << 20;

/// The divisor: what waits to be written to one disk takes at most the memory the control group allows divided by this; a
/// worker has room for a few of the largest in any case.
const UNWRITTEN_SHARE: u64 = 16;
const UNWRITTEN_BYTES_MIN: usize = 512 << 10;

/// Bodies in files take at most the descriptors divided by this.
const SPOOL_SHARE: usize = 16;
const SPOOLED_FILES_MIN: usize = 16;
const SPOOLED_FILES_MAX: usize = 4_096;

/// A worker's idle buffers, when it has as many as it keeps (`kettle_tls::buffers`).
const BUFFER_BYTES: usize = 6 << 20;

/// The bytes that an open file takes in this process and in the kernel, about.
const OPEN_FILE_BYTES: usize = 4 << 10;

/// Less is not worth a worker.
const WORKER_BYTES_MIN: u64 = 16 << 20;

const MIB: u64 = 1 << 20;

#[cfg(test)]
mod tests;
