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

use super::error::{Fault, PeerError};
use super::exit::{self, START_PATIENCE};

/// Has it write what it says to a file, and read nothing.
pub(super) fn write_to(command: &mut Command, log: &Path) -> Result<(), PeerError> {
    let output = File::create(log).map_err(unwritable(log))?;
    let errors = output.try_clone().map_err(unwritable(log))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    Ok(())
}

/// On processors, which a process inherits from the thread that starts it: a thread of its own leaves those of all others alone.
pub(super) fn spawn_apart(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    // A group of its own is what stops it with all it started, and keeps a Ctrl-C at the terminal from stopping it early.
    command.process_group(0);
    thread::scope(|scope| {
        let spawning = scope.spawn(|| {
            process::keep_to_cpus(cpus)?;
            command.spawn()
        });
        spawning.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

/// Waits until it takes connections and consists of so many processes.
pub(super) fn await_connections(
    child: &mut Child,
    address: SocketAddr,
    processes: usize,
) -> Result<(), Fault> {
    let deadline = Instant::now() + START_PATIENCE;
    while Instant::now() < deadline {
        // The wait between two attempts ends early when there is nothing left to wait for.
        if exit::within(child, ATTEMPT_STEP).unwrap_or(true) {
            return Err(Fault::Ended);
        }
        let connects = TcpStream::connect_timeout(&address, ATTEMPT_STEP).is_ok();
        // nginx's first process listens before there are workers.
        if connects && exit::group(child.id()).len() >= processes {
            return Ok(());
        }
    }
    Err(Fault::DoesNotListen)
}

/// An address nobody listens on. Somebody may take it before the server does; the server then ends and says so.
pub(super) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
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

pub(super) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> PeerError {
    let path = path.to_owned();
    move |source| PeerError::Unwritable { path, source }
}

pub(super) const ATTEMPT_STEP: Duration = Duration::from_millis(20);
/// The end of a log is where the reason is.
const SAID_BYTES_MAX: usize = 2000;

#[cfg(test)]
mod tests;
