//! The keeper: a process that stays root when the server gives root up, and opens and binds for it what a new configuration
//! names. It is forked before there is any thread, shares nothing with the server but a pair of sockets that have no name,
//! and ends with it.
//!
//! A request is first tried with the server's own rights. The keeper answers for what it was told to permit, and for
//! no path that anybody but root may bend: whoever takes over the server gets no other file of root's.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::named_socket::Rights;
use crate::process::{self, Fork};
use crate::sandbox::{Confined, Files, SandboxError, confine_calls, confine_files};
use rustix::fs::{FileType, OFlags};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};
use sockets::{BIND, PLACE, REMOVE, bind_for, place_for, remove_for};

mod listing;
mod root;
mod sockets;
mod watch;
mod whole;

pub use root::{is_chosen_by_root, is_written_by_root};
pub use sockets::bind;
pub(crate) use sockets::{place_socket, remove_socket};
pub use watch::{is_alive, watched};

/// The acts that a keeper may do for its server.
pub trait Permits {
    /// The server is about to read its configuration again; what it names from now on counts.
    fn renew(&mut self);
    /// True if the server may read this file.
    fn file(&self, path: &Path) -> bool;
    /// True if the server may listen there.
    fn address(&self, address: SocketAddr) -> bool;
    /// The rights of a Unix socket at this path; none if the server may not listen there.
    fn socket_rights(&self, path: &Path) -> Option<Rights>;
}

/// Forks the keeper of this process, with a sandbox of its own unless somebody does not want one. It makes and removes Unix
/// sockets in these folders. In the keeper itself this never returns.
///
/// # Errors
/// If this process has more than one thread, or the kernel refuses. The server then has no keeper.
pub fn start(
    permits: impl Permits,
    in_sandbox: bool,
    socket_folders: Vec<PathBuf>,
) -> io::Result<()> {
    // Nobody waits for its end, and it should not stay behind as a process that has ended.
    process::forget_children()?;
    // Nobody is asked for credentials (SO_PEERCRED): a pair has no name to connect to, `open(2)` of its ends in /proc fails, and
    // whoever may take one over (pidfd_getfd(2), as ptrace(2)) may do all that the server may. Those of a pair are also its maker's,
    // root's, on both ends.
    let (ours, its) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match process::fork()? {
        Fork::Parent { .. } => {
            drop(its);
            set_socket_timeout(&ours, Timeout::Recv, Some(ANSWER_TIME_MAX))?;
            set_socket_timeout(&ours, Timeout::Send, Some(ANSWER_TIME_MAX))?;
            // Its first word says that it has become what it is to be.
            answer_to(ours.as_fd(), 0)??;
            watch::begin(&ours);
            let asking = Asking { socket: ours, number: 0, is_late: false };
            *KEEPER.lock().unwrap_or_else(PoisonError::into_inner) = Some(asking);
            Ok(())
        }
        Fork::Child => {
            // A panic must not go on into what is the server's: there it would put away what the server still uses.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let confined =
                    confine(its.as_fd(), in_sandbox, socket_folders).map(|()| Answer::default());
                // Without its bounds it is not to be: the server goes on without a keeper.
                let goes_on = confined.is_ok();
                if answer(its.as_fd(), [0; NUMBER_BYTES], confined).is_ok() && goes_on {
                    serve(&its, permits);
                }
            }));
            process::exit_at_once(0)
        }
    }
}

