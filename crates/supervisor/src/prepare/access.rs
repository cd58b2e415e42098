//! The files that kettle needs to read and write while it serves, tried as the user it then is.
//!
//! A start as root opens everything with root's rights, so what `server.user` may not do shows later: at the first reload
//! after a renewal, at a rotation, or as a 403. Only refused permissions are found here; what is missing is not.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kettle_config::{Config, Diagnostic, Listener, Located, LogTarget, Position};
use kettle_kernel::keeper::{self, is_chosen_by_root};
use kettle_kernel::process::{self, Account, PrivilegeError, group_id, group_name, user_id};
use kettle_kernel::socket::unix::Rights;
use rustix::fs::{Access, OFlags, access};
use rustix::io::Errno;

use super::{Diagnostics, made_by_root};

/// Returns the account that serves, if the configuration names it.
///
/// # Errors
///
/// Returns a diagnostic where the user or the group is not there, or this process cannot become them.
pub fn account(config: &Config) -> Result<Option<Account>, Vec<Diagnostic>> {
    let account = named(config)?;
    if let (Some(account), Some(user)) = (&account, &config.server.user)
        && !can_become(account)
    {
        let message = format!("only root can become the user `{user}`");
        let help = format!("run this command as root or as `{user}`, or leave `user` out");
        return Err(vec![of_user(config, message, Some(help))]);
    }
    Ok(account)
}

/// The account that the configuration names, whoever asks.
fn named(config: &Config) -> Result<Option<Account>, Vec<Diagnostic>> {
    let Some(user) = &config.server.user else { return Ok(None) };
    let found = Account::find(user, config.server.group.as_deref());
    let account = found.map_err(|error| {
        let (setting, written) = match (&error, &config.server.group) {
            (PrivilegeError::UnknownGroup(_), Some(group)) => ("server.group", group),
            _ => ("server.user", user),
        };
        vec![config.diagnostic(config.position_of(setting), written, error.to_string(), None)]
    })?;
    Ok(Some(account))
}

/// Whose the file of a listener's socket is, and who may connect.
///
/// # Errors
/// That there is no such user or group.
pub fn socket_rights(config: &Config, listener: &Listener) -> Result<Rights, Vec<Diagnostic>> {
    // Of the account itself others speak.
    let account = account(config).ok().flatten();
    let find = |named: &Option<Located<String>>, find: fn(&str) -> Result<u32, PrivilegeError>| {
        let Some(name) = named else { return Ok(None) };
        find(name)
            .map(Some)
            .map_err(|error| vec![config.diagnostic(name.at, name, error.to_string(), None)])
    };
    let owner = find(&listener.owner, user_id)?;
    let group = find(&listener.group, group_id)?;
    Ok(Rights {
        mode: listener.socket_mode(),
        owner: owner.or(account.as_ref().map(|account| account.uid())),
        group: group.or(account.as_ref().map(|account| account.gid())),
    })
}

fn can_become(account: &Account) -> bool {
    process::is_root() || account.is_current()
}

fn of_user(config: &Config, message: String, help: Option<String>) -> Diagnostic {
    let user = config.server.user.as_deref().unwrap_or_default();
    config.diagnostic(config.position_of("server.user"), user, message, help)
}

/// [`check`] for whoever runs `kettle check`: what this user may do says nothing of another that will serve.
pub(super) fn check_by_anybody(config: &Config, diagnostics: &mut Diagnostics) {
    match named(config) {
        Ok(Some(account)) if !can_become(&account) => {
            let user = config.server.user.as_deref().unwrap_or_default();
            let message = format!("what the user `{user}` may read and write is not tried");
            let help = format!("run this command as root or as `{user}` to see it, too");
            diagnostics.warnings.push(of_user(config, message, Some(help)));
        }
        Ok(account) => check(config, account.as_ref(), diagnostics),
        Err(mistakes) => diagnostics.add_mistakes(mistakes),
    }
}

