//! A second process of the same program.

use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
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

/// Has signals do to this process what they do to a program that knows of none: none is held back, and those that this one ignores
/// are not ignored any more. For a process that is about to become another program.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn forget_signals() -> io::Result<()> {
    for signal in [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD] {
        // SAFETY: takes plain numbers, and what it sets is no function of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to a `sigset_t` of ours, which the call fills.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: it was filled above; a null third argument asks for no old mask.
    let error =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Lets go of all that this process has open but these descriptors, whoever it belongs to here; its standard streams lead
/// nowhere from now on. For a new process that only knows of `kept`: nothing that the other one closes stays open in it.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn keep_only(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let nowhere = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nowhere)?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    // Closed with all others.
    std::mem::forget(nowhere);
    let mut kept: Vec<u32> = kept.iter().map(|kept| kept.as_raw_fd().cast_unsigned()).collect();
    kept.sort_unstable();
    let mut first = 3;
    for next in kept.into_iter().chain([u32::MAX]) {
        let last = if next == u32::MAX { next } else { next.saturating_sub(1) };
        if first <= last {
            // SAFETY: takes plain numbers. The owner of these descriptors in this process never uses them again: it was
            // just forked, and does nothing but what its caller has it do.
            let status = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            if status != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        first = next.saturating_add(1);
    }
    Ok(())
}

/// Ends this process, and nothing that it shares with the one it was forked from: no buffer is written a second time.
pub(crate) fn exit_at_once(status: i32) -> ! {
    // SAFETY: takes a plain number, and does not return.
    unsafe { libc::_exit(status) }
}
