//! The warden: a process without threads that is never confined. It forks a second process again whenever that has ended, runs
//! programs for it, and ends with the server.
//!
//! The work of the second process, and the programs it may ask for, is the caller's to say.

mod programs;
#[cfg(test)]
mod tests;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open,
    set_parent_process_death_signal, setsid, waitid, waitpid,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

use crate::process::{self, Fork};
use crate::sandbox::{Confined, Files, SandboxError, confine_calls, confine_files};
use programs::Programs;
pub use programs::{Program, ProgramEnd, read_answer};

/// The end of the second process.
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

/// The names under which a warden is called, and its messages.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The name of the warden's thread.
    pub warden: &'static CStr,
    /// That of the second process's.
    pub ward: &'static CStr,
    /// The bytes sent to the server when the second process has ended.
    pub farewell: &'static [u8],
}

/// The work of the second process.
pub trait Ward {
    /// The orders that the warden reads before it forks the second process.
    type Orders;

    /// Reads what both are to do; none where that is what the last reading gave. Whatever else it leaves takes memory for as long as
    /// the server runs, and is to be dropped.
    fn read(&mut self, turn: Turn) -> Option<Self::Orders>;

    /// Is the second process. The first socket leads to the server; at the second one it may ask for programs.
    fn work(&self, orders: &mut Self::Orders, server: OwnedFd, programs: OwnedFd) -> Ending;

    /// The program that is asked for, in words that anybody may have chosen.
    ///
    /// # Errors
    /// Why there is none.
    fn program(&self, orders: &Self::Orders, asked: &[u8]) -> Result<Program, String>;
}

/// Forks a warden, and has it fork the process that does the work, over and over: what one of them changes in its memory the next one
/// does not know. Both are connected with this process by the socket that is given back. In the warden itself this never returns.
///
/// # Errors
/// If this process has more than one thread, or the kernel refuses.
pub fn start(names: Names, mut ward: impl Ward) -> io::Result<OwnedFd> {
    process::forget_children()?;
    let (ours, its) = pair()?;
    match process::fork()? {
        Fork::Parent { .. } => {
            IS_THERE.store(true, Ordering::Relaxed);
            Ok(ours)
        }
        Fork::Child => {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if settle(its.as_fd(), names).is_ok() {
                    watch_over(&its, names, &mut ward);
                }
            }));
            process::exit_at_once(0)
        }
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// True if this process has started one.
#[must_use]
pub fn is_there() -> bool {
    IS_THERE.load(Ordering::Relaxed)
}

/// Lets go of the server's descriptors and of its terminal.
fn settle(its: BorrowedFd<'_>, names: Names) -> io::Result<()> {
    process::block_signals()?;
    process::keep_only(&[its])?;
    process::await_children()?;
    rustix::thread::set_name(names.warden)?;
    // Where it is the first of a session already, it has no terminal either.
    let _ = setsid();
    Ok(())
}

fn watch_over<W: Ward>(its: &OwnedFd, names: Names, ward: &mut W) {
    let mut watch = Watch { its, programs: Programs::default() };
    let mut turn = Turn::First;
    let mut orders = None;
    loop {
        let begun = Instant::now();
        // Orders that cannot be read are no reason to end.
        let read = catch_unwind(AssertUnwindSafe(|| ward.read(turn)));
        orders = read.ok().flatten().or(orders);
        process::release_free_memory();
        let ended = match &mut orders {
            Some(orders) => watch.one(names, ward, orders),
            None => Some(Ending::Broken),
        };
        let Some(ending) = ended else { break };
        turn = Turn::Later;
        let _ = send(its, names.farewell, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        let pause = match ending {
            Ending::Again => AGAIN_PAUSE,
            Ending::Broken => BROKEN_PAUSE.saturating_sub(begun.elapsed()),
        };
        let mut nobody = None;
        if !watch.wait(None, &mut nobody, Some(Instant::now() + pause), |_| Err(String::new())) {
            break;
        }
    }
    watch.programs.end();
}

/// The events for which the warden waits.
struct Watch<'w> {
    its: &'w OwnedFd,
    programs: Programs,
}

/// The second process.
struct Child {
    process: Pid,
    /// Readable when it has ended, where the kernel has such descriptors.
    ended: Option<OwnedFd>,
}

