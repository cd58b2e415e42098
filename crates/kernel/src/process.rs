//! This process and its threads: signals, clocks, processors, limits and the user it runs as.

mod privileges;
#[cfg(test)]
mod tests;

pub use privileges::{PrivilegeError, drop_privileges, find_accounts};

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Blocks every signal in the calling thread and the threads it starts. Workers need it: before Linux 6.1.187 and
/// 6.12.105 a signal that interrupted a kernel TLS send aborted the connection.
pub fn block_signals() -> io::Result<()> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to a `sigset_t` of ours, which the call fills.
    let status = unsafe { libc::sigfillset(signals.as_mut_ptr()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let old = std::ptr::null_mut();
    // SAFETY: `signals` was filled above and outlives the call; a null third argument asks for no old mask.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), old) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Processor time the calling thread has used.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// Processor time all threads of this process have used.
#[must_use]
pub fn process_cpu_time() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

/// Time since this machine started, the time it was suspended included. Never goes back.
#[must_use]
pub fn time_since_boot() -> Duration {
    duration(clock_gettime(ClockId::Boottime))
}

/// Processor time all threads of a process have used, those that ended included. Any process may be asked about; a thread
/// that runs right now is behind by what it used since the last tick.
pub fn cpu_time_of(process: u32) -> io::Result<Duration> {
    // Zero would mean the calling process.
    let process = match libc::pid_t::try_from(process) {
        Ok(process) if process > 0 => process,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a clock id of ours, which the call fills.
    let error = unsafe { libc::clock_getcpuclockid(process, &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec` of ours, which the call fills.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(duration(Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec }))
}

/// Keeps the calling thread on one processor.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    keep_to_cpus(&[cpu])
}

/// Keeps the calling thread on these processors, and what it starts from now on.
pub fn keep_to_cpus(cpus: &[usize]) -> io::Result<()> {
    Ok(sched_setaffinity(None, &cpu_set(cpus)?)?)
}

/// Keeps a thread of whatever process on these processors.
pub fn keep_thread_to_cpus(thread: u32, cpus: &[usize]) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let thread = thread.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(sched_setaffinity(Some(thread), &cpu_set(cpus)?)?)
}

fn cpu_set(cpus: &[usize]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(*cpu);
    }
    Ok(set)
}

/// The processors the calling thread may run on, lowest first; never empty.
#[must_use]
pub fn cpus_allowed() -> Vec<usize> {
    // A machine with more processors than the set holds gets EINVAL; one worker is then better than none.
    let Ok(cpus) = sched_getaffinity(None) else { return vec![0] };
    (0..CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu)).collect()
}

/// Raises the number of files this process may open to the most it is allowed, and returns that number.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// A limit of this process: what holds now, and how far it may be raised. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What holds now.
    pub current: Option<u64>,
    /// How far this process may raise it.
    pub maximum: Option<u64>,
}

/// How many files this process may open.
#[must_use]
pub fn open_files_limit() -> Limit {
    limit(Resource::Nofile)
}

/// How many bytes of memory this process may lock.
#[must_use]
pub fn locked_memory_limit() -> Limit {
    limit(Resource::Memlock)
}

/// The name of this machine.
#[must_use]
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The release of the running kernel, as `uname -r` prints it.
#[must_use]
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn limit(resource: Resource) -> Limit {
    let Rlimit { current, maximum } = getrlimit(resource);
    Limit { current, maximum }
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