/// The process told to end is the server; its keeper sees that it is gone.
fn confine(its: BorrowedFd<'_>, in_sandbox: bool, socket_folders: Vec<PathBuf>) -> io::Result<()> {
    process::block_signals()?;
    process::keep_only(&[its])?;
    rustix::thread::set_name(c"kettle-keeper")?;
    set_no_new_privs(true)?;
    // It writes nothing.
    setrlimit(Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) })?;
    // A container may have fewer: what root owns it reads even so.
    let mut kept = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::NET_BIND_SERVICE;
    let makes_sockets = !socket_folders.is_empty();
    if makes_sockets {
        kept |= CapabilitySet::CHOWN;
    }
    let kept = kept & capabilities(None)?.permitted;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    if !in_sandbox {
        return Ok(());
    }
    // It is root's user still, who owns files: without these it could rename and remove them.
    let read = vec![PathBuf::from("/")];
    let files = Files { read, sockets: socket_folders, ..Files::default() };
    for done in [confine_files(&files), confine_calls(Confined::Keeper, makes_sockets)] {
        match done {
            // The server says of itself what this kernel cannot do.
            Ok(()) | Err(SandboxError::NotHere(_)) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(())
}

/// Opens a file or a folder for reading, by the keeper where this process may not. Waits for nobody at its other end.
///
/// # Errors
/// Those of `open(2)`, or that the keeper has gone.
pub fn open(path: &Path) -> io::Result<File> {
    let refused = match open_own(path)? {
        Ok(opened) => return Ok(opened),
        Err(refused) => refused,
    };
    match ask(OPEN, path.as_os_str().as_bytes(), None, refused)?.descriptor {
        Some(descriptor) => Ok(File::from(descriptor)),
        None => Err(io::Error::other("the keeper opened it and sent nothing")),
    }
}

/// Opens what this process may open, or why it may not, which is for the keeper to mend.
fn open_own(path: &Path) -> io::Result<Result<File, io::Error>> {
    if let Some(opened) = OPENED.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        return open_as_keeper(path, opened).map(Ok);
    }
    match open_here(path) {
        Err(error)
            if error.kind() == ErrorKind::PermissionDenied
                && path.as_os_str().len() <= PATH_BYTES_MAX =>
        {
            Ok(Err(error))
        }
        outcome => outcome.map(Ok),
    }
}

/// All of a file, by the keeper where this process may not read it. Anything but a regular file is
/// refused at once.
///
/// # Errors
/// As for [`open`]; that it is no file, or longer than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    whole::read(open(path)?, bytes_max, None)
}

/// The same of a file or a pipe: for its writer, this is waited at most.
///
/// # Errors
/// As for [`open`]; that it is longer than `bytes_max`; that a pipe has not ended in time.
pub fn read_or_wait(path: &Path, bytes_max: u64, patience: Duration) -> io::Result<Vec<u8>> {
    whole::read(open(path)?, bytes_max, Some(patience))
}

/// The names of what is in a folder, with what each is, by the keeper where this process may not list it.
///
/// # Errors
/// As for [`open`]; those of `getdents(2)`.
pub fn list(folder: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let refused = match open_own(folder)? {
        Ok(opened) => return listing::of(&opened),
        Err(refused) => refused.raw_os_error().unwrap_or(libc::EACCES),
    };
    let path = folder.as_os_str().as_bytes();
    let mut bytes = Vec::new();
    loop {
        let at = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let words = [&at.to_ne_bytes(), path].concat();
        let answered = ask(LIST, &words, None, io::Error::from_raw_os_error(refused))?;
        if answered.bytes.is_empty() {
            return Ok(listing::decode(&bytes));
        }
        bytes.extend(answered.bytes);
        if bytes.len() > LISTING_BYTES_MAX {
            return Err(io::Error::new(ErrorKind::FileTooLarge, "the folder holds too much"));
        }
    }
}

