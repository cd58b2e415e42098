//! The files that a start as root makes for the user that serves, before it gives root up: folders of caches and of stored
//! bodies, and logs. A check makes nothing, and neither does a reload, whose process may be confined to what was there at the
//! start.

use std::collections::HashSet;
use std::fs::{DirBuilder, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use kettle_config::{Config, Diagnostic, LogTarget, is_to_be_made};
use kettle_kernel::keeper::is_chosen_by_root;
use kettle_kernel::process::{self, Account};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

use super::{Diagnostics, LoadFor};

/// Makes the folders that are missing for the `account` that serves, or says that they are missing.
pub(super) fn make_missing(
    config: &Config,
    load_for: &LoadFor<'_>,
    account: fn(&Config) -> Result<Option<Account>, Vec<Diagnostic>>,
    diagnostics: &mut Diagnostics,
) {
    let missing = config.caches.iter().map(|cache| &cache.directory);
    let missing = missing.filter(|folder| is_to_be_made(&folder.value));
    let of_bodies = of_bodies(config).filter(|folder| is_to_be_made(folder));
    let account = match load_for {
        LoadFor::Check => return,
        // A fault of it is said elsewhere.
        LoadFor::Start => account(config).ok(),
        LoadFor::Reload(_) | LoadFor::Renewal(_) => None,
    };
    if let Some(account) = &account {
        // Without these kettle starts, or says why it does not.
        let _ = of_bodies.map(|folder| make(folder, account.as_ref()));
        if let Some(account) = account.as_ref().filter(|account| !account.is_current()) {
            for log in logs(config).filter(|log| is_to_be_given(log)) {
                let _ = give_log(log, account);
            }
        }
    }
    for folder in missing {
        let written = folder.value.display().to_string();
        let (message, help) = match &account {
            None if matches!(load_for, LoadFor::Start) => continue,
            None => {
                (format!("the folder {written} is missing"), "restart kettle: a start makes it")
            }
            Some(account) => match make(&folder.value, account.as_ref()) {
                Ok(()) => {
                    tracing::info!("made the folder {written} for a cache");
                    continue;
                }
                Err(error) => (
                    format!("the folder {written} is missing and cannot be made: {error}"),
                    "make it for the user that serves, or name one that this user may make",
                ),
            },
        };
        let help = Some(help.to_owned());
        diagnostics.mistakes.push(config.diagnostic(folder.at, &written, message, help));
    }
}

/// The folder where bodies of requests are stored, if any are.
fn of_bodies(config: &Config) -> Option<&Path> {
    config.stores_bodies().then_some(config.server.state_directory.as_path())
}

/// The files of access logs.
fn logs(config: &Config) -> impl Iterator<Item = &Path> {
    config.access_logs().filter_map(|(_, target)| match target {
        LogTarget::Path(path) => Some(path.as_path()),
        _ => None,
    })
}

/// Tells of which paths it is true that a start as root, which this process would be, makes them where the user that serves could
/// not.
pub(super) fn are_made_by_root(config: &Config) -> impl Fn(&Path) -> bool {
    let is_root = process::is_root();
    let caches = config.caches.iter().map(|it| it.directory.value.as_path());
    let folders: HashSet<&Path> = caches.chain(of_bodies(config)).filter(|_| is_root).collect();
    let logs: HashSet<&Path> = logs(config).filter(|_| is_root).collect();
    // Stored bodies have a folder in the one that is made.
    let bodies = config.server.stored_bodies();
    move |path| {
        let folder = if path == bodies { parent(path) } else { path };
        folders.contains(folder) && is_to_be_made(folder) && is_roots(parent(folder))
            || logs.contains(path) && is_to_be_given(path)
    }
}

/// True if a log is missing or root's in a folder where nobody else can have put it, and which everybody may enter.
fn is_to_be_given(log: &Path) -> bool {
    let may_enter = |folder: &Path| folder.metadata().is_ok_and(|it| it.mode() & 0o001 != 0);
    let is_roots_file = |found: Metadata| found.is_file() && found.uid() == 0 && found.nlink() == 1;
    let Ok(folder) = parent(log).canonicalize() else { return false };
    is_roots(&folder)
        && folder.ancestors().all(may_enter)
        && match log.symlink_metadata() {
            Ok(found) => is_roots_file(found),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
}

/// Makes a log for the user that serves, or gives it to that user. nginx opens its logs as root, so these are root's.
fn give_log(log: &Path, account: &Account) -> io::Result<()> {
    let name = log.file_name().ok_or(ErrorKind::InvalidInput)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(parent(log), flags, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, name, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP)?;
    Ok(rustix::fs::fchown(&file, Some(Uid::from_raw(account.uid())), None)?)
}

/// Makes a folder that this account has. Only where it may not do so itself, and nobody but root could have put something else on the
/// way, root does it.
pub(super) fn make(folder: &Path, account: Option<&Account>) -> io::Result<()> {
    let make_own = || DirBuilder::new().mode(0o700).create(folder);
    let made = match account.filter(|account| !account.is_current()) {
        None => make_own(),
        Some(account) => match account.ask(make_own).map_err(io::Error::other)? {
            Err(error)
                if error.kind() == ErrorKind::PermissionDenied && is_roots(parent(folder)) =>
            {
                make_for(folder, account)
            }
            made => made,
        },
    };
    match made {
        // Two caches may name one.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }
}

fn make_for(folder: &Path, account: &Account) -> io::Result<()> {
    let name = folder.file_name().ok_or(ErrorKind::InvalidInput)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = rustix::fs::open(parent(folder), flags, Mode::empty())?;
    rustix::fs::mkdirat(&above, name, Mode::RWXU)?;
    let uid = Uid::from_raw(account.uid());
    let gid = Gid::from_raw(account.gid());
    let given = rustix::fs::openat(&above, name, flags | OFlags::NOFOLLOW, Mode::empty())
        .and_then(|made| rustix::fs::fchown(&made, Some(uid), Some(gid)));
    if given.is_err() {
        // The next start would find it, and could keep nothing in it.
        let _ = rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR);
    }
    Ok(given?)
}

/// True if nobody but root can put anything there, or in the way to it.
fn is_roots(folder: &Path) -> bool {
    let is_closed = |found: Metadata| found.uid() == 0 && found.mode() & 0o022 == 0;
    is_chosen_by_root(folder) && folder.metadata().is_ok_and(is_closed)
}

fn parent(folder: &Path) -> &Path {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use kettle_skip::skip;
    use tempfile::TempDir;

    use super::*;

    fn is_private_of(folder: &Path, uid: u32) -> bool {
        let found = fs::symlink_metadata(folder).unwrap();
        found.is_dir() && found.mode() & 0o777 == 0o700 && found.uid() == uid
    }

    #[test]
    fn a_folder_is_made_below_one_that_is_there_and_only_once() {
        let above = TempDir::new().unwrap();
        let folder = above.path().join("cache");
        assert!(is_to_be_made(&folder));
        let own = rustix::process::geteuid().as_raw();
        for _ in 0..2 {
            make(&folder, None).unwrap();
            assert!(is_private_of(&folder, own));
        }
        assert!(!is_to_be_made(&folder));
        assert!(!is_to_be_made(&above.path().join("no/parent")));
        symlink("nowhere", above.path().join("link")).unwrap();
        assert!(!is_to_be_made(&above.path().join("link")));
        fs::write(above.path().join("file"), "").unwrap();
        assert!(make(&above.path().join("file"), None).is_err());
    }

    #[test]
    fn a_log_of_roots_is_given_where_only_root_can_have_put_it() {
        let Some(account) = Account::find("nobody", None).ok().filter(|_| process::is_root())
        else {
            return skip("not run as root, or there is no `nobody`");
        };
        let above = tempfile::Builder::new().prefix(".kettle").tempdir_in("/var/lib").unwrap();
        let mode = |mode| fs::set_permissions(above.path(), fs::Permissions::from_mode(mode));
        let at = |name| above.path().join(name);
        mode(0o755).unwrap();
        fs::write(at("of root"), "kept").unwrap();
        for log in [at("new"), at("of root")] {
            assert!(is_to_be_given(&log));
            give_log(&log, &account).unwrap();
            assert_eq!(log.metadata().unwrap().uid(), account.uid());
            assert!(!is_to_be_given(&log), "only once");
        }
        assert_eq!(fs::read_to_string(at("of root")).unwrap(), "kept");
        fs::hard_link(at("of root"), at("linked")).unwrap();
        std::os::unix::fs::chown(at("of root"), Some(0), None).unwrap();
        symlink("of root", at("symlink")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        for log in ["of root", "linked", "symlink", "folder", "folder/no/log"] {
            assert!(!is_to_be_given(&at(log)), "{log}");
        }
        for others_may in [0o775, 0o757, 0o700] {
            mode(others_may).unwrap();
            assert!(!is_to_be_given(&at("another")), "{others_may:o}");
        }
    }

    #[test]
    fn root_makes_it_for_the_user_that_serves() {
        let Some(account) = Account::find("nobody", None).ok().filter(|_| process::is_root())
        else {
            return skip("not run as root, or there is no `nobody`");
        };
        // A folder where the user may write itself, one where only root may, and one where somebody else may.
        for (mode, owner, is_made) in
            [(0o777, 0, true), (0o755, 0, true), (0o755, 1, false), (0o775, 1, false)]
        {
            // Each step to it is root's alone.
            let above = tempfile::Builder::new().prefix(".kettle").tempdir_in("/var/lib").unwrap();
            fs::set_permissions(above.path(), fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(above.path(), Some(owner), None).unwrap();
            let folder = above.path().join("cache");
            assert_eq!(make(&folder, Some(&account)).is_ok(), is_made, "{mode:o} {owner}");
            assert!(!is_made || is_private_of(&folder, account.uid()), "{mode:o} {owner}");
        }
    }
}
