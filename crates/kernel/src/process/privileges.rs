//! Becoming another user: for good, in the only order that works, or for one question.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::ptr;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, dumpable_behavior, getegid, geteuid, set_dumpable_behavior,
};

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

/// The account to become: a user, a group, and the groups the user belongs to besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: Vec<libc::gid_t>,
}

impl Account {
    /// Looks a user up by name or number, in `group` or else the user's own; that of this process, where it runs as the user.
    ///
    /// # Errors
    /// If the machine knows no such user or group, or its list of them cannot be read.
    pub fn find(user: &str, group: Option<&str>) -> Result<Self, PrivilegeError> {
        let entry = find_user(user)?;
        let gid = match group {
            Some(group) => find_group(group)?,
            // The manager that started it may have chosen another one (systemd.exec(5), `Group=`).
            None if geteuid().as_raw() == entry.uid => getegid().as_raw(),
            None => entry.gid,
        };
        let groups = group_list(&entry.name, gid)
            .map_err(|error| PrivilegeError::Call("getgrouplist", error))?;
        Ok(Self { uid: entry.uid, gid, groups })
    }

    /// True if this process runs as that user and group already.
    #[must_use]
    pub fn is_current(&self) -> bool {
        geteuid().as_raw() == self.uid && getegid().as_raw() == self.gid
    }

    /// The number of the user.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The group's number.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// True if the user is in this group.
    #[must_use]
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// The same user, in this group as well.
    #[must_use]
    pub fn also_in(mut self, gid: u32) -> Self {
        self.groups.push(gid);
        self
    }

    /// Makes this process, with all its threads, run as this user, and lets it never go back.
    ///
    /// # Errors
    /// If a call is refused, or root could be had back. The process may be half changed then, and has to end.
    pub fn become_for_good(&self) -> Result<(), PrivilegeError> {
        let Self { uid, gid, ref groups } = *self;
        // Groups first: without root the next two calls are no longer allowed. glibc and musl apply each to all threads,
        // which the bare system calls do not.
        // SAFETY: the pointer and count describe `groups`, which is only read.
        let status = unsafe { libc::setgroups(groups.len() as _, groups.as_ptr()) };
        check("setgroups", status)?;
        // SAFETY: takes plain numbers.
        let status = unsafe { libc::setresgid(gid, gid, gid) };
        check("setresgid", status)?;
        // SAFETY: takes plain numbers.
        let status = unsafe { libc::setresuid(uid, uid, uid) };
        check("setresuid", status)?;
        // SAFETY: takes plain numbers.
        let regained = unsafe { libc::setuid(ROOT) } == 0;
        if regained && uid != ROOT { Err(PrivilegeError::StillRoot) } else { Ok(()) }
    }

    /// Runs `question` as this user and returns its answer; the rest of the process stays what it is. Linux gives each
    /// thread credentials of its own: the question gets a thread that takes this user's, as the bare system calls do,
    /// and ends with them. Unlike computing with mode bits, this honours access lists, mounts and security modules.
    ///
    /// Memory is the whole process's, and so is whether it may be dumped: what the kernel makes of that when a thread
    /// changes its user (`fs.suid_dumpable`) could let this user read all of it. Nobody may meanwhile, and what held
    /// before holds again afterwards.
    ///
    /// # Errors
    /// If there is no thread to be had, the question panics, or this process may not become that user.
    pub fn ask<T: Send>(&self, question: impl FnOnce() -> T + Send) -> Result<T, PrivilegeError> {
        let failed = |error: Errno| PrivilegeError::Call("prctl", error.into());
        let before = dumpable_behavior().map_err(failed)?;
        let asked = || {
            self.become_in_this_thread()?;
            Ok(question())
        };
        let answer = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .spawn_scoped(scope, asked)
                .map_err(|error| PrivilegeError::Call("clone", error))?;
            let lost = |_| PrivilegeError::Call("pthread_join", io::ErrorKind::Other.into());
            thread.join().map_err(lost)?
        });
        set_dumpable_behavior(before).map_err(failed)?;
        answer
    }

    fn become_in_this_thread(&self) -> Result<(), PrivilegeError> {
        use rustix::process::{Gid, Uid};
        use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
        let call = |name| move |error: Errno| PrivilegeError::Call(name, error.into());
        let uid = Uid::from_raw(self.uid);
        let gid = Gid::from_raw(self.gid);
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        set_thread_groups(&groups).map_err(call("setgroups"))?;
        set_thread_res_gid(gid, gid, gid).map_err(call("setresgid"))?;
        set_thread_res_uid(uid, uid, uid).map_err(call("setresuid"))?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(call("prctl"))
    }
}

/// The number of a user, by name or number.
///
/// # Errors
/// If the machine knows no such user, or its list of them cannot be read.
pub fn user_id(name: &str) -> Result<u32, PrivilegeError> {
    find_user(name).map(|entry| entry.uid)
}

/// The number of a group, by name or number.
///
/// # Errors
/// As for [`user_id`].
pub fn group_id(name: &str) -> Result<u32, PrivilegeError> {
    find_group(name)
}

