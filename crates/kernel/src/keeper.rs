//! The keeper: a process that stays root when the server gives root up, and opens and binds for it what a new configuration
//! names. It is forked before there is any thread, shares nothing with the server but a pair of sockets that have no name,
//! and ends with it.
//!
//! What is asked for is first tried with the server's own rights. The keeper answers for what it was told to permit, and for
//! no path that anybody but root may bend: whoever takes over the server gets no other file of root's.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, OFlags, statat};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use socket2::SockRef;

use crate::process::{self, Fork};

mod root;

pub use root::is_chosen_by_root;

/// What a keeper may do for its server.
pub trait Permits {
    /// The server is about to read its configuration again; what it names from now on counts.
    fn renew(&mut self);
    /// Whether the server may read this file.
    fn file(&self, path: &Path) -> bool;
    /// Whether the server may listen there.
    fn address(&self, address: SocketAddr) -> bool;
}

/// Forks the keeper of this process. In the keeper itself this never returns.
///
/// # Errors
/// If this process has more than one thread, or the kernel refuses. The server then has no keeper.
pub fn start(permits: impl Permits) -> io::Result<()> {
    let (ours, its) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match process::fork()? {
        Fork::Parent => {
            set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER_TIME_MAX))?;
            set_socket_timeout(&ours, Timeout::Send, Some(ANSWER_TIME_MAX))?;
            let asking = Asking { socket: ours, number: 0 };
            *KEEPER.lock().unwrap_or_else(PoisonError::into_inner) = Some(asking);
            Ok(())
        }
        Fork::Child => {
            // Without its bounds it is not to be: the server goes on without a keeper.
            if confine(its.as_fd()).is_ok() {
                serve(&its, permits);
            }
            process::exit_at_once()
        }
    }
}

/// Who is told to end is the server; its keeper sees that it is gone.
fn confine(its: BorrowedFd<'_>) -> io::Result<()> {
    process::block_signals()?;
    process::keep_only(its)?;
    rustix::thread::set_name(c"kettle-keeper")?;
    set_no_new_privs(true)?;
    let kept = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::NET_BIND_SERVICE;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    Ok(())
}

/// Opens a file or a folder for reading, by the keeper where this process may not. Waits for nobody at its other end.
///
/// # Errors
/// Those of `open(2)`, or that the keeper has gone.
pub fn open(path: &Path) -> io::Result<File> {
    open_by(path, open_here)
}

fn open_by(path: &Path, own: fn(&Path) -> io::Result<File>) -> io::Result<File> {
    if let Some(opened) = OPENED.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        opened.push(path.to_owned());
    }
    let refused = match own(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => error,
        outcome => return outcome,
    };
    let path = path.as_os_str().as_bytes();
    if path.len() > PATH_BYTES_MAX {
        return Err(refused);
    }
    match ask(OPEN, path, None, refused)? {
        Some(descriptor) => Ok(File::from(descriptor)),
        None => Err(io::Error::other("the keeper opened it and sent nothing")),
    }
}

/// All of a file, by the keeper where this process may not read it. A pipe is waited for.
///
/// # Errors
/// As for [`open`]; that it is longer than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_by(path, |path| File::open(path))?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "the file is too large"));
    }
    Ok(bytes)
}

/// The names of what is in a folder, with what each is, by the keeper where this process may not list it.
///
/// # Errors
/// As for [`open`]; those of `getdents(2)`.
pub fn list(folder: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let folder = open(folder)?;
    let entries = Dir::new(folder.try_clone()?)?;
    let is_listed = |entry: &rustix::io::Result<DirEntry>| {
        entry.as_ref().map_or(true, |entry| ![c".", c".."].contains(&entry.file_name()))
    };
    entries
        .filter(is_listed)
        .map(|entry| {
            let entry = entry?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(found.st_mode)
                }
                kind => kind,
            };
            Ok((OsStr::from_bytes(name.to_bytes()).to_owned(), kind))
        })
        .collect()
}

/// Binds a socket, by the keeper where this process may not: to a port below 1024.
///
/// # Errors
/// Those of `bind(2)`, or that the keeper has gone.
pub fn bind(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<()> {
    match SockRef::from(&socket).bind(&address.into()) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            ask(BIND, address.to_string().as_bytes(), Some(socket), error).map(drop)
        }
        outcome => outcome,
    }
}

/// Says that the configuration is about to be read again. Without a keeper there is nobody to tell.
pub fn renew() {
    let nobody = io::Error::from(ErrorKind::PermissionDenied);
    // Whoever has gone is found out by what is asked next.
    let _ = ask(RENEW, &[], None, nobody);
}

/// The paths that `work` has [`open`] try.
pub fn opened_by<T>(work: impl FnOnce() -> T) -> (T, Vec<PathBuf>) {
    let opened = || OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    *opened() = Some(Vec::new());
    let done = work();
    let paths = opened().take();
    (done, paths.unwrap_or_default())
}