/// True if this process has one.
#[must_use]
pub fn is_there() -> bool {
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Says that this process has given up root and has no keeper, which a refusal then names as its reason.
pub fn do_without() {
    IS_DONE_WITHOUT.store(true, Ordering::Relaxed);
}

/// Says that the configuration is about to be read again. Without a keeper there is nobody to tell.
pub fn renew() {
    let nobody = io::Error::from(ErrorKind::PermissionDenied);
    // A peer that has gone is found out by what is asked next.
    let _ = ask(RENEW, &[], None, nobody);
}

/// Returns what `work` opens as the keeper: only files and folders that nobody but root may write.
pub fn opened_by<T>(work: impl FnOnce() -> T) -> (T, Vec<PathBuf>) {
    let opened = || OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    *opened() = Some(Vec::new());
    let done = work();
    let paths = opened().take();
    (done, paths.unwrap_or_default())
}

/// True if the configuration is being read for the keeper, which asks nobody beyond this machine's files.
pub fn reads_as_keeper() -> bool {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

fn open_here(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for its writer.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// For the keeper's own reading: only what nobody but root may write tells it anything, and nothing makes it wait.
fn open_as_keeper(path: &Path, opened: &mut Vec<PathBuf>) -> io::Result<File> {
    if !is_written_by_root(path) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let file = open_here(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    opened.push(path.to_owned());
    Ok(file)
}

/// One question and its answer; `refused` is what the kernel said to this process, and holds where there is no keeper.
fn ask(
    kind: u8,
    words: &[u8],
    with: Option<BorrowedFd<'_>>,
    refused: io::Error,
) -> io::Result<Answer> {
    let mut keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Asking { socket, number, is_late }) = &mut *keeper else {
        let is_done_without = IS_DONE_WITHOUT.load(Ordering::Relaxed);
        let without = || io::Error::new(ErrorKind::PermissionDenied, WITHOUT);
        return Err(if is_done_without { without() } else { refused });
    };
    // As long as it owes an answer, nobody else waits for it.
    if *is_late && receive(socket.as_fd(), &mut [0; ANSWER_BYTES], RecvFlags::DONTWAIT).is_err() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, LATE));
    }
    *number = number.wrapping_add(1).max(1);
    let answered = exchange(socket.as_fd(), *number, &[&[kind], words].concat(), with);
    *is_late = answered.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    let words = if *is_late { LATE } else { GONE };
    answered.unwrap_or_else(|_| Err(io::Error::new(ErrorKind::PermissionDenied, words)))
}

/// The answer to a question, or why there is none. One that was waited for in vain may come yet, and is for nobody then.
fn exchange(
    socket: BorrowedFd<'_>,
    number: u32,
    words: &[u8],
    with: Option<BorrowedFd<'_>>,
) -> io::Result<io::Result<Answer>> {
    send(socket, &[&number.to_ne_bytes(), words].concat(), with)?;
    answer_to(socket, number)
}

fn answer_to(socket: BorrowedFd<'_>, number: u32) -> io::Result<io::Result<Answer>> {
    let mut room = vec![0; ANSWER_BYTES + PIECE_BYTES];
    loop {
        let (bytes, descriptor) = receive(socket, &mut room, RecvFlags::empty())?;
        let answer = room.get(..bytes).and_then(<[u8]>::split_first_chunk);
        let Some((whose, Some((errno, bytes)))) =
            answer.map(|(whose, rest)| (whose, rest.split_first_chunk()))
        else {
            return Err(ErrorKind::UnexpectedEof.into());
        };
        if u32::from_ne_bytes(*whose) != number {
            continue;
        }
        return Ok(match i32::from_ne_bytes(*errno) {
            0 => Ok(Answer { descriptor, bytes: bytes.to_vec() }),
            errno => Err(io::Error::from_raw_os_error(errno)),
        });
    }
}

/// Answers until the server has gone.
fn serve(socket: &OwnedFd, mut permits: impl Permits) {
    let mut question = [0; NUMBER_BYTES + 1 + NUMBER_BYTES + PATH_BYTES_MAX];
    let mut listed = LastListing::default();
    loop {
        let received = receive(socket.as_fd(), &mut question, RecvFlags::empty());
        let Ok((bytes, with)) = received else { return };
        let question = question.get(..bytes).unwrap_or_default();
        // Nothing at all is the end.
        let Some((number, words)) = question.split_first_chunk::<NUMBER_BYTES>() else { return };
        let done = match words.split_first() {
            Some((&RENEW, _)) => {
                permits.renew();
                Ok(Answer::default())
            }
            Some((&OPEN, path)) => open_for(&permits, Path::new(OsStr::from_bytes(path))),
            Some((&LIST, words)) => listed.piece_for(&permits, words),
            Some((&BIND, address)) => bind_for(&permits, address, with).map(|()| Answer::default()),
            Some((&PLACE, path)) => place_for(&permits, path, with).map(|()| Answer::default()),
            Some((&REMOVE, words)) => remove_for(&permits, words).map(|()| Answer::default()),
            _ => Err(ErrorKind::InvalidInput.into()),
        };
        if answer(socket.as_fd(), *number, done).is_err() {
            return;
        }
    }
}