/// Finds what `account`, or else the user of this process, may not do. Such a server starts, mostly, and serves badly.
pub(super) fn check(config: &Config, account: Option<&Account>, diagnostics: &mut Diagnostics) {
    let mut needs = needs(config);
    for need in &mut needs {
        need.real = need.path.canonicalize().ok();
    }
    let is_the_keepers = |need: &Need<'_>| need.is_of_reload() && is_chosen_by_root(&need.path);
    if keeper::is_there() {
        needs.retain(|need| !is_the_keepers(need));
    }
    if account.is_some_and(|account| !account.is_current()) {
        let is_made_by_root = made_by_root::are_made_by_root(config);
        needs.retain(|need| !is_made_by_root(&need.path));
    }
    for need in needs.iter().filter(|need| need.is_pipe_without_reader()) {
        let written = need.path.display().to_string();
        let message = format!(
            "nobody reads the pipe {written}: its reader must be there before kettle starts"
        );
        diagnostics.warnings.push(config.diagnostic(need.at, &written, message, None));
    }
    let all = || needs.iter().map(Need::refusal).collect::<Vec<_>>();
    let refusals = match account.filter(|account| !account.is_current()) {
        Some(account) => account.ask(all),
        None => Ok(all()),
    };
    let refusals = match refusals {
        Ok(refusals) => refusals,
        Err(error) => {
            let message = format!("what this user may read cannot be tried: {error}");
            diagnostics.mistake(config, config.position_of("server.user"), "", message);
            return;
        }
    };
    for (need, refusal) in needs.iter().zip(refusals) {
        let Some(refusal) = refusal else { continue };
        diagnostics.lacks_log |= need.act == Act::Append;
        let message = need.message(config, &refusal);
        let help = refusal.help(config, account);
        let written = need.path.display().to_string();
        // Which user will start this server is not known here.
        let (found, message) = match account.is_some() && is_the_keepers(need) {
            true => (&mut diagnostics.warnings, format!("{message}, {UNLESS_ROOT_STARTS_IT}")),
            false => (&mut diagnostics.serious, message),
        };
        found.push(config.diagnostic(need.at, &written, message, Some(help)));
    }
}

/// The files that a configuration has read again at each reload.
pub(crate) fn files_read(config: &Config) -> impl Iterator<Item = Cow<'_, Path>> {
    needs(config).into_iter().filter(Need::is_of_reload).map(|need| need.path)
}

/// Something the serving user must be able to do.
pub(crate) struct Need<'c> {
    pub(crate) at: Position,
    /// With what.
    pub(crate) path: Cow<'c, Path>,
    /// The path without symbolic links, for whoever tries the need: folders on the way there may refuse as well.
    real: Option<PathBuf>,
    /// The act there.
    pub(crate) act: Act,
    /// The consequence otherwise.
    consequence: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Read a file.
    Read,
    /// Open files in a folder.
    Search,
    /// The same, and read what the folder holds.
    List,
    /// Append to a file, which may yet have to be made.
    Append,
    /// Make files in a folder, which may yet have to be made.
    Keep,
    /// Read what another process of ours makes there.
    Fetched,
}

/// Why a need is not met.
struct Denial {
    /// The path that refuses: the file itself, or a folder on the way.
    by: PathBuf,
    /// The permission it would take, as chmod writes it.
    wanted: &'static str,
    /// True if certificates and keys are what cannot be read.
    is_of_key: bool,
}

