//! The signals that the server answers.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals the server answers. Workers block them all.
pub(super) struct Signals {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
    hangup: Signal,
    user_defined1: Signal,
}

/// What a signal asks for.
pub(super) enum Event {
    Stop,
    /// Ctrl-C.
    Interrupt,
    Reload,
    ReopenLog,
}

impl Signals {
    /// Begins to wait for them.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            user_defined1: signal(SignalKind::user_defined1())?,
        })
    }

    /// The next that comes.
    pub(super) async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.terminate.recv() => Event::Stop,
            // As nginx has it.
            _ = self.quit.recv() => Event::Stop,
            _ = self.interrupt.recv() => Event::Interrupt,
            _ = self.hangup.recv() => Event::Reload,
            _ = self.user_defined1.recv() => Event::ReopenLog,
        }
    }
}