fn answer(
    socket: BorrowedFd<'_>,
    number: [u8; NUMBER_BYTES],
    done: io::Result<Answer>,
) -> io::Result<()> {
    let (errno, Answer { descriptor, bytes }) = match done {
        Ok(answer) => (0, answer),
        Err(error) => (error.raw_os_error().unwrap_or(libc::EACCES), Answer::default()),
    };
    let words = [&number, &errno.to_ne_bytes(), &bytes[..]].concat();
    send(socket, &words, descriptor.as_ref().map(AsFd::as_fd))
}

/// A file, and no folder: through an open one more could be reached than its names.
fn open_for(permits: &impl Permits, path: &Path) -> io::Result<Answer> {
    let opened = open_permitted(permits, path)?;
    if opened.metadata()?.is_dir() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(Answer { descriptor: Some(opened.into()), ..Answer::default() })
}

fn open_permitted(permits: &impl Permits, path: &Path) -> io::Result<File> {
    if !permits.file(path) || !is_chosen_by_root(path) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    open_here(path)
}

/// The folder that was listed last. One message has no room for all its names.
#[derive(Default)]
struct LastListing {
    folder: PathBuf,
    names: Vec<u8>,
}

impl LastListing {
    /// The piece from this offset on; from the first on, as the folder is now.
    fn piece_for(&mut self, permits: &impl Permits, words: &[u8]) -> io::Result<Answer> {
        let (at, folder) = words.split_first_chunk().ok_or(ErrorKind::InvalidInput)?;
        let at = u32::from_ne_bytes(*at);
        let folder = Path::new(OsStr::from_bytes(folder));
        if at == 0 {
            let names = listing::of(&open_permitted(permits, folder)?)?;
            *self = Self { folder: folder.to_owned(), names: listing::encode(&names) };
        } else if folder != self.folder {
            return Err(ErrorKind::InvalidInput.into());
        }
        let left = self.names.get(at as usize..).unwrap_or_default();
        let bytes = left.get(..PIECE_BYTES).unwrap_or(left).to_vec();
        Ok(Answer { bytes, ..Answer::default() })
    }
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8], with: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let with = with.as_slice();
    if !with.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(with));
    }
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// One message and the descriptor that came with it.
fn receive(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(bytes)];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    // A call with a time limit ends at every signal, and when a process that was stopped goes on (signal(7)).
    let received = retry_on_intr(|| recvmsg(socket, slices, &mut control, flags))?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((received.bytes, descriptors.flatten().last()))
}

/// The answer where nothing went wrong.
#[derive(Debug, Default)]
struct Answer {
    /// Of a file that was asked for.
    descriptor: Option<OwnedFd>,
    /// A piece of a listing.
    bytes: Vec<u8>,
}

/// The server's end.
struct Asking {
    socket: OwnedFd,
    /// Of the last question.
    number: u32,
    /// True if that was waited for in vain.
    is_late: bool,
}

/// Without one this process has the rights it was started with.
static KEEPER: Mutex<Option<Asking>> = Mutex::new(None);

static IS_DONE_WITHOUT: AtomicBool = AtomicBool::new(false);

static OPENED: Mutex<Option<Vec<PathBuf>>> = Mutex::new(None);

const OPEN: u8 = b'o';
const LIST: u8 = b'l';
const RENEW: u8 = b'r';

/// A question begins with its number, and so does the answer, which has the error's number behind it.
const NUMBER_BYTES: usize = 4;
const ANSWER_BYTES: usize = 8;

/// The bytes of a listing in one message.
const PIECE_BYTES: usize = 16 << 10;

/// About 100,000 names.
const LISTING_BYTES_MAX: usize = 4 << 20;

/// `PATH_MAX` of Linux.
const PATH_BYTES_MAX: usize = 4096;

/// A disk that hangs must not hang the server's reloads for good.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

const LATE: &str = "permission denied, and the keeper that opens files of root for this server does not answer: a disk hangs";
const GONE: &str = "permission denied, and the keeper that opens files of root for this server has gone: restart kettle";
const WITHOUT: &str = "permission denied, and this server started without the keeper that opens files of root: at its start it says why";
