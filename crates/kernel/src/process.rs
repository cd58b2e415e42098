//! This process and its threads: signals, clocks, processors, limits and the user it runs as.

mod clocks;
mod fork;
mod privileges;
#[cfg(test)]
pub(crate) mod tests;

pub use clocks::{
    cpu_time_of, monotonic_time_coarse, process_cpu_time, thread_cpu_time, time_since_boot,
    wall_time_coarse,
};
pub(crate) use fork::{
    Fork, await_children, exit_at_once, forget_children, forget_signals, fork, keep_only,
};
pub use privileges::{Account, PrivilegeError, group_id, group_name, user_id};

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Blocks every signal in the calling thread and the threads it starts. Workers need it: before Linux 6.1.187 and
/// 6.12.105 a signal that interrupted a kernel TLS send aborted the connection.
///
/// # Errors
/// The error of pthread_sigmask(3): with these arguments none.
pub fn block_signals() -> io::Result<()> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to a `sigset_t` of ours, which the call fills.
    let status = unsafe { libc::sigfillset(signals.as_mut_ptr()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was filled above.
    change_mask(libc::SIG_BLOCK, &unsafe { signals.assume_init() })
}

/// Lets the signals that tell a server to do something wait until it serves, in the calling thread and those it starts: SIGHUP,
/// SIGUSR1 and SIGUSR2, which end a process that does not catch them.
///
/// # Errors
/// As [`block_signals`].
pub fn hold_commands() -> io::Result<()> {
    change_mask(libc::SIG_BLOCK, &commands()?)
}

/// Lets them come, and those that waited. They are caught by then.
///
/// # Errors
/// As [`block_signals`].
pub fn release_commands() -> io::Result<()> {
    change_mask(libc::SIG_UNBLOCK, &commands()?)
}

fn commands() -> io::Result<libc::sigset_t> {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to a `sigset_t` of ours, which the call fills.
    let mut status = unsafe { libc::sigemptyset(signals.as_mut_ptr()) };
    for signal in [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: the pointer is to a `sigset_t` of ours, which was filled above.
        status |= unsafe { libc::sigaddset(signals.as_mut_ptr(), signal) };
    }
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was filled above.
    Ok(unsafe { signals.assume_init() })
}

fn change_mask(how: libc::c_int, signals: &libc::sigset_t) -> io::Result<()> {
    let old = std::ptr::null_mut();
    // SAFETY: `signals` outlives the call; a null third argument asks for no old mask.
    let error = unsafe { libc::pthread_sigmask(how, signals, old) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Lets writes beyond the limit of file sizes fail with EFBIG: SIGXFSZ, which ends a process that does not expect it, is ignored
/// from now on (setrlimit(2)). Called before there are other threads.
pub fn ignore_file_size_signal() {
    // SAFETY: no handler is installed. It cannot fail for a signal that there is (signal(2)).
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// A name beside a path that nobody guesses and no other process takes, not even one of the same number in another container.
#[must_use]
pub fn name_beside(path: &Path) -> PathBuf {
    let random = RandomState::new().hash_one(std::process::id());
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:0DIGITS_BESIDE$x}", random >> (64 - 4 * DIGITS_BESIDE)));
    name.into()
}

/// By how much it is longer.
pub const BYTES_BESIDE: usize = 1 + DIGITS_BESIDE;
const DIGITS_BESIDE: usize = 6;

/// True if SIGHUP is ignored, as `nohup` leaves it to what it starts.
#[must_use]
pub fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores_hangup(&status)
}

fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    ignored.is_some_and(|signals| signals & (1 << (libc::SIGHUP - 1)) != 0)
}

/// Keeps the calling thread on one processor.
///
/// # Errors
/// As [`keep_to_cpus`].
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    keep_to_cpus(&[cpu])
}

/// Keeps the calling thread on these processors, and what it starts from now on.
///
/// # Errors
/// The error of sched_setaffinity(2); `InvalidInput` if none of them is there or allowed.
pub fn keep_to_cpus(cpus: &[usize]) -> io::Result<()> {
    Ok(sched_setaffinity(None, &cpu_set(cpus)?)?)
}

/// Keeps a thread of whatever process on these processors.
///
/// # Errors
/// As [`keep_to_cpus`]; `ESRCH` if there is no such thread.
pub fn keep_thread_to_cpus(thread: u32, cpus: &[usize]) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let thread = thread.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(sched_setaffinity(Some(thread), &cpu_set(cpus)?)?)
}

