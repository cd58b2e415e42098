//! The state folder: what is known of each site's order, the certificates, the accounts, and the lock that one issuer has at a time.
//!
//! ```text
//! acme/certificates/SITE/current ─► SITE/TIME/{chain,key}.pem   what the server shows, and may read
//! acme/orders/SITE/{standing.json,key.pem,after}                   what the issuer goes on with
//! acme-accounts/{DIRECTORY.json,lock}                            what nobody else may read
//! ```
//!
//! Whatever is written is on the disk before the next step, and takes its place by a rename: who is killed leaves the old state
//! or the new one.

mod shared;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, FlockOperation, flock, symlinkat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plan::Standing;

/// The state of all sites.
#[derive(Debug)]
pub struct StateFolder {
    root: PathBuf,
    accounts: PathBuf,
    lock: RefCell<Option<File>>,
    /// True if a group may read the certificates.
    is_shared: bool,
}

/// The origin that is kept beside a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The directory of the authority that issued it.
    pub directory: String,
}

/// A certificate that is to be put in its place.
#[derive(Debug)]
pub struct Issued<'a> {
    /// The chain, in PEM, the leaf first.
    pub chain: &'a str,
    /// Its key, in PEM.
    pub key: &'a str,
    /// Its origin.
    pub origin: &'a Origin,
}

impl StateFolder {
    /// The state below `state_directory`, whose folders are made where they are not there.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn open(state_directory: &Path) -> io::Result<Self> {
        let (root, accounts) = folders(state_directory);
        for folder in [&root.join(CERTIFICATES), &root.join(ORDERS), &accounts] {
            make_folder(folder)?;
        }
        Ok(Self { root, accounts, lock: RefCell::default(), is_shared: false })
    }

    /// Lets this group read the certificates, those that come as well; nobody else does.
    ///
    /// # Errors
    /// If the folders cannot be given to it: this user is not in it.
    pub fn share(&mut self, group: Option<u32>) -> io::Result<()> {
        self.is_shared = shared::with(&self.root, group)?;
        Ok(())
    }

    /// Takes the lock, or says that another has it. The kernel drops it with this process.
    ///
    /// # Errors
    /// If the file of the lock cannot be opened.
    pub fn lock(&self) -> io::Result<bool> {
        if self.lock.borrow().is_some() {
            return Ok(true);
        }
        let path = self.accounts.join("lock");
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.lock.replace(Some(file));
                Ok(true)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the facts known of a site. One that cannot be read is like one that was never there: what it says can be found
    /// out again.
    #[must_use]
    pub fn standing(&self, site: &str) -> Standing {
        read_json(&self.of_order(site).join(STANDING)).unwrap_or_default()
    }

    /// Keeps what is known of a site.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_standing(&self, site: &str, standing: &Standing) -> io::Result<()> {
        let folder = self.of_order(site);
        make_folder(&folder)?;
        write(&folder, STANDING, &serde_json::to_vec_pretty(standing)?)
    }

    /// The key of the order under way.
    #[must_use]
    pub fn order_key(&self, site: &str) -> Option<String> {
        let bytes = read(&self.of_order(site).join(KEY)).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// Keeps the key of an order, before the order is finalized.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_order_key(&self, site: &str, key: &str) -> io::Result<()> {
        let folder = self.of_order(site);
        make_folder(&folder)?;
        write(&folder, KEY, key.as_bytes())
    }

    /// True if a program is still to be run after a certificate came.
    #[must_use]
    pub fn is_after_due(&self, site: &str) -> bool {
        self.of_order(site).join(AFTER).exists()
    }

    /// Keeps whether a program is to be run.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn set_after_due(&self, site: &str, is_due: bool) -> io::Result<()> {
        let folder = self.of_order(site);
        if !is_due {
            return remove(&folder.join(AFTER));
        }
        make_folder(&folder)?;
        write(&folder, AFTER, b"")
    }

    /// Forgets the key of an order that is over.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget_order_key(&self, site: &str) -> io::Result<()> {
        remove(&self.of_order(site).join(KEY))
    }

    /// The files of the certificate in force: its chain and its key.
    #[must_use]
    pub fn certificate(&self, site: &str) -> (PathBuf, PathBuf) {
        let current = self.of_certificates(site).join(CURRENT);
        (current.join(CHAIN), current.join(KEY))
    }

    /// Returns the origin of the certificate in force.
    #[must_use]
    pub fn origin(&self, site: &str) -> Origin {
        read_json(&self.of_certificates(site).join(CURRENT).join(ORIGIN)).unwrap_or_default()
    }

    /// Puts a certificate in its place, once `check` finds nothing wrong with its files.
    ///
    /// # Errors
    /// If it cannot be written, or what `check` says.
    pub fn install<E: From<io::Error>>(
        &self,
        site: &str,
        issued: &Issued<'_>,
        now: SystemTime,
        check: impl FnOnce(&Path, &Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let folder = self.of_certificates(site);
        let (of_folder, of_file) = if self.is_shared { (0o750, 0o640) } else { (0o700, 0o600) };
        make_folder_for(&folder, of_folder)?;
        let name = free_name(&folder, of_folder, now)?;
        let new = folder.join(&name);
        let done = fill(&new, issued, of_file).map_err(E::from);
        let done = done.and_then(|()| check(&new.join(CHAIN), &new.join(KEY)));
        let done = done.and_then(|()| Ok(exchange(&folder, &name)?));
        if done.is_err() {
            // The rest of it is removed with the old ones, some day.
            let _ = fs::remove_dir_all(&new);
            return done;
        }
        // From here on it is in force. If the link is not on the disk yet, a loss of power shows the one before.
        let _ = sync_folder(&folder);
        // The certificate is in force, and old ones are only in the way.
        let _ = remove_old(&folder, &name, now);
        Ok(())
    }

    /// The account at an authority, as it was kept.
    #[must_use]
    pub fn account<A: DeserializeOwned>(&self, directory: &str) -> Option<A> {
        read_json(&self.accounts.join(file_of(directory)))
    }

    /// Keeps the account at an authority.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_account(&self, directory: &str, account: &impl Serialize) -> io::Result<()> {
        write(&self.accounts, &file_of(directory), &serde_json::to_vec_pretty(account)?)
    }

    fn of_order(&self, site: &str) -> PathBuf {
        self.root.join(ORDERS).join(site)
    }

    fn of_certificates(&self, site: &str) -> PathBuf {
        self.root.join(CERTIFICATES).join(site)
    }
}

