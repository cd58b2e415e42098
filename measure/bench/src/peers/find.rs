//! Which of the servers are on this machine, where, in which version and with which OpenSSL.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::exit;
use super::nginx_stream::NginxStream;
use super::release::{self, Release};
use super::subject::Program;
use crate::word::Word;

#[derive(Clone, Debug)]
pub struct Found {
    pub program: Program,
    /// The executable: the program, or the dynamic linker it was unpacked with.
    pub executable: PathBuf,
    /// Arguments before those that say what to do.
    pub arguments: Vec<OsString>,
    pub environment: Vec<(String, OsString)>,
    /// The version, with its TLS library: `nginx 1.22.1, OpenSSL 3.0.19`.
    pub version: String,
    pub(super) release: Option<Release>,
    pub(super) openssl: Option<Release>,
    pub(super) nginx_stream: NginxStream,
}

impl Found {
    /// A command that runs it, without arguments that say what to do.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Finds a server: where its variable points, else in the places programs are in; kettle is the one beside this program.
///
/// # Errors
/// It is not on this machine or does not run: what was looked for, and what mends it.
pub fn find(program: Program) -> Result<Found, String> {
    let name = variable(program);
    let found = match env::var_os(&name) {
        Some(place) => from_place(program, Path::new(&place)).ok_or_else(|| {
            missing(program, &format!("{name} is {}, where it is not", Path::new(&place).display()))
        })?,
        None => search(program)
            .ok_or_else(|| missing(program, &format!("{program} is not installed")))?,
    };
    described(found)
}

/// The server whose executable is this one.
///
/// # Errors
/// A sentence for the user: the executable cannot be run, or does not say its version.
pub fn at(program: Program, executable: &Path) -> Result<Found, String> {
    described(bare(program, executable.to_owned()))
}

fn described(mut found: Found) -> Result<Found, String> {
    let program = found.program;
    let said = exit::output(found.command().arg(version_argument(program)))
        .map_err(|error| missing(program, &format!("{}: {error}", found.executable.display())))?;
    found.release = Release::behind(&said, version_word(program));
    found.openssl = release::openssl(&said);
    if program == Program::Nginx {
        found.nginx_stream = NginxStream::of(&said, found.arguments.is_empty());
    }
    if program == Program::Hitch {
        found.openssl = linked_openssl(&found.executable);
    }
    found.version = match program {
        // With the commit: two builds of one release are two programs.
        Program::Kettle => said.lines().next().unwrap_or_default().to_owned(),
        _ => describe(&found),
    };
    Ok(found)
}

/// The environment variable that names another executable, or for nginx a folder it was unpacked to.
fn variable(program: Program) -> String {
    match program {
        Program::Kettle => "KETTLE_BIN".to_owned(),
        other => format!("KETTLE_{}", other.word().to_ascii_uppercase()),
    }
}

fn search(program: Program) -> Option<Found> {
    let this = env::current_exe().ok().filter(|_| program == Program::Kettle);
    let beside = this.and_then(|this| Some(this.parent()?.join(program.word())));
    let beside = beside.filter(|place| place.is_file());
    let names = match program {
        // Debian's `stunnel` may be the wrapper for the options of version 3.
        Program::Stunnel => &["stunnel4", "stunnel"][..],
        _ => &[program.word()],
    };
    let found = beside.or_else(|| names.iter().find_map(|name| installed(name)));
    found.map(|executable| bare(program, executable)).or_else(|| unpacked_nginx(program))
}

/// The executable of this name in the places programs are in.
pub(super) fn installed(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian keeps servers where a user's PATH does not lead.
    let folders = env::split_paths(&path).chain(SERVER_FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|place| place.is_file())
}

/// The nginx that `cargo xtask measure` unpacks, on machines that have no other.
fn unpacked_nginx(program: Program) -> Option<Found> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?;
    (program == Program::Nginx).then(|| unpacked(&cache.join("kettle/nginx"))).flatten()
}

fn from_place(program: Program, place: &Path) -> Option<Found> {
    if place.is_file() {
        return Some(bare(program, place.to_owned()));
    }
    (program == Program::Nginx).then(|| unpacked(place)).flatten()
}

/// nginx in a folder with the libraries of another Debian: it runs with their dynamic linker.
fn unpacked(tree: &Path) -> Option<Found> {
    let libraries = tree.join("usr-lib/x86_64-linux-gnu");
    let linker = libraries.join("ld-linux-x86-64.so.2");
    let nginx = tree.join("nginx");
    if !linker.is_file() || !nginx.is_file() {
        return None;
    }
    let mut found = bare(Program::Nginx, linker);
    found.arguments = vec!["--library-path".into(), libraries.into(), nginx.into()];
    let openssl_conf = tree.join("ssl/openssl.cnf");
    found.environment = vec![("OPENSSL_CONF".to_owned(), openssl_conf.into())];
    Some(found)
}

fn bare(program: Program, executable: PathBuf) -> Found {
    Found {
        program,
        executable,
        arguments: Vec::new(),
        environment: Vec::new(),
        version: String::new(),
        release: None,
        openssl: None,
        nginx_stream: NginxStream::Absent,
    }
}

fn describe(found: &Found) -> String {
    let release = found.release.as_ref().map_or("of unknown version", |r| r.text.as_str());
    let name = found.program;
    match &found.openssl {
        Some(openssl) => format!("{name} {release}, OpenSSL {openssl}"),
        None => format!("{name} {release}"),
    }
}

/// hitch does not tell; the library it is linked with does, as a text inside.
fn linked_openssl(executable: &Path) -> Option<Release> {
    let listing = exit::output(Command::new("ldd").arg(executable)).ok()?;
    let line = listing.lines().find(|line| line.contains("libcrypto.so"))?;
    let library =
        fs::read(line.split_ascii_whitespace().find(|word| word.starts_with('/'))?).ok()?;
    let name = b"OpenSSL ";
    library
        .windows(VERSION_BYTES_MAX)
        .filter(|window| window.starts_with(name))
        .find_map(|w| Release::behind(std::str::from_utf8(w).ok()?, "OpenSSL "))
}

fn version_argument(program: Program) -> &'static OsStr {
    OsStr::new(match program {
        Program::Kettle => "--version",
        Program::Nginx | Program::Hitch => "-V",
        Program::Haproxy => "-vv",
        Program::Stunnel => "-version",
    })
}

fn version_word(program: Program) -> &'static str {
    match program {
        Program::Kettle => "kettle ",
        Program::Nginx => "nginx/",
        Program::Haproxy => "HAProxy version ",
        Program::Hitch => "hitch ",
        Program::Stunnel => "stunnel ",
    }
}

/// Why a server cannot be had, with the command that mends it.
fn missing(program: Program, why: &str) -> String {
    let mend = match program {
        Program::Kettle => {
            "`cargo build --release -p kettle` builds it beside this program; or set KETTLE_BIN to it"
        }
        Program::Nginx => "apt-get install nginx libnginx-mod-stream",
        Program::Haproxy => "apt-get install haproxy",
        Program::Hitch => "apt-get install hitch",
        Program::Stunnel => "apt-get install stunnel4",
    };
    format!("{why}; {mend}")
}

const SERVER_FOLDERS: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
const VERSION_BYTES_MAX: usize = 24;

#[cfg(test)]
mod tests;
