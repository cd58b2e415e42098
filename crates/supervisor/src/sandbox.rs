//! Least rights: what the serving process can still do once it has started, so that a fault in it is worth little. Decision
//! 0004 has the reasons. The keeper is another process and has bounds of its own.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use kettle_config::{Config, Diagnostic, Listener, Position, Sandboxing, ServerAddress, Symlinks};
use kettle_kernel::keeper::{self, is_chosen_by_root};
use kettle_kernel::sandbox::{Confined, Files, confine_calls, confine_files, landlock_version};

use crate::prepare::{Act, Need, needs};
use real_paths::RealPaths;
use secrets::Secrets;

mod real_paths;
mod secrets;

/// The confinement of this process since its start.
#[derive(Debug, Default)]
pub(crate) struct Sandbox {
    /// The files that may be opened, without symbolic links; nothing where that is not confined.
    files: Option<Files>,
    /// Which file or folder each of these was at the start: the kernel goes by that and not by names.
    known: HashMap<PathBuf, (u64, u64)>,
    /// The message about it, in one line.
    line: String,
    /// The steps that could not be done.
    obstacles: Vec<String>,
}

impl Sandbox {
    /// Confines this process to what its configuration needs, as far as that is wanted and can be done. While there is one
    /// thread, and once all is done that the server never does again.
    ///
    /// # Errors
    /// The steps that could not be done, where the configuration requires it.
    pub(crate) fn enter(config: &Config) -> Result<Self, Vec<Diagnostic>> {
        if config.server.sandbox == Sandboxing::Off {
            return Ok(Self { line: "off".to_owned(), ..Self::default() });
        }
        let needs = needs(config);
        // A file that is not there cannot be allowed. That it cannot be made is found where it is needed.
        let make = |folder: &Path| {
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        };
        let kept = needs.iter().filter(|need| matches!(need.act, Act::Keep | Act::Fetched));
        kept.for_each(|need| make(&need.path));
        if config.server.state_directory.is_dir() {
            written_by_reloads(config).iter().for_each(|folder| make(folder));
        }
        let mut paths = RealPaths::default();
        let files = files_of(config, &needs, &mut paths);
        tracing::debug!(looks = paths.asked, folders = files.read.len(), "what may be opened");
        let version = landlock_version().unwrap_or_default();
        let opened = confine_files(&files);
        // Last, because after it nothing more can be given up.
        let called = confine_calls(Confined::Server, !files.sockets.is_empty());
        let parts = [
            (
                "files",
                format!("opens only what was configured at the start (Landlock {version})"),
                &opened,
            ),
            (
                "system calls",
                "makes only the system calls of a server (seccomp)".to_owned(),
                &called,
            ),
        ];
        let mut sandbox = Self::default();
        for (what, done, outcome) in parts {
            match outcome {
                Ok(()) if sandbox.line.is_empty() => sandbox.line = done,
                Ok(()) => sandbox.line += &format!(", {done}"),
                Err(error) => sandbox.obstacles.push(format!("{what} are not confined: {error}")),
            }
        }
        if sandbox.obstacles.is_empty() || config.server.sandbox != Sandboxing::Required {
            if opened.is_ok() {
                sandbox.know(files);
            }
            return Ok(sandbox);
        }
        let message = format!("of this server {}", sandbox.obstacles.join("; "));
        let help = Some("write \"auto\" to serve all the same".to_owned());
        Err(vec![config.diagnostic(config.position_of("server.sandbox"), "", message, help)])
    }

    /// Returns the steps that could not be done.
    pub(crate) fn obstacles(&self) -> &[String] {
        &self.obstacles
    }

    fn know(&mut self, files: Files) {
        let all = files.read.iter().chain(&files.write);
        self.known = all.filter_map(|path| Some((path.clone(), identity(path)?))).collect();
        self.files = Some(files);
    }

