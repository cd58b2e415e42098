//! A server's life: started on its own processors, awaited until it takes connections, stopped with everything it started.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use kettle_kernel::process;
use sha2::{Digest, Sha256};

use super::config::{self, ConfigInput};
use super::error::PeerError;
use super::exit::{self, START_PATIENCE};
use super::find::Found;
use super::first_answer;
use super::identity;
use super::launch::{self, Awaited, Launched};
use super::own_config;
use super::subject::{OwnConfig, Program, Role, Setup, Subject};
use super::varnish::{self, Varnish};
use crate::word::Word;

/// A server that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    /// The version, and that of Varnish.
    pub version: String,
    /// Its configuration file, whole, and OpenSSL's behind it where the server has one of its own.
    pub config: String,
    /// SHA-256 of the template its configuration was made from.
    pub template_sha256: String,
    pub command: Vec<String>,
    launched: Launched,
    /// The Varnish that keeps the bodies of a hitch that is run as a cache. It is stopped after hitch.
    varnish: Option<Varnish>,
}

/// Starts a server and waits until it has answered a first request, by the path it is to take.
///
/// # Errors
/// [`PeerError`]: something it needs cannot be had, it takes no connections, or it does not answer as it is to be measured.
pub fn start(subject: &Subject, found: &Found, setup: &Setup) -> Result<Running, PeerError> {
    let backend = match setup.backend {
        None if subject.role.has_backend() => {
            let why =
                "what is no file server needs a backend, and none was started; write --roles files";
            return Err(PeerError::Unprepared(why.to_owned()));
        }
        backend => backend,
    };
    // With the folder for a cache, which kettle wants to be there.
    let folder = setup.folder.join(config::CACHE_FOLDER);
    fs::create_dir_all(&folder).map_err(PeerError::unwritable(&folder))?;
    let has_varnish = subject.role == Role::Cache && subject.program == Program::Hitch;
    let behind = backend.filter(|_| has_varnish);
    let varnish = behind.map(|backend| Varnish::start(setup, backend)).transpose()?;
    let backend = varnish.as_ref().map(|varnish| varnish.address).or(backend);
    let setup = &Setup { backend, ..setup.clone() };
    let address = launch::free_address()?;
    let template = template(subject, setup)?;
    let (mut command, config) = prepare(subject, found, setup, address, &template)?;
    command.current_dir(&setup.folder);
    let words = launch::words(&command);
    // It is inherited, and not every server raises it; one that needs more than there is says so itself.
    _ = process::raise_open_files_limit();
    let program = subject.program.word();
    let processes = processes_at_least(subject.program, setup);
    let log = &setup.folder.join("log");
    let awaited = Awaited { program, address, processes, log };
    let mut running = Running {
        address,
        version: with_varnish(&found.version, varnish.as_ref()),
        config: varnish.iter().fold(config, |own, varnish| own + &varnish.config),
        template_sha256: hexadecimal(&Sha256::digest(&template)),
        command: words,
        launched: Launched::start(command, &setup.cpus, &awaited)?,
        varnish,
    };
    if subject.program == Program::Hitch {
        running.keep_workers_to(&setup.cpus).map_err(|error| {
            let why = "does not stay on the processors it was given";
            PeerError::Unprepared(format!("{program} {why}: {error}"))
        })?;
    }
    first_answer::ask(subject, setup, address).map_err(|why| {
        PeerError::Useless(format!("{program} {why}; it said: {}", launch::last_words(log)))
    })?;
    Ok(running)
}

/// Writes the certificate and the configuration. The command that uses them, and the configuration's text.
fn prepare(
    subject: &Subject,
    found: &Found,
    setup: &Setup,
    address: SocketAddr,
    template: &str,
) -> Result<(Command, String), PeerError> {
    // Beside the server's own folder, so that all servers of a run show the same certificate.
    let shared = setup.folder.parent().unwrap_or(&setup.folder);
    let identity = identity::obtain(shared, setup.key)?;
    let stream_module = found.nginx_stream.module();
    let input =
        ConfigInput { subject: *subject, setup, address, identity: &identity, stream_module };
    let text = config_text(&input, found, template)?;
    let path = setup.folder.join(config::file_name(subject.program));
    fs::write(&path, &text).map_err(PeerError::unwritable(&path))?;
    let mut command = command(found, &path, &setup.folder);
    let Some(openssl_conf) = config::openssl_conf(subject.program, setup) else {
        return Ok((command, text));
    };
    let path = setup.folder.join("openssl.cnf");
    fs::write(&path, openssl_conf).map_err(PeerError::unwritable(&path))?;
    command.env("OPENSSL_CONF", &path);
    Ok((command, [text.as_str(), openssl_conf].concat()))
}

/// The template of the configuration is made from: the operator's own, or the one for this program in this role.
fn template(subject: &Subject, setup: &Setup) -> Result<String, PeerError> {
    match &setup.config {
        Some(OwnConfig::Template(path) | OwnConfig::OfNginx(path)) => fs::read_to_string(path)
            .map_err(|error| {
                PeerError::Unprepared(format!("cannot read {}: {error}", path.display()))
            }),
        None => Ok(config::template(subject.program, subject.role).to_owned()),
    }
}

fn config_text(
    input: &ConfigInput<'_>,
    kettle: &Found,
    template: &str,
) -> Result<String, PeerError> {
    let subject = &input.subject;
    let setup = input.setup;
    if !matches!(setup.config, Some(OwnConfig::OfNginx(_))) {
        return config::filled_for(subject.program, input, template);
    }
    let filled = config::filled_for(Program::Nginx, input, template)?;
    // The user that starts it serves.
    let filled = filled.replace("user root;\n", "");
    let path = setup.folder.join(config::file_name(Program::Nginx));
    fs::write(&path, filled).map_err(PeerError::unwritable(&path))?;
    let imported = own_config::import(kettle, &path, &[]).map_err(PeerError::Unprepared)?;
    Ok(own_config::on_path(&imported, subject.path))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Running {
    /// All its processes whose work is the server's work, the first one first.
    pub fn processes(&self) -> Vec<u32> {
        let behind = self.varnish.iter().flat_map(Varnish::processes);
        self.launched.processes().into_iter().chain(behind).collect()
    }

    /// hitch ties its first worker to the machine's first processor, the second to the second, and has no setting for it. Here
    /// they get those that the server was given, in the same order.
    fn keep_workers_to(&mut self, cpus: &[usize]) -> io::Result<()> {
        let processes = self.launched.processes();
        let workers = processes.get(1..).unwrap_or_default();
        let deadline = Instant::now() + START_PATIENCE;
        // They do so before they wait for the first connection.
        while !workers.iter().all(|worker| exit::is_asleep(*worker)) {
            if Instant::now() > deadline || self.launched.has_ended()? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        for (worker, cpu) in workers.iter().zip(cpus.iter().cycle()) {
            process::keep_thread_to_cpus(*worker, &[*cpu])?;
        }
        Ok(())
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
