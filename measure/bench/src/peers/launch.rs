//! Launching any server: a port, its processors, the wait until it takes connections, its last words.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kettle_kernel::process;

use super::error::PeerError;
use super::exit::{self, START_PATIENCE};

/// A process, with all that it starts. Dropping it stops them.
#[derive(Debug)]
pub(super) struct Launched(Child);

/// The conditions under which a process counts as launched.
pub(super) struct Awaited<'l> {
    pub(super) program: &'l str,
    pub(super) address: SocketAddr,
    /// The number of its processes, workers included.
    pub(super) processes: usize,
    pub(super) log: &'l Path,
}

impl Launched {
    /// Starts it on these processors and waits until it takes connections.
    pub(super) fn start(
        mut command: Command,
        cpus: &[usize],
        awaited: &Awaited<'_>,
    ) -> Result<Self, PeerError> {
        let Awaited { program, log, .. } = awaited;
        let output = File::create(log).map_err(PeerError::unwritable(log))?;
        let errors = output.try_clone().map_err(PeerError::unwritable(log))?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = spawn_apart(&mut command, cpus)
            .map_err(|error| PeerError::Unprepared(format!("cannot start {program}: {error}")))?;
        let mut launched = Self(child);
        match launched.await_connections(awaited) {
            Ok(()) => Ok(launched),
            Err(fault) => {
                let said = last_words(log);
                Err(PeerError::Unprepared(format!("{program} {fault}; it said: {said}")))
            }
        }
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        exit::group(self.0.id())
    }

    /// Tells whether it has ended, after a moment's wait for that.
    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        exit::within(&mut self.0, ATTEMPT_STEP)
    }

    fn await_connections(&mut self, awaited: &Awaited<'_>) -> Result<(), String> {
        let deadline = Instant::now() + START_PATIENCE;
        while Instant::now() < deadline {
            // The wait between two attempts ends early when there is nothing left to wait for.
            if self.has_ended().unwrap_or(true) {
                return Err("ended at once".to_owned());
            }
            let connects = TcpStream::connect_timeout(&awaited.address, ATTEMPT_STEP).is_ok();
            // nginx's first process listens before there are workers.
            if connects && self.processes().len() >= awaited.processes {
                return Ok(());
            }
        }
        Err(format!("took no connection within {START_PATIENCE:?}"))
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        exit::stop_group(&mut self.0);
    }
}

fn spawn_apart(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    // A group of its own is what stops it with all it started, and keeps a Ctrl-C at the terminal from stopping it early.
    command.process_group(0);
    on_cpus(cpus, || command.spawn())
}

/// Runs something that starts a process, which inherits its processors from the thread that does: one of its own leaves those of
/// all others alone.
pub(crate) fn on_cpus<T: Send>(
    cpus: &[usize],
    start: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let start = || process::keep_to_cpus(cpus).and_then(|()| start());
    let started = thread::scope(|scope| scope.spawn(start).join());
    started.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// An address nobody listens on. Somebody may take it before the server does; the server then ends and says so.
pub(super) fn free_address() -> Result<SocketAddr, PeerError> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
    bound.map_err(|error| PeerError::Unprepared(format!("no free port on 127.0.0.1: {error}")))
}

/// The command as a shell would take it.
pub(super) fn words(command: &Command) -> Vec<String> {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.display(), value?.display())));
    let program = std::iter::once(command.get_program()).chain(command.get_args());
    variables.chain(program.map(|word| word.display().to_string())).collect()
}

pub(super) fn last_words(log: &Path) -> String {
    let said = fs::read(log).unwrap_or_default();
    let tail = said.get(said.len().saturating_sub(SAID_BYTES_MAX)..).unwrap_or_default();
    String::from_utf8_lossy(tail).trim().to_owned()
}

const ATTEMPT_STEP: Duration = Duration::from_millis(20);
/// The end of a log is where the reason is.
const SAID_BYTES_MAX: usize = 2000;

#[cfg(test)]
mod tests;
