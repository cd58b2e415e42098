//! Moving bytes between files, pipes and sockets, and asking whether file bytes are in memory already.
//!
//! Calls on sockets never wait. Calls on files wait for the disk unless they say otherwise.

#[cfg(test)]
mod tests;

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, sendmsg,
};
use rustix::pipe::SpliceFlags;

/// Sends the buffers one after the other. On a kernel TLS socket they share records; `more` leaves the last record open
/// for what follows. For one alone, send(2) costs less than sendmsg(2).
///
/// # Errors
/// The error of sendmsg(2): `WouldBlock` if the socket has no room.
pub fn send(fd: BorrowedFd<'_>, buffers: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
    if let [one, rest @ ..] = buffers
        && rest.iter().all(|it| it.is_empty())
    {
        return send_one(fd, one, more);
    }
    let mut control = SendAncillaryBuffer::default();
    Ok(retry_on_intr(|| sendmsg(fd, buffers, &mut control, send_flags(more)))?)
}

/// Sends one buffer; otherwise as [`send`].
///
/// # Errors
/// The error of send(2), as [`send`].
pub fn send_one(fd: BorrowedFd<'_>, bytes: &[u8], more: bool) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::net::send(fd, bytes, send_flags(more)))?)
}

/// Receives what the socket has. Zero is the end of the stream (or an empty buffer).
///
/// # Errors
/// The error of recv(2): `WouldBlock` if the socket has nothing.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let (bytes, _) = retry_on_intr(|| recv(fd, &mut *buffer, RecvFlags::DONTWAIT))?;
    Ok(bytes)
}

/// Receives what the socket has, into one buffer after the other. Zero is the end of the stream (or no room).
///
/// # Errors
/// The error of recvmsg(2): `WouldBlock` if the socket has nothing.
pub fn receive_vectored(fd: BorrowedFd<'_>, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let mut control = RecvAncillaryBuffer::default();
    let received = retry_on_intr(|| recvmsg(fd, &mut *buffers, &mut control, RecvFlags::DONTWAIT))?;
    Ok(received.bytes)
}

/// Drops up to `bytes` of what a TCP socket has received, without copying them (tcp(7), `MSG_TRUNC`). Zero is the end of
/// the stream, or that nothing was to be dropped. Other kinds of sockets refuse.
///
/// # Errors
/// The error of recv(2): `WouldBlock` if the socket has nothing, `EFAULT` if it is not TCP's.
pub fn discard(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    let bytes = bytes.min(CALL_BYTES_MAX);
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: the kernel checks every address it writes to: nothing is written at the null pointer, TCP drops the
    // bytes and other sockets answer EFAULT.
    called(|| unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), bytes, flags) })
}

/// The number of bytes a call of the C library moved. One that a signal interrupted is made again.
fn called(call: impl Fn() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(bytes) => return Ok(bytes),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

/// Sends up to `bytes` of the file from `offset`, which it advances. The socket must be non-blocking for this not to wait
/// for it; the file is waited for always. Zero is the end of the file.
///
/// The call has no `MSG_NOSIGNAL`: `SIGPIPE` must be ignored (as Rust programs start) or blocked.
///
/// # Errors
/// The error of sendfile(2): `WouldBlock` if the socket has no room.
pub fn sendfile(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: &mut u64,
    bytes: usize,
) -> io::Result<usize> {
    let bytes = bytes.min(CALL_BYTES_MAX);
    Ok(retry_on_intr(|| rustix::fs::sendfile(socket, file, Some(&mut *offset), bytes))?)
}

/// Moves up to `bytes` between two descriptors of which at least one is a pipe, without waiting for the pipe.
///
/// # Errors
/// The error of splice(2): `WouldBlock` if one side has nothing or the other no room.
pub fn splice(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    bytes: usize,
    more: bool,
) -> io::Result<usize> {
    let mut flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    flags.set(SpliceFlags::MORE, more);
    let bytes = bytes.min(CALL_BYTES_MAX);
    Ok(retry_on_intr(|| rustix::pipe::splice(from, None, to, None, bytes, flags))?)
}

/// The answer to whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Read even what is not in memory.
    Allowed,
    /// Read only what the page cache holds; `WouldBlock` otherwise.
    Never,
}

/// Reads at an offset into the buffers. Zero is the end of the file.
///
/// # Errors
/// The error of preadv2(2): `WouldBlock` for what is not in memory if it may not wait; `InvalidInput` for an offset no
/// file can have.
pub fn read_at(
    file: BorrowedFd<'_>,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
    wait: Wait,
) -> io::Result<usize> {
    // Linux reads an offset of -1 as "the current position", which belongs to everyone who shares the descriptor.
    if i64::try_from(offset).is_err() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = match wait {
        Wait::Allowed => ReadWriteFlags::empty(),
        Wait::Never => ReadWriteFlags::NOWAIT,
    };
    Ok(retry_on_intr(|| preadv2(file, &mut *buffers, offset, flags))?)
}

