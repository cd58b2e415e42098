//! The thread that writes the logs: the only place where a slow or full disk is waited for.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kettle_config::{Log, LogTarget};
use kettle_kernel::bug;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use tokio::sync::oneshot;

use super::{LogError, Pending, lock};

/// A command to the writer.
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
    /// Those that a reload left out, and whose torn line the next one is to end.
    left_out: HashMap<Arc<LogTarget>, Output>,
    /// Swapped with a worker's buffer, so that both keep their memory.
    spare: Vec<u8>,
    lines_dropped: Arc<AtomicU64>,
}

/// One log.
struct Output {
    sink: Sink,
    is_failing: bool,
    /// It ends with a part of a line.
    is_torn: bool,
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
            left_out: HashMap::new(),
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
        let mut own = open_all(self.own.keys().cloned())?;
        let mut common = Output::open(&self.settings.access)?;
        common.go_on_from(&self.common);
        for (target, output) in &mut own {
            self.own.get(target).inspect(|before| output.go_on_from(before));
        }
        (self.common, self.own) = (common, own);
        self.left_out.clear();
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
        self.left_out.clear();
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
                    None => {
                        let torn = self.left_out.remove(&*target);
                        let Ok(mut output) = torn.map_or_else(|| Output::open(&target), Ok) else {
                            count(&lines, &self.lines_dropped);
                            continue;
                        };
                        output.write(&target, &lines, &self.lines_dropped);
                        if output.is_torn {
                            self.left_out.insert(target, output);
                        }
                    }
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
        Ok(Self { sink, is_failing: false, is_torn: false })
    }

    /// Knows of a torn line what the one knew that was open before, if it is the same file.
    fn go_on_from(&mut self, before: &Self) {
        self.is_torn = before.is_torn && self.sink.identity() == before.sink.identity();
    }

    /// Writes lines, or counts those that are lost.
    fn write(&mut self, target: &LogTarget, lines: &[u8], lines_dropped: &AtomicU64) {
        if lines.is_empty() {
            return;
        }
        match self.end_torn_line().and_then(|()| self.sink.write(lines)) {
            Ok(()) if self.is_failing => {
                self.is_failing = false;
                tracing::info!(log = %target, "the access log can be written again");
            }
            Ok(()) => {}
            Err(TornWrite { written_bytes, error }) => {
                self.note_failure(lines, written_bytes, lines_dropped);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!(
                        log = %target, %error, "the access log cannot be written; lines are lost"
                    );
                }
            }
        }
    }

    fn end_torn_line(&mut self) -> Result<(), TornWrite> {
        if self.is_torn {
            self.sink.write(b"\n")?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Counts the lines that were not written whole.
    fn note_failure(&mut self, lines: &[u8], written_bytes: usize, lines_dropped: &AtomicU64) {
        let written = lines.get(..written_bytes).unwrap_or_default();
        let whole = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.is_torn |= whole < written_bytes;
        count(lines.get(whole..).unwrap_or_default(), lines_dropped);
    }
}

/// A write that failed behind so many bytes.
#[derive(Debug)]
struct TornWrite {
    written_bytes: usize,
    error: io::Error,
}

impl Sink {
    /// Which file it is.
    fn identity(&self) -> Option<(u64, u64)> {
        let found = match self {
            Self::Off => return None,
            Self::File(file) => fstat(file),
            Self::Stdout => fstat(io::stdout()),
            Self::Stderr => fstat(io::stderr()),
        };
        found.ok().map(|stat| (stat.st_dev, stat.st_ino))
    }

    fn write(&mut self, lines: &[u8]) -> Result<(), TornWrite> {
        match self {
            Self::Off => Ok(()),
            Self::File(file) => write_lines(file, lines),
            Self::Stdout => write_lines(&mut io::stdout().lock(), lines),
            Self::Stderr => write_lines(&mut io::stderr().lock(), lines),
        }
    }
}

/// Writes lines so that what other programs, or our own messages, write to the same log stands between them. A file takes each
/// call's bytes as one; a pipe takes so only [`PIPE_BUF`] of them.
fn write_lines(log: &mut (impl Write + AsFd), lines: &[u8]) -> Result<(), TornWrite> {
    // Few lines go as one wherever they go.
    let is_whole = lines.len() <= PIPE_BUF
        || fstat(log.as_fd())
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let mut left = lines;
    while !left.is_empty() {
        let piece_bytes = if is_whole { left.len() } else { piece_bytes(left) };
        let (piece, rest) = left.split_at(piece_bytes);
        let written_before = lines.len() - left.len();
        let behind = |TornWrite { written_bytes, error }| TornWrite {
            written_bytes: written_before + written_bytes,
            error,
        };
        write_counted(log, piece).map_err(behind)?;
        left = rest;
    }
    let flushed = log.flush();
    flushed.map_err(|error| TornWrite { written_bytes: lines.len(), error })
}

/// The length of the whole lines that a pipe takes as one. A longer line is written alone, and may be torn there.
fn piece_bytes(lines: &[u8]) -> usize {
    let is_end = |byte: &u8| *byte == b'\n';
    let fits = lines.get(..PIPE_BUF).map(|fits| fits.iter().rposition(is_end));
    match fits {
        None => lines.len(),
        Some(Some(end)) => end + 1,
        Some(None) => lines.iter().position(is_end).map_or(lines.len(), |end| end + 1),
    }
}

fn write_counted(file: &mut impl Write, lines: &[u8]) -> Result<(), TornWrite> {
    let mut left = lines;
    while !left.is_empty() {
        let written = match file.write(left) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            written => written,
        };
        let failed = |error| TornWrite { written_bytes: lines.len() - left.len(), error };
        let rest = left.get(written.map_err(failed)?..);
        left = rest.ok_or_else(|| failed(bug!("no more is written than there is").into()))?;
    }
    Ok(())
}

/// Logs hold who asked for what, so others may not read them. To open a pipe would be to wait for its reader, and all other logs
/// with it.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o640);
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(number) if number == Errno::NXIO.raw_os_error() => {
            io::Error::other("nobody reads this pipe: start its reader first")
        }
        _ => error,
    })?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// The bytes that a pipe takes without another writer's bytes in between (pipe(7)).
const PIPE_BUF: usize = 4_096;

/// The time a line may wait for its write when traffic is low.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
