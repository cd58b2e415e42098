//! The thread that writes the log: the only place where a slow or full disk is waited for.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kettle_config::{Log, LogTarget};
use tokio::sync::oneshot;

use super::{Pending, lock};

/// What the writer is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Write now: some worker's buffer is full.
    Flush,
    /// Open the file again by its name.
    Reopen(oneshot::Sender<io::Result<()>>),
    /// Go on with other settings.
    Reconfigure(Log, oneshot::Sender<io::Result<()>>),
    /// Write what is left and end.
    Stop(SyncSender<()>),
}

/// The state of the writer thread.
pub(super) struct Writer {
    workers: Vec<Arc<Mutex<Pending>>>,
    settings: Log,
    output: Output,
    /// Swapped with a worker's buffer, so that both keep their memory.
    spare: Vec<u8>,
    lines_dropped: Arc<AtomicU64>,
    is_failing: bool,
}

enum Output {
    Off,
    File(File),
    Stdout,
    Stderr,
}

impl Writer {
    pub(super) fn open(
        settings: &Log,
        workers: Vec<Arc<Mutex<Pending>>>,
        lines_dropped: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let output = Output::open(settings.access.as_ref())?;
        Ok(Self {
            workers,
            settings: settings.clone(),
            output,
            spare: Vec::new(),
            lines_dropped,
            is_failing: false,
        })
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        loop {
            let command = commands.recv_timeout(FLUSH_INTERVAL);
            self.write_pending();
            match command {
                Ok(Command::Flush) | Err(RecvTimeoutError::Timeout) => {}
                // Whoever asked may have given up waiting; the work is done all the same.
                Ok(Command::Reopen(reply)) => drop(reply.send(self.reopen())),
                Ok(Command::Reconfigure(settings, reply)) => self.reconfigure(settings, reply),
                Ok(Command::Stop(reply)) => {
                    let _ = reply.send(());
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.output = Output::open(self.settings.access.as_ref())?;
        Ok(())
    }

    /// Goes on with other settings if whoever asked still waits: else they were refused meanwhile, with all that would
    /// have changed with them. Writing what was pending may have taken long, and opening may as well.
    fn reconfigure(&mut self, settings: Log, reply: oneshot::Sender<io::Result<()>>) {
        if reply.is_closed() {
            return;
        }
        let is_moved = settings.access != self.settings.access;
        match is_moved.then(|| Output::open(settings.access.as_ref())).transpose() {
            Err(error) => drop(reply.send(Err(error))),
            Ok(output) => {
                if reply.send(Ok(())).is_err() {
                    return;
                }
                if let Some(output) = output {
                    self.output = output;
                }
                self.settings = settings;
            }
        }
    }

    fn write_pending(&mut self) {
        for worker in &self.workers {
            self.spare.clear();
            {
                let mut pending = lock(worker);
                std::mem::swap(&mut pending.lines, &mut self.spare);
                pending.writer_woken = false;
            }
            if self.spare.is_empty() {
                continue;
            }
            match self.output.write_all(&self.spare) {
                Ok(()) if self.is_failing => {
                    self.is_failing = false;
                    tracing::info!("the access log can be written again");
                }
                Ok(()) => {}
                Err(error) => {
                    let lines = self.spare.iter().filter(|byte| **byte == b'\n').count();
                    self.lines_dropped.fetch_add(lines as u64, Relaxed);
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::error!(%error, "the access log cannot be written; lines are lost");
                    }
                }
            }
            // After a burst the memory goes back.
            self.spare.clear();
            self.spare.shrink_to(self.settings.buffer.saturating_mul(2));
        }
    }
}

impl Output {
    fn open(target: Option<&LogTarget>) -> io::Result<Self> {
        Ok(match target {
            None => Output::Off,
            Some(LogTarget::Stdout) => Output::Stdout,
            Some(LogTarget::Stderr) => Output::Stderr,
            Some(LogTarget::Path(path)) => Output::File(open_file(path)?),
        })
    }

    fn write_all(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Output::Off => Ok(()),
            Output::File(file) => file.write_all(lines),
            Output::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Output::Stderr => io::stderr().lock().write_all(lines),
        }
    }
}

/// Logs hold who asked for what, so others may not read them.
fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

/// How long a line may wait for its write when traffic is low.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
