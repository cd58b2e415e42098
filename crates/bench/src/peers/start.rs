//! A server's life: started on its own processors, awaited until it takes connections, stopped with everything it started.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use kettle_kernel::process;

use super::config::{self, ConfigInput};
use super::error::PeerError;
use super::exit::{self, START_PATIENCE};
use super::find::Found;
use super::first_answer::{self, kernel_connections};
use super::identity;
use super::launch::{self, ATTEMPT_STEP, last_words, unwritable};
use super::own_config;
use super::subject::{OwnConfig, Program, Role, Setup, Subject};
use super::varnish::{self, Varnish};
use crate::word::Word;

/// A server that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    version: String,
    child: Child,
    config: String,
    command: Vec<String>,
    kernel_connections_before: Option<u64>,
    /// What keeps the bodies of a hitch that is run as a cache. It is stopped after hitch.
    varnish: Option<Varnish>,
}

/// Starts a server and waits until it has answered a first request, by the path it is to take.
pub fn start(subject: &Subject, found: &Found, setup: &Setup) -> Result<Running, PeerError> {
    if subject.role.has_backend() && setup.backend.is_none() {
        return Err(PeerError::NoBackend);
    }
    // With the folder for a cache, which kettle wants to be there.
    let folder = setup.folder.join(config::CACHE_FOLDER);
    fs::create_dir_all(&folder).map_err(unwritable(&folder))?;
    let has_varnish = subject.role == Role::Cache && subject.program == Program::Hitch;
    let varnish = has_varnish.then(|| Varnish::start(setup)).transpose()?;
    let setup = &match &varnish {
        Some(varnish) => Setup { backend: Some(varnish.address), ..setup.clone() },
        None => setup.clone(),
    };
    let address = launch::free_address().map_err(PeerError::NoPort)?;
    let (mut command, config) = prepare(subject, found, setup, address)?;
    let log = setup.folder.join("log");
    launch::write_to(&mut command, &log)?;
    command.current_dir(&setup.folder);
    let words = launch::words(&command);
    // It is inherited, and not every server raises it; one that needs more than there is says so itself.
    _ = process::raise_open_files_limit();
    let kernel_connections_before = kernel_connections();
    let program = subject.program.word();
    let mut child = launch::spawn_apart(&mut command, &setup.cpus)
        .map_err(|source| PeerError::NotStarted { program, source })?;
    let listens =
        launch::await_connections(&mut child, address, processes_at_least(subject.program, setup));
    let mut running = Running {
        address,
        version: with_varnish(&found.version, varnish.as_ref()),
        child,
        config: varnish.iter().fold(config, |own, varnish| own + &varnish.config),
        command: words,
        kernel_connections_before,
        varnish,
    };
    listens.map_err(|fault| PeerError::Silent { program, fault, said: last_words(&log) })?;
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

impl Running {
    /// All its processes whose work is the server's work, the first one first.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let behind = self.varnish.iter().flat_map(Varnish::processes);
        exit::group(self.child.id()).into_iter().chain(behind).collect()
    }

    /// What it says of its version, and Varnish of its own.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
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

    /// hitch ties its first worker to the machine's first processor, the second to the second, and has no setting for it. Here
    /// they get those that the server was given, in the same order.
    fn keep_workers_to(&mut self, cpus: &[usize]) -> io::Result<()> {
        let processes = exit::group(self.child.id());
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

fn with_varnish(version: &str, varnish: Option<&Varnish>) -> String {
    let behind = varnish.and_then(|_| varnish::version());
    behind.map_or_else(|| version.to_owned(), |behind| format!("{version}, {behind}"))
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

/// The first process and its workers.
fn processes_at_least(program: Program, setup: &Setup) -> usize {
    match program {
        Program::Nginx | Program::Hitch => 1 + setup.workers,
        Program::Kettle | Program::Haproxy | Program::Stunnel => 1,
    }
}
