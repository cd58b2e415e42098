//! Checks a configuration that is valid in itself against the file system.
//!
//! Certificates and keys are opened but not understood here; crate `tls` does that.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::foreign::spelling::with_hint;
use crate::located::Located;
use crate::model::{Config, LogTarget, Roots};

/// The largest file taken for a certificate chain, key or OCSP response.
const IDENTITY_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The length of a ticket secret.
const TICKET_SECRET_BYTES: RangeInclusive<u64> = 32..=4_096;

/// The largest file taken for revocation lists.
const CRL_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The largest file taken for users, and for secrets of URLs.
const USERS_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The largest file sent as an error page.
pub const ERROR_PAGE_BYTES_MAX: u64 = 256 * 1024;

/// Looks for the folders and files a configuration names and says which are missing, unreadable
/// or of the wrong sort. diagnostics come in the order of the file.
pub fn check_files(config: &Config) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let of_backends = config.backends.iter().filter_map(|backend| backend.tls.as_ref());
    let own = of_backends.clone().filter_map(|tls| tls.certificate.as_ref());
    for certificate in config.sites.iter().flat_map(|site| &site.certificates).chain(own) {
        let files = [Some(&certificate.chain), Some(&certificate.key), certificate.ocsp.as_ref()];
        for file in files.into_iter().flatten() {
            diagnostics.extend(check_readable(config, file, IDENTITY_FILE_BYTES_MAX));
        }
    }
    for own in config.listener_certificates() {
        for file in [Some(&own.chain), Some(&own.key), own.ocsp.as_ref()].into_iter().flatten() {
            diagnostics.extend(check_readable(config, file, IDENTITY_FILE_BYTES_MAX));
        }
    }
    for tls in of_backends {
        if let Roots::File(roots) = &tls.roots {
            diagnostics.extend(check_readable(config, roots, IDENTITY_FILE_BYTES_MAX));
        }
    }
    diagnostics.extend(config.tls.ticket_secret.as_ref().and_then(|file| {
        let is_short = |bytes| bytes < *TICKET_SECRET_BYTES.start();
        check_readable(config, file, *TICKET_SECRET_BYTES.end()).or_else(|| {
            let bytes = fs::metadata(&file.value).ok()?.len();
            is_short(bytes).then(|| {
                let message =
                    format!("{} has {bytes} bytes; a secret takes 32", file.value.display());
                let help = format!("run `openssl rand -out {} 32`", file.value.display());
                mistake(config, file, message, Some(help))
            })
        })
    }));
    for file in config.users_files().chain(config.url_secrets()) {
        diagnostics.extend(check_readable(config, file, USERS_FILE_BYTES_MAX));
    }
    for client_auth in config.client_auths() {
        diagnostics.extend(check_readable(config, &client_auth.roots, IDENTITY_FILE_BYTES_MAX));
        let crl = client_auth.crl.as_ref();
        diagnostics.extend(crl.and_then(|crl| check_readable(config, crl, CRL_FILE_BYTES_MAX)));
    }
    for site in &config.sites {
        for page in site.error_page_files() {
            diagnostics.extend(check_readable(config, page, ERROR_PAGE_BYTES_MAX));
        }
        diagnostics
            .extend(site.roots_of_conditions().filter_map(|root| check_folder(config, root)));
        for route in &site.routes {
            diagnostics.extend(route.root.as_ref().and_then(|root| check_folder(config, root)));
        }
    }
    let caches = config.caches.iter().filter(|cache| !is_to_be_made(&cache.directory.value));
    diagnostics.extend(caches.filter_map(|cache| check_folder(config, &cache.directory)));
    diagnostics.extend(check_parents(config));
    diagnostics.extend(check_logs(config));
    diagnostics.sort_by_key(Diagnostic::position);
    match config.is_made() {
        true => diagnostics,
        false => diagnostics.into_iter().map(with_hint).collect(),
    }
}

/// True if nothing has the name of a cache's folder and its parent is there: a start makes it.
pub fn is_to_be_made(folder: &Path) -> bool {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    fs::symlink_metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        && parent.unwrap_or(Path::new(".")).is_dir()
}

fn mistake(
    config: &Config,
    at: &Located<PathBuf>,
    message: String,
    help: Option<String>,
) -> Diagnostic {
    let written = at.value.display().to_string();
    config.diagnostic(at.at, &written, message, help)
}

