//! One line for each response, written without ever making a worker wait for a disk.
//!
//! A worker formats into its own buffer; one writer thread swaps the buffers out and writes them.
//! Lines with which the disk does not keep up are dropped and counted. `format` has the formats.
//! Sites and routes may have logs of their own: more files, in the same form, of the same writer.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use kettle_config::{Log, LogFormat, LogTarget};
use kettle_tls::Session;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::client_address::ClientAddress;
use crate::tx_path::{Reason, TxPath};

mod escape;
mod format;
mod request_id;
mod tunnel;
mod upstream;
mod writer;

use format::TimeTexts;
pub use request_id::RequestId;
pub use tunnel::TunnelEntry;
pub use upstream::UpstreamEntry;
use writer::{Command, Writer};

/// The facts known of one response when it is over.
#[derive(Clone, Copy, Debug)]
pub struct ResponseEntry<'a> {
    /// When the request's head was complete.
    pub time: SystemTime,
    /// The client. Port 0: its port is not known.
    pub remote: ClientAddress,
    /// The `Host` field, as sent.
    pub host: Option<&'a [u8]>,
    /// The method; empty if the request could not be parsed.
    pub method: &'a [u8],
    /// The request target, as sent; empty if the request could not be parsed.
    pub target: &'a [u8],
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`; empty if the request could not be parsed.
    pub version: &'static str,
    /// The status sent.
    pub status: u16,
    /// The name of the client that logged in by name and password.
    pub user: Option<&'a str>,
    /// Why the route did not let the request pass.
    pub refusal: Option<&'static str>,
    /// The outcome of looking into a store, where the route has one.
    pub cache: Option<&'static str>,
    /// The outcome of asking a backend, where the route has one.
    pub upstream: Option<UpstreamEntry<'a>>,
    /// Bytes of head and body, before encryption.
    pub bytes_sent: u64,
    /// Bytes of the body, before encryption.
    pub body_bytes: u64,
    /// The place where the records were encrypted; [`TxPath::User`] where there are none.
    pub path: TxPath,
    /// Why that was not the preferred path.
    pub reason: Option<Reason>,
    /// The parameters that the handshake agreed on, the server's name included; none over plain HTTP.
    pub session: Option<&'a Session>,
    /// The `Referer` field, as sent.
    pub referer: Option<&'a [u8]>,
    /// The `User-Agent` field, as sent.
    pub user_agent: Option<&'a [u8]>,
    /// From the complete request head to the last byte given to the kernel.
    pub duration: Duration,
    /// The connection, unique while this process lives.
    pub connection: u64,
    /// Which request of its connection this was, from 1.
    pub request_number: u64,
    /// Its name.
    pub request_id: &'a RequestId,
    /// True if the body ended where its head had promised.
    pub completed: bool,
}

/// The writer thread and the way to it. Dropping it writes what is left and ends the thread.
#[derive(Debug)]
pub struct AccessLog {
    shared: Arc<Shared>,
    workers: Vec<Arc<Mutex<Pending>>>,
    commands: SyncSender<Command>,
    thread: Option<JoinHandle<()>>,
}

/// One worker's end of the log.
#[derive(Clone, Debug)]
pub struct WorkerLog {
    shared: Arc<Shared>,
    pending: Arc<Mutex<Pending>>,
    commands: SyncSender<Command>,
}

/// Which log a line is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Destination {
    /// That of the process.
    #[default]
    Common,
    /// One of a site or a route.
    Own(Arc<LogTarget>),
    /// None.
    Nowhere,
}

impl Destination {
    /// That of a site or a route which says it.
    #[must_use]
    pub fn new(own: &LogTarget, log: &Log) -> Self {
        match own {
            LogTarget::Off => Self::Nowhere,
            own if *own == log.access => Self::Common,
            own => Self::Own(Arc::new(own.clone())),
        }
    }
}

/// Why a log cannot be written, and which.
#[derive(Debug)]
pub struct LogError {
    /// The log; none if it is the matter of all.
    pub target: Option<LogTarget>,
    /// The error.
    pub error: io::Error,
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Some(target) => write!(formatter, "{target}: {}", self.error),
            None => self.error.fmt(formatter),
        }
    }
}

impl std::error::Error for LogError {}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        Self { target: None, error }
    }
}

#[derive(Debug)]
struct Shared {
    /// True if there is a log of the process. The fields that follow are read for each response and changed by a reload.
    is_on: AtomicBool,
    /// `FORMAT_*`.
    format: AtomicU8,
    buffer_bytes: AtomicUsize,
    lines_dropped: Arc<AtomicU64>,
}

/// Lines a worker has formatted and the writer has not yet taken. Its lock is held to format one
/// line or to swap the buffer, never for I/O.
#[derive(Debug, Default)]
struct Pending {
    lines: Vec<u8>,
    /// Those for logs of sites and routes: as many of these as configurations name that requests are under way for.
    own: HashMap<Arc<LogTarget>, Vec<u8>>,
    own_bytes: usize,
    writer_woken: bool,
    clock: TimeTexts,
}

impl AccessLog {
    /// Opens the log, and those of sites and routes, and starts their writer for this many workers.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be opened or the thread not be started.
    pub fn start(
        settings: &Log,
        own: HashSet<LogTarget>,
        workers: usize,
        lines_dropped: Arc<AtomicU64>,
    ) -> Result<Self, LogError> {
        let (commands, receiver) = sync_channel(COMMANDS_MAX);
        let shared = Arc::new(Shared {
            is_on: AtomicBool::new(false),
            format: AtomicU8::new(FORMAT_JSON),
            buffer_bytes: AtomicUsize::new(0),
            lines_dropped: Arc::clone(&lines_dropped),
        });
        let workers: Vec<_> = (0..workers).map(|_| Arc::<Mutex<Pending>>::default()).collect();
        let writer = Writer::open(settings, own, workers.clone(), lines_dropped)?;
        shared.apply(settings);
        let thread = spawn(writer, receiver)?;
        Ok(Self { shared, workers, commands, thread: Some(thread) })
    }

    /// The end of the log that a worker writes to.
    #[must_use]
    pub fn worker(&self, index: usize) -> Option<WorkerLog> {
        Some(WorkerLog {
            shared: Arc::clone(&self.shared),
            pending: Arc::clone(self.workers.get(index)?),
            commands: self.commands.clone(),
        })
    }

    /// Writes what is pending, then opens all files again by their names (after a rotation).
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be opened or the writer is held up; the old ones then stay in use.
    pub async fn reopen(&self) -> Result<(), LogError> {
        self.ask(Command::Reopen).await
    }

    /// Writes what is pending, then goes on with other settings, and other logs of sites and routes.
    ///
    /// # Errors
    ///
    /// Fails if a new target cannot be opened or the writer is held up; the old settings then
    /// stay in use.
    pub async fn reconfigure(
        &self,
        settings: &Log,
        own: HashSet<LogTarget>,
    ) -> Result<(), LogError> {
        self.ask(|reply| Command::Reconfigure(settings.clone(), own, reply)).await?;
        self.shared.apply(settings);
        Ok(())
    }

    async fn ask(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<(), LogError>>) -> Command,
    ) -> Result<(), LogError> {
        let (reply, answer) = oneshot::channel();
        self.commands.try_send(command(reply)).map_err(|error| match error {
            TrySendError::Full(_) => held_up(),
            TrySendError::Disconnected(_) => gone(),
        })?;
        match timeout(ANSWER_TIME_MAX, answer).await {
            Ok(answer) => answer.map_err(|_| gone())?,
            Err(_) => Err(held_up().into()),
        }
    }
}

/// Standard output may be a pipe that nobody reads: the caller must not wait with it.
fn held_up() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "what the access log goes to takes nothing")
}

fn gone() -> io::Error {
    io::Error::other("the access log's writer has ended")
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let (reply, answer) = sync_channel(1);
        let is_told = match self.commands.try_send(Command::Stop(reply)) {
            Ok(()) => match answer.recv_timeout(ANSWER_TIME_MAX) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
                Err(RecvTimeoutError::Timeout) => false,
            },
            Err(error) => matches!(error, TrySendError::Disconnected(_)),
        };
        if !is_told {
            // It ends with the process, and what it could not write is lost.
            tracing::warn!(error = %held_up(), "the last lines of the access log are lost");
        } else if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl WorkerLog {
    /// True if lines are written there at all; gathering what they say can otherwise be spared.
    #[must_use]
    pub fn is_on(&self, destination: &Destination) -> bool {
        match destination {
            Destination::Common => self.shared.is_on.load(Relaxed),
            Destination::Own(_) => true,
            Destination::Nowhere => false,
        }
    }

    /// Adds a response's line, or drops and counts it if the writer is too far behind.
    pub fn record(&self, destination: &Destination, entry: &ResponseEntry<'_>) {
        self.add(destination, |format, lines, clock| match format {
            LogFormat::Json => format::write_json(lines, clock, entry),
            LogFormat::Combined => format::write_combined(lines, clock, entry),
            LogFormat::CombinedPlain => format::write_combined_plain(lines, clock, entry),
            LogFormat::Short => format::write_short(lines, clock, entry),
        });
    }

    /// As [`record`](Self::record), for a tunnel.
    pub fn record_tunnel(&self, destination: &Destination, entry: &TunnelEntry<'_>) {
        self.add(destination, |format, lines, clock| entry.write(format, lines, clock));
    }

    fn add(
        &self,
        destination: &Destination,
        write: impl FnOnce(LogFormat, &mut Vec<u8>, &mut TimeTexts),
    ) {
        if !self.is_on(destination) {
            return;
        }
        let format = match self.shared.format.load(Relaxed) {
            FORMAT_COMBINED => LogFormat::Combined,
            FORMAT_COMBINED_PLAIN => LogFormat::CombinedPlain,
            FORMAT_SHORT => LogFormat::Short,
            _ => LogFormat::Json,
        };
        let buffer_bytes = self.shared.buffer_bytes.load(Relaxed);
        let mut pending = lock(&self.pending);
        if pending.bytes() >= backlog_bytes_max(buffer_bytes) {
            self.shared.lines_dropped.fetch_add(1, Relaxed);
            return;
        }
        let Pending { lines, own, own_bytes, clock, .. } = &mut *pending;
        if let Destination::Own(target) = destination {
            let lines = match own.get_mut(target) {
                Some(lines) => lines,
                None => own.entry(Arc::clone(target)).or_default(),
            };
            let before = lines.len();
            write(format, lines, clock);
            *own_bytes += lines.len() - before;
        } else {
            write(format, lines, clock);
        }
        if pending.bytes() >= buffer_bytes && !pending.writer_woken {
            pending.writer_woken = true;
            // A full queue means that the writer has been woken already.
            let _ = self.commands.try_send(Command::Flush);
        }
    }
}

impl Pending {
    /// Of all logs together, which is what is bounded.
    fn bytes(&self) -> usize {
        self.lines.len() + self.own_bytes
    }
}

impl Shared {
    fn apply(&self, settings: &Log) {
        let format = match settings.format {
            LogFormat::Json => FORMAT_JSON,
            LogFormat::Combined => FORMAT_COMBINED,
            LogFormat::CombinedPlain => FORMAT_COMBINED_PLAIN,
            LogFormat::Short => FORMAT_SHORT,
        };
        self.buffer_bytes.store(settings.buffer, Relaxed);
        self.format.store(format, Relaxed);
        self.is_on.store(settings.access != LogTarget::Off, Relaxed);
    }
}

fn spawn(writer: Writer, commands: Receiver<Command>) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("kettle-log".to_owned()).spawn(move || writer.run(&commands))
}

/// A panic while the lock was held leaves at worst half a line.
fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how far a worker may be ahead of the writer before lines are dropped.
const fn backlog_bytes_max(buffer_bytes: usize) -> usize {
    let buffers = buffer_bytes.saturating_mul(BACKLOG_BUFFERS);
    if buffers < BACKLOG_BYTES_MIN { BACKLOG_BYTES_MIN } else { buffers }
}

const FORMAT_JSON: u8 = 0;
const FORMAT_COMBINED: u8 = 1;
const FORMAT_SHORT: u8 = 2;
const FORMAT_COMBINED_PLAIN: u8 = 3;

/// The backlog of a worker in full buffers.
const BACKLOG_BUFFERS: usize = 16;

/// The backlog of a worker whose buffer is small or nothing.
const BACKLOG_BYTES_MIN: usize = 64 * 1024;

/// Commands waiting for the writer. Nobody waits for room here.
const COMMANDS_MAX: usize = 64;

/// The time the writer may take to write what is pending and do what it is asked to.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
