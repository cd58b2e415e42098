//! A server's life: started on its own processors, awaited until it takes connections, stopped with everything it started.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kettle_kernel::process;

use super::config::{self, ConfigInput};
use super::exit;
use super::find::Found;
use super::first_answer::{self, NoAnswer, kernel_connections};
use super::identity::{self, IdentityError};
use super::own_config;
use super::subject::{OwnConfig, Program, Setup, Subject};

/// A server that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    config: String,
    command: Vec<String>,
    kernel_connections_before: Option<u64>,
}

/// Starts a server and waits until it has answered a first request, by the path it is to take.
pub fn start(subject: &Subject, found: &Found, setup: &Setup) -> Result<Running, PeerError> {
    if subject.role.has_backend() && setup.backend.is_none() {
        return Err(PeerError::NoBackend);
    }
    // With the folder for a cache, which kettle wants to be there.
    let folder = setup.folder.join(config::CACHE_FOLDER);
    fs::create_dir_all(&folder).map_err(unwritable(&folder))?;
    let address = free_address().map_err(PeerError::NoPort)?;
    let (mut command, config) = prepare(subject, found, setup, address)?;
    let log = setup.folder.join("log");
    let output = File::create(&log).map_err(unwritable(&log))?;
    let errors = output.try_clone().map_err(unwritable(&log))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors).current_dir(&setup.folder);
    // A group of its own is what stops it with all it started, and keeps a Ctrl-C at the terminal from stopping it early.
    command.process_group(0);
    let words = words(&command);
    // It is inherited, and not every server raises it; one that needs more than there is says so itself.
    _ = process::raise_open_files_limit();
    let kernel_connections_before = kernel_connections();
    let child = spawn_on(&mut command, &setup.cpus)
        .map_err(|source| PeerError::NotStarted { program: subject.program, source })?;
    let mut running = Running { address, child, config, command: words, kernel_connections_before };
    running.await_connections(processes_at_least(subject.program, setup)).map_err(|fault| {
        PeerError::Silent { program: subject.program, fault, said: last_words(&log) }
    })?;
    if subject.program == Program::Hitch {
        let kept = running.keep_workers_to(&setup.cpus);
        kept.map_err(|source| PeerError::Astray { program: subject.program, source })?;
    }
    first_answer::ask(subject, setup, address).map_err(|why| PeerError::Useless {
        program: subject.program,
        why,
        said: last_words(&log),
    })?;
    Ok(running)
}

/// Writes the certificate and the configuration. The command that uses them, and the configuration's text.
fn prepare(
    subject: &Subject,
    found: &Found,
    setup: &Setup,
    address: SocketAddr,
) -> Result<(Command, String), PeerError> {
    // Beside the server's own folder, so that all servers of a run show the same certificate.
    let shared = setup.folder.parent().unwrap_or(&setup.folder);
    let identity = identity::obtain(shared, setup.key).map_err(PeerError::Identity)?;
    let stream_module = found.nginx_stream.module();
    let input =
        ConfigInput { subject: *subject, setup, address, identity: &identity, stream_module };
    let text = config_text(&input, found)?;
    let path = setup.folder.join(config::file_name(subject.program));
    fs::write(&path, &text).map_err(unwritable(&path))?;
    let mut command = command(found, &path, &setup.folder);
    let Some(openssl_conf) = config::openssl_conf(subject.program, setup) else {
        return Ok((command, text));
    };
    let path = setup.folder.join("openssl.cnf");
    fs::write(&path, openssl_conf).map_err(unwritable(&path))?;
    command.env("OPENSSL_CONF", &path);
    Ok((command, [text.as_str(), openssl_conf].concat()))
}

