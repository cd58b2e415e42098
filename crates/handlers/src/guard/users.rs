//! A file of users: lines `name:hash`, as htpasswd writes them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params};
use kettle_kernel::cgroup::Limits;
use kettle_kernel::keeper;

/// The users of a file.
pub(super) struct Users {
    hashes: HashMap<Box<str>, Arc<Hash>>,
    /// Checked for names that nobody has, so that they take as long.
    decoy: Arc<Hash>,
    /// No other users of this process have or had this number.
    pub(super) number: u64,
}

/// The way a password is checked.
#[derive(Debug)]
pub(super) enum Hash {
    Bcrypt(Box<str>),
    Argon2(Box<str>),
}

/// The fault of a file of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersMistake {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The fault. It holds no hash.
    pub message: String,
    /// The advice.
    pub help: Option<String>,
}

impl Users {
    /// Reads a file, for so many threads that check passwords.
    pub(super) fn read(path: &Path, threads: usize) -> Result<Self, UsersMistake> {
        let mistake = |line, message: String, help| {
            let help = Some(help).filter(|text: &String| !text.is_empty());
            UsersMistake { path: path.to_owned(), line, message, help }
        };
        let text = keeper::read(path, FILE_BYTES_MAX)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| mistake(0, format!("cannot read it: {error}"), String::new()))?;
        Self::parse(&text, threads).map_err(|(line, message)| {
            let name = message.name.unwrap_or_else(|| "NAME".to_owned());
            let help = format!("run `htpasswd -B {} {name}`", path.display());
            mistake(line, message.why, help)
        })
    }

    fn parse(text: &str, threads: usize) -> Result<Self, (usize, Wrong)> {
        let mut hashes: HashMap<Box<str>, Arc<Hash>> = HashMap::new();
        let mut decoy = None;
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str, name: Option<&str>| {
                (number, Wrong { why: why.to_owned(), name: name.map(str::to_owned) })
            };
            let Some((name, rest)) = line.split_once(':').filter(|(name, _)| !name.is_empty())
            else {
                return Err(wrong("a line is a name, a colon and a hash", None));
            };
            if name.chars().any(char::is_control) {
                return Err(wrong("a name holds no control characters", None));
            }
            // Text behind another colon is a remark.
            let hash = rest.split(':').next().unwrap_or(rest);
            let hash = Hash::read(hash, threads).map_err(|why| wrong(&why, Some(name)))?;
            let hash = Arc::new(hash);
            decoy.get_or_insert_with(|| Arc::clone(&hash));
            if hashes.insert(name.into(), hash).is_some() {
                return Err(wrong(&format!("`{name}` is there already"), Some(name)));
            }
        }
        let wrong = || (0, Wrong { why: "there is no user in it".to_owned(), name: None });
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self { hashes, decoy: decoy.ok_or_else(wrong)?, number })
    }

    /// The hash to check a password by, and whether anybody has the name.
    pub(super) fn hash(&self, name: &str) -> (Arc<Hash>, bool) {
        match self.hashes.get(name) {
            Some(hash) => (Arc::clone(hash), true),
            None => (Arc::clone(&self.decoy), false),
        }
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Users").field("names", &self.hashes.len()).finish_non_exhaustive()
    }
}

struct Wrong {
    why: String,
    name: Option<String>,
}

impl Hash {
    fn read(text: &str, threads: usize) -> Result<Self, String> {
        if let Some(rest) = ["$2y$", "$2b$", "$2a$"].iter().find_map(|id| text.strip_prefix(id)) {
            let cost: u32 = rest.split('$').next().and_then(|cost| cost.parse().ok()).unwrap_or(0);
            return match cost {
                _ if text.len() != BCRYPT_CHARACTERS || !text.bytes().all(is_of_bcrypt) => {
                    Err("its bcrypt hash is damaged".to_owned())
                }
                BCRYPT_COST_MIN..=BCRYPT_COST_MAX => Ok(Self::Bcrypt(text.into())),
                cost => Err(format!(
                    "a cost of bcrypt is from {BCRYPT_COST_MIN} to {BCRYPT_COST_MAX} here, not {cost}"
                )),
            };
        }
        if text.starts_with("$argon2") {
            let hash = PasswordHash::new(text)
                .map_err(|error| format!("its Argon2 hash is damaged: {error}"))?;
            let params = Params::try_from(&hash)
                .map_err(|error| format!("its Argon2 hash is damaged: {error}"))?;
            let work = u64::from(params.m_cost()) * u64::from(params.t_cost());
            return match work {
                _ if hash.hash.is_none() => Err("its Argon2 hash is damaged".to_owned()),
                0..=ARGON2_WORK_MAX => {
                    refuse_large(params.m_cost(), threads, *MEMORY_BYTES)?;
                    Ok(Self::Argon2(text.into()))
                }
                _ => Err("Argon2 with these parameters takes too long".to_owned()),
            };
        }
        Err("only hashes of bcrypt and Argon2 are taken: others are guessed too quickly".to_owned())
    }

    /// True if this is the password. Slow by design.
    pub(super) fn fits(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Argon2(hash) => PasswordHash::new(hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
        }
    }
}

/// Refuses what takes too much memory at each try, right or wrong, on so many threads.
fn refuse_large(kibibytes: u32, threads: usize, memory_bytes: Option<u64>) -> Result<(), String> {
    let most = memory_bytes.map_or(u64::MAX, |bytes| bytes / 1024 / ARGON2_SHARE / threads as u64);
    let most = most.min(ARGON2_KIBIBYTES_MAX);
    if u64::from(kibibytes) <= most {
        return Ok(());
    }
    Err(format!(
        "Argon2 with m={kibibytes} takes too much memory at each try: here it is at most m={most}"
    ))
}

/// The memory that this process may use, as it was when it was first asked.
static MEMORY_BYTES: LazyLock<Option<u64>> =
    LazyLock::new(|| Limits::of_this_process().memory_bytes);

/// The characters of bcrypt's own Base64, and what stands between.
fn is_of_bcrypt(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"./$".contains(&byte)
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// `$2y$05$`, 22 characters of salt, 31 of hash.
const BCRYPT_CHARACTERS: usize = 60;
const BCRYPT_COST_MIN: u32 = 4;
/// About a second.
const BCRYPT_COST_MAX: u32 = 14;
/// KiB times passes: 256 MiB four times, about a second.
const ARGON2_WORK_MAX: u64 = 4 * 256 * 1024;

/// For each of the threads that check.
const ARGON2_KIBIBYTES_MAX: u64 = 256 * 1024;
/// All of them together take at most the memory that this process may use divided by this.
const ARGON2_SHARE: u64 = 4;

/// As `kettle check` has it.
const FILE_BYTES_MAX: u64 = 16 << 20;

#[cfg(test)]
mod tests;
