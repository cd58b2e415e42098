//! `kettle import`: another program's configuration as a kettle.toml. The questions of imports to this machine.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use kettle_import::hitch::{self, Dialect};
use kettle_import::{Imported, Surroundings, nginx, stunnel};
use kettle_supervisor::{
    CONFIG_BYTES_MAX, START_PIPE_TIME_MAX, list_folder, open_file, prepare, prepare::Report,
    read_or_wait, reads_as_keeper,
};

use crate::cli::{ImportArguments, ImportedProgram};
use crate::output::{fail, fail_with, print, print_line, warn_of};

/// Prints the kettle.toml. Exits with 0 if it was made and kettle would start with it here.
pub(crate) fn import(arguments: &ImportArguments) -> ExitCode {
    let machine = ThisMachine;
    let path = machine.folder().join(&arguments.file);
    if arguments.for_bench {
        return template(arguments.program, &path, &machine);
    }
    let made = match arguments.program {
        ImportedProgram::Hitch => hitch::import_file(Dialect::Hitch, &path, &machine),
        ImportedProgram::Stud => hitch::import_file(Dialect::Stud, &path, &machine),
        ImportedProgram::Nginx => nginx::import_file(&path, &machine),
        ImportedProgram::Stunnel => stunnel::import_file(&path, &machine),
    };
    let imported = match made {
        Ok(imported) => imported,
        Err(diagnostics) => return fail_with(&diagnostics),
    };
    let config = match imported.config() {
        Ok(config) => config,
        Err(mistakes) if arguments.summary => {
            return summarize(&imported, &Report { mistakes, ..Report::default() });
        }
        Err(diagnostics) => {
            // A part that is missing may have been left out, and nobody sees the text that says so.
            imported.warnings.iter().for_each(warn_of);
            return fail_with(&diagnostics);
        }
    };
    let report = prepare::check(&config);
    if arguments.summary {
        return summarize(&imported, &report);
    }
    print(&imported.toml);
    if arguments.check {
        report.warnings.iter().for_each(warn_of);
    }
    match report.mistakes.as_slice() {
        // nginx would do that as badly, and started.
        mistakes if report.starts => mistakes.iter().for_each(warn_of),
        mistakes => return fail_with(mistakes),
    }
    ExitCode::SUCCESS
}

/// Says what would become of a configuration. The exit code is that of `--help`.
fn summarize(imported: &Imported, Report { mistakes, starts, .. }: &Report) -> ExitCode {
    print(imported.summary());
    if !starts {
        print_line("kettle would not start with it on this machine:");
        return fail_with(mistakes);
    }
    print_line("kettle would start with it on this machine.");
    mistakes.iter().for_each(warn_of);
    match imported.places.closed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(SOME_CLOSED),
    }
}

/// Prints what `kettle bench` starts nginx with.
fn template(program: ImportedProgram, path: &Path, machine: &ThisMachine) -> ExitCode {
    if !matches!(program, ImportedProgram::Nginx) {
        return fail("--for-bench makes templates of nginx.conf only");
    }
    match nginx::template(path, machine) {
        Ok(template) => {
            print(&template);
            ExitCode::SUCCESS
        }
        Err(diagnostics) => fail_with(&diagnostics),
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
        let bytes = read_or_wait(path, CONFIG_BYTES_MAX, START_PIPE_TIME_MAX)?;
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names = list_folder(folder)?.into_iter();
        let files = names.filter(|(_, kind)| kind.is_file());
        Ok(files.map(|(name, _)| name.to_string_lossy().into_owned()).collect())
    }

    fn names_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names = list_folder(folder)?.into_iter();
        Ok(names.map(|(name, _)| name.to_string_lossy().into_owned()).collect())
    }

    fn is_there(&self, path: &Path) -> bool {
        // A path that cannot be looked at may be there.
        !matches!(path.try_exists(), Ok(false))
    }

    fn is_no_folder(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|it| !it.is_dir())
    }

    fn is_file(&self, path: &Path) -> bool {
        open_file(path).and_then(|file| file.metadata()).is_ok_and(|file| file.is_file())
    }

    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let known = || LOOKED_UP.lock().unwrap_or_else(PoisonError::into_inner);
        let hosts = if reads_as_keeper() {
            known().get(host).cloned().ok_or(io::ErrorKind::PermissionDenied)?
        } else {
            let hosts = look_up(host)?;
            known().insert(host.to_owned(), hosts.clone());
            hosts
        };
        Ok(hosts.into_iter().map(|host| SocketAddr::new(host, port)).collect())
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        let bound = TcpListener::bind((ip, 0));
        !bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
    }
}

/// The addresses of a host, each once.
fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    if host == "*" {
        let mut all = vec![IpAddr::from(Ipv4Addr::UNSPECIFIED)];
        // As getaddrinfo(3) with AI_ADDRCONFIG: only where this machine has IPv6.
        if TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok() {
            all.push(Ipv6Addr::UNSPECIFIED.into());
        }
        return Ok(all);
    }
    let mut addresses = Vec::new();
    for address in (host, 0).to_socket_addrs()? {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    Ok(addresses)
}

/// That not all places were carried over.
const SOME_CLOSED: u8 = 3;

/// The last addresses of hosts. The keeper, which was this process once, has what was found before the start, and asks
/// no resolver: that runs much foreign code on what strangers answer.
static LOOKED_UP: Mutex<BTreeMap<String, Vec<IpAddr>>> = Mutex::new(BTreeMap::new());
