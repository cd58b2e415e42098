//! `kettle import`: another program's configuration as a kettle.toml. What imports ask of this machine.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kettle_import::hitch::{self, Dialect};
use kettle_import::{Surroundings, nginx, stunnel};
use kettle_supervisor::prepare;

use crate::cli::{ImportArguments, ImportedProgram};
use crate::output::{fail_with, print, warn_of};

/// Prints the kettle.toml. Exits with 0 if it was made, and, with `--check`, would be served.
pub(crate) fn import(arguments: &ImportArguments) -> ExitCode {
    let machine = ThisMachine;
    let path = machine.folder().join(&arguments.file);
    let made = match arguments.program {
        ImportedProgram::Hitch => hitch::import_file(Dialect::Hitch, &path, &machine),
        ImportedProgram::Stud => hitch::import_file(Dialect::Stud, &path, &machine),
        ImportedProgram::Nginx => nginx::import_file(&path, &machine),
        ImportedProgram::Stunnel => stunnel::import_file(&path, &machine),
    };
    let made = made.and_then(|imported| Ok((imported.config()?, imported)));
    let (config, imported) = match made {
        Ok(made) => made,
        Err(findings) => return fail_with(&findings),
    };
    print(&imported.toml);
    if !arguments.check {
        return ExitCode::SUCCESS;
    }
    let report = prepare::check(&config);
    report.warnings.iter().for_each(warn_of);
    match report.mistakes.as_slice() {
        [] => ExitCode::SUCCESS,
        mistakes => fail_with(mistakes),
    }
}

/// The machine that this program runs on.
pub(crate) struct ThisMachine;

impl Surroundings for ThisMachine {
    fn folder(&self) -> PathBuf {
        // Without one, relative paths stay what they are.
        std::env::current_dir().unwrap_or_default()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = fs::metadata(path)?.len();
        if bytes > CONFIG_BYTES_MAX {
            return Err(io::Error::other("it is too large for a configuration"));
        }
        fs::read_to_string(path)
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn names_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        let name =
            |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(folder)?.map(name).collect()
    }

    fn is_there(&self, path: &Path) -> bool {
        // What cannot be looked at may be there.
        !matches!(path.try_exists(), Ok(false))
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if host == "*" {
            let mut all = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))];
            // As getaddrinfo(3) with AI_ADDRCONFIG: only where this machine has IPv6.
            if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok() {
                all.push(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
            }
            return Ok(all);
        }
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in (host, port).to_socket_addrs()? {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(addresses)
    }
}

/// 10,000 certificates take about 1 MiB.
const CONFIG_BYTES_MAX: u64 = 64 * 1024 * 1024;