fn config_text(input: &ConfigInput<'_>, kettle: &Found) -> Result<String, PeerError> {
    let (subject, setup) = (&input.subject, input.setup);
    let read = |path: &Path| {
        let unreadable = |source| PeerError::Unreadable { path: path.to_owned(), source };
        fs::read_to_string(path).map_err(unreadable)
    };
    let template = match &setup.config {
        Some(OwnConfig::Template(path)) => read(path)?,
        Some(OwnConfig::OfNginx(path)) => {
            let filled = config::filled_for(Program::Nginx, input, &read(path)?);
            let filled = filled.map_err(PeerError::Placeholder)?;
            // Who starts it serves.
            let filled = filled.replace("user root;\n", "");
            let path = setup.folder.join(config::file_name(Program::Nginx));
            fs::write(&path, filled).map_err(unwritable(&path))?;
            let imported =
                own_config::import(kettle, &path, &[]).map_err(PeerError::NotImported)?;
            return Ok(own_config::on_path(&imported, subject.path));
        }
        None => config::template(subject.program, subject.role).to_owned(),
    };
    config::text(input, &template).map_err(PeerError::Placeholder)
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> PeerError {
    let path = path.to_owned();
    move |source| PeerError::Unwritable { path, source }
}

impl Running {
    /// All its processes whose work is the server's work, the first one first.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        exit::group(self.child.id())
    }

    /// Its configuration file, whole, and OpenSSL's behind it where the server has one of its own.
    #[must_use]
    pub fn config(&self) -> &str {
        &self.config
    }

    /// How it was started.
    #[must_use]
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Sending sides the kernel took over since the start, in this network namespace; `None` without kernel TLS.
    #[must_use]
    pub fn kernel_connections(&self) -> Option<u64> {
        let before = self.kernel_connections_before.unwrap_or(0);
        kernel_connections().map(|now| now.saturating_sub(before))
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn await_connections(&mut self, processes: usize) -> Result<(), Fault> {
        let deadline = Instant::now() + START_PATIENCE;
        while Instant::now() < deadline {
            // The wait between two attempts ends early when there is nothing left to wait for.
            if exit::within(&mut self.child, ATTEMPT_STEP).unwrap_or(true) {
                return Err(Fault::Ended);
            }
            let connects = TcpStream::connect_timeout(&self.address, ATTEMPT_STEP).is_ok();
            // nginx's first process listens before there are workers.
            if connects && self.processes().len() >= processes {
                return Ok(());
            }
        }
        Err(Fault::DoesNotListen)
    }

    /// hitch ties its first worker to the machine's first processor, the second to the second, and has no setting for it. Here
    /// they get those that the server was given, in the same order.
    fn keep_workers_to(&mut self, cpus: &[usize]) -> io::Result<()> {
        let processes = self.processes();
        let workers = processes.get(1..).unwrap_or_default();
        let deadline = Instant::now() + START_PATIENCE;
        // They do so before they wait for the first connection.
        while !workers.iter().all(|worker| exit::is_asleep(*worker)) {
            if Instant::now() > deadline || exit::within(&mut self.child, ATTEMPT_STEP)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        for (worker, cpu) in workers.iter().zip(cpus.iter().cycle()) {
            process::keep_thread_to_cpus(*worker, &[*cpu])?;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        exit::stop_group(&mut self.child);
    }
}

/// An address nobody listens on. Somebody may take it before the server does; the server then ends and says so.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn command(found: &Found, config: &Path, folder: &Path) -> Command {
    let mut command = found.command();
    match found.program {
        Program::Kettle => command.arg("run").arg("--config").arg(config),
        Program::Nginx => {
            command.args(["-e", "stderr"]).arg("-p").arg(folder).arg("-c").arg(config)
        }
        Program::Haproxy => command.arg("-db").arg("-f").arg(config),
        Program::Hitch => command.arg(format!("--config={}", config.display())),
        Program::Stunnel => command.arg(config),
    };
    command
}

/// The command as a shell would take it.
fn words(command: &Command) -> Vec<String> {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.display(), value?.display())));
    let program = std::iter::once(command.get_program()).chain(command.get_args());
    variables.chain(program.map(|word| word.display().to_string())).collect()
}

