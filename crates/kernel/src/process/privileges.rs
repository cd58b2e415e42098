//! Giving up root for good: user, group and supplementary groups, in the only order that works.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::ptr;

/// Why privileges could not be dropped.
#[derive(Debug)]
pub enum PrivilegeError {
    /// The operator named a user this machine does not know.
    UnknownUser(String),
    /// The operator named a group this machine does not know.
    UnknownGroup(String),
    /// A call failed.
    Call(&'static str, io::Error),
    /// Every call succeeded and root could still be regained: a bug or a very odd kernel.
    StillRoot,
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownUser(name) => {
                write!(
                    f,
                    "there is no user `{name}`; create it (`useradd --system {name}`) or name another"
                )
            }
            Self::UnknownGroup(name) => {
                write!(
                    f,
                    "there is no group `{name}`; create it (`groupadd --system {name}`) or name another"
                )
            }
            Self::Call(call, error) => write!(f, "{call}: {error}"),
            Self::StillRoot => f.write_str("root could be regained after dropping privileges"),
        }
    }
}

impl std::error::Error for PrivilegeError {}

/// Makes this process, with all its threads, run as `user`, in `group` (or the user's own) and only the groups named.
pub fn drop_privileges(
    user: &str,
    group: Option<&str>,
    extra_groups: &[String],
) -> Result<(), PrivilegeError> {
    let account = find_user(user)?;
    let gid = match group {
        Some(name) => find_group(name)?,
        None => account.gid,
    };
    let mut groups = Vec::with_capacity(extra_groups.len().saturating_add(1));
    groups.push(gid);
    for name in extra_groups {
        groups.push(find_group(name)?);
    }
    // Groups first: without root the next two calls are no longer allowed. glibc and musl apply each to all threads,
    // which the bare system calls do not.
    // SAFETY: the pointer and count describe `groups`, which is only read.
    let status = unsafe { libc::setgroups(groups.len() as _, groups.as_ptr()) };
    check("setgroups", status)?;
    // SAFETY: takes plain numbers.
    let status = unsafe { libc::setresgid(gid, gid, gid) };
    check("setresgid", status)?;
    // SAFETY: takes plain numbers.
    let status = unsafe { libc::setresuid(account.uid, account.uid, account.uid) };
    check("setresuid", status)?;
    // SAFETY: takes plain numbers.
    let regained = unsafe { libc::setuid(ROOT) } == 0;
    if regained && account.uid != ROOT { Err(PrivilegeError::StillRoot) } else { Ok(()) }
}

/// Says whether [`drop_privileges`] would find the user and the group, each by name or by number.
pub fn find_accounts(user: &str, group: Option<&str>) -> Result<(), PrivilegeError> {
    find_user(user)?;
    group.map_or(Ok(()), |name| find_group(name).map(drop))
}

struct Account {
    uid: libc::uid_t,
    gid: libc::gid_t,
}

fn find_user(name: &str) -> Result<Account, PrivilegeError> {
    let unknown = || PrivilegeError::UnknownUser(name.to_owned());
    let c_name = CString::new(name).map_err(|_| unknown())?;
    let found = with_growing_buffer(|buffer| user_entry(&c_name, buffer))
        .map_err(|error| PrivilegeError::Call("getpwnam_r", error))?;
    let found = match (found, name.parse()) {
        (None, Ok(uid)) => with_growing_buffer(|buffer| numbered_user_entry(uid, buffer))
            .map_err(|error| PrivilegeError::Call("getpwuid_r", error))?,
        (found, _) => found,
    };
    found.ok_or_else(unknown)
}

fn find_group(name: &str) -> Result<libc::gid_t, PrivilegeError> {
    let unknown = || PrivilegeError::UnknownGroup(name.to_owned());
    let c_name = CString::new(name).map_err(|_| unknown())?;
    let found = with_growing_buffer(|buffer| group_entry(&c_name, buffer))
        .map_err(|error| PrivilegeError::Call("getgrnam_r", error))?;
    // Unlike a user, a group is nothing but its number.
    found.or_else(|| name.parse().ok()).ok_or_else(unknown)
}

fn user_entry(name: &CStr, buffer: &mut [libc::c_char]) -> io::Result<Option<Account>> {
    // SAFETY: `passwd` is a C structure of integers and pointers, for which all zeroes is a valid value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = ptr::null_mut();
    let (start, bytes) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the name ends in NUL, `start` and `bytes` describe `buffer`, and all outlive the call.
    let error =
        unsafe { libc::getpwnam_r(name.as_ptr(), &raw mut entry, start, bytes, &raw mut found) };
    let account = Account { uid: entry.pw_uid, gid: entry.pw_gid };
    lookup_outcome(error, !found.is_null(), account)
}

fn numbered_user_entry(
    uid: libc::uid_t,
    buffer: &mut [libc::c_char],
) -> io::Result<Option<Account>> {
    // SAFETY: `passwd` is a C structure of integers and pointers, for which all zeroes is a valid value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = ptr::null_mut();
    let (start, bytes) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: `start` and `bytes` describe `buffer`, and all pointers outlive the call.
    let error = unsafe { libc::getpwuid_r(uid, &raw mut entry, start, bytes, &raw mut found) };
    let account = Account { uid: entry.pw_uid, gid: entry.pw_gid };
    lookup_outcome(error, !found.is_null(), account)
}

fn group_entry(name: &CStr, buffer: &mut [libc::c_char]) -> io::Result<Option<libc::gid_t>> {
    // SAFETY: `group` is a C structure of integers and pointers, for which all zeroes is a valid value.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = ptr::null_mut();
    let (start, bytes) = (buffer.as_mut_ptr(), buffer.len());
    // SAFETY: the name ends in NUL, `start` and `bytes` describe `buffer`, and all outlive the call.
    let error =
        unsafe { libc::getgrnam_r(name.as_ptr(), &raw mut entry, start, bytes, &raw mut found) };
    lookup_outcome(error, !found.is_null(), entry.gr_gid)
}

fn lookup_outcome<T>(error: libc::c_int, is_found: bool, value: T) -> io::Result<Option<T>> {
    match error {
        0 if is_found => Ok(Some(value)),
        // Some name services report an unknown name as an error.
        0 | libc::ENOENT | libc::ESRCH => Ok(None),
        _ => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Repeats a look-up with a larger buffer while it answers `ERANGE`.
fn with_growing_buffer<T>(
    mut look_up: impl FnMut(&mut [libc::c_char]) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let mut bytes = ENTRY_BYTES;
    loop {
        match look_up(&mut vec![0; bytes]) {
            Err(error) if error.raw_os_error() == Some(libc::ERANGE) && bytes < ENTRY_BYTES_MAX => {
                bytes *= 4;
            }
            outcome => return outcome,
        }
    }
}

fn check(call: &'static str, status: libc::c_int) -> Result<(), PrivilegeError> {
    if status == 0 { Ok(()) } else { Err(PrivilegeError::Call(call, io::Error::last_os_error())) }
}

const ROOT: libc::uid_t = 0;
const ENTRY_BYTES: usize = 4096;
const ENTRY_BYTES_MAX: usize = 1024 * 1024;