    /// Returns the paths that another configuration names and this process cannot open since its start; or, of one that is in
    /// force, of the files that are read anew.
    pub(crate) fn refusals(&self, config: &Config, is_renewal: bool) -> Vec<Diagnostic> {
        let Some(files) = &self.files else { return Vec::new() };
        let allowed = self.still_there(files, Secrets::of(config));
        let is_the_keepers = |need: &Need<'_>| {
            keeper::is_there() && need.is_of_reload() && is_chosen_by_root(&need.path)
        };
        // Sorted.
        let renewed = is_renewal.then(|| config.watched_files());
        let is_asked = |need: &Need<'_>| {
            renewed.as_ref().is_none_or(|files| files.binary_search(&&*need.path).is_ok())
        };
        let mut paths = RealPaths::default();
        let asked = needs(config).into_iter().filter(is_asked);
        let refused = asked.filter(|need| !allowed.has(need, &mut paths));
        let mut diagnostics: Vec<Diagnostic> = refused
            .filter(|need| !is_the_keepers(need))
            .map(|need| {
                let path = need.path.display().to_string();
                let message = format!("this server cannot open {path}: {SINCE_THE_START}");
                config.diagnostic(need.at, &path, message, Some(RESTART.to_owned()))
            })
            .collect();
        if is_renewal {
            return diagnostics;
        }
        let makes: HashSet<_> = files.sockets.iter().map(PathBuf::as_path).collect();
        for (folder, listener) in socket_folders(config) {
            // That a folder is not there is found where the socket is made.
            if paths.real(folder).is_some_and(|real| !is_below(&real, &makes)) {
                let folder = folder.display();
                let message =
                    format!("this server cannot make a socket in {folder}: {SINCE_THE_START}");
                let address = &listener.address;
                let at = address.at;
                let offending = address.to_string();
                diagnostics.push(config.diagnostic(
                    at,
                    &offending,
                    message,
                    Some(RESTART.to_owned()),
                ));
            }
        }
        let reads = |path: &str| allowed.reads(Path::new(path));
        for (is_out_of_reach, what) in [
            (has_backends(config) && !files.connect, "connect to backends"),
            (looks_up_names(config) && !reads("/etc"), "look up the names of backends for long"),
            (follows_links(config) && !reads("/"), "follow links anywhere"),
        ] {
            if is_out_of_reach {
                let message = format!("this server cannot {what}: {SINCE_THE_START}");
                let at = Position::NOT_WRITTEN;
                diagnostics.push(config.diagnostic(at, "", message, Some(RESTART.to_owned())));
            }
        }
        diagnostics
    }
}

impl Sandbox {
    /// Returns the files that may be opened, without what another file or folder has taken the place of: that one may not.
    fn still_there<'f>(&self, files: &'f Files, secrets: Secrets) -> Allowed<'f> {
        let is_the_same = |path: &&PathBuf| {
            self.known.get(*path).is_none_or(|known| identity(path) == Some(*known))
        };
        let still = |list: &'f [PathBuf]| list.iter().filter(is_the_same).map(PathBuf::as_path);
        let write: HashSet<&Path> = still(&files.write).collect();
        Allowed { read: still(&files.read).chain(write.iter().copied()).collect(), write, secrets }
    }
}

/// Which file or folder a path leads to.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

impl fmt::Display for Sandbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = Some(&self.line).filter(|line| !line.is_empty()).into_iter();
        out.write_str(&parts.chain(&self.obstacles).cloned().collect::<Vec<_>>().join("; "))
    }
}

/// Returns the files that a server with this configuration opens after its start, reloads included.
fn files_of(config: &Config, needs: &[Need<'_>], paths: &mut RealPaths) -> Files {
    let mut files = Files { connect: has_backends(config), ..Files::default() };
    let secrets = Secrets::of(config);
    files.read.extend(USUAL.iter().map(PathBuf::from));
    files.read.extend(std::env::current_exe());
    if follows_links(config) {
        files.read.push(PathBuf::from("/"));
    }
    if looks_up_names(config) {
        // A program that writes resolv.conf anew puts another file in its place, there or where a link leads to.
        files.read.push(PathBuf::from("/etc"));
        files.read.extend(paths.around(Path::new("/etc/resolv.conf"), true));
    }
    let has_sockets = config.listeners.iter().any(|listener| listener.address.unix().is_some());
    if has_sockets || !config.acme.is_empty() {
        // Whose files are is said by names.
        files.read.extend(["/etc/passwd", "/etc/group"].map(PathBuf::from));
    }
    // The folders of the system's authorities, if the environment names them (openssl-env(7)).
    for variable in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        files.read.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    files.write.extend(["/dev/null", "/dev/tty"].map(PathBuf::from));
    files.write.extend(written_by_reloads(config).into_iter().filter(|folder| folder.is_dir()));
    for need in needs {
        match need.act {
            Act::Read => files.read.extend(paths.around(&need.path, true)),
            Act::Search | Act::List => files.read.extend(paths.around(&need.path, false)),
            Act::Append => files.write.extend(written_around(&need.path, &secrets)),
            Act::Keep => files.write.push(need.path.to_path_buf()),
            // Beside it lies what is not for this process.
            Act::Fetched => files.read.push(need.path.to_path_buf()),
        }
    }
    files.sockets.extend(socket_folders(config).map(|(folder, _)| folder.to_owned()));
    let removed = config.removed_at_end.iter().chain(&config.admin.socket);
    files.remove.extend(removed.filter_map(|path| Some(path.parent()?.to_owned())));
    for list in [&mut files.read, &mut files.write, &mut files.remove, &mut files.sockets] {
        // Sites have their folders in common.
        list.sort_unstable();
        list.dedup();
        *list = list.iter().filter_map(|path| paths.real(path)).collect();
        list.sort_unstable();
        list.dedup();
    }
    for list in [&mut files.read, &mut files.write] {
        *list = secrets.left_out_of(std::mem::take(list));
        list.sort_unstable();
        list.dedup();
    }
    files
}

/// Returns the files that a reload may want to write to, whatever the first configuration said: each in a folder of its own,
/// since the accounts of authorities lie beside them.
fn written_by_reloads(config: &Config) -> [PathBuf; 2] {
    [config.server.generated_certificates(), config.server.stored_bodies()]
}

/// Returns the files of a server's issuer: those for looking up names, and the state of certificates.
pub(crate) fn files_of_issuer(state_directory: &Path) -> Files {
    let mut read: Vec<PathBuf> = OF_RESOLVER.iter().map(PathBuf::from).collect();
    read.extend(RealPaths::default().around(Path::new("/etc/resolv.conf"), true));
    let mut write = kettle_acme::state::all_folders(state_directory);
    write.push(PathBuf::from("/dev/null"));
    Files { read, write, connect: true, ..Files::default() }
}

/// The folder of a log, in which rotation makes another, and of what it is a link to; only the file itself where that would
/// be too much.
fn written_around(path: &Path, secrets: &Secrets) -> Vec<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut around = vec![real.clone()];
    if !is_own(&real) && real != Path::new(LOGS) || secrets.are_below(&real) {
        // A file that is not there cannot be allowed. That it cannot be made is found when it is opened.
        let _ = OpenOptions::new().append(true).create(true).open(&path);
        around = vec![path.clone()];
    }
    if path.is_symlink()
        && let Ok(target) = path.canonicalize()
    {
        around.extend(target.parent().filter(|folder| is_own(folder)).map(Path::to_owned));
        around.push(target);
    }
    around
}