/// All that a server with this configuration opens while it serves: the one list that a check of permissions, the keeper and
/// the sandbox go by.
pub(crate) fn needs(config: &Config) -> Vec<Need<'_>> {
    let mut needs = Vec::new();
    let of_reload = |path, act| Need::new(Position::NOT_WRITTEN, path, act, RELOAD_FAILS);
    if !config.path.as_os_str().is_empty() {
        needs.push(of_reload(&config.path, Act::Read));
    }
    needs.extend(config.folders_read.iter().map(|folder| of_reload(folder, Act::List)));
    let files = config.files_of_reloads().into_iter();
    needs.extend(files.map(|file| Need::of(file, Act::Read, RELOAD_FAILS)));
    for site in &config.sites {
        for page in site.error_page_files() {
            needs.push(Need::of(page, Act::Read, "it is not shown"));
        }
        needs.extend(
            site.roots_of_conditions()
                .map(|root| Need::of(root, Act::Search, "nothing is found there")),
        );
        for route in &site.routes {
            let act = if route.listing { Act::List } else { Act::Search };
            needs.extend(route.root.iter().map(|root| Need::of(root, act, "requests get 403")));
        }
    }
    for (setting, target) in config.access_logs() {
        if let LogTarget::Path(path) = target {
            let at = config.position_of(&setting);
            needs.push(Need::new(at, path, Act::Append, "kettle does not start"));
        }
    }
    for cache in &config.caches {
        needs.push(Need::of(&cache.directory, Act::Keep, "nothing is kept there"));
    }
    if config.sites.iter().any(|site| site.self_signed && site.certificates.is_empty()) {
        let at = config.position_of("server.state_directory");
        let consequence = "a generated certificate cannot be kept and renewed";
        needs.push(Need::new(at, config.server.generated_certificates(), Act::Keep, consequence));
    }
    if config.wanted_certificates().next().is_some() {
        let at = config.position_of("server.state_directory");
        let consequence = "no certificate can be fetched";
        needs.push(Need::new(at, config.server.fetched_certificates(), Act::Fetched, consequence));
    }
    if config.stores_bodies() {
        let at = config.position_of("server.state_directory");
        let consequence =
            "bodies of requests of more than 64 KiB get 503 on routes that store them";
        needs.push(Need::new(at, config.server.stored_bodies(), Act::Keep, consequence));
    }
    needs
}

impl<'c> Need<'c> {
    fn of(path: &'c Located<PathBuf>, act: Act, consequence: &'static str) -> Self {
        Self::new(path.at, path.value.as_path(), act, consequence)
    }

    fn new(
        at: Position,
        path: impl Into<Cow<'c, Path>>,
        act: Act,
        consequence: &'static str,
    ) -> Self {
        Self { at, path: path.into(), real: None, act, consequence }
    }

    /// True if it is there for reloads, in which a keeper reads and lists for the server.
    pub(crate) fn is_of_reload(&self) -> bool {
        self.act == Act::Read || (self.act == Act::List && self.consequence == RELOAD_FAILS)
    }

    /// Tries it. Called as the serving user.
    fn refusal(&self) -> Option<Denial> {
        let is_refused = |error: &io::Error| {
            matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
        };
        self.attempt().err().filter(is_refused)?;
        let real = self.real.as_deref();
        let mut folders = [Some(&*self.path), real].into_iter().flatten().flat_map(folders_above);
        let (by, wanted) = match folders.find(|folder| may(folder, Access::EXEC_OK).is_err()) {
            // To be let in is not all that it takes to make a file there.
            Some(folder) if self.makes_in(folder) => (folder, "wx"),
            Some(folder) => (folder, "x"),
            None => self.last_step(),
        };
        Some(Denial { by: by.to_owned(), wanted, is_of_key: self.act == Act::Read })
    }

    /// True if it is a log for which a start would wait for nobody.
    fn is_pipe_without_reader(&self) -> bool {
        let is_pipe = |path: &Path| path.metadata().is_ok_and(|it| it.file_type().is_fifo());
        let has_none = |error: &io::Error| error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        let is_log = self.act == Act::Append && self.real.as_deref().is_some_and(is_pipe);
        is_log && self.attempt().is_err_and(|error| has_none(&error))
    }

    /// True if it would be made in this folder.
    fn makes_in(&self, folder: &Path) -> bool {
        matches!(self.act, Act::Append | Act::Keep | Act::Fetched)
            && folder == nearest_folder(&self.path)
    }

    fn attempt(&self) -> io::Result<()> {
        match self.act {
            Act::Read => self.open(OpenOptions::new().read(true)),
            Act::Search => may(&self.path, Access::EXEC_OK),
            Act::List => may(&self.path, Access::READ_OK | Access::EXEC_OK),
            Act::Append => self.or_make(|| self.open(OpenOptions::new().append(true))),
            Act::Keep | Act::Fetched => {
                self.or_make(|| may(&self.path, Access::WRITE_OK | Access::EXEC_OK))
            }
        }
    }