/// The name of a group, or its number where it has none.
#[must_use]
pub fn group_name(gid: u32) -> String {
    let found = with_growing_buffer(|buffer| numbered_group_entry(gid, buffer));
    found.ok().flatten().unwrap_or_else(|| gid.to_string())
}

struct UserEntry {
    name: CString,
    uid: libc::uid_t,
    gid: libc::gid_t,
}

fn find_user(name: &str) -> Result<UserEntry, PrivilegeError> {
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
    let found = with_growing_buffer(|buffer| group_entry(&c_name, buffer));
    // Unlike a user, a group is nothing but its number.
    match (found, name.parse()) {
        (Ok(Some(gid)), _) | (_, Ok(gid)) => Ok(gid),
        (Ok(None), Err(_)) => Err(unknown()),
        (Err(error), Err(_)) => Err(PrivilegeError::Call("getgrnam_r", error)),
    }
}

/// Returns the fields kept of an entry that a look-up has just filled, whose buffer is still there.
fn user(entry: &libc::passwd) -> UserEntry {
    // SAFETY: callers pass an entry whose look-up succeeded, so the name is a C string in the buffer they hold.
    let name = unsafe { CStr::from_ptr(entry.pw_name) }.to_owned();
    UserEntry { name, uid: entry.pw_uid, gid: entry.pw_gid }
}

fn user_entry(name: &CStr, buffer: &mut [libc::c_char]) -> io::Result<Option<UserEntry>> {
    // SAFETY: `passwd` is a C structure of integers and pointers, for which all zeroes is a valid value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = ptr::null_mut();
    let start = buffer.as_mut_ptr();
    let bytes = buffer.len();
    // SAFETY: the name ends in NUL, `start` and `bytes` describe `buffer`, and all outlive the call.
    let error =
        unsafe { libc::getpwnam_r(name.as_ptr(), &raw mut entry, start, bytes, &raw mut found) };
    let is_found = lookup_outcome(error, !found.is_null())?;
    Ok(is_found.then(|| user(&entry)))
}

fn numbered_user_entry(
    uid: libc::uid_t,
    buffer: &mut [libc::c_char],
) -> io::Result<Option<UserEntry>> {
    // SAFETY: `passwd` is a C structure of integers and pointers, for which all zeroes is a valid value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = ptr::null_mut();
    let start = buffer.as_mut_ptr();
    let bytes = buffer.len();
    // SAFETY: `start` and `bytes` describe `buffer`, and all pointers outlive the call.
    let error = unsafe { libc::getpwuid_r(uid, &raw mut entry, start, bytes, &raw mut found) };
    let is_found = lookup_outcome(error, !found.is_null())?;
    Ok(is_found.then(|| user(&entry)))
}

fn group_entry(name: &CStr, buffer: &mut [libc::c_char]) -> io::Result<Option<libc::gid_t>> {
    // SAFETY: `group` is a C structure of integers and pointers, for which all zeroes is a valid value.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = ptr::null_mut();
    let start = buffer.as_mut_ptr();
    let bytes = buffer.len();
    // SAFETY: the name ends in NUL, `start` and `bytes` describe `buffer`, and all outlive the call.
    let error =
        unsafe { libc::getgrnam_r(name.as_ptr(), &raw mut entry, start, bytes, &raw mut found) };
    let is_found = lookup_outcome(error, !found.is_null())?;
    Ok(is_found.then_some(entry.gr_gid))
}

fn numbered_group_entry(
    gid: libc::gid_t,
    buffer: &mut [libc::c_char],
) -> io::Result<Option<String>> {
    // SAFETY: `group` is a C structure of integers and pointers, for which all zeroes is a valid value.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = ptr::null_mut();
    let start = buffer.as_mut_ptr();
    let bytes = buffer.len();
    // SAFETY: `start` and `bytes` describe `buffer`, and all pointers outlive the call.
    let error = unsafe { libc::getgrgid_r(gid, &raw mut entry, start, bytes, &raw mut found) };
    let is_found = lookup_outcome(error, !found.is_null())?;
    // SAFETY: the call succeeded, so the name is a C string in `buffer`, which is still there.
    Ok(is_found.then(|| unsafe { CStr::from_ptr(entry.gr_name) }.to_string_lossy().into_owned()))
}

/// The groups a user is in, `gid` among them.
fn group_list(user: &CStr, gid: libc::gid_t) -> io::Result<Vec<libc::gid_t>> {
    let mut groups = vec![gid; GROUPS_GUESSED];
    loop {
        let mut count = libc::c_int::try_from(groups.len()).map_err(io::Error::other)?;
        // SAFETY: the name ends in NUL, and `count` is how many numbers `groups` has room for.
        let status =
            unsafe { libc::getgrouplist(user.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        let count = usize::try_from(count).map_err(io::Error::other)?;
        if status >= 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        if groups.len() >= GROUPS_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        groups.resize(groups.len() * 4, gid);
    }
}

fn lookup_outcome(error: libc::c_int, is_found: bool) -> io::Result<bool> {
    match error {
        0 => Ok(is_found),
        // Some name services report an unknown name as an error.
        libc::ENOENT | libc::ESRCH => Ok(false),
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
const GROUPS_GUESSED: usize = 16;
/// `NGROUPS_MAX` of Linux.
const GROUPS_MAX: usize = 65_536;