/// A process inherits its processors from the thread that starts it; a thread of its own leaves those of all others alone.
fn spawn_on(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    thread::scope(|scope| {
        let spawning = scope.spawn(|| {
            process::keep_to_cpus(cpus)?;
            command.spawn()
        });
        spawning.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

/// The first process and its workers.
fn processes_at_least(program: Program, setup: &Setup) -> usize {
    match program {
        Program::Nginx | Program::Hitch => 1 + setup.workers,
        Program::Kettle | Program::Haproxy | Program::Stunnel => 1,
    }
}

fn last_words(log: &Path) -> String {
    let said = fs::read(log).unwrap_or_default();
    let tail = said.get(said.len().saturating_sub(SAID_BYTES_MAX)..).unwrap_or_default();
    String::from_utf8_lossy(tail).trim().to_owned()
}

/// Why a server does not run.
#[derive(Debug)]
pub enum PeerError {
    /// A terminator without a backend.
    NoBackend,
    /// There is no certificate for it.
    Identity(IdentityError),
    /// There is no free port.
    NoPort(io::Error),
    /// A file for it could not be written.
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The operator's configuration cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The configuration holds a placeholder that stands for nothing.
    Placeholder(String),
    /// kettle does not take nginx' configuration over.
    NotImported(String),
    /// The program cannot be executed.
    NotStarted {
        /// The program.
        program: Program,
        /// The system's answer.
        source: io::Error,
    },
    /// It takes no connections.
    Silent {
        /// The program.
        program: Program,
        /// What was seen.
        fault: Fault,
        /// The end of what it said.
        said: String,
    },
    /// It cannot be kept on its processors.
    Astray {
        /// The program.
        program: Program,
        /// The system's answer.
        source: io::Error,
    },
    /// It takes connections, but does not do on them what is to be measured.
    Useless {
        /// The program.
        program: Program,
        /// What it does not do.
        why: NoAnswer,
        /// The end of what it said.
        said: String,
    },
}

/// What was seen of a server that takes no connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ended.
    Ended,
    /// It runs, but nobody answers where it should listen.
    DoesNotListen,
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBackend => f.write_str("a terminator needs a backend, and none was started"),
            Self::Identity(error) => write!(f, "{error}"),
            Self::NoPort(source) => write!(f, "no free port on 127.0.0.1: {source}"),
            Self::Unwritable { path, source } => {
                write!(f, "cannot write {}: {source}", path.display())
            }
            Self::Unreadable { path, source } => {
                write!(f, "cannot read {}: {source}", path.display())
            }
            Self::Placeholder(word) => write!(
                f,
                "the configuration has {word}, which stands for nothing; `kettle bench config` shows what there is"
            ),
            Self::NotImported(why) => f.write_str(why),
            Self::NotStarted { program, source } => write!(f, "cannot start {program}: {source}"),
            Self::Silent { program, fault: Fault::Ended, said } => {
                write!(f, "{program} ended at once; it said: {said}")
            }
            Self::Silent { program, fault: Fault::DoesNotListen, said } => {
                write!(f, "{program} took no connection within {START_PATIENCE:?}; it said: {said}")
            }
            Self::Astray { program, source } => {
                write!(f, "{program} does not stay on the processors it was given: {source}")
            }
            Self::Useless { program, why: NoAnswer::Failed(why), said } => {
                write!(f, "{program} runs, but a first request failed ({why}); it said: {said}")
            }
            Self::Useless { program, why: NoAnswer::StayedInUserSpace, said } => write!(
                f,
                "{program} stayed in user space: /proc/net/tls_stat did not move on its first connection; it said: {said}"
            ),
        }
    }
}

impl std::error::Error for PeerError {}

const START_PATIENCE: Duration = Duration::from_secs(20);
const ATTEMPT_STEP: Duration = Duration::from_millis(20);
/// The end of a log is where the reason is.
const SAID_BYTES_MAX: usize = 2000;

#[cfg(test)]
mod tests;