    /// Really opens it, because a security module may refuse what the mode allows.
    fn open(&self, options: &mut OpenOptions) -> io::Result<()> {
        // A pipe must not make us wait for its other end.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        options.custom_flags(flags).open(&self.path).map(drop)
    }

    /// A file that is not there yet needs a folder to be made in.
    fn or_make(&self, attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let above = nearest_folder(&self.path);
                may(above, Access::WRITE_OK | Access::EXEC_OK)
            }
            outcome => outcome,
        }
    }

    /// Returns the step that refuses when every folder on the way lets the user pass.
    fn last_step(&self) -> (&Path, &'static str) {
        match self.act {
            Act::Read => (&self.path, "r"),
            Act::Search => (&self.path, "x"),
            Act::List => (&self.path, "rx"),
            Act::Append if self.path.exists() => (&self.path, "w"),
            Act::Keep | Act::Fetched if self.path.exists() => (&self.path, "wx"),
            Act::Append | Act::Keep | Act::Fetched => (nearest_folder(&self.path), "wx"),
        }
    }

    fn message(&self, config: &Config, refusal: &Denial) -> String {
        let who = match &config.server.user {
            Some(user) => format!("the user `{user}`, which kettle becomes,"),
            None => "the user that runs this command".to_owned(),
        };
        let act = match self.act {
            Act::Read => "read",
            Act::Search => "open files in",
            Act::List => "list",
            Act::Append => "write to",
            Act::Keep | Act::Fetched => "keep files in",
        };
        let path = self.path.display();
        let by = if refusal.by == self.path {
            String::new()
        } else {
            format!(" (because of {})", refusal.by.display())
        };
        format!("{who} may not {act} {path}{by}: {}", self.consequence)
    }
}

impl Denial {
    /// One command that mends it.
    fn help(&self, config: &Config, account: Option<&Account>) -> String {
        let Self { by, wanted, is_of_key } = self;
        let shown = by.display();
        let (Some(user), Some(account)) = (&config.server.user, account) else {
            return format!("give this user the permission `{wanted}` on {shown}");
        };
        let metadata = by.metadata();
        let (owner_group, mode) =
            metadata.map_or((ROOT, 0), |metadata| (metadata.gid(), metadata.mode()));
        let bits = wanted.bytes().map(|letter| match letter {
            b'r' => 0o40,
            b'w' => 0o20,
            _ => 0o10,
        });
        let group_may = bits.into_iter().all(|bit| mode & bit != 0);
        match wanted.contains('w') {
            // A folder of the system's is not for every server to write.
            true if by.is_dir() => format!(
                "give that user a folder of its own: `install -d -o {user} -m 750 FOLDER`, or \
                 packaging/tmpfiles.d/kettle.conf"
            ),
            true => format!("`chown {user} {shown}`"),
            false if group_may && owner_group != ROOT && !account.in_group(owner_group) => {
                format!("`usermod -aG {} {user}`", group_name(owner_group))
            }
            false => {
                let group = group_name(account.gid());
                let page = if *is_of_key { format!("; {KEYS_PAGE}") } else { String::new() };
                format!("`chgrp {group} {shown} && chmod g+{wanted} {shown}`{page}")
            }
        }
    }
}

fn may(path: &Path, what: Access) -> io::Result<()> {
    Ok(access(path, what)?)
}

/// From the root down, without the path itself.
fn folders_above(path: &Path) -> impl Iterator<Item = &Path> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    folders.into_iter().filter(|folder| !folder.as_os_str().is_empty())
}

/// The lowest folder above a path that is there.
fn nearest_folder(path: &Path) -> &Path {
    path.ancestors().skip(1).find(|folder| folder.exists()).unwrap_or(Path::new("."))
}

const RELOAD_FAILS: &str = "the next reload fails, as after a renewal";

const UNLESS_ROOT_STARTS_IT: &str = "unless root starts kettle, whose keeper then reads it";

const KEYS_PAGE: &str = "for keys, certbot's among them, see \
     https://github.com/kettle-tls/kettle/blob/main/docs/starting.md#keys-and-certbot";

const ROOT: u32 = 0;

#[cfg(test)]
mod tests;