/// Allows or forbids core dumps of this process, and the reading of its memory by others than root.
/// The flag of a process that becomes another user is set anew by the kernel.
///
/// # Errors
/// The error of prctl(2): with these arguments none.
pub fn set_dumpable(is_dumpable: bool) -> io::Result<()> {
    let behavior =
        if is_dumpable { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    Ok(set_dumpable_behavior(behavior)?)
}

/// Returns the number of times the calling thread has given up its processor to wait for something,
/// such as a disk. Losing it to others does not count (getrusage(2), `ru_nvcsw`).
#[must_use]
pub fn voluntary_context_switches() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to an `rusage` of ours, which the call fills.
    let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    debug_assert_eq!(status, 0, "Linux counts for each thread since 2.6.26");
    // SAFETY: all zeroes is a valid value of this structure of integers, which is what it holds if the call failed.
    let usage = unsafe { usage.assume_init() };
    u64::try_from(usage.ru_nvcsw).unwrap_or(0)
}

/// Bounds the heaps that the C library makes for threads, however many threads there are; without a bound there may be eight for
/// each processor. Called before there are other threads. Memory for threads beyond their number comes from another's heap.
pub fn limit_heaps(heaps: usize) {
    let heaps = libc::c_int::try_from(heaps).unwrap_or(libc::c_int::MAX).max(1);
    // SAFETY: the call takes no pointer, and this parameter any number above zero (mallopt(3)).
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, heaps) };
    // Others have one heap.
    #[cfg(not(target_env = "gnu"))]
    let _ = heaps;
}

/// The memory that the C library has for this process, in all its heaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapUse {
    /// In use.
    pub used_bytes: u64,
    /// Of it and of what is free, how much takes memory of the machine; with the rest of the process that is its own alone.
    pub resident_bytes: u64,
}

/// Returns the memory in use, and how much this process takes for it; `None` where the C library does not say. Takes time for each
/// free piece, during which other threads may have to wait for an allocation.
#[must_use]
pub fn heap_use() -> Option<HeapUse> {
    #[cfg(target_env = "gnu")]
    {
        let text = std::fs::read_to_string("/proc/self/status").ok()?;
        let own = text.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let own_kibibytes: u64 = own.trim().strip_suffix(" kB")?.parse().ok()?;
        // SAFETY: the call takes no pointer, and glibc locks each heap while it looks at it.
        let heaps = unsafe { libc::mallinfo2() };
        let used_bytes = (heaps.uordblks + heaps.hblkhd) as u64;
        Some(HeapUse { used_bytes, resident_bytes: own_kibibytes * 1_024 })
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Gives freed memory back to the system, as far as the C library can: glibc keeps all that lies below the last piece in use.
/// Takes about 0.4 ms for each MiB given back, during which other threads may have to wait for an allocation.
pub fn release_free_memory() {
    // SAFETY: the call takes no pointer, and glibc locks each arena while it looks at it.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { libc::malloc_trim(0) };
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
///
/// # Errors
/// The error of setrlimit(2): `EPERM` where the limit is above what the system allows any process.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // It is what others are given that this process starts.
        let _ = FILES_AT_START.set(limit.current);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Gives this process the number of files that it was started with, for a program that it becomes: many that use `select` break with more
/// than 1,024, and others close all of them one by one.
///
/// # Errors
/// The error of setrlimit(2).
pub fn restore_open_files_limit() -> io::Result<()> {
    let Some(current) = FILES_AT_START.get() else { return Ok(()) };
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: *current, maximum: limit.maximum })?)
}

/// The number of files this process might open before that was raised.
static FILES_AT_START: OnceLock<Option<u64>> = OnceLock::new();

/// A limit of this process: what holds now, and how far it may be raised. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit now.
    pub current: Option<u64>,
    /// The limit up to which this process may raise it.
    pub maximum: Option<u64>,
}

/// The number of files this process may open.
#[must_use]
pub fn open_files_limit() -> Limit {
    limit(Resource::Nofile)
}

/// The number of bytes of memory this process may lock.
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

/// Tells whether a kernel's command line has it clear pages before use; `None` where the line does
/// not say. The last word wins, and what counts as yes is what `kstrtobool` takes.
#[must_use]
pub fn init_on_alloc(command_line: &str) -> Option<bool> {
    let words = command_line.split_ascii_whitespace();
    let value = words.filter_map(|word| word.strip_prefix("init_on_alloc=")).next_back()?;
    let mut letters = value.chars().map(|letter| letter.to_ascii_lowercase());
    match (letters.next()?, letters.next()) {
        ('1' | 'y' | 't', _) | ('o', Some('n')) => Some(true),
        ('0' | 'n' | 'f', _) | ('o', Some('f')) => Some(false),
        _ => None,
    }
}

/// Tells whether the calling thread is all there is of this process.
///
/// # Errors
/// If /proc cannot be read.
pub fn has_one_thread() -> io::Result<bool> {
    Ok(std::fs::read_dir("/proc/self/task")?.count() == 1)
}

/// True if this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn limit(resource: Resource) -> Limit {
    let Rlimit { current, maximum } = getrlimit(resource);
    Limit { current, maximum }
}