impl Watch<'_> {
    /// Forks the second process and waits for its end; none if the server has gone, and the second process with it.
    fn one<W: Ward>(&mut self, names: Names, ward: &W, orders: &mut W::Orders) -> Option<Ending> {
        let Ok((asked, asks)) = pair() else { return Some(Ending::Broken) };
        let process = match process::fork() {
            Ok(Fork::Child) => {
                let done = catch_unwind(AssertUnwindSafe(|| {
                    // Programs that still run are none of its business.
                    process::keep_only(&[self.its.as_fd(), asks.as_fd()])?;
                    let _ = rustix::thread::set_name(names.ward);
                    Ok::<_, io::Error>(ward.work(orders, self.its.try_clone()?, asks))
                }));
                process::exit_at_once(match done {
                    Ok(Ok(Ending::Again)) => AGAIN,
                    Ok(Ok(Ending::Broken) | Err(_)) | Err(_) => 1,
                })
            }
            Ok(Fork::Parent { child }) => child,
            Err(_) => return Some(Ending::Broken),
        };
        drop(asks);
        let child = Child { process, ended: pidfd_open(process, PidfdFlags::empty()).ok() };
        let mut asked = Some(Rc::new(asked));
        let find = |asked: &[u8]| ward.program(orders, asked);
        if !self.wait(Some(&child), &mut asked, None, find) {
            self.programs.end();
            child.leave();
            return None;
        }
        let ended = retry_on_intr(|| waitpid(Some(process), WaitOptions::empty())).ok()?;
        // The last request, as records to be taken away.
        if let Some(asked) = &asked {
            self.programs.take(asked, find);
        }
        let status = ended.and_then(|(_, status)| status.exit_status());
        Some(if status == Some(AGAIN) { Ending::Again } else { Ending::Broken })
    }

    /// Runs programs until the second process has ended, or this moment; false if the server has gone.
    fn wait(
        &mut self,
        child: Option<&Child>,
        asked: &mut Option<Rc<OwnedFd>>,
        until: Option<Instant>,
        find: impl Fn(&[u8]) -> Result<Program, String>,
    ) -> bool {
        loop {
            self.programs.look();
            if child.is_some_and(Child::has_ended) || until.is_some_and(|it| it <= Instant::now()) {
                return true;
            }
            // Nothing but the end comes from there.
            let mut polled = vec![PollFd::new(self.its, PollFlags::empty())];
            let questions = asked.as_ref().map(|asked| PollFd::new(&**asked, PollFlags::IN));
            let has_questions = questions.is_some();
            polled.extend(questions);
            let ended = child.and_then(|child| child.ended.as_ref());
            polled.extend(ended.map(|ended| PollFd::new(ended, PollFlags::IN)));
            polled.extend(self.programs.polled());
            let looked =
                child.filter(|it| it.ended.is_none()).map(|_| Instant::now() + LOOK_PERIOD);
            let until = [until, looked, self.programs.until()].into_iter().flatten().min();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let _ = retry_on_intr(|| poll(&mut polled, left.as_ref()));
            let mut events = polled.iter().map(|it| !it.revents().is_empty());
            let has_gone = events.next() == Some(true);
            let is_asked = has_questions && events.next() == Some(true);
            drop(polled);
            // A second process that has ended first is told apart, since it sees the server's end, too.
            if has_gone && !child.is_some_and(Child::has_ended) {
                return false;
            }
            if is_asked
                && let Some(socket) = asked
                && !self.programs.take(socket, &find)
            {
                *asked = None;
            }
        }
    }
}

impl Child {
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.process), options), Ok(None))
    }

    /// Waits until it has seen that the server has gone, but not for ever: it may be at a disk that hangs.
    fn leave(&self) {
        if let Some(ended) = &self.ended {
            let mut polled = [PollFd::new(ended, PollFlags::IN)];
            let _ = retry_on_intr(|| poll(&mut polled, Some(&LEAVE_TIME_MAX)));
        }
        let _ = kill_process(self.process, Signal::KILL);
        let _ = retry_on_intr(|| waitpid(Some(self.process), WaitOptions::empty()));
    }
}

/// Gives up, in the second process, all that it is never to do again: it keeps no capability, its memory is not shown, and with
/// `files` it opens nothing else and makes the system calls of its list alone.
///
/// # Errors
/// If the kernel refuses. That it knows nothing of a sandbox is no error.
pub fn confine(files: Option<&Files>) -> io::Result<()> {
    set_no_new_privs(true)?;
    // Without its warden it could run no program and would not be begun again: its end is what the server sees. Only who becomes another
    // user later would lose this (PR_SET_PDEATHSIG(2const)).
    set_parent_process_death_signal(Some(Signal::KILL))?;
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

/// The time within which a process that ends as soon as it begins is begun once.
const BROKEN_PAUSE: Duration = Duration::from_mins(1);

/// The period of looking where nothing tells that the second process has ended.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

const LEAVE_TIME_MAX: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
