//! The warden: a process without threads that is never confined. It forks a second process again whenever that has ended, and
//! ends with the server.
//!
//! It reads nothing and writes one message, at each end of the other process. What that one is to do is the caller's.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, setsid, waitpid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

use crate::process::{self, Fork};
use crate::sandbox::{Confined, Files, SandboxError, confine_calls, confine_files};

/// How the second process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is to begin again at once.
    Again,
    /// It is to begin again, once it has not done so for a minute.
    Broken,
}

/// Which of the second processes it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The one of the start.
    First,
    /// One that takes the place of another.
    Later,
}

/// How a warden is called and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The name of the warden's thread.
    pub warden: &'static CStr,
    /// That of the second process's.
    pub ward: &'static CStr,
    /// What the server gets when the second process has ended.
    pub farewell: &'static [u8],
}

/// Forks a warden, and has it fork the process that does `work`, over and over: what one of them changes in its memory the next one does not know. Both are connected with this process by the socket
/// that is given back. In the warden itself this never returns.
///
/// # Errors
/// If this process has more than one thread, or the kernel refuses.
pub fn start(names: Names, work: impl Fn(OwnedFd, Turn) -> Ending) -> io::Result<OwnedFd> {
    process::forget_children()?;
    let (ours, its) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match process::fork()? {
        Fork::Parent { .. } => {
            IS_THERE.store(true, Ordering::Relaxed);
            Ok(ours)
        }
        Fork::Child => {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if settle(its.as_fd(), names).is_ok() {
                    watch_over(&its, names, work);
                }
            }));
            process::exit_at_once(0)
        }
    }
}

/// True if this process has started one.
#[must_use]
pub fn is_there() -> bool {
    IS_THERE.load(Ordering::Relaxed)
}

/// Lets go of the server's descriptors and of its terminal.
fn settle(its: BorrowedFd<'_>, names: Names) -> io::Result<()> {
    process::block_signals()?;
    process::keep_only(its)?;
    process::await_children()?;
    rustix::thread::set_name(names.warden)?;
    // Where it is the first of a session already, it has no terminal either.
    let _ = setsid();
    Ok(())
}

fn watch_over(its: &OwnedFd, names: Names, work: impl Fn(OwnedFd, Turn) -> Ending) {
    let mut turn = Turn::First;
    loop {
        let begun = Instant::now();
        let ending = match process::fork() {
            Ok(Fork::Child) => {
                let done = catch_unwind(AssertUnwindSafe(|| {
                    let _ = rustix::thread::set_name(names.ward);
                    its.try_clone().map_or(Ending::Broken, |its| work(its, turn))
                }));
                process::exit_at_once(match done {
                    Ok(Ending::Again) => AGAIN,
                    Ok(Ending::Broken) | Err(_) => 1,
                })
            }
            Ok(Fork::Parent { child }) => match await_end(its.as_fd(), child) {
                Some(ending) => ending,
                None => return,
            },
            Err(_) => Ending::Broken,
        };
        turn = Turn::Later;
        let _ = send(its, names.farewell, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        let pause = match ending {
            Ending::Again => AGAIN_PAUSE,
            Ending::Broken => BROKEN_PAUSE.saturating_sub(begun.elapsed()),
        };
        if has_gone(its.as_fd(), pause) {
            return;
        }
    }
}

/// Waits for the end of the second process; none if the server has gone, and the second process with it.
fn await_end(its: BorrowedFd<'_>, child: Pid) -> Option<Ending> {
    let watched = pidfd_open(child, PidfdFlags::empty()).ok();
    if let Some(watched) = &watched {
        let none = PollFlags::empty();
        let mut polled = [PollFd::new(watched, PollFlags::IN), PollFd::from_borrowed_fd(its, none)];
        let _ = retry_on_intr(|| poll(&mut polled, None));
        let [child_polled, server_polled] = &polled;
        if child_polled.revents().is_empty() && !server_polled.revents().is_empty() {
            // It sees that, too, and may be at a disk that hangs.
            let mut polled = [PollFd::new(watched, PollFlags::IN)];
            let _ = retry_on_intr(|| poll(&mut polled, Some(&LEAVE_TIME_MAX)));
            let _ = kill_process(child, Signal::KILL);
            let _ = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
            return None;
        }
    }
    let ended = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty())).ok()?;
    let status = ended.and_then(|(_, status)| status.exit_status());
    Some(if status == Some(AGAIN) { Ending::Again } else { Ending::Broken })
}

/// True if the server goes within this time.
fn has_gone(its: BorrowedFd<'_>, pause: Duration) -> bool {
    let deadline = Instant::now() + pause;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(left) = Timespec::try_from(left) else { return true };
        let mut polled = [PollFd::from_borrowed_fd(its, PollFlags::empty())];
        match poll(&mut polled, Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => return false,
            // Nothing but the end comes unasked.
            Ok(_) | Err(_) => return true,
        }
    }
}

/// Gives up, in the second process, all that it is never to do again: it keeps no capability, its memory is not shown, and with
/// `files` it opens nothing else and makes the system calls of its list alone.
///
/// # Errors
/// If the kernel refuses. That it knows nothing of a sandbox is no error.
pub fn confine(files: Option<&Files>) -> io::Result<()> {
    set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    process::set_dumpable(false)?;
    let Some(files) = files else { return Ok(()) };
    for done in [confine_files(files), confine_calls(Confined::Issuer, false)] {
        match done {
            // The server says of itself what this kernel cannot do.
            Ok(()) | Err(SandboxError::NotHere(_)) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(())
}

static IS_THERE: AtomicBool = AtomicBool::new(false);

/// The exit status of one that is to begin again.
const AGAIN: i32 = 3;

/// A server that asks for that in a loop keeps no processor busy.
const AGAIN_PAUSE: Duration = Duration::from_millis(100);

/// What ends as soon as it begins is begun once in this time.
const BROKEN_PAUSE: Duration = Duration::from_mins(1);

const LEAVE_TIME_MAX: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