/// The folder of certificates and orders, and that of accounts.
#[must_use]
pub fn folders(state_directory: &Path) -> (PathBuf, PathBuf) {
    (state_directory.join("acme"), state_directory.join("acme-accounts"))
}

/// All that this process may write.
#[must_use]
pub fn all_folders(state_directory: &Path) -> Vec<PathBuf> {
    let (root, accounts) = folders(state_directory);
    vec![root.join(CERTIFICATES), root.join(ORDERS), accounts]
}

/// Returns the folders that nobody but the issuer may read: keys of accounts and of orders under way.
#[must_use]
pub fn secret_folders(state_directory: &Path) -> [PathBuf; 2] {
    let (root, accounts) = folders(state_directory);
    [root.join(ORDERS), accounts]
}

/// Makes a folder that only its owner sees, and those above it.
///
/// # Errors
/// If it cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    make_folder_for(path, 0o700)
}

fn make_folder_for(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// A name that is the moment, so that they sort by age.
fn free_name(folder: &Path, mode: u32, now: SystemTime) -> io::Result<String> {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    for number in 0..NAMES_TRIED_MAX {
        let name = format!("{seconds:012}-{number:02}");
        match DirBuilder::new().mode(mode).create(folder.join(&name)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| name),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn fill(new: &Path, issued: &Issued<'_>, mode: u32) -> io::Result<()> {
    write_for(new, KEY, issued.key.as_bytes(), mode)?;
    write_for(new, CHAIN, issued.chain.as_bytes(), mode)?;
    write_for(new, ORIGIN, &serde_json::to_vec(issued.origin)?, mode)
}

/// Has `current` lead to another folder, at once.
fn exchange(folder: &Path, name: &str) -> io::Result<()> {
    let link = folder.join("current.new");
    remove(&link)?;
    // By this call, which the sandbox has.
    symlinkat(name, CWD, &link)?;
    fs::rename(&link, folder.join(CURRENT))
}

/// Removes what is older than a week, but not the newest two.
fn remove_old(folder: &Path, current: &str, now: SystemTime) -> io::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if name.starts_with(|first: char| first.is_ascii_digit()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let old = names.iter().rev().filter(|name| *name != current).skip(1);
    for name in old {
        let seconds = name.split('-').next().and_then(|seconds| seconds.parse().ok());
        let made = UNIX_EPOCH + Duration::from_secs(seconds.unwrap_or(0));
        if now.duration_since(made).is_ok_and(|age| age > KEPT) {
            fs::remove_dir_all(folder.join(name))?;
        }
    }
    Ok(())
}

/// Writes a file that only its owner may read, under another name first.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    write_for(folder, name, bytes, 0o600)
}

fn write_for(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    let mut options = OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(mode).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&new, folder.join(name))?;
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&read(path).ok()?).ok()
}

/// The name of the file of an account: one for each directory.
fn file_of(directory: &str) -> String {
    let path = directory.strip_prefix("https://").unwrap_or(directory);
    let plain = |each: char| match each {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' => each,
        _ => '_',
    };
    let name: String = path.chars().map(plain).take(NAME_BYTES_MAX).collect();
    format!("{name}.json")
}

const CERTIFICATES: &str = "certificates";
const ORDERS: &str = "orders";
const CURRENT: &str = "current";
const CHAIN: &str = "chain.pem";
const KEY: &str = "key.pem";
const ORIGIN: &str = "origin.json";
const STANDING: &str = "standing.json";
const AFTER: &str = "after";

/// The time for which certificates stay that are not in force.
const KEPT: Duration = Duration::from_hours(7 * 24);

/// Certificates of one second.
const NAMES_TRIED_MAX: u32 = 100;

/// The rest of a name of a file may be 255 bytes long.
const NAME_BYTES_MAX: usize = 200;

/// Nothing that is kept is longer.
const FILE_BYTES_MAX: u64 = 1 << 20;
