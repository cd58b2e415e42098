//! The signals that the server answers.

use std::io;
use std::os::fd::BorrowedFd;

use kettle_kernel::process::{is_hangup_ignored, release_commands};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals the server answers. Workers block them all.
pub(super) struct Signals {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
    hangup: Signal,
    user_defined1: Signal,
    user_defined2: Signal,
    terminal: Option<BorrowedFd<'static>>,
}

/// The event for which a signal asks.
pub(super) enum Event {
    Stop,
    /// Ctrl-C.
    Interrupt,
    Reload,
    ReopenLog,
    /// A new program, as nginx has it.
    Upgrade,
}

impl Signals {
    /// Begins to wait for them, those included that were [held](kettle_kernel::process::hold_commands) during the start.
    /// `terminal` is the one in front of which the server was started.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub(super) fn catch(terminal: Option<BorrowedFd<'static>>) -> io::Result<Self> {
        let signals = Self {
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            user_defined1: signal(SignalKind::user_defined1())?,
            user_defined2: signal(SignalKind::user_defined2())?,
            terminal,
        };
        release_commands()?;
        Ok(signals)
    }

    /// The next that comes.
    pub(super) async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.terminate.recv() => Event::Stop,
            // As nginx has it.
            _ = self.quit.recv() => Event::Stop,
            _ = self.interrupt.recv() => Event::Interrupt,
            _ = self.hangup.recv() => {
                if self.terminal.is_some_and(is_closed) { Event::Stop } else { Event::Reload }
            }
            _ = self.user_defined1.recv() => Event::ReopenLog,
            _ = self.user_defined2.recv() => Event::Upgrade,
        }
    }
}

/// The terminal in whose foreground this process is. A process sent to the background does not end with it, nor does one told
/// to ignore the hangup. Asked before the sandbox, which refuses the question, and before that signal is caught.
pub(crate) fn terminal_in_front() -> Option<BorrowedFd<'static>> {
    if is_hangup_ignored() {
        return None;
    }
    let is_in_front = |file: &BorrowedFd<'_>| tcgetpgrp(file).is_ok_and(|group| group == getpgrp());
    [stdin(), stdout(), stderr()].into_iter().find(is_in_front)
}

/// Of a terminal that hung up every question fails so (tty_io.c, `hung_up_tty_ioctl`).
fn is_closed(terminal: BorrowedFd<'_>) -> bool {
    tcgetwinsize(terminal).is_err_and(|error| error == Errno::IO)
}
