//! Ctrl-C: the first one ends the run after the sample that is being taken, the second one at once. Nothing measured is lost.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// The wish of the user to end the run. Clones are the same wish.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    after_sample: Arc<AtomicBool>,
    /// Set when the sample that is being taken should end too.
    pub now: Arc<AtomicBool>,
}

impl Stop {
    /// Takes SIGINT, SIGTERM and SIGHUP as that wish from now on.
    ///
    /// # Errors
    /// A sentence for the user: the signals cannot be caught, or no thread can be started to wait for them.
    pub fn on_signals() -> Result<Self, String> {
        let stop = Self::default();
        let listening = stop.clone().listen();
        listening.map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
        Ok(stop)
    }

    fn listen(self) -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // The terminal is gone; the servers must not outlive it.
        let mut hangup = signal(SignalKind::hangup())?;
        drop(inside);
        // It waits for signals as long as the process lives.
        let listen = move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => self.ask(),
                        _ = terminate.recv() => self.ask(),
                        _ = hangup.recv() => self.ask(),
                    }
                }
            })
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(())
    }

    /// Asks for the end; asked again, for the end at once.
    pub fn ask(&self) {
        if self.after_sample.swap(true, Ordering::Relaxed) {
            self.now.store(true, Ordering::Relaxed);
        }
    }

    /// True if no other sample should begin.
    pub fn is_asked(&self) -> bool {
        self.after_sample.load(Ordering::Relaxed)
    }

    /// Set when no other sample should begin, for what is one sample only.
    pub fn asked(&self) -> &AtomicBool {
        &self.after_sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wish_waits_for_the_sample_and_the_second_does_not() {
        let stop = Stop::default();
        let other = stop.clone();
        assert!(!stop.is_asked());
        other.ask();
        assert!(stop.is_asked());
        assert!(!stop.now.load(Ordering::Relaxed));
        other.ask();
        assert!(stop.now.load(Ordering::Relaxed));
    }
}