/// True if a folder is for what is served, rather than one of the system's or a home directory.
fn is_own(folder: &Path) -> bool {
    let is_home = folder.parent() == Some(Path::new("/home"));
    !is_home && !NOT_OWN.iter().any(|of_system| folder == Path::new(of_system))
}

/// The files that may be opened. Sets: of ten thousand sites each asks whether its files are among those of all.
struct Allowed<'f> {
    read: HashSet<&'f Path>,
    /// These may be read as well.
    write: HashSet<&'f Path>,
    secrets: Secrets,
}

impl Allowed<'_> {
    /// True if a path may be read; a folder around what is not for this process, all else in it.
    fn reads(&self, path: &Path) -> bool {
        is_below(path, &self.read) || self.secrets.is_parted(path, &self.read)
    }

    fn has(&self, need: &Need<'_>, paths: &mut RealPaths) -> bool {
        // A path that is not there is named elsewhere, and pipes have no place.
        match (paths.real(&need.path), need.act) {
            (Some(path), Act::Append | Act::Keep) => is_below(&path, &self.write),
            (Some(path), Act::Read | Act::Search | Act::List | Act::Fetched) => self.reads(&path),
            // It is made by a start.
            (None, Act::Fetched) => false,
            (None, Act::Append | Act::Keep) => {
                let mut above = need.path.ancestors().skip(1);
                let above = above.find_map(|above| above.canonicalize().ok());
                above
                    .is_none_or(|above| above == Path::new("/dev") || is_below(&above, &self.write))
            }
            (None, Act::Read | Act::Search | Act::List) => true,
        }
    }
}

/// True if a path is one of these, or lies below one.
fn is_below(path: &Path, allowed: &HashSet<&Path>) -> bool {
    path.ancestors().any(|above| allowed.contains(above))
}

/// Returns the folders where Unix sockets of listeners are made.
fn socket_folders(config: &Config) -> impl Iterator<Item = (&Path, &Listener)> {
    let listeners = config.listeners.iter();
    listeners.filter_map(|listener| Some((listener.address.unix()?.parent()?, listener)))
}

fn has_backends(config: &Config) -> bool {
    !config.backends.is_empty()
}

fn looks_up_names(config: &Config) -> bool {
    let servers = config.backends.iter().flat_map(|backend| &backend.servers);
    servers.into_iter().any(|server| matches!(server.address.value, ServerAddress::Name(..)))
}

fn follows_links(config: &Config) -> bool {
    let routes = config.sites.iter().flat_map(|site| &site.routes);
    routes.into_iter().any(|route| route.root.is_some() && route.symlinks == Symlinks::Follow)
}

/// The folders where sites and certificates usually are, so that a reload can name more of them, and what libraries read: names
/// of hosts, time zones, processors, the authorities of the system. Permissions hold there as everywhere.
const USUAL: &[&str] = &[
    "/etc/kettle",
    "/etc/hitch",
    "/etc/letsencrypt",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/var/lib/ca-certificates",
    "/srv",
    "/var/www",
    "/usr/share",
    "/usr/local/share",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/lib",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/resolv.conf",
    "/run/systemd/resolve",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/localtime",
    "/proc",
    "/sys",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

/// The files that the C library reads to look up a name.
const OF_RESOLVER: &[&str] = &[
    "/etc",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/lib",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/run/systemd/resolve",
    "/dev/urandom",
];

/// Folders whose other content is none of a server's business, though one of its folders lies there.
const NOT_OWN: &[&str] = &[
    "/",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/proc",
    "/root",
    "/run",
    "/sys",
    "/usr",
    "/var",
    "/var/lib",
    "/var/log",
    "/run/user",
];

/// The folder where logs of all programs are rotated.
const LOGS: &str = "/var/log";

const SINCE_THE_START: &str = "since its start it is confined to what its configuration named then";

const RESTART: &str = "restart it, or see `sandbox` in [server]";

#[cfg(test)]
mod tests;
