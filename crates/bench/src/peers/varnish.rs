//! Varnish behind hitch: how those who run both keep responses. hitch ends TLS, Varnish has the bodies in memory.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command};

use super::config::CACHE_GIB;
use super::error::PeerError;
use super::exit;
use super::find;
use super::launch;
use super::release::Release;
use super::subject::Setup;

/// A Varnish that runs. Dropping it stops it.
#[derive(Debug)]
pub(super) struct Varnish {
    /// Where it takes plain HTTP.
    pub(super) address: SocketAddr,
    /// Its command, as a comment, and what it was configured with.
    pub(super) config: String,
    child: Child,
}

impl Varnish {
    /// Starts one before the backend of this setup, on the same processors, and waits until it takes connections.
    pub(super) fn start(setup: &Setup) -> Result<Self, PeerError> {
        let program = executable().ok_or(PeerError::NoVarnish)?;
        let backend = setup.backend.ok_or(PeerError::NoBackend)?;
        let address = launch::free_address().map_err(PeerError::NoPort)?;
        let vcl = vcl(backend);
        let path = setup.folder.join("varnish.vcl");
        fs::write(&path, &vcl).map_err(launch::unwritable(&path))?;
        let log = setup.folder.join("varnish.log");
        let mut command = Command::new(program);
        // In the foreground, as whoever started it: the folder is that user's alone.
        command.args(["-F", "-j", "none", "-n"]).arg(setup.folder.join("varnish"));
        command.arg("-a").arg(address.to_string()).arg("-f").arg(&path);
        command.arg("-s").arg(format!("malloc,{CACHE_GIB}g"));
        launch::write_to(&mut command, &log)?;
        let config = format!("# {}\n{vcl}", launch::words(&command).join(" "));
        let mut child = launch::spawn_apart(&mut command, &setup.cpus)
            .map_err(|source| PeerError::NotStarted { program: NAME, source })?;
        let listens = launch::await_connections(&mut child, address, PROCESSES);
        let varnish = Self { address, config, child };
        listens.map(|()| varnish).map_err(|fault| PeerError::Silent {
            program: NAME,
            fault,
            said: launch::last_words(&log),
        })
    }

    /// Its two processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        exit::group(self.child.id())
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        exit::stop_group(&mut self.child);
    }
}

/// `Varnish 7.1.1`; `None` if it is not on this machine.
pub(super) fn version() -> Option<String> {
    let said = exit::output(Command::new(executable()?).arg("-V")).ok()?;
    let release = Release::behind(&said, "varnish-")?;
    Some(format!("Varnish {release}"))
}

fn executable() -> Option<PathBuf> {
    find::installed(NAME)
}

/// The rules that are built in do the rest.
fn vcl(backend: SocketAddr) -> String {
    format!(
        "vcl 4.1;\nbackend default {{\n    .host = \"{}\";\n    .port = \"{}\";\n}}\n",
        backend.ip(),
        backend.port()
    )
}

const NAME: &str = "varnishd";
/// The one that keeps the other alive, and the other.
const PROCESSES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_has_its_address_and_its_port() {
        let vcl = vcl("127.0.0.1:8080".parse().unwrap());
        assert!(
            vcl.contains(".host = \"127.0.0.1\";") && vcl.contains(".port = \"8080\";"),
            "{vcl}"
        );
    }
}