fn open_here(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for its writer.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// One question and its answer; `refused` is what the kernel said to this process, and holds where there is no keeper.
fn ask(
    kind: u8,
    words: &[u8],
    with: Option<BorrowedFd<'_>>,
    refused: io::Error,
) -> io::Result<Option<OwnedFd>> {
    let mut keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Asking { socket, number }) = &mut *keeper else { return Err(refused) };
    *number = number.wrapping_add(1);
    let answered = exchange(socket.as_fd(), *number, &[&[kind], words].concat(), with);
    answered.unwrap_or_else(|error| {
        let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        Err(io::Error::new(ErrorKind::PermissionDenied, if is_late { LATE } else { GONE }))
    })
}

/// The answer to a question, or why there is none. One that was waited for in vain may come yet, and is for nobody then.
fn exchange(
    socket: BorrowedFd<'_>,
    number: u32,
    words: &[u8],
    with: Option<BorrowedFd<'_>>,
) -> io::Result<io::Result<Option<OwnedFd>>> {
    send(socket, &[&number.to_ne_bytes(), words].concat(), with)?;
    loop {
        let mut answer = [0; ANSWER_BYTES];
        let (bytes, descriptor) = receive(socket, &mut answer)?;
        let Some((whose, errno)) = answer.split_first_chunk().filter(|_| bytes == ANSWER_BYTES)
        else {
            return Err(ErrorKind::UnexpectedEof.into());
        };
        if u32::from_ne_bytes(*whose) != number {
            continue;
        }
        let errno = errno.first_chunk().map_or(libc::EIO, |errno| i32::from_ne_bytes(*errno));
        return Ok(match errno {
            0 => Ok(descriptor),
            errno => Err(io::Error::from_raw_os_error(errno)),
        });
    }
}

/// Answers until the server has gone.
fn serve(socket: &OwnedFd, mut permits: impl Permits) {
    let mut question = [0; NUMBER_BYTES + 1 + PATH_BYTES_MAX];
    loop {
        let Ok((bytes, with)) = receive(socket.as_fd(), &mut question) else { return };
        let question = question.get(..bytes).unwrap_or_default();
        // Nothing at all is the end.
        let Some((number, words)) = question.split_first_chunk::<NUMBER_BYTES>() else { return };
        let answer = match words.split_first() {
            Some((&RENEW, _)) => {
                permits.renew();
                Ok(None)
            }
            Some((&OPEN, path)) => open_for(&permits, Path::new(OsStr::from_bytes(path))).map(Some),
            Some((&BIND, address)) => bind_for(&permits, address, with).map(|()| None),
            _ => Err(ErrorKind::InvalidInput.into()),
        };
        let (errno, file) = match answer {
            Ok(file) => (0, file),
            Err(error) => (error.raw_os_error().unwrap_or(libc::EACCES), None),
        };
        let answer = [*number, errno.to_ne_bytes()].concat();
        if send(socket.as_fd(), &answer, file.as_ref().map(AsFd::as_fd)).is_err() {
            return;
        }
    }
}

fn open_for(permits: &impl Permits, path: &Path) -> io::Result<File> {
    if !permits.file(path) || !is_chosen_by_root(path) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    open_here(path)
}

fn bind_for(permits: &impl Permits, address: &[u8], socket: Option<OwnedFd>) -> io::Result<()> {
    let address = std::str::from_utf8(address).ok().and_then(|text| text.parse().ok());
    match (address, socket) {
        (Some(address), Some(socket)) if permits.address(address) => {
            SockRef::from(&socket).bind(&address.into())
        }
        _ => Err(ErrorKind::PermissionDenied.into()),
    }
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8], with: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let with = with.as_slice();
    if !with.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(with));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// One message and the descriptor that came with it.
fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(bytes)];
    let received = recvmsg(socket, slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((received.bytes, descriptors.flatten().last()))
}

/// The server's end.
struct Asking {
    socket: OwnedFd,
    /// Of the last question.
    number: u32,
}

/// Without one this process has the rights it was started with.
static KEEPER: Mutex<Option<Asking>> = Mutex::new(None);

static OPENED: Mutex<Option<Vec<PathBuf>>> = Mutex::new(None);

const OPEN: u8 = b'o';
const BIND: u8 = b'b';
const RENEW: u8 = b'r';

/// A question begins with its number, and so does the answer, which has the error's number behind it.
const NUMBER_BYTES: usize = 4;
const ANSWER_BYTES: usize = 8;

/// `PATH_MAX` of Linux.
const PATH_BYTES_MAX: usize = 4096;

/// A disk that hangs must not hang the server's reloads for good.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

const LATE: &str = "permission denied, and the keeper that opens files of root for this server does not answer: a disk hangs";
const GONE: &str = "permission denied, and the keeper that opens files of root for this server has gone: restart kettle";