fn check_readable(config: &Config, file: &Located<PathBuf>, bytes_max: u64) -> Option<Diagnostic> {
    let shown = file.value.display();
    // To open a pipe would be to wait for its writer.
    let found = fs::metadata(&file.value).and_then(|found| match found.is_file() {
        true => File::open(&file.value)?.metadata(),
        false => Ok(found),
    });
    let metadata = match found {
        Ok(metadata) => metadata,
        // The process that reads it may have other ways, and says so where it has not.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
        Err(error) => {
            let is_missing = error.kind() == ErrorKind::NotFound;
            let similar = is_missing.then(|| similar_file(config, &file.value)).flatten();
            return Some(mistake(config, file, format!("cannot read {shown}: {error}"), similar));
        }
    };
    let message = match metadata.len() {
        _ if !metadata.is_file() => format!("{shown} is not a regular file"),
        0 => format!("{shown} is empty"),
        bytes if bytes > bytes_max => {
            format!(
                "{shown} is too large for what it should hold: {bytes} bytes, at most {bytes_max}"
            )
        }
        _ => return None,
    };
    Some(mistake(config, file, message, None))
}

fn check_folder(config: &Config, folder: &Located<PathBuf>) -> Option<Diagnostic> {
    let shown = folder.value.display();
    match fs::read_dir(&folder.value) {
        Ok(_) => None,
        Err(_) if folder.value.is_file() => {
            let help = write(config, folder.value.parent().unwrap_or(Path::new("")));
            Some(mistake(config, folder, format!("{shown} is a file, not a folder"), Some(help)))
        }
        // Search permission is all that serving needs; only listings read the folder.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(error) => {
            let similar = similar_file(config, &folder.value);
            Some(mistake(
                config,
                folder,
                format!("cannot open the folder {shown}: {error}"),
                similar,
            ))
        }
    }
}

fn log_files(config: &Config) -> impl Iterator<Item = (String, &PathBuf)> {
    config.access_logs().filter_map(|(setting, target)| match target {
        LogTarget::Path(path) => Some((setting, path)),
        LogTarget::Off | LogTarget::Stdout | LogTarget::Stderr => None,
    })
}

/// Refuses a file in the place of a log that cannot be appended to.
fn check_logs(config: &Config) -> impl Iterator<Item = Diagnostic> {
    log_files(config).filter_map(|(name, path)| {
        // A file that only /proc leads to, as /dev/stdout, is not the same for the server.
        let found = path.canonicalize().and_then(|path| path.metadata()).ok()?.file_type();
        let what = match found {
            found if found.is_dir() => "a folder",
            found if found.is_socket() => "a socket",
            _ => return None,
        };
        let offending = path.display().to_string();
        let message = format!("the access log needs a file, and {offending} is {what}");
        Some(config.diagnostic(config.position_of(&name), &offending, message, None))
    })
}

/// Files kettle creates itself need a folder to be in.
fn check_parents(config: &Config) -> Vec<Diagnostic> {
    let socket = config.admin.socket.as_ref().map(|path| ("admin.socket".to_owned(), path));
    let mut diagnostics = Vec::new();
    for (name, path) in log_files(config).chain(socket) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // A user that may not look at a folder may have made the file in it before.
        let is_missing = |parent: &&Path| match fs::metadata(parent) {
            Ok(found) => !found.is_dir(),
            Err(error) => error.kind() != ErrorKind::PermissionDenied,
        };
        if let Some(parent) = parent.filter(is_missing) {
            let message = format!("there is no folder {} to create it in", parent.display());
            let offending = path.display().to_string();
            diagnostics.push(config.diagnostic(
                config.position_of(&name),
                &offending,
                message,
                None,
            ));
        }
    }
    diagnostics
}

/// A file of nearly the same name in the same folder, as it would be written in the file. The name
/// itself is no help: the file is there and may not be read, or it is a link to nothing.
fn similar_file(config: &Config, path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent()?;
    let entries = fs::read_dir(Path::new(".").join(folder)).ok()?.take(SIMILAR_ENTRIES_MAX);
    let names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let names: Vec<&str> =
        names.iter().map(String::as_str).filter(|there| *there != name).collect();
    let similar = crate::nearest::closest(name, &names)?;
    Some(write(config, &folder.join(similar)))
}

/// A path as it is to be written: those of a configuration begin in its folder.
fn write(config: &Config, path: &Path) -> String {
    let folder = config.path.parent().unwrap_or(Path::new(""));
    let written = path.strip_prefix(folder).unwrap_or(path);
    let written = if written.as_os_str().is_empty() { Path::new(".") } else { written };
    format!("write \"{}\"", written.display())
}

/// A folder is searched for a similar name no further than this.
const SIMILAR_ENTRIES_MAX: usize = 1000;

#[cfg(test)]
mod tests;
