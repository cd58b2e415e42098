//! A second process of the same program.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::Pid;

/// Which of the two processes this is.
#[derive(Debug)]
pub(crate) enum Fork {
    /// The one that was there before.
    Parent {
        /// The new one.
        child: Pid,
    },
    /// The new one.
    Child,
}

/// Splits this process in two.
///
/// # Errors
/// If it has more than one thread, whose locks would stay locked for ever in the new process, or the kernel refuses.
pub(crate) fn fork() -> io::Result<Fork> {
    if !super::has_one_thread()? {
        return Err(io::Error::other("this process has other threads already"));
    }
    // SAFETY: takes nothing. The only thread of this process goes on in both, so no lock is held by a thread that is gone.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => match Pid::from_raw(child) {
            Some(child) => Ok(Fork::Parent { child }),
            None => Err(io::ErrorKind::InvalidData.into()),
        },
    }
}

/// Has the kernel put away children of this process as soon as they end; nobody can wait for one then.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn forget_children() -> io::Result<()> {
    // SAFETY: takes plain numbers, and what it sets is no function of ours.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes back [`forget_children`] for a new process.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn await_children() -> io::Result<()> {
    // SAFETY: takes plain numbers, and what it sets is no function of ours.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets go of all that this process has open but one descriptor, whoever it belongs to here; its standard streams lead
/// nowhere from now on. For a new process that only waits for `kept`: nothing that the other one closes stays open in it.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn keep_only(kept: BorrowedFd<'_>) -> io::Result<()> {
    let nowhere = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    // Closed with all others.
    std::mem::forget(nowhere);
    let kept = kept.as_raw_fd().cast_unsigned();
    for (first, last) in [(3, kept.saturating_sub(1)), (kept + 1, u32::MAX)] {
        if first > last {
            continue;
        }
        // SAFETY: takes plain numbers. Whoever owned these descriptors in this process never uses them again: it was
        // just forked, and does nothing but what its caller has it do.
        let status = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Ends this process, and nothing that it shares with the one it was forked from: no buffer is written a second time.
pub(crate) fn exit_at_once(status: i32) -> ! {
    // SAFETY: takes a plain number, and does not return.
    unsafe { libc::_exit(status) }
}