/// Reads a file from its beginning: into the buffer, and up to `more_bytes` behind that into memory of their own, which nobody has to
/// fill with zeros before. Says how much of the buffer was filled.
///
/// # Errors
/// The error of preadv2(2), as [`read_at`]; `OutOfMemory` if there is none.
pub fn read_beginning(
    file: BorrowedFd<'_>,
    buffer: &mut [u8],
    more_bytes: usize,
    wait: Wait,
) -> io::Result<(usize, Vec<u8>)> {
    let mut more: Vec<u8> = Vec::new();
    more.try_reserve_exact(more_bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let pieces = [(buffer.as_mut_ptr(), buffer.len()), (more.as_mut_ptr(), more_bytes)];
    let pieces = pieces.map(|(at, bytes)| libc::iovec { iov_base: at.cast(), iov_len: bytes });
    let flags = if wait == Wait::Never { libc::RWF_NOWAIT } else { 0 };
    // SAFETY: both pieces are valid for writes of their lengths: a borrowed slice, and the room that was reserved.
    let read = || unsafe { libc::preadv2(file.as_raw_fd(), pieces.as_ptr(), 2, 0, flags) };
    let read_bytes = called(read)?;
    let filled_bytes = read_bytes.min(buffer.len());
    // SAFETY: the kernel filled the buffer first, and then so many bytes of the room.
    unsafe { more.set_len((read_bytes - filled_bytes).min(more_bytes)) };
    Ok((filled_bytes, more))
}

/// The answer to whether sending a range of a file would wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// Every probed byte is in the page cache.
    Resident,
    /// At least one byte is not.
    Cold,
    /// The file ends inside the range.
    BeyondEnd,
    /// The file system never says.
    Unsupported,
    /// It could not be found out, or the range is longer than [`RESIDENCY_BYTES_MAX`].
    Unknown,
}

/// The longest range [`residency`] answers for.
pub const RESIDENCY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Probes the first byte, each 128 KiB and the last byte of a range. A page between two probes can still be missing.
///
/// `cachestat` would know every page and is refused for files of others, which is what a server without privileges serves.
#[must_use]
pub fn residency(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> Residency {
    probe(file, offset, bytes, Wait::Never)
}

/// Reads the bytes [`residency`] would probe, waiting for the disk: how long that takes tells what a file system does not.
pub fn touch(file: BorrowedFd<'_>, offset: u64, bytes: u64) {
    probe(file, offset, bytes, Wait::Allowed);
}

fn probe(file: BorrowedFd<'_>, offset: u64, bytes: u64, wait: Wait) -> Residency {
    if bytes == 0 {
        return Residency::Resident;
    }
    let Some(last) = offset.checked_add(bytes - 1) else { return Residency::BeyondEnd };
    if bytes > RESIDENCY_BYTES_MAX {
        return Residency::Unknown;
    }
    let mut position = offset;
    while position < last {
        match probe_byte(file, position, wait) {
            Residency::Resident => position = position.saturating_add(PROBE_DISTANCE_BYTES),
            other => return other,
        }
    }
    probe_byte(file, last, wait)
}

/// Brings a range into the page cache and waits until it is there, or until the file ends.
///
/// # Errors
/// The error of posix_fadvise(2) or preadv2(2).
pub fn warm(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    // Advice only starts the reading early and in large pieces; the reads below are what makes it certain.
    if let Some(length) = std::num::NonZeroU64::new(bytes) {
        fadvise(file, offset, Some(length), Advice::WillNeed).or_else(|error| match error {
            Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP => Ok(()),
            other => Err(other),
        })?;
    }
    let mut buffer =
        vec![0_u8; WARM_BUFFER_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX))];
    let mut position = offset;
    let end = offset.saturating_add(bytes);
    while position < end {
        let wanted = usize::try_from(end - position).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.get_mut(..wanted).unwrap_or_default();
        let read = read_at(file, &mut [IoSliceMut::new(piece)], position, Wait::Allowed)?;
        if read == 0 {
            break;
        }
        position = position.saturating_add(read as u64);
    }
    Ok(())
}

fn probe_byte(file: BorrowedFd<'_>, position: u64, wait: Wait) -> Residency {
    let mut byte = [0_u8];
    match read_at(file, &mut [IoSliceMut::new(&mut byte)], position, wait) {
        Ok(0) => Residency::BeyondEnd,
        Ok(_) => Residency::Resident,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Residency::Cold,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Residency::Unsupported,
        Err(_) => Residency::Unknown,
    }
}

fn send_flags(more: bool) -> SendFlags {
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    flags.set(SendFlags::MORE, more);
    flags
}

/// Linux moves at most this much in one call (`MAX_RW_COUNT` with 4 KiB pages).
const CALL_BYTES_MAX: usize = 0x7fff_f000;
const PROBE_DISTANCE_BYTES: u64 = 128 * 1024;
const WARM_BUFFER_BYTES: usize = 128 * 1024;
