//! Varnish behind hitch: how those who run both keep responses. hitch ends TLS, Varnish has the bodies in memory.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use super::config::CACHE_GIB;
use super::error::PeerError;
use super::exit;
use super::find;
use super::launch::{self, Awaited, Launched};
use super::release::Release;
use super::subject::Setup;

#[derive(Debug)]
pub(super) struct Varnish {
    /// The address where it takes plain HTTP.
    pub(super) address: SocketAddr,
    /// Its command, as a comment, and what it was configured with.
    pub(super) config: String,
    launched: Launched,
}

impl Varnish {
    /// Starts one before a backend, on the processors of this setup, and waits until it takes connections.
    pub(super) fn start(setup: &Setup, backend: SocketAddr) -> Result<Self, PeerError> {
        let program = executable().ok_or_else(|| PeerError::Unprepared(MISSING.to_owned()))?;
        let address = launch::free_address()?;
        let vcl = vcl(backend);
        let path = setup.folder.join("varnish.vcl");
        fs::write(&path, &vcl).map_err(PeerError::unwritable(&path))?;
        let log = setup.folder.join("varnish.log");
        let mut command = Command::new(program);
        // In the foreground, as whoever started it: the folder is that user's alone.
        command.args(["-F", "-j", "none", "-n"]).arg(setup.folder.join("varnish"));
        command.arg("-a").arg(address.to_string()).arg("-f").arg(&path);
        command.arg("-s").arg(format!("malloc,{CACHE_GIB}g"));
        let config = format!("# {}\n{vcl}", launch::words(&command).join(" "));
        let awaited = Awaited { program: NAME, address, processes: PROCESSES, log: &log };
        let launched = Launched::start(command, &setup.cpus, &awaited)?;
        Ok(Self { address, config, launched })
    }

    pub(super) fn processes(&self) -> Vec<u32> {
        self.launched.processes()
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
const MISSING: &str = "there is no Varnish; apt-get install varnish";
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
