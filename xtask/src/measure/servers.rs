//! The servers of `measure native`: started on one processor, found by their process numbers, stopped in the end.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::configs::{self, Place};
use super::reference::Reference;
use crate::vm::cache::{at, create_folder};

/// A running server.
pub struct Server {
    /// Its name in the tables.
    pub name: &'static str,
    /// Where it listens.
    pub port: u16,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts kettle with its records sealed in user space.
    pub fn kettle(program: &Path, folder: &Path, port: u16) -> Result<Self, String> {
        let config = folder.join("kettle.toml");
        configs::write(&config, &place(folder, port).kettle("user", "64 KiB"))?;
        let mut command = pinned(SERVER_CPU, program);
        command.arg("run").arg("--config").arg(&config);
        Self::start("kettle", command, folder, port)
    }

    /// Starts nginx likewise.
    pub fn nginx(reference: &Reference, folder: &Path, port: u16) -> Result<Self, String> {
        let config = folder.join("nginx.conf");
        configs::write(&config, &place(folder, port).nginx(false, true))?;
        let home = folder.join("nginx");
        create_folder(&home)?;
        let nginx = reference.command();
        let mut command = pinned(SERVER_CPU, Path::new(nginx.get_program()));
        command.args(nginx.get_args()).arg("-e").arg("error.log");
        command.arg("-p").arg(&home).arg("-c").arg(&config);
        for (name, value) in nginx.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        Self::start("nginx", command, folder, port)
    }

    fn start(
        name: &'static str,
        mut command: Command,
        folder: &Path,
        port: u16,
    ) -> Result<Self, String> {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Err(format!("something listens on port {port} already; it would be measured"));
        }
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).map_err(|error| at(&log, &error))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut server = Self { name, port, child, log };
        server.await_listening()?;
        Ok(server)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "another program's socket gives no event to wait for"
    )]
    fn await_listening(&mut self) -> Result<(), String> {
        for _ in 0..START_ATTEMPTS_MAX {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            thread::sleep(START_STEP);
        }
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        Err(format!("{} does not listen on port {}: {said}", self.name, self.port))
    }

    /// The processes that do its work: those it has started, or else itself.
    pub fn processes(&self) -> String {
        let id = self.child.id();
        let path = format!("/proc/{id}/task/{id}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        let children: Vec<&str> = children.split_whitespace().collect();
        if children.is_empty() { id.to_string() } else { children.join(",") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx's first process ends its workers when it is asked to stop, not when it is killed.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").arg(&id).status();
        let _ = self.child.wait();
    }
}

/// A command that runs `program` on one processor.
pub fn pinned(cpu: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", cpu]).arg(program);
    command
}

fn place(folder: &Path, port: u16) -> Place<'_> {
    let folder = folder.to_str().unwrap_or_default();
    Place { folder, site: folder, port }
}

/// The processor of the servers.
pub const SERVER_CPU: &str = "0";

/// The processor of the client.
pub const CLIENT_CPU: &str = "1";

const START_STEP: Duration = Duration::from_millis(50);
const START_ATTEMPTS_MAX: u32 = 200;
