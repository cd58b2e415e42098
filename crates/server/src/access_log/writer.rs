//! The thread that writes the logs: the only place where a slow or full disk is waited for.

use std::collections::{HashMap, HashSet};
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

use super::{LogError, Pending, lock};

/// What the writer is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Write now: some worker's buffer is full.
    Flush,
    /// Open the files again by their names.
    Reopen(oneshot::Sender<Result<(), LogError>>),
    /// Go on with other settings, and with these logs of sites and routes.
    Reconfigure(Log, HashSet<LogTarget>, oneshot::Sender<Result<(), LogError>>),
    /// Write what is left and end.
    Stop(SyncSender<()>),
}

/// The state of the writer thread.
pub(super) struct Writer {
    workers: Vec<Arc<Mutex<Pending>>>,
    settings: Log,
    /// The log of the process.
    common: Output,
    /// Those of sites and routes.
    own: HashMap<LogTarget, Output>,
    /// Swapped with a worker's buffer, so that both keep their memory.
    spare: Vec<u8>,
    lines_dropped: Arc<AtomicU64>,
}

/// One log.
struct Output {
    sink: Sink,
    is_failing: bool,
}

enum Sink {
    Off,
    File(File),
    Stdout,
    Stderr,
}

impl Writer {
    pub(super) fn open(
        settings: &Log,
        own: HashSet<LogTarget>,
        workers: Vec<Arc<Mutex<Pending>>>,
        lines_dropped: Arc<AtomicU64>,
    ) -> Result<Self, LogError> {
        Ok(Self {
            workers,
            settings: settings.clone(),
            common: Output::open(&settings.access)?,
            own: open_all(own)?,
            spare: Vec::new(),
            lines_dropped,
        })
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        loop {
            let command = commands.recv_timeout(FLUSH_INTERVAL);
            self.write_pending();
            match command {
                Ok(Command::Flush) | Err(RecvTimeoutError::Timeout) => {}
                // The caller may have given up waiting; the work is done all the same.
                Ok(Command::Reopen(reply)) => drop(reply.send(self.reopen())),
                Ok(Command::Reconfigure(settings, own, reply)) => {
                    self.reconfigure(settings, own, reply);
                }
                Ok(Command::Stop(reply)) => {
                    let _ = reply.send(());
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn reopen(&mut self) -> Result<(), LogError> {
        let own = open_all(self.own.keys().cloned())?;
        self.common = Output::open(&self.settings.access)?;
        self.own = own;
        Ok(())
    }

    /// Goes on with other settings if the caller still waits: else they were refused meanwhile, with all that would
    /// have changed with them. Writing what was pending may have taken long, and opening may as well.
    fn reconfigure(
        &mut self,
        settings: Log,
        own: HashSet<LogTarget>,
        reply: oneshot::Sender<Result<(), LogError>>,
    ) {
        if reply.is_closed() {
            return;
        }
        let is_moved = settings.access != self.settings.access;
        let common = is_moved.then(|| Output::open(&settings.access)).transpose();
        let new = own.iter().filter(|target| !self.own.contains_key(*target));
        let opened = common.and_then(|common| Ok((common, open_all(new.cloned())?)));
        let (common, new) = match opened {
            Ok(opened) => opened,
            Err(error) => return drop(reply.send(Err(error))),
        };
        if reply.send(Ok(())).is_err() {
            return;
        }
        if let Some(common) = common {
            self.common = common;
        }
        self.own.retain(|target, _| own.contains(target));
        self.own.extend(new);
        self.settings = settings;
    }

    fn write_pending(&mut self) {
        for worker in &self.workers {
            self.spare.clear();
            let own = {
                let mut pending = lock(worker);
                std::mem::swap(&mut pending.lines, &mut self.spare);
                pending.writer_woken = false;
                pending.own_bytes = 0;
                std::mem::take(&mut pending.own)
            };
            let access = &self.settings.access;
            self.common.write(access, &self.spare, &self.lines_dropped);
            for (target, lines) in own {
                match self.own.get_mut(&*target) {
                    Some(output) => output.write(&target, &lines, &self.lines_dropped),
                    // Of a response that was under way when a reload left this log out.
                    None => match Output::open(&target) {
                        Ok(mut output) => output.write(&target, &lines, &self.lines_dropped),
                        Err(_) => count(&lines, &self.lines_dropped),
                    },
                }
            }
            // After a burst the memory goes back.
            self.spare.clear();
            self.spare.shrink_to(self.settings.buffer.saturating_mul(2));
        }
    }
}

fn open_all(
    targets: impl IntoIterator<Item = LogTarget>,
) -> Result<HashMap<LogTarget, Output>, LogError> {
    let open = |target: LogTarget| Output::open(&target).map(|output| (target, output));
    targets.into_iter().map(open).collect()
}

fn count(lines: &[u8], lines_dropped: &AtomicU64) {
    let lines = lines.iter().filter(|byte| **byte == b'\n').count();
    lines_dropped.fetch_add(lines as u64, Relaxed);
}

impl Output {
    fn open(target: &LogTarget) -> Result<Self, LogError> {
        let sink = match target {
            LogTarget::Off => Sink::Off,
            LogTarget::Stdout => Sink::Stdout,
            LogTarget::Stderr => Sink::Stderr,
            LogTarget::Path(path) => {
                let file = open_file(path);
                Sink::File(file.map_err(|error| LogError { target: Some(target.clone()), error })?)
            }
        };
        Ok(Self { sink, is_failing: false })
    }

    /// Writes lines, or counts those that are lost.
    fn write(&mut self, target: &LogTarget, lines: &[u8], lines_dropped: &AtomicU64) {
        if lines.is_empty() {
            return;
        }
        match self.sink.write_all(lines) {
            Ok(()) if self.is_failing => {
                self.is_failing = false;
                tracing::info!(log = %target, "the access log can be written again");
            }
            Ok(()) => {}
            Err(error) => {
                count(lines, lines_dropped);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(
                        log = %target, %error, "the access log cannot be written; lines are lost"
                    );
                }
            }
        }
    }
}

impl Sink {
    fn write_all(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Off => Ok(()),
            Self::File(file) => file.write_all(lines),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::Stderr => io::stderr().lock().write_all(lines),
        }
    }
}

/// Logs hold who asked for what, so others may not read them.
fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

/// How long a line may wait for its write when traffic is low.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
