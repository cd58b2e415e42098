//! The kernel's clocks.
//!
//! Read through libc: rustix looks for `getcpu` in the vDSO when it first reads a clock, and panics where there is none, as in
//! User Mode Linux 7.2 and some sandboxes.

use std::io;
use std::time::Duration;

/// Processor time the calling thread has used.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    read_known(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time all threads of this process have used.
#[must_use]
pub fn process_cpu_time() -> Duration {
    read_known(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Time since this machine started, the time it was suspended included. Never goes back.
#[must_use]
pub fn time_since_boot() -> Duration {
    read_known(libc::CLOCK_BOOTTIME)
}

/// Time since 1970 as of the last tick, 1 to 10 ms ago: no hardware counter is read. A clock set before 1970 reads as 1970.
#[must_use]
pub fn wall_time_coarse() -> Duration {
    read_known(libc::CLOCK_REALTIME_COARSE)
}

/// Time since some fixed moment as of the last tick, 1 to 10 ms ago. Never goes back.
#[must_use]
pub fn monotonic_time_coarse() -> Duration {
    read_known(libc::CLOCK_MONOTONIC_COARSE)
}

/// Processor time all threads of a process have used, those that ended included. Any process may be asked about; a thread
/// that runs right now is behind by what it used since the last tick.
///
/// # Errors
/// `ESRCH` if there is no such process; `InvalidInput` if the number can be none's.
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
    read(clock)
}

/// Every Linux kettle runs on has these clocks, so reading one cannot fail.
fn read_known(clock: libc::clockid_t) -> Duration {
    read(clock).unwrap_or_default()
}

fn read(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec` of ours, which the call fills.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
}
